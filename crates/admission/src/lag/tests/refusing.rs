//! Replicas that answer their probe with errors, or other questions only.

use super::*;

impl Cluster {
    /// As `run`; meanwhile these refuse their probes.
    fn run_refused(&mut self, keys: &[ReplicaKey], millis: u64) {
        self.behind_ms.retain(|key, _| !keys.contains(key));
        for _ in 0..millis / 50 {
            self.run(50);
            for key in keys {
                self.tracker.handle_replica_refuses(self.now(), *key);
            }
        }
    }
}

/// One that could not be logged in to (too many connections) was left out like one that is dead, and
/// the gate opened over its stopped applier.
#[test]
fn a_replica_that_refuses_its_probe_keeps_its_standing_and_its_lag_grows() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.run_refused(&[B], 20_000);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    assert!(cluster.value().unwrap() > 19.0);
    // Attempts are further apart than `stale_after`.
    cluster.run(4_000);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    // For so long that one who was silent would have to catch up first.
    cluster.run_refused(&[B], 400_000);
    cluster.is_behind(B, 424_000);
    cluster.run(100);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    assert!(cluster.value().unwrap() > 423.0);
    cluster.is_behind(B, 0);
    cluster.run(300);
    assert_eq!(cluster.value(), Some(0.0));
    // Silence is counted from the last word.
    cluster.run_refused(&[B], 10_000);
    cluster.is_down(B);
    cluster.run(2_900);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    cluster.run(200);
    assert_eq!((cluster.state(B), cluster.value()), (ReplicaState::Unreachable, Some(0.0)));
    // Back after so long it may be another one.
    cluster.run(301_000);
    cluster.run_refused(&[B], 100);
    assert_eq!((cluster.state(B), cluster.value()), (ReplicaState::NeverCaughtUp, Some(0.0)));
}

#[test]
fn where_nobody_answers_but_with_refusals_there_is_no_data() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.run_refused(&[A, B], 2_900);
    assert!(cluster.value().unwrap() > 2.5);
    cluster.run_refused(&[A, B], 200);
    assert_eq!((cluster.value(), cluster.state(A)), (None, ReplicaState::Counted));
}

#[test]
fn what_has_only_ever_refused_or_is_no_replica_is_unreachable() {
    let mut tracker = LagTracker::new(config(&[A, B]), at(0));
    let state = |tracker: &LagTracker, t, key| tracker.replica(at(t), key).unwrap().state;
    tracker.handle_heartbeat_committed(1, at(50));
    tracker.handle_replica_shows(at(60), B, Some(1));
    tracker.handle_replica_refuses(at(60), A);
    tracker.handle_no_replica(at(70), B);
    tracker.handle_replica_refuses(at(70), B);
    for key in [A, B] {
        assert_eq!(state(&tracker, 80, key), ReplicaState::Unreachable);
    }
}

#[test]
fn a_lag_that_was_told_grows_while_the_replica_refuses_to_tell() {
    let mut tracker = LagTracker::new(config(&[A]), at(0));
    tracker.handle_replica_reports(at(0), A, Some(ms(0)));
    tracker.handle_replica_refuses(at(100), A);
    assert_eq!(tracker.replica(at(2_000), A).unwrap().lag, Some(ms(2_000)));
    tracker.handle_replica_reports(at(2_100), A, Some(ms(0)));
    assert_eq!(tracker.replica(at(2_200), A).unwrap().lag, Some(ms(0)));
    tracker.handle_replica_unreachable(at(3_000), A);
    assert_eq!(tracker.replica(at(3_100), A).unwrap().lag, Some(ms(1_000)));
}

/// Behind a lock on the heartbeat's table, which its applier waits for too, it was left out after
/// `stale_after`, and the gate opened.
#[test]
fn a_replica_whose_server_answers_others_keeps_its_standing_and_its_lag_grows() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    let heard = |cluster: &mut Cluster, seconds: u64| {
        for _ in 0..seconds {
            cluster.run(1_000);
            cluster.tracker.handle_replica_heard(cluster.now(), B);
        }
    };
    cluster.is_down(B);
    // For so long that one who was silent would have to catch up first.
    heard(&mut cluster, 400);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    assert!(cluster.value().unwrap() > 399.0);
    cluster.is_behind(B, 400_000);
    cluster.run(100);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    // Silence is counted from the last word, whatever that was.
    cluster.is_behind(B, 0);
    cluster.run(300);
    cluster.is_down(B);
    heard(&mut cluster, 10);
    cluster.run(2_900);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    cluster.run(200);
    assert_eq!((cluster.state(B), cluster.value()), (ReplicaState::Unreachable, Some(0.0)));
    // Back from a backup: that it was away is not forgotten for who hears it first.
    cluster.run(20_000);
    heard(&mut cluster, 1);
    assert_eq!(cluster.state(B), ReplicaState::Counted);
    cluster.is_behind(B, 200_000);
    cluster.run(100);
    assert_eq!((cluster.state(B), cluster.value()), (ReplicaState::NeverCaughtUp, Some(0.0)));
}

#[test]
fn a_server_that_answers_others_is_no_replica_for_that() {
    let mut tracker = LagTracker::new(config(&[A, B]), at(0));
    tracker.handle_heartbeat_committed(1, at(50));
    tracker.handle_replica_shows(at(60), B, Some(1));
    tracker.handle_replica_unreachable(at(60), A);
    tracker.handle_no_replica(at(70), B);
    for key in [A, B] {
        tracker.handle_replica_heard(at(80), key);
        assert_eq!(tracker.replica(at(80), key).unwrap().state, ReplicaState::Unreachable);
    }
}
