//! The admin door of a real Sluice in front of a real server: rules by the command line, who may
//! not make them, TLS, and a crowd that means no good.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use integration::certificates::Certificates;
use integration::footprint::Footprint;
use integration::raw::RawConn;
use integration::scenario::{Pending, Shared, Siege, connect, wait_for_depth, wait_until};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess, binary};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Rules are made here. They are on the server, so that other Sluices in front of it have them.
static MADE: Shared = Shared::new(Flavour::MySql);
/// And none here.
static QUIET: Shared = Shared::new(Flavour::MySql);

const TOKEN: &str = "correct-horse";
const PROBE: &str = "probe: { user: sluice, password_env: SLUICE_PROBE_PASSWORD }";
const WRITE: &str = "INSERT INTO door VALUES (1)";

/// On a machine that does much else.
const SOON: Duration = Duration::from_secs(3);

/// A Sluice whose `admin` has these keys too, and whose rules let everything pass.
async fn open(shared: &'static Shared, keys: &str) -> SluiceProcess {
    let servers = shared.get().await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE IF NOT EXISTS door (n INT)"]).await.unwrap();
    let config = Config::new(servers).unwrap();
    let listen = format!("admin: {{ listen: \"{}\"", config.admin);
    let mut yaml = config.render().replace(&listen, &format!("{listen}, {keys}"));
    if keys.contains("tls") {
        // Nobody writes its rules to the server.
        yaml = yaml.replace(PROBE, "");
    }
    let addresses = (config.listen, config.admin);
    let environment = [("SLUICE_TEST_TOKEN", TOKEN)];
    let mut sluice = SluiceProcess::spawn(&yaml, addresses.0, addresses.1, &environment).unwrap();
    if keys.contains("tls") {
        return sluice;
    }
    sluice.wait_until_ready().await.unwrap();
    sluice
}

