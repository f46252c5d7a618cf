//! A door before two clusters whose signals are what a test says.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use admin::{Access, AdminState};
use admission::Sample;
use proxy::clock::Clock;
use proxy::cluster::Cluster;
use proxy::telemetry::{Telemetry, TelemetryConfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FILE: &str = "
version: 1
admin: { legacy_get: LEGACY, loopback_changes: true }
clusters:
  main:
    listen: 127.0.0.1:0
    primary: 127.0.0.1:3306
    replicas: [127.0.0.1:3316]
    probe: { user: sluice }
    pacing: binary
    signals:
      lag: { threshold: 1.5s, stale_after: 1h }
      threads_running: { threshold: 100, stale_after: 1h }
  second:
    listen: 127.0.0.1:0
    primary: 127.0.0.1:3307
    probe: { user: sluice }
    signals: { threads_running: { threshold: 100 }, lapsed: { status: Threads_cached, threshold: 10, stale_after: 200ms, on_no_data: open } }
rules:
  - { name: held, match: { app: held }, hold: true, permanent: true }
  - { name: denied, match: { app: denied }, deny: true, permanent: true }
  - { name: never, match: { app: never }, ratio: 1, permanent: true }
  - { name: free, match: { app: free }, gate: none, permanent: true }
  - { name: busy, match: { app: busy }, gate: [threads_running], permanent: true }
  - { name: spared, match: { app: spared }, exempt: true, essential: true, permanent: true }
  - { name: watched, match: { app: watched }, mode: observe, permanent: true }
  - { name: reads, match: { app: reader }, statements: [read], permanent: true }
  - { name: of-user, match: { user: etl }, deny: true, permanent: true }
  - { name: gated, match: { app: [gated, gh-ost, pt-archiver, 'online-ddl'] }, permanent: true }
";

pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) state: AdminState,
}

/// An answer: status, headers in small letters, and body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| *known == name).map(|(_, value)| value).next()
    }
}

impl Door {
    pub(crate) fn open() -> Self {
        Self::of(&FILE.replace("LEGACY", "true"))
    }

    /// Rules that are made here have no table to be written to, so that nobody waits for one.
    pub(crate) fn without_table() -> Self {
        Self::of(&tableless("true"))
    }

    pub(crate) fn without_legacy_get() -> Self {
        Self::of(&tableless("false"))
    }

    fn of(file: &str) -> Self {
        let config = policy::load(file).unwrap_or_else(|faults| panic!("{faults:?}"));
        let clock = Clock::start();
        let clusters: Arc<[Arc<Cluster>]> =
            config.clusters.iter().map(|policy| Cluster::new(policy.clone(), clock, 1)).collect();
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 50 });
        let access = Arc::new(Access::new(&config.admin));
        let rules = fleet::RuntimeRules::new(&clusters, &telemetry);
        let draining = Arc::new(AtomicBool::new(false));
        let history = history::History::default();
        let state = AdminState { clusters, telemetry, access, rules, history, draining };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(admin::serve(listener, state.clone()));
        let door = Self { address, state };
        door.signal("lag", 0.25);
        door.signal("threads_running", 5.0);
        door
    }

    /// The signal is measured on the first cluster.
    pub(crate) fn signal(&self, name: &str, value: f64) {
        self.signal_of(0, name, value);
    }

    pub(crate) fn signal_of(&self, cluster: usize, name: &str, value: f64) {
        let cluster = &self.state.clusters[cluster];
        let policy = cluster.policy();
        let signal = policy.signals.iter().find(|signal| &*signal.name == name);
        let Some(key) = signal.map(|signal| signal.key) else { return };
        cluster.control(|controller, now| {
            controller.handle_sample(now, key, Sample::Value(value));
        });
    }

    pub(crate) async fn ask(&self, method: &str, path: &str) -> Reply {
        self.with_headers(method, path, "").await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask("GET", path).await
    }

    pub(crate) async fn with_headers(&self, method: &str, path: &str, headers: &str) -> Reply {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        reply(&String::from_utf8_lossy(&answer))
    }

    pub(crate) async fn metrics(&self) -> String {
        self.get("/metrics").await.body
    }
}

fn tableless(legacy: &str) -> String {
    let probed = ["probe", "replicas", "threads_running", "busy"];
    let lines = FILE.lines().filter(|line| !probed.iter().any(|word| line.contains(word)));
    lines.collect::<Vec<_>>().join("\n").replace("LEGACY", legacy)
}

pub(crate) fn reply(answer: &str) -> Reply {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Reply { status: status.unwrap_or_default(), head: head.to_owned(), body: body.to_owned() }
}

/// The keys of an object and the kinds of their values, in order.
pub(crate) fn shape(value: &Value) -> Vec<(String, &'static str)> {
    let kind = |value: &Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let object = value.as_object().unwrap_or_else(|| panic!("not an object: {value}"));
    object.iter().map(|(key, value)| (key.clone(), kind(value))).collect()
}

/// Whether the object has these keys, each of this kind.
pub(crate) fn assert_has(value: &Value, wanted: &[(&str, &str)]) {
    let shape = shape(value);
    for (key, kind) in wanted {
        let found = shape.iter().find(|(known, _)| known == key);
        assert_eq!(found.map(|(_, kind)| *kind), Some(*kind), "{key} in {value}");
    }
}
