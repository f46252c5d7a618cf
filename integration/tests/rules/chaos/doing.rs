//! What a client does: one thing after the other, each over a connection that it may break.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::error::{HarnessError, Result};
use integration::raw::{
    COM_PING, COM_QUIT, COM_RESET_CONNECTION, Cursor, Execute, Login, Param, RawConn, Response,
    Shape, framed,
};
use integration::scenario::Chance;
use tokio::io::AsyncWriteExt as _;
use tokio::time::sleep;

/// Whether anybody else kills statements and sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Wait,
    Kill,
}

/// One client.
pub(super) struct Doing {
    pub(super) addr: SocketAddr,
    pub(super) logins: [Login; 3],
    pub(super) chance: Chance,
    pub(super) mariadb: bool,
    pub(super) others: Others,
    /// Rows of which the server has said so.
    pub(super) committed: u64,
}

/// What becomes of the connection.
enum Then {
    GoesOn,
    Gone,
}

/// Runs until it is killed.
const MONSTER: &str = "SELECT SLEEP(20), n FROM test.one";

impl Doing {
    pub(super) async fn until(&mut self, until: Instant) {
        while Instant::now() < until {
            let number = self.chance.index(self.logins.len());
            let is_late = number == 2;
            let login = self.logins.get(number).cloned().unwrap();
            let mut conn = match RawConn::open(self.addr, &login).await {
                Ok(conn) => conn,
                Err(error) => {
                    // Somebody has killed it in its login.
                    assert_eq!(self.others, Others::Kill, "{error:?}");
                    continue;
                }
            };
            for _ in 0..6 {
                let what = self.chance.below(18);
                let done = self.one(&mut conn, what, is_late).await;
                let and = match done {
                    Ok(and) => and,
                    Err(error) => {
                        let hangs = matches!(error, HarnessError::TimedOut { .. });
                        assert!(self.others == Others::Kill && !hangs, "{what}: {error:?}");
                        Then::Gone
                    }
                };
                if matches!(and, Then::Gone) || Instant::now() > until {
                    break;
                }
            }
        }
    }

    async fn one(&mut self, conn: &mut RawConn, what: u64, is_late: bool) -> Result<Then> {
        // What comes last is not killed: it sleeps for less.
        let monster = self.monster(is_late);
        match what {
            0 => self.ran_away(&conn.query(&monster).await?, is_late),
            1 => self.ahead_in_transaction(conn, &monster, is_late).await?,
            2 => self.ahead(conn, &monster, &[COM_RESET_CONNECTION], is_late).await?,
            3 => self.ahead(conn, &monster, &[COM_PING], is_late).await?,
            4 => return self.ahead_of_quit(conn, &monster, is_late).await,
            5 => self.change_user_ahead(conn, &monster, is_late).await?,
            6 => self.long_data(conn, is_late).await?,
            7 => self.cursor(conn, is_late).await?,
            8 => self.upload(conn, is_late).await?,
            9 if !is_late => self.several(conn).await?,
            10 => {
                // Columns are not looked at for it.
                let explain = if self.mariadb { "ANALYZE" } else { "EXPLAIN ANALYZE" };
                let seconds = if is_late { "0.1" } else { "20" };
                let text = format!("{explain} SELECT n FROM test.one WHERE SLEEP({seconds}) = n");
                let began = Instant::now();
                let ran = conn.query(text).await?;
                // MySQL's is killed without an error: it tells how far it has got.
                if self.mariadb || ran.err().is_some() {
                    self.ran_away(&ran, is_late);
                }
                assert!(began.elapsed() < Duration::from_secs(15), "{ran:?}");
            }
            11 => return self.vanish(conn, &monster).await,
            12 => return self.half_closed(conn, &monster).await,
            13 => {
                let many = "SELECT a.n, a.t FROM test.many a, test.many b WHERE b.n < 5";
                self.answered(&conn.query(many).await?);
            }
            14 => self.by_name(conn, &monster, is_late).await?,
            15 | 16 => self.bulk(conn, is_late).await?,
            _ => self.calm(conn).await?,
        }
        Ok(Then::GoesOn)
    }

    fn monster(&mut self, is_late: bool) -> String {
        let column = self.chance.below(4);
        if is_late {
            return format!("SELECT SLEEP(0.{column}5), n FROM test.one");
        }
        format!("{MONSTER} AS m{column}")
    }

