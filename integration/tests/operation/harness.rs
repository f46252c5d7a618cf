//! The ground itself, without Sluice: servers start, replicate, lag on purpose and go away.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::fs;
use std::time::{Duration, Instant};

use integration::client;
use integration::error::HarnessError;
use integration::raw::{Execute, Login, Param, RawConn, Types, capability};
use integration::replica::{Lag, Replica};
use integration::server::{Flavour, PerformanceSchema};
use integration::topology::{Topology, TopologyOptions};
use mysql_async::prelude::Queryable;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn mysql_replicas_follow_and_lag_in_every_way_on_purpose() {
    let mut servers = Topology::mysql(2).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let healthy = servers.replicas.pop().unwrap();
    let mut lagging = servers.replicas.pop().unwrap();
    for how in ways_to_lag() {
        assert_lags_until_told_otherwise(&servers, &mut lagging, &healthy, how).await;
    }
}

#[tokio::test]
async fn mariadb_replicas_follow_and_lag_in_every_way_on_purpose() {
    let mut servers = Topology::mariadb(2).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    let healthy = servers.replicas.pop().unwrap();
    let mut lagging = servers.replicas.pop().unwrap();
    for how in ways_to_lag() {
        assert_lags_until_told_otherwise(&servers, &mut lagging, &healthy, how).await;
    }
}

#[tokio::test]
async fn slow_commits_give_a_mysql_replica_a_known_capacity() {
    assert_capacity_is_limited(Topology::mysql(1).await.unwrap()).await;
}

#[tokio::test]
async fn slow_commits_give_a_mariadb_replica_a_known_capacity() {
    assert_capacity_is_limited(Topology::mariadb(1).await.unwrap()).await;
}

#[tokio::test]
async fn a_primary_comes_back_with_its_data_after_a_crash_and_a_shutdown() {
    let mut servers = Topology::mysql(1).await.unwrap();
    servers.primary.run_sql(&[TABLE, "INSERT INTO t VALUES (1)"]).await.unwrap();
    servers.primary.crash();
    assert!(client::connect(servers.primary.addr(), "app").await.is_err());
    servers.primary.revive().await.unwrap();
    servers.primary.shut_down().await.unwrap();
    servers.primary.revive().await.unwrap();
    servers.primary.run_sql(&["INSERT INTO t VALUES (2)"]).await.unwrap();
    servers.wait_in_sync(SOON).await.unwrap();
    assert_eq!(count(&servers.replicas[0]).await, 2);
}

#[tokio::test]
async fn the_probe_account_has_what_it_needs_and_no_more_on_both_servers() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let options = TopologyOptions {
            performance_schema: PerformanceSchema::On,
            ..TopologyOptions::new(flavour, 1)
        };
        let servers = Topology::start(options).await.unwrap();
        let mut primary = client::connect(servers.primary.addr(), "sluice").await.unwrap();
        for sql in [
            "CREATE TABLE sluice.heartbeat (id INT PRIMARY KEY, ts BIGINT)",
            "INSERT INTO sluice.heartbeat VALUES (1, 1)",
            "UPDATE sluice.heartbeat SET ts = 2",
            "SELECT COUNT(*) FROM performance_schema.session_connect_attrs",
            "SHOW PROCESSLIST",
        ] {
            primary.query_drop(sql).await.unwrap_or_else(|e| panic!("{flavour:?} {sql}: {e}"));
        }
        assert!(primary.query_drop("CREATE TABLE test.t (id INT)").await.is_err());
        servers.wait_in_sync(SOON).await.unwrap();
        let mut replica = client::connect(servers.replicas[0].addr(), "sluice").await.unwrap();
        let status = match flavour {
            Flavour::MySql => "SHOW REPLICA STATUS",
            Flavour::MariaDb => "SHOW SLAVE STATUS",
        };
        replica.query_drop(status).await.unwrap();
        let ts: Option<i64> = replica.query_first("SELECT ts FROM heartbeat").await.unwrap();
        assert_eq!(ts, Some(2));
    }
}

