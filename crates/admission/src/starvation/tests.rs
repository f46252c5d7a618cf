#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

use super::*;
use crate::{GateKey, Terms};

const LIMITS: StarvationConfig = StarvationConfig { share: 0.1, window: Duration::from_secs(600) };
const RULE: RuleKey = RuleKey(1);

fn at(seconds: u64) -> MonoTime {
    // Not at the origin: windows begin before it otherwise.
    MonoTime::from_nanos((100_000 + seconds) * 1_000_000_000)
}

fn watch(limits: StarvationConfig) -> Starvation {
    Starvation::new(limits, at(0))
}

fn of(n: u64) -> Request {
    Request {
        rule: RULE,
        identity: IdentityKey(n),
        app: AppKey(n % 1_000),
        digest: None,
        written: None,
        gate: GateKey(0),
        terms: Terms::default(),
        arrived: at(0),
        since: at(0),
    }
}

fn exempt(app: u64) -> Passed {
    (Passage::Exempt, Some(RuleKey(9)), Some(AppKey(app)))
}

impl Starvation {
    fn starved(&self, now: MonoTime) -> Vec<Starved> {
        let mut census = Census::default();
        while self.look(now, &mut census) {}
        census.into_starved()
    }
}

fn shares(watch: &Starvation, now: MonoTime) -> Vec<(u64, f64)> {
    watch.starved(now).iter().map(|starved| (starved.identity.0, starved.share)).collect()
}

#[test]
fn whoever_waits_longer_than_the_share_of_the_window_is_starved_from_then_on() {
    let mut watch = watch(LIMITS);
    watch.queued(at(0), &of(7));
    assert_eq!(watch.starved(at(59)), []);
    let starved = watch.starved(at(60));
    assert_eq!(shares(&watch, at(60)), [(7, 0.1)]);
    assert_eq!((starved[0].since, starved[0].blocked, starved[0].app), (at(0), true, AppKey(7)));
    assert_eq!(shares(&watch, at(300)), [(7, 0.5)]);
    assert_eq!(shares(&watch, at(6_000)), [(7, 1.0)]);
}

#[test]
fn who_asks_in_vain_is_known_at_once_and_until_something_of_it_passes_or_it_gives_up() {
    let mut watch = watch(LIMITS);
    watch.queued(at(0), &of(7));
    watch.refused(at(3), &of(8), Reason::GateClosed);
    let blocked: Vec<Blocked> = watch.blocked_after(at(4), None).collect();
    let seven = Blocked { rule: RULE, identity: IdentityKey(7), since: at(0), asked_at: at(0) };
    let eight = Blocked { rule: RULE, identity: IdentityKey(8), since: at(3), asked_at: at(3) };
    assert_eq!(blocked, [seven, eight]);
    let behind = Some((RULE, IdentityKey(7)));
    assert_eq!(watch.blocked_after(at(4), behind).collect::<Vec<_>>(), [eight]);
    assert_eq!(
        watch.blocked_after(at(94), None).collect::<Vec<_>>(),
        [seven],
        "8 has not asked again"
    );
    watch.left(at(100), &of(7));
    watch.admitted(at(100), &of(7));
    assert_eq!(watch.blocked_after(at(100), None).count(), 0);
}

#[test]
fn what_was_waited_is_remembered_for_a_window_and_no_longer() {
    let mut watch = watch(LIMITS);
    watch.queued(at(0), &of(7));
    watch.left(at(120), &of(7));
    watch.admitted(at(120), &of(7));
    let starved = watch.starved(at(500));
    assert_eq!((starved[0].since, starved[0].blocked), (at(0), false));
    assert_eq!(shares(&watch, at(500)), [(7, 0.2)]);
    assert_eq!(shares(&watch, at(650)), [(7, 0.1)], "50 s, and the rest of a bucket, have left");
    assert_eq!(shares(&watch, at(800)), []);
    watch.admitted(at(800), &of(7));
    assert!(watch.identities.is_empty(), "nothing is left to be known");
}

