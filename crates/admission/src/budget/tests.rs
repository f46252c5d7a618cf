use std::collections::HashMap;
use std::time::Duration;

use super::store::WARM_MAX;
use super::*;
use crate::{AppKey, DigestKey, Mode, MonoTime, Reason};

mod edits;
mod so_far;

const APP: AppKey = AppKey(1);
const ZERO: MonoTime = MonoTime::ZERO;

fn used(seconds: f64) -> BudgetUsed {
    BudgetUsed { server_time: Duration::from_secs_f64(seconds), rows: 0, failed: false }
}

fn terms(share: f64) -> BudgetTerms {
    BudgetTerms {
        max_concurrency: Some(2),
        rate: None,
        rows_per_s: None,
        share: Some(share),
        burst: 1.0,
        max_query_cost: None,
        on_exceeded: OnExceeded::Delay,
        max_delay: Duration::from_secs(60),
        mode: Mode::Enforce,
    }
}

fn budgets(share: f64) -> Budgets {
    let mut budgets = Budgets::default();
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), terms(share))])));
    budgets
}

fn of(instance: u64) -> BudgetSet {
    let mut set = BudgetSet::default();
    assert!(set.add(bucket(instance)));
    set
}

fn bucket(instance: u64) -> BudgetUse {
    BudgetUse { budget: BudgetKey(1), instance }
}

#[test]
fn buckets_that_clients_make_up_are_bounded_and_those_that_have_emptied_make_room() {
    let mut budgets = budgets(0.001);
    let mut now = MonoTime::from_nanos(1);
    for n in 0..1_000_000 {
        let hold = budgets.take(now, &of(n), (None, APP));
        budgets.finish(now, &hold, &used(1.0));
        assert!(budgets.buckets_len() <= 65_536);
    }
    now = now.saturating_add(Duration::from_secs(2_000));
    for n in 0..40_000 {
        let hold = budgets.take(now, &of(2_000_000 + n), (None, APP));
        budgets.finish(now, &hold, &used(0.0));
    }
    // Beside those that have come to rest of late.
    assert!(budgets.buckets_len() < WARM_MAX + 20, "{}", budgets.buckets_len());
}

#[test]
fn a_place_at_the_server_is_given_back_where_it_was_taken_whoever_came_meanwhile() {
    let mut budgets = budgets(0.001);
    let now = MonoTime::from_nanos(1);
    let hold = budgets.take(now, &of(0), (None, APP));
    // Enough to have everything that is at rest pushed out and made anew, some of it in debt.
    for n in 1..200_000 {
        let later = now.saturating_add(Duration::from_millis(n));
        let other = budgets.take(later, &of(n % 70_000), (None, APP));
        budgets.finish(later, &other, &used(if n % 3 == 0 { 0.0 } else { 1.0 }));
    }
    assert_eq!(budgets.there(), HashMap::from([(bucket(0), 1)]));
    assert_eq!(budgets.taken_with(&hold).0, of(0));
    budgets.finish(now, &hold, &used(0.0));
    assert_eq!(budgets.there(), HashMap::new());
    assert_eq!(budgets.views().map(|view| view.in_use).sum::<u64>(), 0);
}

/// Room for the one that is made is made by forgetting another, which must not be the other one of
/// the same statement.
#[test]
fn a_statement_that_meets_a_new_bucket_and_one_about_to_be_forgotten_takes_from_both() {
    let mut budgets = Budgets::default();
    let long = BudgetTerms { burst: 1e9, ..terms(0.001) };
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), long)])));
    let mut now = MonoTime::from_nanos(1);
    let mut next = || {
        now = now.saturating_add(Duration::from_millis(1));
        now
    };
    for n in 0..70_000 {
        let now = next();
        let hold = budgets.take(now, &of(n), (None, APP));
        budgets.finish(now, &hold, &used(1.0));
    }
    for n in 0..20 {
        let now = next();
        // Whoever would be empty first is forgotten first.
        let owed = budgets.debts(now).into_iter();
        let least = owed.min_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
        let mut both = of(1_000_000 + n);
        assert!(both.add(least.expect("all of them owe").0));
        let hold = budgets.take_if_room(now, &both, (None, APP), |_| false).expect("there is room");
        assert_eq!(budgets.taken_with(&hold).0, both);
        budgets.finish(now, &hold, &used(1.0));
    }
    assert!(budgets.there().is_empty());
}

