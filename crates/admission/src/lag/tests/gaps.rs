use super::*;

/// No heartbeat is committed for 30 s; the replicas answer, and show the last one.
fn behind_a_gap() -> Cluster {
    let mut cluster = Cluster::settled(config(&[A, B]));
    for _ in 0..30_000 / 50 {
        cluster.now_ms += 50;
        for key in [A, B] {
            cluster.tracker.handle_replica_shows(cluster.now(), key, Some(10_000 / 250));
        }
    }
    assert_eq!((cluster.value(), cluster.state(B)), (None, ReplicaState::NoData));
    cluster
}

/// Its lag began at 0 when heartbeats went on, and the gate was open until that was the threshold.
#[test]
fn who_stopped_in_a_gap_lags_from_before_it() {
    let mut cluster = behind_a_gap();
    cluster.is_behind(B, 30_000);
    for _ in 0..1_000 / 50 {
        cluster.run(50);
        cluster.is_behind(B, cluster.now_ms - 10_000);
        assert_eq!(cluster.value(), None, "the other one alone says nothing: {}", cluster.now_ms);
    }
    cluster.run(300);
    let view = cluster.tracker.replica(cluster.now(), B).unwrap();
    assert_eq!((view.state, view.counts), (ReplicaState::Counted, true));
    assert_eq!(cluster.value(), Some(31.3));
    // It comes to the end of what was there before the gap, and no further.
    for shown in [10_000 / 250 - 1, 10_000 / 250] {
        cluster.tracker.handle_replica_shows(cluster.now(), B, Some(shown));
        assert_eq!(cluster.value(), Some(31.3));
    }
    cluster.is_behind(B, 0);
    cluster.run(50);
    assert!(cluster.value().unwrap() < 0.5);
}

#[test]
fn who_is_well_behind_a_gap_counts_with_the_first_heartbeat_it_shows() {
    let mut cluster = behind_a_gap();
    for key in [A, B] {
        cluster.is_behind(key, 300);
    }
    // Never that of the gap.
    let mut told = Vec::new();
    for _ in 0..1_000 / 50 {
        cluster.run(50);
        told.extend(cluster.value().map(|value| (cluster.now_ms, value)));
    }
    assert_eq!(told.first().map(|(ms, _)| *ms), Some(40_550), "{told:?}");
    assert!(told.iter().all(|(_, value)| *value < 0.6), "{told:?}");
    assert_eq!(cluster.state(B), ReplicaState::Counted);
}

#[test]
fn who_is_not_there_behind_a_gap_is_not_waited_for() {
    let mut cluster = behind_a_gap();
    for _ in 0..4_000 / 50 {
        cluster.now_ms += 50;
        cluster.tracker.handle_replica_shows(cluster.now(), A, Some(10_000 / 250));
        cluster.tracker.handle_replica_unreachable(cluster.now(), B);
    }
    let seq = cluster.now_ms / 250 + 1;
    cluster.tracker.handle_heartbeat_committed(seq, cluster.now());
    cluster.tracker.handle_replica_shows(cluster.now(), A, Some(seq));
    assert_eq!((cluster.value(), cluster.state(B)), (Some(0.0), ReplicaState::Unreachable));
}

/// All stands still for eight seconds; then both are asked, and A answers.
fn stands_still(cluster: &mut Cluster) {
    cluster.now_ms += 8_000;
    let woken = cluster.now();
    for key in [A, B] {
        cluster.tracker.handle_replica_asked(woken, key);
    }
    let seq = cluster.now_ms / 250 + 1;
    cluster.tracker.handle_heartbeat_committed(seq, woken);
    cluster.tracker.handle_replica_shows(woken, A, Some(seq));
}

/// The process stood still (SIGSTOP, a machine that was paused). The replica that answered first was all
/// that counted, and its lag of 0 opened the gate over the other one.
#[test]
fn who_was_not_asked_while_all_stood_still_has_not_been_silent() {
    let mut cluster = Cluster::settled(config(&[A, B]));
    stands_still(&mut cluster);
    assert_eq!(cluster.value(), None, "the other one alone says nothing");
    cluster.now_ms += 200;
    cluster.tracker.handle_replica_shows(cluster.now(), B, Some(10_000 / 250));
    assert_eq!(cluster.value(), None, "it may show it in a moment");
    cluster.now_ms += 900;
    assert_eq!((cluster.value(), cluster.state(B)), (Some(9.1), ReplicaState::Counted));
    // Who is asked in vain is left out as ever.
    cluster.tracker.handle_replica_asked(cluster.now(), B);
    cluster.now_ms += 3_050;
    assert_eq!(cluster.state(B), ReplicaState::Unreachable);
}

/// A second of it did not count as asked in vain, however long it was.
#[test]
fn how_long_one_must_be_asked_in_vain_goes_by_how_long_it_may_be_silent() {
    let mut quick = config(&[A, B]);
    quick.stale_after = ms(1_000);
    let mut cluster = Cluster::settled(quick);
    stands_still(&mut cluster);
    assert_eq!(cluster.value(), None, "the other one alone says nothing");

    // Asked every five seconds.
    let slow = LagConfig { stale_after: ms(10_000), ..config(&[A]) };
    let mut cluster = Cluster::settled(slow);
    cluster.now_ms += 5_000;
    cluster.tracker.handle_replica_asked(cluster.now(), A);
    cluster.now_ms += 1_000;
    cluster.tracker.handle_replica_unreachable(cluster.now(), A);
    cluster.now_ms += 4_050;
    assert_eq!(cluster.state(A), ReplicaState::Unreachable);
}
