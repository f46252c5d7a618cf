#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use std::time::Duration;

use super::*;
use crate::{InFlightPacing, LatencyCounts, LatencyWindow, OnNoData};

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
            limit.note_used(now, in_flight);
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
    let all = limits(OnNoData::Open);
    assert_eq!(limit(&all, at(3_000), LATENCY), Some(4.0), "nobody knows yet");
    assert_eq!(all.next_change(at(0)), Some(at(3_000).saturating_add(Duration::from_nanos(1))));
    assert_eq!(limit(&all, at(3_001), LATENCY), None, "nobody to protect was seen");
    let mut all = limits(OnNoData::Open);
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
    assert_eq!(all.next_change(at(59_999)), Some(at(60_000)));
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

/// A p99 whose threshold is 100, so its aim is 90, over 5 s; two statements a millisecond.
fn percentile() -> InFlight {
    let in_flight = Some(InFlightPacing { memory: Duration::from_secs(5), percentile: Some(0.99) });
    let config = SignalConfig { in_flight, ..SignalConfig::at_threshold(LATENCY, 100.0) };
    let mut limits = InFlight::default();
    let gates: [(GateKey, &[SignalKey]); 1] = [(ONE, &[LATENCY])];
    limits.configure(at(0), &[config], gates.into_iter());
    limits
}

/// Of each 500 statements in a quarter of a second this part is too slow at a limit; the value itself
/// is far from the threshold. Who may not pass waits. Gives the limit at the end.
fn run_slow(all: &mut InFlight, from_s: u64, for_s: u64, slow: impl Fn(f64) -> f64) -> f64 {
    let mut window = LatencyWindow::new(Duration::from_secs(5), 0.99);
    let mut counts = LatencyCounts::default();
    let mut owed = 0.0;
    for quarter in from_s * 4..(from_s + for_s) * 4 {
        let now = at(quarter * 250);
        owed += 500.0 * slow(all.limits.get(&LATENCY).unwrap().in_force(now).unwrap());
        let mut fast = 500;
        while owed >= 1.0 && fast > 0 {
            owed -= 1.0;
            fast -= 1;
            counts.count(Duration::from_secs(95));
        }
        for _ in 0..fast {
            counts.count(Duration::from_secs(20));
        }
        window.look(now, &counts);
        all.handle_latencies(now, LATENCY, window.recent());
        let place = all.admit(now, ONE);
        all.limits.get_mut(&LATENCY).unwrap().want(now);
        all.handle_value(now, LATENCY, 50.0);
        all.take_back(place);
    }
    limit(all, at((from_s + for_s) * 1_000), LATENCY).unwrap()
}

#[test]
fn a_percentile_settles_where_just_so_many_are_too_slow_as_may_be() {
    let mut all = percentile();
    let settled = run_slow(&mut all, 0, 60, |n| 0.001 * n);
    assert!((9.0..=11.0).contains(&settled), "ten are 1 %: {settled}");
    let halved = run_slow(&mut all, 60, 30, |n| 0.002 * n);
    assert!((4.0..=6.0).contains(&halved), "{halved}");
    let steep = run_slow(&mut all, 90, 60, |n| 0.001 * (n / 4.0).exp());
    assert!((8.0..=10.0).contains(&steep), "at 4·ln 10: {steep}");
}

#[test]
fn a_percentile_that_one_is_too_much_for_has_one_for_a_part_of_the_time() {
    let mut all = percentile();
    let part = run_slow(&mut all, 0, 90, |n| 0.002 + 0.032 * n);
    assert!((0.2..0.3).contains(&part), "a quarter of the time: {part}");

    let now = at(90_000);
    let place = all.admit(now, ONE);
    assert_eq!(all.in_the_way(at(90_200), &[LATENCY]), Some(LATENCY));
    all.complete(at(91_000), place);
    let rests = all.next_change(at(91_000)).unwrap();
    assert!((at(93_300)..at(95_000)).contains(&rests), "three to four seconds: {rests:?}");
    assert_eq!(all.in_the_way(at(93_000), &[LATENCY]), Some(LATENCY), "it rests");
    assert_eq!(all.in_the_way(rests, &[LATENCY]), None);

    let back = run_slow(&mut all, 96, 60, |n| 0.001 * n);
    assert!((9.0..=11.0).contains(&back), "{back}");
}

