//! The model against what can be worked out on paper: with the plain gate, which leaves an idle replica alone.

use simulate::{Report, Scenario, simulate};

#[expect(clippy::unwrap_used, reason = "a scenario of this file that has faults fails its test")]
fn run(text: &str) -> Report {
    simulate(&Scenario::parse(text).unwrap()).unwrap()
}

#[track_caller]
fn near(value: f64, expected: f64, within: f64) {
    let off = (value - expected).abs() / expected;
    assert!(off <= within, "{value} is not {expected} within {within}");
}

#[expect(clippy::unwrap_used, reason = "a figure that is not there fails the test")]
fn figure(report: &Report, name: &str) -> f64 {
    report.figure(name).unwrap()
}

const STEADY: &str = "
name: steady
duration: 30s
warmup: 5s
seed: 3
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 1000, jitter: 0.3 }]
background: { writes_per_s: 100 }
apps:
  - { app: etl, sessions: 20, ratio: 0.9, think_time: 1ms, rows_per_statement: { min: 1, max: 3 } }
  - { app: online-ddl, sessions: 20, ratio: 0.1 }
";

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
    let bytes = |text: &str| serde_json::to_vec(&run(text)).unwrap();
    assert_eq!(bytes(STEADY), bytes(STEADY));
    assert_ne!(run(STEADY).lag_s, run(&STEADY.replace("seed: 3", "seed: 4")).lag_s);
}

#[test]
fn json_has_the_documented_keys() {
    let json = serde_json::to_value(run(STEADY)).unwrap();
    for pointer in ["/name", "/capacity_used", "/over_threshold", "/seed", "/pacing"] {
        assert!(json.pointer(pointer).is_some(), "{pointer}");
    }
    for quantile in ["p50", "p95", "p99", "max"] {
        assert!(json.pointer(&format!("/lag_s/{quantile}")).unwrap().is_f64());
    }
    for name in ["admitted_per_s", "rows_per_s", "rejected_per_s", "delay_s/p50", "delay_s/max"] {
        assert!(json.pointer(&format!("/apps/online-ddl/{name}")).unwrap().is_f64(), "{name}");
    }
}

#[test]
fn text_fits_a_hundred_columns_and_shows_every_app() {
    let text = run(STEADY).to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.contains("etl") && text.contains("online-ddl") && text.contains('█'), "{text}");
}

#[test]
fn what_is_left_over_every_second_ages() {
    let report = run("
name: flood
duration: 100s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 1000 }]
background: { writes_per_s: 2000 }
apps: [{ app: nobody, sessions: 0 }]
");
    // After t seconds the replica is at what was committed at t/2.
    near(report.lag_s.max, 50.0, 0.01);
    near(report.lag_s.p50, 25.0, 0.02);
    near(report.over_threshold, 0.98, 0.002);
    near(report.capacity_used, 1.0, 1e-4);
}

#[test]
fn a_stall_ages_what_is_in_flight_and_is_worked_off_at_the_rate_that_is_left() {
    let report = run("
name: stall
duration: 100s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: [[0s, 1000], [50s, 0], [60s, 1000]] }]
background: { writes_per_s: 500 }
apps: [{ app: nobody, sessions: 0 }]
");
    near(report.lag_s.max, 10.0, 0.01);
    // At 60 s it is at 50 s, and then gains a second a second: 9 s up, 9 s down to a second.
    near(report.over_threshold, 0.18, 0.02);
    // It had 90 s, and 50,000 rows to apply.
    near(report.capacity_used, 50_000.0 / 90_000.0, 0.01);
}

#[test]
fn the_slowest_replica_that_is_there_counts() {
    let report = run("
name: two
duration: 100s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 1000 }, { apply_per_s: 100, away: [[20s, 90s]] }]
background: { writes_per_s: 200 }
apps: [{ app: nobody, sessions: 0 }]
");
    // The slow one falls behind for 20 s and is 10 s behind then; after 90 s it begins anew, and is 5 s behind
    // in the end.
    near(report.lag_s.max, 10.0, 0.02);
    near(report.over_threshold, 0.26, 0.02);
    // 3,000 of its 3,000 rows, and 14,000 of the other's 70,000.
    near(report.capacity_used, 17_000.0 / 73_000.0, 0.02);
}