/// A bucket stays warm while it is used; it must be as if it had been made anew.
#[test]
fn what_has_drained_while_a_bucket_was_at_rest_is_not_owed_any_more() {
    let mut budgets = budgets(1.0);
    let mut now = MonoTime::from_nanos(1);
    let debt = |budgets: &Budgets, now| {
        budgets.debts(now).iter().map(|(at, debt)| (at.instance, debt.seconds)).collect::<Vec<_>>()
    };
    for _ in 0..100 {
        let hold = budgets.take(now, &of(0), (None, APP));
        budgets.finish(now, &hold, &used(1.0));
        assert_eq!(debt(&budgets, now), [(0, 1.0)]);
        now = now.saturating_add(Duration::from_secs(1));
        assert!(budgets.debts(now).is_empty(), "{:?}", budgets.debts(now));
        assert_eq!(budgets.in_the_way(now, &of(0), (None, APP), |_| false), None);
    }
}

#[test]
fn a_budget_that_is_taken_out_of_the_file_meets_nobody_and_comes_back_with_who_is_there() {
    let mut budgets = budgets(1.0);
    let mut now = MonoTime::from_nanos(1);
    let first = budgets.take(now, &of(0), (None, APP));
    budgets.configure(ZERO, &BudgetBook::default());
    let meanwhile = budgets.take(now, &of(0), (None, APP));
    assert!(budgets.taken_with(&meanwhile).0.is_empty(), "it is not in force");
    assert_eq!(budgets.in_the_way(now, &of(0), (None, APP), |_| true), None);
    budgets.finish(now, &meanwhile, &used(1.0));
    let in_use = |budgets: &Budgets| budgets.views().map(|view| view.in_use).sum::<u64>();
    assert_eq!(in_use(&budgets), 1, "who is at the server stays counted");
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), terms(1.0))])));
    let second = budgets.take(now, &of(0), (None, APP));
    let full = |budgets: &mut Budgets, now| {
        budgets.in_the_way(now, &of(0), (None, APP), |_| false).is_some()
    };
    assert!(full(&mut budgets, now), "two at once");
    now = now.saturating_add(Duration::from_secs(9));
    budgets.finish(now, &first, &used(0.0));
    assert!(!full(&mut budgets, now));
    budgets.finish(now, &second, &used(0.0));
    assert_eq!(in_use(&budgets), 0);
}

#[test]
fn who_is_at_the_server_is_never_forgotten() {
    let mut budgets = budgets(0.001);
    let now = MonoTime::from_nanos(1);
    let holds = [0, 0].map(|n| budgets.take(now, &of(n), (None, APP)));
    for n in 1..100_000 {
        let hold = budgets.take(now, &of(n), (None, APP));
        budgets.finish(now, &hold, &used(1.0));
    }
    let blocked = budgets.in_the_way(now, &of(0), (None, APP), |_| false);
    assert!(matches!(blocked, Some(InTheWay::Waits { .. })), "{blocked:?}");
    for hold in holds {
        budgets.finish(now, &hold, &used(0.0));
    }
    assert_eq!(budgets.views().map(|view| view.in_use).sum::<u64>(), 0);
}

#[test]
fn whoever_makes_up_instances_of_one_budget_has_none_of_another_forgotten() {
    let long = terms(0.001);
    let book = HashMap::from([(BudgetKey(1), long), (BudgetKey(2), terms(1.0))]);
    let mut budgets = Budgets::default();
    budgets.configure(ZERO, &BudgetBook::new(book));
    let now = MonoTime::from_nanos(1);
    let mut users = BudgetSet::default();
    assert!(users.add(BudgetUse { budget: BudgetKey(2), instance: 7 }));
    let hold = budgets.take(now, &users, (None, APP));
    budgets.finish(now, &hold, &used(20.0));
    // Each of these owes for longer.
    for n in 0..100_000 {
        let hold = budgets.take(now, &of(n), (None, APP));
        budgets.finish(now, &hold, &used(1.0));
    }
    assert!(budgets.buckets_len() <= 65_536);
    let blocked = budgets.in_the_way(now, &users, (None, APP), |_| false);
    assert!(matches!(blocked, Some(InTheWay::Waits { .. })), "{blocked:?}");
}

