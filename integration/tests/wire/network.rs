//! Where clients come from and how servers are reached: the PROXY protocol, Unix sockets, limits of
//! connections and of patience.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use integration::client;
use integration::error::Result;
use integration::footprint::Footprint;
use integration::ports::{free_port, loopback};
use integration::raw::{Login, RawConn, Tls};
use integration::scenario::{Refused, Shared, connect, wait_for_depth, wait_for_sum};
use integration::server::Flavour;
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};
use mysql_async::prelude::Queryable;
use tokio::net::TcpListener;

static MYSQL: Shared = Shared::new(Flavour::MySql);

/// A MariaDB that takes PROXY headers from this machine.
static MARIADB: tokio::sync::OnceCell<Topology> = tokio::sync::OnceCell::const_new();

const REFUSED: &str = "sluice_connections_refused_total";
const SOON: Duration = Duration::from_secs(10);

/// Reads of 10.1.2.3 are denied: whoever is taken for it is told.
const DENIED: &str =
    "- { name: one, match: { client: 10.1.2.3 }, statements: [read], deny: true, permanent: true }
- { name: everything, gate: none, permanent: true }";

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_is_who_the_header_says() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap().rules(DENIED);
    let sluice = with(config, "proxy_protocol: { from: [127.0.0.0/8] }").await;
    let v2 = |last: u8| {
        let mut header = V2.to_vec();
        // PROXY, TCP over IPv4, 12 bytes of addresses and an extension of 7 that is skipped.
        header.extend_from_slice(&[0x21, 0x11, 0, 19, 10, 1, 2, last, 10, 9, 9, 9, 1, 2, 3, 4]);
        header.extend_from_slice(&[0xea, 0, 4, 1, b'v', b'p', b'c']);
        header
    };
    let mut local = V2.to_vec();
    local.extend_from_slice(&[0x20, 0, 0, 0]);
    let cases = [
        (b"PROXY TCP4 10.1.2.3 10.9.9.9 4660 3306\r\n".to_vec(), true),
        (b"PROXY TCP4 10.1.2.4 10.9.9.9 4660 3306\r\n".to_vec(), false),
        (b"PROXY TCP6 ::ffff:10.1.2.3 ::1 4660 3306\r\n".to_vec(), true),
        (b"PROXY UNKNOWN\r\n".to_vec(), false),
        (v2(3), true),
        (v2(4), false),
        (local, false),
    ];
    for (header, denied) in cases {
        let mut conn = behind(&sluice, &header).await.unwrap();
        let answer = conn.query("SELECT 1").await.unwrap();
        let reason = Refused::of(&answer).and_then(|refused| refused.reason().map(str::to_owned));
        assert_eq!(reason.as_deref(), denied.then_some("deny"), "{}", header.escape_ascii());
    }
    assert!(sluice.log().unwrap().contains("client=10.1.2.3:4660"), "the log names the client");
}

#[tokio::test]
async fn a_trusted_proxy_without_a_header_is_told_so_in_time_and_a_health_check_is_nothing() {
    let servers = MYSQL.get().await.unwrap();
    let keys = "proxy_protocol: { from: 127.0.0.1, timeout: 300ms }";
    let sluice = with(Config::new(servers).unwrap(), keys).await;
    let before = Footprint::of(&sluice).unwrap();
    drop(RawConn::connect(sluice.listen_addr()).await.unwrap());
    let beginnings: [(&[u8], &str); 4] = [
        (b"", "no PROXY header within 300ms"),
        (b"PROXY TCP4 10.1", "no PROXY header within 300ms"),
        (b"\x20\0\0\x01 somebody who speaks MySQL", "does not begin with a PROXY header"),
        (b"PROXY TCP4 10.1.2.3\r\n             ", "the PROXY line is malformed"),
    ];
    for (bytes, why) in beginnings {
        let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
        conn.send_bytes(bytes).await.unwrap();
        let (errno, message) = conn.read_packet().await.unwrap().err().unwrap();
        assert_eq!(errno, 1043, "{message}");
        assert!(message.contains("[sluice]") && message.contains(why), "{message}");
        assert!(conn.read_to_end().await.unwrap().is_empty());
    }
    refused_and_seldom_told(&sluice, beginnings[2].0, 4.0, "names this address").await;
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    before.wait_for_descriptors(&sluice, SOON).await.unwrap();
}

