//! What the probe reads of the primary for its sessions: functions that write nothing pass where writes are
//! denied, and sessions begin in the server's own mode.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::{Duration, Instant};

use integration::raw::{RawConn, Response};
use integration::scenario::{Refused, connect, numbers};
use integration::server::PerformanceSchema;
use integration::server::{Flavour, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

const DENIED: &str = "- { name: no_writes, match: { user: etl }, deny: true, statements: [write], permanent: true }\n\
                      - { name: rest, gate: none, permanent: true }";

const READS: &str = "CREATE FUNCTION f_reads() RETURNS INT READS SQL DATA \
     RETURN (SELECT COUNT(*) FROM f_log WHERE 'a' <> 'it''s')";
const TURNS: &str = "CREATE FUNCTION f_turns() RETURNS INT READS SQL DATA RETURN 1";
const TURNED: &str = "CREATE FUNCTION f_turns() RETURNS INT MODIFIES SQL DATA \
     BEGIN INSERT INTO f_log VALUES (2); RETURN 2; END";
const WRITES: &str = "CREATE FUNCTION f_writes() RETURNS INT MODIFIES SQL DATA \
     BEGIN INSERT INTO f_log VALUES (1); RETURN 1; END";

/// What is documented, and what a busy machine adds.
const WINDOW: Duration = Duration::from_secs(6);

#[tokio::test]
async fn functions_of_mysql_that_write_nothing_pass_where_writes_are_denied() {
    let grants = ["GRANT SHOW_ROUTINE ON *.* TO 'sluice'@'%'"];
    functions(Flavour::MySql, &grants).await;
}

#[tokio::test]
async fn functions_of_mariadb_that_write_nothing_pass_where_writes_are_denied() {
    let grants = [
        "GRANT SELECT ON mysql.proc TO 'sluice'@'%'",
        "GRANT SELECT ON mysql.func TO 'sluice'@'%'",
    ];
    functions(Flavour::MariaDb, &grants).await;
}

async fn functions(flavour: Flavour, grants: &[&str]) {
    let mut options = TopologyOptions::new(flavour, 0);
    options.performance_schema = PerformanceSchema::On;
    let servers = Topology::start(options).await.unwrap();
    let server = &servers.primary;
    let trust = "SET GLOBAL log_bin_trust_function_creators = 1";
    let table = "CREATE TABLE f_log (n INT)";
    server.run_sql(&[trust, table, READS, WRITES]).await.unwrap();
    let config = Config::new(&servers).unwrap().rules(DENIED);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = connect(&sluice, "etl").await.unwrap();
    for _ in 0..20 {
        assert!(is_denied(&conn.query("SELECT f_reads()").await.unwrap()), "without a grant");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    server.run_sql(grants).await.unwrap();
    drop(sluice);

    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut conn = connect(&sluice, "etl").await.unwrap();
    // An account may drop what it has made itself.
    let mut other = connect(&sluice, "etl").await.unwrap();
    assert_eq!(Refused::of(&other.query(TURNS).await.unwrap()), None);
    until(&mut conn, "SELECT f_turns()", false).await;
    assert!(!is_denied(&conn.query("SELECT f_reads()").await.unwrap()));
    assert!(is_denied(&conn.query("SELECT f_writes()").await.unwrap()));
    assert!(is_denied(&conn.query("SELECT f_reads(), f_writes()").await.unwrap()));
    let prepared = conn.prepare("SELECT f_turns()").await.unwrap();
    assert!(!is_denied(&conn.execute(&prepared, &[]).await.unwrap()));

    // Through Sluice it is held at once, however often.
    for _ in 0..5 {
        until(&mut conn, "SELECT f_turns()", false).await;
        for change in ["DROP FUNCTION f_turns", TURNED] {
            assert_eq!(Refused::of(&other.query(change).await.unwrap()), None, "{change}");
        }
        assert!(is_denied(&conn.query("SELECT f_turns()").await.unwrap()));
        assert!(is_denied(&conn.execute(&prepared, &[]).await.unwrap()));
        until(&mut conn, "SELECT f_reads()", false).await;
        assert!(is_denied(&conn.query("SELECT f_turns()").await.unwrap()));
        for change in ["DROP FUNCTION f_turns", TURNS] {
            assert_eq!(Refused::of(&other.query(change).await.unwrap()), None, "{change}");
        }
    }
    assert_eq!(written(server).await, 0);

    // Behind its back, within the window.
    until(&mut conn, "SELECT f_turns()", false).await;
    server.run_sql(&["DROP FUNCTION f_turns", TURNED]).await.unwrap();
    until(&mut conn, "SELECT f_turns()", true).await;
    let so_far = written(server).await;
    for _ in 0..20 {
        assert!(is_denied(&conn.query("SELECT f_turns()").await.unwrap()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(written(server).await, so_far);
}

/// One statement, unless double quotes are those of names: then it is two.
const HIDING: &str = r#"SELECT 1 AS "\"; INSERT INTO q_log VALUES (1); -- ""#;

#[tokio::test]
async fn a_session_of_mysql_that_begins_with_ansi_quotes_hides_nothing() {
    let servers = Topology::mysql(0).await.unwrap();
    let server = &servers.primary;
    let on = "SET GLOBAL sql_mode = 'ANSI_QUOTES'";
    server.run_sql(&["CREATE TABLE q_log (n INT)", on]).await.unwrap();
    let config = Config::new(&servers).unwrap().rules(DENIED);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut first = connect(&sluice, "etl").await.unwrap();
    assert!(is_denied(&first.query(HIDING).await.unwrap()), "whatever is known by then");
    server.run_sql(&["SET GLOBAL sql_mode = ''"]).await.unwrap();
    until_new_sessions(&sluice, false).await;
    server.run_sql(&[on]).await.unwrap();
    until_new_sessions(&sluice, true).await;
    assert!(is_denied(&first.query(HIDING).await.unwrap()));
    assert_eq!(numbers(server, "SELECT COUNT(*) FROM q_log").await.unwrap(), [0]);
}

async fn until_new_sessions(sluice: &SluiceProcess, denied: bool) {
    let since = Instant::now();
    loop {
        let mut conn = connect(sluice, "etl").await.unwrap();
        // Of one that passes in the other mode only an error comes: it is read in the mode of now.
        if is_denied(&conn.query(r#"SELECT "\"; DELETE FROM q_log; -- ""#).await.unwrap()) == denied
        {
            return;
        }
        assert!(since.elapsed() < WINDOW, "{denied}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn until(conn: &mut RawConn, sql: &str, denied: bool) {
    let since = Instant::now();
    while is_denied(&conn.query(sql).await.unwrap()) != denied {
        assert!(since.elapsed() < WINDOW, "{sql} {denied}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn written(server: &Server) -> i64 {
    let count = numbers(server, "SELECT COUNT(*) FROM f_log").await.unwrap();
    count.first().copied().unwrap()
}

fn is_denied(answer: &Response) -> bool {
    Refused::of(answer).is_some_and(|refused| refused.part("rule") == Some("no_writes"))
}
