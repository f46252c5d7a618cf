//! A rate that may change over time.

use std::f64::consts::TAU;
use std::time::Duration;

use admission::MonoTime;

use crate::TICK;

/// Rows a second, over time.
#[derive(Debug, Clone, PartialEq)]
pub enum Amount {
    /// From each time on, so much. The first is at the origin, times grow.
    Steps(Vec<(MonoTime, f64)>),
    /// A sine that begins half-way up.
    Sine {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
        /// From one top to the next.
        period: Duration,
    },
}

impl Amount {
    /// The same all the time.
    #[must_use]
    pub fn constant(per_s: f64) -> Self {
        Self::Steps(vec![(MonoTime::ZERO, per_s)])
    }

    /// How much it is.
    #[must_use]
    pub fn at(&self, now: MonoTime) -> f64 {
        match self {
            Self::Steps(steps) => {
                let begun = steps.iter().take_while(|(from, _)| *from <= now);
                begun.last().map_or(0.0, |(_, per_s)| *per_s)
            }
            Self::Sine { min, max, period } => {
                let passed = now.saturating_since(MonoTime::ZERO).as_secs_f64();
                let phase = TAU * passed / period.as_secs_f64();
                min + (max - min) * (1.0 + phase.sin()) / 2.0
            }
        }
    }

    /// When so many rows have passed that begin at `from`; [`MonoTime::MAX`] if they have not by
    /// `end`, or a good while later.
    #[must_use]
    pub fn passed_at(&self, from: MonoTime, rows: f64, end: MonoTime) -> MonoTime {
        let (mut at, mut left) = (from, rows);
        while left > 0.0 {
            if at > end {
                return MonoTime::MAX;
            }
            let per_s = self.at(at);
            let done = if per_s > 0.0 { later(at, left / per_s) } else { MonoTime::MAX };
            match self.same_until(at) {
                Some(change) if change < done => {
                    left -= per_s * change.saturating_since(at).as_secs_f64();
                    at = change;
                }
                Some(_) | None => return done,
            }
        }
        at
    }

    /// Up to when it may be taken for what it is now; `None`: for ever.
    fn same_until(&self, now: MonoTime) -> Option<MonoTime> {
        match self {
            Self::Steps(steps) => steps.iter().map(|(from, _)| *from).find(|from| *from > now),
            Self::Sine { max, .. } => (*max > 0.0).then(|| now.saturating_add(TICK)),
        }
    }
}

/// The time so many seconds later.
fn later(now: MonoTime, seconds: f64) -> MonoTime {
    Duration::try_from_secs_f64(seconds).map_or(MonoTime::MAX, |wait| now.saturating_add(wait))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn a_step_counts_from_its_time_on() {
        let amount = Amount::Steps(vec![(at(0), 5.0), (at(10), 7.0)]);
        assert_eq!([at(0), at(9), at(10), at(99)].map(|now| amount.at(now)), [5.0, 5.0, 7.0, 7.0]);
    }

    #[test]
    fn rows_pass_at_the_rate_of_each_moment() {
        let amount = Amount::Steps(vec![(at(0), 5.0), (at(10), 0.0), (at(20), 1.0)]);
        assert_eq!(amount.passed_at(at(8), 10.0, at(999)), at(10));
        assert_eq!(amount.passed_at(at(8), 13.0, at(999)), at(23));
        assert_eq!(amount.passed_at(at(12), 1.0, at(999)), at(21));
        assert_eq!(Amount::constant(0.0).passed_at(at(0), 1.0, at(999)), MonoTime::MAX);
        let sine = Amount::Sine { min: 0.0, max: 2.0, period: Duration::from_secs(10) };
        let passed = sine.passed_at(at(0), 100.0, at(999)).saturating_since(at(0)).as_secs_f64();
        assert!((passed - 100.0).abs() < 0.1, "{passed}");
        let none = Amount::Sine { min: 0.0, max: 0.0, period: Duration::from_secs(10) };
        assert_eq!(sine.passed_at(at(0), 100.0, at(50)), MonoTime::MAX, "not by the end");
        assert_eq!(none.passed_at(at(0), 1.0, at(999)), MonoTime::MAX);
    }

    #[test]
    fn a_sine_swings_between_its_ends() {
        let amount = Amount::Sine { min: 200.0, max: 1_000.0, period: Duration::from_secs(40) };
        let close = |now, per_s: f64| (amount.at(now) - per_s).abs() < 1e-6;
        assert!(close(at(0), 600.0) && close(at(10), 1_000.0) && close(at(30), 200.0));
    }
}
