//! The pace on a small model of replication: a replica that applies in order at a capacity.
#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use super::*;
use crate::SignalKey;
use crate::lag::Progress;

mod changes;

const REPLICA: ReplicaKey = ReplicaKey(1);
const OTHER: ReplicaKey = ReplicaKey(2);

pub(super) fn at(ms: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
}

pub(super) fn pace() -> Pace {
    let config = AdaptivePacing {
        lag: SignalKey(1),
        heartbeat_interval: Duration::from_millis(250),
        probe_interval: Duration::from_millis(100),
        learns_row_costs: false,
        otherwise: crate::BinaryPacing::default(),
    };
    Pace::new(config, Duration::from_secs(1), at(0))
}

fn progress(replica: ReplicaKey, now: MonoTime, lag_ms: u64, shown: Option<u64>) -> Progress {
    let lag = Duration::from_millis(lag_ms);
    Progress {
        replica,
        lag,
        threshold: None,
        shown,
        committed_at: None,
        answered_at: now,
        asked_at: now,
        appliers: 1,
    }
}

fn reading(now: MonoTime, governing: Vec<Progress>) -> LagReading {
    LagReading { value: Some(0.0), at: now, slowest: None, threshold: None, governing }
}

/// A primary that executes at once, and a replica that applies `per_s` rows in a second.
struct Path {
    pace: Pace,
    now_ms: u64,
    /// Not applied yet: rows, or a heartbeat.
    stream: std::collections::VecDeque<Result<f64, u64>>,
    /// On the way to the replica, and when it arrives.
    way: std::collections::VecDeque<(u64, Result<f64, u64>)>,
    transit_ms: u64,
    applied: f64,
    shown: Option<u64>,
    credit: f64,
    admitted: f64,
}

impl Path {
    fn new() -> Self {
        Self {
            pace: pace(),
            now_ms: 0,
            stream: std::collections::VecDeque::new(),
            way: std::collections::VecDeque::new(),
            transit_ms: 0,
            applied: 0.0,
            shown: None,
            credit: 0.0,
            admitted: 0.0,
        }
    }

    /// Runs with everybody eager to write `rows` a statement, or nobody.
    fn run(&mut self, seconds: u64, per_s: f64, rows: Option<f64>) {
        for _ in 0..seconds * 1_000 {
            self.now_ms += 1;
            let now = at(self.now_ms);
            // Before the first look nothing governs, and the gate of the lag is shut.
            if let Some(rows) = rows.filter(|_| self.now_ms > 50) {
                while self.pace.has_room(now, Cost::known(rows)) {
                    let charge = self.pace.admit(now, Cost::known(rows));
                    self.pace.complete(now, charge, rows);
                    self.way.push_back((self.now_ms + self.transit_ms, Ok(rows)));
                    self.admitted += rows;
                }
            }
            self.heartbeats_and_looks(per_s);
        }
    }

    /// A millisecond in which nobody is admitted here.
    fn step(&mut self, per_s: f64) {
        self.now_ms += 1;
        self.heartbeats_and_looks(per_s);
    }

    fn heartbeats_and_looks(&mut self, per_s: f64) {
        let now = at(self.now_ms);
        if self.now_ms % 250 == 1 {
            let seq = self.now_ms / 250 + 1;
            self.pace.heartbeat_begun(now, seq);
            self.way.push_back((self.now_ms + self.transit_ms, Err(seq)));
        }
        self.apply(per_s / 1_000.0);
        if self.now_ms % 100 == 50 {
            // A heartbeat is begun at the first of every 250 ms, and committed at once.
            let missing = self.shown.map_or(1, |shown| shown * 250 + 1);
            let lag = self.now_ms.saturating_sub(missing);
            let seen = progress(REPLICA, now, lag, self.shown);
            self.pace.handle_progress(now, &reading(now, vec![seen]));
        }
    }

    fn apply(&mut self, rows: f64) {
        while let Some((arrives, _)) = self.way.front()
            && *arrives <= self.now_ms
        {
            self.stream.extend(self.way.pop_front().map(|(_, item)| item));
        }
        self.credit += rows;
        while let Some(next) = self.stream.pop_front() {
            match next {
                Err(seq) => self.shown = Some(seq),
                Ok(rows) if rows <= self.credit => {
                    self.credit -= rows;
                    self.applied += rows;
                }
                Ok(rows) => {
                    self.stream.push_front(Ok(rows));
                    return;
                }
            }
        }
        self.credit = 0.0;
    }

