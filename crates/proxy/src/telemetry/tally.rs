//! What became of statements since somebody last looked, by identity: the history is made of it.
//!
//! A statement costs one or two atomic additions: its connection remembers the cell, as it does the
//! series of the metrics. Whoever keeps the history takes the counts away, a few times a second.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use admission::{Mode, Reason};
use parking_lot::Mutex;

use super::event::{StatementDecision, StatementEvent};

/// Cells at a time, some 300 bytes each. Clients choose apps; beyond it, the new ones of a rule are
/// counted together.
const CELLS_MAX: usize = 4_096;

/// Longest name of a user that is kept, in bytes.
const USER_LEN_MAX: usize = 64;

/// Of apps and users that have no cell of their own.
const OTHER: &str = "other";

/// Whose statements are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TallyKey {
    /// The cluster.
    pub cluster: Arc<str>,
    /// The app as metrics show it.
    pub app: Arc<str>,
    /// The MySQL user.
    pub user: Arc<str>,
    /// The rule; `none` where none matched.
    pub rule: Arc<str>,
}

/// What became of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tallied {
    /// Forwarded, at once or after a wait; also those that a rule in mode `observe` would have held.
    pub admitted: u64,
    /// Of these, those that a rule in mode `observe` would have delayed or refused.
    pub observed: u64,
    /// Refused, by reason, in the order of [`Reason::ALL`].
    pub refused: [u64; Reason::ALL.len()],
    /// Their client left, or they were killed, while they waited.
    pub left: u64,
    /// Of all these, those that had to wait.
    pub delayed: u64,
    /// How long, together.
    pub wait_sum: Duration,
    /// The longest of these waits.
    pub wait_max: Duration,
    /// How many of these waits were how long.
    pub waits: Waits,
    /// Rows changed.
    pub rows: u64,
}

/// How many waits were how long: two classes for each doubling, from 0.1 ms to a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits([u32; CLASSES]);

const CLASSES: usize = 60;

/// The shortest wait that is told from none, in microseconds.
const UNIT_US: u64 = 100;

impl Default for Waits {
    fn default() -> Self {
        Self([0; CLASSES])
    }
}

impl Waits {
    /// Adds those of somebody else.
    pub fn add(&mut self, others: &Self) {
        for (own, other) in self.0.iter_mut().zip(others.0) {
            *own = own.saturating_add(other);
        }
    }

    /// One more wait.
    pub fn note(&mut self, wait: Duration) {
        if let Some(count) = self.0.get_mut(class_of(wait)) {
            *count = count.saturating_add(1);
        }
    }

    /// What so many of a hundred waits were not longer than, to a fifth more; none without waits.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Option<Duration> {
        let all: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let wanted = all.saturating_mul(u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0_u64;
        for (class, count) in self.0.iter().enumerate() {
            seen = seen.saturating_add(u64::from(*count));
            if all > 0 && seen >= wanted {
                return Some(upper_end(class));
            }
        }
        None
    }
}

fn class_of(wait: Duration) -> usize {
    let us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
    let units = (us / UNIT_US).max(1);
    let doublings = units.ilog2();
    // The upper half begins at the square root of two.
    let base = 1_u128 << doublings;
    let upper = u128::from(units).pow(2) >= base.pow(2).saturating_mul(2);
    let class = doublings.saturating_mul(2).saturating_add(u32::from(upper));
    usize::try_from(class).unwrap_or(CLASSES).min(CLASSES.saturating_sub(1))
}

fn upper_end(class: usize) -> Duration {
    let halves = u32::try_from(class).unwrap_or(u32::MAX).saturating_add(1);
    let factor = f64::from(halves) / 2.0;
    Duration::from_secs_f64(UNIT_S * factor.exp2())
}

const UNIT_S: f64 = 0.000_1;

impl Tallied {
    /// How many came.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.admitted.saturating_add(self.refused_in_all()).saturating_add(self.left)
    }

    /// How many were refused, whatever the reason.
    #[must_use]
    pub fn refused_in_all(&self) -> u64 {
        self.refused.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Adds others.
    pub fn add(&mut self, others: &Self) {
        let add = |own: &mut u64, other: u64| *own = own.saturating_add(other);
        add(&mut self.admitted, others.admitted);
        add(&mut self.observed, others.observed);
        add(&mut self.left, others.left);
        add(&mut self.delayed, others.delayed);
        add(&mut self.rows, others.rows);
        for (own, other) in self.refused.iter_mut().zip(others.refused) {
            add(own, other);
        }
        self.wait_sum = self.wait_sum.saturating_add(others.wait_sum);
        self.wait_max = self.wait_max.max(others.wait_max);
        self.waits.add(&others.waits);
    }
}

/// The cells.
#[derive(Debug, Default)]
pub(super) struct Tally {
    cells: Mutex<HashMap<TallyKey, Arc<TallyCell>>>,
}

/// The counts of one identity.
#[derive(Debug, Default)]
pub(super) struct TallyCell {
    admitted: AtomicU64,
    observed: AtomicU64,
    left: AtomicU64,
    rows: AtomicU64,
    /// Made for the first that waits or is refused: most never are.
    held: OnceLock<Box<Held>>,
}

