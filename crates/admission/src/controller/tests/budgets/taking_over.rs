//! What the process before has taken counts here.

use super::*;
use crate::{BudgetDebt, BudgetNews};

const AT: BudgetUse = BudgetUse { budget: A, instance: 0 };

fn elsewhere(world: &mut World, at: BudgetUse, count: u32) {
    let there = HashMap::from([(at, count)]);
    note(world, BudgetNews { there, ..BudgetNews::default() });
}

fn note(world: &mut World, news: BudgetNews) {
    world.lab.controller.note_budget_news(world.lab.now, news);
    world.collect();
}

fn begin_to_tell(world: &mut World) {
    world.lab.controller.tell_budgets(world.lab.now);
}

fn news(world: &mut World) -> BudgetNews {
    world.lab.controller.budget_news(world.lab.now)
}

#[test]
fn who_is_at_the_server_for_the_process_before_has_a_place_here_until_it_has_ended() {
    let mut world = World::new(&[(A, at_once(2))]);
    elsewhere(&mut world, AT, 2);
    assert_eq!(world.in_use(A), 2, "it is shown");
    for identity in 0..3 {
        world.session(identity, &[A], (1_000, 1_000));
    }
    world.all_ask();
    world.run(ms(500));
    assert_eq!((world.work.len(), world.waiting.len()), (0, 3));
    elsewhere(&mut world, AT, 1);
    assert_eq!((world.work.len(), world.in_use(A)), (1, 2));
    elsewhere(&mut world, AT, 0);
    assert_eq!((world.work.len(), world.in_use(A)), (2, 2));
    world.run(Duration::from_secs(10));
    assert_eq!(world.most[&A], 2);
    assert!(world.refused.is_empty());
}

/// A third process began with an empty server, while the first one still had its place there.
#[test]
fn the_process_behind_hears_of_the_one_before_too() {
    let mut world = World::new(&[(A, at_once(3))]);
    elsewhere(&mut world, AT, 2);
    world.session(1, &[A], (1_000, 1_000));
    world.all_ask();
    assert_eq!(world.lab.controller.budgeted_there(), HashMap::from([(AT, 3)]));
    let other = BudgetUse { budget: B, instance: 9 };
    elsewhere(&mut world, other, 5);
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
    begin_to_tell(&mut before);
    let told = news(&mut before);
    let [(at, BudgetDebt { seconds, .. })] = told.owed[..] else { panic!("{told:?}") };
    assert!(at == AT && (3.9..4.1).contains(&seconds), "{seconds}");
    assert_eq!(news(&mut before), BudgetNews::default(), "it is told once");
    let told = BudgetNews { costs: Vec::new(), ..told };

    let mut world = World::new(&[(A, terms)]);
    note(&mut world, told);
    let session = world.session(1, &[A], (10, 10));
    world.sessions[session].left = 1;
    world.all_ask();
    world.run(Duration::from_secs(7));
    assert_eq!(world.work.len(), 0, "two of the four seconds have to drain");
    world.run(Duration::from_secs(2));
    assert_eq!(world.work.len(), 1);
}

/// What ran over a takeover cost nothing: as soon as it had ended the next ones were let through.
#[test]
fn what_runs_over_a_takeover_is_owed_when_it_has_ended_also_two_processes_on() {
    let terms = BudgetTerms { share: Some(0.25), burst: 2.0, ..unlimited() };
    let [mut first, mut second, mut third] = [(); 3].map(|()| World::new(&[(A, terms)]));
    let session = first.session(1, &[A], (4_000, 4_000));
    first.sessions[session].left = 1;
    first.all_ask();
    begin_to_tell(&mut first);
    begin_to_tell(&mut second);
    for _ in 0..500 {
        for world in [&mut first, &mut second, &mut third] {
            world.run(ms(10));
        }
        let told = news(&mut first);
        note(&mut second, told);
        let told = news(&mut second);
        note(&mut third, told);
    }
    for world in [&mut second, &mut third] {
        begin_to_tell(world);
        let told = news(world);
        let [(AT, BudgetDebt { seconds, .. })] = told.owed[..] else { panic!("{told:?}") };
        assert!((3.7..3.8).contains(&seconds), "four, less a second of draining: {seconds}");
    }
}

