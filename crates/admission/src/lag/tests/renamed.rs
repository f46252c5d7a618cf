//! Replicas that an edit of the file takes out, or gives another name.

use super::*;

/// A was 4 s behind, and is taken out.
fn without_a(replicas: &[ReplicaKey]) -> Cluster {
    let mut cluster = Cluster::settled(config(&[A, B]));
    cluster.is_behind(A, 4_000);
    cluster.run(1_000);
    assert!(cluster.value().is_some_and(|lag| lag >= 3.75));
    cluster.tracker.reconfigure(config(replicas), cluster.now());
    cluster.behind_ms.remove(&A);
    cluster
}

/// It appeared anew, had never caught up, and its gate was open.
#[test]
fn a_lagging_replica_that_is_taken_out_and_put_back_counts_at_once() {
    let mut cluster = without_a(&[B]);
    cluster.run(4_000);
    assert_eq!(cluster.value(), Some(0.0), "nobody counts it meanwhile");
    cluster.tracker.reconfigure(config(&[A, B]), cluster.now());
    cluster.is_behind(A, 8_000);
    cluster.run(50);
    assert_eq!(cluster.state(A), ReplicaState::Counted);
    assert!(cluster.value().is_some_and(|lag| lag >= 7.5), "{:?}", cluster.value());
}

#[test]
fn one_that_is_put_back_after_too_long_must_catch_up_first() {
    let mut cluster = without_a(&[B]);
    cluster.run(301_000);
    cluster.tracker.reconfigure(config(&[A, B]), cluster.now());
    cluster.is_behind(A, 8_000);
    cluster.run(50);
    assert_eq!(cluster.state(A), ReplicaState::NeverCaughtUp);
}

#[test]
fn a_lagging_replica_counts_under_another_name() {
    let mut cluster = without_a(&[B, C]);
    cluster.is_behind(C, 4_000);
    cluster.run(50);
    assert_eq!(cluster.state(C), ReplicaState::NeverCaughtUp, "nobody knows yet who it is");
    cluster.tracker.handle_replica_was(cluster.now(), C, A);
    cluster.run(50);
    assert_eq!(cluster.state(C), ReplicaState::Counted);
    assert!(cluster.value().is_some_and(|lag| lag >= 3.75), "{:?}", cluster.value());
}

#[test]
fn what_had_not_caught_up_under_its_old_name_must_do_so_under_the_new_one() {
    let mut cluster = Cluster::new(config(&[A, B]));
    cluster.is_behind(A, 4_000);
    cluster.run(10_000);
    cluster.tracker.reconfigure(config(&[B, C]), cluster.now());
    cluster.behind_ms.remove(&A);
    cluster.is_behind(C, 4_000);
    cluster.run(50);
    cluster.tracker.handle_replica_was(cluster.now(), C, A);
    cluster.run(50);
    assert_eq!(cluster.state(C), ReplicaState::NeverCaughtUp);
}
