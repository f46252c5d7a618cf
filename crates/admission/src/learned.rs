//! What a controller has found out and another may begin with: after a restart the replicas are
//! what they were, and a rate that is found anew from the first guess costs seconds of waiting.
//!
//! An old rate is a worse one ([`crate::aged`]).

use std::time::Duration;

use crate::aged::aged;
use crate::{AppKey, DigestKey};

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
    /// The rate to begin with at this threshold of the lag, `age` later.
    pub(crate) fn rate_after(&self, age: Duration, threshold: Duration) -> Option<f64> {
        let rate = self.rows_per_s.filter(|rate| rate.is_finite() && *rate > 0.0)?;
        Some(aged(rate, age, threshold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_makes_no_sense_is_none() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            let learned = Learned { rows_per_s: rate, ..Learned::default() };
            assert_eq!(learned.rate_after(Duration::ZERO, Duration::from_secs(1)), None);
        }
    }
}
