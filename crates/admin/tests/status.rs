//! `/api/v1`: the status as JSON, and the page beside it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use admin::status::{Status, Waiting};
use admin::{Access, AdminState};
use policy::{Action, Rule};
use proxy::clock::Clock;
use proxy::cluster::{ClientName, Cluster, Judgement, Waiter, ask};
use proxy::telemetry::{Reload, Telemetry, TelemetryConfig};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const FILE: &str = "
version: 1
clusters:
  main:
    listen: 127.0.0.1:3307
    primary: 127.0.0.1:3306
rules:
  - { name: held, match: { app: etl }, hold: true, max_queue: 20000, max_delay: 60s, permanent: true, reason: at night }
  - { name: gated, match: { app: batch }, gate: [lag], expires_at: 2127-01-01T07:00:00Z }
  - { name: once, match: { app: once }, ratio: 1, on_refused_check: reject, permanent: true }
";

struct Door {
    address: SocketAddr,
    state: AdminState,
}

fn open() -> Door {
    let config = policy::load(FILE).unwrap();
    let cluster = Cluster::new(config.clusters.first().unwrap().clone(), Clock::start(), 1);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    telemetry.reload(Reload::Applied, 1_798_786_800.25);
    let draining = Arc::new(AtomicBool::new(false));
    let access = Arc::new(Access::new(&config.admin));
    let clusters: Arc<[Arc<Cluster>]> = [cluster].into();
    let rules = fleet::RuntimeRules::new(&clusters, &telemetry);
    let history = history::History::default();
    let state = AdminState { clusters, telemetry, access, rules, history, draining };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, state.clone()));
    Door { address, state }
}

