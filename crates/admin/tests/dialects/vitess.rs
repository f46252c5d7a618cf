//! `/throttler/…`.

use std::time::Duration;

use crate::door::{Door, assert_has, shape};

/// What clients of any generation find in the answer to a check, whatever its status.
const BODY: [(&str, &str); 15] = [
    ("StatusCode", "number"),
    ("ResponseCode", "number"),
    ("Value", "number"),
    ("Threshold", "number"),
    ("Message", "string"),
    ("RecentlyChecked", "bool"),
    ("AppName", "string"),
    ("MetricName", "string"),
    ("Scope", "string"),
    ("Metrics", "object"),
    ("Summary", "string"),
    ("Reason", "string"),
    ("Rule", "string"),
    ("Signal", "string"),
    ("AppName", "string"),
];

const METRIC: [(&str, &str); 6] = [
    ("ResponseCode", "number"),
    ("Scope", "string"),
    ("Value", "number"),
    ("Threshold", "number"),
    ("Message", "string"),
    ("AppName", "string"),
];

/// Path, lag, status, `ResponseCode`, message, reason, rule.
type Case = (&'static str, f64, u16, u64, &'static str, &'static str, &'static str);

const CHECKS: [Case; 22] = [
    ("?app=gated", 0.25, 200, 1, "", "", "gated"),
    ("?app=gated", 7.5, 429, 2, "Threshold exceeded", "gate_closed", "gated"),
    ("?app=held", 0.25, 417, 3, "App denied", "hold", "held"),
    ("?app=denied", 0.25, 417, 3, "App denied", "deny", "denied"),
    ("?app=never", 0.25, 417, 3, "App denied", "ratio", "never"),
    ("?app=never", 7.5, 417, 3, "App denied", "ratio", "never"),
    ("?app=free", 7.5, 200, 1, "", "ungated", "free"),
    ("?app=spared", 7.5, 200, 1, "", "exempt", "spared"),
    ("?app=spared&m=lag", 7.5, 200, 1, "", "exempt", "spared"),
    ("?app=watched", 7.5, 200, 1, "", "gate_closed", "watched"),
    ("?app=busy", 7.5, 200, 1, "", "", "busy"),
    ("?app=busy&m=lag", 7.5, 429, 2, "Threshold exceeded", "gate_closed", "busy"),
    ("?app=busy&m=shard/lag,self/threads_running", 0.25, 200, 1, "", "", "busy"),
    ("?app=gated&m=loadavg", 0.25, 404, 4, "No such metric", "unknown_metric", ""),
    ("?app=gated&m=self/lag", 0.25, 404, 4, "No such metric", "unknown_metric", ""),
    ("?app=nobody", 7.5, 200, 1, "", "no_rule", ""),
    ("?app=reader", 7.5, 200, 1, "", "not_covered", "reads"),
    ("", 7.5, 200, 1, "", "no_rule", ""),
    ("?app=", 0.25, 417, 3, "no app indicated", "no_app", ""),
    ("?app=gated&cluster=third", 0.25, 404, 4, "No such metric", "unknown_cluster", ""),
    ("?app=gated&rows=many", 0.25, 500, 5, "`rows` is not a whole number", "bad_request", ""),
    ("?app=always-throttled-app", 0.25, 417, 3, "App denied", "always", ""),
];

