//! A client leaves, and has sent commands ahead of the end.

use std::net::SocketAddr;
use std::time::Duration;

use integration::raw::{COM_PING, Cursor, Execute, Login, RawConn};
use integration::scenario::{connect_as, numbers, wait_for_sum, wait_until};
use integration::server::Server;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use super::{Leaves, MYSQL, SOON, both};

const RULES: &str = "\
- { name: admitted, match: { app: admitted }, gate: none, statements: [read], max_in_flight: 1, \
    permanent: true }
- { name: writes, match: { app: writes }, gate: none, statements: [write], max_in_flight: 1, \
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

pub(super) async fn start(servers: &Topology) -> SluiceProcess {
    let mut config = Config::new(servers).unwrap().rules(RULES);
    config.top = BUDGETS.to_owned();
    SluiceProcess::start(&config).await.unwrap()
}

pub(super) async fn in_use(sluice: &SluiceProcess, places: f64) {
    let one = [("budget", "one")];
    wait_for_sum(sluice, "sluice_budget_in_use", &one, places).await.unwrap();
}

pub(super) async fn is_gone(server: &Server, id: u32) {
    let count = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
    let gone = || async { Ok(numbers(server, &count).await? == [0]) };
    wait_until("the server has ended it", SOON, gone).await.unwrap();
}
