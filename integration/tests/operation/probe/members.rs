//! A member of a group shows no channel in SHOW REPLICA STATUS, neither while it is well nor when it has
//! left.

use integration::ports::free_port;
use integration::scenario::wait_until;
use integration::server::{Flavour, PerformanceSchema};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

use super::{SOON, is_stopped, wait_for_state};

/// One that was online looked as if it were no replica, and one that had left its group just the same.
#[tokio::test]
async fn a_member_of_a_group_is_a_replica_and_says_that_it_has_left() {
    let mut options = TopologyOptions::new(Flavour::MySql, 1);
    options.performance_schema = PerformanceSchema::On;
    let servers = Topology::start(options).await.unwrap();
    let member = servers.replicas.first().unwrap().server();
    let at = format!(
        "SET GLOBAL group_replication_local_address = '127.0.0.1:{}'",
        free_port().unwrap()
    );
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    let address = member.addr().to_string();
    wait_for_state(&sluice, &address, "counted").await;
    member
        .run_sql(&[
            "INSTALL PLUGIN group_replication SONAME 'group_replication.so'",
            "SET GLOBAL group_replication_group_name = '3f0a2b64-6a0e-4b0a-9d4e-0d9c3a1f5b11'",
            &at,
            "SET GLOBAL group_replication_bootstrap_group = ON",
            "STOP REPLICA",
            "RESET REPLICA ALL",
            "START GROUP_REPLICATION",
        ])
        .await
        .unwrap();
    // Nothing comes to it from the primary.
    let behind = "its lag grows, and nothing is wrong with it";
    let is_well = async || {
        let page = sluice.http_get("/plain").await?.body;
        Ok(page.contains("<td>replica<td>counted") && !page.contains("not a replica"))
    };
    wait_until(behind, SOON, is_well).await.unwrap();
    member.run_sql(&["STOP GROUP_REPLICATION"]).await.unwrap();
    is_stopped(&sluice, &address, "receiver_stopped", &["it is OFFLINE in its group"]).await;
    let page = sluice.http_get("/plain").await.unwrap().body;
    assert!(page.contains("START GROUP_REPLICATION"), "{page}");
    member.run_sql(&["START GROUP_REPLICATION"]).await.unwrap();
    wait_until("it is well again", SOON, is_well).await.unwrap();
}