#[test]
fn spells_add_up_and_the_first_is_named() {
    let mut watch = watch(LIMITS);
    for n in 0..6 {
        watch.queued(at(n * 60), &of(7));
        watch.left(at(n * 60 + 11), &of(7));
        assert_eq!(shares(&watch, at(n * 60 + 11)).len(), usize::from(n == 5));
        watch.admitted(at(n * 60 + 11), &of(7));
    }
    let starved = watch.starved(at(311));
    assert_eq!((starved[0].since, starved[0].share), (at(0), 0.11));
}

#[test]
fn a_paced_identity_always_has_somebody_in_line_and_is_not_starved() {
    let mut watch = watch(LIMITS);
    for _ in 0..50 {
        watch.queued(at(0), &of(7));
    }
    for second in 1..1_000 {
        if second % 4 == 0 {
            watch.left(at(second), &of(7));
            watch.admitted(at(second), &of(7));
            watch.queued(at(second), &of(7));
        }
        assert_eq!(shares(&watch, at(second)), []);
    }
    // The same line, when nothing moves any more.
    assert_eq!(shares(&watch, at(999 + 60)), [(7, 63.0 / 600.0)]);
}

#[test]
fn whoever_is_refused_and_asks_again_is_blocked_from_the_first_time_to_the_last() {
    let mut watch = watch(LIMITS);
    for n in 0..4 {
        watch.refused(at(n * 60), &of(7), Reason::GateClosed);
    }
    assert_eq!(shares(&watch, at(180)), [(7, 0.3)]);
    assert!(watch.starved(at(200))[0].blocked);
    assert!(!watch.starved(at(271))[0].blocked);
    assert_eq!(shares(&watch, at(271)), [(7, 0.3)], "it does not ask any more");
    watch.refused(at(400), &of(7), Reason::GateClosed);
    assert_eq!(shares(&watch, at(400)), [(7, 0.3)], "between the spells it wanted nothing");
    watch.admitted(at(460), &of(7));
    assert_eq!(shares(&watch, at(460)), [(7, 0.4)], "it wanted to until it was admitted");
}

#[test]
fn a_wait_that_ends_in_a_refusal_goes_on_with_the_next_attempt() {
    let mut watch = watch(LIMITS);
    for n in 0..20 {
        watch.queued(at(n * 6), &of(7));
        watch.left(at(n * 6 + 5), &of(7));
        watch.refused(at(n * 6 + 5), &of(7), Reason::GateClosed);
    }
    assert_eq!(shares(&watch, at(119)), [(7, 119.0 / 600.0)]);
}

#[test]
fn who_was_admitted_meanwhile_is_named_the_exempt_first() {
    let mut watch = watch(LIMITS);
    for _ in 0..1_000 {
        watch.admitted(at(0), &of(1));
    }
    watch.queued(at(30), &of(7));
    for second in 30..100 {
        watch.passed(at(second), exempt(3));
        watch.passed(at(second), (Passage::Ungated, None, Some(AppKey(5))));
        watch.admitted(at(second), &of(1));
        watch.admitted(at(second), &of(2));
        watch.admitted(at(second), &of(2));
    }
    let starved = watch.starved(at(100));
    let named: Vec<(Passage, Option<AppKey>, u64)> =
        starved[0].meanwhile.iter().map(|by| (by.passage, by.app, by.count)).collect();
    let expected = [
        (Passage::Exempt, Some(AppKey(3)), 70),
        (Passage::Ungated, Some(AppKey(5)), 70),
        (Passage::Asked, Some(AppKey(2)), 140),
        (Passage::Asked, Some(AppKey(1)), 70),
    ];
    assert_eq!(named, expected, "what passed before anybody waited does not count");
    watch.left(at(100), &of(7));
    watch.admitted(at(100), &of(7));
    for _ in 0..9 {
        watch.passed(at(400), exempt(4));
    }
    assert_eq!(watch.starved(at(400))[0].meanwhile.len(), 4, "nobody was blocked by the last one");
}

