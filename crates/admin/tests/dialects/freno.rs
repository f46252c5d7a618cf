//! freno's paths.

use crate::door::{Door, assert_has, shape};

const BODY: [(&str, &str); 4] =
    [("StatusCode", "number"), ("Value", "number"), ("Threshold", "number"), ("Message", "string")];

/// Path, lag, status, message.
const CHECKS: [(&str, f64, u16, &str); 25] = [
    ("/check/gated/mysql/main", 0.25, 200, ""),
    ("/check/gated/mysql/main", 7.5, 429, "Threshold exceeded"),
    ("/check/gated/mysql/main?rows=100", 7.5, 429, "Threshold exceeded"),
    ("/check/never/mysql/main", 0.25, 417, "App denied"),
    ("/check/abusing-app/mysql/main", 0.25, 417, "App denied"),
    ("/check/gated/mysql/second", 0.25, 500, "Metric not collected yet"),
    ("/check/gated/mysql/third", 0.25, 404, "No such metric"),
    ("/check/gated/redis/main", 0.25, 404, "No such metric"),
    ("/check/gated/mysql/main?m=loadavg", 0.25, 404, "No such metric"),
    ("/check-if-exists/gated/mysql/third", 0.25, 200, "No such metric"),
    ("/check-if-exists/gated/mysql/main", 0.25, 200, ""),
    ("/check-if-exists/gated/mysql/main", 7.5, 429, "Threshold exceeded"),
    ("/check-if-exists/gated/mysql/second", 0.25, 500, "Metric not collected yet"),
    ("/check-read/gated/mysql/main/10", 7.5, 200, ""),
    ("/check-read/gated/mysql/main/7.5", 7.5, 200, ""),
    ("/check-read/gated/mysql/main/0.2", 0.25, 429, "Threshold exceeded"),
    ("/check-read/gated/mysql/main/0", 0.25, 200, ""),
    ("/check-read/gated/mysql/main/-1", 7.5, 429, "Threshold exceeded"),
    ("/check-read/never/mysql/main/10", 0.25, 417, "App denied"),
    ("/check-read/nobody/mysql/main/0.2", 0.25, 429, "Threshold exceeded"),
    ("/check-read/gated/mysql/second/10", 0.25, 500, "Metric not collected yet"),
    ("/check-read/gated/mysql/main/soon", 0.25, 500, "the threshold is not a number"),
    ("/check-read-if-exists/gated/mysql/third/10", 0.25, 200, "No such metric"),
    ("/check-read-if-exists/gated/mysql/main/0.2", 0.25, 429, "Threshold exceeded"),
    ("/check/held/mysql/main", 0.25, 417, "App denied"),
];

#[tokio::test]
async fn a_check_has_frenos_codes_and_json_under_every_status() {
    let door = Door::open();
    for (path, lag, status, message) in CHECKS {
        door.signal("lag", lag);
        let reply = door.get(path).await;
        assert_eq!(reply.status, status, "{path} {reply:?}");
        let body = reply.json();
        assert_eq!(body["StatusCode"], status, "{path} {body}");
        assert_eq!(body["Message"], message, "{path} {body}");
        if message != "the threshold is not a number" {
            assert_has(&body, &BODY);
            if path.contains("/main") && status != 404 {
                assert_eq!(body["Value"], lag, "{path} {body}");
                assert!(body["Threshold"].as_f64().unwrap() > 0.0, "{path} {body}");
            }
        }
        let head = door.ask("HEAD", path).await;
        assert_eq!((head.status, &*head.body), (status, ""), "HEAD {path}");
        let post = door.ask("POST", path).await;
        assert_eq!(post.status, 405, "freno has no POST: {path}");
        assert!(post.header("allow").unwrap().contains("GET"), "{post:?}");
    }
    let unknown = door.get("/check/gated/mysql/third").await.json();
    let summary = unknown["Summary"].as_str().unwrap();
    assert!(summary.contains("main, second"), "it says which there are: {summary}");
    let read = door.get("/check-read/gated/mysql/main/0.125").await.json();
    assert_eq!(read["Threshold"], 0.125, "the client's own");
}

