//! One side leaves: of a statement that is queued nothing is executed, and its place is free at once; an answer that
//! nobody reads any more ends.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::time::{Duration, Instant};

use integration::ports::{free_port, loopback};
use integration::raw::{Login, RawConn, Shape};
use integration::scenario::{
    Pending, Refused, Shared, connect, connect_as, numbers, wait_for_depth, wait_for_sum,
    wait_until,
};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use tokio::io::AsyncWriteExt;

mod ahead;
mod answers;
mod running;
mod stalls;

static MYSQL: Shared = Shared::new(Flavour::MySql);
static MARIADB: Shared = Shared::new(Flavour::MariaDb);

#[tokio::test]
async fn a_server_that_dies_under_a_statement_is_counted_and_one_between_statements_is_not() {
    let mut servers = Topology::mariadb(0).await.unwrap();
    let sluice = SluiceProcess::start(&Config::new(&servers).unwrap()).await.unwrap();
    let _idle = connect_as(&sluice, "idle").await.unwrap();
    let mut running = connect_as(&sluice, "running").await.unwrap();
    running.send_command(b"\x03SELECT SLEEP(60)").await.unwrap();
    let sleeps =
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'";
    let started = Instant::now();
    while numbers(&servers.primary, sleeps).await.unwrap() != [1] {
        assert!(started.elapsed() < Duration::from_secs(10), "the statement never ran");
    }
    servers.primary.crash();
    assert!(running.read_packet().await.is_err(), "nobody answers for a dead server");
    let name = "sluice_backend_errors_total";
    wait_for_sum(&sluice, name, &[("kind", "lost")], 1.0).await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    wait_for_sum(&sluice, name, &[("kind", "lost")], 1.0).await.unwrap();
}

#[tokio::test]
async fn a_client_that_closes_while_queued_frees_its_place_and_nothing_runs() {
    the_place_is_free_when_the_client(Leaves::Closes, "g_fin").await;
}

#[tokio::test]
async fn a_client_that_resets_its_connection_while_queued_frees_its_place_and_nothing_runs() {
    the_place_is_free_when_the_client(Leaves::Resets, "g_rst").await;
}

#[tokio::test]
async fn a_client_that_shuts_its_sending_half_while_queued_frees_its_place_and_nothing_runs() {
    the_place_is_free_when_the_client(Leaves::ShutsSending, "g_half").await;
}

#[tokio::test]
async fn a_pipelined_command_behind_a_queued_one_does_not_hide_that_its_client_closed() {
    the_place_is_free_when_the_client(Leaves::ClosesBehindAnotherCommand, "g_pipe").await;
}