#[test]
fn whatever_a_percentile_says_something_passes() {
    let mut all = percentile();
    let least = run_slow(&mut all, 0, 60, |_| 0.5);
    assert!((0.019..0.021).contains(&least), "{least}");
    let place = all.admit(at(60_000), ONE);
    all.complete(at(70_000), place);
    assert_eq!(all.next_change(at(70_000)), Some(at(100_000)), "no rest is longer than 30 s");
    assert_eq!(all.in_the_way(at(100_000), &[LATENCY]), None);
}

#[test]
fn who_is_not_there_is_not_to_blame_and_below_one_it_grows_by_itself() {
    let mut all = percentile();
    run_slow(&mut all, 0, 60, |n| 0.001 * n);
    let before = limit(&all, at(60_000), LATENCY).unwrap();
    let mut window = LatencyWindow::new(Duration::from_secs(5), 0.99);
    let mut counts = LatencyCounts::default();
    let mut tell = |all: &mut InFlight, ms: u64, seconds| {
        for _ in 0..500 {
            counts.count(Duration::from_secs(seconds));
        }
        window.look(at(ms), &counts);
        all.handle_latencies(at(ms), LATENCY, window.recent());
        all.handle_value(at(ms), LATENCY, 50.0);
    };
    for ms in (65_500..95_000).step_by(250) {
        tell(&mut all, ms, 95);
    }
    // Not in use it is given back in part.
    let after = limit(&all, at(95_000), LATENCY).unwrap();
    assert!((4.0..=before).contains(&after), "{after} of {before}");

    run_slow(&mut all, 95, 60, |_| 0.5);
    for ms in (155_000..185_000).step_by(250) {
        tell(&mut all, ms, 20);
    }
    let back = limit(&all, at(185_000), LATENCY).unwrap();
    assert!((1.0..1.2).contains(&back), "nobody wants more than one: {back}");
}

#[test]
fn with_few_statements_one_that_is_too_slow_says_little() {
    let mut all = percentile();
    let mut window = LatencyWindow::new(Duration::from_secs(5), 0.99);
    let mut counts = LatencyCounts::default();
    // Four a second, of which one in a hundred is too slow.
    for quarter in 0..1_600_u64 {
        let now = at(quarter * 250);
        counts.count(Duration::from_secs(if quarter % 100 == 50 { 95 } else { 20 }));
        window.look(now, &counts);
        all.handle_latencies(now, LATENCY, window.recent());
        let place = all.admit(now, ONE);
        all.limits.get_mut(&LATENCY).unwrap().want(now);
        all.handle_value(now, LATENCY, 50.0);
        all.take_back(place);
    }
    let settled = limit(&all, at(400_000), LATENCY).unwrap();
    assert!((2.0..100.0).contains(&settled), "neither at its least nor far away: {settled}");
}

#[test]
fn it_gives_way_to_an_app_that_grows_before_anybody_is_slow() {
    // An app of 300 statements a second, of 20 ms: six in flight. After a minute there are more.
    let run = |then: u32, used_for: u64| {
        let mut all = percentile();
        let mut window = LatencyWindow::new(Duration::from_secs(5), 0.99);
        let mut counts = LatencyCounts::default();
        for quarter in 0..252_u64 {
            let now = at(quarter * 250);
            for _ in 0..if quarter < 240 { 75 } else { then } {
                counts.count(Duration::from_millis(20));
            }
            window.look(now, &counts);
            all.handle_latencies(now, LATENCY, window.recent());
            if quarter < used_for {
                let place = all.admit(now, ONE);
                all.limits.get_mut(&LATENCY).unwrap().want(now);
                all.take_back(place);
            }
            all.handle_value(now, LATENCY, 0.02);
        }
        limit(&all, at(63_000), LATENCY).unwrap()
    };
    let gave = run(75, 252) - run(150, 252);
    assert!((4.0..=7.0).contains(&gave), "six more are in flight: {gave}");
    let gave = run(75, 200) - run(150, 200);
    assert!(gave.abs() < 1e-9, "nobody is there to give way: {gave}");
}
