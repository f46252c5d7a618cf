//! Replicas of several sources, connections that have names, and what leaves out the only replica.

use std::net::SocketAddr;
use std::time::Duration;

use integration::ports::{free_port, loopback};
use integration::replica::Lag;
use integration::scenario::{wait_for_signal, wait_until};
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;

use super::{
    SOON, is_open, is_stopped, lag, start_probing, start_with_probe, wait_for_line, wait_for_state,
};

/// MariaDB's `SHOW REPLICA STATUS` tells of the connection without a name only: that this one was
/// delayed on purpose or stopped nobody saw.
pub(super) async fn a_named_connection_is_seen(servers: &Topology, sluice: &SluiceProcess) {
    let replica = servers.replicas.first().unwrap();
    let address = replica.addr().to_string();
    let port = servers.primary.port();
    let change = format!(
        "CHANGE MASTER 'shop' TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, \
         MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos, \
         MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1"
    );
    let run = async |statements: &[&str]| replica.server().run_sql(statements).await.unwrap();
    run(&["STOP SLAVE", "RESET SLAVE ALL", &change, "START SLAVE 'shop'"]).await;
    let delay = async |seconds: u32| {
        let change = format!("CHANGE MASTER 'shop' TO MASTER_DELAY={seconds}");
        run(&["STOP SLAVE 'shop'", &change, "START SLAVE 'shop'"]).await;
    };
    delay(30).await;
    wait_for_state(sluice, &address, "delayed_on_purpose").await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
    delay(0).await;
    wait_for_state(sluice, &address, "counted").await;
    run(&["STOP SLAVE 'shop' SQL_THREAD"]).await;
    is_stopped(sluice, &address, "applier_stopped", &["of channel shop", "somebody stopped it"])
        .await;
    run(&["START SLAVE 'shop' SQL_THREAD"]).await;
    wait_for_state(sluice, &address, "counted").await;

    let by_status = start_with_probe(servers, "source: replica_status").await;
    wait_for_state(&by_status, &address, "counted").await;
    // Beside one without a name that has nothing to do, and is delayed.
    let foreign = servers.replicas.get(1).unwrap();
    let port = foreign.addr().port();
    let begin = ["STOP SLAVE", "RESET SLAVE ALL", "RESET MASTER"];
    foreign.server().run_sql(&begin).await.unwrap();
    let change = format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='repl', \
         MASTER_PASSWORD='repl', MASTER_USE_GTID=no, MASTER_CONNECT_RETRY=1, MASTER_DELAY=30"
    );
    run(&[&change, "START SLAVE", "STOP SLAVE 'shop' SQL_THREAD"]).await;
    let lags = |metrics: &Metrics| lag(metrics, &address) > Some(1.5) && !is_open(metrics);
    by_status.wait_for_metrics("it lags", SOON, lags).await.unwrap();
    wait_for_state(sluice, &address, "applier_stopped").await;
    wait_for_signal(sluice, "lag", 0.0).await.unwrap();
}

/// The delay of a channel from elsewhere excused a replica whose own was stopped.
pub(super) async fn a_foreign_channel_excuses_nothing(servers: &Topology, sluice: &SluiceProcess) {
    let replica = servers.replicas.first().unwrap();
    let foreign = servers.replicas.get(1).unwrap();
    let address = replica.addr().to_string();
    foreign.server().run_sql(&["STOP REPLICA", "RESET REPLICA ALL"]).await.unwrap();
    says_nothing_of_another_primary(servers, foreign.addr(), replica.addr()).await;
    is_not_believed_ahead_of_the_primary(replica.addr()).await;
    let run = async |statements: &[&str]| replica.server().run_sql(statements).await.unwrap();
    let port = foreign.addr().port();
    let change = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, \
         SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_AUTO_POSITION=1, SOURCE_SSL=1, \
         SOURCE_CONNECT_RETRY=1 FOR CHANNEL 'hist'"
    );
    run(&[&change, "START REPLICA FOR CHANNEL 'hist'"]).await;
    let delay = async |channel: &str, seconds: u32| {
        let stop = format!("STOP REPLICA SQL_THREAD FOR CHANNEL '{channel}'");
        let change =
            format!("CHANGE REPLICATION SOURCE TO SOURCE_DELAY={seconds} FOR CHANNEL '{channel}'");
        let start = format!("START REPLICA SQL_THREAD FOR CHANNEL '{channel}'");
        run(&[&stop, &change, &start]).await;
    };
    // Its own does, once the primary is known.
    delay("", 30).await;
    wait_for_state(sluice, &address, "delayed_on_purpose").await;
    delay("", 0).await;
    wait_for_state(sluice, &address, "counted").await;
    let before = sluice.log().unwrap().len();
    delay("hist", 60).await;
    run(&["STOP REPLICA SQL_THREAD FOR CHANNEL 'hist'"]).await;
    run(&["STOP REPLICA SQL_THREAD FOR CHANNEL ''"]).await;
    is_stopped(sluice, &address, "applier_stopped", &["somebody stopped it"]).await;
    wait_for_signal(sluice, "lag", 0.0).await.unwrap();
    let log = sluice.log().unwrap();
    assert!(!log.get(before..).unwrap().contains("channel hist"), "{log}");
    run(&["START REPLICA SQL_THREAD FOR CHANNEL ''"]).await;
    wait_for_state(sluice, &address, "counted").await;
}

