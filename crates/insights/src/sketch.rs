//! The heavy hitters of one window.
//!
//! Theory. This is Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent
//! and Top-k Elements in Data Streams", ICDT 2005) with weights. There are `m` places. A key that
//! has none takes the place of the lightest and inherits its weight, so a weight is too large by at
//! most what was inherited, and that is at most W/m when W is the weight of all. Every key that
//! weighs more than W/m has a place, whatever else comes and in whichever order.
//!
//! The weight of a statement is its time at the server in microseconds, and some for having come at
//! all: both what is slow and what is frequent is kept. What a row *tells* is only what was counted
//! while it had its place, never what it has inherited, and what loses its place is added to the
//! rest: rows and rest together are exact.
//!
//! The lightest is found in a heap of weights as they were when they were put there. Weights only
//! grow, so the top is a lower bound: if its row weighs more by now it is put back with that.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde::{Deserialize, Serialize};

use crate::hash::Seeded;
use crate::record::Record;
use crate::stats::Stats;
use crate::windows::Time;

/// What a statement weighs for having come, in microseconds: about what relaying one takes.
const WEIGHT_MIN_US: u64 = 50;

/// Apps and users whose rest is summed up apart.
const REST_MAX: usize = 256;

/// Rows that are remembered as those of the last statements.
const RECENT: usize = 16;

/// Whose statements a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) digest: Digest,
    pub(crate) app: u64,
    pub(crate) schema: u64,
    pub(crate) user: u64,
    pub(crate) tags: u64,
}

/// Which texts a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Digest {
    /// Those of this digest.
    Of(u64),
    /// Those that are not known.
    Unknown,
    /// Those that have no row of their own.
    Other,
}

impl std::hash::Hash for Digest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(match self {
            Self::Of(digest) => *digest,
            Self::Unknown => 1,
            Self::Other => 2,
        });
    }
}

impl Key {
    fn of(record: &Record) -> Self {
        let Record { digest, app, schema, user, tags, .. } = *record;
        Self { digest: digest.map_or(Digest::Unknown, Digest::Of), app, schema, user, tags }
    }

    /// Its place among the rows of the last statements.
    fn recent(self) -> usize {
        let Digest::Of(digest) = self.digest else { return 0 };
        let [low, ..] = digest.to_le_bytes();
        usize::from(low) % RECENT
    }

    /// Where its statements are added when it has no place.
    fn rest(self) -> Self {
        Self { digest: Digest::Other, schema: 0, tags: 0, ..self }
    }
}

/// Nobody knows whose these are.
pub(crate) const NOBODY: Key = Key { digest: Digest::Other, app: 0, schema: 0, user: 0, tags: 0 };

/// The heavy hitters, and the rest.
#[derive(Debug)]
pub(crate) struct Sketch {
    places: usize,
    rows: Vec<Row>,
    index: HashMap<Key, usize, Seeded>,
    /// A weight that each row had once, and where the row is.
    lightest: BinaryHeap<Reverse<(u64, usize)>>,
    rest: HashMap<Key, Stats, Seeded>,
    weight: u64,
    /// The rows of the last statements, by their digests: the next is often like one of them.
    recent: [usize; RECENT],
}

#[derive(Debug)]
struct Row {
    key: Key,
    weight: u64,
    inherited: u64,
    stats: Stats,
}

impl Sketch {
    /// An empty one with so many places.
    pub(crate) fn new(places: usize, seed: u64) -> Self {
        Self {
            places: places.max(1),
            rows: Vec::new(),
            index: HashMap::with_hasher(Seeded(seed)),
            lightest: BinaryHeap::new(),
            rest: HashMap::with_hasher(Seeded(seed)),
            weight: 0,
            recent: [0; RECENT],
        }
    }

