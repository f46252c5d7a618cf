//! What the probes tell of other sessions of the primary: whose lock the heartbeat waits for, and who
//! writes without having come through Sluice.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::Duration;

use integration::raw::{Login, RawConn};
use integration::scenario::{is, numbers, wait_for_signal, wait_until};
use integration::server::{Flavour, PerformanceSchema};
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

/// Longer than anything here takes.
const SOON: Duration = Duration::from_secs(20);

/// Longer than a heartbeat may take before it is given up.
const A_WHILE: Duration = Duration::from_secs(6);

const GLOBAL: [&str; 3] = ["FLUSH TABLES WITH READ LOCK", "a global read lock", "global_read"];
const SEMI_SYNC: &str = "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'";
const TABLE: [&str; 3] = ["LOCK TABLES sluice.heartbeat READ", "a lock on its table", "table"];

#[tokio::test]
async fn mysql_names_who_goes_around_and_whose_lock_heartbeats_wait_for() {
    let options = TopologyOptions {
        performance_schema: PerformanceSchema::On,
        replica_args: vec!["--performance-schema=OFF".into()],
        ..TopologyOptions::new(Flavour::MySql, 1)
    };
    let servers = Topology::start(options).await.unwrap();
    let (sluice, config) = watching(&servers).await;
    let _around = around_and_through(&servers, &sluice).await;
    locks_are_named(&servers, &sluice, &[GLOBAL], "(mydumper, user admin)").await;
    let share = who_goes_around_is_named(&sluice).await;
    assert!(share.is_some_and(|share| share > 0.4 && share < 0.6), "{share:?}");
    a_lock_is_no_cause_once_it_is_gone(&servers, &sluice).await;
    servers.primary.run_sql(&[SEMI_SYNC]).await.unwrap();
    let whose = "(mydumper, user admin)";
    rows_and_commits_are_named(&servers, &sluice, whose, "rpl_semi_sync_source").await;
    heartbeats_do_not_pile_up_for_no_known_cause(&servers, &sluice).await;
    // An edit begins the probes anew, and they know what they knew.
    let config = config.cluster("bypass: { interval: 5s, ignore_users: [etl] }");
    sluice.write_config(&config.render()).unwrap();
    let as_before = |metrics: &Metrics| {
        is(metrics.sum("sluice_bypass_sessions", &[]), 0.0)
            && metrics.value("sluice_bypass_unknown_sessions", &[]).is_some_and(|n| is(n, 0.0))
    };
    sluice.wait_for_metrics("nobody is named or unknown", SOON, as_before).await.unwrap();
}

#[tokio::test]
async fn mariadb_names_who_goes_around_and_whose_lock_heartbeats_wait_for() {
    let servers = Topology::mariadb(1).await.unwrap();
    let (sluice, _) = watching(&servers).await;
    let _around = around_and_through(&servers, &sluice).await;
    // Without the plugin the server does not say whose lock it is.
    let mut holder = dumper(&servers).await;
    run(&mut holder, "FLUSH TABLES WITH READ LOCK").await;
    is_told(&sluice, "a global read lock (whose, the server does not say)").await;
    run(&mut holder, "UNLOCK TABLES").await;
    is_told(&sluice, "the heartbeat waits for nobody's lock any more").await;
    servers.primary.run_sql(&["INSTALL SONAME 'metadata_lock_info'"]).await.unwrap();
    locks_are_named(&servers, &sluice, &[GLOBAL, TABLE], "(user admin)").await;
    a_lock_is_no_cause_once_it_is_gone(&servers, &sluice).await;
    rows_and_commits_are_named(&servers, &sluice, "(user admin)", "rpl_semi_sync_master").await;
    assert_eq!(who_goes_around_is_named(&sluice).await, None);
}

async fn locks_are_named(
    servers: &Topology,
    sluice: &SluiceProcess,
    locks: &[[&str; 3]],
    who: &str,
) {
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
    let mut holder = dumper(servers).await;
    let id = holder.connection_id();
    for [lock, kind, label] in locks.iter().copied() {
        run(&mut holder, lock).await;
        let cause = format!("the heartbeat waits for {kind} of connection {id} {who}");
        is_told(sluice, &cause).await;
        is_blocked(sluice, &[label]).await;
        let ready = sluice.http_get("/readyz").await.unwrap();
        assert!(ready.status == 200 && ready.body.contains(&cause), "{}", ready.body);
        // It is no lag, and what on_no_data says is in force.
        wait_for_signal(sluice, "lag", 0.0).await.unwrap();
        is_told(sluice, "a gate shuts: the signal has no data").await;
        let log = sluice.log().unwrap();
        assert!(!log.contains("a gate shuts: the signal is at or over"), "{log}");
        if servers.primary.flavour() == Flavour::MySql {
            // Heartbeats that were given up do not pile up behind the lock.
            tokio::time::sleep(A_WHILE).await;
            let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
                WHERE USER = 'sluice' AND STATE LIKE 'Waiting for%lock'";
            let waiting = numbers(&servers.primary, waiting).await.unwrap();
            assert!(waiting.iter().all(|count| *count <= 2), "{waiting:?}");
            let log = sluice.log().unwrap();
            let lines =
                log.lines().filter(|line| line.contains("blocker") && line.contains(&cause));
            assert_eq!(lines.count(), 1, "it is told once: {log}");
        }
        // And no primary that is gone.
        let primary = servers.primary.addr().to_string();
        let up = sluice.metrics().await.unwrap().value("sluice_probe_up", &[("server", &primary)]);
        assert_eq!(up, Some(1.0));
        let page = sluice.http_get("/plain").await.unwrap().body;
        assert!(!page.contains("does not answer"), "{page}");
        run(&mut holder, "UNLOCK TABLES").await;
        is_blocked(sluice, &[]).await;
        wait_for_signal(sluice, "lag", 1.0).await.unwrap();
    }
}

