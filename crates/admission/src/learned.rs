//! What a controller has found out and another may begin with: after a restart the replicas are
//! what they were, and a rate that is found anew from the first guess costs seconds of waiting.
//!
//! An old rate is a worse one. It counts for half with every [`HALVED_AFTER`] of its age, three
//! times at most, as one does that was not in use (RFC 7661): what was true ten minutes ago is then
//! soon found again, and is no flood if it is not true any more.

use std::time::Duration;

use crate::{AppKey, DigestKey};

/// The age at which a rate is half of what it was, and how often it is halved at most.
const HALVED_AFTER: Duration = Duration::from_secs(10);
const HALVINGS_MAX: f64 = 3.0;

/// What has been found out about a cluster. All costs are in rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    /// Rows a second that the slowest replica was found to apply; `None`: nothing was found yet.
    pub rows_per_s: Option<f64>,
    /// The mean time from an admission to its completion, over rows.
    pub service: Duration,
    /// What statements of a digest cost, the most expensive first.
    pub digests: Vec<(DigestKey, f64)>,
    /// What statements of an app cost, and the part of them whose digest was new.
    pub apps: Vec<(AppKey, f64, f64)>,
}

impl Learned {
    /// The rate to begin with, `age` later.
    pub(crate) fn rate_after(&self, age: Duration) -> Option<f64> {
        let halvings = age.as_secs_f64() / HALVED_AFTER.as_secs_f64();
        let rate = self.rows_per_s.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        Some(rate * 0.5_f64.powf(halvings.min(HALVINGS_MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_worth_the_less_the_older_it_is() {
        let learned = Learned { rows_per_s: Some(8_000.0), ..Learned::default() };
        let after = |s| learned.rate_after(Duration::from_secs(s)).unwrap();
        assert_eq!((after(0), after(10), after(20)), (8_000.0, 4_000.0, 2_000.0));
        assert_eq!((after(30), after(86_400)), (1_000.0, 1_000.0), "three times at most");
    }

    #[test]
    fn a_rate_that_makes_no_sense_is_none() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            let learned = Learned { rows_per_s: rate, ..Learned::default() };
            assert_eq!(learned.rate_after(Duration::ZERO), None);
        }
    }
}
