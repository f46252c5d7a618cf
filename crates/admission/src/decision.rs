//! What the controller decides.

use std::time::Duration;

use crate::budget::BudgetHold;
use crate::in_flight::Place;
use crate::pace::Charge;
use crate::request::Lane;
use crate::ring::LineKey;
use crate::row_work::Price;
use crate::{
    BudgetKey, DigestKey, GateKey, MonoTime, Reason, RuleLimit, SignalKey, SignalState, SignalView,
    Written,
};

/// What becomes of a request.
#[derive(Debug)]
#[must_use]
pub enum Decision {
    /// Forward the statement now.
    Admit(Permit),
    /// The statement waits; [`crate::Controller::poll_resolution`] will name the ticket once.
    Queue(Ticket),
    /// Answer the statement with an error.
    Reject(Refusal),
    /// The rule only observes: forward the statement now. What would have stood in its way, if
    /// anything: it would have been delayed or refused.
    Observed(Permit, Option<Refusal>),
}

/// The right to run one statement. It is spent exactly once, by [`crate::Controller::complete`].
#[derive(Debug)]
#[must_use = "a permit that is not completed counts as in flight for ever"]
pub struct Permit {
    waited: Duration,
    reason: Option<Reason>,
    /// `None`: no rule was asked, only budgets were.
    pub(crate) account: Option<Account>,
    /// What it has taken from its budgets. Boxed: most have taken nothing.
    pub(crate) hold: Option<Box<BudgetHold>>,
}

/// What a permit was charged, and where.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) gate: GateKey,
    pub(crate) lane: Lane,
    pub(crate) weight: u32,
    /// Where its identity was charged.
    pub(crate) line: Option<LineKey>,
    pub(crate) digest: Option<DigestKey>,
    /// Whether nobody knew it, and it is noted that it runs.
    pub(crate) is_new: bool,
    /// What the statement was expected to write.
    pub(crate) expected: f64,
    pub(crate) written: Option<Written>,
    /// What it counts as at the pace and among its rivals.
    pub(crate) price: Price,
    /// What it was charged beforehand, in rows of the mean.
    pub(crate) cost: f64,
    /// Whether its rule's rates count it.
    pub(crate) counted: bool,
    /// What its rule's rates were told of beyond that, while it ran.
    pub(crate) charged_more: f64,
    /// What it was put down for against the shares of all who contended, a row or more; 0: nobody
    /// did.
    pub(crate) shared: f64,
    /// At a gate that is paced: its part of the work on its way.
    pub(crate) charge: Option<Charge>,
    /// At a gate that limits the statements in flight: its place.
    pub(crate) place: Option<Place>,
}

impl Permit {
    pub(crate) const fn new(waited: Duration, reason: Option<Reason>, account: Account) -> Self {
        Self { waited, reason, account: Some(account), hold: None }
    }

    pub(crate) const fn without_account(waited: Duration) -> Self {
        Self { waited, reason: None, account: None, hold: None }
    }

    /// What the statement has taken from its budgets, to be given back when its answer is over,
    /// which may be before the permit is spent: a transaction has several statements. Left here, it
    /// goes back with the permit as if the statement had not been sent.
    pub fn take_hold(&mut self) -> Option<BudgetHold> {
        self.hold.take().map(|hold| *hold)
    }

    /// Whether a rule gave it: without, there is nothing to be completed.
    #[must_use]
    pub const fn is_of_rule(&self) -> bool {
        self.account.is_some()
    }

    /// How long the statement waited, from its first arrival.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.waited
    }

    /// Why it was admitted although no check was won: [`Reason::Timeout`] under `on_timeout:
    /// admit`.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }
}

/// The handle of a waiter: it names the waiter's resolution, and cancels it. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(crate) u64);

