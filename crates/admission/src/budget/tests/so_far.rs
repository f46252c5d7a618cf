//! Statements that take longer than was foreseen, while they run.

use super::*;

fn after(millis: u64) -> MonoTime {
    MonoTime::from_nanos(1).saturating_add(Duration::from_millis(millis))
}

fn waits(budgets: &mut Budgets, now: MonoTime) -> bool {
    budgets.in_the_way(now, &of(0), (Some(DigestKey(9)), APP), |_| false).is_some()
}

/// Of statements that nobody had seen as many came as asked, for as long as the first took.
#[test]
fn what_takes_longer_than_was_foreseen_is_owed_while_it_runs_and_once() {
    let mut budgets = Budgets::default();
    let share = BudgetTerms { max_concurrency: None, ..terms(0.1) };
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), share)])));
    let mut hold = budgets.take(after(0), &of(0), (Some(DigestKey(7)), APP));
    assert_eq!(hold.next_told(), Some(Duration::from_secs(1)));
    assert!(!waits(&mut budgets, after(900)));
    for second in 1..=60 {
        budgets.note_so_far(after(second * 1_000), &mut hold, Duration::from_secs(second));
        assert_eq!(hold.next_told(), Some(Duration::from_secs(second + 1)));
        assert_eq!(waits(&mut budgets, after(second * 1_000)), second > 1, "{second}");
    }
    let seconds = |budgets: &Budgets, now| {
        let owed: Vec<f64> = budgets.debts(now).iter().map(|(_, debt)| debt.seconds).collect();
        owed.iter().sum::<f64>()
    };
    // What has drained meanwhile is paid.
    let owed = seconds(&budgets, after(60_000));
    assert!((53.9..54.2).contains(&owed), "{owed}");
    budgets.finish(after(60_500), &hold, &used(60.5));
    let ended = seconds(&budgets, after(60_500));
    assert!((ended - owed - 0.45).abs() < 1e-3, "{owed} {ended}");
}

#[test]
fn what_is_neither_shared_nor_dear_is_not_told() {
    let mut budgets = Budgets::default();
    let places = BudgetTerms { share: None, ..terms(1.0) };
    budgets.configure(ZERO, &BudgetBook::new(HashMap::from([(BudgetKey(1), places)])));
    let hold = budgets.take(after(0), &of(0), (Some(DigestKey(7)), APP));
    assert_eq!(hold.next_told(), None);
    budgets.give_back(after(0), &hold);
}

/// A digest that was quick until tonight counts as if the one that runs ended now.
#[test]
fn the_like_of_what_runs_for_too_long_is_refused_before_that_has_ended() {
    let mut budgets = costly(5.0);
    let digest = DigestKey(7);
    runs(&mut budgets, after(0), digest, 0.1);
    let mut slow = budgets.take(after(0), &of(0), (Some(digest), APP));
    let mut refused_at = None;
    for second in 1..=30 {
        budgets.note_so_far(after(second * 1_000), &mut slow, Duration::from_secs(second));
        if is_refused(&mut budgets, after(second * 1_000), digest) {
            refused_at.get_or_insert(second);
        }
    }
    // A quarter of it counts, as at its end.
    assert_eq!(refused_at, Some(20));
    budgets.finish(after(30_000), &slow, &used(30.0));
    assert!(is_refused(&mut budgets, after(30_000), digest));
    assert!(!is_refused(&mut budgets, after(631_000), digest));

    let unseen = DigestKey(8);
    let mut slow = budgets.take(after(0), &of(0), (Some(unseen), APP));
    budgets.note_so_far(after(6_000), &mut slow, Duration::from_secs(6));
    assert!(is_refused(&mut budgets, after(6_000), unseen), "nothing else is known of it");
    // Another one was quick: that says more of the next.
    runs(&mut budgets, after(6_000), unseen, 0.1);
    assert!(!is_refused(&mut budgets, after(6_000), unseen));
    budgets.give_back(after(6_000), &slow);
}
