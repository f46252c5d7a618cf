//! What became of a cluster's statements in all, so cheap to read that it is read every second: the
//! exported families have a series for each app and rule, and adding them up is work for a scraper.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::core::Collector;

use super::Telemetry;

/// Counts since the process started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pulse {
    /// Statements that the server has answered.
    pub served: u64,
    /// Refused; in mode `observe`: would have been held.
    pub refused: u64,
    /// Waits that are over, by how long they took: what [`quantile`] reads.
    pub waits: Vec<u64>,
}

/// The counts of one cluster that nothing else has: of what waited, and of what was refused.
#[derive(Debug)]
pub(super) struct Beats {
    refused: AtomicU64,
    waits: Vec<AtomicU64>,
}

/// Those of all clusters, by their names.
#[derive(Debug, Default)]
pub(super) struct Pulses(Mutex<HashMap<Box<str>, Arc<Beats>>>);

impl Telemetry {
    /// What became of the statements of this cluster.
    pub fn pulse(&self, cluster: &str) -> Pulse {
        let beats = self.pulses.of(cluster);
        let waits = beats.waits.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let refused = beats.refused.load(Ordering::Relaxed);
        Pulse { served: self.served(cluster), refused, waits }
    }

    /// A few series for each cluster.
    fn served(&self, cluster: &str) -> u64 {
        let families = self.families.backend.collect();
        let metrics = families.iter().flat_map(|family| family.get_metric());
        let own = metrics.filter(|metric| {
            let mut labels = metric.get_label().iter();
            labels.any(|label| label.name() == "cluster" && label.value() == cluster)
        });
        own.map(|metric| metric.get_histogram().get_sample_count()).sum()
    }
}

impl Pulses {
    pub(super) fn of(&self, cluster: &str) -> Arc<Beats> {
        let mut known = self.0.lock();
        if let Some(beats) = known.get(cluster) {
            return Arc::clone(beats);
        }
        let beats = Arc::new(Beats::new());
        known.insert(cluster.into(), Arc::clone(&beats));
        beats
    }
}

impl Beats {
    fn new() -> Self {
        let waits = (0..=BOUNDS).map(|_| AtomicU64::new(0)).collect();
        Self { refused: AtomicU64::new(0), waits }
    }

    pub(super) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn waited(&self, wait: Duration) {
        let seconds = wait.as_secs_f64();
        let place = (0..BOUNDS).position(|place| seconds <= bound(place)).unwrap_or(BOUNDS);
        if let Some(count) = self.waits.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The wait, in seconds, that this part of `waits` did not exceed; `None` where there are none.
/// What is between two bounds is taken for spread evenly.
#[must_use]
pub fn quantile(waits: &[u64], part: f64) -> Option<f64> {
    let all: f64 = waits.iter().map(|count| float(*count)).sum();
    if all <= 0.0 {
        return None;
    }
    let wanted = all * part;
    let mut below = 0.0;
    for (place, count) in waits.iter().enumerate().filter(|(_, count)| **count > 0) {
        let count = float(*count);
        if below + count >= wanted {
            let least = place.checked_sub(1).map_or(0.0, bound);
            // What is longer than all bounds is at least the last.
            let most = bound(place.min(BOUNDS.saturating_sub(1)));
            return Some(least + (most - least).max(0.0) * (wanted - below) / count);
        }
        below += count;
    }
    Some(bound(BOUNDS))
}

/// Bounds of waits: from a millisecond to beyond two hours, each a fifth above the one before.
const BOUNDS: usize = 88;

fn bound(place: usize) -> f64 {
    let place = i32::try_from(place).unwrap_or(i32::MAX);
    0.001 * 1.2_f64.powi(place)
}

fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_a_fifth_off_at_most() {
        let beats = Beats::new();
        for millis in 1..=1_000 {
            beats.waited(Duration::from_millis(millis));
        }
        let waits: Vec<u64> = beats.waits.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        for (part, expected) in [(0.5, 0.5), (0.99, 0.99), (0.1, 0.1)] {
            let is = quantile(&waits, part).unwrap();
            assert!((is / expected - 1.0).abs() < 0.2, "{part}: {is}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[0, 0], 0.5), None);
    }

    #[test]
    fn every_wait_has_a_place() {
        let beats = Beats::new();
        for wait in [Duration::ZERO, Duration::from_secs(3_600), Duration::MAX] {
            beats.waited(wait);
        }
        let waits: Vec<u64> = beats.waits.iter().map(|it| it.load(Ordering::Relaxed)).collect();
        assert_eq!(waits.iter().sum::<u64>(), 3);
        assert!(bound(BOUNDS - 1) > 7_200.0 && quantile(&waits, 1.0).unwrap() > 7_200.0);
    }
}
