//! How long the lag stays where it is too high.

use super::{Flow, seconds};
use crate::MonoTime;
use crate::pace::ledger::Ledger;

/// The slope of the lag is a mean over so many seconds.
const MEMORY: f64 = 0.5;

/// From so many seconds a second on it falls.
const FALLS: f64 = 0.2;

/// Acknowledgements that come together say nothing about a slope.
const APART: f64 = 0.01;

impl Flow {
    /// A heartbeat was seen at `at`, and the lag was `before`.
    pub(super) fn note_slope(&mut self, before: f64, at: MonoTime) {
        let Some(last) = self.acks.back() else { return };
        let since = seconds(last.at, at).max(APART);
        let newest = 1.0 - (-since / MEMORY).exp();
        self.slope += newest * ((self.lag - before) / since - self.slope);
    }

    /// How long the lag takes to fall by so many seconds: as it falls now; or, while it does not,
    /// about as long as it is too high, and as what was admitted and is not applied takes.
    pub(in crate::pace) fn falls_in(&self, ledger: &Ledger, excess: f64) -> f64 {
        if self.slope <= -FALLS {
            return excess / -self.slope;
        }
        let per_s = if self.delivered > 0.0 { self.delivered.min(self.rate) } else { self.rate };
        excess.max(ledger.unacknowledged(self.acked) / per_s)
    }

    /// How long what was admitted and is not applied takes, in seconds.
    pub(in crate::pace) fn applies_for(&self, ledger: &Ledger) -> f64 {
        ledger.unacknowledged(self.acked) / self.rate
    }
}
