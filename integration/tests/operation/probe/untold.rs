//! What heartbeats do not tell: an emptied table, and a primary that takes no writes.

use std::time::Duration;

use integration::scenario::{numbers, wait_until};
use integration::sluice::SluiceProcess;
use integration::topology::Topology;

use super::{SOON, lag};

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
    servers: &Topology,
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
    servers.primary.run_sql(&["SET GLOBAL read_only = 0"]).await.unwrap();
    let goes_on = || async { Ok(numbers(&servers.primary, beats).await? > last) };
    wait_until("it goes on", SOON, goes_on).await.unwrap();
}
