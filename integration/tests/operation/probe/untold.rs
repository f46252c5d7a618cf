//! What heartbeats do not tell: an emptied table, a primary that takes no writes, and a replica that
//! lets nobody in.

use std::time::Duration;

use integration::replica::{Lag, Replica};
use integration::scenario::{is, numbers, wait_until};
use integration::server::Flavour;
use integration::sluice::{Metrics, SluiceProcess};
use integration::topology::Topology;
use mysql_async::prelude::Queryable as _;

use super::{SOON, is_open, lag, wait_for_line, wait_for_state};

/// The row of a process that has ended, on a server that deletes by key only.
pub(super) const FORMER_PROCESS: [&str; 3] = [
    "CREATE TABLE sluice.heartbeat (instance CHAR(32) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY, \
     seq BIGINT UNSIGNED NOT NULL, written_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))",
    "INSERT INTO sluice.heartbeat VALUES ('former', 7, NOW() - INTERVAL 2 DAY)",
    "SET GLOBAL sql_safe_updates = 1",
];

/// Defaults of sessions that a DBA may have made for others. Answers were cut off or refused, and behind
/// the first rule written at runtime a transaction stayed open, which showed no rule of another Sluice.
pub(super) const OTHER_DEFAULTS: &str = "SET GLOBAL sql_select_limit = 0, GLOBAL max_join_size = 1, \
    GLOBAL completion_type = 1, GLOBAL wait_timeout = 1 /*!50720 , GLOBAL max_execution_time = 1, \
    GLOBAL transaction_isolation = 'READ-UNCOMMITTED' */ \
    /*M!100301 , GLOBAL sql_mode = 'ORACLE,EMPTY_STRING_IS_NULL' */";

/// Of these two modes the one without the other: an empty text was NULL in the very statement that takes it
/// out, which failed as a whole (error 1231).
pub(super) const EMPTY_IS_NULL: &str =
    "SET GLOBAL sql_safe_updates = 1 /*M!100301 , GLOBAL sql_mode = 'EMPTY_STRING_IS_NULL' */";

const DEFAULTS: &str = "SET GLOBAL sql_select_limit = DEFAULT, GLOBAL max_join_size = DEFAULT, \
    GLOBAL completion_type = DEFAULT, GLOBAL wait_timeout = DEFAULT, GLOBAL sql_safe_updates = 0 \
    /*!50720 , GLOBAL max_execution_time = DEFAULT, GLOBAL transaction_isolation = DEFAULT */ \
    /*M!100301 , GLOBAL sql_mode = DEFAULT */";

/// With [`OTHER_DEFAULTS`] from the start: no probe has failed, and none found its session ended.
pub(super) async fn defaults_for_others_are_none_for_sluice(
    servers: &Topology,
    sluice: &SluiceProcess,
) {
    tokio::time::sleep(Duration::from_secs(3)).await;
    let log = sluice.log().unwrap();
    assert!(!log.contains("probe failed"), "{log}");
    set_everywhere(servers, DEFAULTS).await;
}

pub(super) async fn set_everywhere(servers: &Topology, settings: &str) {
    let replicas = servers.replicas.iter().map(Replica::server);
    for server in replicas.chain([&servers.primary]) {
        server.run_sql(&[settings]).await.unwrap();
    }
}

/// How many connections have left the primary without a login, as one does that wants TLS and is offered
/// none.
pub(super) async fn logins_broken_off(servers: &Topology) -> u64 {
    let question = "SHOW GLOBAL STATUS LIKE 'Aborted_connects'";
    let told: (String, u64) = servers.primary.query_first(question).await.unwrap().unwrap();
    told.1
}

/// Every new connection to a server without TLS was one: MariaDB logged a warning every five seconds.
pub(super) async fn no_more_are_broken_off(servers: &Topology, before: u64) {
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(logins_broken_off(servers).await, before);
}

