//! What a weather was like in one way: figures as the simulator gives them.

use std::time::{Duration, Instant};

use benches::stats::quantile;
use benches::way::Way;
use integration::lag_meter::LagSeries;

use crate::load::Event;

/// The figures of one way.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    pub(crate) way: Way,
    /// While it was counted.
    pub(crate) lag: LagSeries,
    pub(crate) time: Duration,
    /// Rows a second that the replica can apply.
    pub(crate) capacity_per_s: f64,
    /// Rows that it did apply.
    pub(crate) applied: u64,
    pub(crate) job: Met,
    /// Statements of the job that were lost at the takeover and at the kill, where there were both.
    pub(crate) lost: Option<(usize, usize)>,
    /// Who writes little: alone, and beside the job.
    pub(crate) beside: Option<(Met, Met)>,
}

/// What sessions met in some time, added up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Met {
    pub(crate) time: Duration,
    pub(crate) rows: u64,
    /// From when a change was first asked for until it was made, in seconds, sorted.
    pub(crate) took_s: Vec<f64>,
    pub(crate) refused: u32,
    /// When statements were lost.
    pub(crate) lost: Vec<Instant>,
    /// What those were told, in seconds, sorted, who were refused and admitted later.
    told_s: Vec<f64>,
    /// Of these how many took between half of the time that they were told and twice as much.
    told_right: u32,
}

impl Figures {
    /// The part of what the replica could have applied that it did apply.
    pub(crate) fn used(&self) -> f64 {
        per_s(self.applied, self.time) / self.capacity_per_s
    }

    pub(crate) fn applied_per_s(&self) -> f64 {
        per_s(self.applied, self.time)
    }
}

impl Met {
    pub(crate) fn of(events: &[Event], time: Duration) -> Self {
        let mut met = Self { time, ..Self::default() };
        for event in events {
            match *event {
                Event::Done { rows, took } => {
                    met.rows = met.rows.saturating_add(u64::from(rows));
                    met.took_s.push(took.as_secs_f64());
                }
                Event::Refused => met.refused = met.refused.saturating_add(1),
                Event::Lost { at } => met.lost.push(at),
                Event::Admitted { told, after } => {
                    let right = told <= after.saturating_mul(2) && after <= told.saturating_mul(2);
                    met.told_s.push(told.as_secs_f64());
                    met.told_right = met.told_right.saturating_add(u32::from(right));
                }
            }
        }
        met.took_s.sort_unstable_by(f64::total_cmp);
        met.told_s.sort_unstable_by(f64::total_cmp);
        met
    }

    pub(crate) fn rows_per_s(&self) -> f64 {
        per_s(self.rows, self.time)
    }

    /// In seconds.
    pub(crate) fn took(&self, part: f64) -> f64 {
        quantile(&self.took_s, part)
    }

    /// `None` where nobody was refused and admitted later.
    pub(crate) fn told_right(&self) -> Option<f64> {
        let admitted = u32::try_from(self.told_s.len()).unwrap_or(u32::MAX);
        (admitted > 0).then(|| f64::from(self.told_right) / f64::from(admitted))
    }

    /// In seconds, of those who were admitted later.
    pub(crate) fn told(&self, part: f64) -> f64 {
        quantile(&self.told_s, part)
    }

    /// Refusals for each change that was made.
    pub(crate) fn refused_each(&self) -> f64 {
        let done = u32::try_from(self.took_s.len()).unwrap_or(u32::MAX);
        f64::from(self.refused) / f64::from(done.max(1))
    }
}

/// How many of these times were before a moment, and how many were not.
pub(crate) fn split(times: &[Instant], moment: Instant) -> (usize, usize) {
    let before = times.iter().filter(|at| **at < moment).count();
    (before, times.len().saturating_sub(before))
}

/// What of a series lies between two times.
pub(crate) fn between(lag: &LagSeries, from: Duration, to: Duration) -> LagSeries {
    let inside = lag.samples.iter().filter(|(at, _)| (from..to).contains(at));
    LagSeries { samples: inside.copied().collect() }
}

fn per_s(count: u64, time: Duration) -> f64 {
    u32::try_from(count).map_or(f64::NAN, f64::from) / time.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_time_that_was_told_is_right_within_a_factor_of_two() {
        let admitted = |after| Event::Admitted { told: ms(1_000), after: ms(after) };
        let events =
            [Event::Refused, admitted(499), admitted(500), admitted(2_000), admitted(2_001)];
        let met = Met::of(&events, ms(1_000));
        assert_eq!((met.refused, met.told_right()), (1, Some(0.5)));
        assert!((met.told(1.0) - 1.0).abs() < 1e-9);
        assert_eq!(Met::of(&[Event::Refused], ms(1_000)).told_right(), None);
    }

    #[test]
    fn rows_and_times_are_those_of_what_was_done() {
        let done = |rows, took| Event::Done { rows, took: ms(took) };
        let now = Instant::now();
        let lost = Event::Lost { at: now };
        let events = [done(400, 3_000), lost, Event::Refused, done(200, 1_000)];
        let met = Met::of(&events, ms(2_000));
        assert!((met.rows_per_s() - 300.0).abs() < 1e-9);
        assert!((met.took(0.0) - 1.0).abs() < 1e-9 && (met.took(1.0) - 3.0).abs() < 1e-9);
        assert_eq!((met.lost.as_slice(), met.refused), ([now].as_slice(), 1));
        assert_eq!(split(&met.lost, now), (0, 1));
        assert_eq!(split(&met.lost, now + ms(1)), (1, 0));
        assert!((met.refused_each() - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_was_before_and_after_is_not_counted() {
        let samples = (0..5).map(|n| (ms(n * 100), ms(n))).collect();
        let lag = between(&LagSeries { samples }, ms(100), ms(300));
        assert_eq!(lag.samples, [(ms(100), ms(1)), (ms(200), ms(2))]);
    }

    #[test]
    fn used_is_what_was_applied_of_what_could_have_been() {
        let figures = Figures {
            way: Way::Adaptive,
            lag: LagSeries::default(),
            time: ms(10_000),
            capacity_per_s: 1_000.0,
            applied: 9_500,
            job: Met::default(),
            lost: None,
            beside: None,
        };
        assert!((figures.used() - 0.95).abs() < 1e-9);
    }
}
