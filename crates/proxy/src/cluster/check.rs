//! A check: the question of a client that writes around Sluice, or before it writes through it.
//!
//! The same identity, rules, dice and gate as a statement's; it never queues, and is answered from
//! memory. Only the first for a while waits for a moment: until signals that have hibernated are
//! measured again.

use std::sync::Arc;
use std::time::Duration;

use admission::{
    Answer, Inquiry, Mode, MonoTime, Passage, Purpose, Reason, Refusal, Request, SignalKey,
    SignalView,
};
use policy::identity::{SessionIdentity, named};
use policy::{
    Action, ClusterPolicy, Facts, PassReason, Rule, Shape, Signal, SignalKind, Verdict, app_key,
    decide, identity_key, refusal,
};
use sql::{Class, ClassSet};

use super::{Cluster, Gatekeeper};

/// Who asks, and what for.
#[derive(Debug, Clone, Copy)]
pub struct Check<'q> {
    /// The app, as the client named it; levels are separated by `:`.
    pub app: &'q [u8],
    /// What it is about to do.
    pub purpose: Purpose,
    /// Signals that must be healthy beside those of the rule's gate, unless the rule exempts.
    pub signals: &'q [SignalKey],
}

/// What a check is told.
#[derive(Debug, Clone)]
pub struct CheckAnswer {
    /// The policy that decided.
    pub policy: Arc<ClusterPolicy>,
    /// The rule that did, by its index.
    pub rule: Option<u32>,
    /// What it said.
    pub outcome: CheckOutcome,
    /// The cluster's signals, in the order of the policy.
    pub signals: Vec<SignalView>,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CheckOutcome {
    /// Go on: nobody had to be asked.
    Passed(PassReason),
    /// Go on: the dice were won, and the gate is open.
    Allowed,
    /// Go on: the rule only observes. What it would have said.
    Observed(Option<Reason>),
    /// Do not.
    Refused(Refusal),
    /// Do not, whatever the load: the rule denies.
    Denied,
    /// Do not: these bytes cannot name an app.
    Nameless,
}

impl CheckAnswer {
    /// The rule that decided.
    #[must_use]
    pub fn rule(&self) -> Option<&Rule> {
        self.policy.rule(self.rule?)
    }

    /// A signal, as it was when the check was made.
    #[must_use]
    pub fn signal(&self, key: SignalKey) -> Option<&SignalView> {
        self.signals.iter().find(|view| view.key == key)
    }
}

impl Cluster {
    /// The policy and the signals as they are, for somebody who is answered without being checked.
    pub fn look(&self) -> CheckAnswer {
        let policy = self.policy();
        let mut signals = Vec::with_capacity(policy.signals.len());
        let gatekeeper = self.gatekeeper.lock();
        let now = self.clock.now();
        let readings = policy.signals.iter();
        signals.extend(readings.filter_map(|read| gatekeeper.controller.signal(read.key, now)));
        drop(gatekeeper);
        let outcome = CheckOutcome::Passed(PassReason::NoRule);
        CheckAnswer { policy, rule: None, outcome, signals }
    }

    /// Answers a check. A check counts as a write, for that is what it is asked for.
    ///
    /// # Cancellation
    /// Safe.
    pub async fn check(self: &Arc<Self>, check: &Check<'_>) -> CheckAnswer {
        let until = self.now().saturating_add(AWAITS_MAX);
        loop {
            if let Some(answer) = self.answer(check, until) {
                return answer;
            }
            tokio::time::sleep(AWAITED_LOOK).await;
        }
    }

    /// None, until then, while a signal is awaited that it depends on.
    fn answer(self: &Arc<Self>, check: &Check<'_>, until: MonoTime) -> Option<CheckAnswer> {
        let policy = self.policy();
        let session = SessionIdentity::default();
        let identity = named(&policy.identity, &session, check.app);
        let verdict = identity.as_ref().map(|identity| {
            let facts = Facts {
                identity,
                session: &session,
                classes: ClassSet::from_iter([Class::Write]),
                exemption: None,
                // Nobody knows which tables it is about.
                shape: Shape::of_check(),
                now: self.rule_time(),
            };
            decide(&policy, &facts)
        });
        let rule = verdict.and_then(Verdict::rule);
        let needed = verdict.map_or_else(Vec::new, |verdict| needed(&policy, check, verdict));
        // Nothing is allocated under the lock.
        let mut signals = Vec::with_capacity(policy.signals.len());
        let mut gatekeeper = self.gatekeeper.lock();
        let now = self.clock.now();
        if !needed.is_empty() {
            gatekeeper.controller.wake(now);
            gatekeeper.wake_probes();
        }
        let readings = policy.signals.iter();
        signals.extend(readings.filter_map(|read| gatekeeper.controller.signal(read.key, now)));
        let awaited = |view: &SignalView| view.awaited && needed.contains(&view.key);
        if now < until && signals.iter().any(awaited) {
            return None;
        }
        let outcome = match verdict {
            None => CheckOutcome::Nameless,
            Some(verdict) => {
                let asked = Asked { policy: &policy, check, signals: &signals };
                gatekeeper.judge_check(now, asked, verdict)
            }
        };
        if let (CheckOutcome::Passed(why), true) = (outcome, gatekeeper.contended) {
            let passage =
                if why == PassReason::Exempt { Passage::Exempt } else { Passage::Ungated };
            gatekeeper.note_passed(now, passage, verdict.and_then(Verdict::rule), check.app);
        }
        self.note_contention(&mut gatekeeper);
        let wake_driver = gatekeeper.wakes_earlier();
        drop(gatekeeper);
        if wake_driver {
            self.driver.notify_one();
        }
        let outcome = match outcome {
            CheckOutcome::Refused(refusal) => {
                let now = self.rule_time();
                CheckOutcome::Refused(refusal::as_long_as_it_stands(rule, refusal, now))
            }
            others => others,
        };
        let rule = rule.map(|rule| rule.index);
        Some(CheckAnswer { policy, rule, outcome, signals })
    }
}

/// A check, and what it is judged by.
#[derive(Clone, Copy)]
struct Asked<'a> {
    policy: &'a ClusterPolicy,
    check: &'a Check<'a>,
    signals: &'a [SignalView],
}

