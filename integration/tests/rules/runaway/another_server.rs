//! A KILL names a number, and behind the same address another server may have given it to somebody
//! else.

use std::net::SocketAddr;
use std::time::Duration;

use integration::ports::loopback;
use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, connect_as, wait_for_sum, wait_until};
use integration::sluice::SluiceProcess;
use integration::topology::Topology;
use tokio::io::copy;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

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
    let leads_to = watch::Sender::new(Some(server));
    config.primary = keeps_its_clients(leads_to.subscribe()).await;
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
    leads_to.send_replace(None);
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

    leads_to.send_replace(Some(server));
    let told = async || Ok(sluice.log()?.contains("the server has been started since"));
    wait_until("Sluice finds another server", limit, told).await.unwrap();
    let failed = [("rule", "slow"), ("action", "failed")];
    wait_for_sum(&sluice, "sluice_runaway_total", &failed, 1.0).await.unwrap();
    assert!(!neighbour.is_answered(), "it has been killed for another");
}

/// A forwarder kept the connection of a statement that ran away at the server before, and a new primary
/// that had been up for longer had given its id to somebody else: that one was killed, again and again.
#[tokio::test]
async fn who_has_the_id_of_what_ran_away_at_another_server_is_not_killed() {
    let servers = [Topology::mariadb(1).await.unwrap(), Topology::mysql(1).await.unwrap()];
    let [mariadb, mysql] = servers.map(|servers| tokio::spawn(between(servers)));
    mariadb.await.unwrap();
    mysql.await.unwrap();
}

async fn between(servers: Topology) {
    let (before, now) = (servers.primary.addr(), servers.replicas.first().unwrap().addr());
    let mut config = configured(&servers, RULES).await;
    let leads_to = watch::Sender::new(Some(before));
    config.primary = keeps_its_clients(leads_to.subscribe()).await;
    let sluice = SluiceProcess::start(&config).await.unwrap();
    // What runs away at a server that was found there three times, before and behind, is killed.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut known = connect_as(&sluice, "slow").await.unwrap();
    let killed = [("rule", "slow"), ("action", "kill")];
    let answer = known.query(ENDLESS).await.unwrap();
    assert_eq!(answer.err().map(|(errno, _)| errno), Some(1317), "{answer:?}");
    wait_for_sum(&sluice, "sluice_runaway_total", &killed, 1.0).await.unwrap();

    // The new server's counter is below this id.
    let newest = RawConn::open(now, &Login::new("app")).await.unwrap().connection_id();
    let mut slow = connect_as(&sluice, "slow").await.unwrap();
    while slow.connection_id() < newest + 50 {
        slow = connect_as(&sluice, "slow").await.unwrap();
    }
    let id = slow.connection_id();
    let _under_way = Pending::query(slow, ENDLESS);
    leads_to.send_replace(None);
    let mut newest = RawConn::open(now, &Login::new("app")).await.unwrap();
    while newest.connection_id() < id {
        newest = RawConn::open(now, &Login::new("app")).await.unwrap();
    }
    assert_eq!(newest.connection_id(), id, "the new server has had too many connections");
    let neighbour = Pending::query(newest, ENDLESS);
    // Whoever kills comes later than that session.
    RawConn::open(now, &Login::new("app")).await.unwrap().quit().await.unwrap();
    leads_to.send_replace(Some(now));
    let failed = [("rule", "slow"), ("action", "failed")];
    wait_for_sum(&sluice, "sluice_runaway_total", &failed, 1.0).await.unwrap();
    let told = async || {
        let log = sluice.log()?;
        Ok(log.contains("it is not certain") || log.contains("or is another one"))
    };
    wait_until("Sluice doubts the server", Duration::from_secs(30), told).await.unwrap();
    // It is tried again, and knows more by then.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert!(!neighbour.is_answered(), "it has been killed for another");
}

/// A way to a server on which a client does not hear that its connection has ended, as behind a
/// machine that has lost its power, and stays where it is when the way leads elsewhere; new ones come
/// through while it leads anywhere.
async fn keeps_its_clients(leads_to: watch::Receiver<Option<SocketAddr>>) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Some(server) = *leads_to.borrow() else { continue };
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