/// Each had a line in the log, as many as anybody cared to open connections.
async fn refused_and_seldom_told(sluice: &SluiceProcess, bytes: &[u8], before: f64, words: &str) {
    for _ in 0..20 {
        let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
        conn.send_bytes(bytes).await.unwrap();
        conn.read_to_end().await.unwrap();
    }
    let labels = [("reason", "proxy_protocol")];
    wait_for_sum(sluice, REFUSED, &labels, before + 20.0).await.unwrap();
    let log = sluice.log().unwrap();
    assert_eq!(log.lines().filter(|line| line.contains(words)).count(), 10, "{log}");
}

#[tokio::test]
async fn a_header_from_a_stranger_is_an_error_and_changes_nobody() {
    let servers = MYSQL.get().await.unwrap();
    let keys = "proxy_protocol: { from: [10.0.0.0/8, \"::1\"] }";
    let sluice = with(Config::new(servers).unwrap().rules(DENIED), keys).await;
    for header in
        [b"PROXY TCP4 10.1.2.3 10.9.9.9 1 2\r\n".to_vec(), [V2, &[0x20, 0, 0, 0]].concat()]
    {
        let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
        conn.send_bytes(&header).await.unwrap();
        // The server has greeted; after that there is nothing but the end.
        conn.read_packet().await.unwrap();
        conn.read_to_end().await.unwrap();
    }
    let line = b"PROXY TCP4 10.1.2.3 10.9.9.9 1 2\r\n";
    refused_and_seldom_told(&sluice, line, 2.0, "proxy_protocol.from does not name").await;
    connect(&sluice, "web").await.unwrap().query("SELECT 1").await.unwrap().accepted().unwrap();
}

#[tokio::test]
async fn mariadb_is_told_the_clients_address() {
    let servers = mariadb().await;
    let keys = "proxy_protocol: { from: 127.0.0.1, send: v2 }";
    let sluice = with(Config::new(servers).unwrap(), keys).await;
    let cases = [
        ("PROXY TCP4 10.1.2.3 10.9.9.9 4660 3306\r\n", "web@10.1.2.3"),
        ("PROXY TCP6 fd00::3 10.9.9.9 4660 3306\r\n", ""),
        ("PROXY TCP6 fd00::3 fd00::9 4660 3306\r\n", "web@fd00::3"),
        ("PROXY UNKNOWN\r\n", "web@127.0.0.1"),
    ];
    for (header, user) in cases {
        let conn = behind(&sluice, header.as_bytes()).await;
        if user.is_empty() {
            assert!(conn.is_err(), "an address of another family");
            continue;
        }
        let answer = conn.unwrap().query("SELECT USER()").await.unwrap().accepted().unwrap();
        assert_eq!(answer.first_text().as_deref(), Some(user), "{header}");
    }
}

#[tokio::test]
async fn both_ends_may_be_unix_sockets() {
    for servers in [MYSQL.get().await.unwrap(), mariadb().await] {
        let dir = Dir::new("unix");
        let socket = dir.0.join("mysql.sock");
        let mut config = Config::new(servers).unwrap().rules(
            "- { name: waits, match: { user: etl }, max_delay: 100ms, gate: [lag], hold: true, permanent: true }",
        );
        config.cluster = "listen_mode: \"0700\"".into();
        let primary = format!("unix:{}", servers.primary.dir().join("s.sock").display());
        let yaml = config
            .render()
            .replace(&format!("\"{}\"", config.listen), &format!("\"unix:{}\"", socket.display()))
            .replace(&format!("\"{}\"", config.primary), &format!("\"{primary}\""));
        for stale in [false, true] {
            let mut sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
            sluice.wait_until_ready().await.unwrap();
            let by_socket = |user| {
                let path = socket.to_str().unwrap().to_owned();
                client::options(loopback(1), user).socket(Some(path)).prefer_socket(true)
            };
            let mut web = client::connect_with(by_socket("web")).await.unwrap();
            let answer: Option<String> =
                web.query_first("SELECT CONCAT(USER(), REPEAT('x', 1000000))").await.unwrap();
            assert!(answer.unwrap().starts_with("web@localhostx"));
            let mut etl = client::connect_with(by_socket("etl")).await.unwrap();
            let refused = etl.query_drop("CREATE TABLE test.never (a INT)").await;
            assert!(refused.is_ok(), "only writes are held: {refused:?}");
            etl.query_drop("DROP TABLE test.never").await.unwrap();
            let refused = etl.query_drop("INSERT INTO test.nowhere VALUES (1)").await.unwrap_err();
            assert!(refused.to_string().contains("reason=hold"), "{refused}");
            if stale {
                sluice.stop(SOON).await.unwrap();
                assert!(!socket.exists(), "removed at the end");
            } else {
                // Killed, it leaves its socket; the next one replaces it.
                drop(sluice);
                assert!(socket.exists());
            }
        }
    }
}

