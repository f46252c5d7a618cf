//! Where a transaction may be delayed, and where it may not: before its first write, and never after.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::time::Duration;

use integration::raw::{RawConn, response::SERVER_STATUS_IN_TRANS};
use integration::scenario::{
    Answered, Pending, Shared, Switch, connect, numbers, wait_for_depth, wait_for_signal,
};
use integration::server::{Flavour, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn a_transaction_admitted_before_the_gate_closed_finishes_untouched() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_admitted").await;
        let mut etl = gated.etl().await;
        at_once(&mut etl, "BEGIN").await;
        at_once(&mut etl, "INSERT INTO t_admitted VALUES (1)").await;
        gated.shut().await;
        for sql in [
            "INSERT INTO t_admitted VALUES (2), (3)",
            "SELECT * FROM t_admitted WHERE n = 1 FOR UPDATE",
            "UPDATE t_admitted SET n = 20 WHERE n = 2",
            "DELETE FROM t_admitted WHERE n = 3",
            "COMMIT",
        ] {
            at_once(&mut etl, sql).await;
        }
        assert_eq!(gated.rows().await, [1, 20]);
        let waiting = gated.waits(etl, "INSERT INTO t_admitted VALUES (4)").await;
        assert_eq!(gated.rows().await, [1, 20]);
        gated.open().await;
        done(waiting).await;
        assert_eq!(gated.rows().await, [1, 4, 20]);
    }
}

#[tokio::test]
async fn a_transaction_that_only_said_begin_waits_at_its_first_write() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_begun").await;
        for (n, begin) in (1..).zip(BEGINS) {
            let mut etl = gated.etl().await;
            at_once(&mut etl, begin).await;
            gated.shut().await;
            let waiting = gated.waits(etl, format!("INSERT INTO t_begun VALUES ({n})")).await;
            gated.open().await;
            let mut etl = done(waiting).await;
            // It is the transaction that was begun: nothing of it is seen before its COMMIT.
            assert!(!gated.rows().await.contains(&n), "{begin}");
            at_once(&mut etl, "COMMIT").await;
            assert!(gated.rows().await.contains(&n), "{begin}");
        }
    }
}

#[tokio::test]
async fn a_transaction_that_only_read_waits_at_its_first_write_or_locking_read() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_read").await;
        let first = ["INSERT INTO t_read VALUES (7)", "SELECT n FROM t_read FOR UPDATE"];
        for sql in first {
            let mut etl = gated.etl().await;
            at_once(&mut etl, "BEGIN").await;
            at_once(&mut etl, "SELECT COUNT(*) FROM t_read").await;
            gated.shut().await;
            at_once(&mut etl, "SELECT COUNT(*) FROM t_read").await;
            let waiting = gated.waits(etl, sql).await;
            gated.open().await;
            let mut etl = done(waiting).await;
            at_once(&mut etl, "COMMIT").await;
        }
        assert_eq!(gated.rows().await, [7]);
    }
}

#[tokio::test]
async fn what_ends_or_only_steers_a_transaction_never_waits() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_commit").await;
        let mut etl = gated.etl().await;
        gated.shut().await;
        for sql in [
            "BEGIN",
            "SELECT COUNT(*) FROM t_commit",
            "SAVEPOINT a",
            "ROLLBACK TO SAVEPOINT a",
            "RELEASE SAVEPOINT a",
            "COMMIT",
            "START TRANSACTION",
            "ROLLBACK",
            "COMMIT AND CHAIN",
            "ROLLBACK",
            "SET @x = 1",
            "SET SESSION sql_mode = ''",
            "SHOW TABLES",
            "USE test",
            "SELECT GET_LOCK('t_commit', 0)",
            "DO RELEASE_LOCK('t_commit')",
            "LOCK TABLES t_commit READ",
            "UNLOCK TABLES",
        ] {
            at_once(&mut etl, sql).await;
        }
        let waiting = gated.waits(etl, "INSERT INTO t_commit VALUES (1)").await;
        gated.open().await;
        done(waiting).await;
    }
}

