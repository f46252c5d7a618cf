//! Connections that move from one relaying thread to another while they work: nobody sees it.

#![expect(clippy::unwrap_used, reason = "a test's own helpers fail by panicking, as it does")]

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use integration::raw::{COM_QUIT, Compress, Login, Param, RawConn, Tls, framed};
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, Metrics, SluiceProcess};
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinHandle;

/// Another thread joins at a hundredth of a core, so that they all do, and give each other connections.
const RESTLESS: [&str; 4] = ["--workers", "3", "--worker-full", "1"];

/// More than there are connections: some move again.
const MOVES_MIN: f64 = 60.0;

/// Moves are looked for ten times a second.
const PATIENCE: Duration = Duration::from_secs(60);

async fn restless(server: &Server) -> SluiceProcess {
    in_front_of(server, &RESTLESS).await
}

async fn in_front_of(server: &Server, threads: &[&str]) -> SluiceProcess {
    let config = Config::in_front_of(server.addr(), Vec::new()).unwrap();
    let config = config.rules("  - { name: all, gate: none, permanent: true }\n");
    let addresses = (config.listen, config.admin);
    let mut sluice = SluiceProcess::spawn_with(&config.render(), addresses, &[], threads).unwrap();
    sluice.wait_until_ready().await.unwrap();
    sluice
}

/// Works until told to stop, and says how many rows it has written and how many statements that took.
async fn work(mut conn: RawConn, number: usize, stop: Arc<AtomicBool>) -> (usize, usize) {
    let id = conn.connection_id().to_string();
    let prepared = conn.prepare("SELECT CONNECTION_ID(), ?").await.unwrap();
    conn.query(format!("SET @mine = {number}")).await.unwrap().accepted().unwrap();
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        rounds += 1;
        conn.query("BEGIN").await.unwrap().accepted().unwrap();
        let insert = format!("INSERT INTO test.moved VALUES ({number}, {rounds})");
        assert_eq!(conn.query(insert).await.unwrap().affected_rows(), Some(1));
        let who = conn.query("SELECT CONNECTION_ID()").await.unwrap();
        assert_eq!(who.first_text().as_deref(), Some(&*id), "the same session");
        let long = conn.query("SELECT REPEAT(@mine, 50000)").await.unwrap();
        assert_eq!(long.first_text(), Some(number.to_string().repeat(50_000)));
        conn.query("COMMIT").await.unwrap().accepted().unwrap();
        let answer = conn.execute(&prepared, &[Param::int(7)]).await.unwrap();
        answer.accepted().unwrap();
    }
    conn.quit().await.unwrap();
    (rounds, 1 + 6 * rounds)
}

/// Who works, and what tells them to stop.
struct Workload {
    stop: Arc<AtomicBool>,
    working: Vec<JoinHandle<(usize, usize)>>,
}

impl Workload {
    async fn start(sluice: &SluiceProcess, logins: impl Iterator<Item = Login>) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let mut working = Vec::new();
        for (number, login) in logins.enumerate() {
            let conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            working.push(tokio::spawn(work(conn, number, stop.clone())));
        }
        Self { stop, working }
    }

    /// The rows that they have written, and the statements that this took.
    async fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        let (mut rows, mut statements) = (0, 0);
        for each in self.working {
            let (written, sent) = each.await.unwrap();
            rows += written;
            statements += sent;
        }
        (rows, statements)
    }
}

#[tokio::test]
async fn sessions_of_every_kind_go_on_wherever_they_move() {
    let server = Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap();
    let sluice = restless(&server).await;
    let mut setup = RawConn::open(sluice.listen_addr(), &Login::new("app")).await.unwrap();
    setup.query("CREATE TABLE test.moved (who INT, n INT)").await.unwrap().accepted().unwrap();
    let logins = (0..24).map(|number| {
        let compress = [Compress::Never, Compress::Zlib, Compress::Zstd(3)][number % 3];
        let tls = if number % 2 == 0 { Tls::Never } else { Tls::Newest };
        Login::new("app").compress(compress).tls(tls)
    });
    let workload = Workload::start(&sluice, logins).await;
    let moved = |metrics: &Metrics| metrics.sum("sluice_relay_moves_total", &[]) >= MOVES_MIN;
    let metrics = sluice.wait_for_metrics("connections move", PATIENCE, moved).await.unwrap();
    assert!(metrics.sum("sluice_relay_threads", &[]) > 1.0);
    let (rows, statements) = workload.end().await;
    // Each reached the server once, and was counted once on whatever thread it ended.
    let count = setup.query("SELECT COUNT(*) FROM test.moved").await.unwrap().first_text();
    assert_eq!(count, Some(rows.to_string()));
    let of_setup = 2.0;
    let all = f64::from(u32::try_from(statements).unwrap()) + of_setup;
    let counted = |metrics: &Metrics| {
        let counted = metrics.sum("sluice_statements_total", &[]);
        counted.total_cmp(&all).is_eq()
    };
    sluice.wait_for_metrics("every statement is counted", PATIENCE, counted).await.unwrap();
    setup.quit().await.unwrap();
}

/// So many files may the process have open from now on.
fn limit_files(sluice: &SluiceProcess, files: u32) {
    let pid = format!("--pid={}", sluice.pid().unwrap());
    let limit = format!("--nofile={files}:");
    assert!(Command::new("prlimit").args([pid, limit]).status().unwrap().success());
}

