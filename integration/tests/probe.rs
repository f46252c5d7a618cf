//! The probes against real servers: lag is seen, servers that cannot be measured are left out and come
//! back, and what is not lag is not taken for it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::Duration;

use integration::replica::Lag;
use integration::scenario::{is, numbers, wait_for_signal, wait_until};
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;

#[tokio::test]
async fn a_mysql_replica_that_stops_applying_lags_and_one_that_has_caught_up_does_not() {
    lag_rises_and_falls(Topology::mysql(2).await.unwrap()).await;
}

#[tokio::test]
async fn a_mariadb_replica_that_stops_applying_lags_and_one_that_has_caught_up_does_not() {
    lag_rises_and_falls(Topology::mariadb(1).await.unwrap()).await;
}

async fn lag_rises_and_falls(mut servers: Topology) {
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let beats = "SELECT seq FROM sluice.heartbeat";
    let before = numbers(&servers.primary, beats).await.unwrap();
    assert_eq!(before.len(), 1, "one Sluice has one row");

    let replica = servers.replicas.first_mut().unwrap();
    let slow = replica.addr().to_string();
    replica.lag_start(Lag::StoppedApplier).await.unwrap();
    let lagging = |metrics: &Metrics| {
        lag(metrics, "") > Some(1.5) && lag(metrics, &slow) > Some(1.5) && !is_open(metrics)
    };
    let metrics = sluice.wait_for_metrics("the lag grows", SOON, lagging).await.unwrap();
    assert!(
        metrics.value("sluice_signal_threshold", &[("signal", "lag")]).is_some_and(|t| is(t, 1.0))
    );
    // Measured again and again while it grows.
    let age = metrics.value("sluice_signal_age_seconds", &[("signal", "lag")]).unwrap();
    assert!(age < 1.0, "{age}");
    for other in servers.replicas.iter().skip(1) {
        assert!(lag(&metrics, &other.addr().to_string()) < Some(1.0));
    }

    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    let fine = |metrics: &Metrics| lag(metrics, "") < Some(0.5) && is_open(metrics);
    sluice.wait_for_metrics("the lag is gone", SOON, fine).await.unwrap();
    let after = numbers(&servers.primary, beats).await.unwrap();
    assert!(after.len() == 1 && after > before, "{before:?} {after:?}");
}

#[tokio::test]
async fn a_frozen_replica_is_left_out_and_counts_again_when_it_is_back() {
    let mut servers = Topology::mysql(2).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let frozen = servers.replicas.first().unwrap().addr().to_string();
    wait_for_state(&sluice, &frozen, "counted").await;

    servers.replicas.first_mut().unwrap().lag_start(Lag::Frozen).await.unwrap();
    // Nobody knows yet that it is gone: what it does not show counts as missing.
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    wait_for_state(&sluice, &frozen, "unreachable").await;
    // The other one decides.
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    wait_for_log(&sluice, "no answer in time").await;

    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    wait_for_state(&sluice, &frozen, "counted").await;
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    wait_for_log(&sluice, "probe answers again").await;
}

#[tokio::test]
async fn a_cluster_whose_only_replica_is_frozen_has_no_data() {
    let mut servers = Topology::mysql(1).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_start(Lag::Frozen).await.unwrap();
    let stale = |metrics: &Metrics| {
        let age = metrics.value("sluice_signal_age_seconds", &[("signal", "lag")]);
        age > Some(3.0) && !is_open(metrics)
    };
    sluice.wait_for_metrics("the value is stale and the gate shut", SOON, stale).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
}

#[tokio::test]
async fn a_delayed_mysql_replica_is_left_out_until_the_delay_is_lifted() {
    a_delayed_replica_is_left_out(Topology::mysql(2).await.unwrap()).await;
}

#[tokio::test]
async fn a_delayed_mariadb_replica_is_left_out_until_the_delay_is_lifted() {
    a_delayed_replica_is_left_out(Topology::mariadb(2).await.unwrap()).await;
}

async fn a_delayed_replica_is_left_out(mut servers: Topology) {
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let delayed = servers.replicas.first().unwrap().addr().to_string();
    servers.replicas.first_mut().unwrap().lag_start(Lag::Delayed(30)).await.unwrap();
    wait_for_state(&sluice, &delayed, "delayed_on_purpose").await;
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let behind = |metrics: &Metrics| lag(metrics, &delayed) > Some(2.0) && is_open(metrics);
    sluice.wait_for_metrics("it is behind and the gate is open", SOON, behind).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    wait_for_state(&sluice, &delayed, "counted").await;
}

#[tokio::test]
async fn a_frozen_primary_is_not_lag() {
    let servers = Topology::mysql(1).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    servers.primary.freeze().unwrap();
    let stale = |metrics: &Metrics| {
        assert!(lag(metrics, "") < Some(1.0), "taken for lag: {:?}", lag(metrics, ""));
        metrics.value("sluice_signal_age_seconds", &[("signal", "lag")]) > Some(3.0)
    };
    sluice.wait_for_metrics("the value is stale", SOON, stale).await.unwrap();
    let unready = || async { Ok(sluice.http_get("/readyz").await?.status == 503) };
    wait_until("it is not ready", SOON, unready).await.unwrap();
    let reason = sluice.http_get("/readyz").await.unwrap().body;
    assert!(reason.contains("main") && reason.contains("does not answer"), "{reason}");
    assert_eq!(sluice.http_get("/healthz").await.unwrap().status, 200);

    servers.primary.thaw().unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let ready = || async { Ok(sluice.http_get("/readyz").await?.status == 200) };
    wait_until("it is ready", SOON, ready).await.unwrap();
}