/// Each process let through what the budget allows, so it was twice that.
#[test]
fn what_the_line_of_the_process_before_takes_is_not_there_for_this_one() {
    let terms = BudgetTerms { rate: Some(5.0), ..unlimited() };
    let [mut before, mut world] = [(); 2].map(|()| World::new(&[(A, terms)]));
    for one in [&mut before, &mut world] {
        for identity in 0..20 {
            one.session(identity, &[A], (10, 10));
        }
        one.sessions.iter_mut().for_each(|session| session.left = 1);
    }
    before.all_ask();
    begin_to_tell(&mut before);
    world.all_ask();
    for _ in 0..100 {
        before.run(ms(20));
        world.run(ms(20));
        let told = news(&mut before);
        note(&mut world, told);
    }
    assert!((10..=11).contains(&before.work.len()), "its line goes first: {}", before.work.len());
    assert!(world.work.len() <= 3, "{} more", world.work.len());
    // It has ended: the line here has all of it.
    before.run(Duration::from_secs(10));
    let had = world.work.len();
    world.run(Duration::from_secs(2));
    assert!((9..=11).contains(&(world.work.len() - had)), "{} of {had}", world.work.len());
}

/// Behind a takeover whatever was refused for what it costs ran, all of it at once.
#[test]
fn who_was_refused_for_what_its_digest_costs_is_refused_here_for_the_rest_of_the_time() {
    let terms = BudgetTerms { max_query_cost: Some(0.3), ..unlimited() };
    let [mut before, mut world, mut third] = [(); 3].map(|()| World::new(&[(A, terms)]));
    for world in [&mut before, &mut world, &mut third] {
        let session = world.session(1, &[A], (1_000, 1_000));
        world.sessions[session].left = 2;
    }
    before.ask(0);
    before.run(Duration::from_secs(400));
    let costs = {
        begin_to_tell(&mut before);
        news(&mut before)
    };
    assert_eq!(before.work.len(), 1);
    world.run(Duration::from_secs(1));
    note(&mut world, costs.clone());
    world.ask(0);
    assert_eq!((world.work.len(), world.refused.len()), (0, 1));
    assert_eq!(world.refused[0].reason, Reason::BudgetQuery);
    begin_to_tell(&mut world);
    let further = news(&mut world);
    note(&mut third, further);
    third.ask(0);
    assert_eq!(third.refused.len(), 1, "and in the third");
    // Also in one that comes when both are gone.
    let left = third.lab.controller.too_costly(third.lab.now);
    assert_eq!(left, costs.costs);
    let mut fourth = World::new(&[(A, terms)]);
    fourth.lab.controller.learn_costs(fourth.lab.now, left);
    fourth.session(1, &[A], (1_000, 1_000));
    fourth.ask(0);
    assert_eq!(fourth.refused.len(), 1);
    let mut dearer = World::new(&[(A, BudgetTerms { max_query_cost: Some(2.0), ..terms })]);
    dearer.lab.controller.learn_costs(dearer.lab.now, costs.costs.clone());
    assert_eq!(dearer.lab.controller.too_costly(dearer.lab.now), [], "for no budget");
    world.run(Duration::from_secs(205));
    world.ask(0);
    assert_eq!(world.work.len(), 1, "ten minutes behind the last that ran");
    // What was found out here is newer than what is told.
    let mut cheap = costs;
    cheap.costs[0].1.seconds = 0.1;
    world.run(Duration::from_secs(2));
    note(&mut world, cheap);
    let refused = world.refused.len();
    world.ask(0);
    assert_eq!(world.refused.len(), refused + 1);
}

/// What was charged in advance comes back when less was used, and whoever waits for that goes on.
#[test]
fn what_is_given_back_before_is_given_back_here_at_once() {
    let terms = BudgetTerms { share: Some(0.01), burst: 1.0, ..unlimited() };
    let mut world = World::new(&[(A, terms)]);
    let owed = |seconds| BudgetNews {
        owed: vec![(AT, BudgetDebt { seconds, ..BudgetDebt::default() })],
        ..BudgetNews::default()
    };
    note(&mut world, owed(5.0));
    world.session(1, &[A], (10, 10));
    world.all_ask();
    world.run(Duration::from_secs(1));
    assert_eq!(world.work.len(), 0);
    note(&mut world, owed(-4.9));
    assert_eq!(world.work.len(), 1);
}

#[test]
fn what_is_told_of_budgets_that_are_not_there_is_nothing() {
    let mut world = World::new(&[(A, at_once(2))]);
    let other = BudgetUse { budget: B, instance: 9 };
    let owed = vec![(other, BudgetDebt { rows: 1.0, ..BudgetDebt::default() })];
    note(&mut world, BudgetNews { there: HashMap::from([(other, 5)]), owed, costs: Vec::new() });
    assert!(world.lab.controller.budget_views().is_empty());
}
