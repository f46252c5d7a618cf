//! Replication lag shuts the gate: gated writes wait, nothing else does, and when the replica has caught up
//! they run, in order, each once.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::process::Command;
use std::time::{Duration, Instant};

use integration::raw::Response;
use integration::replica::Lag;
use integration::scenario::{
    Pending, Refused, connect, connect_as, is, numbers, wait_for_depth, wait_for_signal,
    wait_for_sum,
};
use integration::sluice::{Config, SluiceProcess, binary};
use integration::topology::Topology;

#[tokio::test]
async fn writes_of_a_gated_identity_wait_while_a_mysql_replica_lags_and_then_run_in_order_once() {
    let mut servers = Topology::mysql(1).await.unwrap();
    gated_writes_wait_for_the_replica(&mut servers).await;
}

#[tokio::test]
async fn writes_of_a_gated_identity_wait_while_a_mariadb_replica_lags_and_then_run_in_order_once() {
    let mut servers = Topology::mariadb(1).await.unwrap();
    gated_writes_wait_for_the_replica(&mut servers).await;
}

#[tokio::test]
async fn a_wait_for_a_lagging_replica_ends_at_max_delay_with_an_error_or_as_the_rule_says() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE, "CREATE TABLE w (n INT PRIMARY KEY)"]).await.unwrap();
    let rules = "\
- { name: refused, match: { app: refused }, max_delay: 600ms, permanent: true }
- { name: let-in, match: { app: let-in }, max_delay: 600ms, on_timeout: admit, permanent: true }
- { name: at-once, match: { app: at-once }, on_refused_check: reject, permanent: true }";
    let sluice = start(&servers, rules, "").await;
    lag_start(&mut servers, &sluice, Lag::StoppedApplier).await;

    let mut conn = connect_as(&sluice, "refused").await.unwrap();
    let sent = Instant::now();
    let refused = Refused::of(&conn.query("INSERT INTO t (n) VALUES (1)").await.unwrap()).unwrap();
    assert!(sent.elapsed() >= Duration::from_millis(600));
    assert_eq!((refused.errno, refused.reason()), (1205, Some("gate_closed")), "{refused:?}");
    assert_eq!((refused.part("signal"), refused.part("threshold")), (Some("lag"), Some("1s")));
    let lag: f64 = refused.part("value").unwrap().trim_end_matches('s').parse().unwrap();
    assert!(lag >= 1.0, "{refused:?}");

    let mut conn = connect_as(&sluice, "at-once").await.unwrap();
    let refused = Refused::of(&conn.query("INSERT INTO t (n) VALUES (2)").await.unwrap()).unwrap();
    assert_eq!(refused.reason(), Some("gate_closed"));
    assert_eq!(refused.part("waited_ms"), Some("0"));

    let mut conn = connect_as(&sluice, "let-in").await.unwrap();
    let sent = Instant::now();
    accepted(&conn.query("INSERT INTO t (n) VALUES (3)").await.unwrap());
    assert!(sent.elapsed() >= Duration::from_millis(600));
    let labels = [("rule", "let-in"), ("decision", "admitted"), ("reason", "timeout")];
    wait_for_sum(&sluice, "sluice_statements_total", &labels, 1.0).await.unwrap();
    assert_eq!(rows(&servers).await, [3]);
}