    fn backlog(&self) -> f64 {
        let way = self.way.iter().map(|(_, item)| item);
        self.stream.iter().chain(way).filter_map(|item| item.as_ref().ok()).sum()
    }
}

#[test]
fn a_capacity_is_found_from_nothing_and_kept_busy() {
    for per_s in [20.0, 1_000.0, 50_000.0] {
        let mut path = Path::new();
        path.run(10, per_s, Some(1.0));
        let before = path.applied;
        path.run(10, per_s, Some(1.0));
        let used = (path.applied - before) / (per_s * 10.0);
        assert!(used > 0.97, "{per_s} rows a second: {used} of it were used");
        let lag = path.backlog() / per_s;
        assert!(lag < 0.6, "{per_s} rows a second: {lag} s of work stand at the replica");
    }
}

#[test]
fn a_far_replica_is_kept_as_busy_as_a_near_one_and_no_further_behind_than_its_way() {
    let mut path = Path::new();
    path.transit_ms = 300;
    path.run(15, 1_000.0, Some(1.0));
    let before = path.applied;
    path.run(20, 1_000.0, Some(1.0));
    let used = (path.applied - before) / 20_000.0;
    assert!(used > 0.95, "{used} of it were used");
    assert!(path.backlog() < 800.0, "{} rows: 300 are on the way", path.backlog());
}

#[test]
fn a_route_that_becomes_longer_is_found_out() {
    let mut path = Path::new();
    path.run(15, 1_000.0, Some(1.0));
    path.transit_ms = 300;
    path.run(40, 1_000.0, Some(1.0));
    let before = path.applied;
    path.run(20, 1_000.0, Some(1.0));
    let used = (path.applied - before) / 20_000.0;
    assert!(used > 0.95, "{used} of it were used");
}

#[test]
fn a_replica_that_stalls_receives_no_more_than_the_window() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    path.run(1, 0.0, Some(1.0));
    let after_a_second = path.backlog();
    assert!(after_a_second < 700.0, "{after_a_second} rows");
    path.run(20, 0.0, Some(1.0));
    assert!((path.backlog() - after_a_second).abs() < 1.0, "nothing more is admitted");
}

#[test]
fn what_is_known_of_the_capacity_stays_until_somebody_waits_again() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    let before = path.pace.per_s();
    path.run(300, 1_000.0, None);
    let after = path.pace.per_s();
    let (before, after) = before.zip(after).unwrap();
    assert!((0.8..=1.5).contains(&(after / before)), "{before} and {after}");
}

#[test]
fn a_rate_that_was_not_in_use_is_an_old_one_when_somebody_waits_again() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    path.run(60, 1_000.0, None);
    // Meanwhile the replica has become ten times as slow.
    path.run(1, 100.0, Some(1.0));
    assert!(path.backlog() < 100.0, "{} rows are a second's work and more", path.backlog());
}

#[test]
fn a_rate_that_carries_what_comes_is_told_to_who_comes_after_and_one_that_hardly_did_is_not() {
    let after = |per_s: u64| {
        let mut path = Path::new();
        for ms in 0..20_000 {
            path.step(20_000.0);
            if ms % (1_000 / per_s) == 0 {
                let charge = path.pace.admit(at(path.now_ms), Cost::known(1.0));
                path.pace.complete(at(path.now_ms), charge, 1.0);
                path.way.push_back((path.now_ms, Ok(1.0)));
            }
        }
        path.pace.found_rate()
    };
    assert_eq!(after(20), None);
    let carries = after(80);
    assert!(carries.is_some_and(|rate| rate >= 80.0), "{carries:?}");
}

#[test]
fn what_is_applied_while_the_gate_is_shut_is_what_the_replica_can() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    path.run(10, 30.0, Some(1.0));
    path.run(20, 30.0, Some(1.0));
    let rate = path.pace.per_s().map_or(0.0, |per_s| per_s.max(1.0));
    assert!(rate < 120.0, "{rate} rows a second are let through");
    assert!(path.backlog() < 60.0, "{} rows stand at the replica", path.backlog());
}

