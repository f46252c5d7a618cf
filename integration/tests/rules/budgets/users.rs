//! A budget for each user, and sessions that become another one: by COM_CHANGE_USER, in the clear, in
//! TLS, compressed and both.

use integration::raw::{COM_RESET_CONNECTION, Compress, Login, RawConn, Shape, Tls, framed};
use integration::scenario::{Held, wait_for_sum};

use tokio::time::timeout;

use super::places::Lab;
use super::{PATIENCE, TAIL_PS, send};

/// What the leg goes through; the one behind Sluice goes through the same. Each alone adds nothing.
const LEGS: [(Tls, Compress); 3] = [
    (Tls::Never, Compress::Never),
    (Tls::Newest, Compress::Zlib),
    (Tls::Newest, Compress::Zstd(3)),
];

const DROP_NOTHING: &str = "DROP PROCEDURE IF EXISTS test.nothing";
const NOTHING: &str = "CREATE PROCEDURE test.nothing() DO 1";

const EACH: [(&str, &str); 1] = [("budget", "each")];

impl Lab {
    /// Each statement is counted as that of the user whose session it is then, and nothing is left.
    pub(super) async fn users(&self) {
        for (tls, compress) in LEGS {
            let login = |user: &str| {
                let login = Login::new(user).attribute("sluice_app", "each");
                login.tls(tls.clone()).compress(compress)
            };
            self.who_changes_waits_as_the_other(&login).await;
            self.who_holds_no_locks_any_more_waits(&login).await;
            self.who_may_hold_locks_waits_for_nobody(&login).await;
            self.who_is_refused_stays_who_it_was(&login).await;
            self.who_asks_before_it_has_become_the_other_waits_as_that(&login).await;
            self.each(0.0, 0.0).await;
        }
        for user in ["web", "etl", "quick"] {
            let text = format!(
                "SELECT TIMER_START, TIMER_END FROM \
                 performance_schema.events_statements_history_long \
                 WHERE SQL_TEXT LIKE '% ''each {user}''%'"
            );
            let spans: Vec<(u64, u64)> = self.server.query(&text).await.unwrap();
            let under_way = |at: u64| {
                spans.iter().filter(|(start, end)| *start <= at && at + TAIL_PS < *end).count()
            };
            let most = spans.iter().map(|(start, _)| under_way(*start)).max();
            assert!(most.is_some_and(|most| most <= 1), "{user}: {spans:?}");
        }
    }

    async fn open(&self, login: &Login) -> RawConn {
        RawConn::open(self.sluice.listen_addr(), login).await.unwrap()
    }

