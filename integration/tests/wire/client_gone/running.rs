//! A client leaves while the server works for it and no admission holds the statement: the server
//! learns of it as it would without Sluice, and the rule may want more.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::error::Result;
use integration::footprint::Footprint;
use integration::raw::{COM_PING, Compress, Login, RawConn, Tls};
use integration::scenario::{connect_as, is, numbers, wait_for_sum, wait_until};
use integration::server::{Flavour, Server};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use mysql_async::prelude::Queryable as _;
use tokio::io::AsyncWriteExt;

use super::{Leaves, SOON, both};

const RULES: &str = "\
- { name: killed, match: { app: killed }, on_client_gone: kill, permanent: true }
- { name: finished, match: { app: finished }, on_client_gone: finish, permanent: true }
- { name: commits, match: { app: commits }, gate: none, on_client_gone: kill, permanent: true }
- { name: everything, gate: none, permanent: true }";

/// Six seconds, in which neither server looks whether its client is there: it looks during a wait
/// that is long.
const REPORT: &str = "WITH RECURSIVE n AS \
                      (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 24) \
                      SELECT SUM(SLEEP(0.25)) FROM n";

#[tokio::test]
async fn a_wait_for_a_lock_ends_within_seconds_of_its_clients_death() {
    for servers in both().await {
        // MariaDB has no TLS here.
        let config = Config::new(servers).unwrap().cluster("backend_tls: { mode: preferred }");
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let before = Footprint::of(&sluice).unwrap();
        let holder = holding(servers, "gone").await;
        for (tls, compress) in [
            (Tls::Never, Compress::Never),
            (Tls::Never, Compress::Zlib),
            (Tls::Newest, Compress::Never),
        ] {
            for leaves in [Leaves::Closes, Leaves::Resets] {
                let login = Login::new("web").tls(tls.clone()).compress(compress);
                let mut web = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
                running(servers, &mut web, "SELECT GET_LOCK('gone', 600)").await;
                let took = until_gone(&servers.primary, web, leaves).await;
                assert!(took < SOON_NOTICED, "{leaves:?}, {tls:?}, {compress:?}: {took:?}");
            }
        }
        drop(holder);
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
        before.wait_for_descriptors(&sluice, SOON).await.unwrap();
    }
}

