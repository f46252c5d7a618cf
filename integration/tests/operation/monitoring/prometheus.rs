//! What is in `deploy/`: a real Prometheus, and every query of every dashboard.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use integration::prometheus::{Prometheus, program};
use integration::scenario::{Pending, connect_as, wait_for_depth};
use integration::sluice::{Config, Metrics, SluiceProcess};
use serde_json::Value;

use super::servers;

const RULES: &str = "\
- { name: held, match: { app: job }, hold: true, max_delay: 60s, permanent: true }
- { name: diced, match: { app: etl }, ratio: 0.7, max_delay: 150ms, expires_at: 2099-01-01T00:00:00Z }
- { name: everything-else, gate: none, permanent: true }";

const DASHBOARDS: [&str; 4] = ["overview", "identity", "replicas", "fleet"];

/// For all queries together.
const LIMIT: Duration = Duration::from_secs(15);

#[tokio::test]
async fn every_query_of_every_dashboard_has_data_of_a_sluice_under_load() {
    let servers = servers().await;
    let config = Config::new(servers).unwrap().rules(RULES);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    servers.primary.run_sql(&["CREATE TABLE test.m_deploy (n INT)"]).await.unwrap();
    let held = connect_as(&sluice, "job").await.unwrap();
    let _held = Pending::query(held, "INSERT INTO test.m_deploy VALUES (0)");
    wait_for_depth(&sluice, "held", 1).await.unwrap();
    let mut load = Vec::new();
    for app in ["etl", "web"] {
        let mut conn = connect_as(&sluice, app).await.unwrap();
        load.push(tokio::spawn(async move {
            // Some of etl's are refused.
            while conn.query("INSERT INTO test.m_deploy VALUES (1)").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }));
    }
    let alerts = deploy().join("prometheus/alerts.yaml");
    let prometheus = Prometheus::start(sluice.admin_addr(), &alerts).await.unwrap();
    let mut without = queries();
    assert!(without.len() > 50, "the dashboards were read: {without:?}");
    let began = Instant::now();
    while !without.is_empty() {
        let mut still = Vec::new();
        for query in without {
            if !has_data(&prometheus, &query.1).await {
                still.push(query);
            }
        }
        without = still;
        assert!(began.elapsed() < LIMIT || without.is_empty(), "without data: {without:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    rules_are_evaluated(&prometheus).await;
    load.iter().for_each(tokio::task::JoinHandle::abort);
}

/// The alert on old values, and a line of the log, said of it that nobody had measured.
#[tokio::test]
async fn an_app_that_is_idle_has_no_latency_that_is_old() {
    let servers = servers().await;
    let signals = "lag: { threshold: 1s }\nweb_p99: { latency: { app: web, window: 1s }, \
                   threshold: 10s, stale_after: 500ms }";
    let rules = "- { name: jobs, match: { app: job }, gate: web_p99, permanent: true }";
    let config = Config::new(servers).unwrap().signals(signals).rules(rules);
    let sluice = SluiceProcess::start(&config).await.unwrap();
    let web = [("signal", "web_p99")];
    let age = "sluice_signal_age_seconds";
    connect_as(&sluice, "web").await.unwrap().query("SELECT 1").await.unwrap();
    let limit = Duration::from_secs(10);
    let is_measured = |metrics: &Metrics| metrics.value(age, &web).is_some();
    let is_told = sluice.wait_for_metrics("its latency", limit, is_measured);
    is_told.await.unwrap();
    let is_idle = |metrics: &Metrics| metrics.value(age, &web).is_none();
    let metrics = sluice.wait_for_metrics("its rest", limit, is_idle).await.unwrap();
    assert_eq!(metrics.value("sluice_gate_open", &web), Some(1.0));
    assert!(metrics.value(age, &[("signal", "lag")]).is_some());
    tokio::time::sleep(Duration::from_millis(800)).await;
    let log = sluice.log().unwrap();
    assert!(!log.contains("signal=web_p99"), "{log}");
}

/// Prometheus says of each rule that it is well, and none of the alerts that are about something
/// else is on.
async fn rules_are_evaluated(prometheus: &Prometheus) {
    let answer = prometheus.get("/api/v1/rules").await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let groups = answer["data"]["groups"].as_array().unwrap();
    let rules: Vec<&Value> =
        groups.iter().flat_map(|group| group["rules"].as_array().unwrap()).collect();
    assert!(rules.len() > 20, "{rules:?}");
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        let fires = rule["state"] == "firing";
        assert!(!fires, "it is well, and yet {rule}");
    }
}

/// An answer that is an error fails the test.
async fn has_data(prometheus: &Prometheus, expr: &str) -> bool {
    let answer = prometheus.query(expr).await.unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let results = answer["data"]["result"].as_array().unwrap();
    let is_number = |result: &Value| result["value"][1].as_str() != Some("NaN");
    results.iter().any(is_number)
}

/// The queries, each with the dashboard and panel that it is of, as Grafana would send them with
/// everything chosen.
fn queries() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        for panel in dashboard["panels"].as_array().unwrap() {
            let of = format!("{name}: {}", panel["title"].as_str().unwrap());
            for target in panel["targets"].as_array().unwrap() {
                let expr = target["expr"].as_str().unwrap();
                let expr = expr.replace("$__rate_interval", "5s").replace("$cluster", ".*");
                let expr = expr.replace("$app", "etl").replace("$instance", ".*");
                assert!(!expr.contains('$'), "a variable is left in {of}: {expr}");
                queries.push((of.clone(), expr));
            }
        }
    }
    queries
}