impl Gatekeeper {
    fn judge_check(
        &mut self,
        now: MonoTime,
        asked: Asked<'_>,
        verdict: Verdict<'_>,
    ) -> CheckOutcome {
        let unhealthy = unhealthy(asked.check.signals, asked.signals);
        match (verdict, unhealthy) {
            (Verdict::Pass { why, .. }, None) => CheckOutcome::Passed(why),
            (Verdict::Pass { why: why @ PassReason::Exempt, .. }, Some(_)) => {
                CheckOutcome::Passed(why)
            }
            (Verdict::Deny(rule), _) => match rule.mode {
                Mode::Enforce => CheckOutcome::Denied,
                Mode::Observe => CheckOutcome::Observed(Some(Reason::Deny)),
            },
            (Verdict::Pass { .. }, Some(refusal)) => CheckOutcome::Refused(refusal),
            (Verdict::Ask(rule), _) => self.ask_for_check(now, asked, rule, unhealthy),
        }
    }

    fn ask_for_check(
        &mut self,
        now: MonoTime,
        Asked { policy, check, .. }: Asked<'_>,
        rule: &Rule,
        unhealthy: Option<Refusal>,
    ) -> CheckOutcome {
        let Action::Throttle { terms, gate, .. } = rule.action else {
            return CheckOutcome::Denied;
        };
        let request = Request {
            rule: rule.key,
            identity: identity_key(rule, check.app),
            app: app_key(rule, check.app),
            digest: None,
            written: None,
            // As a statement of it: what protects an app does not hold it back.
            gate: policy.gate_of(rule, gate, check.app),
            terms,
            arrived: now,
            since: now,
        };
        let stops = unhealthy.filter(|_| !terms.hold && !terms.ratio.is_certain());
        if let (Some(refusal), Mode::Enforce) = (stops, terms.mode) {
            return CheckOutcome::Refused(refusal);
        }
        let inquiry = Inquiry { request, purpose: check.purpose };
        let answer = self.controller.inquire(now, &inquiry);
        if self.controller.is_watching() {
            let Self { controller, names, .. } = self;
            match answer {
                Answer::Refused(_) => {
                    names.keep(controller, request.identity, request.app, check.app);
                }
                Answer::Allowed | Answer::Observed(_) if controller.is_anybody_blocked(now) => {
                    names.keep_app(controller, request.app, check.app);
                }
                Answer::Allowed | Answer::Observed(_) => {}
            }
        }
        match answer {
            Answer::Allowed => CheckOutcome::Allowed,
            Answer::Refused(refusal) => CheckOutcome::Refused(refusal),
            Answer::Observed(would_be) => {
                let would_be = would_be.or(stops);
                CheckOutcome::Observed(would_be.map(|refusal| refusal.reason))
            }
        }
    }
}

/// A check waits for a signal that has hibernated for so long at most: several round trips, and
/// less than clients wait for an answer. It looks as often as this.
const AWAITS_MAX: Duration = Duration::from_millis(500);
const AWAITED_LOOK: Duration = Duration::from_millis(10);

/// The signals that its answer depends on.
fn needed(policy: &ClusterPolicy, check: &Check<'_>, verdict: Verdict<'_>) -> Vec<SignalKey> {
    let (gate, named) = match verdict {
        Verdict::Deny(_) => return Vec::new(),
        Verdict::Pass { why: PassReason::Exempt, .. } => (None, &[][..]),
        Verdict::Pass { .. } => (None, check.signals),
        Verdict::Ask(rule) => match rule.action {
            Action::Throttle { terms, .. } if terms.hold || terms.ratio.is_certain() => {
                return Vec::new();
            }
            // It is told to go on, whatever they say.
            Action::Throttle { terms, .. } if terms.mode == Mode::Observe => (None, &[][..]),
            Action::Throttle { gate, .. } => {
                (Some(policy.gate_of(rule, gate, check.app)), check.signals)
            }
            Action::Exempt | Action::Deny => (None, check.signals),
        },
    };
    if check.purpose == Purpose::Read {
        let is_lag = |signal: &&Signal| matches!(signal.kind, SignalKind::Lag { .. });
        return policy.signals.iter().filter(is_lag).map(|signal| signal.key).collect();
    }
    let of_gate = gate.into_iter().flat_map(|gate| policy.gate_signals(gate));
    of_gate.map(|signal| signal.key).chain(named.iter().copied()).collect()
}

/// What one of the named signals says against it.
fn unhealthy(named: &[SignalKey], signals: &[SignalView]) -> Option<Refusal> {
    let of = |key: &SignalKey| signals.iter().find(|view| view.key == *key);
    let view = named.iter().filter_map(of).find(|view| !view.lets_through)?;
    Some(Refusal::by_signal(view))
}
