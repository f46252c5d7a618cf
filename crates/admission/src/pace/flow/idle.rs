//! For how much of the time a replica's appliers were at work.
//!
//! Where transactions of seconds run, what is too much comes to light seconds later. A rate that grows by little
//! at a time takes minutes from a first guess to what a fast replica can; by more, and its end is found with
//! as many seconds of lag. But a replica that is looked at ten times a second tells more than its lag. What it
//! applied, over the part of the looks that met an applier at work, is what it can: at a twentieth of its
//! rate as well as at nine tenths. By chance it may be less or more; of the interval (Wilson, 1927) the end
//! counts that errs to the safe side.
//!
//! - While it can do more for certain, the rate grows towards that, however near the lag says that the end is. A
//!   queue is then one that came by chance, for as long as such a queue may stand: a replica that waits
//!   for its receiver has nothing to apply either.
//! - While one applier can do no more for certain, that no queue stands is no sign that it has become
//!   faster. Where several apply side by side, one at work says nothing of what all of them can.
//! - Beside other controllers, where the lag is made of single large transactions, chance needs what is idle.
//! - An applier that is at work for long says nothing of what was seen before: the replica may have
//!   become slower.

use super::{Aim, Flow, seconds};
use crate::MonoTime;

/// What looks told is forgotten with this time constant, in seconds.
const MEMORY: f64 = 15.0;

/// Fewer looks say nothing.
const LOOKS_MIN: f64 = 20.0;

/// Seconds without a look from which on nothing is known.
const GAP: f64 = 1.0;

/// Seconds that an applier is at work on end from which on what was seen before says nothing.
const ON_END: f64 = 1.5;

/// Deviations that are allowed for.
const CERTAIN: f64 = 1.5;

/// Where so much of the way is work at the primary the lag tells too late.
const WORK: f64 = 0.5;

/// By which part it must be more for the search to begin anew behind it.
const MUCH: f64 = 0.25;

/// Below this part of the time nobody is at the end of what it can.
const MOSTLY: f64 = 0.5;

/// For so many acknowledgements on end a queue may have come by chance.
const BY_CHANCE: u32 = 20;

#[derive(Debug, Default)]
pub(super) struct Idle {
    looked_at: Option<MonoTime>,
    /// Rows acknowledged by then.
    acked: f64,
    /// Looks, those that met somebody at work, the time they span in seconds, and rows acknowledged in it.
    looks: f64,
    at_work: f64,
    seconds: f64,
    rows: f64,
    /// Since when each look has met somebody.
    at_work_since: Option<MonoTime>,
    /// Acknowledgements on end that showed a queue.
    queued: u32,
    /// When looks last told that it can do much more, or no more.
    told_at: MonoTime,
}

impl Idle {
    fn look(&mut self, at: MonoTime, is_at_work: bool, acked: f64) {
        let since = self.looked_at.map(|before| seconds(before, at)).filter(|since| *since < GAP);
        self.at_work_since = is_at_work.then(|| self.at_work_since.unwrap_or(at));
        let left = since
            .filter(|_| !self.is_at_work_on_end(at))
            .map_or(0.0, |since| (-since / MEMORY).exp());
        let add = |sum: &mut f64, more: f64| *sum = *sum * left + more;
        add(&mut self.looks, 1.0);
        add(&mut self.at_work, f64::from(u8::from(is_at_work)));
        add(&mut self.seconds, since.unwrap_or(0.0));
        add(&mut self.rows, since.map_or(0.0, |_| acked - self.acked));
        self.acked = acked;
        self.looked_at = Some(at);
    }

    fn is_at_work_on_end(&self, at: MonoTime) -> bool {
        self.at_work_since.is_some_and(|since| seconds(since, at) > ON_END)
    }

    fn is_looked_at(&self, at: MonoTime) -> bool {
        self.looked_at.is_some_and(|last| seconds(last, at) < GAP)
    }

    /// The part of the time in which it was at work, at least and at most.
    fn part(&self) -> Option<(f64, f64)> {
        let (n, part, z) = (self.looks, self.at_work / self.looks, CERTAIN);
        let mean = part + z * z / (2.0 * n);
        let spread = z * (part * (1.0 - part) / n + z * z / (4.0 * n * n)).sqrt();
        let of = |sum: f64| sum / (1.0 + z * z / n);
        (n >= LOOKS_MIN).then(|| (of(mean - spread).max(0.0), of(mean + spread)))
    }

    /// What it can at least and at most, in rows a second.
    fn can(&self) -> Option<(f64, f64)> {
        let (least, most) = self.part()?;
        let per_s = self.rows / self.seconds;
        Some((per_s / most, per_s / least))
    }

    pub(super) fn told_at(&self) -> MonoTime {
        self.told_at
    }

    /// Its part of what all controllers deliver is another.
    pub(super) fn scale(&mut self, factor: f64) {
        self.rows *= factor;
    }
}

impl Flow {
    /// Its appliers were looked at.
    pub(in crate::pace) fn handle_appliers(&mut self, now: MonoTime, are_at_work: bool) {
        self.idle.look(now, are_at_work, self.acked);
    }