#[tokio::test]
async fn with_autocommit_off_the_first_write_waits_and_the_rest_of_its_transaction_does_not() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_auto").await;
        let mut etl = gated.etl().await;
        at_once(&mut etl, "SET autocommit = 0").await;
        at_once(&mut etl, "INSERT INTO t_auto VALUES (1)").await;
        gated.shut().await;
        at_once(&mut etl, "INSERT INTO t_auto VALUES (2)").await;
        at_once(&mut etl, "COMMIT").await;
        assert_eq!(gated.rows().await, [1, 2]);
        at_once(&mut etl, "SELECT COUNT(*) FROM t_auto").await;
        let waiting = gated.waits(etl, "INSERT INTO t_auto VALUES (3)").await;
        gated.open().await;
        let mut etl = done(waiting).await;
        gated.shut().await;
        at_once(&mut etl, "INSERT INTO t_auto VALUES (4)").await;
        at_once(&mut etl, "ROLLBACK").await;
        assert_eq!(gated.rows().await, [1, 2]);
    }
}

#[tokio::test]
async fn begin_inside_a_transaction_is_a_new_transaction_and_asks_again() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_nested").await;
        let mut etl = gated.etl().await;
        at_once(&mut etl, "BEGIN").await;
        at_once(&mut etl, "INSERT INTO t_nested VALUES (1)").await;
        gated.shut().await;
        at_once(&mut etl, "BEGIN").await;
        assert_eq!(gated.rows().await, [1], "BEGIN commits what was open");
        let waiting = gated.waits(etl, "INSERT INTO t_nested VALUES (2)").await;
        gated.open().await;
        let mut etl = done(waiting).await;
        at_once(&mut etl, "COMMIT").await;
        assert_eq!(gated.rows().await, [1, 2]);
    }
}

#[tokio::test]
async fn commit_and_chain_is_a_new_transaction_and_asks_again() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_chain").await;
        for (n, end) in [(1, "COMMIT AND CHAIN"), (10, "ROLLBACK AND CHAIN")] {
            let mut etl = gated.etl().await;
            at_once(&mut etl, "BEGIN").await;
            at_once(&mut etl, format!("INSERT INTO t_chain VALUES ({n})")).await;
            gated.shut().await;
            at_once(&mut etl, end).await;
            let insert = format!("INSERT INTO t_chain VALUES ({})", n + 1);
            let waiting = gated.waits(etl, insert).await;
            gated.open().await;
            let mut etl = done(waiting).await;
            at_once(&mut etl, "COMMIT").await;
        }
        assert_eq!(gated.rows().await, [1, 2, 11]);
    }
}

#[tokio::test]
async fn ddl_inside_a_transaction_ends_it_and_the_next_write_asks() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_ddl").await;
        let mut etl = gated.etl().await;
        at_once(&mut etl, "BEGIN").await;
        at_once(&mut etl, "INSERT INTO t_ddl VALUES (1)").await;
        gated.shut().await;
        // The rule names no DDL, so it passes; it commits what was open.
        at_once(&mut etl, "CREATE TABLE t_ddl_made (n INT)").await;
        let waiting = gated.waits(etl, "INSERT INTO t_ddl VALUES (2)").await;
        assert_eq!(gated.rows().await, [1]);
        gated.open().await;
        done(waiting).await;
    }
}

#[tokio::test]
async fn a_transaction_that_a_deadlock_rolled_back_asks_again() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_dead").await;
        gated.server.run_sql(&["INSERT INTO t_dead VALUES (1), (2)"]).await.unwrap();
        let mut etl = gated.etl().await;
        let mut other = connect(&gated.sluice, "web").await.unwrap();
        at_once(&mut etl, "BEGIN").await;
        at_once(&mut other, "BEGIN").await;
        at_once(&mut etl, "UPDATE t_dead SET n = n WHERE n = 1").await;
        // The other one has changed more rows, so it is this one that the server rolls back.
        at_once(&mut other, "INSERT INTO t_dead VALUES (100), (101), (102), (103)").await;
        at_once(&mut other, "UPDATE t_dead SET n = n WHERE n = 2").await;
        gated.shut().await;
        let other = Pending::query(other, "UPDATE t_dead SET n = n WHERE n = 1");
        tokio::time::sleep(Duration::from_millis(300)).await;
        let victim = Pending::query(etl, "UPDATE t_dead SET n = n WHERE n = 2");
        let Answered { conn: etl, response, .. } = victim.answered(SOON).await.unwrap();
        assert_eq!(response.err().map(|(errno, _)| errno), Some(1213), "{response:?}");
        done(other).await;
        let waiting = gated.waits(etl, "INSERT INTO t_dead VALUES (3)").await;
        gated.open().await;
        done(waiting).await;
    }
}

