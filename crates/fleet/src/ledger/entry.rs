//! One rule as this process knows it, and what time it is.

use std::sync::Arc;
use std::time::Duration;

use admission::{Mode, MonoTime};
use policy::{RuntimeRule, UnixTime};

use super::Changed;
use crate::body::RuleBody;
use crate::draft::{LASTS_MAX, Lift};
use crate::receipt::StandingRule;

/// The primary's clock and this one's may differ by this before the primary's counts: a row takes
/// some time to be read.
const LEFT_DIFFERS: Duration = Duration::from_secs(2);

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Now {
    /// By the clock that does not jump.
    pub(crate) mono: MonoTime,
    /// By the one that can, in milliseconds since 1970.
    pub(crate) unix_ms: i64,
}

impl Now {
    /// The second by the wall clock after which a span from now is over.
    pub(crate) fn after(self, left: Duration) -> UnixTime {
        let left_ms = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
        UnixTime(self.unix_ms.saturating_add(left_ms).saturating_add(999).div_euclid(1_000))
    }

    /// Where the wall clock's zero is on the other one.
    pub(super) fn offset_ms(self) -> i64 {
        let mono_ms = i64::try_from(self.mono.as_nanos() / 1_000_000).unwrap_or(i64::MAX);
        self.unix_ms.saturating_sub(mono_ms)
    }
}

/// One rule, standing or lifted.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) body: RuleBody,
    pub(crate) author: String,
    pub(crate) lifted: bool,
    pub(crate) ends: MonoTime,
    /// As the table has it. `None`: it is to be written.
    pub(crate) version: Option<u64>,
    /// The primary has lost it: it is to be written again over this version.
    pub(super) lost: Option<u64>,
    /// Raised with each change, so that what was written is known to be the last.
    pub(super) change: u64,
    pub(super) rule: RuntimeRule,
}

/// An entry as it was kept on disk.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Kept {
    pub(crate) body: RuleBody,
    pub(crate) author: String,
    pub(crate) lifted: bool,
    pub(crate) left: Duration,
    pub(crate) version: Option<u64>,
}

/// Whether what was kept came after an entry that is not in the table yet.
pub(super) fn is_later_than(body: &RuleBody, lifted: bool, known: Option<&Entry>) -> bool {
    known.is_none_or(|known| {
        body.made_at_ms > known.body.made_at_ms
            || (body.id == known.body.id && lifted && !known.lifted)
    })
}

/// What a rule is shown with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) cluster: &'a Arc<str>,
    pub(crate) mode: Mode,
    pub(crate) now: Now,
}

impl Entry {
    pub(super) fn left(&self, now: Now) -> Duration {
        self.ends.saturating_since(now.mono)
    }

    /// The primary's clock says how long it stands.
    pub(super) fn take_end(&mut self, left: Duration, now: Now) -> Changed {
        let left = left.min(LASTS_MAX);
        if self.left(now).abs_diff(left) <= LEFT_DIFFERS {
            return Changed::No;
        }
        self.ends = now.mono.saturating_add(left);
        self.rule = self.rule.ending(now.after(left));
        Changed::Yes
    }

    pub(super) fn is_meant(&self, name: &str, what: &Lift) -> bool {
        match what {
            Lift::Named { name: wanted, .. } => wanted == name,
            Lift::Of { app: None, user: None, .. } => false,
            Lift::Of { app, user, .. } => {
                let is = |wanted: &Option<String>, said: &Option<String>| {
                    wanted.is_none() || wanted == said
                };
                is(app, &self.body.app) && is(user, &self.body.user)
            }
        }
    }

    pub(super) fn keep(&self, now: Now) -> Kept {
        Kept {
            body: self.body.clone(),
            author: self.author.clone(),
            lifted: self.lifted,
            left: self.left(now),
            version: self.version,
        }
    }

    pub(super) fn show(
        &self,
        name: &Arc<str>,
        About { cluster, mode, now }: About<'_>,
    ) -> StandingRule {
        let RuleBody { app, user, classes, reason, made_at_ms, .. } = self.body.clone();
        StandingRule {
            name: name.clone(),
            cluster: cluster.clone(),
            app,
            user,
            classes,
            effect: self.body.effect(),
            mode,
            author: self.author.clone(),
            reason,
            made_at: UnixTime(made_at_ms.div_euclid(1_000)),
            ends_at: self.rule.expires_at(),
            left: self.left(now),
            version: self.version,
        }
    }
}
