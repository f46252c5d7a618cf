//! Draining and restarting: who is connected finishes, who connects meanwhile is served.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use integration::client;
use integration::error::Result;
use integration::ports::{free_port, loopback};
use integration::raw::{Login, RawConn};
use integration::scenario::{Shared, connect, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess, binary};
use integration::topology::Topology;
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

mod budgeted;
mod remembering;
mod waiting;

static MYSQL: Shared = Shared::new(Flavour::MySql);

const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn over_three_takeovers_nobody_is_refused_and_nobody_is_reset() {
    let servers = MYSQL.get().await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.handed (n INT)"]).await.unwrap();
    let dir = Dir::new("takeover");
    let config = takeover_config(servers, &dir);
    // With nobody to take over from it is an ordinary start.
    let mut running = start(&config, &["--takeover"]).await;
    let crowd = Crowd::begin(config.listen);
    for generation in 1..=3 {
        let mut open = connect(&running, "web").await.unwrap();
        open.query("BEGIN").await.unwrap().accepted().unwrap();
        let insert = format!("INSERT INTO handed VALUES ({generation})");
        open.query(insert).await.unwrap().accepted().unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
        let mut next = start(&config, &["--takeover"]).await;
        // The one before keeps its transactions, and is gone when they are over.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(running.exited().is_none(), "a transaction is open");
        open.query("COMMIT").await.unwrap().accepted().unwrap();
        let status = running.ended(SOON).await.unwrap();
        assert!(status.success(), "{status}");
        std::mem::swap(&mut running, &mut next);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = crowd.end().await;
    assert_eq!(seen.failures, Vec::<String>::new(), "of {} connections", seen.served);
    assert!(seen.served > 200, "{}", seen.served);
    let rows: Vec<i64> =
        servers.primary.query("SELECT n FROM test.handed ORDER BY n").await.unwrap();
    assert_eq!(rows, [1, 2, 3]);
}

#[tokio::test]
async fn a_new_process_that_fails_leaves_the_running_one_as_it_was() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("fails");
    let config = takeover_config(servers, &dir);
    let running = start(&config, &[]).await;
    let mut web = connect(&running, "web").await.unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let second = format!(
        "  second:\n    listen: \"{}\"\n    primary: \"127.0.0.1:1\"\nidentity:\n",
        taken.local_addr().unwrap()
    );
    let broken = config.render().replacen("identity:\n", &second, 1);
    let mut next =
        SluiceProcess::spawn_with(&broken, (config.listen, config.admin), &[], &["--takeover"])
            .unwrap();
    let status = next.ended(SOON).await.unwrap();
    assert_eq!(status.code(), Some(1), "{status}");
    let log = next.log().unwrap();
    assert!(log.contains("cluster second: cannot listen on"), "{log}");
    web.query("SELECT 1").await.unwrap().accepted().unwrap();
    connect(&running, "web").await.unwrap().query("SELECT 1").await.unwrap().accepted().unwrap();
}

#[tokio::test]
async fn a_start_outlives_a_hangup_and_a_process_that_ends_before_it_answers() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("hangup");
    let config = takeover_config(servers, &dir);
    let silent = UnixListener::bind(dir.0.join("takeover.sock")).unwrap();
    let addresses = (config.listen, config.admin);
    let arguments = ["--takeover"];
    let mut next = SluiceProcess::spawn_with(&config.render(), addresses, &[], &arguments).unwrap();
    let (asks, _) = silent.accept().await.unwrap();
    next.signal("HUP").unwrap();
    drop((asks, silent));
    next.wait_until_ready().await.unwrap();
    next.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn the_socket_of_clients_stays_when_it_is_handed_over() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("socket");
    let socket = dir.0.join("mysql.sock");
    let config = takeover_config(servers, &dir);
    let yaml = config
        .render()
        .replace(&format!("\"{}\"", config.listen), &format!("\"unix:{}\"", socket.display()));
    let run = |arguments: &'static [&'static str]| {
        SluiceProcess::spawn_with(&yaml, (config.listen, config.admin), &[], arguments).unwrap()
    };
    let path = socket.to_str().unwrap().to_owned();
    let options = client::options(loopback(1), "web").socket(Some(path)).prefer_socket(true);
    let mut first = run(&[]);
    first.wait_until_ready().await.unwrap();
    let mut second = run(&["--takeover"]);
    first.ended(SOON).await.unwrap();
    second.wait_until_ready().await.unwrap();
    client::connect_with(options.clone()).await.unwrap().disconnect().await.unwrap();
    // Also when it is told to end while the next one begins: `systemctl stop` behind a `start`.
    let mut third = run(&["--takeover"]);
    wait_until("the third one has the sockets", SOON, || async {
        Ok(third.log()?.contains("taking over the listeners"))
    })
    .await
    .unwrap();
    third.signal("STOP").unwrap();
    second.signal("TERM").unwrap();
    assert!(second.ended(SOON).await.unwrap().success());
    third.signal("CONT").unwrap();
    third.wait_until_ready().await.unwrap();
    client::connect_with(options).await.unwrap().disconnect().await.unwrap();
    let mut last = run(&["--takeover"]);
    third.ended(SOON).await.unwrap();
    last.wait_until_ready().await.unwrap();
    last.stop(SOON).await.unwrap();
    assert!(!socket.exists(), "the last one removes it");
    assert!(!dir.0.join("takeover.sock").exists());
}

#[tokio::test]
async fn who_was_connected_before_a_drain_is_served_though_not_accepted_yet() {
    let servers = MYSQL.get().await.unwrap();
    let mut sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    // The kernel completes connections for a process that stands still.
    sluice.signal("STOP").unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(RawConn::connect(sluice.listen_addr()).await.unwrap());
    }
    sluice.signal("TERM").unwrap();
    sluice.signal("CONT").unwrap();
    for mut conn in waiting {
        conn.log_in(&Login::new("web")).await.unwrap();
        conn.query("SELECT 1").await.unwrap().accepted().unwrap();
    }
    assert!(sluice.ended(SOON).await.unwrap().success());
}