#[test]
fn identities_before_the_same_gate_share_their_causes_and_others_do_not() {
    let mut watch = watch(LIMITS);
    watch.queued(at(0), &of(1));
    watch.queued(at(0), &of(2));
    watch.passed(at(5), exempt(3));
    watch.queued(at(100), &of(4));
    watch.passed(at(105), exempt(5));
    let causes: Vec<(u64, usize)> = watch
        .starved(at(200))
        .iter()
        .map(|starved| (starved.identity.0, starved.meanwhile.len()))
        .collect();
    assert_eq!(causes, [(1, 2), (2, 2), (4, 1)]);
}

#[test]
fn a_small_window_counts_shorter_spells() {
    let limits = StarvationConfig { share: 0.1, window: Duration::from_secs(10) };
    let mut watch = watch(limits);
    watch.queued(at(0), &of(7));
    assert_eq!(shares(&watch, at(1)), [(7, 0.1)]);
    let whole = StarvationConfig { share: 1.0, ..limits };
    let mut watch = Starvation::new(whole, at(0));
    watch.queued(at(0), &of(7));
    assert_eq!(shares(&watch, at(9)), []);
    assert_eq!(shares(&watch, at(10)), [(7, 1.0)]);
}

#[test]
fn thousands_that_are_admitted_leave_nothing_behind() {
    let mut watch = watch(LIMITS);
    for n in 0..100_000 {
        watch.admitted(at(1), &of(n));
        watch.queued(at(1), &of(n));
        watch.left(at(1), &of(n));
        watch.admitted(at(1), &of(n));
    }
    assert!(watch.identities.is_empty());
    assert!(watch.apps.is_empty(), "nobody was blocked");
}

#[test]
fn beyond_the_bound_whoever_waits_is_kept_and_the_least_blocked_is_forgotten() {
    let mut watch = watch(LIMITS);
    watch.queued(at(0), &of(1));
    let bound = u64::try_from(IDENTITIES_MAX).unwrap();
    // One statement of each; the first of them are refused for some time.
    for second in 0..10 {
        for n in 10..20 {
            watch.refused(at(second), &of(n), Reason::GateClosed);
        }
    }
    for n in 100..3 * bound {
        watch.refused(at(10 + n / 100), &of(n), Reason::GateClosed);
        assert!(watch.identities.len() <= IDENTITIES_MAX);
    }
    let end = 10 + 3 * bound / 100;
    assert_eq!(shares(&watch, at(end)).first(), Some(&(1, f64::from(132) / 600.0)));
    assert_eq!(end, 132);
    let newest = IdentityKey(3 * bound - 1);
    assert!(watch.identities.contains_key(&(RULE, newest)), "there is room for new ones");
}

#[test]
fn a_crowd_that_waits_beyond_the_bound_is_not_watched_and_does_no_harm() {
    let mut watch = watch(LIMITS);
    let all = u64::try_from(IDENTITIES_MAX).unwrap() + 500;
    for n in 0..all {
        watch.queued(at(0), &of(n));
    }
    assert_eq!(watch.identities.len(), IDENTITIES_MAX);
    assert_eq!(watch.starved(at(100)).len(), STARVED_MAX);
    for n in 0..all {
        watch.left(at(100), &of(n));
        watch.admitted(at(100), &of(n));
    }
    assert_eq!(watch.waiters, 0);
    assert!(!watch.is_anybody_blocked(at(100)));
}

#[test]
fn apps_beyond_the_bound_are_counted_together() {
    let mut watch = watch(LIMITS);
    watch.queued(at(0), &of(7));
    for app in 0..10_000 {
        watch.passed(at(1), exempt(app));
        watch.passed(at(1), (Passage::Asked, Some(RULE), Some(AppKey(app))));
    }
    assert!(watch.apps.len() <= APPS_MAX + 2);
    let meanwhile = &watch.starved(at(100))[0].meanwhile;
    assert_eq!(meanwhile.len(), MEANWHILE_MAX);
    assert_eq!((meanwhile[0].app, meanwhile[0].passage), (None, Passage::Exempt));
    assert!(meanwhile[0].count > 9_000);
    // After a window there is room again.
    watch.passed(at(1_000), exempt(20_000));
    assert_eq!(watch.apps.len(), 1);
}
