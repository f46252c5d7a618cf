//! How long work runs at the primary before it is committed.

use std::time::Duration;

/// It is remembered for so much of it, as time at the rate, and for so many of the largest statements
/// of late at least. That is the same for all: were it longer for large ones alone, their rows would
/// count for less than those of the small.
const MEMORY: f64 = 2.0;
const COSTS: f64 = 4.0;

/// How large the largest was is forgotten down to 1 ÷ e in so much time at the rate, if not before: one
/// that was larger than any transaction is not to be all that is remembered.
const LATELY: f64 = 60.0;

/// Work that ran for longer was not at work: its client kept it open.
const MAX: Duration = Duration::from_secs(30);

/// What is found running is no longer than so many times the mean.
const LONGER: f64 = 10.0;

/// Seconds from admission to completion, the mean over rows; and of their squares.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Served {
    mean: f64,
    squares: f64,
    /// The largest of late, in rows.
    largest: f64,
}

impl Served {
    /// Work of this cost has completed, after so long, at such a rate.
    pub(super) fn handle(&mut self, took: Duration, cost: f64, rate: f64) {
        let took = took.min(MAX).as_secs_f64();
        let largest = self.largest.max(cost);
        let part = cost / (rate * MEMORY).max(COSTS * largest).max(1.0);
        let forgotten = part.max(cost / (rate * LATELY).max(1.0));
        self.largest = cost.max(largest * (-forgotten).exp());
        self.mean += part * (took - self.mean);
        self.squares += part * (took * took - self.squares);
    }

    /// What another process had found out, where this one knows nothing.
    pub(super) fn begin_with(&mut self, mean: Duration) {
        if self.mean <= 0.0 {
            self.mean = mean.min(MAX).as_secs_f64();
            self.squares = self.mean * self.mean;
        }
    }

    /// The mean over rows, in seconds.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// How long that runs which is found running, in seconds: it is found the longer it runs. Of a
    /// transaction of seconds beside a thousand short statements, these are the mean over rows. What is
    /// so rare that it makes next to nothing of the mean is none of it any more.
    pub(super) fn running(&self) -> f64 {
        if self.mean > 0.0 { (self.squares / self.mean).min(LONGER * self.mean) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_running_is_the_transaction_of_seconds() {
        let mut served = Served::default();
        for _ in 0..400 {
            served.handle(Duration::from_secs(2), 100.0, 1_000.0);
            served.handle(Duration::ZERO, 100.0, 1_000.0);
        }
        assert!((0.9..1.1).contains(&served.mean()), "{served:?}");
        assert!((served.running() - 2.0).abs() < 1e-6, "{served:?}");
        for _ in 0..400 {
            served.handle(Duration::from_millis(1), 100.0, 1_000.0);
        }
        assert!(served.running() < 0.011, "it is forgotten: {served:?}");
        let mut begun = Served::default();
        assert_eq!(begun.running(), 0.0);
        begun.begin_with(Duration::from_secs(3));
        begun.begin_with(Duration::from_secs(9));
        assert_eq!((begun.mean(), begun.running()), (3.0, 3.0));
    }

    #[test]
    fn a_row_counts_as_much_in_a_transaction_as_in_a_small_statement() {
        let mut served = Served::default();
        let mut sum = 0.0;
        for n in 0..40 {
            served.handle(Duration::from_secs(5), 7_000.0, 8_000.0);
            for _ in 0..1_400 {
                served.handle(Duration::ZERO, 5.0, 8_000.0);
                sum += if n < 20 { 0.0 } else { served.mean() };
            }
        }
        let mean = sum / f64::from(20 * 1_400);
        assert!((2.2..2.8).contains(&mean), "half of the rows took five seconds: {mean}");
    }

    #[test]
    fn a_load_of_half_a_minute_is_forgotten_within_two() {
        let mut served = Served::default();
        served.handle(Duration::from_secs(30), 30_000.0, 1_000.0);
        assert!(served.mean() > 7.0, "{served:?}");
        for _ in 0..120_000 {
            served.handle(Duration::from_millis(10), 1.0, 1_000.0);
        }
        assert!(served.mean() < 0.5, "{served:?}");
    }
}
