//! What is in quarantine gets through in no way, on any leg.

use integration::raw::{
    COM_RESET_CONNECTION, Cursor, Execute, Login, Param, RawConn, Response, Shape,
};
use integration::scenario::Refused;

use super::Lab;

/// Runs until it is killed.
const BARRED: &str = "SELECT SLEEP(5), n FROM test.one WHERE n = 1 AND 'x' <> 'y'";
/// The same but for values, comments, spaces and quotes.
const LIKE_IT: [&str; 4] = [
    "SELECT SLEEP(4.5), n FROM test.one WHERE n = 2 AND 'a' <> 'b'",
    "SELECT /* another */ SLEEP(5),\n\tn FROM test.one WHERE n = 1 AND 'x' <> 'y' -- end",
    "select SLEEP(5), `n` from `test`.`one` where `n` = 1 and \"\" <> 'y'",
    "SELECT SLEEP(5), n FROM test.one WHERE n = 1 AND 'x' <> 'y';",
];
const WITH_PARAMETERS: &str = "SELECT SLEEP(?), n FROM test.one WHERE n = ? AND ? <> 'y'";

#[track_caller]
fn assert_barred(response: &Response, how: &str) {
    let refused = Refused::of(response);
    let reason = refused.as_ref().and_then(|refused| refused.reason());
    assert_eq!(reason, Some("quarantined"), "{how}: {response:?}");
}

impl Lab {
    pub(super) async fn gauntlet(&self) {
        let login = |number| self.login(number, "barred");
        let addr = self.sluice.listen_addr();
        // Those who were there before.
        let mut before = Vec::new();
        for number in 0..5 {
            let mut conn = RawConn::open(addr, &login(number)).await.unwrap();
            let statement = conn.prepare(WITH_PARAMETERS).await.unwrap();
            let by_name = format!("PREPARE p FROM '{}'", BARRED.replace('\'', "''"));
            conn.query(by_name).await.unwrap().accepted().unwrap();
            before.push((conn, statement));
        }
        let mut first = RawConn::open(addr, &login(0)).await.unwrap();
        let killed = first.query(BARRED).await.unwrap();
        assert_eq!(killed.err().map(|(errno, _)| errno), Some(1317), "{killed:?}");
        for (mut conn, statement) in before {
            self.texts(&mut conn).await;
            let like_it = [Param::double(5.0), Param::int(1), Param::text("x")];
            assert_barred(&conn.execute(&statement, &like_it).await.unwrap(), "prepared before");
            let cursor = Cursor::ReadOnly;
            let execute =
                Execute { id: statement.id, cursor, params: &like_it, ..Execute::default() };
            assert_barred(&conn.execute_as(&execute).await.unwrap(), "with a cursor");
            let like_it = [Param::double(5.0), Param::int(1), Param::long_data()];
            conn.send_long_data(statement.id, 2, b"xx").await.unwrap();
            assert_barred(&conn.execute(&statement, &like_it).await.unwrap(), "long data");
            assert_barred(&conn.query("EXECUTE p").await.unwrap(), "by name");
            self.in_transaction(&mut conn).await;
            self.ahead_of_time(&mut conn).await;
            self.over_resets(&mut conn).await;
        }
    }

    async fn texts(&self, conn: &mut RawConn) {
        for text in LIKE_IT {
            assert_barred(&conn.query(text).await.unwrap(), text);
        }
        let commented = format!("/*!{BARRED} */");
        let answer = conn.query(&commented).await.unwrap();
        assert_barred(&answer, &commented);
    }

    /// What it has done stays, and it can go on.
    async fn in_transaction(&self, conn: &mut RawConn) {
        // On a busy machine a change may take as long as the limit.
        for text in ["BEGIN /* app=calm */", "UPDATE test.one SET n = 7 /* app=calm */"] {
            conn.query(text).await.unwrap().accepted().unwrap();
        }
        assert_barred(&conn.query(BARRED).await.unwrap(), "in a transaction");
        let own = conn.query("SELECT n FROM test.one /* app=calm */").await.unwrap();
        assert_eq!(own.first_text().as_deref(), Some("7"));
        conn.query("ROLLBACK /* app=calm */").await.unwrap().accepted().unwrap();
    }

    /// Sent while something else of the session runs.
    async fn ahead_of_time(&self, conn: &mut RawConn) {
        let texts = ["DO SLEEP(0.05)", BARRED, "SELECT 1"];
        for text in texts {
            let payload = conn.query_payload(text.as_bytes(), &[]);
            conn.send_command(&payload).await.unwrap();
        }
        let mut answers: Vec<Response> = Vec::new();
        for _ in texts {
            conn.await_answer_of_one();
            answers.push(conn.read_response(Shape::Query).await.unwrap());
        }
        let [first, barred, last] = answers.try_into().unwrap();
        assert_eq!((first.err(), last.err()), (None, None));
        assert_barred(&barred, "ahead of time");
    }

    /// Behind a reset, and as somebody else and back.
    async fn over_resets(&self, conn: &mut RawConn) {
        let reset = conn.command(&[COM_RESET_CONNECTION], Shape::Single).await.unwrap();
        reset.accepted().unwrap();
        assert_barred(&conn.query(BARRED).await.unwrap(), "behind a reset");
        let quick = |app: &str| Login::new("quick").password("").attribute("sluice_app", app);
        conn.change_user(&quick("calm")).await.unwrap();
        let short = conn.query(BARRED.replace('5', "0")).await.unwrap();
        assert_eq!(short.err(), None, "it is of that rule");
        conn.change_user(&quick("barred")).await.unwrap();
        assert_barred(&conn.query(BARRED).await.unwrap(), "as itself again");
    }
}