#[tokio::test]
async fn without_a_fresh_value_the_gate_is_closed_and_says_no_data() {
    let mut servers = Topology::mysql(2).await.unwrap();
    servers.primary.run_sql(&[TABLE, "CREATE TABLE w (n INT PRIMARY KEY)"]).await.unwrap();
    let rules = "\
- { name: patient, match: { app: etl }, max_delay: 60s, permanent: true }
- { name: hasty, match: { app: ddl }, on_refused_check: reject, permanent: true }";
    let sluice = start(&servers, rules, "").await;
    let mut ddl = connect(&sluice, "ddl").await.unwrap();
    accepted(&ddl.query("INSERT INTO t (n) VALUES (1)").await.unwrap());

    // One replica that answers nothing is left out, and the other one speaks for the cluster.
    let frozen = servers.replicas.first_mut().unwrap();
    frozen.lag_start(Lag::Frozen).await.unwrap();
    tokio::time::sleep(STALE_AFTER).await;
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    accepted(&ddl.query("INSERT INTO t (n) VALUES (2)").await.unwrap());

    servers.replicas.last_mut().unwrap().lag_start(Lag::Frozen).await.unwrap();
    tokio::time::sleep(STALE_AFTER).await;
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    let refused = Refused::of(&ddl.query("INSERT INTO t (n) VALUES (3)").await.unwrap()).unwrap();
    assert_eq!((refused.reason(), refused.part("signal")), (Some("no_data"), Some("lag")));
    let etl = connect(&sluice, "etl").await.unwrap();
    let waiting = Pending::query(etl, "INSERT INTO t (n) VALUES (4)");
    wait_for_depth(&sluice, "patient", 1).await.unwrap();
    accepted(&ddl.query("SELECT COUNT(*) FROM t").await.unwrap());

    for replica in &mut servers.replicas {
        replica.lag_stop().await.unwrap();
    }
    accepted(&waiting.answered(SOON).await.unwrap().response);
    assert_eq!(rows(&servers).await, [1, 2, 4]);
}

#[tokio::test]
async fn on_no_data_open_lets_writes_through_while_nothing_is_known() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE, "CREATE TABLE w (n INT PRIMARY KEY)"]).await.unwrap();
    let rules = "- { name: r, match: { app: etl }, on_refused_check: reject, permanent: true }";
    let signals = "lag: { threshold: 1s, on_no_data: open, stale_after: 1s }";
    let config = Config::new(&servers).unwrap().signals(signals).rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_start(Lag::Frozen).await.unwrap();
    tokio::time::sleep(STALE_AFTER).await;
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let mut etl = connect(&sluice, "etl").await.unwrap();
    accepted(&etl.query("INSERT INTO t (n) VALUES (1)").await.unwrap());
}

async fn gated_writes_wait_for_the_replica(servers: &mut Topology) {
    servers.primary.run_sql(&[TABLE, "CREATE TABLE w (n INT PRIMARY KEY)"]).await.unwrap();
    let rules = "\
- { name: etl, match: { app: etl }, max_delay: 60s, permanent: true }
- { name: everything, gate: none, permanent: true }";
    // The plain gate releases them far enough apart (half a second, then a quarter) that the order in which they reach the server is the order of release.
    let sluice = start(servers, rules, "pacing: binary\nrelease_per_s: 2").await;
    for (round, how) in (0..).zip([Lag::StoppedApplier, Lag::GlobalReadLock]) {
        lag_start(servers, &sluice, how).await;
        let first = round * 100;
        let waiting = line_up(&sluice, first).await;
        the_status_names_them(servers, &sluice).await;
        let began = Instant::now();
        the_rest_flows(&sluice).await;
        assert!(waiting.iter().all(|waiting| !waiting.is_answered()));
        assert!(!rows(servers).await.contains(&first));
        // Long enough to be seen in the histogram.
        tokio::time::sleep(Duration::from_secs(2).saturating_sub(began.elapsed())).await;
        servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
        for waiting in waiting {
            let answered = waiting.answered(SOON).await.unwrap();
            assert_eq!(answered.response.affected_rows(), Some(1));
            assert!(answered.after >= Duration::from_secs(2));
        }
        let expected: Vec<i64> = (first..first + WAITERS).collect();
        let written: Vec<i64> = rows(servers).await.into_iter().filter(|n| *n >= first).collect();
        assert_eq!(written, expected, "in order, each once");
        let all = f64::from(u32::try_from((round + 1) * WAITERS).unwrap());
        the_histogram_says_so(&sluice, all).await;
    }
}

/// Writes that arrive one after the other, all of them in the queue.
async fn line_up(sluice: &SluiceProcess, first: i64) -> Vec<Pending> {
    let mut waiting = Vec::new();
    for (depth, n) in (1..).zip(first..first + WAITERS) {
        let etl = connect(sluice, "etl").await.unwrap();
        waiting.push(Pending::query(etl, format!("INSERT INTO t (n) VALUES ({n})")));
        wait_for_depth(sluice, "etl", depth).await.unwrap();
    }
    waiting
}

