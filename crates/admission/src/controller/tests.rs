//! A controller on a virtual clock, and what it does there.
#![expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]

mod arrival;
mod asking;
mod budgets;
mod contention;
mod deadlines;
mod fairness;
mod hibernation;
mod paced;
mod places;
mod protect;
mod random;
mod rates;
mod reload;
mod signals;
mod slow_starts;
mod small_apps;
mod starving;

use super::*;
use crate::{
    AppKey, BinaryPacing, GateConfig, IdentityKey, OnRefusedCheck, OnTimeout, Ratio, Refusal,
    RuleKey, SignalConfig, Terms, Waiting, WaitingStatement,
};

const LAG: SignalKey = SignalKey(1);
const THREADS: SignalKey = SignalKey(2);
/// No signals.
const FREE: GateKey = GateKey(0);
/// The lag.
const GATED: GateKey = GateKey(1);
/// The lag, then the threads.
const DOUBLE: GateKey = GateKey(2);

const ETL: IdentityKey = IdentityKey(9);
const DDL: IdentityKey = IdentityKey(1);

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Lag over 1 s shuts the gate, threads over 100; both without a word for an hour.
fn config() -> ControllerConfig {
    let hour = Duration::from_secs(3_600);
    let signal = |key, threshold| SignalConfig {
        stale_after: hour,
        ..SignalConfig::at_threshold(key, threshold)
    };
    ControllerConfig {
        signals: vec![signal(LAG, 1.0), signal(THREADS, 100.0)],
        gates: vec![
            GateConfig { key: FREE, signals: vec![] },
            GateConfig { key: GATED, signals: vec![LAG] },
            GateConfig { key: DOUBLE, signals: vec![LAG, THREADS] },
        ],
        ..ControllerConfig::default()
    }
}

fn with_ratio(ratio: f64) -> Terms {
    Terms { ratio: Ratio::new(ratio).expect("a ratio"), ..Terms::default() }
}

fn rejecting(ratio: f64) -> Terms {
    Terms { on_refused_check: OnRefusedCheck::Reject, ..with_ratio(ratio) }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Admitted { waited: Duration, reason: Option<Reason> },
    Rejected(Refusal),
    DecideAgain,
}

impl Controller {
    /// Who waits and why, per rule and identity.
    fn waiting(&self) -> impl Iterator<Item = Waiting> + use<> {
        Waiting::groups(self.waiters_after(None)).into_iter()
    }
}

/// A controller, its clock, and what it has resolved. Permits are completed as they come.
struct Lab {
    controller: Controller,
    now: MonoTime,
    ends: Vec<(MonoTime, Ticket, End)>,
    /// Rows that each of them has changed when it ends.
    rows_each: u64,
    /// Those of whom it is something else.
    rows_of: BTreeMap<Ticket, u64>,
}

impl Lab {
    fn new(config: ControllerConfig) -> Self {
        Self::seeded(config, 42)
    }

    fn seeded(config: ControllerConfig, seed: u64) -> Self {
        let now = MonoTime::from_nanos(1_000_000_000);
        let controller = Controller::new(config, seed, now);
        Self { controller, now, ends: Vec::new(), rows_each: 0, rows_of: BTreeMap::new() }
    }

    /// With lag and threads healthy.
    fn healthy() -> Self {
        let mut lab = Self::new(config());
        lab.lag(0.0);
        lab.sample(THREADS, 5.0);
        lab
    }

    /// With the lag over its threshold.
    fn lagging() -> Self {
        let mut lab = Self::new(config());
        lab.lag(7.0);
        lab
    }

    fn sample(&mut self, key: SignalKey, value: f64) {
        self.controller.handle_sample(self.now, key, Sample::Value(value));
        self.collect();
    }

    fn lag(&mut self, value: f64) {
        self.sample(LAG, value);
    }

    fn request(&self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Request {
        Request {
            rule: RuleKey(identity.0),
            identity,
            app: AppKey(identity.0),
            digest: None,
            written: None,
            gate,
            terms,
            arrived: self.now,
            since: self.now,
        }
    }

    fn ask(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Decision {
        let request = self.request(gate, identity, terms);
        self.controller.request(self.now, &request)
    }

    fn queued(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Ticket {
        match self.ask(gate, identity, terms) {
            Decision::Queue(ticket) => ticket,
            other => panic!("expected to queue, got {other:?}"),
        }
    }

    fn admitted(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) {
        match self.ask(gate, identity, terms) {
            Decision::Admit(permit) => {
                self.controller.complete(self.now, permit, Outcome::default());
            }
            other => panic!("expected to be admitted, got {other:?}"),
        }
    }

    fn refused(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Refusal {
        match self.ask(gate, identity, terms) {
            Decision::Reject(refusal) => refusal,
            other => panic!("expected to be refused, got {other:?}"),
        }
    }

    fn observed(&mut self, gate: GateKey, identity: IdentityKey, terms: Terms) -> Option<Refusal> {
        match self.ask(gate, identity, Terms { mode: Mode::Observe, ..terms }) {
            Decision::Observed(permit, refusal) => {
                self.controller.complete(self.now, permit, Outcome::default());
                refusal
            }
            other => panic!("expected to be observed, got {other:?}"),
        }
    }

    /// Lets time pass, and wakes the controller exactly when it wants to be woken.
    fn run(&mut self, time: Duration) {
        let end = self.now.saturating_add(time);
        while let Some(wake) = self.controller.poll_timeout().filter(|&wake| wake <= end) {
            self.now = self.now.max(wake);
            self.controller.handle_time(self.now);
            self.collect();
            let next = self.controller.poll_timeout();
            assert!(next.is_none_or(|next| next > self.now), "busy loop at {:?}", self.now);
        }
        self.now = end;
    }

    fn collect(&mut self) {
        while let Some(Resolution { ticket, outcome }) = self.controller.poll_resolution(self.now) {
            let end = match outcome {
                Resolved::Admit(permit) => {
                    let end = End::Admitted { waited: permit.waited(), reason: permit.reason() };
                    let affected_rows = self.rows_of.remove(&ticket).unwrap_or(self.rows_each);
                    let outcome = Outcome { affected_rows, ..Outcome::default() };
                    self.controller.complete(self.now, permit, outcome);
                    end
                }
                Resolved::Reject(refusal) => End::Rejected(refusal),
                Resolved::DecideAgain => End::DecideAgain,
            };
            self.ends.push((self.now, ticket, end));
        }
    }

    /// What has ended since the last call, in order.
    fn ends(&mut self) -> Vec<(Ticket, End)> {
        self.ends.drain(..).map(|(_, ticket, end)| (ticket, end)).collect()
    }

    /// Who has been admitted since the last call, in order; nobody may have ended otherwise.
    fn winners(&mut self) -> Vec<Ticket> {
        let ends = self.ends();
        assert!(ends.iter().all(|(_, end)| matches!(end, End::Admitted { .. })), "{ends:?}");
        ends.into_iter().map(|(ticket, _)| ticket).collect()
    }

    /// The one refusal since the last call.
    fn only_refusal(&mut self) -> Refusal {
        match self.ends()[..] {
            [(_, End::Rejected(refusal))] => refusal,
            ref other => panic!("expected one refusal, got {other:?}"),
        }
    }

    /// Passed and lost checks of an identity since the last call.
    fn checks(&mut self, of: IdentityKey) -> (u64, u64) {
        let mut found = (0, 0);
        self.controller.drain_checks(|count| {
            if count.app == Some(AppKey(of.0)) {
                found = (count.passed, count.lost);
            }
        });
        found
    }
}