    /// By which part of the rate it can do more, at least; `None`: nobody knows.
    pub(super) fn more(&mut self, at: MonoTime, aim: &Aim) -> Option<f64> {
        if !self.idle.is_looked_at(at) || !self.goes_by_looks(aim) {
            return None;
        }
        let (least, most) = self.idle.can().unwrap_or((0.0, f64::INFINITY));
        let more = (least / self.rate - 1.0).max(0.0);
        let no_more = self.rate > most || self.idle.is_at_work_on_end(at);
        if more > MUCH || (no_more && self.found.most() <= 0.0 && self.beside.is_alone()) {
            self.idle.told_at = at;
        }
        Some(more)
    }

    /// Whether a queue came by chance: a replica at its end would have been at work for most of the time.
    pub(super) fn is_by_chance(&mut self, queue_stands: bool, aim: &Aim) -> bool {
        self.idle.queued = if queue_stands { self.idle.queued.saturating_add(1) } else { 0 };
        queue_stands
            && self.idle.queued <= BY_CHANCE
            && self.goes_by_looks(aim)
            && self.idle.part().is_some_and(|(_, most)| most < MOSTLY)
    }

    fn goes_by_looks(&self, aim: &Aim) -> bool {
        let is_late = aim.running > WORK * self.way_of_more(aim);
        is_late && (aim.others.is_none() || self.lumps_are_small(aim))
    }
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "a test that overflows fails, as it should")]
mod tests {
    use std::time::Duration;

    use super::super::growth::tests::aim;
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// Ten looks a second for so many seconds, of which so many in ten meet an applier at work, at a replica that
    /// acknowledges 1,000 rows a second.
    fn looked_at(rate: f64, seconds: u64, at_work_in_ten: u64) -> Flow {
        let mut flow = Flow::new(at(0), Some(rate));
        for n in 0..seconds * 10 {
            flow.acked += 100.0;
            flow.handle_appliers(at(n * 100), n * 7 % 10 < at_work_in_ten);
        }
        flow
    }

    fn more(flow: &mut Flow, seconds: u64, aim: &Aim) -> Option<f64> {
        flow.more(at(seconds * 1_000), aim)
    }

    #[test]
    fn what_was_applied_in_a_tenth_of_the_time_is_a_tenth_of_what_it_can() {
        let mut flow = looked_at(1_000.0, 60, 1);
        let least = more(&mut flow, 60, &aim(5.0)).unwrap();
        assert!((5.0..9.0).contains(&least), "for certain, and not by luck: {least}");
        let mut early = looked_at(1_000.0, 3, 1);
        let less = more(&mut early, 3, &aim(5.0)).unwrap();
        assert!(less < least && less > 1.0, "of fewer looks less is certain: {less}");
        let mut used = looked_at(1_000.0, 60, 9);
        assert!(more(&mut used, 60, &aim(5.0)).unwrap() < 0.2);
    }

    #[test]
    fn without_looks_and_where_the_lag_tells_in_time_nothing_is_told() {
        let mut flow = looked_at(1_000.0, 60, 1);
        assert_eq!(more(&mut flow, 60, &aim(0.1)), None, "statements");
        assert_eq!(more(&mut flow, 62, &aim(5.0)), None, "nobody has looked for two seconds");
        let large = Aim { others: Some(1_000.0), lump: 1_000.0, ..aim(5.0) };
        assert_eq!(more(&mut flow, 60, &large), None, "beside others the lag is made of these");
        assert!(more(&mut flow, 60, &Aim { lump: 10.0, ..large }).is_some());
    }

    #[test]
    fn an_applier_at_work_on_end_has_what_was_seen_before_forgotten() {
        let mut flow = looked_at(1_000.0, 60, 1);
        for n in 0..17 {
            flow.handle_appliers(at(60_000 + n * 100), true);
        }
        assert_eq!(flow.more(at(61_700), &aim(5.0)), Some(0.0), "it may be slower by now");
        assert!(!flow.is_by_chance(true, &aim(5.0)));
    }

    #[test]
    fn a_queue_at_an_idle_replica_is_chance_for_a_while() {
        let mut flow = looked_at(1_000.0, 60, 1);
        assert!(!flow.is_by_chance(true, &aim(0.1)), "statements come as they are let in");
        let doubted = (0..50).filter(|_| flow.is_by_chance(true, &aim(5.0))).count();
        assert!((10..30).contains(&doubted), "a link may be what it waits for: {doubted}");
        assert!(!flow.is_by_chance(false, &aim(5.0)) && flow.is_by_chance(true, &aim(5.0)));
        let mut busy = looked_at(1_000.0, 60, 7);
        assert!(!busy.is_by_chance(true, &aim(5.0)));
    }

    #[test]
    fn one_applier_that_can_no_more_has_the_search_go_on_by_little() {
        let mut flow = looked_at(2_000.0, 60, 7);
        assert_eq!(more(&mut flow, 60, &aim(5.0)), Some(0.0));
        assert_eq!(flow.idle.told_at(), at(60_000), "2,000 are more than it can");
        let mut several = looked_at(2_000.0, 60, 7);
        several.beside.there_are(4);
        assert_eq!(more(&mut several, 60, &aim(5.0)), Some(0.0));
        assert_eq!(several.idle.told_at(), at(0), "three more may have had nothing to do");
    }
}