/// `sluice status` lists each by the server's number of its connection, with user, address and reason;
/// the server itself sees them idle.
async fn the_status_names_them(servers: &Topology, sluice: &SluiceProcess) {
    let mut status = Command::new(binary().unwrap());
    status.args(["status", "--admin"]).arg(format!("http://{}", sluice.admin_addr()));
    let output = status.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("\n! lag "), "{text}");
    let idle = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist \
                WHERE user = 'etl' AND command = 'Sleep'";
    let idle = numbers(&servers.primary, idle).await.unwrap();
    let table = text.split("Connections that wait\n").nth(1).unwrap();
    let rows = table.lines().skip(1).take_while(|line| !line.is_empty());
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), usize::try_from(WAITERS).unwrap(), "{text}");
    for row in rows {
        let [id, user, client, app, rule, ..] = row[..] else { panic!("{text}") };
        assert!(idle.contains(&id.parse().unwrap()), "{id} of {idle:?}: {text}");
        assert_eq!((user, app, rule), ("etl", "etl", "etl"), "{text}");
        assert!(client.starts_with("127.0.0.1:"), "{text}");
        assert!(row.contains(&"gate_closed:") && row.ends_with(&["threshold", "1", "s"]), "{text}");
    }
}

/// Reads of the gated identity, and everything of everybody else, do not notice.
async fn the_rest_flows(sluice: &SluiceProcess) {
    let mut etl = connect(sluice, "etl").await.unwrap();
    let mut web = connect(sluice, "web").await.unwrap();
    let mut slowest = Duration::ZERO;
    for n in 0..100 {
        let sent = Instant::now();
        accepted(&etl.query("SELECT COUNT(*) FROM t").await.unwrap());
        accepted(&web.query(format!("REPLACE INTO w VALUES ({n})")).await.unwrap());
        accepted(&web.query("SELECT COUNT(*) FROM w").await.unwrap());
        slowest = slowest.max(sent.elapsed());
    }
    assert!(slowest < Duration::from_secs(1), "one of them took {slowest:?}");
    let metrics = sluice.metrics().await.unwrap();
    assert!(is(metrics.sum("sluice_queue_depth", &[("rule", "everything")]), 0.0));
    assert!(is(metrics.sum("sluice_queue_delay_seconds_count", &[("app", "web")]), 0.0));
}

async fn the_histogram_says_so(sluice: &SluiceProcess, expected: f64) {
    let labels = [("rule", "etl"), ("app", "etl"), ("decision", "admitted")];
    wait_for_sum(sluice, "sluice_queue_delay_seconds_count", &labels, expected).await.unwrap();
    let metrics = sluice.metrics().await.unwrap();
    let sum = metrics.sum("sluice_queue_delay_seconds_sum", &labels);
    assert!(sum >= 2.0 * expected, "{sum} s for {expected} waits of 2 s and more");
    let bucket = |le| {
        let labels = [labels[0], labels[1], labels[2], ("le", le)];
        metrics.value("sluice_queue_delay_seconds_bucket", &labels)
    };
    assert_eq!(bucket("1"), Some(0.0));
    assert_eq!(bucket("60"), Some(expected));
    assert!(is(metrics.sum("sluice_queue_depth", &[("rule", "etl")]), 0.0));
}

async fn start(servers: &Topology, rules: &str, cluster: &str) -> SluiceProcess {
    let config = Config::new(servers).unwrap().rules(rules).cluster(cluster);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    sluice
}

async fn lag_start(servers: &mut Topology, sluice: &SluiceProcess, how: Lag) {
    servers.replicas.first_mut().unwrap().lag_start(how).await.unwrap();
    wait_for_signal(sluice, "lag", 0.0).await.unwrap();
}

/// In the order in which they were written.
async fn rows(servers: &Topology) -> Vec<i64> {
    numbers(&servers.primary, "SELECT n FROM t ORDER BY place").await.unwrap()
}

fn accepted(response: &Response) {
    assert_eq!(response.err(), None);
}

const TABLE: &str = "CREATE TABLE t (place INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)";
const WAITERS: i64 = 5;
/// The default of `stale_after`, and a little.
const STALE_AFTER: Duration = Duration::from_millis(3_500);
const SOON: Duration = Duration::from_secs(20);