#[test]
fn what_was_foreseen_wrongly_is_put_right() {
    let mut budgets = budgets(0.5);
    let now = MonoTime::from_nanos(1);
    let hold = budgets.take(now, &of(0), (None, APP));
    budgets.finish(now, &hold, &used(3.0));
    let until =
        |budgets: &mut Budgets| match budgets.in_the_way(now, &of(0), (None, APP), |_| false) {
            Some(InTheWay::Waits { until, .. }) => until,
            other => panic!("{other:?}"),
        };
    // It is larger than the burst now, and waits until nothing is owed: 3 s at a half.
    let waits = until(&mut budgets).unwrap().saturating_since(now);
    assert!((waits.as_secs_f64() - 6.0).abs() < 0.001, "{waits:?}");
}

/// What it costs itself says nothing about how long somebody else's place is taken.
#[test]
fn a_short_statement_behind_a_long_one_is_told_when_that_ends() {
    let one = BudgetTerms { max_concurrency: Some(1), share: None, ..terms(1.0) };
    let mut budgets = Budgets::default();
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), one)])));
    let [long, short] = [(Some(DigestKey(1)), APP), (Some(DigestKey(2)), APP)];
    let mut now = MonoTime::from_nanos(1);
    for (asks, cost) in [(long, 10.0), (short, 0.001)] {
        let hold = budgets.take(now, &of(0), asks);
        now = now.saturating_add(Duration::from_secs_f64(cost));
        budgets.finish(now, &hold, &used(cost));
    }
    let at = BudgetUse { budget: BudgetKey(1), instance: 0 };
    let hold = budgets.take(now, &of(0), long);
    now = now.saturating_add(Duration::from_secs(4));
    let mut told = |now, waiting| budgets.room_in(now, at, (short, waiting))[1].as_secs_f64();
    assert!((5.9..6.1).contains(&told(now, 0)), "{}", told(now, 0));
    assert!((15.9..16.1).contains(&told(now, 1)), "behind another one: {}", told(now, 1));
    now = now.saturating_add(Duration::from_secs(16));
    assert!((19.9..20.1).contains(&told(now, 0)), "as long again: {}", told(now, 0));
    budgets.finish(now, &hold, &used(20.0));
    assert!(budgets.room_in(now, at, (short, 0))[1].as_secs_f64() < 0.1, "nobody is there");
}

/// It passes when nothing is owed, not when there is room for all of it.
#[test]
fn who_costs_more_than_may_be_owed_is_told_when_nothing_is() {
    let share = BudgetTerms { max_concurrency: None, ..terms(0.5) };
    let mut budgets = Budgets::default();
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), share)])));
    let now = MonoTime::from_nanos(1);
    let hold = budgets.take(now, &of(0), (None, APP));
    budgets.finish(now, &hold, &used(8.0));
    let at = BudgetUse { budget: BudgetKey(1), instance: 0 };
    let mut told = |waiting| budgets.room_in(now, at, ((None, APP), waiting))[1].as_secs_f64();
    assert!((15.9..16.1).contains(&told(0)), "{}", told(0));
    assert!((31.9..32.1).contains(&told(1)), "behind another one: {}", told(1));
}

fn costly(most: f64) -> Budgets {
    let terms = BudgetTerms { max_query_cost: Some(most), share: None, ..terms(1.0) };
    let mut budgets = Budgets::default();
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), terms)])));
    budgets
}

/// One of this digest runs for so long, whether it is refused or not, from `now` on.
fn runs(budgets: &mut Budgets, now: MonoTime, digest: DigestKey, seconds: f64) {
    let hold = budgets.take(now, &of(0), (Some(digest), APP));
    budgets.finish(now, &hold, &used(seconds));
}

