//! The size of the usual large statement: the mean over rows of what they came with.

use std::time::Duration;

use super::Pace;

/// It is remembered for so many of them at least: not for so many statements, since between two
/// large ones there may be a thousand small ones.
const COSTS: f64 = 4.0;

/// A large statement fills the window for so many times what the usual one takes at most: the mean
/// over rows is a part of it, beside apps that have the rest in small ones.
const FULL_FOR: f64 = 4.0;

/// And for this part of the threshold. Where the usual one takes more, what comes behind it makes it
/// longer that the lag is too high.
const FULL_FOR_MAX: f64 = 0.5;

/// No more than this part of the usual large one is small beside it.
const SMALL: f64 = 0.5;

/// Sizes of admissions, decaying: their sum and the sum of their squares.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    costs: f64,
    squares: f64,
}

impl Sizes {
    /// Another one, where they are remembered for so many rows.
    pub(super) fn remember(&mut self, cost: f64, memory: f64) {
        let memory = memory.max(COSTS * cost).max(1.0);
        let left = (-cost / memory).exp();
        self.costs = self.costs * left + cost;
        self.squares = self.squares * left + cost * cost;
    }

    /// In rows.
    pub(super) fn usual(&self) -> f64 {
        if self.costs > 0.0 { self.squares / self.costs } else { 1.0 }
    }
}

impl Pace {
    /// For how long a large statement may fill the window before one of this cost. Before another
    /// large one for no time: that would go behind it, and what both leave is known too late.
    pub(crate) fn full_for(&self, cost: f64) -> Duration {
        let usual = self.sizes.usual();
        let takes = usual / self.rate().unwrap_or(f64::INFINITY);
        let most = FULL_FOR_MAX * self.threshold.as_secs_f64();
        if cost > SMALL * usual || takes > most {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64((FULL_FOR * takes).min(most)).unwrap_or_default()
    }
}
