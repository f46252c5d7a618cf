//! A rule as it is in force.

use std::sync::Arc;
use std::time::Duration;

use admission::{AppKey, GateKey, IdentityKey, Mode, RuleKey, Speed, Terms};
use sql::{Class, ClassSet};

use crate::condition::Condition;
use crate::facts::Facts;
use crate::runaway::Runaway;
use crate::schedule::Schedule;
use crate::shape::Caution;
use crate::time::UnixTime;
use crate::{fnv, label};

/// One rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name: the `rule` label.
    pub name: Arc<str>,
    /// Made from the name: the same over reloads.
    pub key: RuleKey,
    /// Names it in its policy: a rule of the file by its place there.
    pub index: u32,
    /// Whom and what it matches.
    pub condition: Arc<Condition>,
    /// The classes that it can delay or refuse.
    pub statements: ClassSet,
    /// What happens to a match.
    pub action: Action,
    /// Who names its gate.
    pub gate_from: GateFrom,
    /// The part of its own speed at which a session goes; full unless the rule throttles.
    pub speed: Speed,
    /// Whether that is carried out.
    pub mode: Mode,
    /// What a refused client is told.
    pub error: RefusalProfile,
    /// Whether the dice are scaled by the priority that a statement names.
    pub honour_priority: bool,
    /// When it is in force. `None`: always.
    pub schedule: Option<Arc<Schedule>>,
    /// What becomes of a running statement whose client has left.
    pub on_client_gone: OnClientGone,
    /// What its statements may take at the server.
    pub runaway: Option<Runaway>,
    /// From this second on the rule is gone. `None`: it is permanent.
    pub expires_at: Option<UnixTime>,
    /// Whether an exempt rule may be permanent.
    pub essential: bool,
    /// Who made it while Sluice runs. `None`: it is the file's.
    pub author: Option<Arc<str>>,
    /// Why it exists, for people.
    pub reason: String,
}

/// Whether a rule decides anything at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It does.
    InForce,
    /// It is gone.
    Expired,
    /// Its schedule says that it does not now.
    OffSchedule,
}

impl Standing {
    /// The words for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InForce => "in force",
            Self::Expired => "expired",
            Self::OffSchedule => "not in force (schedule)",
        }
    }
}

/// What happens to statements that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action {
    /// They ask for admission.
    Throttle {
        /// On these terms.
        terms: Terms,
        /// At this gate.
        gate: GateKey,
        /// Whether there is anything to ask: a signal, dice, a pause, or a hold.
        gated: Gated,
    },
    /// They pass.
    Exempt,
    /// They are refused, whatever the load.
    Deny,
}

/// What becomes of a statement that the server runs, without an admission that waits for its end,
/// when its client has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum OnClientGone {
    /// The server's connection is closed: the server notices when it next looks, as it would
    /// without Sluice.
    #[default]
    Close,
    /// KILL QUERY over the probe's account, then the connection is closed.
    Kill,
    /// The statement ends on its own, then the connection is closed.
    Finish,
}

/// Who names the gate of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateFrom {
    /// It does itself.
    Rule,
    /// It is the cluster's default.
    Cluster,
}

/// Whether a throttling rule has anything to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gated {
    /// A signal, dice, a pause, a limit of its own, or a hold may stand in the way.
    Yes,
    /// `gate: none`, ratio 0, full speed, no hold, no limit of its own: everything passes.
    No,
}

/// The error of a refused statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalProfile {
    /// The error code.
    pub errno: u16,
    /// The SQLSTATE.
    pub sqlstate: [u8; 5],
    /// What the message begins with.
    pub prefix: String,
}

impl Rule {
    /// Whether the rule is about this statement, taken for one of this class; in force or not.
    #[must_use]
    pub fn is_about(&self, facts: &Facts<'_>, class: Class) -> bool {
        // What it does not cover it lets pass. What denies writes to some tables denies nobody who asks
        // whether to write at all.
        let is_of_others = facts.shape.is_of_check() && matches!(self.action, Action::Deny);
        let caution = if self.statements.contains(class) && !is_of_others {
            self.caution()
        } else {
            Caution::Loosens
        };
        self.condition.matches(facts, class, caution)
    }

    /// Whether what it delays never passes as long as it stands.
    #[must_use]
    pub fn lets_nothing_through(&self) -> bool {
        match self.action {
            Action::Throttle { terms, .. } => terms.hold || terms.ratio.is_certain(),
            Action::Exempt | Action::Deny => false,
        }
    }

