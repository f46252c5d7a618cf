//! Random sequences of everything against a small model: nobody is lost, nobody is resolved twice,
//! permits balance, counts are right, bounds hold, and the timer always moves on.

use std::collections::btree_map::Entry;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Ask { gate: u32, identity: u64, terms: Terms },
    Lag(f64),
    NoSample,
    Cancel(usize),
    Complete(usize),
    Wait(u64),
    WaitForTimer,
    SameTimeAgain,
    Reload,
    Shutdown,
}

fn terms() -> impl Strategy<Value = Terms> {
    let ratio = prop_oneof![Just(0.0), Just(0.5), Just(0.9), Just(1.0)];
    let delay_ms = prop_oneof![Just(0), 1..200_u64, Just(5_000), Just(60_000)];
    let flags = (any::<[bool; 4]>(), 0..4_u32, 1..9_u32);
    (ratio, delay_ms, flags).prop_map(|(ratio, delay_ms, (flags, weight, queue_len_max))| {
        let [rejects, admits, hold, observes] = flags;
        Terms {
            weight,
            max_delay: ms(delay_ms),
            on_refused_check: if rejects { OnRefusedCheck::Reject } else { OnRefusedCheck::Delay },
            on_timeout: if admits { OnTimeout::Admit } else { OnTimeout::Reject },
            queue_len_max,
            hold: hold && rejects == admits,
            mode: if observes && rejects { Mode::Observe } else { Mode::Enforce },
            ..with_ratio(ratio)
        }
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..4_u32, 0..4_u64, terms())
            .prop_map(|(gate, identity, terms)| Step::Ask { gate, identity, terms }),
        4 => prop_oneof![Just(0.0), Just(0.99), Just(1.0), Just(50.0)].prop_map(Step::Lag),
        1 => Just(Step::NoSample),
        3 => any::<usize>().prop_map(Step::Cancel),
        3 => any::<usize>().prop_map(Step::Complete),
        4 => prop_oneof![0..3_u64, 50..300_u64, Just(4_000), Just(40_000_000)].prop_map(Step::Wait),
        8 => Just(Step::WaitForTimer),
        1 => Just(Step::SameTimeAgain),
        1 => Just(Step::Reload),
        1 => Just(Step::Shutdown),
    ]
}

/// What must be true, kept apart from the controller.
struct Model {
    controller: Controller,
    now: MonoTime,
    waiting: BTreeMap<Ticket, Request>,
    permits: Vec<Permit>,
    asked: usize,
    ended: usize,
}

const CLUSTER_MAX: u32 = 20;

fn small_config() -> ControllerConfig {
    let mut config = config();
    config.queue_len_max = CLUSTER_MAX;
    config.signals[0].stale_after = Duration::from_secs(3);
    config
}

impl Model {
    fn new(seed: u64) -> Self {
        let now = MonoTime::from_nanos(5);
        Self {
            controller: Controller::new(small_config(), seed, now),
            now,
            waiting: BTreeMap::new(),
            permits: Vec::new(),
            asked: 0,
            ended: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask { gate, identity, terms } => {
                let (rule, identity) = (RuleKey(identity % 3), IdentityKey(identity));
                let gate = GateKey(gate);
                self.ask(Request {
                    rule,
                    identity,
                    app: AppKey(identity.0),
                    digest: None,
                    written: None,
                    gate,
                    terms,
                    arrived: self.now,
                    since: self.now,
                });
            }
            Step::Lag(value) => {
                self.controller.handle_sample(self.now, LAG, Sample::Value(value));
                self.controller.handle_sample(self.now, THREADS, Sample::Value(value));
            }
            Step::NoSample => self.controller.handle_sample(self.now, LAG, Sample::Failed),
            Step::Cancel(which) => {
                let ticket = self.waiting.keys().copied().nth(which % self.waiting.len().max(1));
                self.controller.cancel(self.now, ticket.unwrap_or(Ticket(u64::MAX)));
                self.ended += usize::from(ticket.and_then(|t| self.waiting.remove(&t)).is_some());
            }
            Step::Complete(which) if !self.permits.is_empty() => {
                let permit = self.permits.swap_remove(which % self.permits.len());
                self.controller.complete(self.now, permit, Outcome::default());
            }
            Step::Complete(_) => {}
            Step::Wait(millis) => {
                self.now = self.now.saturating_add(ms(millis));
                self.wake();
            }
            Step::WaitForTimer => {
                if let Some(at) = self.controller.poll_timeout() {
                    self.now = self.now.max(at);
                    self.wake();
                }
            }
            Step::SameTimeAgain => self.wake(),
            Step::Reload => drop(self.controller.reconfigure(small_config(), self.now)),
            Step::Shutdown => drop(self.controller.shutdown(self.now)),
        }
        self.collect();
        self.check();
    }

