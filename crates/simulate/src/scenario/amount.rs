//! A rate that may change over time.

use std::f64::consts::TAU;
use std::time::Duration;

use admission::MonoTime;

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

    /// When it steps next; a sine never does.
    #[must_use]
    pub fn next_step(&self, now: MonoTime) -> Option<MonoTime> {
        match self {
            Self::Steps(steps) => steps.iter().map(|(from, _)| *from).find(|from| *from > now),
            Self::Sine { .. } => None,
        }
    }
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
        assert_eq!(amount.next_step(at(0)), Some(at(10)));
        assert_eq!(amount.next_step(at(10)), None);
    }

    #[test]
    fn a_sine_swings_between_its_ends() {
        let amount = Amount::Sine { min: 200.0, max: 1_000.0, period: Duration::from_secs(40) };
        let close = |now, per_s: f64| (amount.at(now) - per_s).abs() < 1e-6;
        assert!(close(at(0), 600.0) && close(at(10), 1_000.0) && close(at(30), 200.0));
    }
}