#[tokio::test]
async fn an_xa_transaction_asks_at_its_first_write_only() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_xa").await;
        let mut etl = gated.etl().await;
        at_once(&mut etl, "XA START 'a'").await;
        at_once(&mut etl, "INSERT INTO t_xa VALUES (1)").await;
        gated.shut().await;
        for sql in ["INSERT INTO t_xa VALUES (2)", "XA END 'a'", "XA PREPARE 'a'", "XA COMMIT 'a'"]
        {
            at_once(&mut etl, sql).await;
        }
        assert_eq!(gated.rows().await, [1, 2]);
        at_once(&mut etl, "XA START 'b'").await;
        let waiting = gated.waits(etl, "INSERT INTO t_xa VALUES (3)").await;
        gated.open().await;
        let mut etl = done(waiting).await;
        at_once(&mut etl, "XA END 'b'").await;
        at_once(&mut etl, "XA ROLLBACK 'b'").await;
        assert_eq!(gated.rows().await, [1, 2]);
    }
}

#[tokio::test]
async fn whoever_holds_locks_that_others_wait_for_passes_until_they_are_released() {
    let pairs = [
        ("LOCK TABLES t_locks WRITE", "UNLOCK TABLES"),
        ("SELECT GET_LOCK('t_locks', 1)", "SELECT RELEASE_LOCK('t_locks')"),
        ("SELECT GET_LOCK('t_locks', 1)", "SELECT RELEASE_ALL_LOCKS()"),
    ];
    for servers in both().await {
        let gated = Gated::start(servers, "t_locks").await;
        for (n, (take, release)) in (1..).zip(pairs) {
            let mut etl = gated.etl().await;
            gated.shut().await;
            at_once(&mut etl, take).await;
            at_once(&mut etl, "SELECT RELEASE_LOCK('t_nosuch')").await;
            let outside = etl.query("XA START 'x' x").await.unwrap();
            assert_eq!(outside.err().map(|(code, _)| code), Some(1064));
            at_once(&mut etl, format!("INSERT INTO t_locks VALUES ({n})")).await;
            at_once(&mut etl, release).await;
            let insert = format!("INSERT INTO t_locks VALUES (10 + {n})");
            let waiting = gated.waits(etl, insert).await;
            gated.open().await;
            done(waiting).await;
        }
        assert_eq!(gated.rows().await, [1, 2, 3, 11, 12, 13]);
    }
}

#[tokio::test]
async fn a_text_of_several_statements_waits_as_a_whole() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_multi").await;
        for sql in [
            "SELECT 1; INSERT INTO t_multi VALUES (1)",
            "SET @a = 1; DELETE FROM t_multi WHERE n = 9",
            "BEGIN; INSERT INTO t_multi VALUES (2); COMMIT",
        ] {
            let etl = gated.etl().await;
            gated.shut().await;
            let waiting = gated.waits(etl, sql).await;
            gated.open().await;
            done(waiting).await;
        }
        assert_eq!(gated.rows().await, [1, 2]);
    }
}

#[tokio::test]
async fn a_transaction_that_began_and_wrote_in_one_text_finishes_untouched() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_whole").await;
        for (n, begin) in (1..).zip(["BEGIN", "SET autocommit = 0", "COMMIT; START TRANSACTION"]) {
            let mut etl = gated.etl().await;
            at_once(&mut etl, format!("{begin}; INSERT INTO t_whole VALUES ({n})")).await;
            gated.shut().await;
            at_once(&mut etl, format!("INSERT INTO t_whole VALUES (10 + {n})")).await;
            at_once(&mut etl, format!("UPDATE t_whole SET n = n + 100 WHERE n = {n}")).await;
            at_once(&mut etl, "COMMIT").await;
            gated.open().await;
        }
        assert_eq!(gated.rows().await, [11, 12, 13, 101, 102, 103]);
    }
}