/// `sluice …`, with this token.
async fn command(arguments: &[&str], token: Option<&str>) -> Output {
    let mut command = Command::new(binary().unwrap());
    command.args(arguments).env_remove("SLUICE_ADMIN_TOKEN");
    if let Some(token) = token {
        command.env("SLUICE_ADMIN_TOKEN", token);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_hold_made_by_the_command_line_holds_within_a_second_and_its_lift_lets_go() {
    let sluice = open(&MADE, "token_env: SLUICE_TEST_TOKEN").await;
    let admin = format!("http://{}", sluice.admin_addr());
    let mut conn = connect(&sluice, "etl").await.unwrap();
    conn.query(WRITE).await.unwrap().accepted().unwrap();

    let hold = ["hold", "etl", "--for", "10m", "--reason", "it is late", "--admin", &admin];
    let made = command(&hold, Some(TOKEN)).await;
    let made_at = Instant::now();
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let said = text(&made.stdout);
    assert!(said.starts_with("etl: held, nothing passes on cluster main until "), "{said}");
    assert!(said.contains("(in 10 min)") && said.contains("on the primary"), "{said}");

    let held = Pending::query(conn, WRITE);
    wait_for_depth(&sluice, "runtime:etl", 1).await.unwrap();
    assert!(made_at.elapsed() < Duration::from_secs(1), "{:?}", made_at.elapsed());
    let rules = text(&command(&["rules", "--admin", &admin], None).await.stdout);
    assert!(rules.contains("runtime:etl") && rules.contains("by admin"), "{rules}");
    assert!(rules.contains("“it is late”"), "{rules}");

    let lifted = command(&["unthrottle", "etl", "--admin", &admin], Some(TOKEN)).await;
    assert_eq!(lifted.status.code(), Some(0), "{lifted:?}");
    let answered = held.answered(Duration::from_secs(1)).await.unwrap();
    answered.response.accepted().unwrap();

    let throttle = ["throttle", "etl", "--ratio", "1", "--for", "10m", "--admin", &admin];
    let throttled = command(&[&throttle[..], &["--format", "json"]].concat(), Some(TOKEN)).await;
    assert!(text(&throttled.stdout).contains("\"ratio\":1.0"), "{throttled:?}");
    let again = command(&["unthrottle", "nobody", "--admin", &admin], Some(TOKEN)).await;
    assert_eq!(again.status.code(), Some(1), "{again:?}");
    let usage = command(&["throttle", "etl", "--ratio", "2"], Some(TOKEN)).await;
    assert_eq!(usage.status.code(), Some(2), "{usage:?}");
}

#[tokio::test]
async fn who_may_not_changes_nothing() {
    let sluice = open(&QUIET, "token_env: SLUICE_TEST_TOKEN").await;
    let admin = format!("http://{}", sluice.admin_addr());
    for token in [None, Some("wrong-horse"), Some("correct-hors")] {
        let refused = command(&["hold", "etl", "--admin", &admin], token).await;
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        let said = text(&refused.stderr);
        assert!(said.contains("token") && !said.contains(TOKEN), "{said}");
    }
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    let json = "Content-Type: application/json\r\n";
    let host = format!("Host: {}\r\n", sluice.admin_addr());
    for (method, headers, status) in [
        ("POST", format!("{host}{json}"), 401),
        ("GET", format!("{host}{json}{bearer}"), 200),
        ("PUT", format!("{host}{json}{bearer}"), 405),
        ("POST", format!("{host}{bearer}"), 415),
        ("POST", format!("{host}{bearer}Content-Type: text/plain\r\n"), 415),
        ("POST", format!("Host: evil.example\r\n{json}{bearer}"), 421),
        ("POST", format!("{host}{json}{bearer}Origin: http://evil.example\r\n"), 403),
    ] {
        let body = r#"{"app": "etl", "effect": "hold"}"#;
        let len = body.len();
        let request = format!(
            "{method} /api/v1/rules HTTP/1.1\r\n{headers}Connection: close\r\n\
             Content-Length: {len}\r\n\r\n{body}"
        );
        let answer = say(&sluice, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    let rules = sluice.http_get("/api/v1/rules?source=runtime").await.unwrap();
    assert!(rules.body.contains("\"rules\":[]"), "{}", rules.body);
    let mut conn: RawConn = connect(&sluice, "etl").await.unwrap();
    conn.query(WRITE).await.unwrap().accepted().unwrap();
    assert!(!sluice.log().unwrap().contains(TOKEN));
}

#[tokio::test]
async fn over_tls_the_door_is_known_by_its_certificate_and_plain_http_is_refused() {
    let authority = Certificates::new().unwrap();
    let own = authority.issue("door", &["127.0.0.1", "localhost"]).unwrap();
    let keys = format!(
        "token_env: SLUICE_TEST_TOKEN, tls: {{ cert: {}, key: {} }}",
        own.cert.display(),
        own.key.display()
    );
    let sluice = open(&QUIET, &keys).await;
    let admin = format!("https://{}", sluice.admin_addr());
    let ca = authority.ca().display().to_string();
    let rules = ["rules", "--admin", &admin, "--ca", &ca];
    let is_up = || async { Ok(command(&rules, None).await.status.success()) };
    wait_until("the door is open", Duration::from_secs(5), is_up).await.unwrap();
    let hold = ["hold", "etl", "--admin", &admin, "--ca", &ca];
    let made = command(&hold, Some(TOKEN)).await;
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    // By the file, whose certificate needs nobody else's word.
    let file = sluice.config_path().display().to_string();
    let shown = text(&command(&["rules", "--config", &file], None).await.stdout);
    assert!(shown.contains("runtime:etl"), "{shown}");

    let others = Certificates::new().unwrap();
    let stranger = others.ca().display().to_string();
    let doubted = command(&["rules", "--admin", &admin, "--ca", &stranger], None).await;
    assert_eq!(doubted.status.code(), Some(1), "{doubted:?}");
    let plain = format!("http://{}", sluice.admin_addr());
    let refused = command(&["rules", "--admin", &plain], None).await;
    assert!(text(&refused.stderr).contains("https://"), "{refused:?}");
    let answer = say(&sluice, b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && !answer.contains("sluice_"), "{answer}");
}

#[tokio::test]
async fn a_thousand_hostile_connections_are_nothing_to_health_traffic_or_memory() {
    let mut sluice = open(&QUIET, "token_env: SLUICE_TEST_TOKEN").await;
    let before = Footprint::of(&sluice).unwrap();
    let siege = Siege::begin(&sluice).await.unwrap();
    let mut crowd = Vec::new();
    let mut slowest = Duration::ZERO;
    for index in 0..1_000_usize {
        let mut socket = TcpStream::connect(sluice.admin_addr()).await.unwrap();
        // Whoever is refused or has to give way may not take it all.
        socket.write_all(&hostile(index)).await.ok();
        crowd.push(socket);
        if index % 100 == 99 {
            let asked = Instant::now();
            let health = sluice.http_get("/healthz").await.unwrap();
            assert_eq!(health.status, 200);
            slowest = slowest.max(asked.elapsed());
        }
    }
    let open = Footprint::of(&sluice).unwrap().descriptors;
    assert!(open < before.descriptors + 300, "{open} descriptors, {before:?}");
    assert!(slowest < SOON, "{slowest:?}");
    drop(crowd);
    let seen = siege.end(&mut sluice).await.unwrap();
    assert!(seen.statements > 20 && seen.slowest < SOON, "{seen:?}");
    let rules = sluice.http_get("/api/v1/rules?source=runtime").await.unwrap();
    assert!(rules.body.contains("\"rules\":[]"), "{}", rules.body);
}

/// One of the things that no client of ours would send.
fn hostile(index: usize) -> Vec<u8> {
    let byte = u8::try_from(index % 256).unwrap_or_default();
    let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: localhost\r\n").into_bytes();
    match index % 10 {
        0 => Vec::new(),
        1 => head("GET /healthz"),
        2 => [&head("POST /api/v1/rules")[..], b"Content-Length: 99999999\r\n\r\n{"].concat(),
        3 => [&b"GET /"[..], &[byte; 60_000], b" HTTP/1.1\r\n\r\n"].concat(),
        4 => [&head("GET /")[..], &b"A: b\r\n".repeat(2_000)].concat(),
        5 => [&head("DELETE /api/v1/rules/%00%ff..%2f..")[..], b"\r\n"].concat(),
        6 => vec![byte; 20_000],
        7 => [&head("POST /api/v1/rules")[..], b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n{"]
            .concat(),
        8 => [&head("GET /api/v1/rules")[..], b"\r\n"].concat().repeat(50),
        _ => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
    }
}

/// What is answered to these bytes.
async fn say(sluice: &SluiceProcess, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(sluice.admin_addr()).await.unwrap();
    socket.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = socket.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(10), read).await.unwrap().ok();
    text(&answer)
}