#[tokio::test]
async fn a_check_has_the_status_and_the_keys_of_every_generation_of_clients() {
    let door = Door::open();
    for (query, lag, status, code, message, reason, rule) in CHECKS {
        door.signal("lag", lag);
        for path in ["/throttler/check", "/throttler/check-self"] {
            let path = format!("{path}{query}");
            let reply = door.get(&path).await;
            assert_eq!(reply.status, status, "{path} {reply:?}");
            assert_eq!(reply.header("content-type"), Some("application/json"));
            let body = reply.json();
            assert_has(&body, &BODY);
            assert_eq!(body["StatusCode"], status, "{path} {body}");
            assert_eq!(body["ResponseCode"], code, "{path} {body}");
            assert_eq!(body["Message"], message, "{path} {body}");
            assert_eq!(body["Reason"], reason, "{path} {body}");
            assert_eq!(body["Rule"], rule, "{path} {body}");
            assert!(
                !body["Summary"].as_str().unwrap().is_empty() || body["Reason"] == "",
                "{body}"
            );
            for metric in body["Metrics"].as_object().unwrap().values() {
                assert_has(metric, &METRIC);
            }
            let head = door.ask("HEAD", &path).await;
            assert_eq!((head.status, &*head.body), (status, ""), "HEAD {path}");
            assert_eq!(door.ask("POST", &path).await.status, status, "POST {path}");
        }
    }
}

#[tokio::test]
async fn value_and_threshold_are_real_whatever_the_status_and_retry_after_is_said_where_known() {
    let door = Door::open();
    for (app, lag) in [("gated", 7.5), ("gated", 0.25), ("never", 0.25), ("nobody", 0.5)] {
        door.signal("lag", lag);
        let body = door.get(&format!("/throttler/check?app={app}")).await.json();
        assert_eq!(body["Value"], lag, "{body}");
        assert_eq!(body["Threshold"], 1.5, "{body}");
        assert_eq!((&body["MetricName"], &body["Scope"]), (&"lag".into(), &"shard".into()));
        assert_eq!(body["Metrics"]["lag"]["Value"], lag, "{body}");
    }
    door.signal("lag", 7.5);
    let reply = door.get("/throttler/check?app=1234:vcopier:gated").await;
    let body = reply.json();
    assert_eq!(
        (body["Signal"].as_str(), body["AppName"].as_str()),
        (Some("lag"), Some("1234:vcopier:gated"))
    );
    assert!(body["Summary"].as_str().unwrap().contains("7.5 exceeding threshold 1.5"), "{body}");
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert!(body["RetryAfterMs"].as_u64().unwrap() > 0, "{body}");
    assert_eq!(door.get("/throttler/check?app=free").await.header("retry-after"), None);
    door.signal("threads_running", 300.0);
    let body = door.get("/throttler/check?app=busy").await.json();
    assert_eq!((&body["Signal"], &body["Value"]), (&"threads_running".into(), &300.0.into()));
    assert_eq!(body["Scope"], "self");
}

#[tokio::test]
async fn what_was_never_measured_is_no_permission() {
    let door = Door::open();
    let reply = door.get("/throttler/check?app=gated&cluster=second").await;
    assert_eq!(reply.status, 500, "{reply:?}");
    assert_eq!(reply.json()["Message"], "Metric not collected yet");
    // Where there are no replicas the lag is published as none.
    door.signal_of(1, "lag", 0.0);
    let reply = door.get("/throttler/check?app=gated&cluster=second").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json()["Value"], 0.0);
}

