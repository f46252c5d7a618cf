//! Logins by every plugin, over every combination of legs, for the first time and again.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use integration::certificates::Certificates;
use integration::error::HarnessError;
use integration::ports::loopback;
use integration::raw::{Login, Packet, RawConn, Tls};
use integration::server::{Flavour, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the leg behind Sluice runs over.
const BACKENDS: [&str; 4] = ["disabled", "as_client", "preferred", "required"];

/// A server, and one Sluice for each way of reaching it.
struct Bench {
    server: Server,
    sluices: Vec<(&'static str, SluiceProcess)>,
    _certificates: Certificates,
}

impl Bench {
    async fn new(flavour: Flavour) -> Self {
        let certificates = Certificates::new().unwrap();
        let mut options = ServerOptions::new(flavour);
        if flavour == Flavour::MariaDb {
            options.extra_args = certificates.server_args().unwrap();
            options.extra_args.push("--plugin-load-add=auth_ed25519".into());
        }
        let server = Server::start(options).await.unwrap();
        let mut sluices = Vec::new();
        for mode in BACKENDS {
            let config = Config::in_front_of(server.addr(), Vec::new())
                .unwrap()
                .cluster(&format!("backend_tls: {{ mode: {mode} }}"));
            sluices.push((mode, SluiceProcess::start(&config).await.unwrap()));
        }
        sluices.push(("unix", by_socket(&server).await));
        Self { server, sluices, _certificates: certificates }
    }

    /// Every way that a client can come: its own leg, the mode behind, and whether that is encrypted then.
    fn ways(&self) -> Vec<Way> {
        let each = |(mode, sluice): &(&'static str, SluiceProcess)| {
            let addr = sluice.listen_addr();
            let way = |tls: Tls| {
                let in_tls = !matches!(tls, Tls::Never);
                let backend_in_tls = match *mode {
                    "disabled" | "unix" => false,
                    "as_client" => in_tls,
                    _ => true,
                };
                Way { name: format!("client {tls:?}, backend {mode}"), addr, tls, backend_in_tls }
            };
            [way(Tls::Never), way(Tls::Newest)]
        };
        self.sluices.iter().flat_map(each).collect()
    }

    /// Forgets every password: the next login of an account is its first again.
    async fn forget(&self) {
        self.server.run_sql(&["FLUSH PRIVILEGES"]).await.unwrap();
    }
}

/// One that reaches the server by its Unix socket.
async fn by_socket(server: &Server) -> SluiceProcess {
    let config = Config::in_front_of(server.addr(), Vec::new()).unwrap();
    let socket = format!("\"unix:{}\"", server.dir().join("s.sock").display());
    let yaml = config.render().replace(&format!("\"{}\"", config.primary), &socket);
    let mut sluice = SluiceProcess::spawn(&yaml, config.listen, config.admin, &[]).unwrap();
    sluice.wait_until_ready().await.unwrap();
    sluice
}

struct Way {
    name: String,
    addr: SocketAddr,
    tls: Tls,
    backend_in_tls: bool,
}

async fn open(way: &Way, user: &str) -> RawConn {
    let login = Login::new(user).tls(way.tls.clone());
    RawConn::open(way.addr, &login).await.unwrap_or_else(|error| panic!("{}: {error}", way.name))
}

async fn assert_is(conn: &mut RawConn, user: &str, way: &Way) {
    let who = conn.query("SELECT CURRENT_USER()").await.unwrap().first_text();
    assert_eq!(who, Some(format!("{user}@%")), "{}", way.name);
    let cipher = conn.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await.unwrap();
    let cipher = cipher.text_rows().unwrap()[0][1].clone().unwrap_or_default();
    assert_eq!(!cipher.is_empty(), way.backend_in_tls, "{}", way.name);
}

/// The error of a login with a wrong password, at the server itself or through Sluice.
async fn refusal(addr: SocketAddr, user: &str, tls: Tls) -> (u16, String) {
    let login = Login::new(user).password("wrong").tls(tls);
    match RawConn::open(addr, &login).await {
        Err(HarnessError::Refused { errno, message }) => {
            // By its socket the server says so.
            (errno, message.replace("'localhost'", "'127.0.0.1'"))
        }
        other => panic!("{user}: {other:?}"),
    }
}

#[tokio::test]
async fn the_first_login_and_a_cached_one_succeed_over_every_combination_of_legs_on_mysql() {
    let bench = Bench::new(Flavour::MySql).await;
    bench
        .server
        .run_sql(&[
            "CREATE USER 's256'@'%' IDENTIFIED WITH sha256_password BY 's256'",
            "GRANT SELECT ON test.* TO 's256'@'%'",
        ])
        .await
        .unwrap();
    for way in bench.ways() {
        for user in ["app", "s256"] {
            bench.forget().await;
            for first in [true, false] {
                let mut conn = open(&way, user).await;
                let full = conn.login_packets().iter().any(|packet| packet.payload == [0x01, 0x04]);
                assert_eq!(full, first && user == "app", "{}: full authentication", way.name);
                assert_is(&mut conn, user, &way).await;
            }
            bench.forget().await;
            let direct = refusal(bench.server.addr(), user, Tls::Never).await;
            assert_eq!(direct.0, 1045);
            assert_eq!(refusal(way.addr, user, way.tls.clone()).await, direct, "{}", way.name);
        }
    }
}

#[tokio::test]
async fn becoming_somebody_else_authenticates_anew_over_every_combination_of_legs() {
    let bench = Bench::new(Flavour::MySql).await;
    bench
        .server
        .run_sql(&[
            "CREATE USER 's256'@'%' IDENTIFIED WITH sha256_password BY 's256'",
            "GRANT SELECT ON test.* TO 's256'@'%'",
        ])
        .await
        .unwrap();
    for way in bench.ways() {
        let mut conn = open(&way, "etl").await;
        bench.forget().await;
        for user in ["app", "s256", "app"] {
            let login = Login::new(user).tls(way.tls.clone());
            let exchange = conn.change_user(&login).await.unwrap();
            assert!(exchange.iter().all(|packet| packet.err().is_none()), "{}", way.name);
            let sequences: Vec<u8> = exchange.iter().map(|packet| packet.seq).collect();
            assert!(sequences.windows(2).all(|pair| pair[0] < pair[1]), "{sequences:?}");
            assert_is(&mut conn, user, &way).await;
        }
        bench.forget().await;
        let wrong = Login::new("web").password("wrong");
        let exchange = conn.change_user(&wrong).await.unwrap();
        let (errno, message) = exchange.last().and_then(Packet::err).unwrap();
        assert_eq!(errno, 1045, "{}: {message}", way.name);
        assert!(!message.contains("sluice"), "{message}");
    }
}

#[tokio::test]
async fn logins_by_nonce_are_relayed_over_every_combination_of_legs_on_mariadb() {
    let bench = Bench::new(Flavour::MariaDb).await;
    bench
        .server
        .run_sql(&[
            "CREATE USER 'ed'@'%' IDENTIFIED VIA ed25519 USING PASSWORD('ed')",
            "GRANT SELECT ON test.* TO 'ed'@'%'",
        ])
        .await
        .unwrap();
    for way in bench.ways() {
        assert_is(&mut open(&way, "app").await, "app", &way).await;
        let direct = refusal(bench.server.addr(), "app", Tls::Never).await;
        assert_eq!(refusal(way.addr, "app", way.tls.clone()).await, direct, "{}", way.name);
        let mut conn = open(&way, "app").await;
        conn.change_user(&Login::new("etl")).await.unwrap();
        assert_is(&mut conn, "etl", &way).await;
        assert_eq!(mariadb(&way, "ed", "ed"), Ok("ed@%".to_owned()), "{}", way.name);
        let refused = mariadb(&way, "ed", "wrong").unwrap_err();
        assert!(refused.contains("ERROR 1045"), "{}: {refused}", way.name);
    }
}

/// Who the mariadb client is after its login.
fn mariadb(way: &Way, user: &str, password: &str) -> Result<String, String> {
    let tls = if matches!(way.tls, Tls::Never) { "--skip-ssl" } else { "--ssl" };
    let output = Command::new("mariadb")
        .args(["--no-defaults", "--host=127.0.0.1", "--skip-column-names", tls])
        .arg(format!("--port={}", way.addr.port()))
        .arg(format!("--user={user}"))
        .arg(format!("--password={password}"))
        .arg("--execute=SELECT CURRENT_USER()")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[tokio::test]
async fn an_expired_password_lets_in_and_allows_nothing_but_changing_it() {
    let bench = Bench::new(Flavour::MySql).await;
    bench.server.run_sql(&["ALTER USER 'web'@'%' PASSWORD EXPIRE"]).await.unwrap();
    let way = bench.ways().into_iter().find(|way| !way.backend_in_tls).unwrap();
    let login = Login::new("web").with(integration::raw::capability::CAN_HANDLE_EXPIRED_PASSWORDS);
    let mut conn = RawConn::open(way.addr, &login).await.unwrap();
    assert_eq!(conn.query("SELECT 1").await.unwrap().err().unwrap().0, 1820);
    conn.query("ALTER USER USER() IDENTIFIED BY 'web2'").await.unwrap().accepted().unwrap();
    assert_eq!(conn.query("SELECT 1").await.unwrap().first_text().as_deref(), Some("1"));
}

#[tokio::test]
async fn a_password_is_never_sent_in_the_clear_behind_an_encrypted_client() {
    let bench = Bench::new(Flavour::MariaDb).await;
    let installed = bench
        .server
        .run_sql(&["INSTALL SONAME 'auth_pam'", "CREATE USER 'pam'@'%' IDENTIFIED VIA pam"])
        .await;
    installed.unwrap();
    let ways = bench.ways();
    let exposed = ways.iter().find(|way| !matches!(way.tls, Tls::Never) && !way.backend_in_tls);
    let refused = mariadb(exposed.unwrap(), "pam", "secret").unwrap_err();
    assert!(refused.contains("ERROR 1043") && refused.contains("[sluice]"), "{refused}");
    assert!(refused.contains("as it is: dialog"), "{refused}");
    let safe = ways.iter().find(|way| !matches!(way.tls, Tls::Never) && way.backend_in_tls);
    let refused = mariadb(safe.unwrap(), "pam", "secret").unwrap_err();
    assert!(!refused.contains("sluice"), "the server's own answer: {refused}");
}

/// Where MySQL is reached until it falls silent: from then on, whoever asks for its key has no answer.
async fn silencing(server: SocketAddr, silent: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind(loopback(0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(server).await.unwrap();
            tokio::spawn(pass_on(client, server, silent.clone()));
        }
    });
    addr
}

async fn pass_on(mut client: TcpStream, mut server: TcpStream, silent: Arc<AtomicBool>) {
    let (mut asked, mut answered) = ([0; 4096], [0; 4096]);
    loop {
        let len = tokio::select! {
            len = client.read(&mut asked) => len.unwrap_or_default(),
            len = server.read(&mut answered) => {
                let len = len.unwrap_or_default();
                if len == 0 || client.write_all(&answered[..len]).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let asks_for_key = matches!(&asked[..len], [1, 0, 0, _, 2]);
        if asks_for_key && silent.load(Ordering::Relaxed) {
            while matches!(client.read(&mut asked).await, Ok(1..)) {}
            return;
        }
        if len == 0 || server.write_all(&asked[..len]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_server_that_keeps_its_key_to_itself_is_waited_for_no_longer_than_for_its_greeting() {
    let server = Server::start(ServerOptions::new(Flavour::MySql)).await.unwrap();
    let silent = Arc::new(AtomicBool::new(false));
    let between = silencing(server.addr(), silent.clone()).await;
    let in_front = |timeout: &str| {
        let keys = format!("backend_tls: {{ mode: disabled }}\nconnect_timeout: {timeout}");
        Config::in_front_of(between, Vec::new()).unwrap().cluster(&keys)
    };
    let hurried = SluiceProcess::start(&in_front("1s")).await.unwrap();
    let patient = SluiceProcess::start(&in_front("60s")).await.unwrap();
    server.run_sql(&["FLUSH PRIVILEGES"]).await.unwrap();
    silent.store(true, Ordering::Relaxed);

    let started = Instant::now();
    let login = Login::new("app").tls(Tls::Newest);
    let refused = RawConn::open(hurried.listen_addr(), &login).await;
    let Err(HarnessError::Refused { errno, message }) = refused else { panic!("{refused:?}") };
    assert_eq!(errno, 1053, "{message}");
    let why = "did not send its key for the password within 1s (connect_timeout)";
    assert!(message.starts_with("[sluice]") && message.contains(why), "{message}");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let metrics = hurried.metrics().await.unwrap();
    let errors = [("cluster", "main"), ("kind", "connect_timeout")];
    assert_eq!(metrics.value("sluice_backend_errors_total", &errors), Some(1.0));

    let leaves = RawConn::open(patient.listen_addr(), &login);
    assert!(tokio::time::timeout(Duration::from_secs(1), leaves).await.is_err());
    let left = Instant::now();
    let main = [("cluster", "main")];
    while patient.metrics().await.unwrap().value("sluice_client_connections", &main) != Some(0.0) {
        assert!(left.elapsed() < Duration::from_secs(5), "who has left is kept");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