/// A switchover takes the lock, and leaves the server read only: the lock was the cause for as long as that.
async fn a_lock_is_no_cause_once_it_is_gone(servers: &Topology, sluice: &SluiceProcess) {
    let mut holder = dumper(servers).await;
    run(&mut holder, "FLUSH TABLES WITH READ LOCK").await;
    is_blocked(sluice, &["global_read"]).await;
    // Its heartbeat is given up meanwhile, and the next one is not begun.
    tokio::time::sleep(A_WHILE).await;
    run(&mut holder, "SET GLOBAL read_only = 1").await;
    run(&mut holder, "UNLOCK TABLES").await;
    is_blocked(sluice, &[]).await;
    let read_only = || async { Ok(sluice.http_get("/readyz").await?.body.contains("read_only")) };
    wait_until("what it is by now is told", SOON, read_only).await.unwrap();
    let ready = sluice.http_get("/readyz").await.unwrap().body;
    assert!(!ready.contains("lock"), "{ready}");
    run(&mut holder, "SET GLOBAL read_only = 0").await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
}

/// Its row is locked, and then no replica acknowledges: the primary was said to be silent, and in it each
/// heartbeat waited behind the one before.
async fn rows_and_commits_are_named(
    servers: &Topology,
    sluice: &SluiceProcess,
    whose: &str,
    setting: &str,
) {
    let primary = &servers.primary;
    let mut holder = dumper(servers).await;
    run(&mut holder, "BEGIN").await;
    run(&mut holder, "SELECT * FROM sluice.heartbeat FOR UPDATE").await;
    let id = holder.connection_id();
    is_told(
        sluice,
        &format!("the heartbeat waits for a lock on its row of connection {id} {whose}"),
    )
    .await;
    is_blocked(sluice, &["row"]).await;
    one_heartbeat_waits(servers).await;

    let for_long = format!("SET GLOBAL {setting}_timeout = 600000");
    primary.run_sql(&[&for_long, &format!("SET GLOBAL {setting}_enabled = 1")]).await.unwrap();
    // MySQL commits the heartbeat with this one, which alone says what it waits for.
    let mut first = RawConn::open(primary.addr(), &Login::new("etl")).await.unwrap();
    let commit = first.query_payload(b"INSERT INTO test.around VALUES (9)", &[]);
    first.send_command(&commit).await.unwrap();
    let waits = "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
        WHERE STATE LIKE 'Waiting for semi-sync ACK%'";
    let is_first = async || Ok(numbers(primary, waits).await? == [1]);
    wait_until("a commit waits", SOON, is_first).await.unwrap();
    run(&mut holder, "ROLLBACK").await;
    let cause = "the heartbeat waits for the acknowledgement of a semi-synchronous replica";
    is_told(sluice, cause).await;
    is_blocked(sluice, &["semi_sync"]).await;
    one_heartbeat_waits(servers).await;
    let ready = sluice.http_get("/readyz").await.unwrap();
    assert!(ready.status == 200 && ready.body.contains(cause), "{}", ready.body);
    let page = sluice.http_get("/plain").await.unwrap().body;
    for silent in ["does not answer", "has not answered"] {
        assert!(!ready.body.contains(silent) && !page.contains(silent), "{page}");
    }
    let server = primary.addr().to_string();
    let up = sluice.metrics().await.unwrap().value("sluice_probe_up", &[("server", &server)]);
    assert_eq!(up, Some(1.0));
    primary.run_sql(&[&format!("SET GLOBAL {setting}_enabled = 0")]).await.unwrap();
    is_told(sluice, "the heartbeat waits for no commit any more").await;
    is_blocked(sluice, &[]).await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
}

