#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use super::heartbeats::HEARTBEATS_MAX;
use super::*;

mod gaps;
mod promoted;
mod refusing;
mod renamed;

const A: ReplicaKey = ReplicaKey(1);
const B: ReplicaKey = ReplicaKey(2);
const C: ReplicaKey = ReplicaKey(3);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn at(millis: u64) -> MonoTime {
    MonoTime::ZERO.saturating_add(ms(millis))
}

fn config(replicas: &[ReplicaKey]) -> LagConfig {
    LagConfig {
        replicas: replicas.to_vec(),
        thresholds: BTreeMap::new(),
        ignore_slowest: 0,
        min_replicas: 1,
        stale_after: ms(3_000),
        caught_up_below: ms(1_000),
        writer_stale_after: ms(2_000),
    }
}

/// A cluster whose heartbeats are numbered by their time: number n is committed at 250 n ms.
struct Cluster {
    tracker: LagTracker,
    now_ms: u64,
    /// For each replica: by how much its applier is behind, or `None` while it is down.
    behind_ms: BTreeMap<ReplicaKey, Option<u64>>,
}

impl Cluster {
    fn new(config: LagConfig) -> Self {
        let behind_ms = config.replicas.iter().map(|&key| (key, Some(0))).collect();
        Self { tracker: LagTracker::new(config, at(0)), now_ms: 0, behind_ms }
    }

    /// Healthy for ten seconds.
    fn settled(config: LagConfig) -> Self {
        let mut cluster = Self::new(config);
        cluster.run(10_000);
        cluster
    }

    fn is_behind(&mut self, key: ReplicaKey, ms: u64) {
        self.behind_ms.insert(key, Some(ms));
    }

    fn is_down(&mut self, key: ReplicaKey) {
        self.behind_ms.insert(key, None);
    }

    /// Heartbeats every 250 ms, probes every 50 ms, for this long.
    fn run(&mut self, millis: u64) {
        for _ in 0..millis / 50 {
            self.now_ms += 50;
            if self.now_ms.is_multiple_of(250) {
                self.tracker.handle_heartbeat_committed(self.now_ms / 250, at(self.now_ms));
            }
            self.probe();
        }
    }

    fn probe(&mut self) {
        let now = self.now();
        for (&key, &behind) in &self.behind_ms {
            match behind {
                Some(behind) => {
                    let shows = self.now_ms.checked_sub(behind).map(|applied| applied / 250);
                    self.tracker.handle_replica_shows(now, key, shows.filter(|&n| n > 0));
                }
                None => self.tracker.handle_replica_unreachable(now, key),
            }
        }
    }

    fn now(&self) -> MonoTime {
        at(self.now_ms)
    }

    fn value(&self) -> Option<f64> {
        self.tracker.reading(self.now()).value
    }

    fn state(&self, key: ReplicaKey) -> ReplicaState {
        self.tracker.replica(self.now(), key).unwrap().state
    }
}

#[test]
fn lag_is_the_age_of_the_oldest_heartbeat_that_is_not_shown() {
    let mut tracker = LagTracker::new(config(&[A]), at(0));
    let lag_at = |tracker: &LagTracker, t| tracker.replica(at(t), A).unwrap().lag;
    tracker.handle_replica_shows(at(10), A, None);
    assert_eq!(lag_at(&tracker, 20), None, "nothing has been committed yet");
    tracker.handle_heartbeat_committed(1, at(100));
    tracker.handle_heartbeat_committed(2, at(350));
    tracker.handle_heartbeat_committed(3, at(600));
    assert_eq!(lag_at(&tracker, 700), Some(ms(600)));
    tracker.handle_replica_shows(at(750), A, Some(1));
    assert_eq!(lag_at(&tracker, 750), Some(ms(400)));
    assert_eq!(lag_at(&tracker, 900), Some(ms(550)), "not seen to be shown is not shown");
    tracker.handle_replica_shows(at(910), A, Some(3));
    assert_eq!(lag_at(&tracker, 1_000), Some(Duration::ZERO));
    // Its probe can see a heartbeat before the primary's answer has come back.
    tracker.handle_replica_shows(at(1_010), A, Some(4));
    tracker.handle_heartbeat_committed(4, at(1_020));
    assert_eq!(lag_at(&tracker, 1_100), Some(Duration::ZERO));
}

#[test]
fn the_highest_counts_and_is_named() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    assert_eq!(cluster.value(), Some(0.0));
    cluster.is_behind(B, 4_000);
    cluster.run(50);
    let reading = cluster.tracker.reading(cluster.now());
    assert_eq!(reading.slowest, Some(B));
    assert_eq!(reading.at, cluster.now());
    let value = reading.value.unwrap();
    assert!((3.75..=4.25).contains(&value), "{value}");
}

