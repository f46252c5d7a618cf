//! Which values of tags are told apart.
//!
//! Clients choose them, and may choose a new one for each statement: then every statement would be a
//! row of its own, and nothing would be a heavy hitter. So a minute has places for so many sets of
//! values; half of them belong to those that came most often in the minute before. The others are
//! one, `other`, with their digests and apps as they are.

use std::collections::{HashMap, HashSet};

use crate::hash::Seeded;
use crate::windows::{MINUTE_MS, Time};

/// Sets of values that a minute tells apart.
const PLACES: usize = 256;

/// Of these, those that are kept for what came most often before.
const KEPT: usize = PLACES / 2;

/// Stands for all others; no set has it.
pub(crate) const OTHER: u64 = u64::MAX;

/// The sets of the minute that counts.
#[derive(Debug)]
pub(crate) struct TagSets {
    minute: u64,
    counts: HashMap<u64, u64, Seeded>,
    kept: HashSet<u64, Seeded>,
    seed: u64,
}

impl TagSets {
    pub(crate) fn new(seed: u64) -> Self {
        let counts = HashMap::with_hasher(Seeded(seed));
        Self { minute: 0, counts, kept: HashSet::with_hasher(Seeded(seed)), seed }
    }

    /// What stands for a set of tags from now on.
    #[inline]
    pub(crate) fn admit(&mut self, tags: u64, now: Time) -> u64 {
        if tags == 0 { 0 } else { self.admit_some(tags, now) }
    }

    fn admit_some(&mut self, tags: u64, now: Time) -> u64 {
        let minute = now.0 / MINUTE_MS;
        if self.minute < minute {
            self.minute = minute;
            self.begin();
        }
        if let Some(count) = self.counts.get_mut(&tags) {
            *count = count.saturating_add(1);
            return tags;
        }
        let new = self.counts.len().saturating_sub(self.kept.len());
        if new >= PLACES.saturating_sub(KEPT) && !self.kept.contains(&tags) {
            return OTHER;
        }
        self.counts.insert(tags, 1);
        tags
    }

    /// Those that came most often keep their places.
    fn begin(&mut self) {
        let counts = std::mem::replace(&mut self.counts, HashMap::with_hasher(Seeded(self.seed)));
        let mut counts: Vec<(u64, u64)> = counts.into_iter().map(|(tags, n)| (n, tags)).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        self.kept = HashSet::with_hasher(Seeded(self.seed));
        self.kept.extend(counts.iter().take(KEPT).map(|(_, tags)| *tags));
        self.counts.extend(self.kept.iter().map(|tags| (*tags, 0)));
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_flood_of_values_is_one_and_what_came_often_before_it_keeps_its_place() {
        let mut sets = TagSets::new(7);
        for n in 0..10_000 {
            assert_eq!(sets.admit(1, Time(60_000)), 1);
            sets.admit(100 + n, Time(60_000));
        }
        assert_eq!(sets.admit(77_777, Time(61_000)), OTHER);
        // The flood is there first in the next minute.
        for n in 0..10_000 {
            sets.admit(50_000 + n, Time(120_000));
        }
        assert_eq!(sets.admit(1, Time(120_000)), 1);
        assert_eq!(sets.admit(99_999, Time(120_000)), OTHER);
        assert!(sets.counts.len() <= PLACES);
        assert_eq!(sets.admit(0, Time(0)), 0, "none is none");
    }
}
