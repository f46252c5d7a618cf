//! How many statements the protected app has in flight. [`super`] has the law.

use std::time::Duration;

use super::limit::{GAP_MAX, SMOOTHING};
use crate::MonoTime;

/// Over how many seconds the usual is taken.
const USUAL: f64 = 10.0;

/// More than usual is so many standard deviations of a count by chance more, and this part.
const DEVIATIONS: f64 = 4.0;
const PART: f64 = 0.1;

/// What has begun to grow is followed for so long, however little comes on top.
const FOLLOWED_FOR: Duration = Duration::from_secs(2);

/// Statements of the app, as they end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    at: MonoTime,
    known: Option<Known>,
    follows_until: MonoTime,
}

/// Statements a second, latest and usual, and for how many seconds one runs.
#[derive(Debug, Clone, Copy)]
struct Known {
    latest: f64,
    usual: f64,
    runs: f64,
}

/// By how much an app has grown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Growth {
    /// So many more of its statements are in flight on average.
    pub(super) in_flight: f64,
    /// The part of its statements that were not there before.
    pub(super) part: f64,
}

impl Demand {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { at: now, known: None, follows_until: now }
    }

    /// So many more have ended, which ran for so many seconds together. Growth, if it is not chance.
    pub(super) fn add(&mut self, now: MonoTime, (all, ran): (f64, f64)) -> Option<Growth> {
        let passed = now.saturating_since(self.at).as_secs_f64();
        self.at = now;
        // Over a gap nobody knows when they ended.
        if passed <= 0.0 || passed > GAP_MAX || all <= 0.0 {
            return None;
        }
        let (per_s, runs) = (all / passed, ran / all);
        let Some(known) = &mut self.known else {
            self.known = Some(Known { latest: per_s, usual: per_s, runs });
            return None;
        };
        known.latest += passed / (SMOOTHING + passed) * (per_s - known.latest);
        known.runs += passed / USUAL * (runs - known.runs);
        let more = known.latest - known.usual;
        let by_chance = (known.usual / (2.0 * SMOOTHING)).sqrt();
        if more > DEVIATIONS * by_chance + PART * known.usual {
            self.follows_until = now.saturating_add(FOLLOWED_FOR);
        }
        if more > 0.0 && now < self.follows_until {
            known.usual = known.latest;
            return Some(Growth { in_flight: more * known.runs, part: more / known.latest });
        }
        known.usual += passed / (USUAL + passed) * (per_s - known.usual);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four looks a second, at each as many statements as `told` says; each runs for 10 ms.
    fn grown(demand: &mut Demand, from: u64, looks: u64, told: impl Fn(u64) -> f64) -> (f64, f64) {
        let (mut in_flight, mut left) = (0.0, 1.0);
        for look in (from..).zip(0..looks).map(|(look, _)| look) {
            let all = told(look);
            let now = MonoTime::from_nanos(look.saturating_mul(250_000_000));
            if let Some(growth) = demand.add(now, (all, all * 0.01)) {
                in_flight += growth.in_flight;
                left *= 1.0 - growth.part;
            }
        }
        (in_flight, left)
    }

    fn known() -> Demand {
        let mut demand = Demand::new(MonoTime::ZERO);
        grown(&mut demand, 1, 100, |_| 75.0);
        demand
    }

    #[test]
    fn an_app_that_doubles_has_grown_by_as_much_within_two_seconds() {
        let mut demand = known();
        let (at_once, _) = grown(&mut demand, 101, 3, |_| 150.0);
        assert!(at_once > 1.0, "{at_once} of 3 after 0.75 s");
        let (later, left) = grown(&mut demand, 104, 9, |_| 150.0);
        assert!((2.5..3.1).contains(&(at_once + later)), "{at_once} and {later}");
        assert!(left > 0.5, "no more than the half: {left}");
        assert_eq!(grown(&mut demand, 113, 40, |_| 150.0).0, 0.0, "once only");
    }

    #[test]
    fn what_comes_by_chance_is_no_growth_and_neither_is_what_was_there_before_a_gap() {
        let mut demand = known();
        let swings = |look: u64| if look % 8 < 4 { 60.0 } else { 90.0 };
        assert_eq!(grown(&mut demand, 101, 200, swings).0, 0.0);
        assert_eq!(grown(&mut demand, 301, 20, |_| 0.0).0, 0.0);
        assert_eq!(grown(&mut demand, 400, 40, |_| 75.0).0, 0.0, "it was away");
        let mut few = Demand::new(MonoTime::ZERO);
        grown(&mut few, 1, 100, |look| if look % 4 == 0 { 1.0 } else { 0.0 });
        let some = grown(&mut few, 101, 40, |look| if look % 2 == 0 { 1.0 } else { 0.0 });
        assert_eq!(some.0, 0.0, "two a second instead of one");
    }
}
