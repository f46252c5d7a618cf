//! A client leaves, and has sent commands ahead of the end, or a part of one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::raw::{COM_PING, Cursor, Execute, Login, RawConn, framed};
use integration::scenario::{connect_as, numbers, wait_for_sum, wait_until};
use integration::server::Server;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use super::{Leaves, MYSQL, SOON, both};

const RULES: &str = "\
- { name: admitted, match: { app: admitted }, gate: none, statements: [read], max_in_flight: 1, \
    permanent: true }
- { name: everything, gate: none, permanent: true }";
const BUDGETS: &str = "budgets:\n  - { name: one, match: { app: one }, max_concurrency: 1 }";

/// Both servers run what a client has sent that has closed meanwhile, until an answer cannot be sent:
/// the first one can, to who has closed, and none to who has reset.
#[tokio::test]
async fn commands_sent_ahead_run_as_they_do_without_sluice() {
    for servers in both().await {
        let sluice = start(servers).await;
        let create = "CREATE TABLE g_ahead (n INT PRIMARY KEY)";
        servers.primary.run_sql(&[create]).await.unwrap();
        for (leaves, ran) in [(Leaves::Closes, &[1][..]), (Leaves::Resets, &[])] {
            for (addr, app) in [
                (servers.primary.addr(), "direct"),
                (sluice.listen_addr(), "any"),
                (sluice.listen_addr(), "one"),
            ] {
                let run = run_ahead(&servers.primary, addr, app, leaves).await;
                assert_eq!(run, ran, "{:?}, {leaves:?}, {app}", servers.primary.flavour());
            }
        }
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
        in_use(&sluice, 0.0).await;
    }
}

/// What is in the table when the session is over of a client that leaves during a SELECT, with two
/// INSERTs sent ahead.
async fn run_ahead(server: &Server, addr: SocketAddr, app: &str, leaves: Leaves) -> Vec<i64> {
    let login = Login::new("app").attribute("sluice_app", app);
    let mut conn = RawConn::open(addr, &login).await.unwrap();
    let statements = [
        "SELECT SUM(SLEEP(0.25)) FROM (SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) n",
        "INSERT INTO g_ahead VALUES (1)",
        "INSERT INTO g_ahead VALUES (2)",
    ];
    for sql in statements {
        let payload = conn.query_payload(sql.as_bytes(), &[]);
        conn.send_command(&payload).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let id = conn.connection_id();
    drop(leaves.act(conn).await);
    is_gone(server, id).await;
    let ran = numbers(server, "SELECT n FROM g_ahead ORDER BY n").await.unwrap();
    server.run_sql(&["DELETE FROM g_ahead"]).await.unwrap();
    ran
}

/// MySQL 9.7 answers an execution without a cursor of a statement whose cursor is open with an OK in
/// place of rows. Its client waits for ever, with Sluice and without; but when that has left, its
/// place, its connection and its session stayed for ever too, if it had sent something ahead, or had
/// been admitted.
#[tokio::test]
async fn an_answer_without_an_end_is_waited_for_no_longer_than_its_client_is_there() {
    let servers = MYSQL.get().await.unwrap();
    let sluice = start(servers).await;
    for leaves in [Leaves::Closes, Leaves::Resets] {
        let mut left = Vec::new();
        for app in ["one", "any", "admitted"] {
            let mut conn = connect_as(&sluice, app).await.unwrap();
            let statement = conn.prepare("SELECT 1 AS n UNION ALL SELECT 2").await.unwrap();
            let id = statement.id;
            let opens = Execute { id, cursor: Cursor::ReadOnly, ..Execute::default() };
            conn.execute_as(&opens).await.unwrap().accepted().unwrap();
            let again = Execute { id, ..Execute::default() };
            let payload = again.payload(conn.capabilities());
            conn.send_command(&payload).await.unwrap();
            // Columns, and an OK that may be a row.
            while conn.read_packet().await.unwrap().payload.first() != Some(&0) {}
            conn.send_command(&[COM_PING]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            let id = conn.connection_id();
            drop(leaves.act(conn).await);
            left.push(id);
        }
        for id in left {
            is_gone(&servers.primary, id).await;
        }
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
        in_use(&sluice, 0.0).await;
    }
}

/// Its place was taken for as long as it liked. The servers wait for a command as long as for the next
/// one, whatever they have of it.
#[tokio::test]
async fn who_stops_in_the_middle_of_a_long_statement_loses_its_place_and_nothing_runs() {
    let [one, other] = both().await;
    // Both take half a minute, of nothing but waiting.
    tokio::join!(stops_in_the_middle(one), stops_in_the_middle(other));
}

async fn stops_in_the_middle(servers: &Topology) {
    let sluice = start(servers).await;
    let create = "CREATE TABLE g_stalled (n INT PRIMARY KEY, pad LONGTEXT)";
    servers.primary.run_sql(&[create]).await.unwrap();
    let login = Login::new("app").attribute("sluice_app", "one");
    let mut direct = RawConn::open(servers.primary.addr(), &login).await.unwrap();
    let set = "SET SESSION net_read_timeout = 1, wait_timeout = 4";
    direct.query(set).await.unwrap().accepted().unwrap();
    let mut through = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
    let since = Instant::now();
    for conn in [&mut direct, &mut through] {
        let text = format!("INSERT INTO g_stalled VALUES (1, '{}')", "a".repeat(4_000_000));
        let whole = framed(0, &conn.query_payload(text.as_bytes(), &[]));
        conn.send_bytes(whole.get(..2_000_000).unwrap()).await.unwrap();
    }
    in_use(&sluice, 1.0).await;
    direct.read_to_end().await.ok();
    let took = since.elapsed();
    assert!(took > Duration::from_secs(3) && took < SOON, "wait_timeout: {took:?}");
    through.set_read_limit(2 * NET_READ_TIMEOUT);
    let told = through.read_packet().await.unwrap();
    let took = since.elapsed();
    assert_eq!(told.err().map(|(errno, _)| errno), Some(1159));
    assert!(took > NET_READ_TIMEOUT && took < NET_READ_TIMEOUT + SOON, "{took:?}");
    in_use(&sluice, 0.0).await;
    is_gone(&servers.primary, through.connection_id()).await;
    assert!(numbers(&servers.primary, "SELECT n FROM g_stalled").await.unwrap().is_empty());
    let stalled = [("reason", "stalled")];
    wait_for_sum(&sluice, "sluice_connections_refused_total", &stalled, 1.0).await.unwrap();
}

/// The servers' default.
const NET_READ_TIMEOUT: Duration = Duration::from_secs(30);

async fn start(servers: &Topology) -> SluiceProcess {
    let mut config = Config::new(servers).unwrap().rules(RULES);
    config.top = BUDGETS.to_owned();
    SluiceProcess::start(&config).await.unwrap()
}

async fn in_use(sluice: &SluiceProcess, places: f64) {
    let one = [("budget", "one")];
    wait_for_sum(sluice, "sluice_budget_in_use", &one, places).await.unwrap();
}

async fn is_gone(server: &Server, id: u32) {
    let count = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
    let gone = || async { Ok(numbers(server, &count).await? == [0]) };
    wait_until("the server has ended it", SOON, gone).await.unwrap();
}
