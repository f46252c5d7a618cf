//! Budgets: sessions that ask again as soon as they are answered, and a server that takes its time.

mod crossing;
mod taking_over;
mod together;

use std::collections::{BTreeMap, HashMap};

use rand::RngExt as _;

use super::*;
use crate::budget::BudgetSet;
use crate::{
    BudgetAsk, BudgetBook, BudgetHold, BudgetKey, BudgetTerms, BudgetUse, BudgetUsed, DigestKey,
    OnExceeded,
};

const A: BudgetKey = BudgetKey(1);
const B: BudgetKey = BudgetKey(2);

fn unlimited() -> BudgetTerms {
    BudgetTerms {
        max_concurrency: None,
        rate: None,
        rows_per_s: None,
        share: None,
        burst: 0.0,
        max_query_cost: None,
        on_exceeded: OnExceeded::Delay,
        max_delay: Duration::from_secs(86_400),
        mode: Mode::Enforce,
    }
}

fn at_once(most: u32) -> BudgetTerms {
    BudgetTerms { max_concurrency: Some(most), ..unlimited() }
}

fn book(terms: &[(BudgetKey, BudgetTerms)]) -> BudgetBook {
    BudgetBook::new(terms.iter().copied().collect())
}

fn set(budgets: &[BudgetKey]) -> BudgetSet {
    let mut set = BudgetSet::default();
    for budget in budgets {
        assert!(set.add(BudgetUse { budget: *budget, instance: 0 }));
    }
    set
}

/// What a session asks, again and again.
#[derive(Debug, Clone)]
struct Session {
    request: Request,
    set: BudgetSet,
    gated: bool,
    /// Its statements take the server between so much and so much.
    takes: (Duration, Duration),
    left: u32,
}

#[derive(Debug)]
struct Running {
    session: usize,
    permit: Option<Permit>,
    hold: Option<BudgetHold>,
    since: MonoTime,
}

/// A controller, sessions and a server.
struct World {
    lab: Lab,
    sessions: Vec<Session>,
    waiting: HashMap<Ticket, usize>,
    running: BTreeMap<(MonoTime, u64), Running>,
    next: u64,
    rng: StdRng,
    most: BTreeMap<BudgetKey, usize>,
    /// When each statement began, and how long it took, by budget.
    work: Vec<(MonoTime, Duration, BudgetSet)>,
    refused: Vec<Refusal>,
    /// What was polled last, as a shell keeps it.
    polled: (u64, Option<MonoTime>),
}

impl World {
    fn new(budgets: &[(BudgetKey, BudgetTerms)]) -> Self {
        let mut lab = Lab::new(ControllerConfig { budgets: book(budgets), ..config() });
        lab.lag(0.0);
        Self {
            lab,
            sessions: Vec::new(),
            waiting: HashMap::new(),
            running: BTreeMap::new(),
            next: 0,
            rng: StdRng::seed_from_u64(7),
            most: BTreeMap::new(),
            work: Vec::new(),
            refused: Vec::new(),
            polled: (0, None),
        }
    }

    fn session(&mut self, identity: u64, budgets: &[BudgetKey], takes: (u64, u64)) -> usize {
        let request = self.lab.request(GATED, IdentityKey(identity), Terms::default());
        let digest = Some(DigestKey(identity));
        self.sessions.push(Session {
            request: Request { digest, ..request },
            set: set(budgets),
            gated: false,
            takes: (ms(takes.0), ms(takes.1)),
            left: u32::MAX,
        });
        self.sessions.len() - 1
    }

    fn ask(&mut self, session: usize) {
        let Session { mut request, set, gated, .. } = self.sessions[session].clone();
        request.arrived = self.lab.now;
        let Request { rule, identity, app, digest, .. } = request;
        let ask = BudgetAsk { rule, identity, app, digest };
        let controller = &mut self.lab.controller;
        // As the shell does.
        if !gated && let Some(hold) = controller.take_budgets(self.lab.now, &set, ask) {
            self.expect_no_less_to_poll();
            return self.go(session, None, Some(hold));
        }
        let controller = &mut self.lab.controller;
        let decision = if gated {
            controller.request_budgeted(self.lab.now, &request, &set)
        } else {
            controller.request_budgets(self.lab.now, &request, &set)
        };
        match decision {
            Decision::Admit(permit) => self.begin(session, permit),
            Decision::Queue(ticket) => drop(self.waiting.insert(ticket, session)),
            Decision::Reject(refusal) => self.refused.push(refusal),
            Decision::Observed(..) => panic!("nobody observes"),
        }
    }

    fn begin(&mut self, session: usize, mut permit: Permit) {
        let hold = permit.take_hold();
        self.go(session, permit.is_of_rule().then_some(permit), hold);
    }

