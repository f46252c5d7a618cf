//! Lag that a query of the operator's gives, which is asked of what a replica shows by then.

use integration::scenario::{is, wait_for_signal};
use integration::sluice::Metrics;
use integration::topology::Topology;

use super::{SOON, lag, start_with_probe};

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
