//! A scenario's file: every fault is named, and so is every expectation that is not met.

use std::time::Duration;

use simulate::{Scenario, simulate};

const GOOD: &str = "
name: good
duration: 5s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 1000 }]
apps:
  - { app: etl, sessions: 1 }
  - { app: web.shop, sessions: 3 }
";

#[expect(clippy::unwrap_used, reason = "a file without a fault fails the test")]
fn faults(text: &str) -> Vec<String> {
    Scenario::parse(text).unwrap_err().faults
}

#[track_caller]
fn only_fault(text: &str, parts: &[&str]) {
    let faults = faults(text);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults.iter().all(|fault| parts.iter().all(|part| fault.contains(part))), "{faults:?}");
}

#[test]
fn an_unknown_key_is_named_with_its_line() {
    only_fault(&format!("{GOOD}thresold: 1s\n"), &["thresold", "line 9"]);
    only_fault(&GOOD.replace("app: etl,", "app: etl, session: 1,"), &["session", "line 7"]);
    only_fault(&GOOD.replace("apply_per_s: 1000", "apply_per_s: { sin: 4 }"), &["sin", "line 5"]);
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_line() {
    only_fault(&GOOD.replace("1000 }", "1000, transit: 5 }"), &["transit", "line 5"]);
    only_fault(&GOOD.replace("5s", "5"), &["duration", "unit", "line 3"]);
    only_fault(&GOOD.replace("5s", "5 parsecs"), &["duration", "parsecs", "line 3"]);
    only_fault(&GOOD.replace("1000", "fast"), &["apply_per_s", "line 5"]);
    only_fault(&GOOD.replace("duration: 5s\n", ""), &["duration"]);
}

#[test]
fn all_values_that_make_no_sense_are_named_at_once() {
    let text = "
name: bad
duration: 5s
warmup: 5s
pacing: fast
proxies: 0
heartbeat_interval: 0s
primary: { writes_per_s: -1.0 }
replicas:
  - { apply_per_s: [[1s, 5]], jitter: 2, away: [[3s, 1s]] }
  - { apply_per_s: { sine: { min: 9, max: 1, period: 1s } } }
apps:
  - { app: etl, sessions: 1, proxies: [3], ratio: 1.5, weight: 0, identities: 0, transactions: 0 }
  - { app: etl, sessions: 200000, active: [[5s, 1s]] }
expect:
  capacity_used: [1, 0]
  lag_s: { p98: [0, 1] }
  apps.nobody.rows_per_s: [0, 1]
  over_threshold: 0.5
  ratio: { etl: 1, within: 0.1 }
";
    let faults = faults(text);
    let paths = [
        "warmup:",
        "pacing:",
        "proxies:",
        "heartbeat_interval:",
        "primary.writes_per_s:",
        "replicas[0].apply_per_s:",
        "replicas[0].jitter:",
        "replicas[0].away:",
        "replicas[1].apply_per_s.sine:",
        "apps:",
        "apps[0].ratio:",
        "apps[0].proxies:",
        "apps[0].weight:",
        "apps[0].identities:",
        "apps[0]: ",
        "apps[1].app:",
        "apps[1].active:",
        "expect.capacity_used:",
        "expect.lag_s.p98:",
        "expect.apps.nobody.rows_per_s:",
        "expect.over_threshold:",
        "expect.ratio:",
    ];
    for path in paths {
        assert!(faults.iter().any(|fault| fault.starts_with(path)), "{path} of {faults:#?}");
    }
    assert_eq!(faults.len(), paths.len(), "{faults:#?}");
}

#[test]
fn what_is_as_expected_is_not_mentioned_and_what_is_not_is_named_with_its_value() {
    let text = format!(
        "{GOOD}pacing: binary
expect:
  over_threshold: [0, 0.001]
  lag_s: {{ p99: [5, 6] }}
  apps: {{ etl: {{ rejected_per_s: [0, 0] }}, web.shop: {{ delay_s: {{ max: [9, 10] }} }} }}
  apps.web.shop.admitted_per_s: [0, 1]
  ratio: {{ etl: 1, web.shop: 1 }}
"
    );
    let report = simulate(&Scenario::parse(&text).unwrap());
    let named =
        ["lag_s.p99", "apps.web.shop.delay_s.max", "apps.web.shop.admitted_per_s", "rows of"];
    assert_eq!(report.missed.len(), named.len(), "{:?}", report.missed);
    for (missed, name) in report.missed.iter().zip(named) {
        assert!(missed.starts_with(name) && missed.contains("it is "), "{missed}");
    }
    let text = text.replace("web.shop: 1 }", "web.shop: 3 }");
    assert_eq!(simulate(&Scenario::parse(&text).unwrap()).missed.len(), 3);
}

#[test]
fn a_latency_of_statements_that_nobody_issues_is_a_fault() {
    let signal = |classes: &str| {
        let latency = format!("latency: {{ app: etl, statements: {classes} }}");
        format!("{GOOD}signals:\n  p99: {{ {latency}, threshold: 20ms }}\n")
    };
    assert!(Scenario::parse(&signal("[read, write]")).is_ok());
    only_fault(&signal("[read]"), &["signals.p99.latency.statements", "write", "etl"]);
}

#[test]
fn limits_of_a_rule_that_nothing_could_keep_are_faults() {
    let app = |limits: &str| GOOD.replace("app: etl,", &format!("app: etl, {limits},"));
    assert!(Scenario::parse(&app("min_rate: 5, max_rate: 5, max_in_flight: 1")).is_ok());
    only_fault(&app("min_rate: 6, max_rate: 5"), &["apps[0].min_rate", "max_rate"]);
    only_fault(&app("max_in_flight: 0"), &["apps[0].max_in_flight", "at least 1"]);
}

#[test]
fn replicas_of_a_group_have_one_threshold() {
    let replicas = |second: &str| {
        let first = "{ apply_per_s: 1000, group: reports, threshold: 30s }";
        let second = format!("{{ apply_per_s: 500, group: reports{second} }}");
        GOOD.replace("{ apply_per_s: 1000 }", &format!("{first}, {second}"))
    };
    let scenario = Scenario::parse(&replicas("")).unwrap();
    let of_all: Vec<_> = scenario.replicas.iter().map(|replica| replica.threshold).collect();
    assert_eq!(of_all, [Some(Duration::from_secs(30)); 2]);
    only_fault(&replicas(", threshold: 20s"), &["replicas[1].threshold", "reports"]);
}
