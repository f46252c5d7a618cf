//! A connection between a client and a server that are the other ends of two socket pairs. What
//! they say was recorded from MySQL 9.7; there is no server behind it. Time is tokio's, and stands
//! still until nobody can go on without it.

use std::sync::Arc;
use std::time::Duration;

use policy::ClusterPolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::arrival::{Joined, LoginDeadlines};
use super::super::serving::{Begun, Counted};
use super::super::{Connection, Shared};
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::registry::Inbox;
use crate::socket::{Peer, Socket};
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::workers::Affinity;

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// The server's id of the connection, as its greeting says it.
pub(super) const CONNECTION_ID: u32 = 42;

pub(super) const AUTOCOMMIT: u16 = 2;
pub(super) const IN_TRANSACTION: u16 = 3;

/// One connection that runs.
pub(super) struct Stage {
    pub(super) client: UnixStream,
    pub(super) server: UnixStream,
    pub(super) cluster: Arc<Cluster>,
    pub(super) telemetry: Arc<Telemetry>,
    task: JoinHandle<()>,
    driver: JoinHandle<()>,
}

/// The same before it runs, for a test that calls its parts.
pub(super) struct Parts {
    pub(super) client: UnixStream,
    pub(super) server: UnixStream,
    pub(super) connection: Connection,
    pub(super) deadlines: LoginDeadlines,
    pub(super) counted: Counted,
    pub(super) control: Inbox,
}

pub(super) fn policy(rules: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1 }} }}\nrules:\n{rules}"
    );
    policy::load(&text).unwrap().clusters[0].clone()
}

impl Parts {
    pub(super) fn new(rules: &str) -> Self {
        let cluster = Cluster::new(policy(rules), Clock::start(), 7);
        Self::of(cluster, Telemetry::new(TelemetryConfig { max_apps: 10 }))
    }

    /// Of one more connection of a cluster.
    pub(super) fn of(cluster: Arc<Cluster>, telemetry: Arc<Telemetry>) -> Self {
        let (client, accepted) = UnixStream::pair().unwrap();
        let (server, connected) = UnixStream::pair().unwrap();
        let (registration, control) = cluster.registry.enter();
        let counted = (registration, telemetry.client_connected(&cluster.name));
        let now = Instant::now();
        let deadlines = LoginDeadlines::new(now + CONNECT_TIMEOUT, CONNECT_TIMEOUT, LOGIN_TIMEOUT);
        let joined = Joined {
            client: Socket::Unix(accepted),
            backend: Socket::Unix(connected),
            peer: Peer::Local,
            deadlines,
            connected: now,
        };
        let policy = cluster.policy();
        let shared = Shared { cluster, telemetry };
        let (connection, deadlines) = Connection::new(shared, Affinity::alone(), policy, joined);
        Self { client, server, connection, deadlines, counted, control }
    }
}

impl Stage {
    /// Before anybody has said anything.
    pub(super) fn new(rules: &str) -> Self {
        Self::of(Parts::new(rules))
    }

    pub(super) fn of(parts: Parts) -> Self {
        let Parts { client, server, connection, deadlines, counted, control } = parts;
        let Shared { cluster, telemetry, .. } = connection.shared.clone();
        let driver = tokio::spawn(cluster.clone().drive());
        let task = tokio::spawn(async move {
            Begun::log_in(connection, deadlines, counted, control).await.run().await;
        });
        Self { client, server, cluster, telemetry, task, driver }
    }

    /// After the login.
    pub(super) async fn logged_in(rules: &str) -> Self {
        let mut stage = Self::new(rules);
        log_in(&mut stage.client, &mut stage.server).await;
        stage
    }

    /// The client sends a statement.
    pub(super) async fn asks(&mut self, sql: &str) {
        self.client.write_all(&query(sql)).await.unwrap();
    }

    /// The server gets this statement next, and says so much.
    pub(super) async fn runs(&mut self, sql: &str, answer: &[u8]) {
        assert_eq!(packet(&mut self.server).await, query(sql), "the server gets {sql}");
        self.server.write_all(answer).await.unwrap();
    }

    /// A statement that passes, and its answer.
    pub(super) async fn passes(&mut self, sql: &str, status: u16) {
        self.asks(sql).await;
        self.runs(sql, &ok(1, status)).await;
        assert_eq!(packet(&mut self.client).await, ok(1, status), "{sql} is answered");
    }