#[tokio::test]
async fn connection_attributes_of_both_clients_reach_the_server() {
    let options = TopologyOptions {
        performance_schema: PerformanceSchema::On,
        ..TopologyOptions::new(Flavour::MySql, 0)
    };
    let servers = Topology::start(options).await.unwrap();
    let sql = "SELECT ATTR_VALUE FROM performance_schema.session_connect_attrs \
               WHERE PROCESSLIST_ID = CONNECTION_ID() AND ATTR_NAME = 'sluice_app'";
    let attributes = [("sluice_app", "nightly:etl")];
    let addr = servers.primary.addr();
    let mut conn = client::connect_with_attributes(addr, "admin", &attributes).await.unwrap();
    let seen: Option<String> = conn.query_first(sql).await.unwrap();
    assert_eq!(seen.as_deref(), Some("nightly:etl"));
    let login = Login::new("admin").attribute("sluice_app", "nightly:etl");
    let mut raw = RawConn::open(addr, &login).await.unwrap();
    assert_eq!(raw.query(sql).await.unwrap().first_text().as_deref(), Some("nightly:etl"));
}

#[tokio::test]
async fn the_raw_client_speaks_text_and_binary_to_mysql_with_both_eof_styles() {
    let servers = Topology::mysql(0).await.unwrap();
    let addr = servers.primary.addr();
    // The first login of an account needs the RSA key, the second is answered from the cache.
    for expected in [&[0x01, 0x04], &[0x01, 0x03]] {
        let conn = RawConn::open(addr, &Login::new("app")).await.unwrap();
        let exchange = conn.login_packets().iter().any(|p| p.payload == expected);
        assert!(exchange, "{:?}", conn.login_packets());
        conn.quit().await.unwrap();
    }
    speaks_text_and_binary(addr, Login::new("app")).await;
    speaks_text_and_binary(addr, Login::new("app").without(capability::DEPRECATE_EOF)).await;
    let with_all = capability::QUERY_ATTRIBUTES | capability::OPTIONAL_METADATA;
    speaks_text_and_binary(addr, Login::new("app").with(with_all)).await;
}