    /// Adds a statement.
    pub(crate) fn observe(&mut self, record: &Record, at: Time) {
        let weight = record.server_ns / 1_000;
        let weight = weight.saturating_add(WEIGHT_MIN_US);
        if let Some(stats) = self.row(Key::of(record), weight) {
            stats.add(record, at);
        }
    }

    /// Adds what another window has counted.
    pub(crate) fn merge(&mut self, key: Key, stats: &Stats) {
        if key.digest == Digest::Other {
            return self.merge_rest(key, stats);
        }
        let came = stats.count.saturating_add(stats.refused.sum());
        let weight = (stats.time_ns / 1_000).saturating_add(came.saturating_mul(WEIGHT_MIN_US));
        if let Some(sum) = self.row(key, weight) {
            sum.merge_bounded(stats);
        }
    }

    /// Adds what has no row.
    pub(crate) fn merge_rest(&mut self, key: Key, stats: &Stats) {
        let known = self.rest.len() < REST_MAX || self.rest.contains_key(&key);
        self.rest.entry(if known { key } else { NOBODY }).or_default().merge_bounded(stats);
    }

    /// Every row that may be believed to be a heavy hitter, and the rest, of which the others are
    /// part.
    pub(crate) fn rows(&self) -> Vec<(Key, Stats)> {
        let share = self.weight.checked_div(u64::try_from(self.places).unwrap_or(1)).unwrap_or(0);
        let believed =
            |row: &&Row| row.inherited == 0 || row.weight.saturating_sub(row.inherited) >= share;
        let mut rest = Self::new(1, 0);
        for (key, stats) in &self.rest {
            rest.merge_rest(*key, stats);
        }
        for row in self.rows.iter().filter(|row| !believed(row)) {
            rest.merge_rest(row.key.rest(), &row.stats);
        }
        let rows = self.rows.iter().filter(believed).map(|row| (row.key, row.stats.clone()));
        rows.chain(rest.rest).collect()
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.rest.is_empty()
    }

    /// The digests and names that rows are about.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.rows.iter().map(|row| row.key).chain(self.rest.keys().copied())
    }

    /// The row of this key, which weighs so much more now.
    fn row(&mut self, key: Key, weight: u64) -> Option<&mut Stats> {
        self.weight = self.weight.saturating_add(weight);
        let recent = key.recent();
        let mut at = self.recent.get(recent).copied().unwrap_or_default();
        if self.rows.get(at).is_none_or(|row| row.key != key) {
            at = match self.index.get(&key) {
                Some(at) => *at,
                None if self.rows.len() < self.places => self.begin(key),
                None => self.replace_lightest(key)?,
            };
            if let Some(recent) = self.recent.get_mut(recent) {
                *recent = at;
            }
        }
        let row = self.rows.get_mut(at)?;
        row.weight = row.weight.saturating_add(weight);
        Some(&mut row.stats)
    }

    /// Gives this key a place that nobody has.
    fn begin(&mut self, key: Key) -> usize {
        let at = self.rows.len();
        self.rows.push(Row { key, weight: 0, inherited: 0, stats: Stats::default() });
        self.index.insert(key, at);
        self.lightest.push(Reverse((0, at)));
        at
    }

    /// Gives the lightest row's place to this key.
    fn replace_lightest(&mut self, key: Key) -> Option<usize> {
        let at = loop {
            let Reverse((then, at)) = self.lightest.pop()?;
            let now = self.rows.get(at)?.weight;
            if now <= then {
                break at;
            }
            self.lightest.push(Reverse((now, at)));
        };
        let row = self.rows.get_mut(at)?;
        let Row { weight: inherited, .. } = *row;
        let heir = Row { key, weight: inherited, inherited, stats: Stats::default() };
        let gone = std::mem::replace(row, heir);
        self.lightest.push(Reverse((inherited, at)));
        self.index.remove(&gone.key);
        self.index.insert(key, at);
        self.merge_rest(gone.key.rest(), &gone.stats);
        Some(at)
    }
}

#[cfg(test)]
mod tests;
