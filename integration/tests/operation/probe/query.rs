//! Lag without heartbeats: as replicas tell it, or by a query of the operator's, which is asked of what a
//! replica shows by then.

use integration::replica::Lag;
use integration::scenario::{is, numbers, wait_for_signal};
use integration::sluice::Metrics;
use integration::topology::Topology;

use super::{SOON, lag, start_with_probe, untold, wait_for_line};

#[tokio::test]
async fn lag_may_come_from_a_query() {
    let servers = Topology::mysql(1).await.unwrap();
    let made =
        ["CREATE TABLE sluice.told (behind DECIMAL(6,3))", "INSERT INTO sluice.told VALUES (0.25)"];
    servers.primary.run_sql(&made).await.unwrap();
    // A member of a group would wait there until its lag is gone.
    let waits = ["SET GLOBAL group_replication_consistency = 'BEFORE'"];
    servers.replicas.first().unwrap().server().run_sql(&waits).await.unwrap();
    let query = "source: { query: \"SELECT behind + 60 * \
        (@@SESSION.group_replication_consistency <> 'EVENTUAL') FROM sluice.told\" }";
    let sluice = start_with_probe(&servers, query).await;
    let told = |metrics: &Metrics| lag(metrics, "").is_some_and(|lag| is(lag, 0.25));
    sluice.wait_for_metrics("a quarter of a second", SOON, told).await.unwrap();
    servers.primary.run_sql(&["UPDATE sluice.told SET behind = 12.5"]).await.unwrap();
    wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
}

#[tokio::test]
async fn lag_may_come_from_the_replicas_status() {
    for (mut servers, why) in [
        (Topology::mysql(1).await.unwrap(), "performance_schema is off"),
        (Topology::mariadb(1).await.unwrap(), "MariaDB does not tell"),
    ] {
        let sluice = start_with_probe(&servers, "source: replica_status, row_costs: applied").await;
        wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
        let broken_off = untold::logins_broken_off(&servers).await;
        // What its rows cost cannot be seen there, which is no fault.
        wait_for_line(&sluice, &["INFO", "a row counts as a row", why]).await;
        assert!(!sluice.log().unwrap().contains("probe failed"), "{}", sluice.log().unwrap());
        let tables = numbers(&servers.primary, HEARTBEAT_TABLES).await.unwrap();
        assert_eq!(tables, [0], "nothing is written");
        servers.replicas.first_mut().unwrap().lag_start(Lag::StoppedApplier).await.unwrap();
        wait_for_signal(&sluice, "lag", 0.0).await.unwrap();
        servers.replicas.first_mut().unwrap().lag_stop().await.unwrap();
        wait_for_signal(&sluice, "lag", 1.0).await.unwrap();
        untold::no_more_are_broken_off(&servers, broken_off).await;
    }
}

const HEARTBEAT_TABLES: &str = "SELECT COUNT(*) FROM information_schema.tables \
                                WHERE table_schema = 'sluice' AND table_name = 'heartbeat'";