/// It told how far it was behind its source, which may be behind itself, and the gate was open.
async fn says_nothing_of_another_primary(
    servers: &Topology,
    primary: SocketAddr,
    replica: SocketAddr,
) {
    let config = Config::in_front_of(primary, vec![replica]).unwrap();
    let by_status = start_probing(&config, "source: replica_status").await;
    wait_for_state(&by_status, &replica.to_string(), "unreachable").await;
    let source = servers.primary.addr();
    let told = format!("{replica}: it replicates from {source}, not from the primary");
    let is_told = || async { Ok(by_status.http_get("/readyz").await?.body.contains(&told)) };
    wait_until(&told, SOON, is_told).await.unwrap();
    let shut = |metrics: &Metrics| !is_open(metrics);
    by_status.wait_for_metrics("it says nothing", SOON, shut).await.unwrap();
}

/// While the primary had not been reached since the start, its replica was taken at its word.
async fn is_not_believed_ahead_of_the_primary(replica: SocketAddr) {
    let nobody = loopback(free_port().unwrap());
    let config = Config::in_front_of(nobody, vec![replica]).unwrap();
    let plain = "password_env: SLUICE_PROBE_PASSWORD";
    let yaml = config.render().replace(plain, &format!("{plain}, source: replica_status"));
    let sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    let told = ["probe failed", &replica.to_string(), "whether that is the primary is not known"];
    wait_for_line(&sluice, &told).await;
    let metrics = sluice.metrics().await.unwrap();
    assert!(!is_open(&metrics) && lag(&metrics, "").is_none(), "{:?}", lag(&metrics, ""));
}

/// A filter that is set while it counts: the gate shut, and nothing said why.
pub(super) async fn heartbeats_that_pass_a_replica_by_are_told(
    servers: &Topology,
    sluice: &SluiceProcess,
) {
    let replica = servers.replicas.first().unwrap();
    let address = replica.addr().to_string();
    let filter = async |schemas: &str| {
        let change = format!("CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ({schemas})");
        let change = ["STOP REPLICA SQL_THREAD", &change, "START REPLICA SQL_THREAD"];
        replica.server().run_sql(&change).await.unwrap();
    };
    filter("sluice").await;
    let why = "a filter there leaves out the heartbeats (Replicate_Ignore_DB)";
    wait_for_line(sluice, &["heartbeats pass a replica by", &address, why, "let the schema"]).await;
    wait_for_signal(sluice, "lag", 0.0).await.unwrap();
    let note = format!("cluster main: replica {address}: {why}");
    assert!(sluice.http_get("/readyz").await.unwrap().body.contains(&note));
    assert!(sluice.http_get("/plain").await.unwrap().body.contains(why));
    filter("").await;
    wait_for_line(sluice, &["a replica's lag counts again", "before=counted", &address]).await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
    assert!(!sluice.http_get("/readyz").await.unwrap().body.contains(why));
}

/// MariaDB's default is MIXED: of the statements that it logs a filter by schema looks at the schema of their
/// session.
pub(super) async fn a_filter_is_judged_as_the_primary_logs(
    servers: &Topology,
    sluice: &SluiceProcess,
) {
    let replica = servers.replicas.first().unwrap();
    let address = replica.addr().to_string();
    let filter = async |set: &str| {
        let set = format!("SET GLOBAL {set}");
        replica.server().run_sql(&["STOP SLAVE", &set, "START SLAVE"]).await.unwrap();
    };
    filter("replicate_ignore_db = 'sluice'").await;
    let why = "a filter there leaves out the heartbeats (Replicate_Ignore_DB)";
    let parts = ["heartbeats pass a replica by", &address, why, "MariaDB: SET GLOBAL replicate_"];
    wait_for_line(sluice, &parts).await;
    wait_for_signal(sluice, "lag", 0.0).await.unwrap();
    // The sessions that are there go on as they began.
    let mixed = ["SET GLOBAL binlog_format = MIXED", "KILL USER 'sluice'"];
    servers.primary.run_sql(&mixed).await.unwrap();
    wait_for_line(sluice, &["a replica's lag counts again", "before=counted", &address]).await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();

    filter("replicate_do_db = 'sluice'").await;
    let why = "a filter there leaves out the heartbeats (Replicate_Do_DB)";
    let is_told = || async { Ok(sluice.http_get("/plain").await?.body.contains(why)) };
    wait_until(why, SOON, is_told).await.unwrap();
    filter("replicate_do_db = ''").await;
    filter("replicate_ignore_db = ''").await;
    wait_for_signal(sluice, "lag", 1.0).await.unwrap();
}