#[tokio::test]
async fn low_priority_gives_way_to_a_normal_write_and_not_to_a_read() {
    let door = Door::open();
    door.signal("lag", 7.5);
    let low = "/check/gated/mysql/main?p=low";
    assert_eq!(door.get("/check-read/gated/mysql/main/1").await.status, 429);
    assert_eq!(door.get(low).await.status, 429, "neither a read nor it itself makes it yield");
    assert_eq!(door.get(low).await.status, 429);
    assert_eq!(door.get("/check/gated/mysql/main").await.status, 429);
    assert_eq!(door.get(low).await.status, 417);
    assert_eq!(door.get("/check/free/mysql/second?p=low").await.status, 200, "another store");
}

#[tokio::test]
async fn apps_are_throttled_as_frenos_documentation_says() {
    let door = Door::without_table();
    let ok =
        |body: serde_json::Value| body == serde_json::json!({"StatusCode": 200, "Message": "OK"});
    let ratio_of = async |key: &str| {
        let apps = door.get("/throttled-apps").await.json();
        assert_eq!(apps["abusing-app"]["ExpireAt"], "0001-01-01T00:00:00Z");
        for (_, app) in apps.as_object().unwrap() {
            assert_has(app, &[("ExpireAt", "string"), ("Ratio", "number")]);
        }
        apps[key]["Ratio"].as_f64()
    };
    let left = async || {
        let standing = door.state.rules.standing();
        standing.first().map(|rule| rule.left.as_secs().div_ceil(60))
    };
    let reply = door.get("/throttle-app/gated/ttl/30/ratio/0.8").await;
    assert!(reply.status == 200 && ok(reply.json()), "{reply:?}");
    assert_eq!((ratio_of("gated").await, left().await), (Some(0.8), Some(30)));
    // A lone part leaves the other one.
    assert_eq!(door.get("/throttle-app/gated/ratio/0.5").await.status, 200);
    assert_eq!((ratio_of("gated").await, left().await), (Some(0.5), Some(30)));
    assert_eq!(door.get("/throttle-app/gated/ttl/10").await.status, 200);
    assert_eq!((ratio_of("gated").await, left().await), (Some(0.5), Some(10)));
    assert!(ok(door.get("/unthrottle-app/gated").await.json()));
    assert!(ok(door.get("/unthrottle-app/gated").await.json()), "also if there is none");
    assert_eq!(ratio_of("gated").await, None);
    // All of it, for an hour; and in one store only.
    assert_eq!(door.ask("POST", "/throttle-app/gated?store_name=main").await.status, 200);
    assert_eq!((ratio_of("gated/main").await, left().await), (Some(1.0), Some(60)));
    assert_eq!(door.get("/check/gated/mysql/main").await.status, 417);
    assert_eq!(door.get("/check/gated/mysql/second").await.status, 500, "its own lag only");
    assert_eq!(door.get("/unthrottle-app/gated?store_name=main").await.status, 200);
    assert_eq!(door.get("/check/gated/mysql/main").await.status, 200);
    for faulty in
        ["ttl/0", "ttl/x", "ttl/100000", "ratio/2", "ratio/-1", "ratio/x", "ttl/5/ratio/2"]
    {
        let reply = door.get(&format!("/throttle-app/gated/{faulty}")).await;
        assert_eq!(reply.status, 500, "{faulty} {reply:?}");
        assert_has(&reply.json(), &[("StatusCode", "number"), ("Message", "string")]);
    }
    let reply = door.get("/throttle-app/gated?store_name=third").await;
    assert_eq!(reply.status, 500, "{reply:?}");
    assert_eq!(ratio_of("gated").await, None);
}

