//! A replica that replicates through Sluice, and a dump that fails.

use integration::raw::{Compress, Login, RawConn, Shape};
use integration::replica::Replica;
use integration::scenario::Refused;
use integration::server::{Access, Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use super::{AS_CLIENT, DENIED, Legs, MARIADB, MYSQL, SOON, both, config, same};

#[tokio::test]
async fn a_mysql_replica_follows_its_primary_through_sluice() {
    follows_through_sluice(MYSQL.get().await.unwrap()).await;
}

#[tokio::test]
async fn a_mariadb_replica_follows_its_primary_through_sluice() {
    follows_through_sluice(MARIADB.get().await.unwrap()).await;
}

async fn follows_through_sluice(servers: &Topology) {
    let (primary, flavour) = (&servers.primary, servers.primary.flavour());
    let options = ServerOptions {
        name: "follower".into(),
        server_id: 77,
        access: Access::ReadOnly,
        ..ServerOptions::new(flavour)
    };
    let server = Server::start(options).await.unwrap();
    let mut sluice = SluiceProcess::start(&follower_config(servers, &Legs::CLEAR)).await.unwrap();
    let replica = Replica::link_at(server, sluice.listen_addr()).await.unwrap();
    primary
        .run_sql(&["CREATE TABLE c_follow (n INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)"])
        .await
        .unwrap();
    for legs in Legs::ALL {
        if flavour == Flavour::MariaDb && matches!(legs.compress, Compress::Zstd(_)) {
            // Its replicas know zlib only.
            continue;
        }
        // The one before is gone, and the stream with it.
        sluice = SluiceProcess::start(&follower_config(servers, &legs)).await.unwrap();
        let change = change_source(legs, flavour, sluice.listen_addr().port());
        let change: Vec<&str> = change.iter().map(String::as_str).collect();
        replica.server().run_sql(&change).await.unwrap();
        // One event larger than a frame of the protocol, and many small ones behind it.
        let mut statements = vec!["INSERT INTO c_follow (v) VALUES (REPEAT('x', 17 << 20))"];
        statements.extend(["INSERT INTO c_follow (v) VALUES ('small')"; 50]);
        primary.run_sql(&statements).await.unwrap();
        replica.wait_for(primary, 3 * SOON).await.unwrap_or_else(|e| panic!("{legs:?}: {e}"));
    }
    let all = "SELECT COUNT(*) * 1000000000 + SUM(LENGTH(v)) FROM c_follow";
    let (there, here): (Option<f64>, Option<f64>) =
        (primary.query_first(all).await.unwrap(), replica.server().query_first(all).await.unwrap());
    assert!(there.is_some() && there == here, "{there:?} {here:?}");
    // It is the stream through Sluice, and no other.
    drop(sluice);
    primary.run_sql(&["INSERT INTO c_follow (v) VALUES ('unseen')"]).await.unwrap();
    assert!(replica.wait_for(primary, SOON / 10).await.is_err());
}

/// Sluice for a follower whose leg must be what it is meant to be. Nobody may write through it; a dump and its
/// registration are never held back. A replica asks for its primary's clock and settings first.
pub(super) fn follower_config(servers: &Topology, legs: &Legs) -> Config {
    let tls = if legs.in_tls { "required" } else { "disabled" };
    let algorithm = algorithm(*legs);
    let keys = format!(
        "{AS_CLIENT}\nclient_tls: {{ mode: {tls} }}\nclient_compression: {{ algorithms: [{algorithm}] }}"
    );
    let rules = "- { name: nobody, deny: true, statements: [write, ddl], permanent: true }";
    Config::new(servers).unwrap().cluster(&keys).rules(rules)
}

/// The statements by which a replica speaks like that.
pub(super) fn change_source(legs: Legs, flavour: Flavour, port: u16) -> Vec<String> {
    let ssl = u8::from(legs.in_tls);
    match flavour {
        Flavour::MySql => {
            let algorithm = algorithm(legs);
            let change = format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_PORT = {port}, SOURCE_SSL = {ssl}, \
                 GET_SOURCE_PUBLIC_KEY = 1, SOURCE_COMPRESSION_ALGORITHMS = '{algorithm}'"
            );
            vec!["STOP REPLICA".into(), change, "START REPLICA".into()]
        }
        Flavour::MariaDb => vec![
            "STOP SLAVE".into(),
            format!("SET GLOBAL slave_compressed_protocol = {}", u8::from(legs.is_compressed())),
            format!("CHANGE MASTER TO MASTER_PORT = {port}, MASTER_SSL = {ssl}"),
            "START SLAVE".into(),
        ],
    }
}

fn algorithm(legs: Legs) -> &'static str {
    match legs.compress {
        Compress::Never => "uncompressed",
        Compress::Zlib => "zlib",
        Compress::Zstd(_) => "zstd",
    }
}

#[tokio::test]
async fn a_dump_that_fails_is_answered_as_directly_and_the_connection_goes_on() {
    for servers in both().await {
        same(servers, &Login::new("app"), async |conn| {
            let mut packets = Vec::new();
            // COM_BINLOG_DUMP of a file that is not there, COM_REGISTER_SLAVE: the account has no right to it.
            let dump = [&[0x12, 4, 0, 0, 0, 0, 0, 99, 0, 0, 0][..], b"nofile"].concat();
            let register = [&[0x15, 99, 0, 0, 0][..], &[0; 14]].concat();
            for payload in [register, dump] {
                packets.extend(conn.command(&payload, Shape::Single).await.unwrap().packets);
            }
            packets.extend(conn.query("SELECT 'and on'").await.unwrap().packets);
            packets
        })
        .await;
    }
}

#[tokio::test]
async fn a_dump_that_fails_is_no_way_past_the_rules() {
    for servers in both().await {
        let sluice = SluiceProcess::start(&config(servers).rules(DENIED)).await.unwrap();
        for legs in Legs::ALL {
            let login = legs.through(&Login::new("etl"));
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            let dump = [&[0x12, 4, 0, 0, 0, 0, 0, 99, 0, 0, 0][..], b"nofile"].concat();
            let failed = conn.command(&dump, Shape::Single).await.unwrap();
            assert!(failed.err().is_some(), "{legs:?}: {failed:?}");
            let refused = conn.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
            assert_eq!(Refused::of(&refused).unwrap().reason(), Some("deny"), "{legs:?}");
        }
    }
}