fn is_refused(budgets: &mut Budgets, now: MonoTime, digest: DigestKey) -> bool {
    let blocked = budgets.in_the_way(now, &of(0), (Some(digest), APP), |_| false);
    matches!(blocked, Some(InTheWay::Refused { reason: Reason::BudgetQuery, .. }))
}

#[test]
fn one_that_was_refused_and_has_become_cheap_is_free_after_one_look() {
    let (mut budgets, digest) = (costly(5.0), DigestKey(7));
    let now = MonoTime::from_nanos(1);
    (0..8).for_each(|_| runs(&mut budgets, now, digest, 60.0));
    assert!(is_refused(&mut budgets, now, digest));
    let later = now.saturating_add(Duration::from_secs(601));
    assert!(!is_refused(&mut budgets, later, digest), "one may look");
    let look = budgets.take(later, &of(0), (Some(digest), APP));
    assert!(is_refused(&mut budgets, later, digest), "the others wait for what it finds");
    // An index was added.
    budgets.finish(later, &look, &used(0.1));
    assert!(!is_refused(&mut budgets, later, digest));
    // It is gone again: two that are as dear as before, of which one was let through as cheap.
    runs(&mut budgets, later, digest, 60.0);
    assert!(is_refused(&mut budgets, later, digest));
}

#[test]
fn what_an_exempt_one_costs_now_frees_the_others_at_once() {
    let (mut budgets, digest) = (costly(5.0), DigestKey(7));
    let now = MonoTime::from_nanos(1);
    runs(&mut budgets, now, digest, 60.0);
    assert!(is_refused(&mut budgets, now, digest));
    runs(&mut budgets, now, digest, 0.1);
    assert!(!is_refused(&mut budgets, now, digest));
    // Still dear.
    runs(&mut budgets, now, digest, 60.0);
    runs(&mut budgets, now, digest, 30.0);
    assert!(is_refused(&mut budgets, now, digest));
}

/// It ran into `max_execution_time` each time, and was let through each time.
#[test]
fn what_fails_would_have_cost_that_at_least() {
    let (mut budgets, digest) = (costly(5.0), DigestKey(7));
    let now = MonoTime::from_nanos(1);
    let fails = |budgets: &mut Budgets, digest, seconds| {
        let hold = budgets.take(now, &of(0), (Some(digest), APP));
        budgets.finish(now, &hold, &BudgetUsed { failed: true, ..used(seconds) });
    };
    fails(&mut budgets, digest, 0.1);
    assert!(!is_refused(&mut budgets, now, digest));
    fails(&mut budgets, digest, 6.0);
    assert!(is_refused(&mut budgets, now, digest));
    fails(&mut budgets, digest, 0.1);
    assert!(is_refused(&mut budgets, now, digest), "it says nothing");
    // What ends well says more than what has failed only.
    runs(&mut budgets, now, digest, 1.0);
    assert!(!is_refused(&mut budgets, now, digest));
    runs(&mut budgets, now, DigestKey(8), 1.0);
    fails(&mut budgets, DigestKey(8), 0.1);
    fails(&mut budgets, DigestKey(8), 60.0);
    assert!(is_refused(&mut budgets, now, DigestKey(8)));
}

/// It was let in with a quarter of what the part cost, and freed what is dear.
#[test]
fn a_cursor_that_goes_on_behind_a_pause_says_nothing_of_what_its_statement_costs() {
    let (mut budgets, digest) = (costly(5.0), DigestKey(7));
    let now = MonoTime::from_nanos(1);
    runs(&mut budgets, now, digest, 60.0);
    for _ in 0..20 {
        let part = budgets.take(now, &of(0), (Some(digest), APP)).of_part();
        budgets.finish(now, &part, &used(0.01));
    }
    assert!(is_refused(&mut budgets, now, digest));
    assert_eq!(budgets.views().map(|view| view.in_use).sum::<u64>(), 0);
}

