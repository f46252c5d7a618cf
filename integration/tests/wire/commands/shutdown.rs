//! A server that shuts down in order, between commands and while one is queued.

use integration::certificates::Certificates;
use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, connect, wait_for_depth, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::SluiceProcess;
use integration::topology::{Topology, TopologyOptions};

use super::{HELD, Legs, SOON, config};

#[tokio::test]
async fn a_mysql_that_shuts_down_ends_idle_and_waiting_sessions() {
    ends_idle_and_waiting_sessions(Flavour::MySql).await;
}

#[tokio::test]
async fn a_mariadb_that_shuts_down_ends_idle_and_waiting_sessions() {
    ends_idle_and_waiting_sessions(Flavour::MariaDb).await;
}

async fn ends_idle_and_waiting_sessions(flavour: Flavour) {
    let certificates = Certificates::new().unwrap();
    let mut options = TopologyOptions::new(flavour, 0);
    options.extra_args = certificates.server_args().unwrap();
    let mut servers = Topology::start(options).await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE c_down (n INT)"]).await.unwrap();
    let sluice = SluiceProcess::start(&config(&servers).rules(HELD)).await.unwrap();
    let (mut idle, mut waiting) = (Vec::new(), Vec::new());
    for legs in Legs::ALL {
        let mut ways = Vec::new();
        for (addr, login) in legs.both_ways(&servers, sluice.listen_addr(), &Login::new("app")) {
            ways.push(RawConn::open(addr, &login).await.unwrap());
        }
        idle.push((legs, ways));
        let etl = legs.through(&Login::new("etl"));
        let etl = RawConn::open(sluice.listen_addr(), &etl).await.unwrap();
        waiting.push((legs, Pending::query(etl, "INSERT INTO c_down VALUES (1)")));
    }
    let count = u32::try_from(waiting.len()).unwrap();
    wait_for_depth(&sluice, "held", count).await.unwrap();
    servers.primary.shut_down().await.unwrap();

    for (legs, ways) in idle {
        let mut words = Vec::new();
        for conn in ways {
            words.push(last_words(conn).await);
        }
        assert_eq!(words.first(), words.last(), "{legs:?}: the server's, and no more");
    }
    for (legs, waiting) in waiting {
        let mut answered = waiting.answered(SOON).await.unwrap();
        let packets = &answered.response.packets;
        let sequences: Vec<u8> = packets.iter().map(|packet| packet.seq).collect();
        assert_eq!(sequences, [1], "{legs:?}: {packets:?}");
        let (_, message) = answered.response.err().unwrap();
        assert!(message.contains("executed=no"), "{legs:?}: {message}");
        assert!(answered.conn.read_to_end().await.unwrap().is_empty());
    }
    wait_for_depth(&sluice, "held", 0).await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();

    servers.primary.revive().await.unwrap();
    let rows: Option<i64> =
        servers.primary.query_first("SELECT COUNT(*) FROM c_down").await.unwrap();
    assert_eq!(rows, Some(0));
    let mut again = connect(&sluice, "app").await.unwrap();
    assert_eq!(again.query("SELECT 1").await.unwrap().err(), None);
}

/// What comes before the end, below compression: it is too short to be compressed.
async fn last_words(mut conn: RawConn) -> Vec<u8> {
    conn.set_read_limit(SOON);
    conn.read_to_end().await.unwrap()
}