impl Door {
    async fn get(&self, path: &str) -> (String, String) {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    async fn status(&self, query: &str) -> Status {
        serde_json::from_str(&self.get(&format!("/api/v1/status{query}")).await.1).unwrap()
    }

    /// Has a statement of an app asked under a rule.
    fn ask(&self, rule: &str, app: &str) -> Judgement {
        let cluster = self.state.clusters.first().unwrap();
        let policy = cluster.policy();
        let rule: &Rule = policy.rules.iter().find(|known| *known.name == *rule).unwrap();
        let Action::Throttle { terms, gate, .. } = rule.action else { panic!("it throttles") };
        let request = admission::Request {
            rule: rule.key,
            identity: policy::identity_key(rule, app.as_bytes()),
            app: policy::app_key(rule, app.as_bytes()),
            digest: None,
            written: None,
            gate,
            terms,
            arrived: cluster.now(),
            since: cluster.now(),
        };
        ask(cluster, &request, app.as_bytes())
    }

    fn waits(&self, rule: &str, app: &str, connection_id: u32) -> Waiter {
        let Judgement::Queued(waiter) = self.ask(rule, app) else { panic!("it waits") };
        waiter.introduce(ClientName {
            user: b"batch_user".as_slice().into(),
            address: "10.0.0.7:4711".into(),
            connection_id,
        });
        waiter
    }
}

#[tokio::test]
async fn a_waiting_connection_has_user_address_age_rule_and_reason() {
    let door = open();
    let _waits = [door.waits("held", "night:etl", 42), door.waits("gated", "batch", 43)];
    let (head, body) = door.get("/api/v1/status").await;
    assert!(head.starts_with("HTTP/1.0 200") && head.contains("application/json"), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    let json: Value = serde_json::from_str(&body).unwrap();
    let held = json.pointer("/clusters/0/waiting/0").unwrap();
    let expected = [
        ("cluster", "main"),
        ("user", "batch_user"),
        ("client", "10.0.0.7:4711"),
        ("app", "night:etl"),
        ("rule", "held"),
        ("reason", "hold"),
    ];
    for (key, value) in expected {
        assert_eq!(held.get(key), Some(&value.into()), "{held}");
    }
    assert_eq!(held.get("connection_id"), Some(&42.into()));
    let waited = held.get("waited_s").unwrap().as_f64().unwrap();
    let left = held.get("left_s").unwrap().as_f64().unwrap();
    assert!((59.9..=60.1).contains(&(waited + left)), "{held}");
    // Without a value of the lag its gate is shut.
    let gated = json.pointer("/clusters/0/waiting/1").unwrap();
    assert_eq!(gated.get("reason"), Some(&"no_data".into()), "{gated}");
    assert_eq!(gated.get("signal"), Some(&"lag".into()), "{gated}");
    assert_eq!(gated.get("value"), Some(&Value::Null), "{gated}");
    assert_eq!(gated.get("threshold"), Some(&5.0.into()), "{gated}");
    assert_eq!(gated.get("unit"), Some(&"s".into()), "{gated}");
}

#[tokio::test]
async fn who_is_throttled_is_told_with_since_when_also_between_two_attempts() {
    let door = open();
    let _waits = [door.waits("held", "etl", 1), door.waits("held", "etl", 2)];
    assert!(matches!(door.ask("once", "once"), Judgement::Refused(_)));
    let status = door.status("").await;
    let cluster = status.clusters.first().unwrap();
    assert_eq!(cluster.throttled_total, 2);
    let [etl, once] = &*cluster.throttled else { panic!("{cluster:?}") };
    assert_eq!((&*etl.app, &*etl.rule, etl.waiting), ("etl", "held", 2));
    assert_eq!(etl.why.reason.as_deref(), Some("hold"));
    let since = etl.since.as_deref().unwrap();
    assert!(since.ends_with('Z') && *since <= *status.now, "{since}");
    assert!(etl.for_s.unwrap() < 5.0 && etl.oldest_s.is_some());
    assert_eq!((&*once.app, &*once.rule, once.waiting), ("once", "once", 0));
    assert!(once.why.reason.is_none() && once.for_s.is_some(), "{once:?}");
}

#[tokio::test]
async fn of_many_who_wait_the_oldest_are_listed_and_all_are_counted() {
    let door = open();
    let _waits: Vec<Waiter> =
        (0..2_000).map(|n| door.waits("held", &format!("{n}:etl"), n)).collect();
    let status = door.status("?limit=3").await;
    let cluster = status.clusters.first().unwrap();
    assert_eq!(cluster.waiting_total, 2_000);
    let ids = |status: &Status| -> Vec<u32> {
        let waiting = status.clusters.first().unwrap().waiting.iter();
        waiting.map(|waiting| waiting.connection_id).collect()
    };
    assert_eq!(ids(&status), [0, 1, 2]);
    assert_eq!((cluster.throttled.len(), cluster.throttled_total), (200, 2_000));
    assert_eq!(ids(&door.status("").await).len(), 100);
    assert_eq!(ids(&door.status("?limit=99999").await).len(), 1_000);
    let waiting: Waiting =
        serde_json::from_str(&door.get("/api/v1/waiting?limit=2").await.1).unwrap();
    assert_eq!((waiting.waiting.len(), waiting.waiting_total), (2, 2_000));
    assert!(door.get("/api/v1/waiting?limit=-1").await.0.starts_with("HTTP/1.0 400"));
    let (_, page) = door.get("/plain").await;
    assert!(page.contains("… and 1950 more."), "{page}");
}

/// It was reckoned back from the wall clock of now, so with each of its steps it was another process
/// to whoever counts on from there.
#[tokio::test]
async fn when_the_process_began_does_not_follow_a_clock_that_is_set() {
    let door = open();
    let before = door.status("").await;
    // An hour in which the wall clock stands still: it was set back by one.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    tokio::time::resume();
    let after = door.status("").await;
    assert_eq!(after.started_at, before.started_at);
}

#[tokio::test]
async fn the_rules_the_file_and_the_process_are_in_it() {
    let door = open();
    let status = door.status("").await;
    assert_eq!(status.version, env!("CARGO_PKG_VERSION"));
    assert!(status.ready && status.started_at <= status.now);
    assert!(status.config.last_reload_successful);
    assert_eq!(status.config.last_reload_at, "2027-01-01T07:00:00Z");
    let cluster = status.clusters.first().unwrap();
    assert_eq!((&*cluster.mode, &*cluster.pace.pacing), ("enforce", "adaptive"));
    assert_eq!(
        (&*cluster.primary.server, &*cluster.primary.state),
        ("127.0.0.1:3306", "not_probed")
    );
    let [held, gated, once] = &*cluster.rules else { panic!("{cluster:?}") };
    assert_eq!(once.does, "ratio 1, gate lag, refused at once");
    assert_eq!((&*held.action, &*held.does), ("hold", "hold, refused after 60 s"));
    assert_eq!((held.expires_at.as_deref(), &*held.reason), (None, "at night"));
    assert_eq!(gated.expires_at.as_deref(), Some("2127-01-01T07:00:00Z"));
    assert!(gated.expires_in_s.unwrap() > 0 && gated.standing == "in_force");
    door.state.telemetry.reload(Reload::Failed, 1_900_000_000.0);
    let edited = policy::load(&FILE.replace(":3306", ":3316")).unwrap();
    let edit = policy::edit(&policy::load(FILE).unwrap(), edited);
    door.state.telemetry.handle_fixed_keys(edit.fixed);
    let status = door.status("").await;
    assert!(status.ready && status.notes.len() == 2, "{status:?}");
    let config = status.config;
    let [primary] = &*config.restart_pending else { panic!("{config:?}") };
    assert_eq!((&*primary.key, &*primary.file), ("clusters.main.primary", "127.0.0.1:3316"));
    assert!(!config.last_reload_successful && !config.waits_for_files);
    assert_eq!(config.last_reload_at, "2027-01-01T07:00:00Z", "the one that is in force");
    door.state.telemetry.reload(Reload::Waiting, 1_900_000_000.0);
    let Status { notes, config, .. } = door.status("").await;
    assert!(!config.last_reload_successful && config.waits_for_files);
    assert!(notes[0].contains("is tried again by itself"), "{notes:?}");
}

/// After a restart there was a row of zeros for each app that a rule names.
#[tokio::test]
async fn apps_of_which_nothing_has_come_are_left_out() {
    let door = open();
    door.state.telemetry.handle_config(&policy::load(FILE).unwrap());
    assert!(!door.state.telemetry.app_counts().is_empty(), "they have series");
    let status = door.status("").await;
    let cluster = status.clusters.first().unwrap();
    assert_eq!((&*cluster.apps, cluster.apps_total), (&[][..], 0));
}

#[tokio::test]
async fn the_page_says_the_same() {
    let door = open();
    let _waits = door.waits("held", "etl", 42);
    let (_, page) = door.get("/plain").await;
    assert!(page.contains("<td>42<td>batch_user<td>10.0.0.7:4711<td>etl<td>held<td>"), "{page}");
    assert!(page.contains("<td>hold, refused after 60 s<td>enforce<td>0<td>never<td>at night"));
}
