//! The probes against real servers: lag is seen, servers that cannot be measured are left out and come
//! back, and what is not lag is not taken for it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::time::Duration;

use integration::replica::Lag;
use integration::scenario::{is, numbers, wait_for_signal, wait_for_sum, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;

mod channels;
mod hangs;
mod members;
mod query;
mod untold;
mod whereabouts;

#[tokio::test]
async fn a_mysql_replica_that_stops_applying_lags_and_one_that_has_caught_up_does_not() {
    lag_rises_and_falls(Topology::mysql(2).await.unwrap()).await;
}

#[tokio::test]
async fn a_mariadb_replica_that_stops_applying_lags_and_one_that_has_caught_up_does_not() {
    lag_rises_and_falls(Topology::mariadb(1).await.unwrap()).await;
}

async fn lag_rises_and_falls(mut servers: Topology) {
    let config = Config::new(&servers).unwrap();
    servers.primary.run_sql(&untold::FORMER_PROCESS).await.unwrap();
    untold::set_everywhere(&servers, untold::OTHER_DEFAULTS).await;
    servers.replicas.first().unwrap().server().run_sql(&[untold::EMPTY_IS_NULL]).await.unwrap();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    wait_for_log(&sluice, "removed heartbeat rows older than a day").await;
    untold::defaults_for_others_are_none_for_sluice(&servers, &sluice).await;
    let beats = "SELECT seq FROM sluice.heartbeat";
    let before = numbers(&servers.primary, beats).await.unwrap();
    assert_eq!(before.len(), 1, "one Sluice has one row");

    let replica = servers.replicas.first_mut().unwrap();
    let slow = replica.addr().to_string();
    // The signal has a value as soon as one of them counts.
    wait_for_state(&sluice, &slow, "counted").await;
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
    let stopped = ["replication is stopped; its lag grows and counts", "somebody stopped it"];
    is_stopped(&sluice, &slow, "applier_stopped", &stopped).await;
    wait_for_line(&sluice, &["a gate shuts", "signal=lag", "threshold=1", &slow]).await;

    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    let fine = |metrics: &Metrics| lag(metrics, "") < Some(0.5) && is_open(metrics);
    sluice.wait_for_metrics("the lag is gone", SOON, fine).await.unwrap();
    wait_for_state(&sluice, &slow, "counted").await;
    wait_for_line(&sluice, &["a replica's lag counts again", "before=applier_stopped"]).await;
    wait_for_line(&sluice, &["a gate opens", "signal=lag"]).await;

    untold::an_emptied_table_is_no_lag(&servers, &sluice).await;
    servers.replicas.first_mut().unwrap().lag_start(Lag::StoppedReceiver).await.unwrap();
    is_stopped(&sluice, &slow, "receiver_stopped", &["state=receiver_stopped"]).await;
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    wait_for_state(&sluice, &slow, "counted").await;

    an_applier_stops_at_an_error(&servers, &sluice).await;
    a_receiver_cannot_log_in(&servers, &sluice).await;
    if servers.replicas.len() > 1 {
        one_may_lag_for_longer(&mut servers, &config, &sluice).await;
        untold::a_replica_that_lets_nobody_in_counts(&servers, &sluice).await;
        untold::a_replica_whose_heartbeats_are_locked_counts(&servers, &sluice).await;
    }
    untold::what_holds_a_replica_is_told(&mut servers, &sluice).await;
    untold::where_nobody_may_write_no_heartbeat_is(&mut servers, &sluice).await;
    let after = numbers(&servers.primary, beats).await.unwrap();
    assert!(after.len() == 1 && after > before, "{before:?} {after:?}");
    untold::a_detached_replica_is_told(&servers, &sluice).await;
}

/// A threshold of its own, in force by a reload: what would shut the gate anywhere else does not
/// for this one, until its own is reached.
async fn one_may_lag_for_longer(servers: &mut Topology, config: &Config, sluice: &SluiceProcess) {
    let replica = servers.replicas.first_mut().unwrap();
    let server = replica.addr().to_string();
    let with_own = |threshold: &str| {
        let own = format!("{{ host: {server}, group: reports, threshold: {threshold} }}");
        let list = format!("replicas: [{server}");
        assert!(config.render().contains(&list));
        config.render().replace(&list, &format!("replicas: [{own}"))
    };
    let is_own = |metrics: &Metrics, threshold: f64| {
        let labels = [("server", &*server), ("group", "reports")];
        let own = metrics.value("sluice_replica_lag_threshold_seconds", &labels);
        own.is_some_and(|own| is(own, threshold))
    };
    sluice.write_config(&with_own("30s")).unwrap();
    sluice.wait_for_metrics("30 s for it", SOON, |metrics| is_own(metrics, 30.0)).await.unwrap();
    replica.lag_start(Lag::StoppedApplier).await.unwrap();
    let lags = |metrics: &Metrics| lag(metrics, &server) > Some(1.5);
    let metrics = sluice.wait_for_metrics("it lags", SOON, lags).await.unwrap();
    assert!(is_open(&metrics) && is_own(&metrics, 30.0), "{:?}", lag(&metrics, ""));
    // Who reads from replicas and names a threshold means all of them.
    let read = sluice.http_get("/check-read/reader/mysql/main/1.0").await.unwrap();
    let told = format!("\"Server\":\"{server}\"");
    assert!(read.status == 429 && read.body.contains(&told), "{read:?}");
    let read = sluice.http_get("/check-read/reader/mysql/main/20").await.unwrap();
    assert_eq!(read.status, 200, "{read:?}");

    sluice.write_config(&with_own("1500ms")).unwrap();
    let is_shut = |metrics: &Metrics| {
        let threshold = metrics.value("sluice_signal_threshold", &[("signal", "lag")]);
        !is_open(metrics) && threshold.is_some_and(|threshold| is(threshold, 1.5))
    };
    sluice.wait_for_metrics("too much for it", SOON, is_shut).await.unwrap();
    wait_for_line(sluice, &["a gate shuts", "threshold=1.5", &server]).await;
    let page = sluice.http_get("/plain").await.unwrap().body;
    let parts = [format!(" at {server}<td>1.5 s"), format!("<td>{server}<td>replica, reports<td>")];
    assert!(parts.iter().all(|part| page.contains(part)), "{parts:?}: {page}");
    replica.lag_stop().await.unwrap();
    sluice.wait_for_metrics("it has caught up", SOON, is_open).await.unwrap();
}

/// A row is there already: the commonest way in which an applier stops.
async fn an_applier_stops_at_an_error(servers: &Topology, sluice: &SluiceProcess) {
    let replica = servers.replicas.first().unwrap();
    let server = replica.server();
    servers.primary.run_sql(&["CREATE TABLE test.clash (n INT PRIMARY KEY)"]).await.unwrap();
    replica.wait_for(&servers.primary, SOON).await.unwrap();
    let row = "INSERT INTO test.clash VALUES (1)";
    server.run_sql(&["SET SESSION sql_log_bin = 0", row]).await.unwrap();
    servers.primary.run_sql(&[row]).await.unwrap();
    let address = replica.addr().to_string();
    is_stopped(sluice, &address, "applier_stopped", &["error 1062", "mend what the error says"])
        .await;
    let log = sluice.log().unwrap();
    assert!(!log.contains("VALUES (1)"), "a statement's text is in the log: {log}");
    let start = match server.flavour() {
        Flavour::MySql => "START REPLICA",
        Flavour::MariaDb => "START SLAVE",
    };
    let mended = ["SET SESSION sql_log_bin = 0", "DELETE FROM test.clash", start];
    server.run_sql(&mended).await.unwrap();
    wait_for_state(sluice, &address, "counted").await;
}

/// It is not stopped, and receives nothing all the same.
async fn a_receiver_cannot_log_in(servers: &Topology, sluice: &SluiceProcess) {
    let replica = servers.replicas.first().unwrap();
    let server = replica.server();
    let (stop, change, start) = match server.flavour() {
        Flavour::MySql => {
            ("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD", "START REPLICA")
        }
        Flavour::MariaDb => ("STOP SLAVE", "CHANGE MASTER TO MASTER_PASSWORD", "START SLAVE"),
    };
    server.run_sql(&[stop, &format!("{change} = 'wrong'"), start]).await.unwrap();
    let address = replica.addr().to_string();
    is_stopped(sluice, &address, "receiver_stopped", &["cannot connect", "1045"]).await;
    server.run_sql(&[stop, &format!("{change} = 'repl'"), start]).await.unwrap();
    wait_for_state(sluice, &address, "counted").await;
}

/// Replication that is stopped shows everywhere, and the replica still counts.
async fn is_stopped(sluice: &SluiceProcess, server: &str, state: &str, in_line: &[&str]) {
    wait_for_state(sluice, server, state).await;
    let metrics = sluice.metrics().await.unwrap();
    assert_eq!(metrics.value("sluice_replica_counted", &[("server", server)]), Some(1.0));
    wait_for_line(sluice, &[&["WARN", server][..], in_line].concat()).await;
    let page = sluice.http_get("/plain").await.unwrap().body;
    let shown = format!("<td>{server}<td>replica<td>{}, counts<td>", state.replace('_', " "));
    assert!(page.contains(&shown) && page.contains("take it out of"), "{shown}: {page}");
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
    let ready = sluice.http_get("/readyz").await.unwrap().body;
    assert!(ready.starts_with(&format!("ready\ncluster main: replica {frozen} is un")), "{ready}");

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
    let mut servers = Topology::mysql(2).await.unwrap();
    let sluice = a_delayed_replica_is_left_out(&mut servers).await;
    channels::heartbeats_that_pass_a_replica_by_are_told(&servers, &sluice).await;
    channels::a_foreign_channel_excuses_nothing(&servers, &sluice).await;
    drop(sluice);
    channels::what_leaves_out_the_only_replica_is_told(&mut servers).await;
}

#[tokio::test]
async fn a_delayed_mariadb_replica_is_left_out_until_the_delay_is_lifted() {
    let mut servers = Topology::mariadb(2).await.unwrap();
    let sluice = a_delayed_replica_is_left_out(&mut servers).await;
    channels::a_filter_is_judged_as_the_primary_logs(&servers, &sluice).await;
    // Of one replica ten lines are told at once.
    drop(sluice);
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    let replica = servers.replicas.first().unwrap().addr().to_string();
    wait_for_state(&sluice, &replica, "counted").await;
    channels::a_named_connection_is_seen(&servers, &sluice).await;
}

async fn a_delayed_replica_is_left_out(servers: &mut Topology) -> SluiceProcess {
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let delayed = servers.replicas.first().unwrap().addr().to_string();
    servers.replicas.first_mut().unwrap().lag_start(Lag::Delayed(30)).await.unwrap();
    wait_for_state(&sluice, &delayed, "delayed_on_purpose").await;
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let behind = |metrics: &Metrics| lag(metrics, &delayed) > Some(2.0) && is_open(metrics);
    sluice.wait_for_metrics("it is behind and the gate is open", SOON, behind).await.unwrap();
    servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
    wait_for_state(&sluice, &delayed, "counted").await;
    sluice
}

/// A transaction waits on the replica for a table while heartbeats pass it by.
#[tokio::test]
async fn heartbeats_that_overtake_what_waits_on_a_replica_do_not_hide_its_lag() {
    let mysql = [
        "STOP REPLICA SQL_THREAD",
        "SET GLOBAL replica_parallel_workers = 4",
        "SET GLOBAL replica_preserve_commit_order = OFF",
        "START REPLICA SQL_THREAD",
    ];
    let mariadb = [
        "STOP SLAVE SQL_THREAD",
        "SET GLOBAL slave_parallel_threads = 4",
        "START SLAVE SQL_THREAD",
    ];
    // In MySQL one heartbeat overtakes and leaves a gap, for the next one waits for all before that; in
    // MariaDB's other domain all do.
    let has_gap = "SELECT @@GLOBAL.gtid_executed REGEXP ':[0-9]+(-[0-9]+)?:[0-9]'";
    let beats = "SELECT seq FROM sluice.heartbeat";
    for (mut servers, settings, write, tells) in [
        (Topology::mysql(1).await.unwrap(), &mysql[..], "INSERT INTO test.t VALUES (1)", has_gap),
        (
            Topology::mariadb(1).await.unwrap(),
            &mariadb[..],
            "SET STATEMENT gtid_domain_id = 7 FOR INSERT INTO test.t VALUES (1)",
            beats,
        ),
    ] {
        servers.primary.run_sql(&["CREATE TABLE test.t (id INT PRIMARY KEY)"]).await.unwrap();
        servers.wait_in_sync(SOON).await.unwrap();
        let replica = servers.replicas.first_mut().unwrap();
        replica.server().run_sql(settings).await.unwrap();
        let slow = replica.addr().to_string();
        let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
        wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
        let kept = sluice
            .metrics()
            .await
            .unwrap()
            .value("sluice_replica_keeps_commit_order", &[("cluster", "main"), ("server", &slow)]);
        assert!(kept.is_some_and(|kept| is(kept, 0.0)), "{kept:?}");

        let replica = servers.replicas.first_mut().unwrap();
        replica.lag_start(Lag::LockedTable("test.t".into())).await.unwrap();
        let mut before = numbers(replica.server(), tells).await.unwrap();
        assert!(tells == beats || before == [0], "{before:?}");
        servers.primary.run_sql(&[write]).await.unwrap();
        if tells == beats {
            before = numbers(replica.server(), tells).await.unwrap();
        }
        wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
        let overtakes = async || Ok(numbers(replica.server(), tells).await? > before);
        wait_until("a heartbeat overtakes", SOON, overtakes).await.unwrap();
        wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
        if tells == beats {
            // Its Seconds_Behind_Master is that of the heartbeats: 0 or 1.
            let held = "its replication is held: Waiting for table metadata lock";
            let page = || async { Ok(sluice.http_get("/plain").await?.body.contains(held)) };
            wait_until(held, SOON, page).await.unwrap();
            for _ in 0..30 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                assert!(page().await.unwrap(), "it has applied all?");
            }
        }
        replica.lag_stop().await.unwrap();
        wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    }
}

