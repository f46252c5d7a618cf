//! A scenario that is written as a file is read as the same scenario.

use std::fs;
use std::path::Path;

use simulate::Scenario;

#[track_caller]
#[expect(clippy::unwrap_used, reason = "a scenario of this file that has faults fails its test")]
fn comes_back(text: &str) {
    let scenario = Scenario::parse(text).unwrap();
    let written = scenario.to_yaml();
    assert_eq!(
        Scenario::parse(&written).map_err(|error| format!("{error}\n{written}")),
        Ok(scenario)
    );
}

#[test]
fn every_scenario_of_the_repository_comes_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        comes_back(&fs::read_to_string(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 17, "{count} scenarios");
}

#[test]
fn everything_that_a_rule_does_comes_back() {
    comes_back(
        r#"
name: "a: b # c"
duration: 90s
check_interval: 35ms
release_per_s: 20
proxies: 3
max_queue_total: 7
lag: { open_at: 500ms, close_at: 2s, stale_after: 9s, on_no_data: { hold_last: 30s }, ignore_slowest: 1, min_replicas: 2 }
primary: { writes_per_s: [[0s, 500], [35s, 0.5]], latency: 1500us }
replicas:
  - { apply_per_s: { sine: { min: 1, max: 9.5, period: 4s } }, away: [[1s, 2s], [3s, 4s]] }
  - { apply_per_s: 1000, jitter: 0.25, transit: 150ms }
  - { apply_per_s: 1000, commit_cost: 2.5, transit: [[0s, 0s], [10s, 1500us]], appliers: 4, workers: 8, preserve_commit_order: false }
apps:
  - { app: "7:etl", sessions: 1, rule: "yes", exempt: true, rows_per_statement: 0 }
  - { app: denied, sessions: 2, proxies: [0, 2], deny: true, mode: observe, latency: 250ms }
  - { app: held, sessions: 3, hold: true, identities: 4, digests: 200, apply_cost: 0.5, phantom_rows: 3, table: t, active: [[0s, 1s]], transactions: 5 }
  - { app: slow, sessions: 4, speed: 0.1, gate: none, ratio: 0.9, weight: 3, max_delay: 1m }
  - app: other
    sessions: 5
    on_refused_check: reject
    on_timeout: admit
    max_queue: 3
    mode: observe
    think_time: 7ms
    rows_per_statement: { min: 2, max: 3 }
expect:
  lag_s: { p99: [0, .inf] }
  ratio: { "7:etl": 1, slow: 2.5, within: 0.3 }
"#,
    );
}
