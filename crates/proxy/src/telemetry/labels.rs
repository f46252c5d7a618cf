//! Label values that clients choose, kept few; and the series a connection used last.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admission::{Mode, Reason, RuleKey};
use parking_lot::Mutex;
use prometheus::{Histogram, IntCounter};
use sql::Class;

use super::event::{StatementDecision, StatementEvent};
use super::pulse::Beats;
use super::tally::TallyCell;

/// Label sets a connection remembers. A client of one app runs reads, writes and transaction
/// statements under one or two rules; beyond that it costs a lookup, not correctness.
const REMEMBERED_MAX: usize = 8;

/// The label of a name that came after the first `max`.
const OTHER: &str = "other";

/// The series of the label sets that one connection used last. It holds nothing until it is used.
#[derive(Debug, Default)]
pub struct LabelCache {
    generation: u64,
    entries: Vec<CachedSeries>,
    /// Which one makes room next.
    oldest: usize,
}

#[derive(Debug)]
struct CachedSeries {
    key: LabelSet,
    series: Series,
}

/// The names lie apart, where looking costs more than comparing: they are looked at only once whoever
/// sends is not named as when this was last asked for.
#[derive(Debug)]
struct LabelSet {
    cluster: Arc<str>,
    rule: RuleKey,
    naming: u64,
    class: Class,
    decision: StatementDecision,
    reason: Option<Reason>,
    mode: Mode,
    names: Box<Names>,
}

#[derive(Debug)]
struct Names {
    app: Box<[u8]>,
    user: Box<[u8]>,
}

/// Where a statement of one label set is counted.
#[derive(Debug)]
pub(super) struct Series {
    /// The app's label.
    pub(super) app: Arc<str>,
    pub(super) statements: IntCounter,
    pub(super) rule_hits: Option<IntCounter>,
    pub(super) backend: Histogram,
    /// Made for the first that was queued: most never are.
    pub(super) queue_delay: Option<Histogram>,
    /// Where the history has it from.
    pub(super) tally: Arc<TallyCell>,
    /// The cluster's, where only what waited or was refused is counted.
    pub(super) beats: Arc<Beats>,
}

impl LabelCache {
    /// The series of this event, resolved if they are not remembered.
    pub(super) fn series(
        &mut self,
        generation: u64,
        event: &StatementEvent<'_>,
        resolve: impl FnOnce() -> Series,
    ) -> &mut Series {
        if self.generation != generation {
            self.entries.clear();
            self.oldest = 0;
            self.generation = generation;
        }
        let known = match self.entries.iter().position(|entry| entry.key.is_as_named(event)) {
            Some(index) => Some(index),
            None => self.entries.iter_mut().position(|entry| entry.key.is_of(event)),
        };
        let index = match known {
            Some(index) => index,
            None => self.remember(CachedSeries { key: LabelSet::of(event), series: resolve() }),
        };
        #[expect(clippy::indexing_slicing, reason = "both branches give the place of an entry")]
        &mut self.entries[index].series
    }

    fn remember(&mut self, entry: CachedSeries) -> usize {
        if self.entries.len() < REMEMBERED_MAX {
            // Most connections have two or three of them.
            self.entries.reserve_exact(1);
            self.entries.push(entry);
            return self.entries.len().saturating_sub(1);
        }
        let index = self.oldest;
        if let Some(place) = self.entries.get_mut(index) {
            *place = entry;
        }
        self.oldest = index.saturating_add(1) % REMEMBERED_MAX;
        index
    }
}

impl LabelSet {
    fn of(event: &StatementEvent<'_>) -> Self {
        let names = Names { app: event.app.into(), user: event.user.into() };
        Self {
            cluster: event.cluster.clone(),
            rule: event.rule_key,
            naming: event.naming,
            names: Box::new(names),
            class: event.class,
            decision: event.decision,
            reason: event.reason,
            mode: event.mode,
        }
    }

    /// Whether this is it, and nothing has been named otherwise since.
    fn is_as_named(&self, event: &StatementEvent<'_>) -> bool {
        self.naming == event.naming && self.is_but_for_names(event)
    }

    /// Whether this is it; then its names are known to be those of now.
    fn is_of(&mut self, event: &StatementEvent<'_>) -> bool {
        let is = self.is_but_for_names(event)
            && *self.names.app == *event.app
            && *self.names.user == *event.user;
        if is {
            self.naming = event.naming;
        }
        is
    }

    fn is_but_for_names(&self, event: &StatementEvent<'_>) -> bool {
        self.class == event.class
            && self.decision == event.decision
            && self.reason == event.reason
            && self.mode == event.mode
            && self.rule == event.rule_key
            && Arc::ptr_eq(&self.cluster, event.cluster)
    }
}

/// Names that clients choose, as label values: the first so many as they are, the rest as
/// `other`.
#[derive(Debug)]
pub(super) struct LabelNames {
    max: AtomicUsize,
    known: Mutex<HashSet<Arc<str>>>,
    other: Arc<str>,
}

impl LabelNames {
    pub(super) fn new(max: usize) -> Self {
        Self { max: AtomicUsize::new(max), known: Mutex::default(), other: OTHER.into() }
    }

    /// A new bound. Names that have a label keep it, also beyond a lower bound.
    pub(super) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    pub(super) fn label(&self, name: &str) -> Arc<str> {
        if name == OTHER {
            return self.other.clone();
        }
        let mut known = self.known.lock();
        if let Some(label) = known.get(name) {
            return label.clone();
        }
        if known.len() >= self.max.load(Ordering::Relaxed) {
            return self.other.clone();
        }
        let label: Arc<str> = name.into();
        known.insert(label.clone());
        label
    }

    /// The label of those that have none of their own.
    pub(super) fn other(&self) -> Arc<str> {
        self.other.clone()
    }

    /// Those that have one.
    pub(super) fn all(&self) -> Vec<Arc<str>> {
        self.known.lock().iter().cloned().collect()
    }

    /// Whether half of the names that may have a label do.
    pub(super) fn is_half_full(&self) -> bool {
        self.known.lock().len() >= self.max.load(Ordering::Relaxed).div_ceil(2)
    }

    /// Whether every further name is `other`.
    pub(super) fn is_full(&self) -> bool {
        self.known.lock().len() >= self.max.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_are_other_and_the_first_stay() {
        let names = LabelNames::new(2);
        assert_eq!(&*names.label("a"), "a");
        assert_eq!(&*names.label("b"), "b");
        assert_eq!(&*names.label("c"), "other");
        assert_eq!(&*names.label("a"), "a");
        names.set_max(3);
        assert_eq!(&*names.label("c"), "c");
    }
}
