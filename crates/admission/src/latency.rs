//! A percentile of latencies over a window that slides, from counters that only grow.
//!
//! Theory. Whoever measures counts into buckets, each a 32nd of an octave wide, and how many
//! statements have begun and ended; all of that only grows, so it can be counted without a lock and
//! be added up over threads. What is between two times is the difference of the sums at both. A
//! [`LatencyWindow`] keeps the sums of the last window in slices, so its memory is bounded whatever
//! the traffic, and its window slides by a slice.
//!
//! A statement that has not ended tells no latency, and when a server freezes none ends: that must
//! not look like nobody at work. Of those that had begun before a slice, at least `begun then −
//! ended now` run still, for as long as the slice is old; they count as latencies of that length. So
//! only a window in which nothing ended and nothing runs has no value.
//!
//! Source: Tene, HdrHistogram, for buckets that are as wide as their value needs.

use std::collections::VecDeque;
use std::time::Duration;

use crate::MonoTime;

/// Buckets of an octave: a value is known to 3 %, and better with interpolation.
const PER_OCTAVE: u64 = 32;
const PER_OCTAVE_LOG2: u32 = 5;

/// How many buckets there are: microseconds up to an hour.
pub const LATENCY_BUCKETS: usize = 896;

/// Slices of a window: it slides by so little.
const SLICES: u32 = 20;

/// The bucket of a latency; one of over an hour is in the last.
#[must_use]
pub fn latency_bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    if micros < PER_OCTAVE {
        return usize::try_from(micros).unwrap_or(0);
    }
    let octave = micros.ilog2().saturating_sub(PER_OCTAVE_LOG2);
    let within = micros.checked_shr(octave).unwrap_or(0).saturating_sub(PER_OCTAVE);
    let before = u64::from(octave).saturating_add(1).saturating_mul(PER_OCTAVE);
    let bucket = usize::try_from(before.saturating_add(within)).unwrap_or(usize::MAX);
    bucket.min(LATENCY_BUCKETS.saturating_sub(1))
}

/// Where a bucket begins, in seconds.
fn begins_at(bucket: usize) -> f64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    if bucket < PER_OCTAVE {
        return seconds(bucket);
    }
    let octave = bucket.checked_div(PER_OCTAVE).unwrap_or(0).saturating_sub(1);
    let within = bucket.checked_rem(PER_OCTAVE).unwrap_or(0);
    let octave = u32::try_from(octave).unwrap_or(u32::MAX);
    seconds(PER_OCTAVE.saturating_add(within).checked_shl(octave).unwrap_or(u64::MAX))
}

fn seconds(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64()
}

/// What was counted since the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Statements that have begun.
    pub begun: u64,
    /// Statements that have ended, however.
    pub ended: u64,
    /// Statements that have told a latency, by [`latency_bucket`].
    pub buckets: Vec<u64>,
}

impl Default for LatencyCounts {
    fn default() -> Self {
        Self { begun: 0, ended: 0, buckets: vec![0; LATENCY_BUCKETS] }
    }
}

impl LatencyCounts {
    /// One more that has told its latency.
    pub fn count(&mut self, latency: Duration) {
        if let Some(count) = self.buckets.get_mut(latency_bucket(latency)) {
            *count = count.saturating_add(1);
        }
    }
}

/// A percentile over the last window.
#[derive(Debug)]
pub struct LatencyWindow {
    window: Duration,
    percentile: f64,
    /// What had been counted at these times, oldest first: all within the window, and one before.
    slices: VecDeque<(MonoTime, LatencyCounts)>,
    /// What is in the window; kept for its memory.
    within: Vec<u64>,
    recent: LatencyRecent,
}

/// The latencies that were told between the last two looks.
#[derive(Debug, Clone)]
pub struct LatencyRecent {
    /// What had been counted at the last look.
    counted: Vec<u64>,
    buckets: Vec<u64>,
}

impl Default for LatencyRecent {
    fn default() -> Self {
        Self { counted: vec![0; LATENCY_BUCKETS], buckets: vec![0; LATENCY_BUCKETS] }
    }
}

impl LatencyRecent {
    fn look(&mut self, counts: &LatencyCounts) {
        let both = self.buckets.iter_mut().zip(&mut self.counted);
        for ((recent, counted), now) in both.zip(&counts.buckets) {
            *recent = now.saturating_sub(*counted);
            *counted = *now;
        }
    }

    /// How many there were.
    #[must_use]
    pub fn all(&self) -> f64 {
        as_f64(self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count)))
    }

    /// Seconds that they took together, none counted for more than this.
    #[must_use]
    pub fn took(&self, most_s: f64) -> f64 {
        let told = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let took = told.map(|(bucket, count)| {
            let (from, to) = (begins_at(bucket), begins_at(bucket.saturating_add(1)));
            as_f64(*count) * f64::midpoint(from, to).min(most_s)
        });
        took.fold(0.0, |sum, part| sum + part)
    }

    /// How many of them were over this, in seconds; those of a bucket are taken to be spread evenly.
    #[must_use]
    pub fn over(&self, limit_s: f64) -> f64 {
        let told = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let over = told.map(|(bucket, count)| {
            let (from, to) = (begins_at(bucket), begins_at(bucket.saturating_add(1)));
            as_f64(*count) * ((to - limit_s) / (to - from)).clamp(0.0, 1.0)
        });
        over.fold(0.0, |sum, part| sum + part)
    }
}