    /// Until as many statements wait in the queue.
    pub(super) async fn until_waiting(&self, count: usize) {
        while self.cluster.waiting().len() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The server has got nothing but the end, and the connection is over.
    pub(super) async fn ends_unasked(mut self) {
        assert_eq!(rest(&mut self.server).await, b"", "the server gets nothing");
        self.ends().await;
    }

    /// No client has answered the greeting: the server gets a login of nobody, and then the end.
    pub(super) async fn logs_nobody_in(mut self) {
        let login = packet(&mut self.server).await;
        assert_eq!(login[3], 1);
        assert!(login[36..].starts_with(b"sluice-client-without-login\0"), "{login:?}");
        self.ends_unasked().await;
    }

    /// The connection has ended of itself, and left nothing behind.
    pub(super) async fn ends(self) {
        self.task.await.unwrap();
        assert!(self.cluster.registry.is_empty());
        assert!(self.cluster.waiting().is_empty());
        self.driver.abort();
    }

    /// Whether the metrics have this line.
    pub(super) fn has_counted(&self, line: &str) -> bool {
        self.telemetry.gather(&[]).lines().any(|counted| counted.starts_with(line))
    }
}

/// The login, as MySQL's plugin mysql_native_password has it for an account without a password.
pub(super) async fn log_in(client: &mut UnixStream, server: &mut UnixStream) {
    server.write_all(&greeting()).await.unwrap();
    assert_eq!(packet(client).await[3], 0);
    client.write_all(&response()).await.unwrap();
    assert_eq!(packet(server).await[3], 1);
    server.write_all(&ok(2, AUTOCOMMIT)).await.unwrap();
    assert_eq!(packet(client).await, ok(2, AUTOCOMMIT));
}

/// The next packet, with its header.
pub(super) async fn packet(of: &mut UnixStream) -> Vec<u8> {
    tokio::time::timeout(READ_LIMIT, read_packet(of)).await.expect("nothing is said")
}

/// No step of a test takes so long; the clock is virtual.
const READ_LIMIT: Duration = Duration::from_secs(600);

async fn read_packet(of: &mut UnixStream) -> Vec<u8> {
    let mut header = [0; 4];
    of.read_exact(&mut header).await.unwrap();
    let len = u32::from_le_bytes([header[0], header[1], header[2], 0]);
    let mut packet = header.to_vec();
    packet.resize(4 + usize::try_from(len).unwrap(), 0);
    of.read_exact(&mut packet[4..]).await.unwrap();
    packet
}

/// Everything up to the end.
pub(super) async fn rest(of: &mut UnixStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let reading = tokio::time::timeout(READ_LIMIT, of.read_to_end(&mut rest));
    reading.await.expect("there is no end").unwrap();
    rest
}

/// The number and text of an ERR packet.
pub(super) fn error(packet: &[u8]) -> (u16, String) {
    assert_eq!(packet[4], 0xff, "an ERR packet: {packet:?}");
    let errno = u16::from_le_bytes([packet[5], packet[6]]);
    (errno, String::from_utf8_lossy(&packet[7..]).into_owned())
}

pub(super) fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).unwrap().to_le_bytes();
    [&len[..3], &[sequence], payload].concat()
}

pub(super) fn query(sql: &str) -> Vec<u8> {
    frame(0, &[b"\x03", sql.as_bytes()].concat())
}

pub(super) fn ok(sequence: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    frame(sequence, &[0, 1, 0, low, high, 0, 0])
}

/// `PROTOCOL_41`, `SECURE_CONNECTION`, `PLUGIN_AUTH`, `DEPRECATE_EOF`, `LONG_PASSWORD`.
const CAPABILITIES: u32 = 0x0108_8201;

pub(super) fn greeting() -> Vec<u8> {
    let [low0, low1, high0, high1] = CAPABILITIES.to_le_bytes();
    let mut payload = b"\x0a9.7.4\0".to_vec();
    payload.extend(CONNECTION_ID.to_le_bytes());
    payload.extend(b"saltsalt\0");
    payload.extend([low0, low1, 255, 2, 0, high0, high1, 21]);
    payload.extend([0; 10]);
    payload.extend(b"saltsaltsalt\0mysql_native_password\0");
    frame(0, &payload)
}

fn response() -> Vec<u8> {
    let mut payload = CAPABILITIES.to_le_bytes().to_vec();
    payload.extend([0, 0, 0, 1, 255]);
    payload.extend([0; 23]);
    payload.extend(b"app\0\0mysql_native_password\0");
    frame(1, &payload)
}