#[tokio::test]
async fn a_sleep_ends_as_soon_as_it_would_without_sluice() {
    for servers in both().await {
        let sluice = start(servers).await;
        let mut took = Vec::new();
        for addr in [servers.primary.addr(), sluice.listen_addr()] {
            let mut web = RawConn::open(addr, &Login::new("web")).await.unwrap();
            running(servers, &mut web, "SELECT SLEEP(600)").await;
            took.push(until_gone(&servers.primary, web, Leaves::Closes).await);
        }
        let slower = took[1].saturating_sub(took[0]);
        assert!(slower < SOON_NOTICED, "{took:?}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_sending_half_sees_what_it_sees_without_sluice() {
    for servers in both().await {
        let sluice = start(servers).await;
        let holder = holding(servers, "half").await;
        for commands in [
            &["SELECT SLEEP(0.7)"][..],
            &["SELECT GET_LOCK('half', 600)"],
            &["SELECT GET_LOCK('half', 1)", "SELECT 42"],
            &["SELECT 1, SLEEP(0.7)", "SELECT GET_LOCK('half', 1)", "SELECT 43"],
            &[],
        ] {
            let direct = seen_half_closed(servers.primary.addr(), commands).await;
            let through = seen_half_closed(sluice.listen_addr(), commands).await;
            assert_eq!(direct, through, "{:?}: {commands:?}", servers.primary.flavour());
        }
        drop(holder);
    }
}

#[tokio::test]
async fn a_report_that_its_rule_says_nothing_of_goes_on_as_it_does_without_sluice() {
    for servers in both().await {
        let sluice = start(servers).await;
        let mut reports = connect_as(&sluice, "reports").await.unwrap();
        running(servers, &mut reports, REPORT).await;
        let took = until_gone(&servers.primary, reports, Leaves::Closes).await;
        assert!(took > Duration::from_secs(3), "{took:?}");
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
        let metrics = sluice.metrics().await.unwrap();
        assert!(is(metrics.sum("sluice_client_gone_kills_total", &[]), 0.0));
    }
}

#[tokio::test]
async fn a_report_whose_rule_says_kill_ends_with_its_client_and_a_kill_that_is_refused_is_told() {
    for servers in both().await {
        let sluice = start(servers).await;
        let kills = "sluice_client_gone_kills_total";
        let mut report = connect_as(&sluice, "killed").await.unwrap();
        running(servers, &mut report, REPORT).await;
        let took = until_gone(&servers.primary, report, Leaves::Closes).await;
        assert!(took > Duration::from_secs(3), "it must not be killed yet: {took:?}");
        wait_for_sum(&sluice, kills, &[("result", "failed")], 1.0).await.unwrap();
        assert!(sluice.log().unwrap().contains("was not killed"));
        let grant = match servers.primary.flavour() {
            Flavour::MySql => "GRANT CONNECTION_ADMIN ON *.* TO 'sluice'@'%'",
            Flavour::MariaDb => "GRANT CONNECTION ADMIN ON *.* TO 'sluice'@'%'",
        };
        servers.primary.run_sql(&[grant]).await.unwrap();
        for (leaves, ahead, killed) in [
            (Leaves::Closes, None, 1.0),
            (Leaves::Resets, None, 2.0),
            // It was not looked for any more behind what its client had sent ahead of its end.
            (Leaves::Closes, Some(COM_PING), 3.0),
            (Leaves::Resets, Some(COM_PING), 4.0),
        ] {
            let mut report = connect_as(&sluice, "killed").await.unwrap();
            let mut neighbour = connect_as(&sluice, "killed").await.unwrap();
            running(servers, &mut report, REPORT).await;
            if let Some(command) = ahead {
                report.send_command(&[command]).await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let took = until_gone(&servers.primary, report, leaves).await;
            assert!(took < Duration::from_secs(3), "{leaves:?}: {took:?}");
            wait_for_sum(&sluice, kills, &[("result", "killed")], killed).await.unwrap();
            assert_eq!(neighbour.query("SELECT 1").await.unwrap().err(), None);
        }
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    }
}

/// A KILL rolled back what MySQL commits without Sluice, whoever has left.
#[tokio::test]
async fn a_commit_is_left_alone_whatever_its_rule_says() {
    for servers in both().await {
        let sluice = start(servers).await;
        servers
            .primary
            .run_sql(&["CREATE TABLE IF NOT EXISTS test.left_alone (n INT)"])
            .await
            .unwrap();
        for (commit, left) in [("COMMIT", 1.0), ("SELECT 1; COMMIT", 2.0)] {
            let mut app = connect_as(&sluice, "commits").await.unwrap();
            app.query("BEGIN").await.unwrap().accepted().unwrap();
            app.query("INSERT INTO left_alone VALUES (1)").await.unwrap().accepted().unwrap();
            let mut locker = servers.primary.admin().await.unwrap();
            locker.query_drop("FLUSH TABLES WITH READ LOCK").await.unwrap();
            let payload = app.query_payload(commit.as_bytes(), &[]);
            app.send_command(&payload).await.unwrap();
            waits_to_commit(servers, &app).await;
            drop(app);
            let kills = "sluice_client_gone_kills_total";
            wait_for_sum(&sluice, kills, &[("result", "left")], left).await.unwrap();
            locker.query_drop("UNLOCK TABLES").await.unwrap();
            wait_for_sum(&sluice, kills, &[], left).await.unwrap();
        }
    }
}

/// Waits until the server shows that a session waits to commit.
async fn waits_to_commit(servers: &Topology, app: &RawConn) {
    let waits = format!(
        "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE id = {} AND state LIKE 'Waiting for %lock'",
        app.connection_id()
    );
    let waits = || async { Ok(servers.primary.query::<i64>(&waits).await? == [1]) };
    wait_until("the COMMIT waits", Duration::from_secs(5), waits).await.unwrap();
}

#[tokio::test]
async fn a_statement_whose_rule_says_finish_runs_to_its_end() {
    for servers in both().await {
        let sluice = start(servers).await;
        let holder = holding(servers, "finish").await;
        for leaves in [Leaves::Closes, Leaves::Resets] {
            let mut app = connect_as(&sluice, "finished").await.unwrap();
            running(servers, &mut app, "SELECT GET_LOCK('finish', 4)").await;
            let took = until_gone(&servers.primary, app, leaves).await;
            assert!(took > Duration::from_millis(2_500), "{leaves:?}: {took:?}");
        }
        drop(holder);
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    }
}

/// What a client reads that sends commands and then nothing more.
async fn seen_half_closed(addr: SocketAddr, commands: &[&str]) -> Vec<u8> {
    let mut web = RawConn::open(addr, &Login::new("web")).await.unwrap();
    for sql in commands {
        let payload = web.query_payload(sql.as_bytes(), &[]);
        web.send_command(&payload).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    web.stream().shutdown().await.unwrap();
    web.read_to_end().await.unwrap()
}

async fn start(servers: &Topology) -> SluiceProcess {
    let config = Config::new(servers).unwrap().rules(RULES);
    SluiceProcess::start(&config).await.unwrap()
}

/// Somebody who holds a user-level lock, past Sluice.
async fn holding(servers: &Topology, name: &str) -> RawConn {
    let mut holder = RawConn::open(servers.primary.addr(), &Login::new("web")).await.unwrap();
    let got = holder.query(format!("SELECT GET_LOCK('{name}', 10)")).await.unwrap();
    assert_eq!(got.err(), None);
    holder
}

/// Sends a statement and waits until the server runs it.
async fn running(servers: &Topology, conn: &mut RawConn, sql: &str) {
    let payload = conn.query_payload(sql.as_bytes(), &[]);
    conn.send_command(&payload).await.unwrap();
    let id = conn.connection_id();
    let running = format!(
        "SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id} AND command = 'Query'"
    );
    let runs = || async { Ok(numbers(&servers.primary, &running).await? == [1]) };
    wait_until("the statement runs", SOON, runs).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// How long the server's session outlives its client.
async fn until_gone(server: &Server, conn: RawConn, leaves: Leaves) -> Duration {
    let id = conn.connection_id();
    let left = Instant::now();
    drop(leaves.act(conn).await);
    let gone = || async { is_over(server, id).await };
    wait_until("the server has ended it", SOON, gone).await.unwrap();
    left.elapsed()
}

async fn is_over(server: &Server, id: u32) -> Result<bool> {
    let count = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
    Ok(numbers(server, &count).await? == [0])
}

/// Both servers look every second whether the client of a waiting GET_LOCK is there. Three of them:
/// tests share the machine.
const SOON_NOTICED: Duration = Duration::from_secs(3);