    /// Killed, or its like was; or its budgets had no room for it.
    pub(super) fn ran_away(&self, response: &Response, is_late: bool) {
        let is_expected = match response.err() {
            Some((1317 | 1226, _)) => !is_late,
            Some((1205, _)) => true,
            Some(_) => false,
            None => is_late,
        };
        assert!(is_expected || self.others == Others::Kill, "{response:?}");
    }

    /// It may be killed, or not.
    fn answered(&self, response: &Response) {
        let errno = response.err().map(|(errno, _)| errno);
        let known = matches!(errno, None | Some(1317 | 1226 | 1205));
        assert!(known || self.others == Others::Kill, "{response:?}");
    }

    /// It failed as it should, or somebody else has killed it.
    pub(super) fn answered_or(&self, response: &Response, is_expected: bool) {
        assert!(is_expected || self.others == Others::Kill, "{response:?}");
    }

    /// Nothing may have met it.
    pub(super) fn unharmed(&self, response: &Response) -> bool {
        let err = response.err();
        assert!(err.is_none() || self.others == Others::Kill, "a KILL has met it: {response:?}");
        err.is_none()
    }

    pub(super) async fn calm(&mut self, conn: &mut RawConn) -> Result<()> {
        let insert = "INSERT /* app=calm */ INTO test.committed (who) VALUES (0)";
        let done = conn.query(insert).await?;
        self.committed += u64::from(self.unharmed(&done));
        Ok(())
    }

    /// BEGIN, what runs away, a row, COMMIT, all sent at once.
    async fn ahead_in_transaction(
        &mut self,
        conn: &mut RawConn,
        monster: &str,
        is_late: bool,
    ) -> Result<()> {
        let texts = [
            "BEGIN /* app=calm */",
            monster,
            "INSERT /* app=calm */ INTO test.committed (who) VALUES (1)",
            "COMMIT /* app=calm */",
        ];
        for text in texts {
            let payload = conn.query_payload(text.as_bytes(), &[]);
            conn.send_command(&payload).await?;
        }
        let mut done = Vec::new();
        for _ in texts {
            conn.await_answer_of_one();
            done.push(conn.read_response(Shape::Query).await?);
        }
        if let [begun, ran, row, committed] = done.as_slice() {
            self.unharmed(begun);
            self.ran_away(ran, is_late);
            self.committed += u64::from(self.unharmed(row) && self.unharmed(committed));
        }
        Ok(())
    }

    async fn ahead(
        &mut self,
        conn: &mut RawConn,
        monster: &str,
        command: &[u8],
        is_late: bool,
    ) -> Result<()> {
        let payload = conn.query_payload(monster.as_bytes(), &[]);
        conn.send_command(&payload).await?;
        conn.send_command(command).await?;
        conn.await_answer_of_one();
        let ran = conn.read_response(Shape::Query).await?;
        self.ran_away(&ran, is_late);
        conn.await_answer_of_one();
        let next = conn.read_response(Shape::Single).await?;
        self.unharmed(&next);
        self.calm(conn).await
    }

    async fn ahead_of_quit(
        &mut self,
        conn: &mut RawConn,
        monster: &str,
        is_late: bool,
    ) -> Result<Then> {
        let payload = conn.query_payload(monster.as_bytes(), &[]);
        conn.send_command(&payload).await?;
        conn.send_command(&[COM_QUIT]).await?;
        conn.await_answer_of_one();
        let ran = conn.read_response(Shape::Query).await?;
        self.ran_away(&ran, is_late);
        let rest = conn.read_to_end().await?;
        // TLS has a last word.
        assert!(rest.is_empty() || self.others == Others::Kill, "behind COM_QUIT: {rest:x?}");
        Ok(Then::Gone)
    }

    /// COM_CHANGE_USER comes while the statement runs.
    async fn change_user_ahead(
        &mut self,
        conn: &mut RawConn,
        monster: &str,
        is_late: bool,
    ) -> Result<()> {
        let payload = conn.query_payload(monster.as_bytes(), &[]);
        conn.send_command(&payload).await?;
        let number = if is_late { 2 } else { self.chance.index(2) };
        let login = self.logins.get(number).cloned().unwrap();
        let change = conn.change_user_payload(&login);
        conn.send_command(&change).await?;
        conn.await_answer_of_one();
        let ran = conn.read_response(Shape::Query).await?;
        self.ran_away(&ran, is_late);
        conn.await_answer_of_one();
        let mut said = conn.read_packet().await?;
        // What proves an account without a password is empty.
        while said.first() == Some(0xfe) {
            conn.send_bytes(&framed(said.seq.wrapping_add(1), b"")).await?;
            said = conn.read_packet().await?;
        }
        assert!(said.first() == Some(0) || self.others == Others::Kill, "{said:?}");
        self.calm(conn).await
    }

