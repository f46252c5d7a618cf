//! The HTTP door over a socket.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use admin::{Access, AdminState};
use policy::Config;
use proxy::clock::Clock;
use proxy::cluster::{Cluster, Judgement, ask};
use proxy::telemetry::{Reload, Telemetry, TelemetryConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FILE: &str = "
version: 1
clusters:
  main:
    listen: 127.0.0.1:0
    primary: 127.0.0.1:3306
rules:
  - { name: held, match: { app: etl }, hold: true, permanent: true, reason: 'R & D <b>' }
";

struct Door {
    address: SocketAddr,
    state: AdminState,
}

fn open() -> Door {
    open_with(None)
}

fn open_with(state_dir: Option<&Path>) -> Door {
    let config: Config = policy::load(FILE).unwrap();
    let cluster = Cluster::new(config.clusters.first().unwrap().clone(), Clock::start(), 1);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    telemetry.reload(Reload::Applied, 1.0);
    let draining = Arc::new(AtomicBool::new(false));
    let access = Arc::new(Access::new(&config.admin));
    let clusters: Arc<[Arc<Cluster>]> = [cluster].into();
    let rules = fleet::RuntimeRules::kept_in(state_dir, &clusters, &telemetry);
    let history = history::History::default();
    let state = AdminState { clusters, telemetry, access, rules, history, draining };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, state.clone()));
    Door { address, state }
}

impl Door {
    /// Status line, headers and body of an answer.
    async fn answer(&self, method: &str, path: &str) -> String {
        self.say(format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")).await
    }

    /// The same, where the door is called by this name.
    async fn called(&self, host: &str, path: &str) -> String {
        self.say(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).await
    }

    async fn say(&self, request: String) -> String {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test]
async fn metrics_are_in_the_text_format_of_prometheus() {
    let door = open();
    let answer = door.answer("GET", "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("content-type: text/plain; version=0.0.4"), "{answer}");
    assert!(answer.contains("\nsluice_build_info{version=\""), "{answer}");
    assert!(answer.contains("\nsluice_gate_open{cluster=\"main\",signal=\"lag\"} 0\n"), "{answer}");
}

#[tokio::test]
async fn it_is_live_while_it_runs_and_ready_until_clients_cannot_be_served() {
    let door = open();
    let answer = door.answer("GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\nready\n"), "{answer}");
    // Nobody who connects notices that the file on disk is broken, or that a key waits.
    door.state.telemetry.reload(Reload::Failed, 2.0);
    let edited = policy::load(&FILE.replace(":3306", ":3307")).unwrap();
    let edit = policy::edit(&policy::load(FILE).unwrap(), edited);
    door.state.telemetry.handle_fixed_keys(edit.fixed);
    let answer = door.answer("GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\r\n\r\nready\n"), "{answer}");
    assert!(answer.contains("has faults"), "{answer}");
    let pending = "clusters.main.primary (127.0.0.1:3306 runs, the file says 127.0.0.1:3307)";
    assert!(answer.contains(&format!("waits for a restart: {pending}\n")), "{answer}");
    let page = door.answer("GET", "/plain").await;
    assert!(page.contains("Ready.") && page.contains("waits for a restart"), "{page}");
    let metrics = door.answer("GET", "/metrics").await;
    let series = "sluice_config_restart_pending{cluster=\"main\",key=\"primary\"} 1\n";
    assert!(metrics.contains(series), "{metrics}");
    door.state.draining.store(true, Ordering::Relaxed);
    let answer = door.answer("GET", "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("draining"), "{answer}");
    assert!(door.answer("GET", "/healthz").await.starts_with("HTTP/1.1 200"));
    assert!(door.answer("HEAD", "/healthz").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_state_dir_that_cannot_be_written_is_a_line_of_a_sluice_that_is_ready() {
    let door = open_with(Some(Path::new("/dev/null/sluice")));
    let answer = door.answer("GET", "/readyz").await;
    let line = "runtime rules are not kept on disk: state_dir /dev/null/sluice: Not a directory";
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(line), "{answer}");
}

#[tokio::test]
async fn what_changes_something_or_is_not_there_is_refused() {
    let door = open();
    let answer = door.answer("POST", "/metrics").await;
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("allow: GET,HEAD"), "{answer}");
    assert!(answer.contains("{\"error\":\"method_not_allowed\","), "{answer}");
    let answer = door.answer("GET", "/nothing").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("{\"error\":\"not_found\","), "{answer}");
    // No other site is told that it might.
    let answer = door.answer("OPTIONS", "/api/v1/status").await;
    assert!(answer.starts_with("HTTP/1.1 405") && !answer.contains("access-control"), "{answer}");
}

#[tokio::test]
async fn pages_of_other_sites_do_not_read_who_is_here_by_a_name_of_theirs() {
    let door = open();
    for path in ["/", "/plain", "/api/v1/events?frames=0", "/api/v1/status", "/api/v1/waiting"] {
        let answer = door.called("evil.example:9307", path).await;
        assert!(answer.starts_with("HTTP/1.1 421"), "{path}: {answer}");
        assert!(!answer.contains("etl") && answer.contains("admin.hosts"), "{path}: {answer}");
        for ours in ["127.0.0.1:9307", "localhost", "[::1]:9307", "sluice"] {
            assert!(door.called(ours, path).await.starts_with("HTTP/1.1 200"), "{ours} {path}");
        }
    }
    for path in ["/healthz", "/metrics"] {
        assert!(door.called("db1.example", path).await.starts_with("HTTP/1.1 200"), "{path}");
    }
}

#[tokio::test]
async fn the_page_shows_who_waits_and_names_of_clients_are_only_text_in_it() {
    let door = open();
    let cluster = door.state.clusters.first().unwrap();
    let policy = cluster.policy();
    let rule = policy.rules.of_file().first().unwrap();
    let policy::Action::Throttle { terms, gate, .. } = rule.action else { panic!("it throttles") };
    let app = b"<script>alert(1)</script>:etl";
    let identity = policy::identity_key(rule, app);
    let arrived = cluster.now();
    let request = admission::Request {
        rule: rule.key,
        identity,
        app: policy::app_key(rule, app),
        digest: None,
        written: None,
        gate,
        terms,
        arrived,
        since: arrived,
    };
    let Judgement::Queued(waiter) = ask(cluster, &request, app) else { panic!("it is held") };
    let page = door.answer("GET", "/plain").await;
    drop(waiter);
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    assert!(page.contains("content-security-policy: default-src 'none'"), "{page}");
    assert!(page.contains("<td>&lt;script&gt;alert(1)&lt;/script&gt;:etl<td>held<td>1<td>"));
    assert!(page.contains("R &amp; D") && page.contains(">hold"), "{page}");
    assert!(!page.contains("<script") && !page.contains("<b>"), "{page}");
}