/// Its table has a trigger that waits for what no list of locks shows.
async fn heartbeats_do_not_pile_up_for_no_known_cause(servers: &Topology, sluice: &SluiceProcess) {
    let mut holder = dumper(servers).await;
    run(&mut holder, "SELECT GET_LOCK('beat', 0)").await;
    let trigger = "CREATE TRIGGER sluice.waits BEFORE UPDATE ON sluice.heartbeat FOR EACH ROW \
        SET @got = GET_LOCK('beat', 60)";
    run(&mut holder, trigger).await;
    is_told(sluice, "the heartbeat waits for something that the server does not name").await;
    is_blocked(sluice, &["unknown"]).await;
    one_heartbeat_waits(servers).await;
    run(&mut holder, "SELECT RELEASE_LOCK('beat')").await;
    is_told(sluice, "the heartbeat waits for nothing any more").await;
    is_blocked(sluice, &[]).await;
    run(&mut holder, "DROP TRIGGER sluice.waits").await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
}

/// A heartbeat has been given up, and no other one is begun. In a trigger it has the user of that.
async fn one_heartbeat_waits(servers: &Topology) {
    let longer_than = async |seconds: u32| {
        let waiting = format!(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST \
             WHERE TIME >= {seconds} AND (STATE = 'User lock' OR \
             USER = 'sluice' AND INFO LIKE 'UPDATE%')"
        );
        numbers(&servers.primary, &waiting).await
    };
    let is_given_up = async || Ok(longer_than(7).await? == [1]);
    wait_until("a heartbeat is given up", SOON, is_given_up).await.unwrap();
    assert_eq!(longer_than(0).await.unwrap(), [1]);
}

/// A session that goes around Sluice and calls itself a dump.
async fn dumper(servers: &Topology) -> RawConn {
    let login = Login::new("admin").attribute("program_name", "mydumper");
    RawConn::open(servers.primary.addr(), &login).await.unwrap()
}

async fn run(conn: &mut RawConn, sql: &str) {
    conn.query(sql).await.unwrap().accepted().unwrap();
}

/// Waits for a line of the log.
async fn is_told(sluice: &SluiceProcess, words: &str) {
    let told = || async { Ok(sluice.log()?.contains(words)) };
    wait_until(words, SOON, told).await.unwrap();
}

/// Waits until the heartbeat is known to wait for these kinds of locks, and no others.
async fn is_blocked(sluice: &SluiceProcess, locks: &[&str]) {
    let blocked = |metrics: &Metrics| {
        let by = |lock: &str| metrics.sum("sluice_heartbeat_blocked", &[("lock", lock)]);
        ["global_read", "table", "row", "semi_sync", "group", "commit", "unknown"]
            .iter()
            .all(|lock| is(by(lock), if locks.contains(lock) { 1.0 } else { 0.0 }))
    };
    sluice.wait_for_metrics("the heartbeat is blocked", SOON, blocked).await.unwrap();
}

/// A Sluice that has looked for the first time.
async fn watching(servers: &Topology) -> (SluiceProcess, Config) {
    let config = Config::new(servers).unwrap().cluster("bypass: { interval: 5s }");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let looked = |metrics: &Metrics| metrics.value("sluice_bypass_unknown_sessions", &[]).is_some();
    sluice.wait_for_metrics("the first look", SOON, looked).await.unwrap();
    (sluice, config)
}

/// Sessions with work under way: one through Sluice, and two around it, of which one only reads.
async fn around_and_through(servers: &Topology, sluice: &SluiceProcess) -> [RawConn; 3] {
    servers.primary.run_sql(&["CREATE TABLE test.around (n INT)"]).await.unwrap();
    let direct = |user: &'static str| async move {
        RawConn::open(servers.primary.addr(), &Login::new(user)).await.unwrap()
    };
    let mut through = RawConn::open(sluice.listen_addr(), &Login::new("app")).await.unwrap();
    let (mut around, mut reader) = (direct("etl").await, direct("web").await);
    for conn in [&mut through, &mut around] {
        run(conn, "BEGIN").await;
        run(conn, "INSERT INTO test.around VALUES (1), (2), (3), (4), (5), (6), (7), (8)").await;
    }
    run(&mut reader, "SELECT * FROM test.around").await;
    [through, around, reader]
}

/// The share that is told.
async fn who_goes_around_is_named(sluice: &SluiceProcess) -> Option<f64> {
    let named =
        |metrics: &Metrics| is(metrics.sum("sluice_bypass_sessions", &[("user", "etl")]), 1.0);
    let metrics = sluice.wait_for_metrics("it is named", SOON, named).await.unwrap();
    assert!(is(metrics.sum("sluice_bypass_sessions", &[]), 1.0), "nobody else is");
    let ready = sluice.http_get("/readyz").await.unwrap().body;
    assert!(ready.contains("past Sluice writes user etl (1 session from 127.0.0.1"), "{ready}");
    let log = sluice.log().unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("past Sluice writes")).collect();
    assert!(lines.len() == 1 && lines.iter().all(|line| line.contains("user=etl")), "{lines:?}");
    metrics.value("sluice_bypass_write_share", &[("user", "etl")])
}
