//! Places that outlive an answer or a connection. The judge is the server: by the beginnings and
//! ends of its own statement timers there is never more than one statement of a budget of one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use integration::certificates::Certificates;
use integration::raw::{
    COM_PING, COM_RESET_CONNECTION, Cursor, Execute, Login, Prepared, RawConn, Shape, framed,
};
use integration::scenario::{Held, wait_for_sum, wait_until};
use integration::server::{Flavour, PerformanceSchema, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use tokio::task::JoinSet;

use super::{PS_IN_A_MS, RULES, TAIL_PS, send, session};

#[tokio::test]
async fn mysql_never_has_more_statements_than_a_budget_says() {
    never_more(Flavour::MySql).await;
}

#[tokio::test]
async fn mariadb_never_has_more_statements_than_a_budget_says() {
    never_more(Flavour::MariaDb).await;
}

async fn never_more(flavour: Flavour) {
    let mut options = ServerOptions::new(flavour);
    options.performance_schema = PerformanceSchema::On;
    // Read when the server starts, and of no use after that.
    let certificates = Certificates::new().unwrap();
    options.extra_args = certificates.server_args().unwrap();
    let server = Server::start(options).await.unwrap();
    server.run_sql(&[HISTORY, TABLE, ROWS, PROCEDURE, HELD_PROCEDURE]).await.unwrap();
    server.run_sql(&["CREATE USER quick@'%'", "GRANT ALL ON test.* TO quick@'%'"]).await.unwrap();
    let mut config = Config::in_front_of(server.addr(), Vec::new()).unwrap();
    config.rules = RULES.to_owned();
    config.top = BUDGETS.to_owned();
    config.cluster = "backend_compression: as_client".to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let lab = Lab { server, config, sluice };
    lab.at_once().await;

    lab.killed_session().await;
    lab.killed_in_its_upload().await;
    lab.client_that_dies_in_its_upload().await;
    lab.clients_that_time_out_and_come_again().await;
    lab.several_results().await;
    lab.cursors().await;
    lab.who_leaves_a_cursor_open().await;
    lab.who_opens_more_cursors_than_are_known().await;
    lab.users().await;
    lab.storm().await;
    lab.rows_a_second().await;
    // These say nothing of servers: one of both is enough.
    match flavour {
        Flavour::MySql => lab.statements_a_second().await,
        Flavour::MariaDb => lab.edits().await,
    }
}

pub(super) struct Lab {
    pub(super) server: Server,
    pub(super) config: Config,
    pub(super) sluice: SluiceProcess,
}

impl Lab {
    /// Who reads from the table of [`Held`] is at the server until that is given back.
    pub(super) async fn hold(&self) -> Held {
        Held::take(&self.server).await.unwrap()
    }

    async fn session(&self) -> RawConn {
        session(self.sluice.listen_addr(), "one").await
    }

    async fn in_use(&self, places: f64) {
        let one = [("budget", "one")];
        wait_for_sum(&self.sluice, "sluice_budget_in_use", &one, places).await.unwrap();
    }

    /// The server closes the connection of a session that is killed at once, and looks for the KILL
    /// when it comes to it.
    async fn killed_session(&self) {
        let mut killed = self.session().await;
        send(&mut killed, &busy(30)).await;
        let id = killed.connection_id();
        let runs = format!(
            "SELECT COUNT(*) FROM information_schema.processlist \
             WHERE id = {id} AND command = 'Query'"
        );
        let runs = || async { Ok(self.server.query::<i64>(&runs).await? == [1]) };
        wait_until("the statement runs", Duration::from_secs(5), runs).await.unwrap();
        self.in_use(1.0).await;
        let asked = self.asked_for_its_status().await;
        self.server.run_sql(&[&format!("KILL {id}")]).await.unwrap();
        assert!(killed.read_packet().await.is_err(), "its connection is closed");
        self.next().await;
        assert_eq!(self.at_once().await, (2, 1), "statements, and most of them at once");
        // A server adds its status up over all sessions.
        let asked = self.asked_for_its_status().await - asked;
        assert!((1..=5).contains(&asked), "asked for its uptime {asked} times, and not once");
        let over = [("result", "ended")];
        let name = "sluice_budget_left_behind_total";
        wait_for_sum(&self.sluice, name, &over, 1.0).await.unwrap();
    }

    /// A server that closes with bytes unread resets the connection, and the socket does not say any
    /// more where it was; and behind it the probe's sessions are the only ones, so that an account that
    /// is shown all looks like one that is shown its own: its place was taken for half a minute.
    async fn killed_in_its_upload(&self) {
        let mut uploads = self.session().await;
        let load = "LOAD DATA LOCAL INFILE 'place' INTO TABLE test.places (@a) SET n = SLEEP(0.1)";
        send(&mut uploads, load).await;
        assert_eq!(uploads.read_packet().await.unwrap().first(), Some(0xfb));
        // It is at the first packet for five seconds, and has not read the second.
        uploads.send_bytes(&framed(2, &b"1\n".repeat(50))).await.unwrap();
        uploads.send_bytes(&framed(3, &b"1\n".repeat(50_000))).await.unwrap();
        self.in_use(1.0).await;
        self.server.run_sql(&[&format!("KILL {}", uploads.connection_id())]).await.unwrap();
        let killed = Instant::now();
        self.in_use(0.0).await;
        assert!(killed.elapsed() < Duration::from_secs(15), "{:?}", killed.elapsed());
        let (_, most) = self.at_once().await;
        assert!(most <= 1, "{most} at once");
        let unknown = [("result", "unknown")];
        wait_for_sum(&self.sluice, "sluice_budget_left_behind_total", &unknown, 0.0).await.unwrap();
    }

    async fn asked_for_its_status(&self) -> u64 {
        let count = "SELECT CAST(SUM(COUNT_STAR) AS UNSIGNED) \
             FROM performance_schema.events_statements_summary_global_by_event_name \
             WHERE EVENT_NAME = 'statement/sql/show_status'";
        self.server.query::<u64>(count).await.unwrap().remove(0)
    }

    /// The server goes on with the rows that it has.
    async fn client_that_dies_in_its_upload(&self) {
        let mut uploads = self.session().await;
        let load = "LOAD DATA LOCAL INFILE 'place' INTO TABLE test.places (@a) SET n = SLEEP(0.1)";
        send(&mut uploads, load).await;
        assert_eq!(uploads.read_packet().await.unwrap().first(), Some(0xfb));
        uploads.send_bytes(&framed(2, &b"1\n".repeat(20))).await.unwrap();
        self.in_use(1.0).await;
        drop(uploads);
        self.next().await;
        assert_eq!(self.at_once().await, (2, 1));
    }

    /// Whoever does not wait for the answer and asks again, and again, has one at a time.
    async fn clients_that_time_out_and_come_again(&self) {
        let mut clients = JoinSet::new();
        for _ in 0..4 {
            let addr = self.sluice.listen_addr();
            clients.spawn(async move {
                for _ in 0..3 {
                    let mut conn = session(addr, "one").await;
                    send(&mut conn, &busy(3)).await;
                    let answer = conn.read_response(Shape::Query);
                    drop(tokio::time::timeout(Duration::from_millis(40), answer).await);
                }
            });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        self.next().await;
        let (statements, most) = self.at_once().await;
        assert!(statements >= 2 && most == 1, "{statements}, {most} at once");
    }

    /// The place is free behind the last result.
    async fn several_results(&self) {
        let mut caller = self.session().await;
        let held = self.hold().await;
        send(&mut caller, "CALL test.held_place()").await;
        self.in_use(1.0).await;
        let mut several = self.session().await;
        send(&mut several, "SELECT 'place', SLEEP(0.05); SELECT 'place', SLEEP(0.05)").await;
        held.release().await.unwrap();
        caller.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        several.read_response(Shape::Query).await.unwrap().accepted().unwrap();
        self.next().await;
        let (statements, most) = self.at_once().await;
        assert!(statements >= 4 && most == 1, "{statements}, {most} at once");
    }

    /// From the execution to the last row that is fetched.
    async fn cursors(&self) {
        let mut clients = JoinSet::new();
        for _ in 0..4 {
            let addr = self.sluice.listen_addr();
            clients.spawn(async move {
                let mut conn = session(addr, "one").await;
                let statement = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
                open(&mut conn, &statement).await;
                for _ in 0..3 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    conn.fetch(statement.id, 3).await.unwrap().accepted().unwrap();
                }
            });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
        self.in_use(0.0).await;
        let text = format!("SELECT THREAD_ID, TIMER_START, TIMER_END {EVENTS}");
        let events: Vec<(u64, u64, u64)> = self.server.query(&text).await.unwrap();
        assert_eq!(events.len(), 16, "four executions, twelve times rows: {events:?}");
        let mut spans: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (thread, start, end) in events {
            let span = spans.entry(thread).or_insert((start, end));
            *span = (span.0.min(start), span.1.max(end));
        }
        let mut spans: Vec<(u64, u64)> = spans.into_values().collect();
        spans.sort_unstable();
        for pair in spans.windows(2) {
            let [before, next] = pair else { continue };
            assert!(next.0 + TAIL_PS >= before.1, "one cursor after the other: {spans:?}");
        }
        self.at_once().await;
    }

    /// A cursor's place is free when it is closed in any way, and nobody waits for itself.
    async fn who_leaves_a_cursor_open(&self) {
        let mut conn = self.session().await;
        let statement = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        open(&mut conn, &statement).await;
        self.in_use(1.0).await;
        let began = Instant::now();
        conn.query("SELECT 'place'").await.unwrap().accepted().unwrap();
        assert!(began.elapsed() < Duration::from_secs(5), "it does not wait for its own cursor");
        self.in_use(0.0).await;
        conn.fetch(statement.id, 1).await.unwrap().accepted().unwrap();
        self.in_use(1.0).await;
        let other = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        open(&mut conn, &other).await;
        for _ in 0..3 {
            // Each took its place again beside the other's.
            for id in [statement.id, other.id] {
                conn.fetch(id, 1).await.unwrap().accepted().unwrap();
                let metrics = self.sluice.metrics().await.unwrap();
                let in_use = metrics.sum("sluice_budget_in_use", &[("budget", "one")]);
                assert!(in_use <= 1.0, "{in_use} places of one session");
            }
        }
        conn.close_statement(other.id).await.unwrap();
        conn.fetch(statement.id, 1).await.unwrap().accepted().unwrap();
        self.in_use(1.0).await;
        conn.reset_statement(statement.id).await.unwrap().accepted().unwrap();
        self.in_use(0.0).await;
        open(&mut conn, &statement).await;
        self.in_use(1.0).await;
        conn.close_statement(statement.id).await.unwrap();
        self.in_use(0.0).await;
        let again = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        open(&mut conn, &again).await;
        conn.command(&[COM_RESET_CONNECTION], Shape::Single).await.unwrap().accepted().unwrap();
        self.in_use(0.0).await;
        let again = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        open(&mut conn, &again).await;
        conn.change_user(&Login::new("web").attribute("sluice_app", "one")).await.unwrap();
        self.in_use(0.0).await;
        let again = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        open(&mut conn, &again).await;
        drop(conn);
        self.in_use(0.0).await;
    }

    /// Of the 1,025th on a session held no place.
    async fn who_opens_more_cursors_than_are_known(&self) {
        let mut conn = self.session().await;
        let known = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        open(&mut conn, &known).await;
        for _ in 1..CURSORS_KNOWN {
            let other = conn.prepare("SELECT 1 FROM test.places").await.unwrap();
            open(&mut conn, &other).await;
        }
        let first = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        let second = conn.prepare(ROWS_OF_CURSOR).await.unwrap();
        for further in [&first, &second] {
            open(&mut conn, further).await;
            self.in_use(1.0).await;
        }
        conn.query("SELECT 'place'").await.unwrap().accepted().unwrap();
        self.in_use(0.0).await;
        for statement in [&first, &second, &known, &first] {
            conn.fetch(statement.id, 1).await.unwrap().accepted().unwrap();
            self.in_use(1.0).await;
        }
        conn.reset_statement(first.id).await.unwrap().accepted().unwrap();
        self.in_use(0.0).await;
        conn.fetch(second.id, 1_000).await.unwrap().accepted().unwrap();
        self.in_use(0.0).await;
        drop(conn);
        self.at_once().await;
    }

    /// Another statement, which has its place when there is one. The server has it in its history by the
    /// time that it looks at the ping.
    async fn next(&self) {
        let mut conn = self.session().await;
        conn.query("SELECT 'place', SLEEP(0.03)").await.unwrap().accepted().unwrap();
        conn.command(&[COM_PING], Shape::Single).await.unwrap().accepted().unwrap();
        self.in_use(0.0).await;
    }

    /// How many statements there were since this was last called, and how many at once.
    pub(super) async fn at_once(&self) -> (usize, usize) {
        let (statements, most) = self.most_at_once().await;
        (statements, most.len())
    }

    /// The same, with the milliseconds for which each of those went on together.
    pub(super) async fn most_at_once(&self) -> (usize, Vec<u64>) {
        let text = format!("SELECT TIMER_START, TIMER_END {EVENTS}");
        let spans: Vec<(u64, u64)> = self.server.query(&text).await.unwrap();
        let empty = "TRUNCATE TABLE performance_schema.events_statements_history_long";
        self.server.run_sql(&[empty]).await.unwrap();
        let under_way = |at: u64| {
            let under_way = spans.iter().filter(|(start, end)| *start <= at && at + TAIL_PS < *end);
            under_way.map(|(_, end)| (end - at) / PS_IN_A_MS).collect::<Vec<_>>()
        };
        let most = spans.iter().map(|(start, _)| under_way(*start)).max_by_key(Vec::len);
        (spans.len(), most.unwrap_or_default())
    }
}

async fn open(conn: &mut RawConn, statement: &Prepared) {
    let execute = Execute { id: statement.id, cursor: Cursor::ReadOnly, ..Execute::default() };
    conn.execute_as(&execute).await.unwrap().accepted().unwrap();
}

/// Works for some thirty milliseconds a piece, without a look at whether anybody wants it to.
fn busy(pieces: usize) -> String {
    format!("SELECT 'place'{}", ", SHA2(REPEAT('x', 15000000), 512)".repeat(pieces))
}

/// Open cursors of one connection that Sluice can tell apart.
const CURSORS_KNOWN: u32 = 1_024;

const BUDGETS: &str = "\
budgets:
  - { name: one, match: { app: one }, max_concurrency: 1 }
  - { name: each, match: { app: each }, per: user, max_concurrency: 1 }
  - { name: rows, match: { app: rows }, rows_per_s: 2000 }
  - { name: both-rows, match: { app: both }, rows_per_s: 2000 }
  - { name: both, match: { app: both }, rate: 50 }
  - { name: paced, match: { app: paced }, rate: 50 }";
const HISTORY: &str = "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
                       WHERE NAME LIKE 'events_statements_%'";
const TABLE: &str = "CREATE TABLE test.places (n INT)";
const ROWS: &str = "INSERT INTO test.places VALUES (1), (2), (3), (4), (5), (6), (7), (8)";
const PROCEDURE: &str = "CREATE PROCEDURE test.place() \
                         BEGIN SELECT 'place', SLEEP(0.1); SELECT 'place', SLEEP(0.1); END";
/// It waits for the table that is held.
const HELD_PROCEDURE: &str = "CREATE PROCEDURE test.held_place() \
                              BEGIN SELECT n, 'place' FROM test.held; SELECT 'place', SLEEP(0.1); END";
const ROWS_OF_CURSOR: &str = "SELECT n, 'place' FROM test.places";
const EVENTS: &str = "FROM performance_schema.events_statements_history_long \
    WHERE (SQL_TEXT LIKE '%place%' \
    OR EVENT_NAME IN ('statement/com/Execute', 'statement/com/Fetch')) \
    AND EVENT_NAME <> 'statement/com/Prepare' AND NESTING_EVENT_LEVEL = 0 \
    AND COALESCE(SQL_TEXT, '') NOT LIKE '%performance_schema%' \
    AND COALESCE(SQL_TEXT, '') NOT LIKE 'SET autocommit = 1, %'";