#[tokio::test]
async fn the_place_of_one_that_left_goes_to_the_next_under_a_full_queue() {
    let servers = MYSQL.get().await.unwrap();
    let sluice = held(servers, "g_next").await;
    let first = queued(&sluice, "INSERT INTO g_next VALUES (1)").await;
    let mut second = connect(&sluice, "etl").await.unwrap();
    let refused = second.query("INSERT INTO g_next VALUES (2)").await.unwrap();
    assert_eq!(Refused::of(&refused).unwrap().reason(), Some("queue_full"));
    drop(first);
    wait_for_depth(&sluice, "held", 0).await.unwrap();
    let second = Pending::query(second, "INSERT INTO g_next VALUES (2)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();
    lift(&sluice, servers).await;
    assert_eq!(second.answered(SOON).await.unwrap().response.affected_rows(), Some(1));
    assert_eq!(rows(servers, "g_next").await, [2]);
}

#[tokio::test]
async fn a_transaction_whose_client_left_while_queued_is_rolled_back() {
    for servers in both().await {
        let sluice = held(servers, "g_open").await;
        let mut web = connect(&sluice, "web").await.unwrap();
        for sql in ["BEGIN", "INSERT INTO g_open VALUES (1)"] {
            assert_eq!(web.query(sql).await.unwrap().err(), None);
        }
        drop(web);
        let etl = queued_in_transaction(&sluice, "INSERT INTO g_open VALUES (2)").await;
        drop(etl);
        wait_for_depth(&sluice, "held", 0).await.unwrap();
        // The rows are free again: nobody holds a lock on them.
        let insert = "INSERT INTO test.g_open VALUES (1), (2)";
        servers
            .primary
            .run_sql(&["SET SESSION innodb_lock_wait_timeout = 5", insert])
            .await
            .unwrap();
        assert_eq!(rows(servers, "g_open").await, [1, 2]);
    }
}

#[tokio::test]
async fn a_session_that_the_server_killed_while_queued_gets_an_error_and_nothing_runs() {
    for servers in both().await {
        let sluice = held(servers, "g_killed").await;
        let etl = connect(&sluice, "etl").await.unwrap();
        let id = etl.connection_id();
        let waiting = Pending::query(etl, "INSERT INTO g_killed VALUES (1)");
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        // On the server itself, past Sluice.
        servers.primary.run_sql(&[&format!("KILL {id}")]).await.unwrap();
        is_told_and_closed(waiting).await;
        wait_for_depth(&sluice, "held", 0).await.unwrap();
        lift(&sluice, servers).await;
        assert!(rows(servers, "g_killed").await.is_empty());
    }
}

#[tokio::test]
async fn a_session_that_timed_out_at_the_server_while_queued_gets_an_error_and_nothing_runs() {
    for servers in both().await {
        let sluice = held(servers, "g_idle").await;
        let mut etl = connect(&sluice, "etl").await.unwrap();
        let set = etl.query("SET SESSION wait_timeout = 1").await.unwrap();
        assert_eq!(set.err(), None);
        let waiting = Pending::query(etl, "INSERT INTO g_idle VALUES (1)");
        wait_for_depth(&sluice, "held", 1).await.unwrap();
        let errno = is_told_and_closed(waiting).await;
        assert_eq!(errno, 4031, "the inactivity of a client that the server did not see");
        wait_for_depth(&sluice, "held", 0).await.unwrap();
        assert!(rows(servers, "g_idle").await.is_empty());
    }
}

#[tokio::test]
async fn a_client_that_left_while_its_statement_runs_does_not_stop_it() {
    let servers = MYSQL.get().await.unwrap();
    let sluice = held(servers, "g_runs").await;
    let mut web = connect(&sluice, "web").await.unwrap();
    let payload = web.query_payload(b"INSERT INTO g_runs SELECT SLEEP(1) + 1", &[]);
    web.send_command(&payload).await.unwrap();
    let running = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '%SLEEP(1) + 1%' AND user = 'web'";
    let runs = || async { Ok(numbers(&servers.primary, running).await? == [1]) };
    wait_until("the statement runs", SOON, runs).await.unwrap();
    drop(web);
    let there =
        || async { Ok(!numbers(&servers.primary, "SELECT n FROM g_runs").await?.is_empty()) };
    wait_until("the statement has run", SOON, there).await.unwrap();
}

#[tokio::test]
async fn an_idle_session_that_the_server_ends_is_told_as_the_server_tells_it() {
    for servers in both().await {
        let sluice = held(servers, "g_told").await;
        let mut told = Vec::new();
        for addr in [servers.primary.addr(), sluice.listen_addr()] {
            let mut conn = RawConn::open(addr, &Login::new("web")).await.unwrap();
            let set = conn.query("SET SESSION wait_timeout = 1").await.unwrap();
            assert_eq!(set.err(), None);
            told.push(conn.read_to_end().await.unwrap());
        }
        assert_eq!(told.first(), told.last());
        wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_a_change_of_user_takes_the_servers_connection_along() {
    for servers in both().await {
        let sluice = held(servers, "g_changes").await;
        let mut web = connect(&sluice, "web").await.unwrap();
        let id = web.connection_id();
        // Without an answer to the server's nonce, so it asks for one.
        let plugin: &[u8] = match web.server_version().contains("MariaDB") {
            true => b"mysql_native_password\0",
            false => b"caching_sha2_password\0",
        };
        let change = [&b"\x11etl\0\0test\0\x2d\0"[..], plugin, b"\0"].concat();
        web.send_command(&change).await.unwrap();
        assert_eq!(web.read_packet().await.unwrap().first(), Some(0xfe));
        let command = web.query_payload(b"SELECT 1", &[]);
        web.send_command(&command).await.unwrap();
        drop(web);
        let there = format!("SELECT COUNT(*) FROM information_schema.processlist WHERE id = {id}");
        let gone = || async { Ok(numbers(&servers.primary, &there).await? == [0]) };
        // By themselves the servers wait for ten seconds and longer.
        let at_once = Duration::from_secs(5);
        wait_until("the server's connection is over", at_once, gone).await.unwrap();
    }
}

#[tokio::test]
async fn a_primary_that_is_not_there_is_told_at_once() {
    let nobody = loopback(free_port().unwrap());
    let config = Config::in_front_of(nobody, Vec::new()).unwrap();
    let sluice = SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    let listens = || async { Ok(RawConn::connect(sluice.listen_addr()).await.is_ok()) };
    wait_until("it listens", SOON, listens).await.unwrap();
    let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
    conn.set_read_limit(SOON);
    let first = conn.read_packet().await.unwrap();
    let (_, message) = first.err().unwrap();
    assert!(first.seq == 0 && message.contains("[sluice]"), "{message}");
    assert!(conn.read_to_end().await.unwrap().is_empty());
    let labels = [("kind", "connect")];
    let metrics = sluice.metrics().await.unwrap();
    assert!(metrics.sum("sluice_backend_errors_total", &labels) >= 1.0);
    assert_eq!(sluice.http_get("/healthz").await.unwrap().status, 200);
    assert_ne!(sluice.http_get("/readyz").await.unwrap().status, 200);
}

/// How a client leaves.
#[derive(Debug, Clone, Copy)]
enum Leaves {
    Closes,
    Resets,
    ShutsSending,
    ClosesBehindAnotherCommand,
}

impl Leaves {
    /// Gives the connection back if the client keeps it to read.
    async fn act(self, mut conn: RawConn) -> Option<RawConn> {
        match self {
            Self::Closes | Self::ClosesBehindAnotherCommand => {
                drop(conn);
                None
            }
            Self::Resets => {
                conn.stream().set_zero_linger().unwrap();
                drop(conn);
                None
            }
            Self::ShutsSending => {
                conn.stream().shutdown().await.unwrap();
                Some(conn)
            }
        }
    }
}

/// Several times over: the place is free within 100 ms as the metrics see it (one slow scrape on a busy
/// machine does not count, so it is the median that must be), and no row is ever there.
async fn the_place_is_free_when_the_client(leaves: Leaves, table: &'static str) {
    for servers in both().await {
        let sluice = held(servers, table).await;
        let mut took = Vec::new();
        for n in 0..TRIALS {
            let mut etl = queued(&sluice, &format!("INSERT INTO {table} VALUES ({n})")).await;
            if let Leaves::ClosesBehindAnotherCommand = leaves {
                let next = etl.query_payload(format!("SELECT {n}").as_bytes(), &[]);
                etl.send_command(&next).await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let left = Instant::now();
            let kept = leaves.act(etl).await;
            wait_for_depth(&sluice, "held", 0).await.unwrap();
            took.push(left.elapsed());
            drop(kept);
        }
        took.sort();
        let median = took.get(TRIALS / 2).copied().unwrap();
        assert!(median < Duration::from_millis(100), "{leaves:?}: {took:?}");
        let gone = [("rule", "held"), ("decision", "client_gone")];
        wait_for_sum(&sluice, "sluice_statements_total", &gone, 7.0).await.unwrap();
        lift(&sluice, servers).await;
        // What was in the queue would have run by the time that this has.
        let mut last = connect(&sluice, "etl").await.unwrap();
        let insert = format!("INSERT INTO {table} VALUES (1000)");
        assert_eq!(last.query(&insert).await.unwrap().err(), None);
        assert_eq!(rows(servers, table).await, [1000], "{leaves:?}");
    }
}

/// The error is an answer to the statement, after it the connection is closed. Gives its errno.
async fn is_told_and_closed(waiting: Pending) -> u16 {
    let mut answered = waiting.answered(SOON).await.unwrap();
    let told = Refused::of(&answered.response);
    let told = told.unwrap_or_else(|| panic!("{:?}", answered.response));
    assert_eq!(told.sequence, 1, "{told:?}");
    assert!(answered.conn.read_to_end().await.unwrap().is_empty());
    told.errno
}

/// Sluice with `etl` on hold, and room for one waiter.
async fn held(servers: &Topology, table: &str) -> SluiceProcess {
    let create = format!("CREATE TABLE {table} (n INT PRIMARY KEY)");
    servers.primary.run_sql(&[&create]).await.unwrap();
    let config = Config::new(servers).unwrap().rules(HELD);
    SluiceProcess::start(&config).await.unwrap()
}

/// Takes the hold away.
async fn lift(sluice: &SluiceProcess, servers: &Topology) {
    let mut config = Config::new(servers).unwrap();
    (config.listen, config.admin) = (sluice.listen_addr(), sluice.admin_addr());
    let before = sluice.metrics().await.unwrap().sum(RELOADED, &[]);
    sluice.write_config(&config.render()).unwrap();
    let is_newer = |metrics: &integration::sluice::Metrics| metrics.sum(RELOADED, &[]) > before;
    sluice.wait_for_metrics("the file is applied", SOON, is_newer).await.unwrap();
}

/// A statement of `etl` that is in the queue.
async fn queued(sluice: &SluiceProcess, sql: &str) -> RawConn {
    let etl = connect(sluice, "etl").await.unwrap();
    send(sluice, etl, sql).await
}

async fn queued_in_transaction(sluice: &SluiceProcess, sql: &str) -> RawConn {
    let mut etl = connect(sluice, "etl").await.unwrap();
    let begin = etl.query_payload(b"BEGIN", &[]);
    etl.command(&begin, Shape::Query).await.unwrap();
    send(sluice, etl, sql).await
}

async fn send(sluice: &SluiceProcess, mut etl: RawConn, sql: &str) -> RawConn {
    let payload = etl.query_payload(sql.as_bytes(), &[]);
    etl.send_command(&payload).await.unwrap();
    wait_for_depth(sluice, "held", 1).await.unwrap();
    etl
}

async fn rows(servers: &Topology, table: &str) -> Vec<i64> {
    numbers(&servers.primary, &format!("SELECT n FROM {table} ORDER BY n")).await.unwrap()
}

async fn both() -> [&'static Topology; 2] {
    [MYSQL.get().await.unwrap(), MARIADB.get().await.unwrap()]
}

const HELD: &str = "\
- { name: held, match: { app: etl }, hold: true, max_queue: 1, max_delay: 60s, permanent: true }
- { name: everything, gate: none, permanent: true }";

const RELOADED: &str = "sluice_config_last_reload_timestamp_seconds";
const TRIALS: usize = 7;
const SOON: Duration = Duration::from_secs(15);
