//! A semi-synchronous replica whose source is Sluice: its acknowledgements reach the primary, whose commits wait for
//! them.

use integration::certificates::Certificates;
use integration::raw::Compress;
use integration::replica::Replica;
use integration::scenario::{numbers, wait_until};
use integration::server::{Access, Flavour, Server, ServerOptions};
use integration::sluice::SluiceProcess;
use integration::topology::{Topology, TopologyOptions};

use super::replication::{change_source, follower_config};
use super::{Legs, SOON};

#[tokio::test]
async fn a_mysql_primary_has_its_commits_acknowledged_through_sluice() {
    is_acknowledged_through_sluice(Flavour::MySql).await;
}

#[tokio::test]
async fn a_mariadb_primary_has_its_commits_acknowledged_through_sluice() {
    is_acknowledged_through_sluice(Flavour::MariaDb).await;
}

async fn is_acknowledged_through_sluice(flavour: Flavour) {
    // Servers of its own: on others' the commits of other tests would wait.
    let certificates = Certificates::new().unwrap();
    let extra_args = certificates.server_args().unwrap();
    let options = TopologyOptions { extra_args, ..TopologyOptions::new(flavour, 0) };
    let servers = Topology::start(options).await.unwrap();
    let primary = &servers.primary;
    let options = ServerOptions {
        name: "follower".into(),
        server_id: 78,
        access: Access::ReadOnly,
        ..ServerOptions::new(flavour)
    };
    let server = Server::start(options).await.unwrap();
    let words = Words::of(flavour);
    primary.run_sql(&["CREATE TABLE c_semi (n INT PRIMARY KEY AUTO_INCREMENT)"]).await.unwrap();
    primary.run_sql(words.primary).await.unwrap();
    server.run_sql(words.replica).await.unwrap();

    let mut sluice = SluiceProcess::start(&follower_config(&servers, &Legs::CLEAR)).await.unwrap();
    let replica = Replica::link_at(server, sluice.listen_addr()).await.unwrap();
    for legs in Legs::ALL {
        if flavour == Flavour::MariaDb && matches!(legs.compress, Compress::Zstd(_)) {
            // Its replicas know zlib only.
            continue;
        }
        sluice = SluiceProcess::start(&follower_config(&servers, &legs)).await.unwrap();
        let ended = numbers(primary, STREAM).await.unwrap();
        let change = change_source(legs, flavour, sluice.listen_addr().port());
        let change: Vec<&str> = change.iter().map(String::as_str).collect();
        replica.server().run_sql(&change).await.unwrap();
        // Not the stream of before, of which the primary may not know that it is over.
        let follows = || async {
            Ok(numbers(primary, STREAM).await? > ended
                && status(primary, words.clients).await == "1"
                && status(primary, words.status).await == "ON")
        };
        wait_until("the replica acknowledges", 2 * SOON, follows)
            .await
            .unwrap_or_else(|e| panic!("{legs:?}: {e}"));
        let (yes, no) = (count(primary, words.yes).await, count(primary, words.no).await);
        let stream = numbers(primary, STREAM).await.unwrap();
        // One after the other, and several at once: events come ahead of acknowledgements.
        primary.run_sql(&["INSERT INTO c_semi VALUES ()"; 20]).await.unwrap();
        let writers = [["INSERT INTO c_semi VALUES ()"; 20]; 4];
        let [a, b, c, d] = writers.each_ref().map(|commits| primary.run_sql(commits));
        let (a, b, c, d) = tokio::join!(a, b, c, d);
        assert!([a, b, c, d].iter().all(Result::is_ok), "{legs:?}");
        let (yes, no) =
            (count(primary, words.yes).await - yes, count(primary, words.no).await - no);
        // A group of commits is counted once.
        assert!(yes > 20 && no == 0, "{legs:?}: {yes} acknowledged, {no} not");
        // A replica that breaks off and comes again acknowledges as well, late.
        assert_eq!(numbers(primary, STREAM).await.unwrap(), stream, "{legs:?}");
        assert_eq!(status(primary, words.status).await, "ON", "{legs:?}");
        replica.wait_for(primary, SOON).await.unwrap();
    }
    // It is Sluice that carries them, and nothing else.
    drop(sluice);
    primary.run_sql(&["INSERT INTO c_semi VALUES ()"]).await.unwrap();
    assert_eq!(status(primary, words.status).await, "OFF");
}

async fn status(server: &Server, name: &str) -> String {
    let row: Option<(String, String)> =
        server.query_first(&format!("SHOW GLOBAL STATUS LIKE '{name}'")).await.unwrap();
    row.map(|(_, value)| value).unwrap_or_default()
}

async fn count(server: &Server, name: &str) -> i64 {
    status(server, name).await.parse().unwrap()
}

const STREAM: &str = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%' ORDER BY id DESC LIMIT 1";

/// The same in the words of each server.
struct Words {
    /// A commit waits for no more than five seconds.
    primary: &'static [&'static str],
    replica: &'static [&'static str],
    clients: &'static str,
    status: &'static str,
    yes: &'static str,
    no: &'static str,
}

impl Words {
    fn of(flavour: Flavour) -> Self {
        match flavour {
            Flavour::MySql => Self {
                primary: &[
                    "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
                    "SET GLOBAL rpl_semi_sync_source_timeout = 5000",
                    "SET GLOBAL rpl_semi_sync_source_enabled = 1",
                ],
                replica: &[
                    "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'",
                    "SET GLOBAL rpl_semi_sync_replica_enabled = 1",
                ],
                clients: "Rpl_semi_sync_source_clients",
                status: "Rpl_semi_sync_source_status",
                yes: "Rpl_semi_sync_source_yes_tx",
                no: "Rpl_semi_sync_source_no_tx",
            },
            Flavour::MariaDb => Self {
                primary: &[
                    "SET GLOBAL rpl_semi_sync_master_timeout = 5000",
                    "SET GLOBAL rpl_semi_sync_master_enabled = 1",
                ],
                replica: &["SET GLOBAL rpl_semi_sync_slave_enabled = 1"],
                clients: "Rpl_semi_sync_master_clients",
                status: "Rpl_semi_sync_master_status",
                yes: "Rpl_semi_sync_master_yes_tx",
                no: "Rpl_semi_sync_master_no_tx",
            },
        }
    }
}