/// One app's flood of texts that come once had what another one is refused for forgotten, and it ran.
#[test]
fn a_flood_of_digests_lets_nobody_past_who_is_refused_for_what_it_costs() {
    let (mut budgets, dear, slow) = (costly(5.0), DigestKey(7), DigestKey(8));
    let now = MonoTime::from_nanos(1);
    runs(&mut budgets, now, dear, 60.0);
    runs(&mut budgets, now, slow, 60.0);
    for flood in 0..40_000 {
        runs(&mut budgets, now, DigestKey(1_000 + flood), 0.001);
        if flood % 1_000 == 0 {
            assert!(is_refused(&mut budgets, now, dear), "behind {flood} others");
        }
    }
    assert!(!is_refused(&mut budgets, now, slow), "nobody asked for it: it had to go");
}

#[test]
fn how_full_a_budget_is_is_that_of_its_fullest_bucket_by_the_limit_that_is_nearest() {
    let mut budgets = budgets(0.5);
    let now = MonoTime::from_nanos(1);
    assert_eq!(budgets.fills(now).get(&BudgetKey(1)), None, "nobody has taken anything");
    let first = budgets.take(now, &of(1), (None, APP));
    assert_eq!(budgets.fills(now)[&BudgetKey(1)], 0.5, "one of two places");
    // The other bucket owes three quarters of its burst, and drains.
    let other = budgets.take(now, &of(2), (None, APP));
    budgets.finish(now, &other, &used(0.75));
    assert_eq!(budgets.fills(now)[&BudgetKey(1)], 0.75);
    let later = now.saturating_add(Duration::from_secs(1));
    assert_eq!(budgets.fills(later)[&BudgetKey(1)], 0.5);
    budgets.finish(later, &first, &used(0.0));
    assert_eq!(budgets.fills(later)[&BudgetKey(1)], 0.25);
    // With thousands of them only what all share is looked at.
    let hold = budgets.take(later, &of(0), (None, APP));
    for n in 10..5_000 {
        let hold = budgets.take(later, &of(n), (None, APP));
        budgets.finish(later, &hold, &used(9.0));
    }
    assert!(budgets.fills(later)[&BudgetKey(1)] < 1.0);
    budgets.finish(later, &hold, &used(0.0));
}

#[test]
fn a_set_that_is_assigned_is_the_other_one_whatever_it_was() {
    let set = |len: u64| {
        let mut set = BudgetSet::default();
        let uses = (0..len).map(|n| BudgetUse { budget: BudgetKey(len), instance: n });
        assert!(uses.into_iter().all(|of| set.add(of)));
        set
    };
    for before in 0..=8 {
        for after in 0..=8 {
            let mut assigned = set(before);
            assigned.assign(&set(after));
            assert_eq!(assigned, set(after));
            assert_eq!(assigned == set(before), before == after);
            let more = BudgetUse { budget: BudgetKey(9), instance: 9 };
            assert_eq!(assigned.add_met(more), after < 8);
            assert!(assigned.add(more), "the line has a place of its own");
        }
    }
}

#[test]
fn who_runs_when_a_budget_comes_has_a_place_there_and_owes_nothing() {
    let (first, late) = (BudgetKey(1), BudgetKey(2));
    let both = HashMap::from([(first, terms(0.001)), (late, terms(0.001))]);
    let set = |keys: &[BudgetKey]| {
        let mut set = BudgetSet::default();
        assert!(keys.iter().all(|budget| set.add(BudgetUse { budget: *budget, instance: 0 })));
        set
    };
    let mut budgets = budgets(0.001);
    let now = MonoTime::from_nanos(1);
    let has_one = budgets.take(now, &set(&[first]), (None, APP));
    budgets.configure(ZERO, &BudgetBook::new(both));
    let later = now.saturating_add(Duration::from_secs(60));
    let held = budgets.join(later, Some(has_one), &set(&[first, late]), (None, APP));
    let has_none = budgets.join(later, None, &set(&[late]), (None, APP));
    let there = |budgets: &Budgets, budget| {
        let there = budgets.there().get(&BudgetUse { budget, instance: 0 }).copied();
        there.unwrap_or_default()
    };
    assert_eq!((there(&budgets, first), there(&budgets, late)), (1, 2), "once in each");
    let stands = budgets.in_the_way(later, &set(&[late]), (None, APP), |_| false);
    let is_full = |stands: Option<InTheWay>| {
        matches!(stands, Some(InTheWay::Waits { reason: Reason::BudgetConcurrency, .. }))
    };
    assert!(is_full(stands), "{stands:?}");
    for hold in [held, has_none] {
        budgets.finish(later, &hold, &used(61.0));
    }
    assert_eq!((there(&budgets, first), there(&budgets, late)), (0, 0));
    let owed: Vec<BudgetKey> = budgets.debts(later).iter().map(|(at, _)| at.budget).collect();
    assert_eq!(owed, [first], "what it took was not limited by the other when it began");
}

