//! Random sequences under the pace of the lag, of statements that write one row: what is released
//! is kept to the pace, an identity's statements go in the order they came, and what is refused has
//! cost nothing.

use proptest::prelude::*;

use super::*;
use crate::AdaptivePacing;
use crate::lag::{Progress, ReplicaKey};

#[derive(Debug, Clone)]
enum Step {
    Ask { identity: u64, terms: Terms },
    Beat,
    Look { lag: f64, behind: [u64; 2], counts: [bool; 2], tells: bool },
    Cancel(usize),
    Complete { which: usize, rows: u64 },
    Wait(u64),
    WaitForTimer,
    Reload,
    Shutdown,
}

fn terms() -> impl Strategy<Value = Terms> {
    let delay_ms = prop_oneof![1 => Just(0), 2 => 1..200_u64, 4 => Just(60_000)];
    let flags = (prop::bool::weighted(0.2), prop::bool::weighted(0.1));
    (delay_ms, flags, 1..20_u32).prop_map(|(delay_ms, (rejects, admits), queue_len_max)| Terms {
        max_delay: ms(delay_ms),
        on_refused_check: if rejects { OnRefusedCheck::Reject } else { OnRefusedCheck::Delay },
        on_timeout: if admits { OnTimeout::Admit } else { OnTimeout::Reject },
        queue_len_max,
        ..Terms::default()
    })
}

fn step() -> impl Strategy<Value = Step> {
    let lag = prop_oneof![3 => Just(0.0), 1 => Just(0.3), 1 => Just(0.9), 1 => Just(1.5)];
    let behind = prop_oneof![4 => Just(0), 1 => 1..6_u64];
    let counts = prop::bool::weighted(0.9);
    let look = (lag, [behind.clone(), behind], [counts, counts], prop::bool::weighted(0.1));
    prop_oneof![
        30 => (0..4_u64, terms()).prop_map(|(identity, terms)| Step::Ask { identity, terms }),
        5 => Just(Step::Beat),
        8 => look.prop_map(|(lag, behind, counts, tells)| Step::Look { lag, behind, counts, tells }),
        2 => any::<usize>().prop_map(Step::Cancel),
        15 => (any::<usize>(), 0..2_u64).prop_map(|(which, rows)| Step::Complete { which, rows }),
        8 => prop_oneof![0..60_u64, 50..300_u64].prop_map(Step::Wait),
        12 => Just(Step::WaitForTimer),
        1 => Just(Step::Reload),
        1 => Just(Step::Shutdown),
    ]
}

/// As the pace documents it: so much time's work at once, and a statement.
const BURST: Duration = Duration::from_millis(20);

fn paced_config() -> ControllerConfig {
    let adaptive = AdaptivePacing {
        lag: LAG,
        heartbeat_interval: ms(250),
        probe_interval: ms(100),
        learns_row_costs: false,
        otherwise: BinaryPacing::default(),
    };
    ControllerConfig { pacing: Pacing::Adaptive(adaptive), ..config() }
}

/// What must be true, kept apart from the controller.
struct Model {
    controller: Controller,
    now: MonoTime,
    waiting: BTreeMap<Ticket, Request>,
    permits: Vec<Permit>,
    beats: u64,
    shown: [u64; 2],
    /// What the pace has allowed up to `now` and nobody has used, a burst at most.
    allowed: f64,
    /// `None`: no replica counts, nothing is paced.
    per_s: Option<f64>,
    released: u32,
    refused: u32,
}

impl Model {
    fn new(seed: u64) -> Self {
        let now = MonoTime::from_nanos(5);
        Self {
            controller: Controller::new(paced_config(), seed, now),
            now,
            waiting: BTreeMap::new(),
            permits: Vec::new(),
            beats: 0,
            shown: [0, 0],
            allowed: 1.0,
            per_s: None,
            released: 0,
            refused: 0,
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Ask { identity, terms } => self.ask(Request {
                rule: RuleKey(identity % 2),
                identity: IdentityKey(identity),
                app: AppKey(identity / 2),
                digest: None,
                written: None,
                gate: GATED,
                terms,
                arrived: self.now,
                since: self.now,
            }),
            Step::Beat => {
                self.beats += 1;
                self.controller.handle_heartbeat_begun(self.now, self.beats);
            }
            Step::Look { lag, behind, counts, tells } => self.look(lag, behind, counts, tells),
            Step::Cancel(which) => {
                let ticket = self.waiting.keys().copied().nth(which % self.waiting.len().max(1));
                if let Some(ticket) = ticket {
                    self.controller.cancel(self.now, ticket);
                    self.waiting.remove(&ticket);
                }
            }
            Step::Complete { which, rows } => self.complete(which, rows),
            Step::Wait(millis) => self.wake(self.now.saturating_add(ms(millis))),
            Step::WaitForTimer => {
                if let Some(at) = self.controller.poll_timeout() {
                    self.wake(self.now.max(at));
                }
            }
            Step::Reload => drop(self.controller.reconfigure(paced_config(), self.now)),
            Step::Shutdown => drop(self.controller.shutdown(self.now)),
        }
        self.collect();
        self.per_s = self.pace_now();
        if self.per_s.is_none() {
            self.allowed = 1.0;
        }
        assert_eq!(self.controller.in_flight(), u64::try_from(self.permits.len()).unwrap());
        assert_eq!(self.controller.waiting_len(), self.waiting.len());
    }