#[test]
fn a_cluster_without_replicas_has_no_lag_at_any_time() {
    let tracker = LagTracker::new(config(&[]), at(0));
    let reading = LagReading { value: Some(0.0), ..nothing(at(9_000_000)) };
    assert_eq!(tracker.reading(at(9_000_000)), reading);
}

#[test]
fn the_slowest_replica_is_the_one_nearest_to_its_own_threshold() {
    let own = BTreeMap::from([(B, ms(30_000)), (C, ms(500))]);
    let mut cluster = Cluster::settled(LagConfig { thresholds: own, ..config(&[A, B, C]) });
    cluster.is_behind(B, 9_500);
    cluster.run(50);
    let reading = cluster.tracker.reading(cluster.now());
    let thresholds: Vec<_> =
        reading.governing.iter().map(|progress| (progress.replica, progress.threshold)).collect();
    assert_eq!(thresholds, [(B, Some(ms(30_000))), (C, Some(ms(500))), (A, None)]);
    assert_eq!((reading.slowest, reading.threshold), (Some(B), Some(ms(30_000))), "a third of it");
    assert_eq!(cluster.tracker.replica(cluster.now(), B).unwrap().threshold, ms(30_000));
    cluster.is_behind(A, 700);
    cluster.run(50);
    let reading = cluster.tracker.reading(cluster.now());
    assert_eq!((reading.slowest, reading.threshold), (Some(A), None), "the shorter lag");
    assert!(reading.value.unwrap() < 1.0);
    // The worst is left out by the same measure, and so it is known who has caught up.
    let config = LagConfig { ignore_slowest: 1, ..cluster.tracker.config().clone() };
    cluster.tracker.reconfigure(config, cluster.now());
    assert_eq!(cluster.tracker.reading(cluster.now()).slowest, Some(B));
    let fresh = LagConfig { thresholds: BTreeMap::from([(B, ms(30_000))]), ..config_of_one(B) };
    let mut cluster = Cluster::new(fresh);
    cluster.is_behind(B, 12_000);
    cluster.run(13_000);
    assert_eq!(cluster.state(B), ReplicaState::Counted, "twelve seconds are few enough for it");
}

fn config_of_one(key: ReplicaKey) -> LagConfig {
    config(&[key])
}

#[test]
fn a_writer_that_stopped_is_not_lag_but_no_data() {
    let mut cluster = Cluster::settled(config(&[A]));
    let last_beat = cluster.now();
    for _ in 0..200 {
        cluster.now_ms += 50;
        cluster.tracker.handle_replica_shows(cluster.now(), A, Some(10_000 / 250));
        let fresh = cluster.now().saturating_since(last_beat) <= ms(2_000);
        assert_eq!(cluster.value(), fresh.then_some(0.0));
    }
    let view = cluster.tracker.replica(cluster.now(), A).unwrap();
    assert_eq!((view.state, view.since), (ReplicaState::NoData, at(12_000)));
    // It goes on as if nothing had been.
    cluster.run(500);
    assert_eq!((cluster.value(), cluster.state(A)), (Some(0.0), ReplicaState::Counted));
}

#[test]
fn a_replica_that_misses_the_last_heartbeat_of_a_stopped_writer_still_lags() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    for _ in 0..100 {
        cluster.now_ms += 50;
        cluster.tracker.handle_replica_shows(cluster.now(), A, Some(10_000 / 250));
        cluster.tracker.handle_replica_shows(cluster.now(), B, Some(10_000 / 250 - 1));
    }
    assert_eq!(cluster.value(), Some(5.0));
}

#[test]
fn a_replica_that_lags_from_the_start_is_left_out_until_it_has_caught_up() {
    let mut cluster = Cluster::new(config(&[A, B]));
    cluster.is_behind(B, 40_000);
    cluster.run(20_000);
    assert_eq!(cluster.state(B), ReplicaState::NeverCaughtUp);
    assert_eq!(cluster.value(), Some(0.0));
    cluster.is_behind(B, 1_500);
    cluster.run(1_000);
    assert_eq!(cluster.state(B), ReplicaState::NeverCaughtUp);
    cluster.is_behind(B, 500);
    cluster.run(1_000);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    cluster.is_behind(B, 8_000);
    cluster.run(1_000);
    assert_eq!(cluster.state(B), ReplicaState::Counted, "once it counts, its lag counts");
    assert!(cluster.value().unwrap() > 7.0);
}