/// Each `per` has buckets of its own: the statement stood in those of all that there had been.
#[test]
fn who_runs_while_a_budget_is_divided_anew_again_and_again_is_one_statement_of_it() {
    let mut budgets = budgets(1.0);
    let now = MonoTime::from_nanos(1);
    let in_use = |budgets: &Budgets| budgets.views().map(|view| view.in_use).sum::<u64>();
    let where_it_is = |budgets: &Budgets| {
        let mut there: Vec<u64> = budgets.there().into_keys().map(|at| at.instance).collect();
        there.sort_unstable();
        there
    };
    let mut hold = budgets.take(now, &of(0), (None, APP));
    let mut came_late = budgets.join(now, None, &of(70), (None, APP));
    for instance in 10..30 {
        hold = budgets.join(now, Some(hold), &of(instance), (None, APP));
        came_late = budgets.join(now, Some(came_late), &of(70 + instance), (None, APP));
        assert_eq!(in_use(&budgets), 2);
        assert_eq!(where_it_is(&budgets), [0, instance, 70 + instance], "and where it began");
    }
    // As at first: there it has been all the time.
    hold = budgets.join(now, Some(hold), &of(0), (None, APP));
    for (hold, left) in [(hold, 1), (came_late, 0)] {
        budgets.finish(now, &hold, &used(1.0));
        assert_eq!(in_use(&budgets), left);
    }
    assert!(budgets.there().is_empty());
    assert_eq!(budgets.debts(now).len(), 1, "it is paid where it was taken");
}

/// After eight names it had no place left, and a second statement ran beside it.
#[test]
fn who_runs_while_its_budget_is_renamed_again_and_again_is_in_that_of_the_last_name() {
    let named = |key: u64| BudgetUse { budget: BudgetKey(key), instance: 0 };
    let set = |keys: &[u64]| {
        let mut set = BudgetSet::default();
        assert!(keys.iter().all(|key| set.add(named(*key))));
        set
    };
    let in_force = |keys: &[u64]| {
        let one = BudgetTerms { max_concurrency: Some(1), ..terms(1.0) };
        BudgetBook::new(keys.iter().map(|key| (BudgetKey(*key), one)).collect())
    };
    let now = MonoTime::from_nanos(1);
    let mut budgets = Budgets::default();
    budgets.configure(ZERO, &in_force(&[1, 2]));
    let mut hold = budgets.take(now, &set(&[1, 2]), (None, APP));
    for key in (3..30).chain([1, 3, 1]) {
        budgets.configure(ZERO, &in_force(&[2, key]));
        hold = budgets.join(now, Some(hold), &set(&[key]), (None, APP));
        for key in [2, key] {
            let stands = budgets.in_the_way(now, &set(&[key]), (None, APP), |_| false);
            assert!(matches!(stands, Some(InTheWay::Waits { .. })), "{key}: {stands:?}");
            assert_eq!(budgets.there().get(&named(key)), Some(&1));
        }
    }
    // All of its places are those of budgets in force: there it stays, also for those of one more.
    let all: Vec<u64> = (2..12).collect();
    budgets.configure(ZERO, &in_force(&all));
    hold = budgets.join(now, Some(hold), &set(&all[1..]), (None, APP));
    let there = |budgets: &Budgets| budgets.there().len();
    assert_eq!(there(&budgets), BudgetSet::LEN_MAX);
    budgets.finish(now, &hold, &used(1.0));
    assert_eq!(there(&budgets), 0);
    assert_eq!(budgets.views().map(|view| view.in_use).sum::<u64>(), 0);
}