#[tokio::test]
async fn the_raw_client_speaks_text_and_binary_to_mariadb_with_both_eof_styles() {
    let servers = Topology::mariadb(0).await.unwrap();
    let addr = servers.primary.addr();
    speaks_text_and_binary(addr, Login::new("app")).await;
    speaks_text_and_binary(addr, Login::new("app").without(capability::DEPRECATE_EOF)).await;
    let login = Login::new("app").with_mariadb(capability::MARIADB_CACHE_METADATA);
    speaks_text_and_binary(addr, login).await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_with_the_servers_error() {
    for servers in [Topology::mysql(0).await.unwrap(), Topology::mariadb(0).await.unwrap()] {
        let login = Login { password: "wrong".into(), ..Login::new("app") };
        match RawConn::open(servers.primary.addr(), &login).await {
            Err(HarnessError::Refused { errno, .. }) => assert_eq!(errno, 1045),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn nothing_is_left_when_a_topology_is_dropped() {
    for servers in [Topology::mysql(1).await.unwrap(), Topology::mariadb(1).await.unwrap()] {
        let replica = servers.replicas[0].server();
        replica.freeze().unwrap();
        let pids = [servers.primary.pid().unwrap(), replica.pid().unwrap()];
        let dirs = [servers.primary.dir().to_owned(), replica.dir().to_owned()];
        drop(servers);
        for (pid, dir) in pids.iter().zip(dirs) {
            // Another process may have the number by now.
            let runs = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            assert!(!runs.contains(&dir.display().to_string()), "process {pid}: {runs}");
            assert!(!dir.exists(), "{}", dir.display());
        }
    }
}

const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY)";

fn ways_to_lag() -> [Lag; 6] {
    [
        Lag::StoppedApplier,
        Lag::StoppedReceiver,
        Lag::LockedTable("test.t".into()),
        Lag::GlobalReadLock,
        Lag::Delayed(3600),
        Lag::Frozen,
    ]
}

async fn assert_lags_until_told_otherwise(
    servers: &Topology,
    lagging: &mut Replica,
    healthy: &Replica,
    how: Lag,
) {
    healthy.wait_for(&servers.primary, SOON).await.unwrap();
    lagging.wait_for(&servers.primary, SOON).await.unwrap();
    let before = count(healthy).await;
    lagging.lag_start(how.clone()).await.unwrap();
    let insert = format!("INSERT INTO t VALUES ({before})");
    servers.primary.run_sql(&[&insert]).await.unwrap();
    healthy.wait_for(&servers.primary, SOON).await.unwrap();
    assert_eq!(count(healthy).await, before + 1);
    if how == Lag::Frozen {
        let asked = tokio::time::timeout(Duration::from_millis(300), count(lagging)).await;
        assert!(asked.is_err(), "a frozen server answered");
    } else {
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(count(lagging).await, before, "{how:?}");
    }
    lagging.lag_stop().await.unwrap();
    lagging.wait_for(&servers.primary, SOON).await.unwrap_or_else(|e| panic!("{how:?}: {e}"));
    assert_eq!(count(lagging).await, before + 1, "{how:?}");
}

/// 100 transactions of at least 10 ms each cannot be applied in less than a second.
async fn assert_capacity_is_limited(mut servers: Topology) {
    let mut replica = servers.replicas.pop().unwrap();
    replica.lag_start(Lag::SlowCommits(Duration::from_millis(10))).await.unwrap();
    servers.primary.run_sql(&[TABLE]).await.unwrap();
    replica.wait_for(&servers.primary, SOON).await.unwrap();
    let inserts: Vec<String> = (0..100).map(|i| format!("INSERT INTO t VALUES ({i})")).collect();
    let inserts: Vec<&str> = inserts.iter().map(String::as_str).collect();
    let started = Instant::now();
    servers.primary.run_sql(&inserts).await.unwrap();
    let written = started.elapsed();
    replica.wait_for(&servers.primary, SOON).await.unwrap();
    let applied = started.elapsed();
    assert!(applied >= Duration::from_millis(900), "applied in {applied:?}");
    assert!(written < applied, "the primary is as slow: {written:?} of {applied:?}");
    replica.lag_stop().await.unwrap();
    servers.primary.run_sql(&["DELETE FROM t"]).await.unwrap();
    replica.wait_for(&servers.primary, SOON).await.unwrap();
}

async fn count(replica: &Replica) -> i64 {
    let count = replica.server().query_first("SELECT COUNT(*) FROM t").await;
    count.unwrap().unwrap()
}

async fn speaks_text_and_binary(addr: std::net::SocketAddr, login: Login) {
    let mut conn = RawConn::open(addr, &login).await.unwrap();
    let response = conn.query("SELECT 1, NULL, 'abc'; SELECT 2").await.unwrap();
    let rows = response.text_rows().unwrap();
    assert_eq!(rows[0], [Some(b"1".to_vec()), None, Some(b"abc".to_vec())]);
    assert_eq!(rows[1], [Some(b"2".to_vec())]);
    let statement = conn.prepare("SELECT ?, CONCAT(?, '!')").await.unwrap();
    assert_eq!((statement.columns, statement.params), (2, 2));
    let response = conn.execute(&statement, &[Param::null(), Param::text("hello")]).await.unwrap();
    assert!(response.rows[0].ends_with(b"\x06hello!"), "{response:?}");
    let again = Execute {
        id: statement.id,
        types: Types::Remembered,
        params: &[Param::text("x"), Param::text("again")],
        ..Execute::default()
    };
    conn.execute_as(&again).await.unwrap();
    conn.close_statement(statement.id).await.unwrap();
    let (errno, _) = conn.query("SELECT nothing").await.unwrap().err().unwrap();
    assert_eq!(errno, 1054);
    conn.quit().await.unwrap();
}