    /// A shell that was told nothing new polls nothing: it is called when it had planned to be.
    fn expect_no_less_to_poll(&self) {
        let (changes, planned) = self.polled;
        if self.lab.controller.changes() == changes {
            let wanted = self.lab.controller.poll_timeout();
            let is_planned = planned.is_some_and(|planned| planned <= self.lab.now);
            assert!(is_planned || wanted == planned, "{wanted:?} was {planned:?}");
        }
    }

    fn go(&mut self, session: usize, permit: Option<Permit>, hold: Option<BudgetHold>) {
        let Session { set, takes: (least, most), .. } = self.sessions[session];
        let took = if least < most { self.rng.random_range(least..most) } else { least };
        let end = self.lab.now.saturating_add(took);
        self.next += 1;
        self.work.push((self.lab.now, took, set));
        let running = Running { session, permit, hold, since: self.lab.now };
        self.running.insert((end, self.next), running);
        for at in set.iter() {
            let running = self.running.values().filter(|running| {
                self.sessions[running.session].set.iter().any(|other| other == at)
            });
            let count = running.count();
            let most = self.most.entry(at.budget).or_default();
            *most = (*most).max(count);
        }
    }

    /// Lets time pass; every session asks again when it is answered.
    fn run(&mut self, time: Duration) {
        let end = self.lab.now.saturating_add(time);
        loop {
            let ends = self.running.first_key_value().map(|(key, _)| key.0);
            let wakes = self.lab.controller.poll_timeout().map(|wake| wake.max(self.lab.now));
            let Some(next) = [ends, wakes].into_iter().flatten().min().filter(|at| *at <= end)
            else {
                break;
            };
            self.lab.now = next;
            if ends == Some(next) {
                let (_, running) = self.running.pop_first().expect("it ends");
                self.finish(running);
            } else {
                self.lab.controller.handle_time(next);
            }
            self.collect();
        }
        self.lab.now = end;
    }

    fn finish(&mut self, Running { session, permit, hold, since }: Running) {
        let now = self.lab.now;
        let server_time = now.saturating_since(since);
        let used = BudgetUsed { server_time, rows: 1, failed: false };
        if let Some(hold) = hold {
            self.lab.controller.finish_budgeted(now, hold, &used);
            self.expect_no_less_to_poll();
        }
        if let Some(permit) = permit {
            let outcome = Outcome { affected_rows: 1, server_time, ..Outcome::default() };
            self.lab.controller.complete(now, permit, outcome);
        }
        self.collect();
        self.sessions[session].left -= 1;
        if self.sessions[session].left > 0 {
            self.ask(session);
        }
    }

    /// Polls, unless there is nothing new, as the shell does.
    fn collect(&mut self) {
        if self.lab.controller.changes() == self.polled.0 {
            return;
        }
        while let Some(resolution) = self.lab.controller.poll_resolution(self.lab.now) {
            let Some(session) = self.waiting.remove(&resolution.ticket) else { continue };
            match resolution.outcome {
                Resolved::Admit(permit) => self.begin(session, permit),
                Resolved::Reject(refusal) => self.refused.push(refusal),
                Resolved::DecideAgain => self.ask(session),
            }
        }
        let controller = &self.lab.controller;
        self.polled = (controller.changes(), controller.poll_timeout());
    }

    fn all_ask(&mut self) {
        for session in 0..self.sessions.len() {
            self.ask(session);
        }
    }

    /// Server-seconds of a budget per second, over statements that began in this time.
    fn share(&self, budget: BudgetKey, from: MonoTime) -> f64 {
        let worked = self
            .work
            .iter()
            .filter(|(at, _, set)| *at >= from && set.iter().any(|at| at.budget == budget));
        let worked: f64 = worked.map(|(_, took, _)| took.as_secs_f64()).sum();
        worked / self.lab.now.saturating_since(from).as_secs_f64()
    }

    fn in_use(&self, budget: BudgetKey) -> u64 {
        let views = self.lab.controller.budget_views();
        views.iter().find(|view| view.budget == budget).map_or(0, |view| view.in_use)
    }
}

#[test]
fn no_more_than_allowed_are_at_the_server_and_all_get_their_turn() {
    let mut world = World::new(&[(A, at_once(4))]);
    for identity in 0..40 {
        let session = world.session(identity, &[A], (100, 100));
        world.sessions[session].left = 3;
    }
    world.all_ask();
    world.run(Duration::from_secs(4));
    assert_eq!(world.most[&A], 4);
    assert_eq!(world.work.len(), 120, "120 of 0.1 s, four at a time, are over in 3 s");
    assert!(world.waiting.is_empty() && world.in_use(A) == 0);
}