#[test]
fn work_that_runs_for_long_has_its_own_room() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    let mut running = std::collections::VecDeque::new();
    let mut written = 0.0;
    for step in 0..20_000_u64 {
        let now = at(path.now_ms);
        while path.pace.has_room(now, Cost::known(100.0)) {
            running.push_back((step + 2_000, path.pace.admit(now, Cost::known(100.0))));
        }
        while running.front().is_some_and(|(ends, _)| *ends <= step) {
            let (_, charge) = running.pop_front().unwrap();
            path.pace.complete(now, charge, 100.0);
            path.way.push_back((path.now_ms, Ok(100.0)));
            written += if step > 10_000 { 100.0 } else { 0.0 };
        }
        path.step(1_000.0);
        // Nobody could know at first that it would run for so long.
        assert!(path.backlog() < 2_500.0, "{} rows at once", path.backlog());
    }
    assert!(written > 5_000.0, "{written} rows in 10 s of transactions of 2 s");
}

#[test]
fn a_statement_larger_than_the_window_runs_alone() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    path.run(20, 1_000.0, Some(5_000.0));
    assert!(path.backlog() <= 5_000.0, "one at a time");
    let admitted = path.admitted;
    path.run(60, 1_000.0, Some(5_000.0));
    assert!(path.admitted - admitted >= 30_000.0, "and they go on");
}

#[test]
fn a_large_statement_is_remembered_by_rows_whatever_comes_between() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    assert!((path.pace.aim().lump - 1.0).abs() < 1e-6, "nobody wrote more than one");
    let mut least = f64::INFINITY;
    for turn in 0..10 {
        path.pace.remember_size(3_000.0);
        for _ in 0..1_000 {
            path.pace.remember_size(1.0);
        }
        least = if turn < 5 { least } else { least.min(path.pace.aim().lump) };
    }
    assert!((1_500.0..3_000.0).contains(&least), "three quarters of the rows: {least}");
    for _ in 0..60_000 {
        path.pace.remember_size(1.0);
    }
    assert!(path.pace.aim().lump < 2.0, "that was a minute ago");
}

#[test]
fn work_that_a_client_keeps_open_does_not_hold_the_window() {
    let mut path = Path::new();
    path.run(10, 1_000.0, Some(1.0));
    let now = at(path.now_ms);
    let open: Vec<Charge> = (0..10_000).map(|_| path.pace.admit(now, Cost::known(1.0))).collect();
    path.run(10, 1_000.0, Some(1.0));
    let before = path.applied;
    path.run(5, 1_000.0, Some(1.0));
    assert!(path.applied - before > 4_500.0, "it runs at its capacity again");
    for charge in open {
        path.pace.complete(at(path.now_ms), charge, 1.0);
    }
    assert!(
        !path.pace.has_room(at(path.now_ms), Cost::known(1.0)),
        "10,000 rows are on their way now"
    );
}

#[test]
fn the_slowest_replica_governs_while_it_counts() {
    let mut pace = pace();
    let mut shown = [0, 0];
    for step in 0_u64..400 {
        let now = at(step * 100);
        if step % 3 == 0 {
            pace.heartbeat_begun(now, step + 1);
        }
        while step > 0 && pace.has_room(now, Cost::known(1.0)) {
            let charge = pace.admit(now, Cost::known(1.0));
            pace.complete(now, charge, 1.0);
        }
        // One shows every heartbeat at once, the other after a second and more.
        shown = [step / 3 * 3 + 1, (step.saturating_sub(12)) / 3 * 3 + 1];
        let both = vec![
            progress(REPLICA, now, 0, Some(shown[0])),
            progress(OTHER, now, 1_200, Some(shown[1])),
        ];
        pace.handle_progress(now, &reading(now, both));
    }
    assert_eq!(pace.per_s(), Some(0.0), "the slow one is over the threshold");
    let now = at(40_000);
    let alone = vec![progress(REPLICA, now, 0, Some(shown[0]))];
    pace.handle_progress(now, &reading(now, alone));
    assert!(pace.per_s().is_some_and(|per_s| per_s > 0.0), "it has left");
    pace.handle_progress(now, &reading(now, vec![]));
    assert_eq!(pace.per_s(), None);
    assert!(pace.has_room(now, Cost::known(1e9)), "a cluster without replicas has no lag");
}