impl LatencyWindow {
    /// A window in which nothing has been counted. A percentile of 0.99 is what 99 of 100 are at
    /// most.
    #[must_use]
    pub fn new(window: Duration, percentile: f64) -> Self {
        Self {
            window,
            percentile,
            slices: VecDeque::new(),
            within: vec![0; LATENCY_BUCKETS],
            recent: LatencyRecent::default(),
        }
    }

    /// How often to look: as long as a slice.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.window.checked_div(SLICES).unwrap_or(self.window)
    }

    /// So much has been counted by now: the percentile of the last window in seconds. `None`:
    /// nothing ended in it, and nothing runs.
    pub fn look(&mut self, now: MonoTime, counts: &LatencyCounts) -> Option<f64> {
        let from = now.saturating_sub(self.window);
        while self.slices.get(1).is_some_and(|(at, _)| *at <= from) {
            self.slices.pop_front();
        }
        let value = self.percentile_of(now, counts);
        self.recent.look(counts);
        let newest = self.slices.back();
        if newest.is_none_or(|(at, _)| now.saturating_since(*at) >= self.interval()) {
            self.slices.push_back((now, counts.clone()));
        }
        value
    }

    /// What was told between the last look and the one before.
    #[must_use]
    pub fn recent(&self) -> &LatencyRecent {
        &self.recent
    }

    fn percentile_of(&mut self, now: MonoTime, counts: &LatencyCounts) -> Option<f64> {
        let (_, oldest) = self.slices.front()?;
        let before = oldest.buckets.iter();
        for ((within, now), before) in self.within.iter_mut().zip(&counts.buckets).zip(before) {
            *within = now.saturating_sub(*before);
        }
        let mut known = 0_u64;
        for (at, slice) in &self.slices {
            let run_still = slice.begun.saturating_sub(counts.ended);
            let age = latency_bucket(now.saturating_since(*at));
            if let Some(within) = self.within.get_mut(age) {
                *within = within.saturating_add(run_still.saturating_sub(known));
            }
            known = known.max(run_still);
        }
        let all = self.within.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        if all == 0 {
            return None;
        }
        let rank = as_f64(all) * self.percentile;
        let mut below = 0.0;
        for (bucket, count) in self.within.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = as_f64(*count);
            if below + count >= rank {
                let (from, to) = (begins_at(bucket), begins_at(bucket.saturating_add(1)));
                return Some(from + (to - from) * ((rank - below) / count).clamp(0.0, 1.0));
            }
            below += count;
        }
        None
    }
}

fn as_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    #[test]
    fn a_bucket_begins_where_the_one_before_ends_and_is_narrow() {
        for micros in (0..100_000).step_by(7).chain([3_599_999_999]) {
            let latency = Duration::from_micros(micros);
            let bucket = latency_bucket(latency);
            let (from, to) = (begins_at(bucket), begins_at(bucket + 1));
            let value = latency.as_secs_f64();
            assert!(from <= value && value < to, "{micros} in {from}..{to}");
            assert!(to - from <= (from / 31.9).max(1.1e-6), "{micros} in {from}..{to}");
        }
        assert_eq!(latency_bucket(Duration::MAX), LATENCY_BUCKETS - 1);
    }

    #[test]
    fn the_percentile_is_of_the_last_window_only() {
        let mut window = LatencyWindow::new(Duration::from_secs(1), 0.99);
        let mut counts = LatencyCounts::default();
        assert_eq!(window.look(at(0), &counts), None);
        let count = |counts: &mut LatencyCounts, ms, of| {
            for _ in 0..of {
                counts.begun += 1;
                counts.ended += 1;
                counts.count(Duration::from_millis(ms));
            }
        };
        count(&mut counts, 2, 985);
        count(&mut counts, 80, 15);
        let slow = window.look(at(100), &counts).unwrap();
        assert!((0.078..0.083).contains(&slow), "{slow}");
        let (took, capped) = (window.recent().took(1.0), window.recent().took(0.01));
        assert!((3.1..3.25).contains(&took), "985 of 2 ms and 15 of 80: {took}");
        assert!((2.1..2.15).contains(&capped), "none for more than 10 ms: {capped}");
        for ms in (200..=1_100).step_by(100) {
            count(&mut counts, 2, 100);
            assert!(window.look(at(ms), &counts).is_some());
        }
        count(&mut counts, 2, 100);
        let fast = window.look(at(1_200), &counts).unwrap();
        assert!((0.0019..0.0021).contains(&fast), "the slow ones have left the window: {fast}");
        for ms in (1_300..3_000).step_by(100) {
            window.look(at(ms), &counts);
        }
        assert_eq!(window.look(at(3_000), &counts), None, "nobody is at work");
        assert!(window.slices.len() <= 22);
    }

    #[test]
    fn a_server_that_freezes_does_not_look_idle() {
        let mut window = LatencyWindow::new(Duration::from_secs(5), 0.99);
        let mut counts = LatencyCounts { begun: 8, ..LatencyCounts::default() };
        let mut values = Vec::new();
        for ms in (0..20_000).step_by(250) {
            values.extend(window.look(at(ms), &counts));
        }
        assert!(values.is_sorted(), "it waits ever longer: {values:?}");
        let last = values.last().unwrap();
        assert!((4.9..5.6).contains(last), "for the window at least: {last}");
        counts.ended = 8;
        assert_eq!(window.look(at(20_000), &counts), None);
    }
}
