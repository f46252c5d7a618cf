//! `/api/v1/rules` over a socket, and docs/openapi.yaml held to what is answered.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail by panicking, as the tests do"
)]

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use admin::rules::{Changed, Rules};
use admin::{Access, AdminState};
use fleet::RuntimeRules;
use proxy::clock::Clock;
use proxy::cluster::Cluster;
use proxy::telemetry::{Reload, Telemetry, TelemetryConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[path = "rules/openapi.rs"]
mod openapi;

const FILE: &str = "
version: 1
admin: { loopback_changes: true }
clusters:
  main: { listen: '127.0.0.1:0', primary: '127.0.0.1:3306' }
  other: { listen: '127.0.0.1:1', primary: '127.0.0.1:3307' }
rules:
  - { name: nightly, match: { app: etl }, ratio: 0.9, permanent: true, reason: mornings }
";

/// A door behind which there is nothing but rules.
struct Door {
    address: SocketAddr,
    clusters: Arc<[Arc<Cluster>]>,
}

/// Status, head and body of an answer.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn open(file: &str) -> Door {
    let config = policy::load(file).unwrap();
    let cluster =
        |policy: &Arc<policy::ClusterPolicy>| Cluster::new(policy.clone(), Clock::start(), 1);
    let clusters: Arc<[Arc<Cluster>]> = config.clusters.iter().map(cluster).collect();
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    telemetry.reload(Reload::Applied, 1.0);
    let state = AdminState {
        clusters: clusters.clone(),
        rules: RuntimeRules::new(&clusters, &telemetry),
        history: history::History::default(),
        telemetry,
        access: Arc::new(Access::new(&config.admin)),
        draining: Arc::new(AtomicBool::new(false)),
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(admin::serve(listener, state));
    Door { address, clusters }
}

impl Door {
    async fn get(&self, path: &str) -> Answer {
        self.say("GET", path, "", b"").await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.say("DELETE", path, "", b"").await
    }

    async fn post(&self, body: &Value) -> Answer {
        let body = body.to_string();
        self.say("POST", "/api/v1/rules", JSON, body.as_bytes()).await
    }

    async fn rules(&self, query: &str) -> Rules {
        serde_json::from_str(&self.get(&format!("/api/v1/rules{query}")).await.body).unwrap()
    }

    async fn say(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let len = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\
             Content-Length: {len}\r\n\r\n"
        );
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        // It may have been refused by its head.
        socket.write_all(body).await.ok();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.ok();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer { status: status.unwrap_or_default(), head: head.to_owned(), body: body.to_owned() }
    }

    /// Nothing but the file's rule stands.
    async fn assert_unchanged(&self) {
        let rules = self.rules("").await.rules;
        assert!(rules.iter().all(|rule| rule.source == "file"), "{rules:?}");
    }
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

const JSON: &str = "Content-Type: application/json\r\n";

#[tokio::test]
async fn a_rule_that_is_made_stands_before_the_files_and_is_lifted_again() {
    let door = open(FILE);
    let draft = json!({
        "app": "etl", "effect": "throttle", "ratio": 0.5, "for": "10m", "reason": "it is late",
        "cluster": "main",
    });
    let answer = door.post(&draft).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let made: Changed = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((&*made.change, &*made.author, made.rules.len()), ("made", "loopback", 1));
    let done = "etl: 5 of 10 checks refused on cluster main until ";
    assert!(made.done.starts_with(done) && made.done.contains("(in 10 min"), "{}", made.done);
    assert!(made.rules[0].expires_in_s.unwrap() > 590);

    let rules = door.rules("").await.rules;
    let shown: Vec<_> = rules.iter().map(|r| (&*r.cluster, &*r.source, &*r.rule)).collect();
    let expected = [
        ("main", "runtime", "runtime:etl"),
        ("main", "file", "nightly"),
        ("other", "file", "nightly"),
    ];
    assert_eq!(shown, expected);
    let rule = &rules[0];
    assert_eq!((rule.author.as_deref(), &*rule.reason), (Some("loopback"), "it is late"));
    assert_eq!((rule.ratio, rule.app.as_deref()), (Some(0.5), Some("etl")));
    assert_eq!(door.rules("?source=runtime").await.rules.len(), 1);
    assert_eq!(door.rules("?cluster=other&source=file").await.rules.len(), 1);
    assert_eq!(door.clusters[0].policy().rules.iter().count(), 2);

    let answer = door.delete("/api/v1/rules/runtime%3Aetl").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["change"], "lifted");
    door.assert_unchanged().await;
    let answer = door.delete("/api/v1/rules/runtime:etl").await;
    assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("not_found")));
}