/// How many rows there are.
async fn rows(conn: &mut RawConn) -> usize {
    let count = conn.query("SELECT COUNT(*) FROM test.moved").await.unwrap();
    count.first_text().unwrap().parse().unwrap()
}

#[tokio::test]
async fn without_file_descriptors_sessions_stay_where_they_are_and_lose_nothing() {
    let server = Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap();
    let sluice = restless(&server).await;
    let mut direct = RawConn::open(server.addr(), &Login::new("app")).await.unwrap();
    direct.query("CREATE TABLE test.moved (who INT, n INT)").await.unwrap().accepted().unwrap();
    let workload = Workload::start(&sluice, (0..8).map(|_| Login::new("app"))).await;
    let mut moves = 0.0;
    for _ in 0..3 {
        let moved = |metrics: &Metrics| metrics.sum("sluice_relay_moves_total", &[]) > moves + 5.0;
        let metrics = sluice.wait_for_metrics("they move", PATIENCE, moved).await.unwrap();
        moves = metrics.sum("sluice_relay_moves_total", &[]);
        limit_files(&sluice, 1);
        let (before, until) = (rows(&mut direct).await, Instant::now() + PATIENCE);
        while rows(&mut direct).await < before + 200 {
            assert!(Instant::now() < until, "nothing is relayed");
        }
        limit_files(&sluice, 1024);
    }
    let (written, _) = workload.end().await;
    assert_eq!(rows(&mut direct).await, written);
}

/// Clients that say all at once and end.
const HASTY: usize = 200;

#[tokio::test]
async fn what_comes_in_one_with_a_quit_and_the_end_is_run_once() {
    for flavour in [Flavour::MySql, Flavour::MariaDb] {
        let server = Server::start(ServerOptions::new(flavour)).await.unwrap();
        let sluice = restless(&server).await;
        let mut direct = RawConn::open(server.addr(), &Login::new("app")).await.unwrap();
        direct.query("CREATE TABLE test.moved (who INT, n INT)").await.unwrap().accepted().unwrap();
        let mut sent = 0;
        for number in 0..HASTY {
            let in_tls = flavour == Flavour::MySql && number % 2 == 1;
            let tls = if in_tls { Tls::Newest } else { Tls::Never };
            let login = Login::new("app").tls(tls);
            let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
            let inserts = 1 + number % 40;
            sent += inserts;
            let insert = conn.query_payload(b"INSERT INTO test.moved VALUES (1, 1)", &[]);
            let quit = framed(0, &[COM_QUIT]);
            conn.send_bytes(&[framed(0, &insert).repeat(inserts), quit].concat()).await.unwrap();
            if number % 3 == 0 && !in_tls {
                conn.stream().shutdown().await.unwrap();
            }
            conn.read_to_end().await.unwrap();
        }
        assert_eq!(rows(&mut direct).await, sent, "{flavour:?}");
    }
}

/// A statement whose answer nobody in a test waits to the end of.
const ENDLESS: &str = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900) \
                       SELECT REPEAT(SHA2(a.n * 1000 + b.n, 256), 50) FROM s a, s b, s c";

/// Reads an answer of that until told to stop.
async fn read_endless(mut conn: RawConn, stop: Arc<AtomicBool>) {
    conn.send_command(&conn.query_payload(ENDLESS.as_bytes(), &[])).await.unwrap();
    while !stop.load(Ordering::Relaxed) {
        assert_eq!(conn.read_packet().await.unwrap().err(), None);
    }
}

#[tokio::test]
async fn sessions_that_stream_part_while_they_do() {
    let server = Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap();
    let sluice = in_front_of(&server, &["--workers", "2", "--worker-full", "10"]).await;
    let stop = Arc::<AtomicBool>::default();
    let mut streaming = Vec::new();
    for _ in 0..2 {
        let login = Login::new("app").compress(Compress::Zlib);
        let conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        streaming.push(tokio::spawn(read_endless(conn, stop.clone())));
    }
    let both = |metrics: &Metrics| {
        let busy = |thread| metrics.value("sluice_relay_busy_ratio", &[("thread", thread)]);
        ["0", "1"].into_iter().all(|thread| busy(thread) > Some(0.05))
    };
    sluice.wait_for_metrics("each has a thread", PATIENCE, both).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for each in streaming {
        each.await.unwrap();
    }
}

/// How often the threads that relay have gone to sleep: `/proc/PID/task/TID/status`.
fn sleeps(sluice: &SluiceProcess) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", sluice.pid().unwrap())).unwrap();
    let statuses = tasks.map(|task| {
        let status = task.unwrap().path().join("status");
        std::fs::read_to_string(status).unwrap()
    });
    let relaying = statuses.filter(|status| status.starts_with("Name:\trelay-"));
    let sleeps = relaying.map(|status| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:\t"));
        line.unwrap().parse::<u64>().unwrap()
    });
    sleeps.sum()
}

#[tokio::test]
async fn threads_whose_clients_are_idle_are_left_to_sleep() {
    let server = Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap();
    let sluice = in_front_of(&server, &["--workers", "4", "--worker-full", "0"]).await;
    let mut idle = Vec::new();
    for _ in 0..12 {
        let mut conn = RawConn::open(sluice.listen_addr(), &Login::new("app")).await.unwrap();
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();
        idle.push(conn);
    }
    for _ in 0..30 {
        let before = sleeps(&sluice);
        tokio::time::sleep(Duration::from_secs(1)).await;
        if sleeps(&sluice) - before < 4 {
            return;
        }
    }
    panic!("four threads are woken {} times by now", sleeps(&sluice));
}
