//! What is different between two windows.

use std::collections::HashMap;

use crate::stats::{Stats, seconds};
use crate::view::{Group, View, ViewRow};

/// What has changed of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// It was not there before.
    New,
    /// A statement of it takes longer, and not by chance alone: half as much again at least, with
    /// at least [`SAMPLE_MIN`] statements in both windows.
    Slower,
    /// It takes more time of the server: half as much again at least.
    Grown,
    /// It takes less time of the server: a third less at least.
    Shrunk,
    /// It is not there any more.
    Gone,
    /// None of these.
    Same,
}

/// Statements on both sides without which nothing is called slower.
pub const SAMPLE_MIN: u64 = 5;

/// From which ratio on something is slower, or has grown.
const RATIO: f64 = 1.5;

impl Change {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Slower => "slower",
            Self::Grown => "grown",
            Self::Shrunk => "shrunk",
            Self::Gone => "gone",
            Self::Same => "same",
        }
    }

    /// What has become of a row. Totals are compared by the second, so that windows of different
    /// lengths can be.
    fn of(before: &Stats, before_s: f64, now: &Stats, now_s: f64) -> Self {
        if before.is_empty() {
            return Self::New;
        }
        if now.is_empty() {
            return Self::Gone;
        }
        let per_second = |stats: &Stats, window_s: f64| seconds(stats.time_ns) / window_s.max(1.0);
        let (was, is) = (per_second(before, before_s), per_second(now, now_s));
        if before.count.min(now.count) >= SAMPLE_MIN && mean_s(now) > mean_s(before) * RATIO {
            return Self::Slower;
        }
        if is > was * RATIO {
            Self::Grown
        } else if is < was / RATIO {
            Self::Shrunk
        } else {
            Self::Same
        }
    }
}

/// A row, and what it was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compared {
    /// The row as it is now; of one that is gone, as it was, with nothing counted.
    pub row: ViewRow,
    /// What it has cost before.
    pub before: Stats,
    /// What has changed.
    pub change: Change,
}

/// Finds each row of `now` in `before`, and those that are gone.
#[must_use]
pub fn compare(before: &View, now: View) -> Vec<Compared> {
    let length_s = |view: &View| {
        seconds(view.to.0.saturating_sub(view.counted_from.0).saturating_mul(1_000_000))
    };
    let (before_s, now_s) = (length_s(before), length_s(&now));
    let mut old: HashMap<&Group, &ViewRow> =
        before.rows.iter().map(|row| (&row.group, row)).collect();
    let mut compared: Vec<Compared> = now
        .rows
        .into_iter()
        .map(|row| {
            let before = old.remove(&row.group).map(|row| row.stats.clone()).unwrap_or_default();
            let change = Change::of(&before, before_s, &row.stats, now_s);
            Compared { row, before, change }
        })
        .collect();
    compared.extend(old.into_values().map(|row| Compared {
        row: ViewRow { stats: Stats::default(), ..row.clone() },
        before: row.stats.clone(),
        change: Change::Gone,
    }));
    compared
}

fn mean_s(stats: &Stats) -> f64 {
    stats.time_ns.checked_div(stats.count).map(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::arithmetic_side_effects, reason = "numbers of test data")]

    use super::*;

    fn stats(count: u64, each_ms: u64) -> Stats {
        Stats { count, time_ns: count * each_ms * 1_000_000, ..Stats::default() }
    }

    #[test]
    fn a_row_is_new_slower_grown_shrunk_gone_or_the_same() {
        let of = |before: &Stats, now: &Stats| Change::of(before, 600.0, now, 600.0);
        let (none, some) = (Stats::default(), stats(100, 10));
        assert_eq!(of(&none, &some), Change::New);
        assert_eq!(of(&some, &none), Change::Gone);
        assert_eq!(of(&some, &some), Change::Same);
        assert_eq!(of(&some, &stats(90, 16)), Change::Slower);
        assert_eq!(of(&some, &stats(160, 10)), Change::Grown);
        assert_eq!(of(&some, &stats(50, 10)), Change::Shrunk);
        assert_eq!(of(&stats(4, 10), &stats(4, 30)), Change::Grown, "too few to be called slower");
        let longer = Change::of(&some, 600.0, &stats(600, 10), 3_600.0);
        assert_eq!(longer, Change::Same, "windows of different lengths");
    }
}