#[tokio::test]
async fn a_client_of_a_unix_socket_that_leaves_while_queued_frees_its_place() {
    let servers = MYSQL.get().await.unwrap();
    let dir = Dir::new("queued");
    let socket = dir.0.join("mysql.sock");
    let config = Config::new(servers)
        .unwrap()
        .rules("- { name: held, hold: true, max_delay: 1h, permanent: true }");
    let yaml = config
        .render()
        .replace(&format!("\"{}\"", config.listen), &format!("\"unix:{}\"", socket.display()));
    let mut sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    sluice.wait_until_ready().await.unwrap();
    let path = socket.to_str().unwrap().to_owned();
    let options = client::options(loopback(1), "web").socket(Some(path)).prefer_socket(true);
    let mut web = client::connect_with(options).await.unwrap();
    let waiting =
        tokio::spawn(async move { web.query_drop("INSERT INTO nowhere VALUES (1)").await });
    wait_for_depth(&sluice, "held", 1).await.unwrap();
    waiting.abort();
    wait_for_depth(&sluice, "held", 0).await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
}

#[tokio::test]
async fn one_client_more_than_max_connections_is_told_and_leaves_no_trace() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap().cluster("max_connections: 2");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let first = connect(&sluice, "web").await.unwrap();
    let mut second = connect(&sluice, "web").await.unwrap();
    for refused in 1..=3_u32 {
        let mut third = RawConn::connect(sluice.listen_addr()).await.unwrap();
        let packet = third.read_packet().await.unwrap();
        let (errno, message) = packet.err().unwrap();
        assert_eq!((errno, packet.seq), (1040, 0));
        assert!(message.starts_with("Too many connections [sluice"), "{message}");
        third.read_to_end().await.unwrap();
        let reason = [("reason", "max_connections")];
        wait_for_sum(&sluice, REFUSED, &reason, f64::from(refused)).await.unwrap();
    }
    // The alert says that there were some, the log when and who.
    let log = sluice.log().unwrap();
    assert_eq!(log.matches("refused: there are max_connections clients").count(), 3, "{log}");
    second.query("SELECT 1").await.unwrap().accepted().unwrap();
    first.quit().await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 1.0).await.unwrap();
    let _first = connect(&sluice, "web").await.unwrap();
    sluice.write_config(&config.clone().cluster("max_connections: 3").render()).unwrap();
    let started = Instant::now();
    while connect(&sluice, "web").await.is_err() {
        assert!(started.elapsed() < SOON, "the file applies to the next client");
    }
}

#[tokio::test]
async fn a_client_that_does_not_answer_the_greeting_is_told_and_closed() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap().cluster("login_timeout: 300ms");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let before = Footprint::of(&sluice).unwrap();
    for begins in [&b""[..], b"\x50\0\0\x01\x8d"] {
        let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
        conn.read_packet().await.unwrap();
        conn.send_bytes(begins).await.unwrap();
        let (errno, message) = conn.read_packet().await.unwrap().err().unwrap();
        assert_eq!(errno, 1043, "{message}");
        assert!(message.contains("[sluice]") && message.contains("login_timeout"), "{message}");
        conn.read_to_end().await.unwrap();
    }
    wait_for_sum(&sluice, REFUSED, &[("reason", "login_timeout")], 2.0).await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    before.wait_for_descriptors(&sluice, SOON).await.unwrap();
    // Whoever has logged in may be silent for as long as it likes.
    let mut web = connect(&sluice, "web").await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    web.query("SELECT 1").await.unwrap().accepted().unwrap();
}

