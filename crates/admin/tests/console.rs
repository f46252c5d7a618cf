//! The console's page and its stream, over a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use admin::{Access, AdminState};
use fleet::RuntimeRules;
use proxy::clock::Clock;
use proxy::cluster::Cluster;
use proxy::telemetry::{Reload, Telemetry, TelemetryConfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

const FILE: &str = "
version: 1
admin: { loopback_changes: true }
clusters:
  main: { listen: '127.0.0.1:0', primary: '127.0.0.1:3306' }
rules:
  - { name: nightly, match: { app: etl }, ratio: 0.9, permanent: true, reason: mornings }
guards:
  - { name: where, where_required: deny, max_in_list: 7 }
budgets:
  - { name: reports, match: { app: report }, max_concurrency: 4 }
";

fn open() -> (SocketAddr, Arc<Cluster>) {
    let config = policy::load(FILE).unwrap();
    let cluster = Cluster::new(config.clusters.first().unwrap().clone(), Clock::start(), 1);
    let clusters: Arc<[Arc<Cluster>]> = [Arc::clone(&cluster)].into();
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    telemetry.reload(Reload::Applied, 1.0);
    let rules = RuntimeRules::new(&clusters, &telemetry);
    let access = Arc::new(Access::new(&config.admin));
    let draining = Arc::new(AtomicBool::new(false));
    let history = history::History::default();
    let state = AdminState { clusters, telemetry, access, rules, history, draining };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, state));
    (address, cluster)
}

