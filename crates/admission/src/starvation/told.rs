//! What is told of starvation.

use std::time::Duration;

use crate::{AppKey, IdentityKey, MonoTime, RuleKey};

/// When an identity counts as starved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StarvationConfig {
    /// The share of the window that it was blocked for, or below its share.
    pub share: f64,
    /// The time that is looked back on.
    pub window: Duration,
}

/// An identity that is starved.
#[derive(Debug, Clone, PartialEq)]
pub struct Starved {
    /// The rule it asks under.
    pub rule: RuleKey,
    /// Its app.
    pub app: AppKey,
    /// Who.
    pub identity: IdentityKey,
    /// What it suffers from.
    pub kind: StarvedKind,
    /// The share of the window for which it did, at most 1.
    pub share: f64,
    /// When the first spell began that counts.
    pub since: MonoTime,
    /// Whether it is blocked now.
    pub blocked: bool,
    /// What it received of its fair share while it was below it, 0 to [`crate::BELOW`]; `None`: it was
    /// not.
    pub received_of_share: Option<f64>,
    /// Who was admitted meanwhile, those that did not ask first, then whoever was admitted most.
    pub meanwhile: Vec<Admitted>,
}

/// How somebody is starved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StarvedKind {
    /// Nothing of it was admitted for too long.
    Blocked,
    /// What was admitted of it was too little beside what others were given.
    BelowShare,
}

impl StarvedKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Blocked, Self::BelowShare];

    /// The stable name: a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::BelowShare => "below_share",
        }
    }
}

/// An identity that asks in vain now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// The rule it asks under.
    pub rule: RuleKey,
    /// Who.
    pub identity: IdentityKey,
    /// Since when nothing of its was admitted.
    pub since: MonoTime,
    /// When it last asked, or stopped waiting.
    pub asked_at: MonoTime,
}

/// What was admitted while somebody was blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Whether it had to ask.
    pub passage: Passage,
    /// The rule; `None`: no rule matched, or many did.
    pub rule: Option<RuleKey>,
    /// The app; `None`: those beyond [`crate::APPS_MAX`].
    pub app: Option<AppKey>,
    /// How many statements.
    pub count: u64,
}

/// How a statement passed. In the order in which they are the likely cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Passage {
    /// A rule exempts it.
    Exempt,
    /// No rule matched, or one that gates nothing.
    Ungated,
    /// It asked, and was admitted.
    Asked,
}

impl Passage {
    /// The stable name: a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exempt => "exempt",
            Self::Ungated => "ungated",
            Self::Asked => "asked",
        }
    }
}