#[derive(Debug)]
struct Held {
    refused: [AtomicU64; Reason::ALL.len()],
    delayed: AtomicU64,
    wait_sum_us: AtomicU64,
    wait_max_us: AtomicU64,
    waits: [AtomicU32; CLASSES],
}

impl Default for Held {
    fn default() -> Self {
        Self {
            refused: std::array::from_fn(|_| AtomicU64::new(0)),
            delayed: AtomicU64::new(0),
            wait_sum_us: AtomicU64::new(0),
            wait_max_us: AtomicU64::new(0),
            waits: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

impl Tally {
    /// The cell that this event is counted in.
    pub(super) fn cell(&self, event: &StatementEvent<'_>, app: &Arc<str>) -> Arc<TallyCell> {
        let user = event.user.get(..USER_LEN_MAX).unwrap_or(event.user);
        let key = TallyKey {
            cluster: event.cluster.clone(),
            app: app.clone(),
            user: String::from_utf8_lossy(user).into(),
            rule: event.rule.into(),
        };
        let mut cells = self.cells.lock();
        if let Some(cell) = cells.get(&key) {
            return cell.clone();
        }
        let key = if cells.len() < CELLS_MAX {
            key
        } else {
            TallyKey { app: OTHER.into(), user: OTHER.into(), ..key }
        };
        cells.entry(key).or_default().clone()
    }

    /// Takes the counts since the last call. Cells that nobody counts in any more go.
    pub(super) fn take(&self) -> Vec<(TallyKey, Tallied)> {
        let mut taken = Vec::new();
        self.cells.lock().retain(|key, cell| {
            let counts = cell.take();
            // Whoever would count in it again has to ask for it, by this lock.
            let stays = counts.is_some() || Arc::strong_count(cell) > 1;
            taken.extend(counts.map(|counts| (key.clone(), counts)));
            stays
        });
        taken
    }
}

impl TallyCell {
    pub(super) fn count(&self, event: &StatementEvent<'_>) {
        let add = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        match (event.decision, event.mode, event.reason) {
            (StatementDecision::Admitted, ..) => add(&self.admitted),
            (StatementDecision::Rejected, Mode::Observe, _) => {
                add(&self.observed);
                add(&self.admitted)
            }
            (StatementDecision::Rejected, Mode::Enforce, Some(reason)) => {
                self.held.get_or_init(Box::default).refuse(reason)
            }
            // One that is refused has a reason.
            (StatementDecision::Rejected, Mode::Enforce, None)
            | (StatementDecision::ClientGone, ..) => add(&self.left),
        };
        if event.rows > 0 {
            self.rows.fetch_add(event.rows, Ordering::Relaxed);
        }
        if let Some(wait) = event.queued
            && event.mode == Mode::Enforce
        {
            self.held.get_or_init(Box::default).wait(wait);
        }
    }

    fn take(&self) -> Option<Tallied> {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        let mut counts = Tallied {
            admitted: take(&self.admitted),
            observed: take(&self.observed),
            left: take(&self.left),
            rows: take(&self.rows),
            ..Tallied::default()
        };
        if let Some(held) = self.held.get() {
            held.take(&mut counts);
        }
        (counts != Tallied::default()).then_some(counts)
    }
}

impl Held {
    fn refuse(&self, reason: Reason) -> u64 {
        let place = Reason::ALL.iter().position(|known| *known == reason);
        let count = place.and_then(|place| self.refused.get(place));
        count.map_or(0, |count| count.fetch_add(1, Ordering::Relaxed))
    }

    fn wait(&self, wait: Duration) {
        let us = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        self.delayed.fetch_add(1, Ordering::Relaxed);
        self.wait_sum_us.fetch_add(us, Ordering::Relaxed);
        self.wait_max_us.fetch_max(us, Ordering::Relaxed);
        if let Some(count) = self.waits.get(class_of(wait)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take(&self, counts: &mut Tallied) {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        for (to, from) in counts.refused.iter_mut().zip(&self.refused) {
            *to = take(from);
        }
        counts.delayed = take(&self.delayed);
        if counts.delayed == 0 {
            return;
        }
        counts.wait_sum = Duration::from_micros(take(&self.wait_sum_us));
        counts.wait_max = Duration::from_micros(take(&self.wait_max_us));
        for (to, from) in counts.waits.0.iter_mut().zip(&self.waits) {
            *to = from.swap(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_at_most_a_half_above_the_truth_and_never_below() {
        let mut waits = Waits::default();
        assert_eq!(waits.percentile(99), None);
        for ms in 1..=1_000 {
            waits.note(Duration::from_millis(ms));
        }
        for (percent, truth) in [(50, 0.5), (99, 0.99), (100, 1.0)] {
            let said = waits.percentile(percent).unwrap().as_secs_f64();
            assert!(said >= truth && said <= truth * 1.5, "{percent}: {said}");
        }
        let mut one = Waits::default();
        one.note(Duration::from_secs(1_000_000));
        assert!(one.percentile(1).is_some());
    }
}