/// Path, status, kind of the answer.
const LOOKS: [(&str, u16, &str); 21] = [
    ("/lb-check", 200, "general"),
    ("/_ping", 200, "general"),
    ("/status", 200, "general"),
    ("/leader-check", 200, "string"),
    ("/raft/leader", 200, "string"),
    ("/raft/state", 200, "string"),
    ("/consensus/leader", 200, "string"),
    ("/consensus/state", 200, "string"),
    ("/consensus/status", 200, "object"),
    ("/hostname", 200, "string"),
    ("/config/memcache", 200, "object"),
    ("/help", 200, "array"),
    ("/throttled-apps", 200, "object"),
    ("/recent-apps", 200, "object"),
    ("/recent-apps/5", 200, "object"),
    ("/recent-apps/soon", 500, "general"),
    ("/aggregated-metrics", 200, "object"),
    ("/metrics-health", 200, "object"),
    ("/skipped-hosts", 200, "object"),
    ("/skip-host/db1", 500, "general"),
    ("/recover-host/db1", 200, "general"),
];

#[tokio::test]
async fn everything_else_that_freno_shows_has_its_shape() {
    let door = Door::open();
    for (path, status, kind) in LOOKS {
        let reply = door.get(path).await;
        assert_eq!(reply.status, status, "{path} {reply:?}");
        let body = reply.json();
        match kind {
            "general" => assert_has(&body, &[("StatusCode", "number"), ("Message", "string")]),
            "string" => assert!(body.is_string(), "{path} {body}"),
            "array" => assert!(body.is_array(), "{path} {body}"),
            _ => assert!(body.is_object(), "{path} {body}"),
        }
        let head = door.ask("HEAD", path).await;
        assert_eq!((head.status, &*head.body), (status, ""), "HEAD {path}");
    }
    assert_eq!(door.get("/leader-check").await.json(), "HTTP 200");
    door.state.draining.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(door.get("/leader-check").await.status, 404);
    for (app, status) in [("nobody", 500), ("spared", 500), ("gated", 500), ("watched", 200)] {
        let reply = door.get(&format!("/check/{app}/mysql/main")).await;
        assert_eq!(reply.status, status, "{app}: {reply:?}");
        assert_eq!(reply.json()["Reason"], if status == 500 { "shutdown" } else { "" }, "{app}");
    }
    assert_eq!(door.get("/check-read/nobody/mysql/main/9").await.status, 500);
    let consensus = door.get("/consensus/status").await.json();
    let keys = ["Domain", "Healthy", "IsLeader", "Leader", "ServiceID", "ShareDomain", "State"];
    assert_eq!(shape(&consensus).iter().map(|(key, _)| &**key).collect::<Vec<_>>(), keys);
}

#[tokio::test]
async fn metrics_are_text_and_recent_apps_say_when() {
    let door = Door::open();
    let metrics = door.get("/aggregated-metrics").await.json();
    assert_eq!(metrics["mysql/main"], "0.250000");
    assert_eq!(metrics["mysql/second"], "error: Metric not collected yet");
    let brief = door.get("/aggregated-metrics?brief=true").await.json();
    assert_eq!(brief["mysql/main"], "0.250");
    let health = door.get("/metrics-health").await.json();
    assert_has(
        &health["mysql/main"],
        &[("LastHealthyAt", "string"), ("SecondsSinceLastHealthy", "number")],
    );
    assert_eq!(health["mysql/main"]["SecondsSinceLastHealthy"], 0);
    door.get("/check/gated/mysql/main").await;
    door.with_headers("HEAD", "/check/spared/mysql/main", "X-Forwarded-For: 10.9.8.7, 1.2.3.4\r\n")
        .await;
    let recent = door.get("/recent-apps/5").await.json();
    for key in ["gated/127.0.0.1", "spared/10.9.8.7, 1.2.3.4"] {
        assert_has(
            &recent[key],
            &[("CheckedAtEpoch", "number"), ("MinutesSinceChecked", "number")],
        );
    }
}