#[tokio::test]
async fn what_leaves_a_transaction_open_leaves_it_admitted() {
    const ER_DUP_ENTRY: u16 = 1062;
    const ER_WRONG_VALUE_FOR_VAR: u16 = 1231;
    const ER_XAER_OUTSIDE: u16 = 1400;
    const ER_XAER_RMERR: u16 = 1401;
    // Who may ask for what XA has prepared is another matter.
    let leaves: [(&str, &[u16]); 10] = [
        ("SET autocommit = 0", &[]),
        ("SET autocommit = 1", &[]),
        ("SET @@session.autocommit = @@autocommit, LOCAL sql_mode = DEFAULT", &[]),
        ("SET autocommit = 2", &[ER_WRONG_VALUE_FOR_VAR]),
        ("SET ROLE NONE", &[]),
        ("XA RECOVER", &[ER_XAER_RMERR]),
        ("XA START 'x'", &[ER_XAER_OUTSIDE]),
        ("INSERT INTO t_left VALUES (0); COMMIT", &[ER_DUP_ENTRY]),
        ("BEGIN; INSERT INTO t_left VALUES (7); INSERT INTO t_left VALUES (0)", &[ER_DUP_ENTRY]),
        ("BEGIN; INSERT INTO t_left VALUES (7); CALL p_left()", &[]),
    ];
    for servers in both().await {
        let gated = Gated::start(servers, "t_left").await;
        let primary = &servers.primary;
        let procedure = "CREATE PROCEDURE p_left() DO 1";
        primary.run_sql(&["INSERT INTO t_left VALUES (0)", procedure]).await.unwrap();
        // What fails keeps the rows locked that it has come to.
        for begin in ["BEGIN", "SET autocommit = 0"] {
            let mut etl = gated.etl().await;
            at_once(&mut etl, begin).await;
            let answer = etl.query("INSERT INTO t_left VALUES (0)").await.unwrap();
            assert_eq!(answer.err().map(|(code, _)| code), Some(ER_DUP_ENTRY), "{answer:?}");
            gated.shut().await;
            at_once(&mut etl, "INSERT INTO t_left VALUES (2)").await;
            at_once(&mut etl, "DELETE FROM t_left WHERE n > 0").await;
            at_once(&mut etl, "COMMIT").await;
            let waiting = gated.waits(etl, "DELETE FROM t_left WHERE n > 0").await;
            gated.open().await;
            done(waiting).await;
        }
        for (text, errors) in leaves {
            let mut etl = gated.etl().await;
            at_once(&mut etl, "BEGIN").await;
            at_once(&mut etl, "INSERT INTO t_left VALUES (1)").await;
            let answer = tokio::time::timeout(SOON, etl.query(text)).await.unwrap().unwrap();
            assert!(
                answer.err().is_none_or(|(code, _)| errors.contains(&code)),
                "{text}: {answer:?}"
            );
            gated.shut().await;
            at_once(&mut etl, "INSERT INTO t_left VALUES (2)").await;
            at_once(&mut etl, "DELETE FROM t_left WHERE n > 0").await;
            at_once(&mut etl, "COMMIT").await;
            gated.open().await;
        }
    }
}

#[tokio::test]
async fn a_text_that_ends_the_admitted_transaction_before_it_writes_is_not_covered_by_it() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_smuggle").await;
        let mut etl = gated.etl().await;
        at_once(&mut etl, "BEGIN").await;
        at_once(&mut etl, "INSERT INTO t_smuggle VALUES (1)").await;
        gated.shut().await;
        at_once(&mut etl, "INSERT INTO t_smuggle VALUES (2); SELECT 1").await;
        let waiting = gated.waits(etl, "COMMIT; INSERT INTO t_smuggle VALUES (3)").await;
        assert!(gated.rows().await.is_empty(), "nothing of the text has run");
        gated.open().await;
        done(waiting).await;
        assert_eq!(gated.rows().await, [1, 2, 3]);
    }
}

