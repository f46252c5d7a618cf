//! The scenarios of the repository hold what they expect.

use std::error::Error;
use std::fs;
use std::path::Path;

use simulate::{Pace, Scenario, simulate};

/// The texts and what they say, by name.
fn scenarios() -> Result<Vec<(String, Scenario)>, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        let scenario = Scenario::parse(&text);
        let scenario = scenario.map_err(|error| format!("{}: {error}", path.display()))?;
        all.push((text, scenario));
    }
    all.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    Ok(all)
}

#[test]
fn every_scenario_says_what_should_happen_and_expects_it() {
    let all = scenarios().unwrap();
    assert!(all.len() >= 17, "{} scenarios", all.len());
    for (text, scenario) in all {
        assert!(text.starts_with("# "), "{} begins with a sentence", scenario.name);
        assert!(!scenario.expect.is_empty(), "{} expects something", scenario.name);
    }
}

#[test]
fn a_plain_gate_lets_the_lag_saw() {
    let mut ran = 0;
    for (_, scenario) in scenarios().unwrap() {
        if scenario.pacing == Pace::Binary {
            let report = simulate(&scenario);
            assert!(report.missed.is_empty(), "{}: {:?}", report.name, report.missed);
            ran += 1;
        }
    }
    assert!(ran > 0, "there is a scenario with a plain gate");
}
