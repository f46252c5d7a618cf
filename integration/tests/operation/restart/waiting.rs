//! Statements that wait when a drain begins, or when another process takes over.

use super::*;
use integration::raw::{Cursor, Execute, Param, Prepared, Response, Shape};
use integration::scenario::{Pending, Refused, Switch, numbers, wait_for_depth, wait_until};

const HELD: &str = "\
- { name: held, match: { app: etl }, hold: true, max_delay: 60s, permanent: true }
- { name: everything, gate: none, permanent: true }";

#[tokio::test]
async fn a_drain_refuses_each_waiting_statement_once_and_its_session_goes_on_for_a_moment() {
    let servers = MYSQL.get().await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.drained (n INT)"]).await.unwrap();
    let mut sluice =
        SluiceProcess::start(&Config::new(servers).unwrap().rules(HELD)).await.unwrap();
    let insert = "INSERT INTO drained VALUES (1)";
    let text = Pending::query(connect(&sluice, "etl").await.unwrap(), insert);
    let mut open = connect(&sluice, "etl").await.unwrap();
    open.query("BEGIN").await.unwrap().accepted().unwrap();
    let open = Pending::query(open, insert);
    let mut prepares = connect(&sluice, "etl").await.unwrap();
    let prepared = prepares.prepare("INSERT INTO drained VALUES (?)").await.unwrap();
    let payload = execution(&prepares, &prepared);
    let executed = Pending::command(prepares, payload);
    let mut ahead = connect(&sluice, "etl").await.unwrap();
    for sql in [insert, "SELECT 7"] {
        let payload = ahead.query_payload(sql.as_bytes(), &[]);
        ahead.send_command(&payload).await.unwrap();
    }
    wait_for_depth(&sluice, "held", 4).await.unwrap();
    let (mut reads, rows) = reader(&sluice).await;
    sluice.signal("TERM").unwrap();

    let [mut text, mut open, mut executed] = answered([text, open, executed]).await;
    is_refused(&ahead.read_response(Shape::Query).await.unwrap(), "shutdown");
    let behind = ahead.read_response(Shape::Query).await.unwrap().accepted().unwrap();
    assert_eq!(behind.first_text().as_deref(), Some("7"));
    for conn in [&mut text, &mut executed] {
        is_told_of_the_end(conn).await;
    }
    is_told_of_the_end(&mut ahead).await;
    assert!(sluice.exited().is_none(), "a transaction is open");
    open.query("COMMIT").await.unwrap().accepted().unwrap();
    is_told_of_the_end(&mut open).await;
    assert!(sluice.exited().is_none(), "a cursor has rows left");
    let rest = reads.fetch(rows, 10).await.unwrap().accepted().unwrap();
    assert_eq!(rest.rows.len(), 2);
    assert!(reads.read_to_end().await.unwrap().is_empty());
    assert!(sluice.ended(SOON).await.unwrap().success());
    assert_eq!(refusals(&sluice, "shutdown"), 4);
    let rows = numbers(&servers.primary, "SELECT n FROM test.drained").await.unwrap();
    assert_eq!(rows, Vec::<i64>::new());
}

#[tokio::test]
async fn over_a_takeover_statements_wait_on_and_run_when_the_gate_of_the_old_process_opens() {
    let servers = MYSQL.get().await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.waited (n INT)"]).await.unwrap();
    let switch = Switch::new(&servers.primary, "takeover_switch").await.unwrap();
    let dir = Dir::new("waits");
    let config = takeover_config(servers, &dir)
        .signals(&switch.signal())
        .rules("- { name: gated, gate: [takeover_switch], max_delay: 60s, permanent: true }");
    let mut old = start(&config, &[]).await;
    switch.shut(&old).await.unwrap();
    let mut waiting = Vec::new();
    for n in 0..3 {
        let etl = connect(&old, "etl").await.unwrap();
        waiting.push(Pending::query(etl, format!("INSERT INTO waited VALUES ({n})")));
    }
    wait_for_depth(&old, "gated", 3).await.unwrap();
    let next = start(&config, &["--takeover"]).await;
    wait_until_it_drains(&old).await;
    // Each process has its gate, and both are fed.
    switch.shut(&next).await.unwrap();
    waiting.push(Pending::query(
        connect(&next, "etl").await.unwrap(),
        "INSERT INTO waited VALUES (3)",
    ));
    wait_for_depth(&next, "gated", 1).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(old.exited().is_none() && !waiting.iter().any(Pending::is_answered), "they wait");
    switch.open(&next).await.unwrap();
    for pending in waiting {
        pending.answered(SOON).await.unwrap().response.accepted().unwrap();
    }
    assert!(old.ended(SOON).await.unwrap().success());
    let rows = numbers(&servers.primary, "SELECT n FROM test.waited ORDER BY n").await.unwrap();
    assert_eq!(rows, [0, 1, 2, 3]);
}