#[test]
fn dashboards_use_their_own_variables_only_and_no_two_have_the_same_name() {
    let mut seen = BTreeSet::new();
    for name in DASHBOARDS {
        let dashboard = dashboard(name);
        assert!(seen.insert(dashboard["uid"].to_string()), "{name}");
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let known: Vec<&str> =
            variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        let text = dashboard.to_string();
        for variable in ["cluster", "app", "instance", "datasource"] {
            let used = text.contains(&format!("${variable}"))
                || text.contains(&format!("${{{variable}}}"));
            assert_eq!(used, known.contains(&variable), "{variable} of {name}");
        }
        let ids: BTreeSet<u64> = dashboard["panels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|panel| panel["id"].as_u64().unwrap())
            .collect();
        assert_eq!(ids.len(), dashboard["panels"].as_array().unwrap().len(), "{name}");
    }
}

#[test]
fn each_alert_is_tested_by_promtool_and_says_what_to_do_at_a_place_that_exists() {
    let folder = deploy().join("prometheus");
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
        let promtool = program("promtool").unwrap();
        let said = Command::new(promtool).args(arguments).current_dir(&folder).output().unwrap();
        let words = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{words}{}", String::from_utf8_lossy(&said.stderr));
    }
    let file: Value = yaml(&folder.join("alerts.yaml"));
    let tests: Value = yaml(&folder.join("alerts_test.yaml"));
    let page = std::fs::read_to_string(root().join("docs/OPERATIONS.md")).unwrap();
    let anchors: BTreeSet<String> = page.lines().filter_map(anchor).collect();
    let groups = file["groups"].as_array().unwrap();
    let rules = groups.iter().flat_map(|group| group["rules"].as_array().unwrap());
    for alert in rules.filter(|rule| rule["alert"].is_string()) {
        let link = alert["annotations"]["runbook_url"].as_str().unwrap();
        let anchor = link.strip_prefix("docs/OPERATIONS.md#").unwrap();
        assert!(anchors.contains(anchor), "{link} is not there");
        let is_expected = |test: &&Value| {
            let cases = test["alert_rule_test"].as_array().unwrap();
            cases.iter().any(|case| {
                case["alertname"] == alert["alert"]
                    && case["exp_alerts"].as_array().unwrap().len() == 1
            })
        };
        let tested = tests["tests"].as_array().unwrap().iter().find(is_expected);
        assert!(tested.is_some(), "{} has no test in which it fires", alert["alert"]);
    }
}

/// The anchor of a heading, as it is made of Markdown.
fn anchor(line: &str) -> Option<String> {
    let heading = line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?;
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    Some(heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-"))
}

fn dashboard(name: &str) -> Value {
    let text = std::fs::read_to_string(deploy().join(format!("grafana/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn yaml(file: &Path) -> Value {
    serde_yaml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn deploy() -> PathBuf {
    root().join("deploy")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