    /// The names of the classes that it can delay or refuse.
    pub fn classes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let covered = self.statements;
        Class::ALL.into_iter().filter(move |class| covered.contains(*class)).map(Class::as_str)
    }

    /// What the rule does with a statement of which something is not known, if it covers its class.
    pub(crate) fn caution(&self) -> Caution {
        match self.action {
            Action::Exempt | Action::Throttle { gated: Gated::No, .. } => Caution::Loosens,
            Action::Throttle { gated: Gated::Yes, .. } | Action::Deny => Caution::Holds,
        }
    }

    /// What to expect of a session, for people. None: nothing slows it but the gate and the dice.
    #[must_use]
    pub fn speed_to_expect(&self) -> Option<String> {
        let Self { speed, .. } = self;
        (!speed.is_full()).then(|| format!("runs at {speed} of its own speed"))
    }

    /// What the rule caps by itself, whatever its gate says, for people. None: nothing.
    #[must_use]
    pub fn caps_to_expect(&self) -> Option<String> {
        let Action::Throttle { terms, .. } = self.action else { return None };
        let rate = terms.max_rate.map(|rows| format!("at most {rows} rows/s"));
        let at_once = terms.max_in_flight.map(|most| format!("at most {most} at once"));
        joined([rate, at_once])
    }

    /// What passes for certain while its gate is open, for people. None: nothing does.
    #[must_use]
    pub fn floor_to_expect(&self) -> Option<String> {
        let Action::Throttle { terms, .. } = self.action else { return None };
        terms.min_rate.map(|rows| format!("at least {rows} rows/s"))
    }

    /// Its floor and its caps. None: it has neither.
    #[must_use]
    pub fn limits_to_expect(&self) -> Option<String> {
        joined([self.floor_to_expect(), self.caps_to_expect()])
    }

    /// Whether the rule decides anything.
    #[must_use]
    pub fn standing(&self, now: UnixTime) -> Standing {
        let scheduled = |schedule: &Arc<Schedule>| schedule.is_in_force(now);
        if self.is_expired(now) {
            Standing::Expired
        } else if self.schedule.as_ref().is_none_or(scheduled) {
            Standing::InForce
        } else {
            Standing::OffSchedule
        }
    }

    /// For how long whoever is refused for as long as it is in force is to stay away: until it ends, and
    /// for a minute at most, for it may be lifted at any time.
    #[must_use]
    pub fn stands_for(&self, now: UnixTime) -> Duration {
        let mut ends = (1..STAY_AWAY_MAX).map(Duration::from_secs);
        let is_over = |after: &Duration| {
            let then = now.0.saturating_add(i64::try_from(after.as_secs()).unwrap_or(i64::MAX));
            self.standing(UnixTime(then)) != Standing::InForce
        };
        ends.find(is_over).unwrap_or(Duration::from_secs(STAY_AWAY_MAX))
    }

    /// Whether the rule is gone.
    #[must_use]
    pub fn is_expired(&self, now: UnixTime) -> bool {
        self.expires_at.is_some_and(|expiry| expiry <= now)
    }
}

/// The longest that is told of a rule that lets nothing through, in seconds.
const STAY_AWAY_MAX: u64 = 60;

impl RefusalProfile {
    /// `retryable`: `ER_LOCK_WAIT_TIMEOUT`. Drivers, ORMs and tools that retry do so.
    #[must_use]
    pub fn retryable() -> Self {
        Self::new(1205, *b"HY000", LOCK_WAIT_TIMEOUT)
    }

    /// `retryable_40001`: the same for those that look at the SQLSTATE only.
    #[must_use]
    pub fn retryable_40001() -> Self {
        Self::new(1205, *b"40001", LOCK_WAIT_TIMEOUT)
    }

    /// `quota`: `ER_USER_LIMIT_REACHED`. Retrying is useless.
    #[must_use]
    pub fn quota() -> Self {
        Self::new(1226, *b"42000", "User has exceeded the 'sluice' resource")
    }

    /// `vitess`: `ER_OUT_OF_RESOURCES`, as its transaction throttler answers.
    #[must_use]
    pub fn vitess() -> Self {
        Self::new(1041, *b"HY000", "Transaction throttled")
    }

    fn new(errno: u16, sqlstate: [u8; 5], prefix: &str) -> Self {
        Self { errno, sqlstate, prefix: prefix.to_owned() }
    }
}

/// The server's own text: tools look for it.
const LOCK_WAIT_TIMEOUT: &str = "Lock wait timeout exceeded; try restarting transaction";

/// The key of a rule of this name: it outlives reloads, and processes.
#[must_use]
pub fn rule_key(name: &str) -> RuleKey {
    RuleKey(fnv::hash(&[name.as_bytes()]))
}

/// Who asks, as admission sees it: the rule and every level of the app. Identities of one app take
/// turns within their app's turn.
#[must_use]
pub fn identity_key(rule: &Rule, app: &[u8]) -> IdentityKey {
    let levels = app.split(|byte| *byte == b':').filter(|level| !level.is_empty());
    IdentityKey(levels_key(rule, levels))
}

/// The app as admission sees it: the rule and the levels that name something. Levels that are
/// UUID-like or numeric do not count: anybody may make them up, and a turn of its own for each
/// would be a larger share for whoever does.
#[must_use]
pub fn app_key(rule: &Rule, app: &[u8]) -> AppKey {
    AppKey(levels_key(rule, label::named_levels(app)))
}

/// The app of a statement that no rule matched.
#[must_use]
pub fn ruleless_app_key(app: &[u8]) -> AppKey {
    AppKey(fold_levels(0, label::named_levels(app)))
}

fn levels_key<'a>(rule: &Rule, levels: impl Iterator<Item = &'a [u8]>) -> u64 {
    fold_levels(rule.key.0, levels)
}

fn fold_levels<'a>(from: u64, levels: impl Iterator<Item = &'a [u8]>) -> u64 {
    levels.fold(from, |key, level| fnv::hash(&[&key.to_le_bytes(), level]))
}

fn joined(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