#[tokio::test]
async fn after_a_takeover_who_waits_is_refused_by_a_signal_or_when_the_drains_time_is_over() {
    let servers = MYSQL.get().await.unwrap();
    for told in ["TERM", "time"] {
        let dir = Dir::new(told);
        let mut config = takeover_config(servers, &dir).rules(HELD);
        let timeout = if told == "time" { "2s" } else { "60s" };
        config.top = format!("{}\ndrain_timeout: {timeout}", config.top);
        let mut old = start(&config, &[]).await;
        let etl = connect(&old, "etl").await.unwrap();
        let waiting = Pending::query(etl, "INSERT INTO nowhere VALUES (1)");
        wait_for_depth(&old, "held", 1).await.unwrap();
        let _next = start(&config, &["--takeover"]).await;
        if told == "TERM" {
            wait_until_it_drains(&old).await;
            old.signal("TERM").unwrap();
        }
        let [mut conn] = answered([waiting]).await;
        conn.read_to_end().await.unwrap();
        assert!(old.ended(SOON).await.unwrap().success());
        assert_eq!(refusals(&old, "shutdown"), 1, "{told}");
    }
}

#[tokio::test]
async fn a_process_that_drains_can_be_taken_over_from_and_a_second_signal_closes_what_is_left() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("drains");
    let config = takeover_config(servers, &dir);
    let mut old = start(&config, &[]).await;
    let mut open = connect(&old, "web").await.unwrap();
    open.query("BEGIN").await.unwrap().accepted().unwrap();
    old.signal("TERM").unwrap();
    // Until nobody listens.
    while RawConn::connect(config.listen).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let next = start(&config, &["--takeover"]).await;
    connect(&next, "web").await.unwrap().query("SELECT 1").await.unwrap().accepted().unwrap();
    open.query("SELECT 1").await.unwrap().accepted().unwrap();
    old.signal("TERM").unwrap();
    is_told_of_the_end(&mut open).await;
    assert_eq!(old.ended(SOON).await.unwrap().code(), Some(1));
    connect(&next, "web").await.unwrap().query("SELECT 1").await.unwrap().accepted().unwrap();
}

/// Has read the first of three rows from a cursor; the statement's id.
async fn reader(sluice: &SluiceProcess) -> (RawConn, u32) {
    let mut conn = connect(sluice, "web").await.unwrap();
    let Prepared { id, .. } =
        conn.prepare("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3").await.unwrap();
    let execute = Execute { id, cursor: Cursor::ReadOnly, ..Execute::default() };
    conn.execute_as(&execute).await.unwrap().accepted().unwrap();
    conn.fetch(id, 1).await.unwrap().accepted().unwrap();
    (conn, id)
}

fn execution(conn: &RawConn, prepared: &Prepared) -> Vec<u8> {
    let params = [Param::int(1)];
    let execute = Execute { id: prepared.id, params: &params, ..Execute::default() };
    execute.payload(conn.capabilities())
}

/// While both have it, either of the two may answer at the admin's port.
pub(super) async fn wait_until_it_drains(old: &SluiceProcess) {
    let drains = || async { Ok(old.log()?.contains("draining; ")) };
    wait_until("the old process drains", SOON, drains).await.unwrap();
}

/// Each is refused because of the shutdown; their connections.
async fn answered<const N: usize>(waiting: [Pending; N]) -> [RawConn; N] {
    let mut conns = Vec::new();
    for pending in waiting {
        let answered = pending.answered(SOON).await.unwrap();
        is_refused(&answered.response, "shutdown");
        conns.push(answered.conn);
    }
    conns.try_into().unwrap()
}

fn is_refused(response: &Response, reason: &str) {
    let refused = Refused::of(response).unwrap();
    assert_eq!((refused.errno, refused.sequence), (1205, 1), "{refused:?}");
    assert_eq!(refused.reason(), Some(reason), "{refused:?}");
    assert_eq!(refused.part("executed"), Some("no"), "{refused:?}");
}

/// Errno 1053 stands there, and then the end.
async fn is_told_of_the_end(conn: &mut RawConn) {
    let told = conn.read_packet().await.unwrap();
    let (errno, message) = told.err().unwrap();
    assert!(errno == 1053 && message.contains("[executed=no]"), "{errno} {message}");
    assert!(conn.read_to_end().await.unwrap().is_empty());
}

/// Lines of the log.
fn refusals(sluice: &SluiceProcess, reason: &str) -> usize {
    let log = sluice.log().unwrap();
    let reason = format!("reason={reason:?}");
    let plain = reason.replace('"', "");
    let of = |line: &&str| line.contains(&reason) || line.contains(&plain);
    log.lines().filter(|line| line.contains("statement refused")).filter(of).count()
}
