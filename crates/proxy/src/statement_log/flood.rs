//! How many lines a rule and an app may have.
//!
//! The first [`LINES_MAX`] of a second have a line each. What comes beyond them is counted, and when
//! the second is over one line has the counts. While that goes on a period is not a second but
//! [`LONG_PERIOD`]: a client that spins leaves six lines in ten seconds. A period in which nothing was
//! left out is the last one, so only what comes now is remembered, and at most [`PAIRS_MAX`] of it:
//! whoever changes its name with each statement is counted with others like it. All together have
//! [`LINES_PER_SECOND_MAX`]; a sum that finds none left waits for the next second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{MonoTime, Reason};
use policy::identity::TraceId;

/// Lines of a rule and an app in a period: enough to see who, from where, and with which traces.
const LINES_MAX: u32 = 5;

/// A period, the first time.
const PERIOD: Duration = Duration::from_secs(1);

/// A period behind one that was too short.
const LONG_PERIOD: Duration = Duration::from_secs(10);

/// Pairs of a rule and an app that are told apart: at most half a megabyte.
const PAIRS_MAX: usize = 1_024;

/// Lines of all of them, with their sums: some 2 MB a minute.
const LINES_PER_SECOND_MAX: u32 = 100;

/// What is told apart besides rules and apps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Refused,
    Waited,
    /// It has run away.
    RanAway,
}

/// Where a statement counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whose<'a> {
    pub(super) kind: Kind,
    pub(super) cluster: &'a Arc<str>,
    pub(super) rule: &'a str,
    /// The guard, of those that no rule was asked about.
    pub(super) guard: Option<&'a str>,
    pub(super) app: &'a [u8],
}

/// What a sum has of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Worth {
    pub(super) reason: Option<Reason>,
    pub(super) waited: Duration,
    pub(super) trace: Option<TraceId>,
}

/// Whether a statement has a line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(super) enum Noted {
    HasLine,
    Counted,
}

/// Statements without lines of their own.
#[derive(Debug)]
pub(super) struct Sum {
    pub(super) kind: Kind,
    /// None: those beyond the pairs that are told apart.
    pub(super) of: Option<OwnedWhose>,
    pub(super) untold: u64,
    /// How many for each reason, without those of which there is none.
    pub(super) by_reason: Vec<(Reason, u64)>,
    /// The longest wait among them; of those that ran away, the longest time at the server.
    pub(super) longest: Duration,
    /// The trace of the longest wait of those that have one.
    pub(super) trace: Option<TraceId>,
}

/// A rule and an app.
#[derive(Clone, Debug)]
pub(super) struct OwnedWhose {
    pub(super) cluster: Arc<str>,
    pub(super) rule: Box<str>,
    pub(super) guard: Option<Box<str>>,
    pub(super) app: Box<[u8]>,
}

/// What has come lately.
#[derive(Debug, Default)]
pub(super) struct Flood {
    pairs: HashMap<Box<[u8]>, Pair>,
    /// What a key is made in.
    key: Vec<u8>,
    budget: Budget,
}

/// A rule and an app in their period.
#[derive(Debug)]
struct Pair {
    kind: Kind,
    of: Option<OwnedWhose>,
    ends_at: MonoTime,
    lines_left: u32,
    untold: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    count: u64,
    by_reason: [u64; Reason::ALL.len()],
    longest: Duration,
    traced: Option<(Duration, TraceId)>,
}

/// Lines of everybody in a second.
#[derive(Debug, Default)]
struct Budget {
    second: Option<MonoTime>,
    spent: u32,
}