    async fn each(&self, in_use: f64, waiting: f64) {
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &EACH, in_use).await.unwrap();
        wait_for_sum(&self.sluice, "sluice_budget_waiting", &EACH, waiting).await.unwrap();
    }

    async fn who_changes_waits_as_the_other(&self, login: &impl Fn(&str) -> Login) {
        let mut busy = self.open(&login("etl")).await;
        let mut changes = self.open(&login("web")).await;
        let held = self.hold().await;
        send(&mut busy, &Held::statement("each etl")).await;
        self.each(1.0, 0.0).await;
        passes(&mut changes, &sleep(0.0, "web")).await;
        // A role is no user.
        passes(&mut changes, "SET ROLE NONE").await;
        passes(&mut changes, &sleep(0.0, "web")).await;
        changes.change_user(&login("etl")).await.unwrap();
        send(&mut changes, &sleep(0.02, "etl")).await;
        self.each(1.0, 1.0).await;
        // Whose place is taken leaves the other's free.
        let mut third = self.open(&login("web")).await;
        passes(&mut third, &sleep(0.0, "web")).await;
        held.release().await.unwrap();
        busy.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        changes.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        // Back again, and a statement that waits is the old one's no more.
        changes.change_user(&login("web")).await.unwrap();
        let held = self.hold().await;
        send(&mut busy, &Held::statement("each etl")).await;
        self.each(1.0, 0.0).await;
        passes(&mut changes, &sleep(0.0, "web")).await;
        held.release().await.unwrap();
        busy.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        self.each(0.0, 0.0).await;
    }

    /// COM_CHANGE_USER and COM_RESET_CONNECTION roll back.
    async fn who_holds_no_locks_any_more_waits(&self, login: &impl Fn(&str) -> Login) {
        let mut busy = self.open(&login("etl")).await;
        let mut holder = self.open(&login("etl")).await;
        for ends_by_change in [true, false] {
            holder.query("BEGIN").await.unwrap().accepted().unwrap();
            let lock = "UPDATE test.places SET n = 10 WHERE n = 1";
            holder.query(lock).await.unwrap().accepted().unwrap();
            let held = self.hold().await;
            send(&mut busy, &Held::statement("each etl")).await;
            self.each(1.0, 0.0).await;
            passes(&mut holder, "SELECT n FROM test.places").await;
            if ends_by_change {
                holder.change_user(&login("etl")).await.unwrap();
            } else {
                let reset = holder.command(&[COM_RESET_CONNECTION], Shape::Single).await.unwrap();
                reset.accepted().unwrap();
            }
            send(&mut holder, &sleep(0.0, "etl")).await;
            self.each(1.0, 1.0).await;
            held.release().await.unwrap();
            busy.read_response(Shape::Query).await.unwrap().accepted().unwrap();
            holder.read_response(Shape::Query).await.unwrap().accepted().unwrap();
            self.each(0.0, 0.0).await;
        }
    }

    /// Behind a CALL only the server knows whether the transaction is the one of before. It was taken
    /// for another, and waited for a place that was taken by who waited for its row.
    async fn who_may_hold_locks_waits_for_nobody(&self, login: &impl Fn(&str) -> Login) {
        self.server.run_sql(&[DROP_NOTHING, NOTHING]).await.unwrap();
        let mut busy = self.open(&login("etl")).await;
        let mut holder = self.open(&login("etl")).await;
        holder.query("SET @text = 'DO 1'").await.unwrap().accepted().unwrap();
        holder.query("PREPARE s FROM @text").await.unwrap().accepted().unwrap();
        for text in ["EXECUTE s", "CALL test.nothing()"] {
            for sql in ["BEGIN", "UPDATE test.places SET n = 20 WHERE n = 2", text] {
                passes(&mut holder, sql).await;
            }
            let held = self.hold().await;
            send(&mut busy, &Held::statement("each etl")).await;
            self.each(1.0, 0.0).await;
            passes(&mut holder, "SELECT n FROM test.places").await;
            passes(&mut holder, "UPDATE test.places SET n = 2 WHERE n = 20").await;
            // It may do as it likes with transactions, so each is asked for.
            send(&mut holder, "CALL test.nothing()").await;
            self.each(1.0, 1.0).await;
            held.release().await.unwrap();
            busy.read_response(Shape::Query).await.unwrap().accepted().unwrap();
            holder.read_response(Shape::Query).await.unwrap().accepted().unwrap();
            passes(&mut holder, "COMMIT").await;
            self.each(0.0, 0.0).await;
        }
    }

    /// The last packet of a COM_CHANGE_USER and a statement in one go: it is the statement of whoever
    /// the server lets in.
    async fn who_asks_before_it_has_become_the_other_waits_as_that(
        &self,
        login: &impl Fn(&str) -> Login,
    ) {
        let mut busy = self.open(&login("etl")).await;
        let mut changes = self.open(&login("web")).await;
        let held = self.hold().await;
        become_quick(&mut busy, login, &Held::statement("each quick")).await;
        self.each(1.0, 0.0).await;
        become_quick(&mut changes, login, &sleep(0.0, "quick")).await;
        self.each(1.0, 1.0).await;
        held.release().await.unwrap();
        busy.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        changes.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        // Whose place was taken before is not waited for.
        let mut other = self.open(&login("web")).await;
        let held = self.hold().await;
        send(&mut other, &Held::statement("each web")).await;
        self.each(1.0, 0.0).await;
        changes.change_user(&login("web")).await.unwrap();
        become_quick(&mut changes, login, &sleep(0.0, "quick")).await;
        let answer = timeout(PATIENCE, changes.read_response(Shape::Query)).await;
        answer.unwrap().unwrap().accepted().unwrap();
        held.release().await.unwrap();
        other.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        self.each(0.0, 0.0).await;
    }

    /// MySQL closes the connection, MariaDB goes on with the user before.
    async fn who_is_refused_stays_who_it_was(&self, login: &impl Fn(&str) -> Login) {
        let mut busy = self.open(&login("etl")).await;
        let mut refused = self.open(&login("web")).await;
        let held = self.hold().await;
        send(&mut busy, &Held::statement("each etl")).await;
        self.each(1.0, 0.0).await;
        let packets = refused.change_user(&login("etl").password("wrong")).await.unwrap();
        assert!(packets.last().unwrap().err().is_some());
        let next = timeout(PATIENCE, refused.query(sleep(0.0, "web"))).await.unwrap();
        assert_eq!(next.is_ok(), refused.server_version().contains("MariaDB"));
        if let Ok(next) = next {
            next.accepted().unwrap();
        }
        held.release().await.unwrap();
        busy.read_response(Shape::Query).await.unwrap().accepted().unwrap();
    }
}

/// It waits for nobody.
async fn passes(conn: &mut RawConn, sql: &str) {
    let answer = timeout(PATIENCE, conn.query(sql)).await;
    answer.unwrap().unwrap().accepted().unwrap();
}

/// Becomes the user without a password, and sends a statement before it knows that it is.
async fn become_quick(conn: &mut RawConn, login: &impl Fn(&str) -> Login, sql: &str) {
    let change = conn.change_user_payload(&login("quick"));
    conn.send_command(&change).await.unwrap();
    let asked = conn.read_packet().await.unwrap();
    assert_eq!(asked.first(), Some(0xfe), "an authentication switch: {asked:?}");
    let query = [b"\x03", sql.as_bytes()].concat();
    let both = [framed(asked.seq.wrapping_add(1), b""), framed(0, &query)].concat();
    conn.send_bytes(&both).await.unwrap();
    assert_eq!(conn.read_packet().await.unwrap().first(), Some(0));
}

fn sleep(seconds: f64, user: &str) -> String {
    format!("SELECT SLEEP({seconds}), 'each {user}'")
}