async fn ask(door: SocketAddr, path: &str, headers: &str) -> TcpStream {
    let mut socket = TcpStream::connect(door).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {door}\r\n{headers}\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

async fn get(door: SocketAddr, path: &str, headers: &str) -> String {
    let mut answer = String::new();
    let mut socket = ask(door, path, headers).await;
    timeout(SOON, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    answer
}

/// One who looks.
struct Viewer(BufReader<TcpStream>);

impl Viewer {
    async fn new(door: SocketAddr, query: &str) -> Self {
        Self(BufReader::new(ask(door, &format!("/api/v1/events{query}"), "").await))
    }

    /// The next event, with its data; `None` at the end.
    async fn event(&mut self) -> Option<(String, Value)> {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            if timeout(SOON, self.0.read_line(&mut line)).await.unwrap().unwrap() == 0 {
                return None;
            }
            if let Some(named) = line.strip_prefix("event: ") {
                name = named.trim().to_owned();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn the_page_and_its_files_are_there_and_may_load_nothing_from_elsewhere() {
    let (door, _) = open();
    let page = get(door, "/", "").await;
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<title>Sluice</title>"), "{page}");
    let policy = "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
                  connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                  frame-ancestors 'none'\r\n";
    assert!(page.contains(policy) && page.contains("x-content-type-options: nosniff"), "{page}");
    for (path, kind) in [
        ("/console/app.js", "text/javascript"),
        ("/console/app.css", "text/css"),
        ("/console/icon.svg", "image/svg+xml"),
        ("/console/uPlot.iife.min.js", "text/javascript"),
    ] {
        let file = get(door, path, "").await;
        assert!(file.starts_with("HTTP/1.1 200"), "{path}: {file}");
        assert!(file.contains(&format!("content-type: {kind}")), "{path}: {file}");
        assert!(file.contains(policy) && file.contains("nosniff"), "{path}: {file}");
        let etag = file.split("etag: ").nth(1).unwrap().lines().next().unwrap();
        let again = get(door, path, &format!("If-None-Match: {etag}\r\n")).await;
        assert!(again.starts_with("HTTP/1.1 304"), "{path}: {again}");
    }
    for path in ["/console/", "/console/nothing.js", "/console/..%2flib.rs"] {
        assert!(get(door, path, "").await.starts_with("HTTP/1.1 404"), "{path}");
    }
    // Who has no scripts is shown the way.
    assert!(page.contains("<noscript>") && page.contains("href=\"/plain\""), "{page}");
    assert!(get(door, "/plain", "").await.contains("<h1>Sluice</h1>"));
}

#[tokio::test]
async fn a_stream_begins_with_the_past_and_goes_on_with_a_frame_a_second_for_everybody() {
    let (door, cluster) = open();
    let mut early = Viewer::new(door, "?frames=3").await;
    let (name, past) = early.event().await.unwrap();
    assert_eq!(name, "past");
    assert_eq!(past.pointer("/clusters/0/cluster"), Some(&"main".into()));
    let (name, first) = early.event().await.unwrap();
    assert_eq!(name, "frame");
    assert_eq!(first.pointer("/status/clusters/0/throttled_total"), Some(&0.into()));
    assert_eq!(first.pointer("/status/clusters/0/rules_total"), Some(&1.into()));
    // What refuses beside rules is in every frame; apps and rules are not.
    let len = |list: &str| {
        let list = first.pointer(&format!("/status/clusters/0/{list}")).unwrap();
        list.as_array().unwrap().len()
    };
    let lens = ["guards", "budgets", "refused", "rules"].map(len);
    assert_eq!(lens, [2, 1, 0, 0]);
    let at = |frame: &Value| frame.pointer("/clusters/0/columns/at_s/0").unwrap().as_f64().unwrap();

    // Rules change: a mark, and another revision.
    let denied = FILE.replace("ratio: 0.9", "hold: true");
    cluster.apply(policy::load(&denied).unwrap().clusters.first().unwrap().clone());
    let mut late = Viewer::new(door, "?frames=1").await;
    let (_, earlier) = late.event().await.unwrap();
    let seen = earlier.pointer("/clusters/0/columns/at_s").unwrap().as_array().unwrap();
    assert!(seen.contains(&at(&first).into()), "{seen:?}");
    let (_, second) = early.event().await.unwrap();
    assert_eq!(late.event().await.unwrap().1, second, "all see the same frame");
    assert!(late.event().await.is_none(), "it wanted one");
    let step = at(&second) - at(&first);
    assert!((0.5..3.0).contains(&step), "{step}");
    let mark = second.pointer("/clusters/0/marks/0/text").unwrap().as_str().unwrap();
    assert!(mark.starts_with("nightly is now: hold"), "{mark}");
    assert_ne!(first.pointer("/clusters/0/revision"), second.pointer("/clusters/0/revision"));
}

#[tokio::test]
async fn there_is_a_bound_to_viewers_and_who_leaves_makes_room() {
    let (door, _) = open();
    let mut viewers = Vec::new();
    for _ in 0..48 {
        let mut viewer = Viewer::new(door, "").await;
        assert_eq!(viewer.event().await.unwrap().0, "past");
        viewers.push(viewer);
    }
    let refused = get(door, "/api/v1/events", "").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("/plain"), "{refused}");
    // None of them reads any more; health and other streams do not notice.
    assert!(get(door, "/healthz", "").await.ends_with("ok\n"));
    viewers.pop();
    let room = async {
        while !get(door, "/api/v1/events?frames=0", "").await.starts_with("HTTP/1.1 200") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(SOON, room).await.unwrap();
    assert!(get(door, "/api/v1/events?frames=x", "").await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn whose_changes_would_be_is_told_and_a_page_of_another_site_is_told_nothing() {
    let (door, _) = open();
    assert!(get(door, "/api/v1/access", "").await.contains("{\"author\":\"loopback\"}"));
    let wrong = get(door, "/api/v1/access", "Authorization: Bearer guess\r\n").await;
    assert!(wrong.starts_with("HTTP/1.1 403"), "nobody has a token here: {wrong}");
    let same = format!("Origin: http://{door}\r\nSec-Fetch-Site: same-origin\r\n");
    assert!(get(door, "/api/v1/access", &same).await.starts_with("HTTP/1.1 200"));
    let other = "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n";
    assert!(get(door, "/api/v1/access", other).await.starts_with("HTTP/1.1 403"));
}
