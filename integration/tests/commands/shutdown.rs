//! A server that shuts down in order, between commands and while one is queued.

use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, connect, wait_for_depth, wait_for_sum};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use super::{HELD, SOON};

#[tokio::test]
async fn a_mysql_that_shuts_down_ends_idle_and_waiting_sessions() {
    ends_idle_and_waiting_sessions(Topology::mysql(0).await.unwrap()).await;
}

#[tokio::test]
async fn a_mariadb_that_shuts_down_ends_idle_and_waiting_sessions() {
    ends_idle_and_waiting_sessions(Topology::mariadb(0).await.unwrap()).await;
}

async fn ends_idle_and_waiting_sessions(mut servers: Topology) {
    servers.primary.run_sql(&["CREATE TABLE c_down (n INT)"]).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap().rules(HELD)).await.unwrap();
    let direct = RawConn::open(servers.primary.addr(), &Login::new("app")).await.unwrap();
    let idle = connect(&sluice, "app").await.unwrap();
    let etl = connect(&sluice, "etl").await.unwrap();
    let waiting = Pending::query(etl, "INSERT INTO c_down VALUES (1)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();
    servers.primary.shut_down().await.unwrap();

    assert_eq!(last_words(idle).await, last_words(direct).await, "the server's, and no more");

    let mut answered = waiting.answered(SOON).await.unwrap();
    let sequences: Vec<u8> = answered.response.packets.iter().map(|packet| packet.seq).collect();
    assert_eq!(sequences, [1], "{:?}", answered.response);
    let (_, message) = answered.response.err().unwrap();
    assert!(message.contains("executed=no"), "{message}");
    assert!(answered.conn.read_to_end().await.unwrap().is_empty());
    wait_for_depth(&sluice, "held", 0).await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();

    servers.primary.revive().await.unwrap();
    let rows: Option<i64> =
        servers.primary.query_first("SELECT COUNT(*) FROM c_down").await.unwrap();
    assert_eq!(rows, Some(0));
    let mut again = connect(&sluice, "app").await.unwrap();
    assert_eq!(again.query("SELECT 1").await.unwrap().err(), None);
}

async fn last_words(mut conn: RawConn) -> Vec<u8> {
    conn.set_read_limit(SOON);
    conn.read_to_end().await.unwrap()
}
