//! The rate of a replica that only tells its lag: it is steered by that.

use super::{Aim, Flow, RATE_MAX, RATE_MIN};

/// Growth a second of a rate that is steered by the lag alone.
const BLIND_GROWTH: f64 = 0.1;

/// Fall a second of such a rate, for lag over the target by the target.
const BLIND_FALL: f64 = 0.3;

/// Replicas that tell their lag themselves tell it in whole seconds: less is not look.
const BLIND_TARGET_MIN: f64 = 1.0;

impl Flow {
    /// The replica only tells its lag: there are no samples.
    pub(super) fn steer_blind(&mut self, since: f64, aim: &Aim) {
        let target = self.target(aim).max(BLIND_TARGET_MIN.min(aim.threshold / 2.0));
        let since = since.min(1.0);
        if self.lag > target {
            let excess = (self.lag / target - 1.0).min(2.0);
            self.rate = (self.rate * (-BLIND_FALL * excess * since).exp()).max(RATE_MIN);
            self.measured = true;
        } else if self.limited.take().is_some() {
            self.rate = (self.rate * (1.0 + BLIND_GROWTH * since)).min(RATE_MAX);
        }
    }
}