#[test]
fn showing_nothing_yet_is_not_having_caught_up() {
    // The first heartbeat is young: its age is below the threshold although nothing is shown.
    let mut tracker = LagTracker::new(config(&[A]), at(0));
    tracker.handle_heartbeat_committed(500, at(100));
    for shown in [None, Some(3), Some(499)] {
        tracker.handle_replica_shows(at(200), A, shown);
        assert_eq!(tracker.replica(at(200), A).unwrap().state, ReplicaState::NeverCaughtUp);
        assert_eq!(tracker.reading(at(200)).value, None);
    }
    tracker.handle_replica_shows(at(300), A, Some(500));
    assert_eq!(tracker.reading(at(300)).value, Some(0.0));
}

#[test]
fn a_replica_that_does_not_answer_is_left_out_after_a_while() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.is_down(B);
    cluster.run(3_000);
    assert!(cluster.value().unwrap() > 2.5, "until then its lag grows");
    cluster.run(50);
    assert_eq!((cluster.value(), cluster.state(B)), (Some(0.0), ReplicaState::Unreachable));
    cluster.is_down(A);
    cluster.run(5_000);
    assert_eq!(cluster.value(), None, "with nobody left there is no measurement");
}

#[test]
fn a_replica_that_was_never_reached_is_unreachable_at_once() {
    let mut tracker = LagTracker::new(config(&[A]), at(0));
    assert_eq!(tracker.replica(at(50), A).unwrap().state, ReplicaState::NoData);
    tracker.handle_replica_unreachable(at(60), A);
    tracker.handle_replica_unreachable(at(90), A);
    let view = tracker.replica(at(100), A).unwrap();
    assert_eq!((view.state, view.since, view.age), (ReplicaState::Unreachable, at(60), ms(100)));
}

#[test]
fn a_restart_of_seconds_is_no_hole() {
    for outage_ms in [2_000, 8_000, 120_000] {
        let mut cluster = Cluster::settled(config(&[A, B]));
        cluster.is_behind(B, 5_000);
        cluster.run(1_000);
        cluster.is_down(B);
        cluster.run(outage_ms);
        cluster.is_behind(B, 5_000 + outage_ms);
        cluster.run(50);
        assert_eq!(cluster.state(B), ReplicaState::Counted, "after {outage_ms} ms");
        assert!(cluster.value().unwrap() > 5.0, "after {outage_ms} ms");
    }
}

#[test]
fn a_replica_that_was_away_for_long_or_comes_back_rebuilt_must_catch_up_first() {
    for (outage_ms, behind_ms) in [(301_000, 301_000), (20_000, 200_000)] {
        let mut cluster = Cluster::settled(config(&[A, B]));
        cluster.run(200_000);
        cluster.is_down(B);
        cluster.run(outage_ms);
        cluster.is_behind(B, behind_ms);
        cluster.run(1_000);
        assert_eq!(cluster.state(B), ReplicaState::NeverCaughtUp, "after {outage_ms} ms");
        assert_eq!(cluster.value(), Some(0.0));
        cluster.is_behind(B, 0);
        cluster.run(300);
        assert_eq!(cluster.state(B), ReplicaState::Counted);
    }
}

#[test]
fn a_restored_replica_that_had_never_caught_up_stays_left_out_over_its_restarts() {
    let mut cluster = Cluster::new(config(&[A, B]));
    cluster.is_behind(B, 60_000);
    for _ in 0..3 {
        cluster.run(3_000);
        cluster.is_down(B);
        cluster.run(4_000);
        cluster.is_behind(B, 60_000);
    }
    cluster.run(100);
    assert_eq!(cluster.state(B), ReplicaState::NeverCaughtUp);
}

#[test]
fn a_delay_on_purpose_is_left_out_and_must_be_caught_up_with_when_it_ends() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.tracker.handle_replica_delayed_on_purpose(cluster.now(), B, true);
    cluster.is_behind(B, 600_000);
    let since = cluster.now();
    cluster.run(2_000);
    cluster.tracker.handle_replica_delayed_on_purpose(cluster.now(), B, true);
    let view = cluster.tracker.replica(cluster.now(), B).unwrap();
    assert_eq!((view.state, view.since), (ReplicaState::DelayedOnPurpose, since));
    assert_eq!(cluster.value(), Some(0.0));
    cluster.tracker.handle_replica_delayed_on_purpose(cluster.now(), B, false);
    cluster.run(1_000);
    assert_eq!(cluster.state(B), ReplicaState::NeverCaughtUp);
    cluster.is_behind(B, 0);
    cluster.run(300);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
}