#[tokio::test]
async fn a_frozen_primary_is_not_lag() {
    let servers = Topology::mysql(1).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    freeze_between_heartbeats(&servers, &sluice).await;
    let stale = |metrics: &Metrics| {
        assert!(lag(metrics, "") < Some(1.0), "taken for lag: {:?}", lag(metrics, ""));
        metrics.value("sluice_signal_age_seconds", &[("signal", "lag")]) > Some(3.0)
    };
    sluice.wait_for_metrics("the value is stale", SOON, stale).await.unwrap();
    let unready = || async { Ok(sluice.http_get("/readyz").await?.status == 503) };
    wait_until("it is not ready", SOON, unready).await.unwrap();
    let reason = sluice.http_get("/readyz").await.unwrap().body;
    assert!(reason.contains("main") && reason.contains("does not answer"), "{reason}");
    let unwritten = "no heartbeat is written: the primary has not answered for ";
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains(unwritten), "{page}");
    wait_for_line(&sluice, &["a gate shuts: the signal has no data", unwritten]).await;
    wait_for_line(&sluice, &["a replica is left out", unwritten]).await;
    assert_eq!(sluice.http_get("/healthz").await.unwrap().status, 200);

    servers.primary.thaw().unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let ready = || async { Ok(sluice.http_get("/readyz").await?.status == 200) };
    wait_until("it is ready", SOON, ready).await.unwrap();
    drop(sluice);
    channels::a_replica_that_answers_first_waits_for_the_primary(&servers).await;
}

