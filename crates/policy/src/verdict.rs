//! What the rules say to a statement.

use admission::Mode;
use sql::Exemption;

use crate::rule::{Action, Rule};

/// What the rules say to a statement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict<'p> {
    /// It may run.
    Pass {
        /// The rule that decided.
        rule: Option<&'p Rule>,
        /// Why it may.
        why: PassReason,
    },
    /// Admission must be asked.
    Ask(&'p Rule),
    /// It may not run.
    Deny(&'p Rule),
}

/// Why a statement passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PassReason {
    /// No rule matches.
    NoRule,
    /// The rule's `statements` do not name the class.
    NotCovered,
    /// The rule exempts.
    Exempt,
    /// The rule has no gate, no dice and no hold.
    Ungated,
    /// No rule can hold its class back.
    NotGateable,
    /// No rule can hold such a text back, whatever its class.
    NeverHeld(Exemption),
    /// Its transaction has been admitted.
    InTransaction,
    /// Its session keeps others from tables.
    HoldsTableLocks,
    /// Its transaction has worked already, and may hold locks of rows.
    HoldsRowLocks,
    /// Its session holds a user-level lock.
    HoldsNamedLock,
}

impl PassReason {
    /// The name in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoRule => "no_rule",
            Self::NotCovered => "not_covered",
            Self::Exempt => "exempt",
            Self::Ungated => "ungated",
            Self::NotGateable => "not_gateable",
            Self::NeverHeld(_) => "never_held",
            Self::InTransaction => "in_transaction",
            Self::HoldsTableLocks => "holds_table_locks",
            Self::HoldsRowLocks => "holds_row_locks",
            Self::HoldsNamedLock => "holds_named_lock",
        }
    }
}

/// What a session has that keeps its statements from being held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Cover {
    /// The rules' verdict is carried out.
    #[default]
    Nothing,
    /// A transaction that was admitted, by an admission that speaks for this statement: whoever
    /// delays it prolongs its locks.
    Transaction,
    /// LOCK TABLES, FLUSH TABLES … WITH READ LOCK, LOCK INSTANCE FOR BACKUP or BACKUP STAGE.
    TableLocks,
    /// A transaction in which something has worked that nobody was asked for: it may hold locks, and
    /// no rule has let it do what another rule denies or holds.
    Worked,
    /// Perhaps locks of rows, by what no rule has let pass: rules are carried out, and budgets let go
    /// on who may keep others from giving them back.
    MayHoldRows,
    /// A lock of GET_LOCK, which says nothing of tables: `deny` and `hold` reach the session all
    /// the same.
    NamedLock,
}

impl<'p> Verdict<'p> {
    /// The rule that decided.
    #[must_use]
    pub fn rule(self) -> Option<&'p Rule> {
        match self {
            Self::Pass { rule, .. } => rule,
            Self::Ask(rule) | Self::Deny(rule) => Some(rule),
        }
    }

    /// What becomes of the verdict in a session with this cover.
    #[must_use]
    pub fn under(self, cover: Cover) -> Self {
        let why = match (self, cover) {
            (Self::Pass { .. }, _) | (_, Cover::Nothing | Cover::MayHoldRows) => return self,
            (Self::Deny(_), Cover::NamedLock | Cover::Worked) => return self,
            (Self::Ask(rule), Cover::NamedLock | Cover::Worked) if holds(rule) => return self,
            (Self::Ask(_), Cover::NamedLock) => PassReason::HoldsNamedLock,
            (Self::Ask(_), Cover::Worked) => PassReason::HoldsRowLocks,
            (Self::Ask(_) | Self::Deny(_), Cover::Transaction) => PassReason::InTransaction,
            (Self::Ask(_) | Self::Deny(_), Cover::TableLocks) => PassReason::HoldsTableLocks,
        };
        Self::Pass { rule: self.rule(), why }
    }

    /// Orders the verdicts of one text's classes: what is carried out is above what is only
    /// observed, for otherwise a statement that some rule observes would carry another past the
    /// rule that holds it.
    pub(crate) fn severity(self) -> (Carried, Severity) {
        let severity = match self {
            Self::Pass { .. } => return (Carried::No, Severity::Pass),
            Self::Ask(rule) if holds(rule) => Severity::Hold,
            Self::Ask(_) => Severity::Ask,
            Self::Deny(_) => Severity::Deny,
        };
        let carried = match self.rule().map(|rule| rule.mode) {
            Some(Mode::Enforce) => Carried::Out,
            Some(Mode::Observe) | None => Carried::No,
        };
        (carried, severity)
    }
}

/// Whether a verdict is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carried {
    No,
    Out,
}

/// How much a verdict keeps back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    Pass,
    Ask,
    Hold,
    Deny,
}

fn holds(rule: &Rule) -> bool {
    match rule.action {
        Action::Throttle { terms, .. } => terms.hold,
        Action::Exempt | Action::Deny => false,
    }
}