#[tokio::test]
async fn lag_may_come_from_the_replicas_status() {
    for mut servers in [Topology::mysql(1).await.unwrap(), Topology::mariadb(1).await.unwrap()] {
        let sluice = start_with_probe(&servers, "source: replica_status").await;
        wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
        let tables = numbers(&servers.primary, HEARTBEAT_TABLES).await.unwrap();
        assert_eq!(tables, [0], "nothing is written");
        servers.replicas.first_mut().unwrap().lag_start(Lag::StoppedApplier).await.unwrap();
        wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
        servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
        wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    }
}

#[tokio::test]
async fn lag_may_come_from_a_query() {
    let servers = Topology::mysql(1).await.unwrap();
    let made =
        ["CREATE TABLE sluice.told (behind DECIMAL(6,3))", "INSERT INTO sluice.told VALUES (0.25)"];
    servers.primary.run_sql(&made).await.unwrap();
    let query = "source: { query: \"SELECT behind FROM sluice.told\" }";
    let sluice = start_with_probe(&servers, query).await;
    let told = |metrics: &Metrics| lag(metrics, "").is_some_and(|lag| is(lag, 0.25));
    sluice.wait_for_metrics("a quarter of a second", SOON, told).await.unwrap();
    servers.primary.run_sql(&["UPDATE sluice.told SET behind = 12.5"]).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
}

#[tokio::test]
async fn built_in_and_custom_signals_are_measured_on_both_servers() {
    let signals = "\
threads_running: { threshold: 100 }
history_list_length: { threshold: 1000000 }
connected: { status: Threads_connected, threshold: 100 }
constant: { query: \"SELECT 7\", threshold: 7 }
shard/threads: { status: Threads_running, threshold: 100, on: replicas }";
    for servers in [Topology::mysql(1).await.unwrap(), Topology::mariadb(1).await.unwrap()] {
        let config = Config::new(&servers).unwrap().signals(signals);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        for signal in ["threads_running", "history_list_length", "connected", "shard/threads"] {
            wait_for_signal(&sluice, signal, 1.0).await.unwrap();
        }
        // At its threshold a signal is shut.
        let labels = [("signal", "constant"), ("server", "")];
        let seven = |metrics: &Metrics| {
            metrics.value("sluice_signal_value", &labels).is_some_and(|value| is(value, 7.0))
        };
        sluice.wait_for_metrics("the constant is 7", SOON, seven).await.unwrap();
        wait_for_signal(&sluice, "constant", 0.0).await.unwrap();
    }
}

#[tokio::test]
async fn a_probe_that_may_not_log_in_is_told_in_log_and_readiness_and_stops_no_traffic() {
    let servers = Topology::mysql(1).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let wrong = [("SLUICE_PROBE_PASSWORD", "not-the-password")];
    let sluice =
        SluiceProcess::spawn(&config.render(), config.listen, config.admin, &wrong).unwrap();
    wait_for_log(&sluice, "check probe.user and its password").await;
    let ready = sluice.http_get("/readyz").await.unwrap();
    assert_eq!(ready.status, 503);
    assert!(ready.body.contains("1045"), "{}", ready.body);
    let log = sluice.log().unwrap();
    assert!(!log.contains("not-the-password"), "the password is in the log");
    let mut conn = integration::scenario::connect(&sluice, "web").await.unwrap();
    conn.query("SELECT 1").await.unwrap();
}

/// Sluice in front of these servers, with more keys below `probe`.
async fn start_with_probe(servers: &Topology, keys: &str) -> SluiceProcess {
    let config = Config::new(servers).unwrap();
    let plain = "password_env: SLUICE_PROBE_PASSWORD";
    let yaml = config.render().replace(plain, &format!("{plain}, {keys}"));
    let mut sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    sluice.wait_until_ready().await.unwrap();
    sluice
}

/// The lag of a server; of the cluster for `""`.
fn lag(metrics: &Metrics, server: &str) -> Option<f64> {
    metrics.value("sluice_signal_value", &[("signal", "lag"), ("server", server)])
}

fn is_open(metrics: &Metrics) -> bool {
    metrics.value("sluice_gate_open", &[("signal", "lag")]).is_some_and(|open| is(open, 1.0))
}

async fn wait_for_state(sluice: &SluiceProcess, server: &str, state: &str) {
    let what = format!("{server} is {state}");
    let labels = [("server", server), ("state", state)];
    let is_there = |metrics: &Metrics| is(metrics.sum("sluice_replica_state", &labels), 1.0);
    sluice.wait_for_metrics(&what, SOON, is_there).await.unwrap();
}

async fn wait_for_log(sluice: &SluiceProcess, text: &str) {
    let is_there = || async { Ok(sluice.log()?.contains(text)) };
    wait_until(&format!("{text:?} in the log"), SOON, is_there).await.unwrap();
}

const HEARTBEAT_TABLES: &str = "SELECT COUNT(*) FROM information_schema.tables \
                                WHERE table_schema = 'sluice' AND table_name = 'heartbeat'";
const SOON: Duration = Duration::from_secs(20);