#[test]
fn a_replica_that_only_tells_its_lag_is_steered_by_it() {
    let mut pace = pace();
    let told = |pace: &mut Pace, from: u64, lag_ms: u64| {
        for step in from..from + 100 {
            let now = at(step * 100);
            while step > 0 && pace.has_room(now, Cost::known(1.0)) {
                let charge = pace.admit(now, Cost::known(1.0));
                pace.complete(now, charge, 1.0);
            }
            pace.handle_progress(now, &reading(now, vec![progress(REPLICA, now, lag_ms, None)]));
        }
        pace.per_s().unwrap()
    };
    let first = pace.per_s();
    assert_eq!(first, None);
    let calm = told(&mut pace, 0, 0);
    assert!(calm > 25.0, "{calm}");
    let behind = told(&mut pace, 100, 900);
    assert!(behind < calm / 2.0, "{behind} after {calm}");
    assert_eq!(told(&mut pace, 200, 1_000), 0.0, "at the threshold nothing passes");
}

#[test]
fn a_rate_that_is_not_in_use_goes_to_what_would_be_due() {
    let mut path = Path::new();
    path.run(20, 1_000.0, Some(1.0));
    let before = path.pace.rate().unwrap();
    assert!(before > 900.0, "{before}");
    let share = Share::divides(0.25, 900.0);
    for _ in 0..8 {
        path.pace.take_share(at(path.now_ms), Some(share));
        path.run(1, 1_000.0, None);
    }
    let rate = path.pace.rate().unwrap();
    assert!((rate - 300.0).abs() < 10.0, "{rate}, from {before}");
}

#[test]
fn beside_others_a_large_statement_is_paid_for_at_ones_own_part() {
    // By part of the replica: a half of it, alone, is waited for by tokens for a second at most.
    for (part, waits_s) in [(None, 0.8..1.1), (Some(0.1), 4.0..6.0)] {
        let mut path = Path::new();
        path.run(20, 1_000.0, Some(1.0));
        for _ in 0..8 {
            let share = part.map(|part| Share::divides(part, 900.0));
            path.pace.take_share(at(path.now_ms), share);
            path.run(1, 1_000.0, None);
        }
        let now = at(path.now_ms);
        let charge =
            path.pace.admit(now, Cost::known(if part.is_some() { 500.0 } else { 5_000.0 }));
        path.pace.complete(now, charge, charge.cost());
        let soon = at(path.now_ms + 1);
        path.pace.has_room(soon, Cost::known(1.0));
        let room = path.pace.next_room(soon).unwrap().saturating_since(soon).as_secs_f64();
        assert!(waits_s.contains(&room), "{part:?}: {room}");
    }
}

#[test]
fn a_share_that_nobody_renews_moves_nothing_after_a_while() {
    let mut path = Path::new();
    path.run(20, 1_000.0, Some(1.0));
    let nothing = Share::divides(0.0, 900.0);
    path.pace.take_share(at(path.now_ms), Some(nothing));
    path.run(6, 1_000.0, None);
    let rate = path.pace.rate().unwrap();
    assert!(rate > 1.0 && rate < 50.0, "{rate}");
    path.run(20, 1_000.0, None);
    assert!((path.pace.rate().unwrap() - rate).abs() < 1e-9);
    path.pace.take_share(at(path.now_ms), None);
    path.run(20, 1_000.0, Some(1.0));
    let rate = path.pace.rate().unwrap();
    assert!(rate > 900.0, "it goes on from there, alone: {rate}");
}

#[test]
fn a_replica_that_may_lag_for_longer_holds_nobody_for_a_lag_that_stops_another() {
    let look = |threshold_s: Option<u64>, lag_ms: u64| {
        let mut pace = pace();
        pace.heartbeat_begun(at(0), 1);
        let threshold = threshold_s.map(Duration::from_secs);
        for n in 1..20 {
            let now = at(n * 250);
            pace.heartbeat_begun(now, n + 1);
            let seen = Progress { threshold, ..progress(REPLICA, now, lag_ms, Some(1)) };
            pace.handle_progress(now, &reading(now, vec![seen]));
        }
        let usual = pace.rate().unwrap();
        pace.per_s().unwrap() / usual
    };
    assert_eq!(look(None, 5_000), 0.0, "over a second");
    assert!(
        look(Some(30), 5_000) >= 1.0,
        "less than a fifth of its thirty: {}",
        look(Some(30), 5_000)
    );
    assert!(look(Some(30), 20_000) < 0.5, "far over a fifth");
    assert_eq!(look(Some(30), 31_000), 0.0, "over its own");
    assert_eq!(look(Some(2), 3_000), 0.0);
}
