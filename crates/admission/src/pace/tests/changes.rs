//! Loads that take each other's place, and those that come back behind a pause.

use super::*;

/// The window that transactions of seconds need was filled by short statements at once.
#[test]
fn what_runs_for_seconds_has_room_that_short_statements_do_not_take() {
    let mut path = Path::new();
    path.run(20, 1_000.0, Some(1.0));
    for _ in 0..5 {
        let now = at(path.now_ms);
        let all: Vec<_> = (0..50).map(|_| path.pace.admit(now, Cost::known(40.0))).collect();
        (0..5_000).for_each(|_| path.step(1_000.0));
        for charge in all {
            path.pace.complete(at(path.now_ms), charge, 40.0);
            path.way.push_back((path.now_ms, Ok(40.0)));
        }
        (0..2_500).for_each(|_| path.step(1_000.0));
    }
    assert!(path.pace.service() > Duration::from_secs(2), "{:?}", path.pace.service());
    let cost = |lasts| Cost::known(1.0).lasting(Some(lasts));
    let mut short = 0.0;
    // Nothing is applied meanwhile.
    for _ in 0..2_000 {
        path.step(0.0);
        while path.pace.has_room(at(path.now_ms), cost(0.0)) {
            let charge = path.pace.admit(at(path.now_ms), cost(0.0));
            path.pace.complete(at(path.now_ms), charge, 1.0);
            path.way.push_back((path.now_ms, Ok(1.0)));
            short += 1.0;
        }
    }
    assert!((400.0..1_200.0).contains(&short), "{short}");
    (0..20).for_each(|_| path.step(0.0));
    assert!(!path.pace.has_room(at(path.now_ms), cost(0.0)));
    assert!(path.pace.has_room(at(path.now_ms), cost(5.0)));
    assert!(path.pace.has_room(at(path.now_ms), Cost::known(1.0)), "nobody knows how long it runs");
}

/// Each of them found half of the rate or less, and nobody waited long enough for it to grow.
#[test]
fn short_bursts_do_not_wear_a_rate_away() {
    let mut path = Path::new();
    path.run(1, 1_000.0, Some(1.0));
    for burst in 0..20 {
        (0..31_000).for_each(|_| path.step(1_000.0));
        let began = path.now_ms;
        for _ in 0..20 {
            while !path.pace.has_room(at(path.now_ms), Cost::known(1.0)) {
                path.step(1_000.0);
            }
            let charge = path.pace.admit(at(path.now_ms), Cost::known(1.0));
            path.pace.complete(at(path.now_ms), charge, 1.0);
            path.way.push_back((path.now_ms, Ok(1.0)));
        }
        assert!(path.now_ms - began < 250, "{burst}: {} ms", path.now_ms - began);
    }
}
