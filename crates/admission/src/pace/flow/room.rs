//! Whether there is room for a statement.
//!
//! The window bounds what is on its way, for statements that are small beside it. One that is not
//! goes by the clock. What matters is the lag that it makes: what is ahead of it when it commits, and
//! itself. What is ahead is what is on its way and not applied ([`super::busy`]), and that shrinks
//! until it commits. Counted as what is not acknowledged it is up to 0.35 s more, by chance; a bound
//! that allows for as much of it as there may be lets two in at a time where there is none, and one
//! that does not leaves the replica idle behind each.
//!
//! Where transactions of seconds run, the window allows for what the replica applies until they
//! commit. That is theirs: short statements that take their place write at once. So what is to be
//! applied already has a bound of its own, by what the replica applies until the statement in
//! question commits.
//!
//! One that takes about the threshold cannot stay below it. It goes when next to nothing will be
//! ahead of it; and one that takes more, when next to nothing is on its way. So it is where work
//! runs for long: nobody can know when it commits.

use super::{Aim, Flow, acknowledging, counts_for, later};
use crate::MonoTime;
use crate::pace::ledger::{Cost, Ledger};

/// The window has room for this part of the longest time that acknowledging takes. It is at most
/// heartbeat and probe interval, and half of them on the mean.
const ACKNOWLEDGED: f64 = 0.85;

/// The smallest window, in rows.
const WINDOW_MIN: f64 = 4.0;

/// A statement larger than the window may bring what is on its way up to this part of the
/// threshold.
const HARD: f64 = 0.95;

/// What has committed and is not applied, when a statement commits: this part of the threshold at most.
/// A lag of a fifth of it and more is aimed for, and rates are never exact.
const COMMITTED: f64 = 0.4;

/// So little of the window that nothing is on its way.
const NOTHING: f64 = 0.05;

/// A statement of this part of the window and more goes by the clock, unless it takes so many
/// thresholds.
const LARGE: f64 = 0.3;
const LARGE_MAX: f64 = 1.2;

/// A statement that goes by the clock may make a lag of this part of the threshold: the replica is not
/// always as fast as usual.
pub(super) const LARGE_HARD: f64 = 0.9;

impl Flow {
    /// Whether work of this cost fits into the window.
    pub(in crate::pace) fn has_room(
        &self,
        ledger: &Ledger,
        aim: &Aim,
        cost: Cost,
        now: MonoTime,
    ) -> bool {
        let aim = &self.own(aim);
        let Some(shown) = self.shown else { return true };
        let outstanding = ledger.outstanding(self.acked, now, counts_for(aim));
        let window = self.window(aim);
        let least = LARGE * window;
        let most = LARGE_MAX * self.rate * aim.threshold;
        // What is charged for fear makes nothing large: the clock has no speed for it.
        let large = (least..=most).contains(&(cost.rows - cost.feared));
        if aim.runs_short() && large {
            let asked = (shown, cost.rows, now);
            return self.has_room_by_the_clock(ledger, aim, asked, outstanding);
        }
        let hard = (self.rate * (HARD * aim.threshold + self.cover(aim))).max(window);
        let fits = outstanding + cost.rows <= hard || outstanding <= window * NOTHING;
        outstanding < window && fits && self.commits_in_time(ledger, aim, cost)
    }

    /// Whether so little is to be applied when it commits.
    fn commits_in_time(&self, ledger: &Ledger, aim: &Aim, cost: Cost) -> bool {
        let Some(lasts) = cost.lasts else { return true };
        let acknowledged_in = self.way(aim) - aim.service;
        let applied_in = COMMITTED * aim.threshold + acknowledged_in + lasts;
        ledger.unacknowledged(self.acked) <= self.rate * applied_in + aim.lump
    }

    /// Whether the window is full of what is known. What was charged for fear is on its way as long
    /// as nobody knows better, and whoever waits for that tells nothing of the rate.
    pub(in crate::pace) fn is_full(&self, ledger: &Ledger, aim: &Aim, now: MonoTime) -> bool {
        let aim = &self.own(aim);
        let late = counts_for(aim);
        let known = ledger.outstanding(self.acked, now, late) - ledger.feared(now, late);
        self.shown.is_some() && known >= self.window(aim)
    }

    fn has_room_by_the_clock(
        &self,
        ledger: &Ledger,
        aim: &Aim,
        (shown, cost, now): (u64, f64, MonoTime),
        outstanding: f64,
    ) -> bool {
        let window = self.window(aim);
        let base = self.base.seconds(acknowledging(aim));
        let arrived_at = ledger.completed_after(shown).map(|at| later(at, base));
        let applies_for = arrived_at.map_or(0.0, |at| self.busy.since(later(now, base), at));
        // A rate that grew while there was nothing to try it on may be more than there is.
        let applied = self.rate.min(self.busy.per_s()) * applies_for;
        let left = (ledger.unacknowledged(self.acked) - applied).max(0.0);
        let running = outstanding - ledger.unacknowledged(self.acked);
        // Until it commits, as much is applied as the replica can.
        let until_commit = self.rate * aim.service;
        let hard = self.rate * (LARGE_HARD * aim.threshold - base) + until_commit;
        let fits = outstanding < window && running + left + cost <= hard;
        fits || running + (left - until_commit).max(0.0) <= window * NOTHING
    }

    /// Work on its way from which on nothing is admitted.
    pub(super) fn window(&self, aim: &Aim) -> f64 {
        let unseen = (1.0 - ACKNOWLEDGED) * acknowledging(aim);
        (self.rate * (self.allowed(aim) + self.way(aim) - unseen)).max(WINDOW_MIN)
    }
}
