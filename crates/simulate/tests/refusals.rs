//! Who is refused, when, and how often, in a crowd that is never served within its longest wait.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use simulate::{Effect, Scenario, refusals, simulate};

/// One app with more sessions than are served within their longest wait.
fn crowded(sessions: u32, max_delay: &str, apply_per_s: &str) -> Result<Scenario, Box<dyn Error>> {
    Ok(Scenario::parse(&format!(
        "
name: crowded
duration: 60s
warmup: 15s
seed: 7
primary: {{ writes_per_s: 5000 }}
replicas: [{{ apply_per_s: {apply_per_s}, jitter: 0.3 }}]
apps:
  - {{ app: crowd, sessions: {sessions}, max_delay: {max_delay}, max_queue: 1000 }}
"
    ))?)
}

fn crowds() -> Vec<Scenario> {
    let steady = crowded(950, "3s", "200");
    let swings = crowded(950, "3s", "{ sine: { min: 120, max: 300, period: 20s } }");
    let overflowing = crowded(2_000, "10s", "150");
    [steady, swings, overflowing].into_iter().map(Result::unwrap).collect()
}

fn max_delay(scenario: &Scenario) -> Duration {
    let effect = scenario.apps.first().map(|app| app.rule.effect);
    match effect {
        Some(Effect::Asks { terms, .. }) => terms.max_delay,
        Some(Effect::Passes | Effect::Denies(_)) | None => Duration::ZERO,
    }
}

#[test]
fn nobody_is_refused_before_its_deadline_for_the_length_of_the_line() {
    for scenario in crowds() {
        let mut by_reason = BTreeMap::new();
        for refused in refusals(&scenario).unwrap() {
            let at_once = refused.waited < max_delay(&scenario);
            *by_reason.entry((refused.reason.as_str(), at_once)).or_insert(0) += 1;
        }
        assert_eq!(by_reason.get(&("paced", true)), None, "{by_reason:?}");
        assert!(by_reason.values().sum::<i32>() > 100, "a crowd: {by_reason:?}");
    }
}

#[test]
fn who_comes_back_when_it_is_told_is_refused_twice_at_most_for_each_admission() {
    for scenario in crowds() {
        let report = simulate(&scenario).unwrap();
        let (_, crowd) = &report.apps[0];
        let refused = crowd.rejected_per_s / crowd.admitted_per_s;
        assert!(refused <= 2.0, "{refused} refusals to an admission: {crowd:?}");
        assert!(report.capacity_used > 0.95, "nobody stays away for too long: {report:?}");
    }
}

#[test]
fn who_comes_back_when_it_is_told_is_admitted_about_then() {
    for scenario in crowds() {
        let report = simulate(&scenario).unwrap();
        let right = report.figure("apps.crowd.told_right").unwrap();
        assert!(right >= 0.9, "{right} of those who came back as told: {report:?}");
    }
}

#[test]
fn who_comes_back_too_soon_has_lost_its_place_and_waits_longer() {
    let text = "
name: rough
duration: 60s
warmup: 15s
seed: 7
primary: { writes_per_s: 5000 }
replicas: [{ apply_per_s: 200, jitter: 0.3 }]
apps:
  - { app: heeds, sessions: 500, max_delay: 3s }
  - { app: rough, sessions: 500, max_delay: 3s, comes_back_after: 10ms }
";
    let scenario = Scenario::parse(text).unwrap();
    let took = |of: std::ops::Range<usize>| {
        let refused = refusals(&scenario).unwrap();
        let of_app = refused.iter().filter(|refused| of.contains(&refused.session));
        let took = of_app.filter_map(|it| Some(it.admitted_at?.saturating_since(it.at)));
        let mut took: Vec<Duration> = took.collect();
        took.sort_unstable();
        took[took.len() * 9 / 10]
    };
    let (heeds, rough) = (took(0..500), took(500..1_000));
    assert!(rough > heeds * 2, "one in ten waits for {rough:?}, and of those who heed {heeds:?}");
}
