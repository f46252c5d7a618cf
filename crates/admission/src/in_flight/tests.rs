#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use std::time::Duration;

use super::*;
use crate::{InFlightPacing, OnNoData};

const LATENCY: SignalKey = SignalKey(1);
const THREADS: SignalKey = SignalKey(2);
const ONE: GateKey = GateKey(1);
const BOTH: GateKey = GateKey(2);

fn at(ms: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
}

fn limits(on_no_data: OnNoData) -> InFlight {
    let in_flight = Some(InFlightPacing::default());
    let config =
        |key| SignalConfig { in_flight, on_no_data, ..SignalConfig::at_threshold(key, 100.0) };
    let mut limits = InFlight::default();
    let gates: [(GateKey, &[SignalKey]); 2] = [(ONE, &[LATENCY]), (BOTH, &[LATENCY, THREADS])];
    limits.configure(at(0), &[config(LATENCY), config(THREADS)], gates.into_iter());
    limits
}

fn limit(of: &InFlight, now: MonoTime, key: SignalKey) -> Option<f64> {
    of.views(now).find(|view| view.signal == key).and_then(|view| view.limit)
}

/// A signal that answers to what is in flight: so many for each, beside a base.
fn run(limits: &mut InFlight, from_s: u64, for_s: u64, value: impl Fn(u64, f64) -> f64) -> f64 {
    for quarter in from_s * 4..(from_s + for_s) * 4 {
        let now = at(quarter * 250);
        let in_flight = limit(limits, now, LATENCY).unwrap_or(1.0).floor();
        limits.handle_value(now, LATENCY, value(quarter, in_flight));
        // Somebody always wants more.
        if let Some(limit) = limits.limits.get_mut(&LATENCY) {
            limit.want(now);
            limit.note_used(in_flight);
        }
    }
    limit(limits, at((from_s + for_s) * 1_000), LATENCY).unwrap()
}

#[test]
fn the_limit_settles_where_the_signal_is_a_tenth_below_its_threshold() {
    let mut all = limits(OnNoData::Closed);
    let settled = run(&mut all, 0, 60, |_, n| 10.0 + 2.0 * n);
    assert!((36.0..43.0).contains(&settled), "80 of 2 each are 40: {settled}");
    let halved = run(&mut all, 60, 60, |_, n| 10.0 + 4.0 * n);
    assert!((17.0..22.0).contains(&halved), "{halved}");
    let back = run(&mut all, 120, 60, |_, n| 10.0 + 2.0 * n);
    assert!((34.0..43.0).contains(&back), "{back}");
}

#[test]
fn a_noisy_signal_keeps_further_away_from_its_threshold() {
    let mut all = limits(OnNoData::Closed);
    let noise = |quarter: u64| if quarter.is_multiple_of(2) { 0.8 } else { 1.2 };
    let settled = run(&mut all, 0, 60, |quarter, n| (10.0 + 2.0 * n) * noise(quarter));
    assert!((20.0..38.0).contains(&settled), "{settled}");
}

#[test]
fn whatever_the_signal_says_one_may_be_in_flight() {
    let mut all = limits(OnNoData::Closed);
    run(&mut all, 0, 60, |_, _| 5_000.0);
    assert_eq!(limit(&all, at(60_000), LATENCY), Some(1.0));
    assert_eq!(all.in_the_way(at(60_000), &[LATENCY]), None);
    let place = all.admit(at(60_000), ONE);
    assert_eq!(all.in_the_way(at(60_000), &[LATENCY]), Some(LATENCY));
    all.complete(at(60_500), place);
    assert_eq!(all.in_the_way(at(60_500), &[LATENCY]), None);
}

#[test]
fn a_signal_counts_all_its_gates_and_the_smallest_room_governs() {
    let mut all = limits(OnNoData::Closed);
    for _ in 0..3 {
        all.admit(at(0), ONE);
    }
    assert_eq!(all.in_the_way(at(0), &[LATENCY, THREADS]), None);
    all.admit(at(0), BOTH);
    assert_eq!(all.in_the_way(at(0), &[LATENCY, THREADS]), Some(LATENCY), "four of four");
    assert_eq!(all.in_the_way(at(0), &[THREADS]), None, "one of four");
}

#[test]
fn without_a_value_the_last_limit_holds_or_none_as_it_is_told() {
    let mut all = limits(OnNoData::Open);
    assert_eq!(limit(&all, at(0), LATENCY), None, "nobody to protect was seen");
    run(&mut all, 0, 30, |_, _| 5_000.0);
    assert_eq!(limit(&all, at(30_000), LATENCY), Some(1.0));
    assert_eq!(limit(&all, at(40_000), LATENCY), None, "stale after 3 s");
    let mut all = limits(OnNoData::Closed);
    run(&mut all, 0, 30, |_, _| 5_000.0);
    assert_eq!(limit(&all, at(40_000), LATENCY), Some(1.0));
}

#[test]
fn a_place_held_for_a_minute_does_not_count_any_more() {
    let mut all = limits(OnNoData::Closed);
    let kept: Vec<Place> = (0..4).map(|n| all.admit(at(n * 500), ONE)).collect();
    assert_eq!(all.in_the_way(at(59_999), &[LATENCY]), Some(LATENCY));
    assert_eq!(all.next_change(), Some(at(60_000)));
    assert_eq!(all.in_the_way(at(60_000), &[LATENCY]), None);
    for place in kept {
        all.complete(at(70_000), place);
    }
    assert_eq!(all.views(at(70_000)).map(|view| view.in_flight).max(), Some(0));
}

#[test]
fn a_limit_that_was_not_in_use_is_given_back_in_part() {
    let mut all = limits(OnNoData::Closed);
    let grown = run(&mut all, 0, 30, |_, _| 1.0);
    assert!(grown > 1_000.0, "{grown}");
    for second in 31..120 {
        all.handle_value(at(second * 1_000), LATENCY, 1.0);
    }
    let left = limit(&all, at(120_000), LATENCY).unwrap();
    assert!((4.0..grown / 64.0).contains(&left), "{left} of {grown}");
}