impl Ticket {
    /// The number, for maps and logs of the shell.
    #[must_use]
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Why a statement may not run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusal {
    /// What refused it; after a wait, what last kept it waiting.
    pub reason: Reason,
    /// The signal behind [`Reason::GateClosed`] and [`Reason::NoData`]; behind [`Reason::Paced`]
    /// that whose pace had no room, if it was a signal's.
    pub cause: Option<Cause>,
    /// The budget behind [`Reason::BudgetConcurrency`] and its like.
    pub budget: Option<BudgetKey>,
    /// What of its own rule is behind [`Reason::Paced`], if it was that.
    pub limit: Option<RuleLimit>,
    /// How long the statement waited, from its first arrival.
    pub waited: Duration,
    /// When a retry has a fair chance: an estimate, spread so that clients do not return together.
    pub retry_after: Duration,
}

impl Refusal {
    /// What a signal says that does not let through, to somebody who asked for it by name.
    #[must_use]
    pub fn by_signal(signal: &SignalView) -> Self {
        let SignalView { key, value, threshold, state, .. } = *signal;
        let reason = match state {
            SignalState::Open | SignalState::Closed => Reason::GateClosed,
            SignalState::NoData { .. } => Reason::NoData,
        };
        let cause = Some(Cause { signal: key, value, threshold });
        let retry_after = Duration::from_secs(1);
        Self { reason, cause, budget: None, limit: None, waited: Duration::ZERO, retry_after }
    }
}

/// The signal that shut a gate, or whose pace has no room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cause {
    /// Which one. Of a gate that is shut, the first that is not healthy, in the gate's order.
    pub signal: SignalKey,
    /// Its last value, however old; `None` if it never had one.
    pub value: Option<f64>,
    /// The threshold it is held against.
    pub threshold: f64,
}

/// What has become of one waiter. Each ticket is resolved at most once; a cancelled one never.
#[derive(Debug)]
#[must_use]
pub struct Resolution {
    /// Whose.
    pub ticket: Ticket,
    /// What.
    pub outcome: Resolved,
}

/// What has become of a waiter.
#[derive(Debug)]
pub enum Resolved {
    /// Forward the statement.
    Admit(Permit),
    /// Answer it with an error.
    Reject(Refusal),
    /// The rules have changed: match the statement again and ask again, with the same `arrived`.
    DecideAgain,
}

/// How an admitted statement ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rows changed, as the server's OK packet says.
    pub affected_rows: u64,
    /// Time the server took.
    pub server_time: Duration,
    /// Of that, for statements that only read: nothing of it reaches a replica.
    pub reading: Duration,
    /// Whether the server answered with an error, or not at all.
    pub error: bool,
}

/// Statements admitted and not completed, and the work that completed ones have done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Permits given and not completed.
    pub in_flight: u64,
    /// Permits completed.
    pub completed: u64,
    /// Those that ended in an error.
    pub errors: u64,
    /// Rows changed.
    pub affected_rows: u64,
    /// Server time used.
    pub server_time: Duration,
}

/// Waiters of one rule and identity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// The rule.
    pub rule: crate::RuleKey,
    /// The identity.
    pub identity: crate::IdentityKey,
    /// How many wait.
    pub depth: usize,
    /// When the oldest first arrived.
    pub oldest: MonoTime,
    /// Why the oldest waits.
    pub reason: Reason,
    /// The signal behind that.
    pub cause: Option<Cause>,
    /// The budget that has no room for it, if it waits for one.
    pub budget: Option<BudgetKey>,
    /// What of its own rule is behind that.
    pub limit: Option<RuleLimit>,
}

/// One waiter, for people.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WaitingStatement {
    /// Its handle. None: it is not in the queue, but pauses before it asks.
    pub ticket: Option<Ticket>,
    /// The rule.
    pub rule: crate::RuleKey,
    /// The identity.
    pub identity: crate::IdentityKey,
    /// When it first arrived.
    pub arrived: MonoTime,
    /// When its longest wait has passed.
    pub deadline: MonoTime,
    /// Why it waits.
    pub reason: Reason,
    /// The signal behind that.
    pub cause: Option<Cause>,
    /// The budget that has no room for it, if it waits for one.
    pub budget: Option<crate::BudgetKey>,
    /// What of its own rule is behind that, if it waits in the rule's own line.
    pub limit: Option<RuleLimit>,
}