/// It was told as a probe that fails at each start at which the primary took longer to answer.
pub(super) async fn a_replica_that_answers_first_waits_for_the_primary(servers: &Topology) {
    let replica = servers.replicas.first().unwrap();
    let unseen = [
        "STOP REPLICA",
        "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 0",
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
        "SET GLOBAL replica_parallel_workers = 4",
        "SET GLOBAL replica_preserve_commit_order = OFF",
        "START REPLICA",
    ];
    replica.server().run_sql(&unseen).await.unwrap();
    let config = Config::new(servers).unwrap();
    servers.primary.freeze().unwrap();
    let sluice = SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    let asked = ["a replica's appliers may overtake one another", "Seconds_Behind_Source"];
    wait_for_line(&sluice, &asked).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    servers.primary.thaw().unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let log = sluice.log().unwrap();
    assert!(!log.contains("whether that is the primary is not known"), "{log}");
}

/// The lag had no data, and nothing said why.
pub(super) async fn what_leaves_out_the_only_replica_is_told(servers: &mut Topology) {
    servers.replicas.truncate(1);
    let replica = servers.replicas.first_mut().unwrap();
    let filter = [
        "STOP REPLICA FOR CHANNEL 'hist'",
        "RESET REPLICA ALL FOR CHANNEL 'hist'",
        "STOP REPLICA SQL_THREAD",
        "CHANGE REPLICATION FILTER REPLICATE_WILD_IGNORE_TABLE = ('sluice.%')",
        "START REPLICA SQL_THREAD",
    ];
    replica.server().run_sql(&filter).await.unwrap();
    let address = replica.addr().to_string();
    let sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let shows_none = format!("{address}: it has shown no heartbeat since Sluice looks");
    let shut = ["a gate shuts: the signal has no data", &shows_none, "replicate-ignore-db"];
    wait_for_line(&sluice, &shut).await;
    wait_for_line(&sluice, &["a replica is left out", "never_caught_up", "shown no heartbeat"])
        .await;
    let note = async |part: &str| {
        let part = format!("cluster main: lag has no data: {address}: {part}");
        let is_there = || async { Ok(sluice.http_get("/readyz").await?.body.contains(&part)) };
        wait_until(&part, SOON, is_there).await.unwrap();
    };
    note("it has shown no heartbeat").await;
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains("<td>it has shown no heartbeat"), "{page}");
    let replica = servers.replicas.first_mut().unwrap();
    replica.lag_start(Lag::StoppedApplier).await.unwrap();
    note("the applier (SQL thread) is stopped").await;
    replica.lag_start(Lag::Delayed(30)).await.unwrap();
    note("it stays 30 s behind on purpose").await;
    wait_for_line(&sluice, &["a replica is left out", "delayed_on_purpose", "without a delay"])
        .await;
    replica.lag_stop().await.unwrap();
    // As advised: else there would be no row to update.
    replica.server().run_sql(&["STOP REPLICA SQL_THREAD"]).await.unwrap();
    let rows = "SELECT GROUP_CONCAT('(', QUOTE(instance), ', ', seq, ')') FROM sluice.heartbeat";
    let rows: String = servers.primary.query_first(rows).await.unwrap().unwrap();
    let copy = format!("REPLACE INTO sluice.heartbeat (instance, seq) VALUES {rows}");
    let unfilter = [
        "SET SESSION sql_log_bin = 0",
        &*copy,
        "CHANGE REPLICATION FILTER REPLICATE_WILD_IGNORE_TABLE = ()",
        "START REPLICA SQL_THREAD",
    ];
    replica.server().run_sql(&unfilter).await.unwrap();
    wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
    let ready =
        || async { Ok(!sluice.http_get("/readyz").await?.body.contains("lag has no data")) };
    wait_until("nothing is told any more", SOON, ready).await.unwrap();
}
