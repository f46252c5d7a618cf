//! The part of the latest statements that were too slow. [`super`] has the law.

use std::time::Duration;

use crate::MonoTime;

/// So many of those that may be too slow are remembered at least, or one alone would say much.
const ENOUGH: f64 = 5.0;

/// Nothing is remembered for longer, in seconds.
const MEMORY_MAX: f64 = 60.0;

/// Statements and those of them that were too slow, the latest of which count most.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooSlow {
    at: MonoTime,
    all: f64,
    slow: f64,
    /// For how long they are remembered, in seconds: what was told so long ago counts 1/e.
    memory: f64,
}

impl TooSlow {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { at: now, all: 0.0, slow: 0.0, memory: 0.0 }
    }

    /// So many more were told, of which so many were too slow. They are remembered for `memory`, and
    /// for longer if too few are told in it to say how many of `allowed`, a part of one, were.
    pub(super) fn add(
        &mut self,
        now: MonoTime,
        (all, slow): (f64, f64),
        (memory, allowed): (Duration, f64),
    ) {
        let passed = now.saturating_since(self.at).as_secs_f64();
        let by_time = passed / memory.as_secs_f64().max(f64::MIN_POSITIVE);
        let fades = by_time.min(all * allowed / ENOUGH).max(passed / MEMORY_MAX);
        let keep = (-fades).exp();
        self.at = now;
        self.all = self.all * keep + all;
        self.slow = self.slow * keep + slow;
        // How fast they fade varies where one value has several statements and the next has none.
        let faded = passed / fades.max(f64::MIN_POSITIVE);
        self.memory += (1.0 - keep) * (faded - self.memory);
    }

    /// Which part of them was too slow; `None`: there were hardly any.
    pub(super) fn part(&self) -> Option<f64> {
        (self.all >= 1.0).then(|| self.slow / self.all)
    }

    /// For how long they are remembered, in seconds.
    pub(super) fn memory(&self) -> f64 {
        self.memory
    }
}
