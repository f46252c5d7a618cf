//! What rules do besides ratio and weight, against what can be worked out on paper.

use simulate::{Report, Scenario, simulate};

#[expect(clippy::unwrap_used, reason = "a scenario of this file that has faults fails its test")]
fn run(apps: &str) -> Report {
    let text = format!(
        "
name: rules
pacing: binary
duration: 60s
warmup: 10s
primary: {{ writes_per_s: 100000, latency: 5ms }}
replicas: [{{ apply_per_s: 100000 }}]
{apps}"
    );
    simulate(&Scenario::parse(&text).unwrap()).unwrap()
}

#[expect(clippy::unwrap_used, reason = "a figure that is not there fails the test")]
fn figure(report: &Report, name: &str) -> f64 {
    report.figure(name).unwrap()
}

#[track_caller]
fn near(value: f64, expected: f64, within: f64) {
    let off = (value - expected).abs() / expected;
    assert!(off <= within, "{value} is not {expected} within {within}");
}

#[test]
fn a_tenth_of_the_speed_is_a_tenth_of_the_rows() {
    let report = run("
apps:
  - { app: full, sessions: 4 }
  - { app: tenth, sessions: 4, speed: 0.1 }
  - { app: batches, sessions: 1, speed: 0.5, transactions: 10 }
  - { app: observed, sessions: 1, speed: 0.1, mode: observe }
  - { app: bounded, sessions: 1, speed: 0.001, max_delay: 20ms }
");
    near(figure(&report, "apps.full.admitted_per_s"), 800.0, 0.01);
    near(figure(&report, "apps.tenth.admitted_per_s"), 80.0, 0.01);
    near(figure(&report, "apps.tenth.delay_s.p50"), 0.045, 0.01);
    // Ten statements of 5 ms without a pause in between, then as long a pause.
    near(figure(&report, "apps.batches.admitted_per_s"), 10.0, 0.01);
    near(figure(&report, "apps.observed.admitted_per_s"), 200.0, 0.01);
    near(figure(&report, "apps.observed.observed_per_s"), 200.0, 0.01);
    assert_eq!(figure(&report, "apps.full.observed_per_s"), 0.0);
    // A pause is max_delay at most, and never an error.
    near(figure(&report, "apps.bounded.admitted_per_s"), 40.0, 0.01);
    assert_eq!(figure(&report, "apps.bounded.rejected_per_s"), 0.0);
}

#[test]
fn thinking_counts_into_the_pause() {
    let report = run("
apps:
  - { app: thinks-less, sessions: 10, speed: 0.1, think_time: 20ms }
  - { app: thinks-more, sessions: 10, speed: 0.5, think_time: 95ms }
");
    near(figure(&report, "apps.thinks-less.admitted_per_s"), 200.0, 0.01);
    near(figure(&report, "apps.thinks-more.admitted_per_s"), 100.0, 0.02);
}

#[test]
fn a_lost_check_is_repeated_after_the_check_interval() {
    let dice = "apps: [{ app: dice, sessions: 10, ratio: 0.5 }]\n";
    near(figure(&run(dice), "apps.dice.admitted_per_s"), 10.0 / 0.105, 0.04);
    let often = format!("check_interval: 10ms\n{dice}");
    near(figure(&run(&often), "apps.dice.admitted_per_s"), 10.0 / 0.015, 0.07);
}

#[test]
fn what_passes_or_is_denied_asks_nobody() {
    let report = run("
apps:
  - { app: exempt, sessions: 1, exempt: true }
  - { app: denied, sessions: 3, deny: true }
  - { app: observed, sessions: 1, deny: true, mode: observe }
");
    near(figure(&report, "apps.exempt.rows_per_s"), 200.0, 0.01);
    assert_eq!(figure(&report, "apps.denied.admitted_per_s"), 0.0);
    near(figure(&report, "apps.denied.rejected_per_s"), 3.0, 0.03);
    near(figure(&report, "apps.observed.admitted_per_s"), 200.0, 0.01);
    near(figure(&report, "apps.observed.observed_per_s"), 200.0, 0.01);
    let reasons = |app: usize| {
        let app = report.apps.get(app).map(|(_, app)| app);
        app.map(|app| app.rejected_for.keys().copied().collect::<Vec<_>>()).unwrap()
    };
    assert_eq!([reasons(0), reasons(1), reasons(2)], [vec![], vec!["deny"], vec![]]);
}

#[test]
fn exempt_writes_make_the_lag_that_others_wait_for() {
    let report = run("
background: { writes_per_s: 150000 }
apps:
  - { app: exempt, sessions: 10, exempt: true }
  - { app: gated, sessions: 1 }
  - { app: gateless, sessions: 1, gate: none }
  - { app: reads, sessions: 1, rows_per_statement: 0 }
");
    assert!(report.over_threshold > 0.9, "{report}");
    assert!(figure(&report, "apps.gated.admitted_per_s") < 20.0, "{report}");
    assert!(figure(&report, "apps.reads.admitted_per_s") < 20.0, "{report}");
    near(
        figure(&report, "apps.gateless.admitted_per_s"),
        figure(&report, "apps.exempt.admitted_per_s") / 10.0,
        0.05,
    );
}

#[test]
fn apps_of_one_rule_share_its_queue() {
    let queues = |rule: &str| {
        run(&format!(
            "
apps:
  - {{ app: first, sessions: 3, hold: true, max_queue: 3, max_delay: 1h, rule: {rule} }}
  - {{ app: second, sessions: 3, hold: true, max_queue: 3, max_delay: 1h, rule: held }}
"
        ))
    };
    let (own, shared) = (queues("another"), queues("held"));
    assert_eq!(figure(&own, "apps.second.rejected_per_s"), 0.0);
    assert!(figure(&shared, "apps.second.rejected_per_s") > 1.0, "{shared}");
    assert!(shared.to_string().contains("second: refused for queue_full"), "{shared}");
}

#[test]
fn a_rule_refuses_or_admits_as_it_says() {
    let report = run("
apps:
  - { app: rejects, sessions: 1, ratio: 1, on_refused_check: reject }
  - { app: times-out, sessions: 1, ratio: 1, max_delay: 500ms }
  - { app: gets-through, sessions: 1, ratio: 1, max_delay: 495ms, on_timeout: admit }
");
    let reasons = |app: usize| {
        let app = report.apps.get(app).map(|(_, app)| app);
        app.map(|app| app.rejected_for.keys().copied().collect::<Vec<_>>()).unwrap()
    };
    assert_eq!([reasons(0), reasons(1), reasons(2)], [vec!["ratio"], vec!["ratio"], vec![]]);
    near(figure(&report, "apps.gets-through.admitted_per_s"), 2.0, 0.02);
}

#[test]
fn a_statement_takes_what_its_app_says() {
    let report = run("apps: [{ app: slow, sessions: 2, latency: 250ms }]\n");
    near(figure(&report, "apps.slow.admitted_per_s"), 8.0, 0.02);
}

#[test]
fn a_word_that_is_none_is_a_fault() {
    let faults = |keys: &str| {
        let text = format!(
            "{{ name: n, duration: 1s, primary: {{ writes_per_s: 1 }}, replicas: [{{ apply_per_s: 1 }}], \
             apps: [{{ app: a, sessions: 1, {keys} }}] }}"
        );
        Scenario::parse(&text).unwrap_err().to_string()
    };
    for (keys, fault) in [
        ("on_timeout: wait", ".on_timeout: must be reject or admit, not \"wait\""),
        ("speed: 0", ".speed: must be from 0.000001 to 1, not 0"),
        ("exempt: true, deny: true", ": exempt, deny or hold: only one of them"),
        ("gate: lagg", ".gate: there is no signal \"lagg\"; there are lag, none"),
    ] {
        assert_eq!(faults(keys), format!("line 1: apps[0]{fault}"));
    }
}