    fn ask(&mut self, request: Request) {
        self.asked += 1;
        match self.controller.request(self.now, &request) {
            Decision::Admit(permit) => {
                assert!(!request.terms.hold);
                self.permits.push(permit);
                self.ended += 1;
            }
            Decision::Observed(permit, _) => {
                assert_eq!(request.terms.mode, Mode::Observe);
                self.permits.push(permit);
                self.ended += 1;
            }
            Decision::Queue(ticket) => {
                assert!(request.deadline() > self.now);
                assert_eq!(request.terms.on_refused_check, OnRefusedCheck::Delay);
                let Entry::Vacant(place) = self.waiting.entry(ticket) else {
                    panic!("{ticket:?} was given twice")
                };
                place.insert(request);
                let same = |other: &&Request| other.rule == request.rule;
                let of_rule = self.waiting.values().filter(same).count();
                assert!(of_rule <= usize::try_from(request.terms.queue_len_max).unwrap());
                assert!(self.waiting.len() <= usize::try_from(CLUSTER_MAX).unwrap());
            }
            Decision::Reject(refusal) => {
                assert!(refusal.retry_after > Duration::ZERO);
                self.ended += 1;
            }
        }
    }

    fn wake(&mut self) {
        self.controller.handle_time(self.now);
        self.collect();
        let next = self.controller.poll_timeout();
        assert!(next.is_none_or(|next| next > self.now), "busy loop at {:?}", self.now);
        let overdue = self.waiting.values().find(|request| request.deadline() <= self.now);
        assert!(overdue.is_none(), "{overdue:?} at {:?}", self.now);
    }

    fn collect(&mut self) {
        let mut again = Vec::new();
        while let Some(Resolution { ticket, outcome }) = self.controller.poll_resolution(self.now) {
            let Some(request) = self.waiting.remove(&ticket) else {
                panic!("{ticket:?} was resolved, but does not wait")
            };
            match outcome {
                Resolved::Admit(permit) => {
                    assert!(!request.terms.hold);
                    let timed_out = permit.reason() == Some(Reason::Timeout);
                    assert_eq!(timed_out, request.deadline() <= self.now);
                    assert!(timed_out || request.terms.ratio < Ratio::ONE);
                    self.permits.push(permit);
                    self.ended += 1;
                }
                Resolved::Reject(refusal) => {
                    let shutdown = refusal.reason == Reason::Shutdown;
                    assert!(shutdown || request.deadline() <= self.now);
                    assert_eq!(refusal.waited, self.now.saturating_since(request.arrived));
                    self.ended += 1;
                }
                Resolved::DecideAgain => again.push(request),
            }
        }
        for request in again {
            self.asked -= 1;
            self.ask(request);
        }
    }

    fn check(&self) {
        assert_eq!(self.asked, self.ended + self.waiting.len());
        assert_eq!(self.controller.in_flight(), u64::try_from(self.permits.len()).unwrap());
        assert_eq!(self.controller.waiting_len(), self.waiting.len());
        let mut groups: BTreeMap<_, (usize, MonoTime)> = BTreeMap::new();
        for request in self.waiting.values() {
            let group = (request.rule, request.identity);
            let (depth, oldest) = groups.entry(group).or_insert((0, request.arrived));
            *depth += 1;
            *oldest = request.arrived.min(*oldest);
        }
        let shown = self.controller.waiting();
        let shown: BTreeMap<_, _> =
            shown.map(|w| ((w.rule, w.identity), (w.depth, w.oldest))).collect();
        assert_eq!(shown, groups);
        let in_line: usize = self.controller.gates.values().map(|gate| gate.ring.len()).sum();
        let waiters = self.controller.queue.after(None);
        let standing = waiters.filter(|(_, waiter)| matches!(waiter.spot, Spot::InLine { .. }));
        assert_eq!(in_line, standing.count());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_is_lost_and_time_always_moves_on(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut model = Model::new(seed);
        for step in steps {
            model.take(step);
        }
        // Whatever happened, the end is clean: every wait ends, every permit comes back.
        model.take(Step::Shutdown);
        assert!(model.waiting.is_empty());
        while !model.permits.is_empty() {
            model.take(Step::Complete(0));
        }
        assert_eq!(model.controller.in_flight(), 0);
    }

    #[test]
    fn every_wait_ends_by_its_deadline_without_help(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut model = Model::new(seed);
        for step in steps {
            model.take(step);
        }
        let end = model.now.saturating_add(Duration::from_secs(61));
        while let Some(at) = model.controller.poll_timeout().filter(|&at| at <= end) {
            model.now = model.now.max(at);
            model.wake();
        }
        assert!(model.waiting.is_empty(), "{:?}", model.waiting);
    }
}