#[test]
fn the_slowest_are_ignored_but_never_the_last_one() {
    let mut cluster = Cluster::settled(LagConfig { ignore_slowest: 2, ..config(&[A, B, C]) });
    for (key, behind) in [(A, 9_000), (B, 6_000), (C, 3_000)] {
        cluster.is_behind(key, behind);
    }
    cluster.run(50);
    let slowest = |cluster: &Cluster| cluster.tracker.reading(cluster.now()).slowest;
    assert_eq!(slowest(&cluster), Some(C));
    let states = [A, B, C].map(|key| cluster.state(key));
    let ignored = ReplicaState::IgnoredSlowest;
    assert_eq!(states, [ignored, ignored, ReplicaState::Counted]);
    cluster.is_down(C);
    cluster.run(4_000);
    assert_eq!(slowest(&cluster), Some(B), "one of the two that are left is ignored");
    cluster.is_down(B);
    cluster.run(4_000);
    assert_eq!(slowest(&cluster), Some(A), "the last one is not");
}

#[test]
fn fewer_replicas_than_wanted_are_no_value() {
    let mut cluster = Cluster::settled(LagConfig { min_replicas: 2, ..config(&[A, B]) });
    assert_eq!(cluster.value(), Some(0.0));
    cluster.is_down(B);
    cluster.run(4_000);
    assert_eq!(cluster.value(), None);
}

#[test]
fn reports_count_like_heartbeats_and_null_falls_behind_from_the_last() {
    let mut tracker = LagTracker::new(config(&[A]), at(0));
    tracker.handle_replica_reports(at(100), A, None);
    assert_eq!(tracker.replica(at(100), A).unwrap().state, ReplicaState::NoData);
    tracker.handle_replica_reports(at(200), A, Some(ms(3_000)));
    assert_eq!(tracker.replica(at(200), A).unwrap().state, ReplicaState::NeverCaughtUp);
    tracker.handle_replica_reports(at(300), A, Some(ms(500)));
    assert_eq!(tracker.reading(at(1_000)).value, Some(0.5));
    for t in [1_300, 3_300, 5_300] {
        tracker.handle_replica_reports(at(t), A, None);
    }
    let reading = tracker.reading(at(5_300));
    assert_eq!((reading.value, reading.at, reading.slowest), (Some(5.5), at(5_300), Some(A)));
}

#[test]
fn a_replica_frozen_for_hours_has_its_true_lag_and_memory_is_bounded() {
    let mut cluster = Cluster::settled(config(&[A]));
    let frozen_at = cluster.now_ms / 250;
    for _ in 0..40_000 {
        cluster.now_ms += 250;
        cluster.tracker.handle_heartbeat_committed(cluster.now_ms / 250, cluster.now());
        cluster.tracker.handle_replica_shows(cluster.now(), A, Some(frozen_at));
    }
    assert_eq!(cluster.tracker.heartbeats.committed.len(), HEARTBEATS_MAX);
    assert_eq!(cluster.value(), Some(9_999.75));
    // It moves, far behind what is remembered: at least the oldest remembered is missing.
    cluster.tracker.handle_replica_shows(cluster.now(), A, Some(frozen_at + 1));
    assert_eq!(cluster.value(), Some(1_023.75));
}

#[test]
fn numbers_that_do_not_grow_are_ignored() {
    let mut tracker = LagTracker::new(config(&[A]), at(0));
    tracker.handle_heartbeat_committed(5, at(100));
    tracker.handle_replica_shows(at(110), A, Some(5));
    tracker.handle_heartbeat_committed(5, at(120));
    tracker.handle_heartbeat_committed(4, at(130));
    assert_eq!(tracker.reading(at(200)).value, Some(0.0));
}

#[test]
fn a_reload_keeps_what_is_known_of_replicas_that_stay() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.is_behind(A, 5_000);
    cluster.run(50);
    cluster.tracker.reconfigure(config(&[A, C]), cluster.now());
    assert_eq!(cluster.tracker.reading(cluster.now()).slowest, Some(A));
    assert_eq!(cluster.tracker.replica(cluster.now(), B), None);
    assert_eq!(cluster.state(C), ReplicaState::NoData);
    assert_eq!(cluster.tracker.replicas(cluster.now()).count(), 2);
}