#[tokio::test]
async fn a_pipelined_write_behind_begin_waits_and_keeps_its_place() {
    for servers in both().await {
        let gated = Gated::start(servers, "t_pipe").await;
        let mut etl = gated.etl().await;
        gated.shut().await;
        for sql in ["BEGIN", "INSERT INTO t_pipe VALUES (1)", "COMMIT", "SELECT 'last'"] {
            let payload = etl.query_payload(sql.as_bytes(), &[]);
            etl.send_command(&payload).await.unwrap();
        }
        let shape = integration::raw::Shape::Query;
        let begun = etl.read_response(shape).await.unwrap();
        assert_eq!(begun.status().unwrap() & SERVER_STATUS_IN_TRANS, SERVER_STATUS_IN_TRANS);
        wait_for_depth(&gated.sluice, "etl", 1).await.unwrap();
        gated.open().await;
        assert_eq!(etl.read_response(shape).await.unwrap().affected_rows(), Some(1));
        assert_eq!(etl.read_response(shape).await.unwrap().affected_rows(), Some(0));
        let last = etl.read_response(shape).await.unwrap();
        assert_eq!(last.first_text().as_deref(), Some("last"));
        assert_eq!(gated.rows().await, [1]);
    }
}

/// Sluice with one rule: `etl` waits while the switch is shut. And one table of whole numbers.
struct Gated<'a> {
    server: &'a Server,
    sluice: SluiceProcess,
    switch: Switch<'a>,
    table: &'static str,
}

impl<'a> Gated<'a> {
    async fn start(servers: &'a Topology, table: &'static str) -> Self {
        let server = &servers.primary;
        let create = format!("CREATE TABLE {table} (n INT PRIMARY KEY)");
        server.run_sql(&[&create]).await.unwrap();
        let switch = Switch::new(server, table).await.unwrap();
        let rules = format!(
            "- {{ name: etl, match: {{ app: etl }}, gate: [{table}], max_delay: 60s, permanent: true }}\n\
             - {{ name: everything, gate: none, permanent: true }}"
        );
        let config = Config::new(servers).unwrap().signals(&switch.signal()).rules(&rules);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        wait_for_signal(&sluice, table, 1.0).await.unwrap();
        Self { server, sluice, switch, table }
    }

    async fn etl(&self) -> RawConn {
        connect(&self.sluice, "etl").await.unwrap()
    }

    async fn shut(&self) {
        self.switch.shut(&self.sluice).await.unwrap();
    }

    async fn open(&self) {
        self.switch.open(&self.sluice).await.unwrap();
    }

    /// Sends a statement, and returns when it is in the queue.
    async fn waits(&self, conn: RawConn, sql: impl AsRef<[u8]>) -> Pending {
        let waiting = Pending::query(conn, sql.as_ref());
        if let Err(error) = wait_for_depth(&self.sluice, "etl", 1).await {
            let answer = waiting.answered(Duration::from_secs(1)).await;
            panic!("{error}; {}: {answer:?}", String::from_utf8_lossy(sql.as_ref()));
        }
        assert!(!waiting.is_answered());
        waiting
    }

    /// What everybody else sees in the table.
    async fn rows(&self) -> Vec<i64> {
        let sql = format!("SELECT n FROM {} ORDER BY n", self.table);
        numbers(self.server, &sql).await.unwrap()
    }
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

/// Runs a statement that must not wait: it would not be answered while the gate is shut.
async fn at_once(conn: &mut RawConn, sql: impl AsRef<[u8]>) {
    let text = String::from_utf8_lossy(sql.as_ref()).into_owned();
    let answer = tokio::time::timeout(SOON, conn.query(sql)).await;
    let response = answer.unwrap_or_else(|_| panic!("{text}: waits")).unwrap();
    assert_eq!(response.err(), None, "{text}");
}

/// Waits for the answer of a statement that has been let through.
async fn done(waiting: Pending) -> RawConn {
    let answered = waiting.answered(SOON).await.unwrap();
    assert_eq!(answered.response.err(), None);
    answered.conn
}

const BEGINS: [&str; 4] = [
    "BEGIN",
    "START TRANSACTION READ WRITE",
    "/* app=etl */ start transaction with consistent snapshot",
    "SET autocommit = 0",
];

/// Far below `max_delay`, far above what a statement takes on a busy machine.
const SOON: Duration = Duration::from_secs(10);