#[tokio::test]
async fn low_priority_gives_way_for_a_second_after_a_normal_check_was_refused() {
    let door = Door::open();
    let low = "/throttler/check?app=gated&p=low";
    door.signal("lag", 7.5);
    assert_eq!(door.get(low).await.status, 429, "nobody else was refused");
    assert_eq!(door.get("/throttler/check?app=gated").await.status, 429);
    door.signal("lag", 0.25);
    let reply = door.get(low).await;
    assert_eq!((reply.status, &reply.json()["Reason"]), (417, &"low_priority".into()));
    assert_eq!(reply.json()["Value"], 0.25);
    assert_eq!(door.get("/throttler/check?app=gated").await.status, 200);
    assert_eq!(door.get("/throttler/check?app=free&p=low&cluster=second").await.status, 200);
    let refused_at = tokio::time::Instant::now();
    while door.get(low).await.status != 200 {
        assert!(refused_at.elapsed() < Duration::from_secs(5), "it never comes back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn status_shows_what_every_generation_shows() {
    let door = Door::open();
    door.signal("lag", 7.5);
    assert_eq!(door.get("/throttler/check?app=gated").await.status, 429);
    let status = door.get("/throttler/status").await;
    assert_eq!(status.status, 200);
    let body = status.json();
    assert_has(
        &body,
        &[
            ("Keyspace", "string"),
            ("Shard", "string"),
            ("IsLeader", "bool"),
            ("IsOpen", "bool"),
            ("IsEnabled", "bool"),
            ("IsDormant", "bool"),
            ("Query", "string"),
            ("Threshold", "number"),
            ("AggregatedMetrics", "object"),
            ("MetricsHealth", "object"),
            ("RecentlyChecked", "bool"),
            ("CustomQuery", "string"),
            ("MetricNameUsedAsDefault", "string"),
            ("MetricsThresholds", "object"),
            ("ThrottledApps", "array"),
            ("AppCheckedMetrics", "object"),
            ("RecentApps", "object"),
        ],
    );
    assert_eq!((&body["Keyspace"], &body["Threshold"]), (&"main".into(), &1.5.into()));
    assert_eq!(body["AggregatedMetrics"]["mysql/shard"]["Value"], 7.5, "{body}");
    assert_eq!(body["AggregatedMetrics"]["self/threads_running"]["Value"], 5.0, "{body}");
    let health = &body["MetricsHealth"]["shard/lag"];
    assert_has(health, &[("LastHealthyAt", "string"), ("SecondsSinceLastHealthy", "number")]);
    assert_eq!(body["RecentApps"]["gated"]["StatusCode"], 429, "{body}");
    let unmeasured = door.get("/throttler/status?cluster=second").await.json();
    assert_eq!(shape(&unmeasured["AggregatedMetrics"]["mysql/shard"]), []);
    assert_eq!(door.get("/throttler/status?cluster=third").await.status, 404);
}

#[tokio::test]
async fn an_app_is_throttled_and_let_go_as_vitess_does_it() {
    let door = Door::without_table();
    let reply = door.get("/throttler/throttle-app?app=gated&duration=90s&ratio=1").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let rule =
        [("AppName", "string"), ("ExpireAt", "string"), ("Ratio", "number"), ("Exempt", "bool")];
    assert_has(&reply.json(), &rule);
    let checked = door.get("/throttler/check?app=gated").await;
    assert_eq!((checked.status, &checked.json()["Rule"]), (417, &"runtime:gated".into()));
    let apps = door.get("/throttler/throttled-apps").await.json();
    let apps = apps.as_array().unwrap();
    for app in apps {
        assert_has(app, &rule);
    }
    let names: Vec<&str> = apps.iter().map(|app| app["AppName"].as_str().unwrap()).collect();
    assert_eq!(names, ["always-throttled-app", "gated"]);
    // The other cluster is another keyspace.
    let others = door.get("/throttler/throttled-apps?cluster=second").await.json();
    assert_eq!(others.as_array().unwrap().len(), 1);
    let lifted = door.ask("POST", "/throttler/unthrottle-app?app=gated").await;
    assert_eq!(lifted.status, 200, "{lifted:?}");
    assert_has(&lifted.json(), &rule);
    assert_eq!(door.get("/throttler/check?app=gated").await.status, 200);
    assert_eq!(door.get("/throttler/unthrottle-app?app=gated").await.status, 200, "there is none");
    // Without a ratio: all of it.
    let reply = door.get("/throttler/throttle-app?app=gated&duration=1h30m").await;
    assert_eq!((reply.status, &reply.json()["Ratio"]), (200, &1.0.into()));
}

#[tokio::test]
async fn what_cannot_be_throttled_is_not_ok() {
    let door = Door::without_table();
    let faulty = [
        "?app=gated",
        "?app=gated&duration=soon",
        "?app=gated&duration=8d",
        "?app=gated&duration=200h",
        "?app=gated&duration=0",
        "?app=gated&duration=1h&ratio=1.5",
        "?app=gated&duration=1h&ratio=NaN",
        "?app=gated&duration=1h&ratio=a",
        "?duration=1h",
        "?app=%ff&duration=1h",
        "?app=gated&duration=1h&cluster=third",
    ];
    for query in faulty {
        let reply = door.get(&format!("/throttler/throttle-app{query}")).await;
        assert_eq!(reply.status, 500, "{query} {reply:?}");
        assert!(reply.body.starts_with("not ok: "), "{query} {reply:?}");
        assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
    }
    let apps = door.get("/throttler/throttled-apps").await.json();
    assert_eq!(apps.as_array().unwrap().len(), 1, "{apps}");
}

#[tokio::test]
async fn nothing_changes_by_get_unless_the_file_allows_it() {
    let door = Door::without_legacy_get();
    let paths = [
        "/throttler/throttle-app?app=gated&duration=1h",
        "/throttler/unthrottle-app?app=gated",
        "/throttle-app/gated",
        "/throttle-app/gated/ttl/5/ratio/0.5",
        "/unthrottle-app/gated",
    ];
    for path in paths {
        for method in ["GET", "HEAD"] {
            let reply = door.ask(method, path).await;
            assert_eq!(reply.status, 405, "{method} {path} {reply:?}");
        }
        assert_eq!(door.get("/throttler/check?app=gated").await.status, 200);
    }
    for path in [paths[0], paths[2], paths[3]] {
        assert_eq!(door.ask("DELETE", path).await.status, 405, "nobody throttles by deleting");
    }
    assert_eq!(door.ask("POST", paths[0]).await.status, 200);
    assert_eq!(door.get("/throttler/check?app=gated").await.status, 417);
    let forwarded = door.with_headers("POST", paths[1], "X-Forwarded-For: 10.0.0.9\r\n").await;
    assert_eq!(forwarded.status, 403, "not from this machine, and without a token: {forwarded:?}");
    assert_eq!(door.ask("DELETE", paths[1]).await.status, 200);
}

#[tokio::test]
async fn checks_are_counted_by_rule_app_dialect_and_reason() {
    let door = Door::open();
    for app in ["gated", "7:gated", "never", "watched"] {
        door.signal("lag", if app == "watched" { 7.5 } else { 0.25 });
        door.get(&format!("/throttler/check?app={app}")).await;
    }
    door.get("/check/gated/mysql/main").await;
    let metrics = door.metrics().await;
    let expected = [
        r#"app="gated",cluster="main",decision="admitted",dialect="vitess",reason="",rule="gated"} 2"#,
        r#"app="never",cluster="main",decision="rejected",dialect="vitess",reason="ratio",rule="never"} 1"#,
        r#"app="watched",cluster="main",decision="rejected",dialect="vitess",reason="gate_closed",rule="watched"} 1"#,
        r#"app="gated",cluster="main",decision="rejected",dialect="freno",reason="gate_closed",rule="gated"} 1"#,
    ];
    for line in expected {
        assert!(
            metrics.contains(&format!("sluice_cooperative_checks_total{{{line}")),
            "{line}\n{metrics}"
        );
    }
    assert!(metrics.contains("sluice_rule_hits_total{rule=\"gated\"} 3"), "{metrics}");
}

/// The last value of a latency whose app is idle now was over the threshold, beside a 200.
#[tokio::test]
async fn a_signal_that_is_open_without_a_value_has_none_to_be_held_against() {
    let door = Door::open();
    door.signal_of(1, "lapsed", 50.0);
    let path = "/throttler/check?app=free&cluster=second&m=lapsed";
    assert_eq!(door.get(path).await.json()["Metrics"]["lapsed"]["Value"], 50.0);
    tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    let reply = door.get(path).await;
    let body = reply.json();
    assert_eq!((reply.status, &body["Value"]), (200, &0.0.into()), "{body}");
    assert_eq!(body["Metrics"]["lapsed"]["Value"], 0.0, "{body}");
}
