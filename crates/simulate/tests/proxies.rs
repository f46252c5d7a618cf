//! Several Sluices in front of one primary.

use simulate::{Report, Scenario, simulate};

/// A cap of a rule holds at each Sluice by itself, so what an app gets tells at how many it is.
const CAPPED: &str = "
name: capped
duration: 60s
warmup: 5s
seed: 3
proxies: 4
primary: { writes_per_s: 50000 }
replicas: [{ apply_per_s: 20000 }]
apps:
  - { app: one, sessions: 40, max_rate: 100, proxies: [2] }
  - { app: two, sessions: 40, max_rate: 100, proxies: [0, 3] }
  - { app: all, sessions: 40, max_rate: 100 }
";

#[expect(clippy::unwrap_used, reason = "a scenario of this file that has faults fails its test")]
fn run(text: &str) -> Report {
    simulate(&Scenario::parse(text).unwrap()).unwrap()
}

fn rows(report: &Report, app: &str) -> f64 {
    report.figure(&format!("apps.{app}.rows_per_s")).unwrap_or_default()
}

#[test]
fn sessions_are_spread_over_the_sluices_of_their_app() {
    let report = run(CAPPED);
    for (app, due) in [("one", 100.0), ("two", 200.0), ("all", 400.0)] {
        let rows = rows(&report, app);
        assert!((rows - due).abs() < 0.02 * due, "{app}: {rows} is not {due}");
    }
}

#[test]
fn one_sluice_is_what_there_is_without_the_key() {
    let text = CAPPED.replace(", proxies: [2]", "").replace(", proxies: [0, 3]", "");
    let (absent, one) = (text.replace("proxies: 4\n", ""), text.replace(": 4\n", ": 1\n"));
    let bytes = |text: &str| serde_json::to_vec(&run(text)).unwrap_or_default();
    assert_eq!(bytes(&absent), bytes(&one));
    assert_ne!(bytes(&absent), bytes(&text));
}

// Over forty seconds shares of one in four are off by a fifth by chance: four minutes are looked at.
#[test]
fn a_restart_is_one_of_all_and_they_divide_again() {
    let report = run("
name: restarted
duration: 290s
warmup: 50s
seed: 5
proxies: 2
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 1000, jitter: 0.3 }]
restarts: [40s]
apps:
  - { app: a, sessions: 50, weight: 3, proxies: [0] }
  - { app: b, sessions: 50, proxies: [1] }
expect:
  capacity_used: [0.95, 1.0]
  over_threshold: [0, 0.005]
  ratio: { a: 3, b: 1, within: 0.1 }
");
    assert!(report.missed.is_empty(), "{:?}", report.missed);
}
