//! A replica that replicates through Sluice, and a dump that fails.

use integration::raw::{Login, RawConn, Shape};
use integration::replica::Replica;
use integration::scenario::{Refused, connect};
use integration::server::{Access, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use super::{DENIED, MARIADB, MYSQL, SOON, both, same};

#[tokio::test]
async fn a_mysql_replica_follows_its_primary_through_sluice() {
    follows_through_sluice(MYSQL.get().await.unwrap()).await;
}

#[tokio::test]
async fn a_mariadb_replica_follows_its_primary_through_sluice() {
    follows_through_sluice(MARIADB.get().await.unwrap()).await;
}

async fn follows_through_sluice(servers: &Topology) {
    // Nobody may write through this one; a dump and its registration are never held back. A replica asks for
    // its primary's clock and settings first.
    let rules = "- { name: nobody, deny: true, statements: [write, ddl], permanent: true }";
    let config = Config::new(servers).unwrap().rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let options = ServerOptions {
        name: "follower".into(),
        server_id: 77,
        access: Access::ReadOnly,
        ..ServerOptions::new(servers.primary.flavour())
    };
    let server = Server::start(options).await.unwrap();
    let replica = Replica::link_at(server, sluice.listen_addr()).await.unwrap();
    // One event larger than a frame of the protocol, and many small ones behind it.
    let primary = &servers.primary;
    let mut statements = vec![
        "CREATE TABLE c_follow (n INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)",
        "INSERT INTO c_follow (v) VALUES (REPEAT('x', 17 << 20))",
    ];
    statements.extend(["INSERT INTO c_follow (v) VALUES ('small')"; 50]);
    primary.run_sql(&statements).await.unwrap();
    replica.wait_for(primary, 3 * SOON).await.unwrap();
    let all = "SELECT COUNT(*) * 1000000000 + SUM(LENGTH(v)) FROM c_follow";
    let (there, here): (Option<f64>, Option<f64>) =
        (primary.query_first(all).await.unwrap(), replica.server().query_first(all).await.unwrap());
    assert!(there.is_some() && there == here, "{there:?} {here:?}");
    // It is the stream through Sluice, and no other.
    drop(sluice);
    primary.run_sql(&["INSERT INTO c_follow (v) VALUES ('unseen')"]).await.unwrap();
    assert!(replica.wait_for(primary, SOON / 10).await.is_err());
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
        let config = Config::new(servers).unwrap().rules(DENIED);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let mut conn: RawConn = connect(&sluice, "etl").await.unwrap();
        let dump = [&[0x12, 4, 0, 0, 0, 0, 0, 99, 0, 0, 0][..], b"nofile"].concat();
        let failed = conn.command(&dump, Shape::Single).await.unwrap();
        assert!(failed.err().is_some(), "{failed:?}");
        let refused = conn.query("INSERT INTO nowhere VALUES (1)").await.unwrap();
        assert_eq!(Refused::of(&refused).unwrap().reason(), Some("deny"));
    }
}
