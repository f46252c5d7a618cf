//! What the process before has taken counts here.

use super::*;
use crate::BudgetDebt;

const AT: BudgetUse = BudgetUse { budget: A, instance: 0 };

fn elsewhere(world: &mut World, count: u32) {
    let counts = HashMap::from([(AT, count)]);
    world.lab.controller.note_budgeted_elsewhere(world.lab.now, counts);
    world.collect();
}

#[test]
fn who_is_at_the_server_for_the_process_before_has_a_place_here_until_it_has_ended() {
    let mut world = World::new(&[(A, at_once(2))]);
    elsewhere(&mut world, 2);
    assert_eq!(world.in_use(A), 2, "it is shown");
    for identity in 0..3 {
        world.session(identity, &[A], (1_000, 1_000));
    }
    world.all_ask();
    world.run(ms(500));
    assert_eq!((world.work.len(), world.waiting.len()), (0, 3));
    elsewhere(&mut world, 1);
    assert_eq!((world.work.len(), world.in_use(A)), (1, 2));
    elsewhere(&mut world, 0);
    assert_eq!((world.work.len(), world.in_use(A)), (2, 2));
    world.run(Duration::from_secs(10));
    assert_eq!(world.most[&A], 2);
    assert!(world.refused.is_empty());
}

/// A third process began with an empty server, while the first one still had its place there.
#[test]
fn the_process_behind_hears_of_the_one_before_too() {
    let mut world = World::new(&[(A, at_once(3))]);
    elsewhere(&mut world, 2);
    world.session(1, &[A], (1_000, 1_000));
    world.all_ask();
    assert_eq!(world.lab.controller.budgeted_there(), HashMap::from([(AT, 3)]));
    let other = BudgetUse { budget: B, instance: 9 };
    world.lab.controller.note_budgeted_elsewhere(world.lab.now, HashMap::from([(other, 5)]));
    let there = HashMap::from([(AT, 1), (other, 5)]);
    assert_eq!(world.lab.controller.budgeted_there(), there, "also of what only another file has");
}

#[test]
fn what_was_owed_before_is_owed_still() {
    let terms = BudgetTerms { share: Some(0.25), burst: 2.0, ..unlimited() };
    let mut before = World::new(&[(A, terms)]);
    let session = before.session(1, &[A], (4_000, 4_000));
    before.sessions[session].left = 1;
    before.all_ask();
    before.run(Duration::from_secs(4));
    let owed = before.lab.controller.budget_debts(before.lab.now);
    let [(at, BudgetDebt { seconds, .. })] = owed[..] else { panic!("{owed:?}") };
    assert!(at == AT && (3.9..4.1).contains(&seconds), "{seconds}");

    let mut world = World::new(&[(A, terms)]);
    world.lab.controller.take_over_debts(world.lab.now, owed);
    let session = world.session(1, &[A], (10, 10));
    world.sessions[session].left = 1;
    world.all_ask();
    world.run(Duration::from_secs(7));
    assert_eq!(world.work.len(), 0, "two of the four seconds have to drain");
    world.run(Duration::from_secs(2));
    assert_eq!(world.work.len(), 1);
}

#[test]
fn what_is_told_of_budgets_that_are_not_there_is_nothing() {
    let mut world = World::new(&[(A, at_once(2))]);
    let other = BudgetUse { budget: B, instance: 9 };
    let controller = &mut world.lab.controller;
    controller.note_budgeted_elsewhere(world.lab.now, HashMap::from([(other, 5)]));
    controller.take_over_debts(world.lab.now, vec![(other, BudgetDebt::default())]);
    assert!(controller.budget_views().is_empty());
}