impl Flood {
    /// Whether nothing is remembered, nor to be told.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// A statement came.
    pub(super) fn note(&mut self, now: MonoTime, whose: Whose<'_>, worth: Worth) -> Noted {
        let Self { pairs, key, budget } = self;
        write_key(key, whose);
        if !pairs.contains_key(&**key) {
            let of = if pairs.len() < PAIRS_MAX {
                Some(OwnedWhose {
                    cluster: Arc::clone(whose.cluster),
                    rule: whose.rule.into(),
                    guard: whose.guard.map(Into::into),
                    app: whose.app.into(),
                })
            } else {
                // One more for each kind.
                key.truncate(KIND_LEN);
                None
            };
            let lines_left = if of.is_some() { LINES_MAX } else { 0 };
            let ends_at = now.saturating_add(PERIOD);
            let pair = Pair { kind: whose.kind, of, ends_at, lines_left, untold: Tally::default() };
            pairs.entry(key.as_slice().into()).or_insert(pair);
        }
        let Some(pair) = pairs.get_mut(&**key) else { return Noted::HasLine };
        match pair.lines_left.checked_sub(1) {
            Some(left) if budget.spend(now) => {
                pair.lines_left = left;
                Noted::HasLine
            }
            Some(_) | None => {
                pair.untold.add(worth);
                Noted::Counted
            }
        }
    }

    /// The sums whose period is over.
    pub(super) fn due(&mut self, now: MonoTime) -> Vec<Sum> {
        let Self { pairs, budget, .. } = self;
        let mut sums = Vec::new();
        pairs.retain(|_, pair| {
            if now < pair.ends_at {
                return true;
            }
            if pair.untold.count == 0 {
                return false;
            }
            if budget.spend(now) {
                sums.push(pair.sum());
                pair.ends_at = now.saturating_add(LONG_PERIOD);
                pair.lines_left = if pair.of.is_some() { LINES_MAX } else { 0 };
            }
            true
        });
        sums
    }

    /// All sums, whenever their period is over: nothing comes any more.
    pub(super) fn rest(&mut self) -> Vec<Sum> {
        let pairs = self.pairs.drain().map(|(_, pair)| pair);
        pairs.filter(|pair| pair.untold.count > 0).map(|mut pair| pair.sum()).collect()
    }
}

impl Pair {
    fn sum(&mut self) -> Sum {
        let Tally { count, by_reason, longest, traced } = std::mem::take(&mut self.untold);
        let counts = Reason::ALL.into_iter().zip(by_reason);
        let by_reason = counts.filter(|(_, count)| *count > 0).collect();
        let trace = traced.map(|(_, trace)| trace);
        Sum { kind: self.kind, of: self.of.clone(), untold: count, by_reason, longest, trace }
    }
}

impl Tally {
    fn add(&mut self, worth: Worth) {
        let Worth { reason, waited, trace } = worth;
        self.count = self.count.saturating_add(1);
        let counts = Reason::ALL.iter().zip(&mut self.by_reason);
        if let Some((_, count)) = counts.into_iter().find(|(each, _)| Some(**each) == reason) {
            *count = count.saturating_add(1);
        }
        if let Some(trace) = trace
            && self.traced.is_none_or(|(longest, _)| waited > longest)
        {
            self.traced = Some((waited, trace));
        }
        self.longest = self.longest.max(waited);
    }
}

impl Budget {
    /// Takes a line, if one is left.
    fn spend(&mut self, now: MonoTime) -> bool {
        if self.second.is_none_or(|second| now.saturating_since(second) >= PERIOD) {
            *self = Self { second: Some(now), spent: 0 };
        }
        let has_one = self.spent < LINES_PER_SECOND_MAX;
        if has_one {
            self.spent = self.spent.saturating_add(1);
        }
        has_one
    }
}

/// What a key begins with.
const KIND_LEN: usize = 1;

/// Each part behind its length, so that no two pairs have the same key.
fn write_key(key: &mut Vec<u8>, whose: Whose<'_>) {
    let Whose { kind, cluster, rule, guard, app } = whose;
    key.clear();
    key.push(match kind {
        Kind::Refused => 0,
        Kind::Waited => 1,
        Kind::RanAway => 2,
    });
    let guard = guard.unwrap_or_default();
    for part in [cluster.as_bytes(), rule.as_bytes(), guard.as_bytes(), app] {
        key.extend_from_slice(&part.len().to_le_bytes());
        key.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests;
