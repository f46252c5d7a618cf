//! Why a statement was delayed or refused.

use std::fmt;

/// What a rule limits by itself. Behind [`Reason::Paced`] it says what to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleLimit {
    /// Its rows a second.
    MaxRate,
    /// Its statements at the server.
    MaxInFlight,
    /// The speed of a session.
    Speed,
}

impl RuleLimit {
    /// The key of the rule.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxRate => "max_rate",
            Self::MaxInFlight => "max_in_flight",
            Self::Speed => "speed",
        }
    }
}

/// The closed list of reasons: the same in errors, metrics, logs and the API, all from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The dice of the rule's ratio lost.
    Ratio,
    /// A signal of the gate is at or above its threshold.
    GateClosed,
    /// A signal of the gate has no usable value.
    NoData,
    /// The gate is open, but others wait, and releases come at a limited rate.
    Paced,
    /// The rule holds everything until it is lifted.
    Hold,
    /// The rule denies, as a policy.
    Deny,
    /// A guard rail: the text may not do what it does.
    Guard,
    /// A statement like it ran away lately.
    Quarantined,
    /// A budget has no place left for another statement at the server.
    BudgetConcurrency,
    /// A budget's statements or rows a second are used up.
    BudgetRate,
    /// A budget's share of the server is used up.
    BudgetShare,
    /// The statement is expected to cost more than a budget allows one of them.
    BudgetQuery,
    /// Too many statements wait already.
    QueueFull,
    /// The longest wait has passed.
    Timeout,
    /// Sluice is shutting down.
    Shutdown,
}

impl Reason {
    /// Every reason, in the order of the manual.
    pub const ALL: [Self; 15] = [
        Self::Ratio,
        Self::GateClosed,
        Self::NoData,
        Self::Paced,
        Self::Hold,
        Self::Deny,
        Self::Guard,
        Self::Quarantined,
        Self::BudgetConcurrency,
        Self::BudgetRate,
        Self::BudgetShare,
        Self::BudgetQuery,
        Self::QueueFull,
        Self::Timeout,
        Self::Shutdown,
    ];

    /// The stable name: metric label, log field, error text, API field.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::GateClosed => "gate_closed",
            Self::NoData => "no_data",
            Self::Paced => "paced",
            Self::Hold => "hold",
            Self::Deny => "deny",
            Self::Guard => "guard",
            Self::Quarantined => "quarantined",
            Self::BudgetConcurrency => "budget_concurrency",
            Self::BudgetRate => "budget_rate",
            Self::BudgetShare => "budget_share",
            Self::BudgetQuery => "budget_query",
            Self::QueueFull => "queue_full",
            Self::Timeout => "timeout",
            Self::Shutdown => "shutdown",
        }
    }
}

impl Reason {
    /// Whether a budget is behind it.
    #[must_use]
    pub const fn is_budget(self) -> bool {
        match self {
            Self::BudgetConcurrency | Self::BudgetRate | Self::BudgetShare | Self::BudgetQuery => {
                true
            }
            Self::Ratio
            | Self::GateClosed
            | Self::NoData
            | Self::Paced
            | Self::Hold
            | Self::Deny
            | Self::Guard
            | Self::Quarantined
            | Self::QueueFull
            | Self::Timeout
            | Self::Shutdown => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_its_own_name() {
        let names: BTreeSet<&str> = Reason::ALL.into_iter().map(Reason::as_str).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
    }
}