/// Nothing is shown for a moment.
pub(super) async fn an_emptied_table_is_no_lag(servers: &Topology, sluice: &SluiceProcess) {
    for _ in 0..5 {
        servers.primary.run_sql(&["TRUNCATE TABLE sluice.heartbeat"]).await.unwrap();
        for _ in 0..20 {
            let metrics = sluice.metrics().await.unwrap();
            assert!(lag(&metrics, "") < Some(1.0), "{:?}", lag(&metrics, ""));
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    }
}

/// Also by an account that may write there.
pub(super) async fn where_nobody_may_write_no_heartbeat_is(
    servers: &mut Topology,
    sluice: &SluiceProcess,
) {
    let beats = "SELECT seq FROM sluice.heartbeat";
    servers.primary.run_sql(&["SET GLOBAL read_only = 1"]).await.unwrap();
    let told = || async {
        let page = sluice.http_get("/plain").await?.body;
        Ok(page.contains("no heartbeat is written") && page.contains("read_only is on"))
    };
    wait_until("it is told", SOON, told).await.unwrap();
    let last = numbers(&servers.primary, beats).await.unwrap();
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(numbers(&servers.primary, beats).await.unwrap(), last);
    let has_others = servers.replicas.len() > 1;
    if has_others {
        let replica = servers.replicas.last_mut().unwrap();
        replica.lag_start(Lag::StoppedApplier).await.unwrap();
        sluice.wait_for_metrics("no data", SOON, |metrics| !is_open(metrics)).await.unwrap();
    }
    let opened = opened(sluice);
    servers.primary.run_sql(&["SET GLOBAL read_only = 0"]).await.unwrap();
    let goes_on = || async { Ok(numbers(&servers.primary, beats).await? > last) };
    wait_until("it goes on", SOON, goes_on).await.unwrap();
    if has_others {
        stays_shut_over_who_stopped_meanwhile(servers, sluice, opened).await;
    }
}

/// Its lag began at 0 with the next heartbeat, and the gate was open until that was the threshold.
async fn stays_shut_over_who_stopped_meanwhile(
    servers: &mut Topology,
    sluice: &SluiceProcess,
    before: usize,
) {
    let replica = servers.replicas.last_mut().unwrap();
    let server = replica.addr().to_string();
    let lags = |metrics: &Metrics| lag(metrics, &server) > Some(1.5) && !is_open(metrics);
    sluice.wait_for_metrics("its lag is told", SOON, lags).await.unwrap();
    assert_eq!(opened(sluice), before, "{}", sluice.log().unwrap());
    replica.lag_stop().await.unwrap();
    sluice.wait_for_metrics("the gate opens", SOON, is_open).await.unwrap();
    wait_for_state(sluice, &server, "counted").await;
}

fn opened(sluice: &SluiceProcess) -> usize {
    sluice.log().unwrap().matches("a gate opens").count()
}

/// Of somebody's global read lock there its lag said nothing.
pub(super) async fn what_holds_a_replica_is_told(servers: &mut Topology, sluice: &SluiceProcess) {
    let replica = servers.replicas.first_mut().unwrap();
    let server = replica.addr().to_string();
    let lock = match replica.server().flavour() {
        Flavour::MySql => "global read lock",
        Flavour::MariaDb => "backup lock",
    };
    let told = format!("replica {server}: its replication is held: Waiting for {lock}");
    let is_told = || async { Ok(sluice.http_get("/readyz").await?.body.contains(&told)) };
    replica.lag_start(Lag::GlobalReadLock).await.unwrap();
    wait_until("it is told", SOON, is_told).await.unwrap();
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains("end the session that holds the lock"), "{page}");
    replica.lag_stop().await.unwrap();
    sluice.wait_for_metrics("the gate opens", SOON, is_open).await.unwrap();
    let is_over = || async { Ok(!is_told().await?) };
    wait_until("it is told no more", SOON, is_over).await.unwrap();
}