#[tokio::test]
async fn a_login_that_stops_anywhere_is_ended_under_the_sequence_id_that_is_read_next() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap().cluster("login_timeout: 300ms");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut silent = RawConn::connect(sluice.listen_addr()).await.unwrap();
    silent.read_packet().await.unwrap();
    assert_eq!(timed_out(&mut silent).await, 2, "behind the response");
    let mut encrypted = RawConn::connect(sluice.listen_addr()).await.unwrap();
    encrypted.read_packet().await.unwrap();
    encrypted.send_payload(1, &fixed(8)).await.unwrap();
    encrypted.start_tls(&Tls::Newest).await.unwrap();
    assert_eq!(timed_out(&mut encrypted).await, 3, "behind the response in TLS");
    let mut asked = asked_to_switch(&sluice).await;
    assert_eq!(timed_out(&mut asked).await, 4, "behind the answer to a switch");
}

#[tokio::test]
async fn a_login_that_outlasts_a_drain_is_told_so() {
    let servers = MYSQL.get().await.unwrap();
    let mut config = Config::new(servers).unwrap();
    config.top = "drain_timeout: 300ms".into();
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut silent = RawConn::connect(sluice.listen_addr()).await.unwrap();
    silent.read_packet().await.unwrap();
    let mut asked = asked_to_switch(&sluice).await;
    sluice.signal("TERM").unwrap();
    for (conn, expected) in [(&mut silent, 2), (&mut asked, 4)] {
        let last = conn.read_packet().await.unwrap();
        let (errno, message) = last.err().unwrap();
        assert_eq!((last.seq, errno), (expected, 1053), "{message}");
        conn.read_to_end().await.unwrap();
    }
}

/// A client whose server wants another plugin, and waits for the client's answer.
async fn asked_to_switch(sluice: &SluiceProcess) -> RawConn {
    let mut conn = RawConn::connect(sluice.listen_addr()).await.unwrap();
    conn.read_packet().await.unwrap();
    let answer = b"nobody\0\x04hashmysql_native_password\0";
    conn.send_payload(1, &[&fixed(0)[..], answer].concat()).await.unwrap();
    let switch = conn.read_packet().await.unwrap();
    assert_eq!((switch.seq, switch.first()), (2, Some(0xfe)));
    conn
}

/// How a response begins: PROTOCOL_41, SECURE_CONNECTION and PLUGIN_AUTH, and with 8 as well SSL.
fn fixed(ssl: u8) -> Vec<u8> {
    [&[1, 0x82 | ssl, 8, 0, 0, 0, 0, 1, 255][..], &[0; 23]].concat()
}

/// The sequence id of the error for a login that does not go on.
async fn timed_out(conn: &mut RawConn) -> u8 {
    let last = conn.read_packet().await.unwrap();
    let (errno, message) = last.err().unwrap();
    assert_eq!(errno, 1043, "{message}");
    assert!(message.contains("login_timeout"), "{message}");
    conn.read_to_end().await.unwrap();
    last.seq
}

#[tokio::test]
async fn a_server_that_accepts_and_does_not_greet_is_given_up_with_a_clear_error() {
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = mute.local_addr().unwrap();
    let held = tokio::spawn(async move {
        let mut sockets = Vec::new();
        while let Ok(socket) = mute.accept().await {
            sockets.push(socket);
        }
    });
    let config = Config::in_front_of(address, vec![]).unwrap().cluster("connect_timeout: 300ms");
    let mut sluice =
        SluiceProcess::spawn(&config.render(), config.listen, config.admin, &[]).unwrap();
    is_told(&mut sluice, "no answer within 300ms").await;
    wait_for_sum(&sluice, "sluice_backend_errors_total", &[("kind", "connect_timeout")], 1.0)
        .await
        .unwrap();
    held.abort();
    drop(held.await);
    is_told(&mut sluice, "Connection refused").await;
    let ready = sluice.http_get("/readyz").await.unwrap();
    assert_eq!(ready.status, 503, "{}", ready.body);
    assert!(ready.body.contains("cluster main: the primary does not answer"), "{}", ready.body);
}

