//! Budgets that an edit has limit something else, under their names.

use super::*;

fn in_force(budgets: &mut Budgets, now: MonoTime, terms: BudgetTerms) {
    budgets.configure(now, &BudgetBook::new(HashMap::from([(BudgetKey(1), terms)])));
}

fn after(seconds: u64) -> MonoTime {
    MonoTime::from_nanos(1).saturating_add(Duration::from_secs(seconds))
}

fn owed(budgets: &Budgets, now: MonoTime) -> f64 {
    budgets.debts(now).iter().map(|(_, debt)| debt.seconds + debt.rows).sum()
}

/// What had run under a budget with a rate was owed to the share that came in its place: a report of
/// ten minutes shut one of a tenth for a hundred.
#[test]
fn what_began_before_a_limit_came_is_not_owed_to_it() {
    let share = BudgetTerms { max_concurrency: None, ..terms(0.1) };
    let rate = BudgetTerms { share: None, rate: Some(100.0), ..share };
    let rows = BudgetTerms { share: None, rows_per_s: Some(1.0), ..share };
    let report = BudgetUsed { rows: 1_000_000, ..used(600.0) };
    for limit in [share, rows] {
        let mut budgets = Budgets::default();
        in_force(&mut budgets, ZERO, rate);
        let digest = Some(DigestKey(7));
        let is_over = budgets.take(after(0), &of(0), (digest, APP));
        budgets.finish(after(600), &is_over, &report);
        // It is foreseen now.
        let runs = budgets.take(after(600), &of(0), (digest, APP));
        in_force(&mut budgets, after(601), limit);
        assert_eq!(owed(&budgets, after(601)), 0.0);
        budgets.finish(after(1_200), &runs, &report);
        assert_eq!(owed(&budgets, after(1_200)), 0.0);
        assert_eq!(budgets.in_the_way(after(1_200), &of(0), (None, APP), |_| false), None);
        // Out of the file, and back: it limits what has begun meanwhile as well.
        let began_then = budgets.take(after(1_200), &of(0), (digest, APP));
        let foreseen = owed(&budgets, after(1_200));
        assert!(foreseen > 0.0);
        budgets.configure(after(1_201), &BudgetBook::default());
        in_force(&mut budgets, after(1_202), limit);
        budgets.finish(after(1_202), &began_then, &BudgetUsed { rows: 2_000_000, ..used(800.0) });
        assert!(owed(&budgets, after(1_202)) > foreseen);
    }
}

/// What had been at rest was forgotten when it would have been paid before the edit.
#[test]
fn what_a_lower_share_has_not_drained_yet_is_owed_whoever_comes() {
    let mut budgets = Budgets::default();
    in_force(&mut budgets, ZERO, terms(1.0));
    let takes = |budgets: &mut Budgets, now, instance, seconds| {
        let hold = budgets.take(now, &of(instance), (None, APP));
        budgets.finish(now, &hold, &used(seconds));
    };
    let others = 2 * u64::try_from(WARM_MAX).unwrap();
    takes(&mut budgets, after(0), 0, 100.0);
    (1..others).for_each(|other| takes(&mut budgets, after(0), other, 0.0));
    in_force(&mut budgets, after(50), terms(0.01));
    (others..2 * others).for_each(|other| takes(&mut budgets, after(200), other, 0.0));
    let stands = budgets.in_the_way(after(200), &of(0), (None, APP), |_| false);
    assert!(matches!(stands, Some(InTheWay::Waits { .. })), "{stands:?}");
    (0..others).for_each(|other| takes(&mut budgets, after(20_000), 2 * others + other, 0.0));
    assert!(budgets.buckets_len() < WARM_MAX + 20, "{}", budgets.buckets_len());
}

/// All of the time since somebody last came was taken for time of the new file.
#[test]
fn what_has_drained_until_an_edit_drained_as_the_file_said_then() {
    let place = |share: f64| BudgetTerms { max_concurrency: None, burst: 100.0, ..terms(share) };
    for (before, behind, left) in [(1.0, 0.01, 10.0), (0.01, 1.0, 99.1)] {
        let mut budgets = Budgets::default();
        in_force(&mut budgets, ZERO, place(before));
        let hold = budgets.take(after(0), &of(0), (None, APP));
        budgets.finish(after(0), &hold, &used(100.0));
        in_force(&mut budgets, after(90), place(behind));
        let owed = owed(&budgets, after(90));
        assert!((owed - left).abs() < 1e-6, "{owed}");
    }
}