#[test]
fn sessions_write_as_fast_as_their_statements_return_and_they_think() {
    let report = run("
name: closed-loop
pacing: binary
duration: 60s
warmup: 10s
primary: { writes_per_s: 100000, latency: 5ms }
replicas: [{ apply_per_s: 100000 }]
apps:
  - { app: eager, sessions: 4 }
  - { app: calm, sessions: 10, think_time: 95ms }
  - { app: batches, sessions: 1, transactions: 10, rows_per_statement: { min: 5, max: 15 } }
");
    near(figure(&report, "apps.eager.admitted_per_s"), 800.0, 0.01);
    near(figure(&report, "apps.calm.admitted_per_s"), 100.0, 0.02);
    near(figure(&report, "apps.batches.admitted_per_s"), 20.0, 0.01);
    near(figure(&report, "apps.batches.rows_per_s"), 2_000.0, 0.02);
    assert!(report.lag_s.max < 0.02, "{:?}", report.lag_s);
}

#[test]
fn a_primary_takes_what_it_can_and_no_more() {
    let report = run("
name: slow-primary
pacing: binary
duration: 60s
warmup: 10s
primary: { writes_per_s: [[0s, 500], [35s, 100]] }
replicas: [{ apply_per_s: 100000 }]
apps: [{ app: eager, sessions: 50 }]
");
    near(figure(&report, "apps.eager.rows_per_s"), 300.0, 0.01);
}

#[test]
fn a_session_outside_its_window_asks_for_nothing() {
    let report = run("
name: window
pacing: binary
duration: 100s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 5000 }]
apps: [{ app: eager, sessions: 1, active: [[10s, 20s], [70s, 80s]] }]
");
    near(figure(&report, "apps.eager.admitted_per_s"), 200.0 * 0.2, 0.01);
    // 200 of 5,000 while it was active; the rest of the time does not count.
    near(report.capacity_used, 0.04, 0.01);
}

#[test]
fn a_statement_that_is_refused_comes_back_after_the_advised_time() {
    let report = run("
name: refused
pacing: binary
duration: 60s
warmup: 10s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 0 }]
background: { writes_per_s: 10 }
apps: [{ app: eager, sessions: 10, max_delay: 500ms }]
");
    assert!(figure(&report, "apps.eager.admitted_per_s") < 0.5, "the lag is over the threshold");
    // Each waits half a second and then up to a second and a quarter.
    let refused = figure(&report, "apps.eager.rejected_per_s");
    assert!((5.0..20.0).contains(&refused), "{refused}");
}

#[test]
fn probes_that_slept_are_awake_when_somebody_asks_again() {
    let report = run("
name: sleepers
pacing: binary
duration: 300s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 5000 }]
apps: [{ app: eager, sessions: 1, active: [[0s, 10s], [200s, 210s]] }]
");
    // A second of waiting for the first fresh value is the most that the sleep may cost.
    near(figure(&report, "apps.eager.admitted_per_s"), 200.0 * 20.0 / 300.0, 0.06);
    assert!(figure(&report, "apps.eager.delay_s.max") < 1.3);
}

// The timer was armed anew, for the next millisecond, by everything that happened: it never woke.
#[test]
fn a_timer_wakes_though_something_happens_at_every_millisecond() {
    let report = run("
name: busy
pacing: binary
duration: 60s
warmup: 10s
primary: { writes_per_s: 1000000, latency: 1ms }
replicas: [{ apply_per_s: 1000000 }]
apps:
  - { app: busy, sessions: 20, active: [[2s, 60s]] }
  - { app: dice, sessions: 10, ratio: 0.5, active: [[2s, 60s]] }
");
    // Each statement loses once on average, and is checked again a tenth of a second later.
    near(figure(&report, "apps.dice.admitted_per_s"), 10.0 / 0.101, 0.04);
}

#[test]
fn a_far_replica_is_behind_by_the_transit_and_dear_rows_are_more_work() {
    let report = run("
name: far
pacing: binary
duration: 60s
warmup: 10s
primary: { writes_per_s: 5000, latency: 10ms }
replicas: [{ apply_per_s: 100000, transit: 150ms }, { apply_per_s: 10000 }]
apps:
  - { app: dear, sessions: 1, apply_cost: 50 }
  - { app: phantom, sessions: 1, phantom_rows: 50, apply_cost: 0 }
");
    near(report.lag_s.p99, 0.145, 0.05);
    near(report.capacity_used, 0.5, 0.02);
    near(figure(&report, "apps.phantom.rows_per_s"), 100.0, 0.02);
}

#[test]
fn every_text_of_an_app_is_new_once() {
    let one = "
name: texts
duration: 3s
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 1000 }]
apps: [{ app: etl, sessions: 4, digests: 1 }]
";
    let rows = |text: &str| figure(&run(text), "apps.etl.rows_per_s");
    let known = rows(one);
    assert_eq!(known.to_bits(), rows(&one.replace(", digests: 1", "")).to_bits());
    let all_new = rows(&one.replace("digests: 1", "digests: 1000000"));
    assert!(all_new < known, "what nobody has seen is waited for: {all_new} {known}");
}