#[tokio::test]
async fn a_login_under_way_when_a_drain_begins_is_finished() {
    let servers = MYSQL.get().await.unwrap();
    let mut sluice = SluiceProcess::start(&Config::new(servers).unwrap()).await.unwrap();
    let mut idle = connect(&sluice, "web").await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let mut late = RawConn::connect(sluice.listen_addr()).await.unwrap();
    sluice.signal("TERM").unwrap();
    assert!(idle.read_to_end().await.unwrap().is_empty(), "who is idle is closed at once");
    assert!(sluice.exited().is_none(), "somebody logs in");
    late.log_in(&Login::new("web")).await.unwrap();
    late.query("SELECT 1").await.unwrap().accepted().unwrap();
    let left = Instant::now();
    late.read_to_end().await.unwrap();
    assert!(left.elapsed() < Duration::from_secs(5), "and closed soon after");
    assert!(sluice.ended(SOON).await.unwrap().success());
}

#[tokio::test]
async fn a_client_that_never_finishes_its_login_does_not_hold_a_drain() {
    let servers = MYSQL.get().await.unwrap();
    let mut config = Config::new(servers).unwrap();
    config.top = "drain_timeout: 1s".into();
    let mut sluice = SluiceProcess::start(&config).await.unwrap();
    let mut mute = RawConn::connect(sluice.listen_addr()).await.unwrap();
    mute.read_packet().await.unwrap();
    let status = sluice.stop(Duration::from_secs(5)).await.unwrap();
    assert!(status.success(), "{status}");
    mute.read_to_end().await.unwrap();
}

#[tokio::test]
async fn a_socket_of_the_service_manager_is_used_and_outlives_the_process() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("activation");
    // As systemd does it: the socket is bound before anybody serves it, and stays open.
    let manager = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = Config::new(servers).unwrap();
    config.listen = manager.local_addr().unwrap();
    let file = dir.0.join("sluice.yaml");
    std::fs::write(&file, config.render()).unwrap();
    for _ in 0..2 {
        let early = RawConn::connect(config.listen).await.unwrap();
        let mut sluice = Activated::start(&file, &manager);
        let mut early = logged_in(early).await.unwrap();
        early.query("SELECT 1").await.unwrap().accepted().unwrap();
        early.quit().await.unwrap();
        sluice.terminate().await;
    }
    // Nobody serves, nobody is refused.
    drop(RawConn::connect(config.listen).await.unwrap());
}

/// Clients that come one after the other, each for one statement.
struct Crowd {
    stop: Arc<AtomicBool>,
    served: Arc<AtomicU32>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

/// What a [`Crowd`] has seen.
struct Seen {
    served: u32,
    failures: Vec<String>,
}

impl Crowd {
    fn begin(listen: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let served = Arc::new(AtomicU32::new(0));
        let clients = (0..CROWD)
            .map(|_| tokio::spawn(come_and_go(listen, stop.clone(), served.clone())))
            .collect();
        Self { stop, served, clients }
    }

    async fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        for client in self.clients {
            failures.extend(client.await.unwrap());
        }
        Seen { served: self.served.load(Ordering::Relaxed), failures }
    }
}

const CROWD: usize = 6;

async fn come_and_go(
    listen: SocketAddr,
    stop: Arc<AtomicBool>,
    served: Arc<AtomicU32>,
) -> Vec<String> {
    let mut failures = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        match once(listen).await {
            Ok(()) => drop(served.fetch_add(1, Ordering::Relaxed)),
            Err(error) => failures.push(error.to_string()),
        }
    }
    failures
}

async fn once(listen: SocketAddr) -> Result<()> {
    let mut conn = RawConn::open(listen, &Login::new("web")).await?;
    conn.query("SELECT 1").await?.accepted()?;
    conn.quit().await
}

async fn logged_in(mut conn: RawConn) -> Result<RawConn> {
    conn.log_in(&Login::new("web")).await?;
    Ok(conn)
}

fn takeover_config(servers: &Topology, dir: &Dir) -> Config {
    let mut config = Config::new(servers).unwrap();
    config.admin = loopback(free_port().unwrap());
    config.top = format!("takeover_socket: {}", dir.0.join("takeover.sock").display());
    config
}

async fn start(config: &Config, arguments: &[&str]) -> SluiceProcess {
    let addresses = (config.listen, config.admin);
    let mut sluice =
        SluiceProcess::spawn_with(&config.render(), addresses, &[], arguments).unwrap();
    sluice.wait_until_ready().await.unwrap();
    sluice
}

/// Sluice with a listening socket as its descriptor 3; killed with its owner.
struct Activated(Child);

impl Activated {
    fn start(file: &std::path::Path, socket: &std::net::TcpListener) -> Self {
        let socket: std::os::fd::OwnedFd = socket.try_clone().unwrap().into();
        // The shell's process becomes Sluice: LISTEN_PID is its own.
        let script =
            "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" run --config \"$1\"";
        let child = Command::new("sh")
            .args(["-c", script])
            .arg(binary().unwrap())
            .arg(file)
            .env("SLUICE_PROBE_PASSWORD", client::PROBE_PASSWORD)
            .stdin(Stdio::from(socket))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    async fn terminate(&mut self) {
        let kill = Command::new("kill").arg(self.0.id().to_string()).status();
        assert!(kill.unwrap().success());
        let started = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < SOON, "it does not end");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Activated {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A folder that is gone with its owner.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("sluice-it-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