    /// A parameter comes in pieces, ahead of the execution.
    async fn long_data(&mut self, conn: &mut RawConn, is_late: bool) -> Result<()> {
        let seconds = if is_late { 0.15 } else { 20.0 };
        let text = "SELECT SLEEP(?), LENGTH(?), n FROM test.one";
        let statement = conn.prepare(text).await?;
        for _ in 0..=self.chance.below(3) {
            conn.send_long_data(statement.id, 1, &[b'x'; 20_000]).await?;
        }
        let params = [Param::double(seconds), Param::long_data()];
        let ran = conn.execute(&statement, &params).await?;
        self.ran_away(&ran, is_late);
        if self.chance.below(2) == 0 {
            self.unharmed(&conn.reset_statement(statement.id).await?);
        }
        conn.close_statement(statement.id).await?;
        self.calm(conn).await
    }

    /// A cursor that is read in part, to its end, or not; or one that runs away when it is opened.
    async fn cursor(&mut self, conn: &mut RawConn, is_late: bool) -> Result<()> {
        let text = match (self.chance.below(3), is_late) {
            (0, false) => MONSTER,
            (0 | 1, _) => "SELECT n FROM test.many WHERE n < 60",
            _ => "SELECT n, t FROM test.many",
        };
        let statement = conn.prepare(text).await?;
        let cursor = Cursor::ReadOnly;
        let execute = Execute { id: statement.id, cursor, ..Execute::default() };
        let opened = conn.execute_as(&execute).await?;
        self.answered(&opened);
        if opened.err().is_none() {
            for _ in 0..self.chance.below(4) {
                let rows = conn.fetch(statement.id, 30).await?;
                // Behind its end there is no cursor.
                if rows.err().is_some() {
                    break;
                }
            }
        }
        match self.chance.below(3) {
            0 => conn.close_statement(statement.id).await?,
            1 => drop(conn.reset_statement(statement.id).await?),
            _ => {}
        }
        self.calm(conn).await
    }

    /// The client sends the file in the midst of the statement, which is slow about each row.
    async fn upload(&mut self, conn: &mut RawConn, is_late: bool) -> Result<()> {
        let file = match (is_late, self.chance.below(4)) {
            (true, _) => b"1\n".repeat(3),
            // More than lies between client and server.
            (false, 0) => [b"1".repeat(1_000), b"\n".to_vec()].concat().repeat(10_000),
            (false, _) => b"1\n".repeat(2_000),
        };
        conn.queue_infile(file);
        let load = "LOAD DATA LOCAL INFILE 'f' INTO TABLE test.loaded (@a) SET n = SLEEP(0.05)";
        let ran = conn.query(load).await?;
        self.ran_away(&ran, is_late);
        self.calm(conn).await
    }

    /// It runs away in the midst of several.
    async fn several(&mut self, conn: &mut RawConn) -> Result<()> {
        let text = match self.chance.below(2) {
            0 => "CALL test.several()".to_owned(),
            _ => format!("SELECT 1; {MONSTER}; INSERT INTO test.committed (who) VALUES (9)"),
        };
        let ran = conn.query(text).await?;
        self.ran_away(&ran, false);
        self.calm(conn).await
    }

    async fn by_name(&mut self, conn: &mut RawConn, monster: &str, is_late: bool) -> Result<()> {
        let prepared = conn.query(format!("PREPARE p FROM '{monster}'")).await?;
        if prepared.err().is_none() {
            self.ran_away(&conn.query("EXECUTE p").await?, is_late);
        }
        self.calm(conn).await
    }

    /// Gone without a word: while it waits, runs, or is being killed.
    async fn vanish(&mut self, conn: &mut RawConn, monster: &str) -> Result<Then> {
        let payload = conn.query_payload(monster.as_bytes(), &[]);
        conn.send_command(&payload).await?;
        sleep(Duration::from_millis(self.chance.below(200))).await;
        Ok(Then::Gone)
    }

    /// It says no more, and listens.
    async fn half_closed(&mut self, conn: &mut RawConn, monster: &str) -> Result<Then> {
        let payload = conn.query_payload(monster.as_bytes(), &[]);
        conn.send_command(&payload).await?;
        sleep(Duration::from_millis(self.chance.below(100))).await;
        conn.stream().shutdown().await.ok();
        conn.read_to_end().await?;
        Ok(Then::Gone)
    }
}