#[tokio::test]
async fn one_cluster_without_its_primary_keeps_no_client_from_another() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers).unwrap();
    let gone = loopback(free_port().unwrap());
    let second = format!(
        "  second:\n    listen: \"{}\"\n    primary: \"{gone}\"\nidentity:\n",
        loopback(free_port().unwrap())
    );
    let yaml = config.render().replacen("identity:\n", &second, 1);
    let mut sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    sluice.wait_until_ready().await.unwrap();
    // Nobody probes it, so only a client shows it.
    let reachable = |metrics: &Metrics, cluster| {
        metrics.value("sluice_primary_reachable", &[("cluster", cluster)])
    };
    assert_eq!(reachable(&sluice.metrics().await.unwrap(), "second"), None);
    let address = second.split('"').nth(1).unwrap().parse().unwrap();
    let mut client = RawConn::connect(address).await.unwrap();
    assert_eq!(client.read_packet().await.unwrap().err().unwrap().0, 1053);
    let seen = |metrics: &Metrics| {
        reachable(metrics, "second") == Some(0.0) && reachable(metrics, "main") == Some(1.0)
    };
    sluice.wait_for_metrics("one is gone", SOON, seen).await.unwrap();
    let ready = sluice.http_get("/readyz").await.unwrap();
    assert_eq!(ready.status, 200);
    assert!(ready.body.contains("cluster second: the primary does not answer"), "{}", ready.body);
}

#[tokio::test]
async fn keepalive_is_in_force_on_both_legs() {
    let servers = MYSQL.get().await.unwrap();
    let config = Config::new(servers)
        .unwrap()
        .cluster("keepalive: { idle: 3s, interval: 1s, count: 2, user_timeout: 20s }");
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let mut web = connect(&sluice, "web").await.unwrap();
    web.query("SELECT 1").await.unwrap().accepted().unwrap();
    let client = web.stream().local_addr().unwrap().port();
    let on_client_leg = keepalive_due(sluice.listen_addr().port(), client).await;
    assert!(on_client_leg <= Duration::from_secs(3), "{on_client_leg:?}");
    let id = web.connection_id();
    let host = servers
        .primary
        .query_first::<String>(&format!(
            "SELECT host FROM information_schema.processlist WHERE id = {id}"
        ))
        .await
        .unwrap()
        .unwrap();
    let backend = host.rsplit(':').next().unwrap().parse().unwrap();
    let on_backend_leg = keepalive_due(backend, servers.primary.port()).await;
    assert!(on_backend_leg <= Duration::from_secs(3), "{on_backend_leg:?}");
}

/// When the keepalive timer of a socket is due. While bytes are unacknowledged another timer runs.
async fn keepalive_due(local: u16, remote: u16) -> Duration {
    let started = Instant::now();
    loop {
        if let Some(due) = keepalive_timer(local, remote) {
            return due;
        }
        assert!(started.elapsed() < SOON, "no keepalive timer on {local} to {remote}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// `/proc/net/tcp` shows it as timer 2, in hundredths of a second.
fn keepalive_timer(local: u16, remote: u16) -> Option<Duration> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ends = format!(":{local:04X} :{remote:04X}");
        let these = format!(
            "{} {}",
            fields.get(1)?.strip_prefix("0100007F")?,
            fields.get(2)?.strip_prefix("0100007F")?
        );
        let due = fields.get(5)?.strip_prefix("02:")?;
        let due = u64::from_str_radix(due, 16).ok()?;
        (these == ends).then(|| Duration::from_millis(due.saturating_mul(10)))
    })
}

/// The next client is told why there is no server.
async fn is_told(sluice: &mut SluiceProcess, why: &str) {
    let started = Instant::now();
    let mut conn = loop {
        match RawConn::connect(sluice.listen_addr()).await {
            Ok(conn) => break conn,
            Err(error) => assert!(started.elapsed() < SOON, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let (errno, message) = conn.read_packet().await.unwrap().err().unwrap();
    assert_eq!(errno, 1053, "{message}");
    assert!(message.contains("[sluice] cannot connect") && message.contains(why), "{message}");
    conn.read_to_end().await.unwrap();
}

async fn with(config: Config, cluster: &str) -> SluiceProcess {
    SluiceProcess::start(&config.cluster(cluster)).await.unwrap()
}

/// A client of Sluice behind a proxy that begins with this header.
async fn behind(sluice: &SluiceProcess, header: &[u8]) -> Result<RawConn> {
    let mut conn = RawConn::connect(sluice.listen_addr()).await?;
    conn.send_bytes(header).await?;
    conn.log_in(&Login::new("web")).await?;
    Ok(conn)
}

async fn mariadb() -> &'static Topology {
    let start = || async {
        let mut options = TopologyOptions::new(Flavour::MariaDb, 0);
        options.extra_args = vec!["--proxy-protocol-networks=127.0.0.1,localhost".into()];
        Topology::start(options).await
    };
    MARIADB.get_or_try_init(start).await.unwrap()
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

const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
