//! How the rate follows what is delivered.
//!
//! Theory. A higher sample is followed at once, for it is a lower bound of what the replica can; a lower one
//! with a time constant, for a pause is no lower capacity. Where transactions of seconds run it is left to
//! chance when they commit: a second's worth of acknowledgements is 15 % more or less, and there is the end of
//! a queue in each. A rate that follows such samples swings with them, and with it the window, which is as
//! many seconds at work as transactions take: a rate that falls by a tenth stops admissions for half a second,
//! and this hole comes back each time that the pipeline has gone round. So there the rate is to be the mean of
//! the samples, and both are followed alike.
//!
//! Beside other controllers a higher sample is as often luck as it is more that the replica can, and is never
//! followed at once. If then a lower one is followed faster, the sum of all rates is below what they deliver.
//! Only where the queue has taken much of the room that there is, is that what is wanted.

use super::{Aim, Flow, RATE_MAX, RATE_MIN, acknowledging};

/// The time constant with which the rate follows a lower sample, in seconds.
const DOWN: f64 = 3.5;

/// A single sample raises the rate at most so many times.
const STEP_UP: f64 = 1.5;

/// A usual large transaction that takes this part of the threshold is no chance: it is what the lag is made of.
const LARGE: f64 = 0.25;

/// Beside others the rate falls faster from this part of what the way leaves of the threshold on.
const MUCH: f64 = 0.5;

impl Flow {
    /// A sample of the delivery rate, and what it is of the time in which the replica had work of
    /// ours. While a queue stands and more would have come, the replica is the bottleneck and the
    /// latter `is_true`; else the sample is a lower bound.
    pub(super) fn follow(
        &mut self,
        (sample, busy): (f64, f64),
        since: f64,
        is_true: bool,
        aim: &Aim,
    ) {
        let left = (-since / DOWN).exp();
        let towards = |rate: f64, sample: f64| rate + (1.0 - left) * (sample - rate);
        if sample > self.rate {
            let higher = sample.min(self.rate * STEP_UP);
            let slowly = aim.others.is_some() || self.is_chance(aim);
            self.rate = if slowly { towards(self.rate, higher) } else { higher.min(RATE_MAX) };
            self.measured = true;
        } else if is_true && sample > 0.0 {
            let slowly = busy > self.rate || self.is_chance(aim) && !self.is_much(aim);
            let lower = if slowly { towards(self.rate, busy) } else { busy.max(self.rate * left) };
            self.rate = lower.max(RATE_MIN);
            self.measured = true;
        }
    }

    /// Whether it is left to chance how much commits in the time of a sample. As long as nobody knows how
    /// far the rate goes, each sample may tell.
    fn is_chance(&self, aim: &Aim) -> bool {
        let is_known = aim.others.is_some() || self.found.is_found();
        is_known && self.lumps_are_small(aim) && aim.running > acknowledging(aim)
    }

    /// Whether the lag is made of many transactions.
    pub(super) fn lumps_are_small(&self, aim: &Aim) -> bool {
        self.lump_time(aim) <= LARGE * aim.threshold
    }

    fn is_much(&self, aim: &Aim) -> bool {
        let rest = aim.threshold - self.standing(aim);
        aim.others.is_some() && self.queue(aim) > MUCH * rest
    }
}

#[cfg(test)]
mod tests {
    use super::super::growth::tests::aim;
    use super::*;
    use crate::MonoTime;

    /// A rate of 1,000 that was found, behind so many samples in turn, a quarter of a second apart, in the
    /// midst of work that runs for so many seconds.
    fn behind(samples: [f64; 2], aim: &Aim, lag: f64) -> f64 {
        let mut flow = Flow::new(MonoTime::ZERO, Some(1_000.0));
        for _ in 0..2 {
            flow.found.handle(MonoTime::ZERO, Some(1_000.0), true);
        }
        flow.lag = lag;
        for sample in samples.into_iter().cycle().take(80) {
            flow.follow((sample, sample), 0.25, true, aim);
        }
        flow.rate()
    }

    #[test]
    fn where_chance_says_what_commits_the_rate_is_the_mean() {
        let samples = [1_200.0, 800.0];
        let near = |rate: f64, expected: f64| (rate - expected).abs() < 30.0;
        let alone = behind(samples, &aim(5.0), 0.1);
        assert!(near(alone, 1_000.0), "{alone}");
        let short = behind(samples, &aim(0.0), 0.1);
        assert!(!near(short, 1_000.0) && short > 1_050.0, "the higher one at once: {short}");
        let large = behind(samples, &Aim { lump: 500.0, ..aim(5.0) }, 0.1);
        assert!(large > 1_050.0, "half a threshold's work each: {large}");
        let others = Aim { others: Some(1_000.0), ..aim(5.0) };
        let beside = behind(samples, &others, 0.1);
        assert!(near(beside, 1_000.0), "{beside}");
        let much = behind(samples, &others, 0.8);
        assert!(much < 900.0, "and less where the queue has taken the room: {much}");
    }

    #[test]
    fn until_the_rate_is_found_each_sample_may_tell() {
        let mut flow = Flow::new(MonoTime::ZERO, Some(1_000.0));
        flow.follow((1_400.0, 1_400.0), 0.25, false, &aim(5.0));
        assert_eq!(flow.rate(), 1_400.0);
    }
}