/// Somebody holds `etl.*`, which is nobody, and ends a migration of hours.
#[tokio::test]
async fn what_can_hardly_be_meant_is_said_with_what_was_done() {
    let door = open(FILE);
    let done = async |body: Value| {
        let changed: Value = serde_json::from_str(&door.post(&body).await.body).unwrap();
        changed["done"].as_str().unwrap().to_owned()
    };
    for (body, warning) in [
        (json!({ "app": "etl.*", "effect": "deny" }), "; warning: `etl.*` is taken as it stands: "),
        (
            json!({ "app": "gh-ost", "effect": "hold" }),
            "; warning: `gh-ost` tries 60 times: a hold for 6 min ends it with an error; ",
        ),
        (
            json!({ "app": "pt-archiver", "effect": "throttle" }),
            "; warning: `pt-archiver` tries 2 times: a ratio of 1 for 10 s ends it with an error; ",
        ),
        (
            json!({ "app": "gh-ost", "effect": "throttle", "ratio": 0.9 }),
            "on a table that is written faster it falls behind meanwhile",
        ),
    ] {
        let done = done(body).await;
        assert!(done.contains(warning), "{warning} in {done}");
    }
    for body in [
        json!({ "app": "gh-ost", "effect": "hold", "for": "1m" }),
        json!({ "app": "gh-ost", "effect": "exempt" }),
        json!({ "app": "web", "effect": "throttle", "ratio": 0.9 }),
    ] {
        let done = done(body).await;
        assert!(!done.contains("warning"), "{done}");
    }
}

#[tokio::test]
async fn rules_are_lifted_by_whom_they_are_about() {
    let door = open(FILE);
    door.post(&json!({"app": "a/b c", "effect": "hold"})).await;
    door.post(&json!({"user": "batch", "effect": "deny"})).await;
    assert_eq!(door.rules("?source=runtime").await.rules.len(), 4);
    assert_eq!(door.delete("/api/v1/rules?app=a%2Fb+c").await.status, 200);
    assert_eq!(door.rules("?source=runtime").await.rules.len(), 2);
    assert_eq!(door.delete("/api/v1/rules?user=batch&cluster=other").await.status, 200);
    assert_eq!(door.rules("?source=runtime").await.rules.len(), 1);
    for (path, status) in [
        ("/api/v1/rules", 400),
        ("/api/v1/rules?cluster=main", 400),
        ("/api/v1/rules?ap=etl", 400),
        ("/api/v1/rules?user=batch&user=batch", 400),
        ("/api/v1/rules?user=batch&cluster=nowhere", 404),
        ("/api/v1/rules?app=etl", 404),
        ("/api/v1/rules/", 404),
        ("/api/v1/rules/%ff", 400),
        ("/api/v1/rules/%00", 404),
        ("/api/v1/rules/nightly", 404),
    ] {
        let answer = door.delete(path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.json()["message"].is_string(), "{path}");
    }
    assert_eq!(door.rules("?source=runtime").await.rules.len(), 1);
    let of_file = door.delete("/api/v1/rules/nightly").await;
    assert!(of_file.body.contains("edit the file"), "{of_file:?}");
}

