//! How fast a contended gate hands out checks.
//!
//! Theory. A gate that has just opened has a crowd in front of it. If all of them ran at once, lag
//! would shoot past the threshold before it can be seen. So checks are handed out at a rate that
//! starts low and doubles every second the gate stays open, until it no longer matters. The rate
//! counts checks, not admissions: a crowd of ratio 0.9 is admitted at a tenth of it.
//!
//! The pacer is a virtual schedule (as in GCRA): `due` is when the next check may be handed out;
//! each check moves it by one interval. A shell whose timer is late hands out the checks it missed,
//! but no more than [`CATCH_UP`] of them, so that a sleeping process does not wake into a burst.

use std::time::Duration;

use crate::{AdaptivePacing, BinaryPacing, MonoTime, Pacing};

/// The pace never ramps beyond this (unless it starts above): a full queue of 10,000 drains in a
/// tenth of a second, and a crowd that never wins costs about one hundredth of a core.
pub(crate) const RELEASE_PER_S_MAX: u32 = 100_000;

/// Shortest time between two runs of one gate's releases: at most 1,000 wake-ups a second.
const TICK: Duration = Duration::from_millis(1);

/// Checks of this time at most are made up for after a late wake-up: a few late ticks of a shell's
/// timer.
const CATCH_UP: Duration = Duration::from_millis(10);

const NANOS_PER_S: u64 = 1_000_000_000;

/// When the next checks of one gate are due.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pacer {
    /// When the next check may be handed out.
    due: MonoTime,
    /// When checks were last handed out.
    ran_at: MonoTime,
}

impl Pacer {
    /// The gate has opened: the first check is due now.
    pub(crate) fn open(&mut self, now: MonoTime) {
        self.due = self.due.max(now);
    }

    /// A run of releases begins: forgets checks missed longer ago than the catch-up.
    pub(crate) fn begin_run(&mut self, now: MonoTime) {
        self.catch_up(now);
        self.ran_at = now;
    }

    /// Forgets checks missed longer ago than the catch-up, without a run.
    pub(crate) fn catch_up(&mut self, now: MonoTime) {
        self.due = self.due.max(now.saturating_sub(CATCH_UP));
    }

    /// Whether another check may be handed out.
    pub(crate) fn is_due(&self, now: MonoTime) -> bool {
        self.due <= now
    }

    /// Whether one may be handed out to somebody who comes when nobody waits: those who come
    /// together do not come in turns.
    pub(crate) fn is_due_soon(&self, now: MonoTime) -> bool {
        self.due <= now.saturating_add(CATCH_UP)
    }

    /// One check has been handed out at `per_s` checks a second.
    pub(crate) fn spend(&mut self, per_s: u32) {
        let interval = NANOS_PER_S.checked_div(u64::from(per_s)).unwrap_or(NANOS_PER_S).max(1);
        self.due = self.due.saturating_add(Duration::from_nanos(interval));
    }

    /// When the next run is worth a wake-up.
    pub(crate) fn next_run(&self) -> MonoTime {
        self.due.max(self.ran_at.saturating_add(TICK))
    }
}

/// How fast rounds are lost at a gate that is paced by the lag, when there is room and only the
/// dice are in the way: jobs of whom each nearly always loses are not let through at the pace for
/// having no other rivals than one another.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rounds {
    /// May be lost now.
    left: f64,
    /// Since when nothing but the dice is waited for, and until when.
    waits: Option<(MonoTime, MonoTime)>,
}

impl Rounds {
    /// A run of releases begins.
    pub(crate) fn begin_run(&mut self, now: MonoTime) {
        match self.waits.take() {
            Some((since, _)) => {
                self.left += ROUNDS_PER_S * now.saturating_since(since).as_secs_f64();
            }
            None => self.left = ROUNDS_AT_ONCE,
        }
    }

    /// Whether so many rounds are lost by now; if not, when they are.
    pub(crate) fn are_lost(&mut self, now: MonoTime, rounds: f64) -> bool {
        // A thousandth of one is none: what is left after sums of fractions.
        if rounds <= self.left + 1e-3 {
            return true;
        }
        let wait = Duration::try_from_secs_f64((rounds - self.left) / ROUNDS_PER_S);
        let wait = wait.unwrap_or(ROUNDS_WAIT_MAX).clamp(TICK, ROUNDS_WAIT_MAX);
        self.waits = Some((now, now.saturating_add(wait)));
        false
    }

    /// So many were lost.
    pub(crate) fn spend(&mut self, rounds: f64) {
        self.left = (self.left - rounds).max(0.0);
    }

    /// When what is waited for is lost.
    pub(crate) fn until(&self) -> Option<MonoTime> {
        self.waits.map(|(_, until)| until)
    }
}

/// Rounds that are lost in a second at most, and at once.
const ROUNDS_PER_S: f64 = 8_000.0;
const ROUNDS_AT_ONCE: f64 = 8.0;

/// It is looked again after this long at the latest.
const ROUNDS_WAIT_MAX: Duration = Duration::from_secs(3_600);

/// Checks a second of a gate that has been open since `open_since`.
pub(crate) fn release_per_s(pacing: Pacing, open_since: MonoTime, now: MonoTime) -> u32 {
    match pacing {
        Pacing::Adaptive(AdaptivePacing { otherwise: BinaryPacing { release_per_s }, .. })
        | Pacing::Binary(BinaryPacing { release_per_s }) => {
            let first = release_per_s.max(1);
            let doublings = u32::try_from(now.saturating_since(open_since).as_secs()).unwrap_or(31);
            let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
            first.saturating_mul(factor).min(RELEASE_PER_S_MAX.max(first))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn the_rate_doubles_every_second_up_to_its_bound() {
        let pacing = Pacing::Binary(BinaryPacing { release_per_s: 1_000 });
        let rates: Vec<u32> = (5..10).map(|s| release_per_s(pacing, at(5), at(s))).collect();
        assert_eq!(rates, [1_000, 2_000, 4_000, 8_000, 16_000]);
        assert_eq!(release_per_s(pacing, at(5), at(60)), RELEASE_PER_S_MAX);
        assert_eq!(release_per_s(pacing, at(0), MonoTime::MAX), RELEASE_PER_S_MAX);
    }

    #[test]
    fn a_rate_that_starts_above_the_bound_stays_and_zero_counts_as_one() {
        let fast = Pacing::Binary(BinaryPacing { release_per_s: 500_000 });
        assert_eq!(release_per_s(fast, at(0), at(9)), 500_000);
        let none = Pacing::Binary(BinaryPacing { release_per_s: 0 });
        assert_eq!(release_per_s(none, at(0), at(0)), 1);
    }

    #[test]
    fn a_late_wake_up_makes_up_for_a_few_ticks_only() {
        let mut pacer = Pacer::default();
        pacer.open(at(1));
        pacer.begin_run(at(3_600));
        let mut handed_out = 0;
        while pacer.is_due(at(3_600)) {
            pacer.spend(1_000);
            handed_out += 1;
        }
        assert_eq!(handed_out, 11);
        assert!(pacer.next_run() > at(3_600));
    }
}
