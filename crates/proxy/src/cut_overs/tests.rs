use super::*;

const NOW: UnixTime = UnixTime(1_800_000_000);

fn policy(rules: &str) -> Arc<ClusterPolicy> {
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: db:1 }} }}\nrules:\n{rules}"
    );
    policy::load(&text).unwrap().clusters[0].clone()
}

fn held() -> Held {
    let user = b"ghost";
    Held {
        cut_over: CutOver {
            user: (*user).into(),
            schema: (*b"shop").into(),
            table: (*b"orders").into(),
            named_after: (*b"orders").into(),
        },
        identity: SessionIdentity::new(user, None, b"shop", std::iter::empty()),
        connection_id: 17,
        since: Instant::now(),
        passed: AtomicU64::new(0),
    }
}

#[tokio::test]
async fn a_rule_that_comes_too_late_for_a_swap_is_known_by_what_it_does_to_gh_ost() {
    let held = held();
    let stop = |rules: &str| held.stopped_by(&policy(rules), NOW).map(|(_, stop)| stop);
    for (rules, expected) in [
        ("  - { name: r, match: { app: gh-ost }, hold: true, permanent: true }", Some(Stop::Hold)),
        ("  - { name: r, match: { user: ghost }, deny: true, permanent: true }", Some(Stop::Deny)),
        (
            "  - { name: r, match: { table: shop._orders_gho }, hold: true, permanent: true }",
            Some(Stop::Hold),
        ),
        ("  - { name: r, match: { app: gh-ost }, ratio: 0.5, permanent: true }", None),
        ("  - { name: r, match: { user: others }, hold: true, permanent: true }", None),
        (
            "  - { name: r, match: { app: gh-ost }, hold: true, \
             expires_at: 2020-01-01T00:00:00Z }",
            None,
        ),
    ] {
        assert_eq!(stop(rules), expected, "{rules}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_for_too_long_is_none_of_a_cut_over() {
    let held = held();
    tokio::time::advance(LOCK_MAX).await;
    assert!(held.is_believed());
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(!held.is_believed());
}

#[tokio::test]
async fn a_cut_over_is_pending_until_its_guard_is_dropped() {
    let board = Arc::new(CutOvers::new("a".into()));
    let mut begun = board.watch();
    let Held { cut_over, identity, .. } = held();
    assert!(board.pending().is_empty());
    let guard = board.begin(&cut_over, &identity, 17);
    begun.changed().await.unwrap();
    assert_eq!(board.pending()[0].connection_id, 17);
    drop(guard);
    assert!(board.pending().is_empty());
}