#[tokio::test]
async fn a_rule_that_makes_no_sense_is_refused_with_all_that_is_wrong() {
    let door = open(FILE);
    let wrong = json!({
        "app": "etl", "effect": "stop", "ratio": 7, "x": 1, "for": "8d", "cluster": "nowhere"
    });
    let answer = door.post(&wrong).await;
    assert_eq!(answer.status, 400);
    let keys: Vec<_> =
        answer.json()["faults"].as_array().unwrap().iter().map(|f| f["key"].clone()).collect();
    assert_eq!(keys, ["x", "ratio", "effect", "for", "cluster"]);
    for draft in [
        json!({"app": "etl", "effect": "hold", "for": "8d"}),
        json!({"app": "etl", "effect": "hold", "for": "0s"}),
        json!({"app": "etl", "effect": "hold", "classes": ["reed"]}),
        json!({"app": "etl", "effect": "hold", "cluster": "nowhere"}),
        json!({"app": "a*b", "effect": "hold"}),
        json!([]),
    ] {
        let answer = door.post(&draft).await;
        assert_eq!(answer.status, 400, "{draft}: {answer:?}");
    }
    door.assert_unchanged().await;
}

#[tokio::test]
async fn what_is_no_json_of_ours_changes_nothing() {
    let door = open(FILE);
    let rule = br#"{"app": "etl", "effect": "hold"}"#;
    let path = "/api/v1/rules";
    for (method, path, headers, status) in [
        ("POST", path, "", 415),
        ("POST", path, "Content-Type: text/plain\r\n", 415),
        ("POST", path, "Content-Type: application/x-www-form-urlencoded\r\n", 415),
        ("POST", path, "Content-Type: application/json-seq\r\n", 415),
        ("PUT", path, JSON, 405),
        ("PATCH", path, JSON, 405),
        ("GET", "/api/v1/rules?app=etl&effect=hold", "", 400),
        ("GET", "/api/v1/rules/etl", "", 405),
        ("POST", "/api/v1/rules?app=etl", JSON, 400),
        ("POST", "/api/v1/rules/etl", JSON, 405),
        ("POST", path, "Content-Type: application/json\r\nOrigin: http://evil.example\r\n", 403),
        ("POST", path, "Content-Type: application/json\r\nX-Forwarded-For: 10.0.0.1\r\n", 403),
    ] {
        let answer = door.say(method, path, headers, rule).await;
        assert_eq!(answer.status, status, "{method} {path} {headers}: {answer:?}");
        assert!(!answer.head.to_lowercase().contains("access-control"), "{answer:?}");
    }
    let large =
        format!(r#"{{"app": "etl", "effect": "hold", "reason": "{}"}}"#, "x".repeat(20_000));
    let answer = door.say("POST", path, JSON, large.as_bytes()).await;
    assert!([0, 413].contains(&answer.status), "{answer:?}");
    door.assert_unchanged().await;
}

#[tokio::test]
async fn without_leave_of_the_file_nobody_changes_rules() {
    let door = open(&FILE.replace("loopback_changes: true", ""));
    let answer = door.post(&json!({"app": "etl", "effect": "hold"})).await;
    assert_eq!(answer.status, 403);
    assert!(answer.body.contains("admin.token_env"), "{answer:?}");
    let answer = door.delete("/api/v1/rules?app=etl").await;
    assert_eq!(answer.status, 403);
    door.assert_unchanged().await;
}

#[tokio::test]
async fn names_of_every_byte_come_back_as_they_were_said() {
    let door = open(FILE);
    for app in ["\"'\\", "日本語", "a b/c?d#e&f=g", "%2e%2e", "..", "a:b:c"] {
        let answer = door.post(&json!({"app": app, "effect": "hold", "cluster": "main"})).await;
        assert_eq!(answer.status, 200, "{app:?}: {answer:?}");
        let name = answer.json()["rules"][0]["rule"].as_str().unwrap().to_owned();
        let rules = door.rules("?source=runtime").await.rules;
        assert_eq!(rules[0].app.as_deref(), Some(app));
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
        assert_eq!(door.delete(&format!("/api/v1/rules/{encoded}")).await.status, 200, "{name}");
    }
    door.assert_unchanged().await;
}

#[tokio::test]
async fn names_that_no_terminal_should_see_are_refused() {
    let door = open(FILE);
    for app in ["a\u{0}b", "\u{1b}[31m", "a\nb"] {
        let answer = door.post(&json!({"app": app, "effect": "hold"})).await;
        assert_eq!(answer.status, 400, "{app:?}: {answer:?}");
    }
    door.assert_unchanged().await;
}