#[test]
fn one_session_gets_what_each_of_a_crowd_of_another_app_gets_together() {
    let mut world = World::new(&[(A, at_once(2))]);
    for identity in 0..30 {
        let session = world.session(100 + identity, &[A], (10, 10));
        let request = &mut world.sessions[session].request;
        (request.app, request.rule) = (AppKey(1), RuleKey(0));
    }
    for identity in 0..2 {
        let alone = world.session(identity, &[A], (10, 10));
        let request = &mut world.sessions[alone].request;
        (request.app, request.rule, request.identity) = (AppKey(2), RuleKey(0), IdentityKey(5));
    }
    world.all_ask();
    world.run(Duration::from_secs(10));
    let of = |app| {
        world
            .sessions
            .iter()
            .filter(|s| s.request.app == AppKey(app))
            .map(|s| u32::MAX - s.left)
            .sum::<u32>()
    };
    let (crowd, pair) = (of(1), of(2));
    let part = f64::from(pair) / f64::from(crowd + pair);
    assert!((0.4..0.6).contains(&part), "{crowd} and {pair}");
}

#[test]
fn a_share_is_what_an_app_takes_whatever_it_asks() {
    for (share, burst) in [(0.25, 0.25), (0.25, 2.0), (1.5, 0.5)] {
        let terms = BudgetTerms { share: Some(share), burst, ..unlimited() };
        let mut world = World::new(&[(A, terms)]);
        // Mixed: quick ones, slow ones, and some that take anything.
        for (identity, takes) in [(1, (2, 6)), (2, (80, 120)), (3, (1, 900)), (4, (400, 500))] {
            for _ in 0..4 {
                world.session(identity, &[A], takes);
            }
        }
        world.all_ask();
        world.run(Duration::from_secs(120));
        let from = world.lab.now;
        world.run(Duration::from_secs(600));
        let taken = world.share(A, from);
        assert!((taken / share - 1.0).abs() < 0.03, "{taken} of {share}, burst {burst}");
    }
}

#[test]
fn a_burst_comes_at_once_after_a_rest_and_no_more() {
    let terms = BudgetTerms { share: Some(0.1), burst: 2.0, ..unlimited() };
    let mut world = World::new(&[(A, terms)]);
    // What they cost is known.
    let session = world.session(1, &[A], (100, 100));
    world.sessions[session].left = 1;
    world.ask(session);
    world.run(Duration::from_secs(60));
    let before = world.work.len();
    for _ in 0..100 {
        world.session(1, &[A], (100, 100));
    }
    for session in 1..101 {
        world.sessions[session].left = 1;
        world.ask(session);
    }
    let at_once = world.work.len() - before;
    assert_eq!(at_once, 20, "2 s of 0.1 s each");
    world.run(Duration::from_secs(10));
    let later = world.work.len() - before - at_once;
    assert!((9..=10).contains(&later), "a tenth of 10 s: {later}");
}

#[test]
fn a_rate_is_held_over_any_time() {
    for rate in [0.5, 40.0, 900.0] {
        let mut world = World::new(&[(A, BudgetTerms { rate: Some(rate), ..unlimited() })]);
        for _ in 0..20 {
            world.session(1, &[A], (1, 1));
        }
        world.all_ask();
        world.run(Duration::from_secs(20));
        let count = f64::from(u32::try_from(world.work.len()).unwrap());
        let most = rate * 20.0 + (rate * 0.05).max(1.0) + 1.0;
        assert!(count <= most && count >= rate * 20.0 * 0.97, "{count} at {rate}");
    }
}

/// A minute was all that anybody was told.
#[test]
fn what_is_owed_for_long_is_told_for_as_long() {
    for (terms, owed_s) in [
        (BudgetTerms { share: Some(0.01), burst: 1.0, ..unlimited() }, 980.0),
        (BudgetTerms { rate: Some(0.005), ..unlimited() }, 185.0),
    ] {
        let mut world = World::new(&[(A, BudgetTerms { max_delay: ms(500), ..terms })]);
        let sessions: Vec<usize> =
            (1..4).map(|identity| world.session(identity, &[A], (10_000, 10_000))).collect();
        for session in sessions {
            world.sessions[session].left = 1;
            world.ask(session);
            world.run(Duration::from_secs(11));
        }
        assert_eq!((world.work.len(), world.refused.len()), (1, 2));
        for refused in world.refused {
            let told_s = refused.retry_after.as_secs_f64();
            assert!((owed_s * 0.5..owed_s * 2.0).contains(&told_s), "{told_s} of {owed_s}");
        }
    }
}