    fn pace_now(&self) -> Option<f64> {
        self.controller.pace.as_ref().and_then(Pace::per_s)
    }

    fn ask(&mut self, request: Request) {
        let before = self.accounts();
        match self.controller.request(self.now, &request) {
            Decision::Admit(permit) => self.admitted(&request, permit),
            Decision::Queue(ticket) => {
                assert!(request.deadline() > self.now);
                assert!(self.waiting.insert(ticket, request).is_none());
            }
            Decision::Reject(_) => {
                self.refused += 1;
                assert_eq!(self.accounts(), before, "{request:?}");
            }
            Decision::Observed(..) => panic!("{request:?} was observed"),
        }
    }

    /// Tokens, work on its way, and turns, all as of now.
    fn accounts(&mut self) -> String {
        let pace = self.controller.pace.as_mut().unwrap();
        // Time passes for the tokens when they are looked at, and rates grow old first.
        pace.has_room(self.now, crate::pace::Cost::known(1.0));
        pace.has_room(self.now, crate::pace::Cost::known(1.0));
        format!("{pace:?} {:?}", self.controller.gates[&GATED].ring)
    }

    fn look(&mut self, lag: f64, behind: [u64; 2], counts: [bool; 2], tells: bool) {
        let mut governing = Vec::new();
        for (index, key) in [(0, 1), (1, 2)] {
            let newest = self.beats.saturating_sub(behind[index]);
            self.shown[index] = self.shown[index].max(newest);
            let shown = (self.shown[index] > 0 && !tells).then_some(self.shown[index]);
            if counts[index] {
                governing.push(Progress {
                    replica: ReplicaKey(key),
                    lag: Duration::from_secs_f64(lag),
                    threshold: None,
                    shown,
                    committed_at: None,
                    answered_at: self.now,
                    asked_at: self.now,
                    appliers: 1,
                });
            }
        }
        let reading = LagReading {
            value: Some(lag),
            at: self.now,
            slowest: None,
            threshold: None,
            governing,
        };
        self.controller.handle_lag(self.now, LAG, &reading);
    }

    fn complete(&mut self, which: usize, affected_rows: u64) {
        if self.permits.is_empty() {
            return;
        }
        let permit = self.permits.swap_remove(which % self.permits.len());
        let error = affected_rows == 0;
        if error {
            // It has written nothing: somebody else may.
            self.allowed += 1.0;
        }
        let outcome = Outcome { affected_rows, error, ..Outcome::default() };
        self.controller.complete(self.now, permit, outcome);
    }

    fn wake(&mut self, at: MonoTime) {
        if let Some(per_s) = self.per_s {
            let passed = at.saturating_since(self.now).as_secs_f64();
            let most = per_s * BURST.as_secs_f64() + 1.0;
            self.allowed = (self.allowed + per_s * passed).min(most);
        }
        self.now = at;
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
                Resolved::Admit(permit) => self.admitted(&request, permit),
                Resolved::Reject(refusal) => {
                    let shutdown = refusal.reason == Reason::Shutdown;
                    assert!(shutdown || request.deadline() <= self.now);
                }
                Resolved::DecideAgain => again.push(request),
            }
        }
        // They come back one by one: until all have, it is not known who is ahead of whom.
        for request in again {
            self.ask(request);
        }
    }

    fn admitted(&mut self, request: &Request, permit: Permit) {
        let timed_out = permit.reason() == Some(Reason::Timeout);
        self.permits.push(permit);
        if timed_out {
            assert!(request.deadline() <= self.now);
            return;
        }
        let older = |other: &&Request| {
            other.identity == request.identity && other.arrived < request.arrived
        };
        assert_eq!(self.waiting.values().find(older), None, "{request:?} has overtaken");
        self.released += 1;
        if let Some(per_s) = self.pace_now() {
            // A whole statement goes as long as anything is allowed, and what claims have saved
            // goes before its time: a tenth of a second of the pace, that of before or the one that
            // was found just now, and a row for each app.
            let saved = self.per_s.unwrap_or(0.0).max(per_s) * 0.1 + 8.0;
            assert!(self.allowed >= -saved, "{} more than the pace allows", -self.allowed);
            self.allowed -= 1.0;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn releases_keep_to_the_pace_in_order_and_refusals_cost_nothing(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut model = Model::new(seed);
        for step in steps {
            model.take(step);
        }
        model.take(Step::Shutdown);
        assert!(model.waiting.is_empty());
        while !model.permits.is_empty() {
            model.take(Step::Complete { which: 0, rows: 1 });
        }
        assert_eq!(model.controller.in_flight(), 0);
    }
}

/// The properties above hold of nothing if nothing ever happens.
#[test]
fn a_random_sequence_releases_at_the_pace_and_refuses() {
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let steps = prop::collection::vec(step(), 3_000).new_tree(&mut runner).unwrap().current();
    let mut model = Model::new(7);
    for step in steps.into_iter().filter(|step| !matches!(step, Step::Shutdown)) {
        model.take(step);
    }
    assert!(model.released > 100 && model.refused > 20, "{} {}", model.released, model.refused);
}