/// A heartbeat that is committed and not yet sent as the primary freezes is lag, and seen as lag: then
/// once more.
async fn freeze_between_heartbeats(servers: &Topology, sluice: &SluiceProcess) {
    for again in [true, true, false] {
        servers.primary.freeze().unwrap();
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let seen = lag(&sluice.metrics().await.unwrap(), "");
        if seen < Some(1.0) {
            break;
        }
        assert!(again, "taken for lag three times: {seen:?}");
        servers.primary.thaw().unwrap();
        wait_for_signal(sluice, "lag", 1.0).await.unwrap();
    }
}

#[tokio::test]
async fn built_in_and_custom_signals_are_measured_on_both_servers() {
    let signals = "\
threads_running: { threshold: 100 }
history_list_length: { threshold: 1000000 }
connected: { status: Threads_connected, threshold: 100 }
constant: { query: \"SELECT 7\", threshold: 7 }
jobs: { query: \"SELECT COUNT(*) FROM test.jobs\", threshold: 100 }
shard/threads: { status: Threads_running, threshold: 100, on: replicas }";
    for servers in [Topology::mysql(1).await.unwrap(), Topology::mariadb(1).await.unwrap()] {
        servers.primary.run_sql(&["CREATE TABLE test.jobs (n INT)"]).await.unwrap();
        servers.primary.run_sql(&["GRANT SELECT ON test.* TO 'sluice'@'%'"]).await.unwrap();
        let config = Config::new(&servers).unwrap().signals(signals);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let measured =
            ["threads_running", "history_list_length", "connected", "jobs", "shard/threads"];
        for signal in measured {
            wait_for_signal(&sluice, signal, 1.0).await.unwrap();
        }
        // At its threshold a signal is shut.
        let labels = [("signal", "constant"), ("server", "")];
        let seven = |metrics: &Metrics| {
            metrics.value("sluice_signal_value", &labels).is_some_and(|value| is(value, 7.0))
        };
        sluice.wait_for_metrics("the constant is 7", SOON, seven).await.unwrap();
        wait_for_signal(&sluice, "constant", 0.0).await.unwrap();
        hangs::questions_that_hang_leave_few_sessions(&servers, &sluice).await;
    }
}

#[tokio::test]
async fn a_probe_that_may_not_log_in_and_a_broken_file_are_told_and_stop_no_traffic() {
    let servers = Topology::mysql(1).await.unwrap();
    let config = Config::new(&servers).unwrap();
    let wrong = [("SLUICE_PROBE_PASSWORD", "not-the-password")];
    let mut sluice =
        SluiceProcess::spawn(&config.render(), config.listen, config.admin, &wrong).unwrap();
    wait_for_log(&sluice, "check probe.user and its password").await;
    // A server that refuses a password is there for others.
    sluice.wait_until_ready().await.unwrap();
    let up = |metrics: &Metrics| metrics.sum("sluice_probe_up", &[]);
    let failing = |metrics: &Metrics| {
        metrics.value("sluice_primary_reachable", &[("cluster", "main")]) == Some(1.0)
            && metrics.matching("sluice_probe_up", &[]).count() == 2
            && is(up(metrics), 0.0)
    };
    sluice.wait_for_metrics("the probes fail", SOON, failing).await.unwrap();
    let mut conn = integration::scenario::connect(&sluice, "web").await.unwrap();
    conn.query("SELECT 1").await.unwrap().accepted().unwrap();

    sluice.write_config("rules: [").unwrap();
    let broken = "sluice_config_last_reload_successful";
    wait_for_sum(&sluice, broken, &[], 0.0).await.unwrap();
    let ready = sluice.http_get("/readyz").await.unwrap();
    assert_eq!((ready.status, ready.body.lines().next()), (200, Some("ready")));
    let page = sluice.http_get("/plain").await.unwrap().body;
    for part in ["the primary refuses its probe", "1045", "the configuration file has faults"] {
        assert!(ready.body.contains(part) && page.contains(part), "{part}: {}", ready.body);
    }
    assert!(page.contains("Ready."), "{page}");
    let log = sluice.log().unwrap();
    assert!(!log.contains("not-the-password"), "the password is in the log");
    conn.query("SELECT 1").await.unwrap().accepted().unwrap();
}

#[tokio::test]
async fn a_replica_that_may_not_be_asked_says_which_right_is_missing() {
    let servers = Topology::mysql(1).await.unwrap();
    let revoke = "REVOKE REPLICATION CLIENT ON *.* FROM 'sluice'@'%'";
    servers.primary.run_sql(&[revoke]).await.unwrap();
    // Who is logged in when a global privilege goes keeps it, so the replica has to have the REVOKE first.
    servers.wait_in_sync(SOON).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    wait_for_line(&sluice, &["WARN", "replica status", "GRANT REPLICATION CLIENT"]).await;
    let page = || async {
        let page = sluice.http_get("/plain").await?.body;
        Ok(page.contains("it does not tell its replication") && page.contains("SLAVE MONITOR"))
    };
    wait_until("the page says it", SOON, page).await.unwrap();
}

/// Sluice in front of these servers, with more keys below `probe`.
async fn start_with_probe(servers: &Topology, keys: &str) -> SluiceProcess {
    start_probing(&Config::new(servers).unwrap(), keys).await
}

async fn start_probing(config: &Config, keys: &str) -> SluiceProcess {
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

/// Waits for a line with all of these parts.
async fn wait_for_line(sluice: &SluiceProcess, parts: &[&str]) {
    let is_there = || async {
        Ok(sluice.log()?.lines().any(|line| parts.iter().all(|part| line.contains(part))))
    };
    wait_until(&format!("a line with {parts:?}"), SOON, is_there).await.unwrap();
}

async fn wait_for_log(sluice: &SluiceProcess, text: &str) {
    wait_for_line(sluice, &[text]).await;
}
const SOON: Duration = Duration::from_secs(20);
