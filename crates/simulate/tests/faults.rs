//! A scenario's file: every fault is named, and so is every expectation that is not met.

use std::time::Duration;

use simulate::{Bound, Scenario, simulate, simulate_within};

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
    Scenario::parse(text).unwrap_err().faults.iter().map(ToString::to_string).collect()
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
    let both = faults(&GOOD.replace("apply_per_s: 1000", "apply_per_s: { sin: 4 }"));
    assert!(both.len() == 2 && both.iter().all(|fault| fault.starts_with("line 5: ")), "{both:?}");
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
  - { app: etl, sessions: 1, proxies: [3], ratio: 1.5, weight: 0, identities: 0, digests: 0, transactions: 0 }
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
        "apps[0].proxies[0]:",
        "apps[0].weight:",
        "apps[0].identities:",
        "apps[0].digests:",
        "apps[0].transactions:",
        "apps[1].app:",
        "apps[1].active:",
        "expect.capacity_used:",
        "expect.lag_s.p98:",
        "expect.apps.nobody.rows_per_s:",
        "expect.over_threshold:",
        "expect.ratio:",
    ];
    for path in paths {
        assert!(
            faults.iter().any(|fault| fault.contains(&format!(" {path}"))),
            "{path} of {faults:#?}"
        );
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
    let report = simulate(&Scenario::parse(&text).unwrap()).unwrap();
    let named =
        ["lag_s.p99", "apps.web.shop.delay_s.max", "apps.web.shop.admitted_per_s", "rows of"];
    assert_eq!(report.missed.len(), named.len(), "{:?}", report.missed);
    for (missed, name) in report.missed.iter().zip(named) {
        assert!(missed.starts_with(name) && missed.contains("it is "), "{missed}");
    }
    let text = text.replace("web.shop: 1 }", "web.shop: 3 }");
    assert_eq!(simulate(&Scenario::parse(&text).unwrap()).unwrap().missed.len(), 3);
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
fn who_waits_for_a_lag_that_nobody_has_is_told() {
    let text = |etl: &str, lag: &str| {
        GOOD.replace("[{ apply_per_s: 1000 }]", "[]")
            .replace("app: etl,", &format!("app: etl,{etl}"))
            .replace("sessions: 3", "sessions: 3, exempt: true")
            + "signals: { threads_running: { threshold: 20 } }\n"
            + lag
    };
    for gate in ["", " gate: lag,", " gate: [lag, threads_running],"] {
        only_fault(&text(gate, ""), &["line 7: apps[0].gate:", "without replicas"]);
    }
    for (does, lag) in [
        (" gate: none,", ""),
        (" gate: threads_running,", ""),
        (" hold: true,", ""),
        (" gate: lag,", "lag: { on_no_data: open }\n"),
    ] {
        let scenario = Scenario::parse(&text(does, lag)).unwrap();
        let admits = simulate(&scenario).unwrap().apps[0].1.admitted_per_s > 0.0;
        assert_eq!(admits, !does.contains("hold"), "{does} {lag}");
    }
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

#[test]
fn faults_of_every_kind_are_told_together_and_what_would_follow_from_them_is_not() {
    let text = GOOD.replace("5s", "5").replace("sessions: 1", "sessions: many, gate: lagg");
    let text = text + "signals: 4\nexpect: { apps.web.rows_per_s: [0, 1] }\n";
    let faults = faults(&text);
    let starts = ["line 3: duration: ", "line 7: apps[0].sessions: ", "line 9: signals: "];
    assert_eq!(faults.len(), starts.len(), "{faults:#?}");
    for start in starts {
        assert!(faults.iter().any(|fault| fault.starts_with(start)), "{start} of {faults:#?}");
    }
}

#[test]
fn what_used_to_be_taken_in_silence_is_a_fault() {
    let app = |keys: &str| GOOD.replace("app: etl,", &format!("app: etl, {keys},"));
    let signal = |keys: &str| {
        let latency = "latency: { app: etl, statements: [write] }, threshold: 20ms";
        format!("{GOOD}signals:\n  p99: {{ {latency}, {keys} }}\n")
    };
    let expect = |what: &str| format!("{GOOD}expect: {{ {what} }}\n");
    for (text, parts) in [
        (format!("{GOOD}threshold: 0s\n"), ["line 9: threshold:", "from 100µs to 24h"]),
        (format!("{GOOD}seed: -1\n"), ["line 9: seed:", "from 0 to"]),
        (format!("{GOOD}restarts: [1s, 5s]\n"), ["restarts[1]:", "never come"]),
        (format!("{GOOD}restarts: [1s, 1s]\n"), ["restarts:", "each once"]),
        (format!("{GOOD}lag: {{ min_replicas: 2 }}\n"), ["lag.min_replicas:", "at most 1,"]),
        (format!("{GOOD}probe_interval: 1ms\nprobe_delay: 2s\n"), ["probe_delay:", "1000 times"]),
        (signal("noise: .nan"), ["signals.p99.noise:", "from 0 to 1"]),
        (signal("noise: -1"), ["signals.p99.noise:", "from 0 to 1"]),
        (signal("silent: [[2s, 1s]]"), ["signals.p99.silent:", "in the order of time"]),
        (signal("").replace("20ms", "0s"), ["signals.p99.threshold:", "from"]),
        (signal("").replace("20ms", "20"), ["signals.p99.threshold:", "duration"]),
        (signal("").replace("[write]", "[write, wirte]"), ["latency.statements[1]:", "wirte"]),
        (signal("").replace("app: etl, st", "app: elt, st"), ["signals.p99.latency.app:", "elt"]),
        (app("gate: []"), ["line 7: apps[0].gate:", "names no signal"]),
        (app("gate: [lag, lag]"), ["apps[0].gate:", "twice"]),
        (app("gate: [lag, none]"), ["apps[0].gate:", "alone"]),
        (app("proxies: []"), ["apps[0].proxies:", "leave it out"]),
        (app("proxies: [0, 0]"), ["apps[0].proxies[1]:", "twice"]),
        (app("active: []"), ["apps[0].active:", "empty"]),
        (app("ratio: .nan"), ["apps[0].ratio:", "from 0 to 1"]),
        (app("transactions: 1e9"), ["apps[0].transactions:", "from 1 to 10000"]),
        (app("phantom_rows: 4e9"), ["apps[0].phantom_rows:", "1000000000"]),
        (app("rows_per_statement: -1"), ["apps[0].rows_per_statement:", "whole number"]),
        (app("rows_per_statement: { min: 2, max: 1 }"), ["rows_per_statement:", "min to max"]),
        (app("hold: true, exempt: true"), ["apps[0]:", "only one"]),
        (GOOD.replace("app: web.shop", "app: \"\""), ["apps[1].app:", "a name"]),
        (
            GOOD.replace("5000", "5000, service: { slots: 1e9, per_statement: 1ms }"),
            ["slots", "1024"],
        ),
        (expect("ratio: { etl: 1, web.shop: 1, within: .inf }"), ["ratio.within:", "from 0 to 1"]),
        (expect("ratio: { etl: 1, web.shop: .nan }"), ["ratio.web.shop:", "NaN"]),
        (expect("lag_s.p99: [.nan, 1]"), ["expect.lag_s.p99:", "[low, high]"]),
        (expect("lag_s.p99: [-2, -1]"), ["expect.lag_s.p99:", "below 0"]),
        (expect("capacity_used: [1.1, 2]"), ["expect.capacity_used:", "never above 1"]),
        (expect("apps.etl.latency_s.p99: [0, 1]"), ["latency_s", "primary.service"]),
        (expect("lag_s: { p99: [0, 1] }, lag_s.p99: [0, 2]"), ["expect.lag_s.p99:", "twice"]),
    ] {
        only_fault(&text, &parts);
    }
}

#[test]
fn a_run_that_would_not_end_is_refused_or_ended_with_what_to_make_smaller() {
    let often = "duration: 24h\nprobe_interval: 1ms\nheartbeat_interval: 1ms\nproxies: 64";
    only_fault(&GOOD.replace("duration: 5s", often), &["line 3: duration:", "shorter"]);
    let crowd = GOOD.replace("sessions: 3", "sessions: 5000, exempt: true");
    let crowd = Scenario::parse(&crowd.replace("5s", "24h").replace("5000 }", "1e9 }")).unwrap();
    let ended = simulate_within(&crowd, 200_000).unwrap_err();
    assert_eq!((ended.what, ended.busiest.as_deref()), (Bound::Work(200_000), Some("web.shop")));
    let text = ended.to_string();
    assert!(text.contains("of 86400 s") && text.contains("`think_time`"), "{text}");
}

#[test]
fn a_rate_that_never_comes_to_a_row_ends() {
    let sine = "{ sine: { min: 0, max: 1e-300, period: 100ms } }";
    let text = GOOD.replace("writes_per_s: 5000", &format!("writes_per_s: {sine}"));
    let text = text + &format!("background: {{ writes_per_s: {sine} }}\n");
    let report = simulate_within(&Scenario::parse(&text).unwrap(), 200_000).unwrap();
    assert_eq!(report.lag_s.max.to_bits(), 0, "nothing is ever committed");
}
