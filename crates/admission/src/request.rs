//! How one statement asks.

use std::time::Duration;

use crate::{MonoTime, Ratio, Written};

/// A rule, as a number that only the policy can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleKey(pub u64);

/// Who asks, as a number that only the policy can read. Statements with the same key share one
/// line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdentityKey(pub u64);

/// A group of identities that share one turn: the app without the levels that clients number.
/// Identities of one app take turns within its turn, so that nobody wins by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppKey(pub u64);

/// Whose lane it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) rule: RuleKey,
    pub(crate) app: AppKey,
    pub(crate) identity: IdentityKey,
}

/// The shape of a statement, as a number that only the policy can read: what it costs is predicted
/// by what statements of the same shape cost before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DigestKey(pub u64);

/// A distinct set of signals. Rules with the same set share one key, and so one fair queue.
///
/// A key must keep its meaning over reloads, or not be used again: a statement may still ask with
/// the policy it started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GateKey(pub u32);

/// One statement's question. Everything the matched rule says about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// The rule that matched.
    pub rule: RuleKey,
    /// Who asks.
    pub identity: IdentityKey,
    /// The identity's app.
    pub app: AppKey,
    /// The statement's shape, a bulk's with its size; `None` if it has none that can be told.
    pub digest: Option<DigestKey>,
    /// What it writes, if that is known and what its rows cost is to be learned.
    pub written: Option<Written>,
    /// The signals that must be healthy.
    pub gate: GateKey,
    /// What the rule says.
    pub terms: Terms,
    /// When the statement first arrived. A statement that is decided again after a reload keeps it:
    /// its deadline is `arrived + terms.max_delay`.
    pub arrived: MonoTime,
    /// Its place in line goes by this. Earlier than it arrived where it was refused before and came
    /// back as it was told ([`crate::Appointment`]).
    pub since: MonoTime,
}

impl Request {
    pub(crate) fn lane(&self) -> Lane {
        Lane { rule: self.rule, app: self.app, identity: self.identity }
    }

    /// When the longest wait has passed.
    #[must_use]
    pub fn deadline(&self) -> MonoTime {
        self.arrived.saturating_add(self.terms.max_delay)
    }
}

/// What a rule says about the statements it matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Probability that one check is refused.
    pub ratio: Ratio,
    /// The rule's part of the checks at a contended gate, 1 to [`Terms::WEIGHT_MAX`]; clamped. The
    /// apps under the rule share it.
    pub weight: u32,
    /// Longest wait in the queue, from first arrival.
    pub max_delay: Duration,
    /// What a refused check means.
    pub on_refused_check: OnRefusedCheck,
    /// What happens when `max_delay` has passed.
    pub on_timeout: OnTimeout,
    /// Most waiters of this rule; one more is refused at once.
    pub queue_len_max: u32,
    /// Nothing is admitted until the rule is lifted. Stronger than `on_timeout: admit`.
    pub hold: bool,
    /// Whether the decision is carried out.
    pub mode: Mode,
    /// Rows a second that pass while the gate is open, whatever the pace. `None`: none for certain.
    pub min_rate: Option<u32>,
    /// Rows a second at most. `None`: as many as come.
    pub max_rate: Option<u32>,
    /// Statements in flight at most, until the server has really finished them. `None`: as many as
    /// come.
    pub max_in_flight: Option<u32>,
}

impl Terms {
    /// Most checks in one turn: a larger share would make everybody else's turn wait for a second
    /// at the default pace.
    pub const WEIGHT_MAX: u32 = 1_000;
}

impl Default for Terms {
    /// The defaults of the manual: no dice, wait for up to 5 s, then be refused.
    fn default() -> Self {
        Self {
            ratio: Ratio::ZERO,
            weight: 1,
            max_delay: Duration::from_secs(5),
            on_refused_check: OnRefusedCheck::Delay,
            on_timeout: OnTimeout::Reject,
            queue_len_max: 1_000,
            hold: false,
            mode: Mode::Enforce,
            min_rate: None,
            max_rate: None,
            max_in_flight: None,
        }
    }
}

/// What a refused check means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnRefusedCheck {
    /// The statement waits and is checked again.
    Delay,
    /// The statement is refused at once.
    Reject,
}

/// What happens to a statement whose longest wait has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnTimeout {
    /// It is refused.
    Reject,
    /// It is admitted, with [`crate::Reason::Timeout`].
    Admit,
}

/// Whether decisions are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Decide and act.
    Enforce,
    /// Decide and count, change nothing.
    Observe,
}
