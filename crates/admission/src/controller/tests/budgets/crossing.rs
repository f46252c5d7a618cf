//! Budgets that everybody is after: whoever needs two of them, and what is owed where nothing waits.

use super::*;

fn done(world: &World, sessions: std::ops::Range<usize>) -> u32 {
    world.sessions[sessions].iter().map(|session| u32::MAX - session.left).sum()
}

/// Each of two budgets has a line all the time, of those who need only it.
#[test]
fn who_needs_two_busy_budgets_gets_its_turn() {
    for (a, b) in [(at_once(1), at_once(1)), (at_once(3), at_once(2)), (at_once(4), rate(50.0))] {
        let mut world = World::new(&[(A, a), (B, b)]);
        for identity in 0..10 {
            world.session(identity, &[A], (40, 60));
            world.session(100 + identity, &[B], (40, 60));
        }
        for identity in 0..2 {
            world.session(200 + identity, &[A, B], (40, 60));
        }
        for session in &mut world.sessions {
            // In turns by identity, of one rule and one app.
            session.request.app = AppKey(1);
        }
        world.all_ask();
        world.run(Duration::from_secs(120));
        let (each, both) = (done(&world, 0..20), done(&world, 20..22));
        assert!(both * 40 > each, "{both} of 2 sessions, {each} of 20");
    }
}

/// A report waits for its own budget, and the budget of everybody goes on meanwhile.
#[test]
fn a_slow_budget_does_not_hold_up_a_quick_one() {
    let mut world = World::new(&[(A, at_once(4)), (B, at_once(2))]);
    for identity in 0..30 {
        world.session(identity, &[A], (4, 6));
    }
    for identity in 0..6 {
        world.session(100 + identity, &[A, B], (1_000, 1_000));
    }
    for session in &mut world.sessions {
        session.request.app = AppKey(1);
    }
    world.all_ask();
    world.run(Duration::from_secs(60));
    // Two places are the reports', which leave two of 5 ms each.
    let (web, reports) = (done(&world, 0..30), done(&world, 30..36));
    assert!(web > 21_000, "{web} of 24,000");
    assert!(reports > 100, "{reports} of 120");
}

/// What would have waited is not owed: else the edit that has the budget hold would find hours.
#[test]
fn a_budget_that_warns_owes_what_it_would_if_it_held() {
    let holds = BudgetTerms { share: Some(0.1), burst: 0.5, ..unlimited() };
    let warns = BudgetTerms { mode: Mode::Observe, ..holds };
    let mut world = World::new(&[(A, warns)]);
    for identity in 0..4 {
        world.session(identity, &[A], (100, 100));
    }
    world.all_ask();
    world.run(Duration::from_secs(600));
    let warned = |world: &World| world.lab.controller.budget_views()[0].warned;
    let (all, over) = (world.work.len(), warned(&world));
    assert!(over * 10 > u64::try_from(all).unwrap() * 9, "{over} of {all}");
    for session in &mut world.sessions {
        session.left = 1;
    }
    world.run(Duration::from_secs(10));
    let before = warned(&world);
    world.sessions[0].left = 1;
    world.ask(0);
    world.run(Duration::from_secs(10));
    assert_eq!(warned(&world), before, "after a rest there is room");

    let edited = ControllerConfig { budgets: book(&[(A, holds)]), ..config() };
    drop(world.lab.controller.reconfigure(edited, world.lab.now));
    world.sessions[0].left = 1;
    world.ask(0);
    assert!(world.waiting.is_empty(), "no hours are owed");
}

fn rate(rate: f64) -> BudgetTerms {
    BudgetTerms { rate: Some(rate), ..unlimited() }
}
