//! What is fetched from a cursor is part of its statement's answer.

use integration::raw::{Cursor, Execute, Prepared, RawConn, Response};
use integration::scenario::{Refused, connect_as, wait_for_sum};
use integration::sluice::SluiceProcess;

use super::{ALONE, MARIADB, MYSQL, listed, started};

const ROWS: &str = "SELECT n FROM ran_in";
const RULES: &str = "\
- { name: rows, match: { app: rows }, gate: none, permanent: true, runaway: { rows_sent: 100, action: kill, watch: { by: digest, for: 1m } } }
- { name: bytes, match: { app: bytes }, gate: none, permanent: true, runaway: { bytes_sent: 2000, action: kill } }
- { name: told, match: { app: told }, gate: none, permanent: true, runaway: { rows_sent: 100 } }
- { name: late, match: { app: late }, gate: none, permanent: true, runaway: { rows_sent: 100, action: deprioritise, watch: { for: 1m } } }";

#[tokio::test]
async fn a_cursor_ends_when_more_was_fetched_than_its_rule_lets_an_answer_have() {
    let _alone = ALONE.lock().await;
    for servers in [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()] {
        let sluice = started(servers, RULES).await;
        of_rows(&sluice).await;
        of_bytes(&sluice).await;
        that_go_on(&sluice).await;
        too_many(&sluice).await;
    }
}

/// What is fetched from a cursor of which nobody can know does not pass for little.
async fn too_many(sluice: &SluiceProcess) {
    let mut conn = connect_as(sluice, "bytes").await.unwrap();
    let mut last = None;
    for number in 0..=CURSORS_KNOWN {
        let statement = conn.prepare("SELECT 1").await.unwrap();
        open(&mut conn, &statement).await;
        if number + 1 == CURSORS_KNOWN {
            fetched(&mut conn, &statement, 1).await;
            // It is open until it is closed.
            open(&mut conn, &statement).await;
        }
        last = Some(statement);
    }
    let statement = last.unwrap();
    assert_interrupted(&conn.fetch(statement.id, 1).await.unwrap(), "bytes_sent");
    counted(sluice, "bytes", "kill", 3.0).await;
}

/// Open cursors of one connection of which Sluice knows what is fetched.
const CURSORS_KNOWN: u32 = 1_024;

async fn of_rows(sluice: &SluiceProcess) {
    let mut conn = connect_as(sluice, "rows").await.unwrap();
    let before = conn.prepare(ROWS).await.unwrap();
    let statement = conn.prepare(ROWS).await.unwrap();
    open(&mut conn, &statement).await;
    // As many as there may be, and what else the session does is nothing to it.
    for _ in 0..4 {
        fetched(&mut conn, &statement, 25).await;
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();
    }
    fetched(&mut conn, &statement, 1).await;
    assert_interrupted(&conn.fetch(statement.id, 1).await.unwrap(), "rows_sent");
    let again = conn.execute_as(&with_cursor(&before)).await.unwrap();
    assert_eq!(Refused::of(&again).unwrap().reason(), Some("quarantined"));
    assert_eq!(listed(sluice).await.len(), 1);
    conn.close_statement(statement.id).await.unwrap();
    conn.query("SELECT 1").await.unwrap().accepted().unwrap();
    counted(sluice, "rows", "kill", 1.0).await;
}

async fn of_bytes(sluice: &SluiceProcess) {
    let mut conn = connect_as(sluice, "bytes").await.unwrap();
    let statement = conn.prepare(ROWS).await.unwrap();
    for _ in 0..2 {
        open(&mut conn, &statement).await;
        let mut fetches = 0;
        let mut last = conn.fetch(statement.id, 10).await.unwrap();
        while last.err().is_none() {
            fetches += 1;
            last = conn.fetch(statement.id, 10).await.unwrap();
        }
        assert_interrupted(&last, "bytes_sent");
        assert!((10..30).contains(&fetches), "{fetches}");
    }
    counted(sluice, "bytes", "kill", 2.0).await;
    // All of it in one: there is nothing more to be fetched.
    open(&mut conn, &statement).await;
    fetched(&mut conn, &statement, 10_000_000).await;
    counted(sluice, "bytes", "over", 1.0).await;
}

async fn that_go_on(sluice: &SluiceProcess) {
    for (app, action) in [("told", "log"), ("late", "deprioritise")] {
        let mut conn = connect_as(sluice, app).await.unwrap();
        let statement = conn.prepare(ROWS).await.unwrap();
        open(&mut conn, &statement).await;
        for _ in 0..9 {
            fetched(&mut conn, &statement, 30).await;
        }
        counted(sluice, app, action, 1.0).await;
    }
}

async fn counted(sluice: &SluiceProcess, rule: &str, action: &str, times: f64) {
    let labels = [("rule", rule), ("action", action)];
    wait_for_sum(sluice, "sluice_runaway_total", &labels, times).await.unwrap();
}

fn with_cursor(statement: &Prepared) -> Execute<'static> {
    Execute { id: statement.id, cursor: Cursor::ReadOnly, ..Execute::default() }
}

async fn open(conn: &mut RawConn, statement: &Prepared) {
    conn.execute_as(&with_cursor(statement)).await.unwrap().accepted().unwrap();
}

async fn fetched(conn: &mut RawConn, statement: &Prepared, rows: u32) {
    conn.fetch(statement.id, rows).await.unwrap().accepted().unwrap();
}

#[track_caller]
fn assert_interrupted(response: &Response, limit: &str) {
    let refused = Refused::of(response).unwrap();
    assert_eq!((refused.errno, refused.part("limit")), (1317, Some(limit)), "{response:?}");
}