#[test]
fn what_costs_too_much_is_refused_and_tried_again_later() {
    let terms = BudgetTerms { max_query_cost: Some(1.0), ..unlimited() };
    let mut world = World::new(&[(A, terms)]);
    let slow = world.session(1, &[A], (3_000, 3_000));
    let quick = world.session(2, &[A], (10, 10));
    for session in [slow, quick] {
        world.sessions[session].left = 1;
        world.ask(session);
    }
    world.run(Duration::from_secs(5));
    assert_eq!((world.work.len(), world.refused.len()), (2, 0), "nobody knew");
    world.sessions[slow].left = 1;
    world.ask(slow);
    let refused = world.refused.pop().unwrap();
    assert_eq!((refused.reason, refused.budget), (Reason::BudgetQuery, Some(A)));
    let told_s = refused.retry_after.as_secs();
    assert!((595..750).contains(&told_s), "no sooner is one let through again: {told_s}");
    let other = world.session(3, &[A], (10, 10));
    world.sessions[other].request.app = world.sessions[slow].request.app;
    world.sessions[other].left = 1;
    world.ask(other);
    assert!(world.refused.is_empty(), "nobody is refused for what others cost");
    world.run(Duration::from_secs(601));
    world.ask(slow);
    world.ask(slow);
    assert_eq!(world.refused.len(), 1, "one is let through to see");
}

#[test]
fn who_waits_too_long_is_told_which_budget_it_was() {
    let terms = BudgetTerms { max_delay: ms(500), ..at_once(1) };
    let mut world = World::new(&[(A, terms)]);
    for identity in 1..3 {
        world.session(identity, &[A], (10_000, 10_000));
    }
    world.all_ask();
    world.run(Duration::from_secs(1));
    let [refusal] = world.refused[..] else { panic!("{:?}", world.refused) };
    assert_eq!((refusal.reason, refusal.budget), (Reason::BudgetConcurrency, Some(A)));
    assert_eq!(refusal.waited, ms(500));
}

#[test]
fn a_budget_that_warns_counts_and_lets_pass() {
    let terms = BudgetTerms { mode: Mode::Observe, ..at_once(2) };
    let mut world = World::new(&[(A, terms)]);
    for identity in 0..5 {
        world.session(identity, &[A], (100, 100));
    }
    world.all_ask();
    assert_eq!(world.running.len(), 5);
    let view = world.lab.controller.budget_views()[0];
    assert_eq!((view.in_use, view.exceeded, view.warned), (5, 0, 3));
}

#[test]
fn at_a_shut_gate_nobody_takes_a_place_that_others_could_use() {
    let mut world = World::new(&[(A, at_once(2))]);
    for identity in 0..8 {
        let session = world.session(identity, &[A], (10, 10));
        world.sessions[session].gated = identity < 4;
    }
    world.lab.lag(5.0);
    world.all_ask();
    world.run(Duration::from_secs(1));
    let reads = world.work.len();
    assert!(reads >= 190, "two at a time, 10 ms each: {reads}");
    assert_eq!(world.most[&A], 2);
}

#[test]
fn who_wins_its_turn_at_a_busy_gate_is_not_kept_out_by_a_busy_budget() {
    let mut world = World::new(&[(A, at_once(2))]);
    for identity in 0..20 {
        let session = world.session(identity, &[A], (10, 10));
        world.sessions[session].gated = identity < 10;
        world.sessions[session].request.terms.max_delay = Duration::from_secs(600);
    }
    world.all_ask();
    world.run(Duration::from_secs(20));
    let of = |range: std::ops::Range<usize>| {
        world.sessions[range].iter().map(|s| u32::MAX - s.left).sum::<u32>()
    };
    let (gated, free) = (of(0..10), of(10..20));
    assert_eq!(world.most[&A], 2);
    assert!(world.refused.is_empty());
    assert!(gated * 2 > free, "{gated} and {free}");
}

#[test]
fn an_edit_keeps_what_is_at_the_server() {
    let mut world = World::new(&[(A, at_once(3))]);
    for identity in 0..6 {
        world.session(identity, &[A], (1_000, 1_000));
    }
    world.all_ask();
    assert_eq!(world.in_use(A), 3);
    let edited = ControllerConfig { budgets: book(&[(A, at_once(1))]), ..config() };
    drop(world.lab.controller.reconfigure(edited, world.lab.now));
    world.collect();
    world.run(ms(999));
    assert_eq!((world.in_use(A), world.waiting.len()), (3, 3));
    let exceeded = world.lab.controller.budget_views()[0].exceeded;
    assert_eq!(exceeded, 3, "who waits over an edit has found no room once");
    world.most.clear();
    world.run(Duration::from_secs(30));
    assert_eq!(world.most[&A], 1);
    assert_eq!(world.in_use(A), 1);
}
