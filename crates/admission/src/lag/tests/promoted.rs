use super::*;

/// It counted for `stale_after`, and lagged behind the heartbeats that were written to itself.
#[test]
fn a_replica_that_becomes_the_primary_does_not_count_from_then_on() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.behind_ms.remove(&B);
    for _ in 0..100 {
        cluster.tracker.handle_no_replica(cluster.now(), B);
        assert_eq!((cluster.value(), cluster.state(B)), (Some(0.0), ReplicaState::Unreachable));
        cluster.run(50);
    }
    let view = cluster.tracker.replica(cluster.now(), B).unwrap();
    assert_eq!((view.counts, view.since), (false, at(10_000)));
}

#[test]
fn who_was_the_primary_for_a_while_counts_as_soon_as_it_answers_as_a_replica() {
    for (behind_ms, state) in [(0, ReplicaState::Counted), (60_000, ReplicaState::NeverCaughtUp)] {
        let mut cluster = Cluster::settled(config(&[A, B]));
        cluster.run(100_000);
        cluster.behind_ms.remove(&B);
        cluster.tracker.handle_no_replica(cluster.now(), B);
        cluster.run(20_000);
        cluster.is_behind(B, behind_ms);
        cluster.run(50);
        assert_eq!(cluster.state(B), state, "{behind_ms} ms behind");
    }
}

/// It showed what had been written to it as the primary, and counted until that was as old as the
/// threshold: the gate was open over a cluster without a replica.
#[test]
fn who_was_the_primary_counts_once_it_shows_what_was_written_since_it_is_listed() {
    let mut cluster = Cluster::settled(config(&[A]));
    cluster.tracker.reconfigure(config(&[B]), cluster.now());
    cluster.behind_ms = BTreeMap::new();
    let last = cluster.now_ms / 250;
    for _ in 0..2_000 / 50 {
        cluster.tracker.handle_replica_shows(cluster.now(), B, Some(last));
        assert_eq!((cluster.value(), cluster.state(B)), (None, ReplicaState::NeverCaughtUp));
        cluster.run(50);
    }
    cluster.is_behind(B, 0);
    cluster.run(300);
    assert_eq!((cluster.value(), cluster.state(B)), (Some(0.0), ReplicaState::Counted));
}