#[test]
fn a_stopped_replica_says_so_and_counts_as_before() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.is_down(B);
    cluster.run(500);
    // A was counted: it lags in truth from here on, and that its applier is stopped excuses nothing.
    for (thread, state) in [
        (StoppedThread::Applier, ReplicaState::ApplierStopped),
        (StoppedThread::Receiver, ReplicaState::ReceiverStopped),
    ] {
        let stopped_at = cluster.now();
        cluster.tracker.handle_replica_stopped(stopped_at, A, Some(thread));
        cluster.is_behind(A, 5_000);
        cluster.run(500);
        cluster.tracker.handle_replica_stopped(cluster.now(), A, Some(thread));
        let view = cluster.tracker.replica(cluster.now(), A).unwrap();
        assert_eq!((view.state, view.counts, view.since), (state, true, stopped_at));
        let reading = cluster.tracker.reading(cluster.now());
        assert_eq!(reading.slowest, Some(A));
        assert!(reading.value.unwrap() > 4.0, "{reading:?}");
    }
    cluster.tracker.handle_replica_stopped(cluster.now(), A, None);
    assert_eq!(cluster.tracker.replica(cluster.now(), A).unwrap().state, ReplicaState::Counted);
    // Whoever does not answer may say what it likes of its threads.
    cluster.tracker.handle_replica_stopped(cluster.now(), B, Some(StoppedThread::Applier));
    cluster.run(5_000);
    let view = cluster.tracker.replica(cluster.now(), B).unwrap();
    assert_eq!((view.state, view.counts), (ReplicaState::Unreachable, false));
}

#[test]
fn a_stopped_replica_that_is_ignored_or_never_caught_up_is_left_out_and_says_so() {
    let mut ignoring = Cluster::settled(LagConfig { ignore_slowest: 1, ..config(&[A, B]) });
    ignoring.tracker.handle_replica_stopped(ignoring.now(), A, Some(StoppedThread::Applier));
    ignoring.is_behind(A, 5_000);
    ignoring.run(500);
    let view = ignoring.tracker.replica(ignoring.now(), A).unwrap();
    assert_eq!((view.state, view.counts), (ReplicaState::ApplierStopped, false));
    assert_eq!(ignoring.tracker.reading(ignoring.now()).slowest, Some(B));

    let mut restored = Cluster::new(config(&[A]));
    restored.is_behind(A, 60_000);
    restored.tracker.handle_replica_stopped(restored.now(), A, Some(StoppedThread::Receiver));
    restored.run(500);
    let view = restored.tracker.replica(restored.now(), A).unwrap();
    assert_eq!((view.state, view.counts), (ReplicaState::ReceiverStopped, false));
    assert_eq!(restored.tracker.reading(restored.now()).value, None);
}

/// Somebody empties the table, or drops it: no replica shows anything until the next heartbeat.
#[test]
fn who_shows_nothing_any_more_has_applied_what_it_has_shown() {
    let mut cluster = Cluster::settled(config(&[A]));
    for (emptied_ms, lag_s) in [(200, 0.0), (250, 0.2), (1_250, 1.2)] {
        cluster.run(1_000);
        let began = cluster.now_ms;
        while cluster.now_ms < began + emptied_ms {
            cluster.now_ms += 50;
            if cluster.now_ms.is_multiple_of(250) {
                let seq = cluster.now_ms / 250;
                cluster.tracker.handle_heartbeat_committed(seq, cluster.now());
            }
            cluster.tracker.handle_replica_shows(cluster.now(), A, None);
        }
        assert_eq!((cluster.value(), cluster.state(A)), (Some(lag_s), ReplicaState::Counted));
    }
    // Who was away may be another, that has applied nothing.
    cluster.is_down(A);
    cluster.run(4_000);
    cluster.tracker.handle_replica_shows(cluster.now(), A, None);
    assert_eq!(cluster.state(A), ReplicaState::NeverCaughtUp);
}

#[test]
fn a_replica_counts_since_it_runs_and_its_lag_is_known_again() {
    let mut cluster = Cluster::settled(config(&[A]));
    let since = |cluster: &Cluster| cluster.tracker.replica(cluster.now(), A).unwrap().since;
    cluster.tracker.handle_replica_stopped(cluster.now(), A, Some(StoppedThread::Applier));
    cluster.run(5_000);
    let started = cluster.now();
    cluster.tracker.handle_replica_stopped(started, A, None);
    cluster.run(3_000);
    cluster.tracker.handle_replica_stopped(cluster.now(), A, None);
    assert_eq!((cluster.state(A), since(&cluster)), (ReplicaState::Counted, started));
    // The primary is not there for a while, and no heartbeat is.
    let newest = cluster.now_ms / 250;
    for _ in 0..100 {
        cluster.now_ms += 50;
        cluster.tracker.handle_replica_shows(cluster.now(), A, Some(newest));
    }
    assert_eq!(cluster.state(A), ReplicaState::NoData);
    cluster.run(3_000);
    assert_eq!(since(&cluster), at(cluster.now_ms - 3_000 + 250));
    assert_eq!(cluster.state(A), ReplicaState::Counted);
}
