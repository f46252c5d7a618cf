//! A KILL names a number, and behind the same address another server may have given it to somebody
//! else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use integration::ports::loopback;
use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, connect_as, wait_for_sum, wait_until};
use integration::sluice::SluiceProcess;
use integration::topology::Topology;
use tokio::io::copy;
use tokio::net::{TcpListener, TcpStream};

use super::configured;

const RULES: &str = "\
- { name: slow, match: { app: slow }, gate: none, permanent: true, runaway: { elapsed: 4s, action: kill } }";

/// Longer than anybody waits here.
const ENDLESS: &str = "SELECT SLEEP(300) FROM ran_away";

#[tokio::test]
async fn who_has_the_id_of_what_ran_away_at_the_server_before_is_not_killed() {
    let servers = [Topology::mariadb(0).await.unwrap(), Topology::mysql(0).await.unwrap()];
    let [mariadb, mysql] = servers.map(|servers| tokio::spawn(on(servers)));
    mariadb.await.unwrap();
    mysql.await.unwrap();
}

async fn on(mut servers: Topology) {
    let server = servers.primary.addr();
    let mut config = configured(&servers, RULES).await;
    let is_open = Arc::new(AtomicBool::new(true));
    config.primary = keeps_its_clients(server, Arc::clone(&is_open)).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    // The new server begins to count below this id.
    for _ in 0..100 {
        RawConn::open(server, &Login::new("app")).await.unwrap().quit().await.unwrap();
    }
    let slow = connect_as(&sluice, "slow").await.unwrap();
    let id = slow.connection_id();
    let _under_way = Pending::query(slow, ENDLESS);
    // Servers tell in whole seconds for how long they are up.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    // Nobody is killed before the neighbour is there, however long the server takes to start.
    is_open.store(false, Ordering::SeqCst);
    servers.primary.crash();
    servers.primary.revive().await.unwrap();
    let mut newest = RawConn::open(server, &Login::new("app")).await.unwrap();
    while newest.connection_id() < id {
        newest = RawConn::open(server, &Login::new("app")).await.unwrap();
    }
    assert_eq!(newest.connection_id(), id, "the new server has had too many connections");
    let neighbour = Pending::query(newest, ENDLESS);
    // Whoever kills comes later than that session.
    RawConn::open(server, &Login::new("app")).await.unwrap().quit().await.unwrap();
    let limit = Duration::from_secs(30);
    let tried = async || Ok(sluice.log()?.contains("was not killed"));
    wait_until("the server is not reached", limit, tried).await.unwrap();

    is_open.store(true, Ordering::SeqCst);
    let told = async || Ok(sluice.log()?.contains("the server has been started since"));
    wait_until("Sluice finds another server", limit, told).await.unwrap();
    let failed = [("rule", "slow"), ("action", "failed")];
    wait_for_sum(&sluice, "sluice_runaway_total", &failed, 1.0).await.unwrap();
    assert!(!neighbour.is_answered(), "it has been killed for another");
}

/// A way to `server` on which a client does not hear that its connection has ended, as behind a
/// machine that has lost its power; new ones come through while it is open.
async fn keeps_its_clients(server: SocketAddr, is_open: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            if !is_open.load(Ordering::SeqCst) {
                continue;
            }
            tokio::spawn(async move {
                // Nobody is there.
                let Ok(server) = TcpStream::connect(server).await else { return };
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                let upwards = copy(&mut from_client, &mut to_server);
                let downwards = async {
                    copy(&mut from_server, &mut to_client).await.ok();
                    std::future::pending::<()>().await;
                };
                tokio::select! { _ = upwards => {}, () = downwards => {} }
            });
        }
    });
    address
}
