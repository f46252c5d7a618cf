//! A place outlives its connection by the word of the server, and one that has been started since
//! gives the same ids to others.

use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::scenario::{Pending, wait_for_sum};
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};

use super::{RULES, session};

/// Longer than anybody waits here.
const ENDLESS: &str = "SELECT SLEEP(300)";
const BUDGETS: &str = "\
budgets:
  - { name: one, match: { app: one }, max_concurrency: 1 }";

/// The place was taken until the other session ended.
#[tokio::test]
async fn a_place_is_free_though_another_has_the_id_at_the_server_that_was_started_since() {
    let [mysql, mariadb] = [Flavour::MySql, Flavour::MariaDb].map(|it| tokio::spawn(on(it)));
    mysql.await.unwrap();
    mariadb.await.unwrap();
}

async fn on(flavour: Flavour) {
    let mut server = Server::start(ServerOptions::new(flavour)).await.unwrap();
    let mut config = Config::in_front_of(server.addr(), Vec::new()).unwrap();
    config.rules = RULES.to_owned();
    config.top = BUDGETS.to_owned();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let direct = async || RawConn::open(server.addr(), &Login::new("app")).await.unwrap();
    // The new server begins to count below this id.
    for _ in 0..100 {
        direct().await.quit().await.unwrap();
    }
    let lost = session(sluice.listen_addr(), "one").await;
    let id = lost.connection_id();
    let _under_way = Pending::query(lost, ENDLESS);
    let one = [("budget", "one")];
    wait_for_sum(&sluice, "sluice_budget_in_use", &one, 1.0).await.unwrap();
    // Servers tell in whole seconds for how long they are up.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    // It does not ask before the neighbour is there, however long the server takes to start.
    sluice.signal("STOP").unwrap();
    server.crash();
    server.revive().await.unwrap();
    let direct = async || RawConn::open(server.addr(), &Login::new("app")).await.unwrap();
    let mut newest = direct().await;
    while newest.connection_id() < id {
        newest = direct().await;
    }
    assert_eq!(newest.connection_id(), id, "the new server has had too many connections");
    let neighbour = Pending::query(newest, ENDLESS);
    // There is somebody else's session, by which the probe's account knows that it is shown all.
    let shown = format!("SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = {id}");
    assert_eq!(server.query::<String>(&shown).await.unwrap(), ["Query"]);
    sluice.signal("CONT").unwrap();
    let resumed = Instant::now();
    let left = [("result", "ended")];
    wait_for_sum(&sluice, "sluice_budget_left_behind_total", &left, 1.0).await.unwrap();
    wait_for_sum(&sluice, "sluice_budget_in_use", &one, 0.0).await.unwrap();
    assert!(resumed.elapsed() < Duration::from_secs(10), "{:?}", resumed.elapsed());
    assert!(!neighbour.is_answered(), "it is there all the time");
}
