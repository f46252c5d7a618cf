//! The HTTP door with a crowd before it that asks in parts, not at all, or does not read: health is
//! answered.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use admin::{Access, AdminState};
use proxy::clock::Clock;
use proxy::cluster::Cluster;
use proxy::telemetry::{Reload, Telemetry, TelemetryConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

#[tokio::test]
async fn health_is_answered_while_hundreds_have_sent_half_a_request() {
    let door = open(1);
    let half =
        ["", "G", "GET /healthz HTTP/1.1\r\nHost: x\r\n", "POST /metrics HTTP/1.1\r\nHost: x\r\n"];
    let mut crowd = Vec::new();
    for index in 0..600 {
        crowd.push(says(door, half[index % half.len()]).await);
        if index % 50 == 0 {
            assert_healthy(door).await;
        }
    }
    assert_healthy(door).await;
}

#[tokio::test]
async fn health_is_answered_while_hundreds_send_their_bodies_slowly() {
    let door = open(1);
    let mut crowd = Vec::new();
    for _ in 0..300 {
        let head = "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx";
        crowd.push(says(door, head).await);
    }
    for socket in &mut crowd {
        // Those that were answered already do not take it.
        socket.write_all(b"x").await.ok();
    }
    assert_healthy(door).await;
}

#[tokio::test]
async fn health_is_answered_while_hundreds_do_not_read_a_long_answer() {
    let door = open(3000);
    let mut crowd = Vec::new();
    for _ in 0..300 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(1024).unwrap();
        let mut socket = socket.connect(door).await.unwrap();
        socket.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        crowd.push(socket);
        assert_healthy(door).await;
    }
}

#[tokio::test]
async fn a_connection_carries_one_request() {
    let door = open(1);
    let mut socket = says(door, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let mut answer = String::new();
    timeout(Duration::from_secs(5), socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn half_a_request_is_not_waited_for() {
    let door = open(1);
    let mut socket = says(door, "GET /healthz HTTP/1.1\r\n").await;
    let started = tokio::time::Instant::now();
    let mut answer = Vec::new();
    // Closed without an answer, or reset.
    socket.read_to_end(&mut answer).await.ok();
    assert!(answer.is_empty());
    let waited = started.elapsed();
    assert!(waited >= Duration::from_secs(4) && waited < Duration::from_secs(7), "{waited:?}");
}

async fn says(door: SocketAddr, bytes: &str) -> TcpStream {
    let mut socket = TcpStream::connect(door).await.unwrap();
    socket.write_all(bytes.as_bytes()).await.unwrap();
    socket
}

async fn assert_healthy(door: SocketAddr) {
    let asked = async {
        let mut socket =
            says(door, "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = timeout(Duration::from_secs(1), asked).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
}

/// A door to so many rules.
fn open(rules: usize) -> SocketAddr {
    let mut file = String::from(
        "version: 1\nclusters:\n  main: { listen: 127.0.0.1:0, primary: 127.0.0.1:3306 }\nrules:\n",
    );
    for rule in 0..rules {
        file.push_str(&format!(
            "  - {{ name: r{rule}, match: {{ app: etl-{rule} }}, hold: true, permanent: true }}\n"
        ));
    }
    let config: policy::Config = policy::load(&file).unwrap();
    let cluster = Cluster::new(config.clusters.first().unwrap().clone(), Clock::start(), 1);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    telemetry.reload(Reload::Applied, 1.0);
    let draining = Arc::new(AtomicBool::new(false));
    let access = Arc::new(Access::new(&config.admin));
    let clusters: Arc<[Arc<Cluster>]> = [cluster].into();
    let rules = fleet::RuntimeRules::new(&clusters, &telemetry);
    let history = history::History::default();
    let state = AdminState { clusters, telemetry, access, rules, history, draining };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, state));
    address
}