/// It was promoted, or somebody has detached it.
pub(super) async fn a_detached_replica_is_told(servers: &Topology, sluice: &SluiceProcess) {
    // The one of which fewer lines have been told.
    let replica = servers.replicas.last().unwrap();
    let server = replica.addr().to_string();
    let detach = match replica.server().flavour() {
        Flavour::MySql => ["STOP REPLICA", "RESET REPLICA ALL"],
        Flavour::MariaDb => ["STOP SLAVE", "RESET SLAVE ALL"],
    };
    replica.server().run_sql(&detach).await.unwrap();
    wait_for_state(sluice, &server, "receiver_stopped").await;
    let told = ["WARN", &server, "it is not a replica", "take it out of"];
    wait_for_line(sluice, &told).await;
    let ready = sluice.http_get("/readyz").await.unwrap().body;
    assert!(ready.contains(&format!("replica {server}: it is not a replica")), "{ready}");
}

/// The applier waits for the heartbeat's table, and so does the probe. It was left out after three
/// seconds, like one that is dead, and the gate opened over it.
pub(super) async fn a_replica_whose_heartbeats_are_locked_counts(
    servers: &Topology,
    sluice: &SluiceProcess,
) {
    let replica = servers.replicas.first().unwrap();
    let server = replica.addr().to_string();
    let mut holder = replica.server().admin().await.unwrap();
    holder.query_drop("LOCK TABLES sluice.heartbeat WRITE").await.unwrap();
    counts_and_lags(sluice, &server).await;
    let ready = sluice.http_get("/readyz").await.unwrap().body;
    let held = "its replication is held: Waiting for table metadata lock";
    assert!(ready.contains(&format!("replica {server}: {held}")), "{ready}");
    holder.query_drop("UNLOCK TABLES").await.unwrap();
    wait_for_state(sluice, &server, "counted").await;
    sluice.wait_for_metrics("the gate opens", SOON, is_open).await.unwrap();
}

/// For longer than one that is silent does.
async fn counts_and_lags(sluice: &SluiceProcess, server: &str) {
    let shut = |metrics: &Metrics| {
        let counted = metrics.value("sluice_replica_counted", &[("server", server)]);
        lag(metrics, "") > Some(4.5) && counted.is_some_and(|it| is(it, 1.0)) && !is_open(metrics)
    };
    sluice.wait_for_metrics("its lag counts and grows", SOON, shut).await.unwrap();
}

/// It is at its `max_connections`, and its applier stands. It was left out after three seconds, like one
/// that is dead, and the gate opened over it.
pub(super) async fn a_replica_that_lets_nobody_in_counts(
    servers: &Topology,
    sluice: &SluiceProcess,
) {
    let replica = servers.replicas.first().unwrap();
    let server = replica.addr().to_string();
    let mut root = replica.server().admin().await.unwrap();
    let probes = "SELECT id FROM information_schema.processlist WHERE user = 'sluice'";
    root.query_drop("SET GLOBAL max_connections = 1").await.unwrap();
    root.query_drop("STOP REPLICA SQL_THREAD").await.unwrap();
    for id in root.query::<u64, _>(probes).await.unwrap() {
        root.query_drop(format!("KILL {id}")).await.unwrap();
    }
    counts_and_lags(sluice, &server).await;
    let ready = sluice.http_get("/readyz").await.unwrap().body;
    let told = format!("replica {server}: it refuses its probe: error 1040");
    assert!(ready.contains(&told), "{ready}");
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains("raise max_connections"), "{page}");

    root.query_drop("SET GLOBAL max_connections = DEFAULT").await.unwrap();
    root.query_drop("START REPLICA SQL_THREAD").await.unwrap();
    wait_for_state(sluice, &server, "counted").await;
    sluice.wait_for_metrics("the gate opens", SOON, is_open).await.unwrap();
}
