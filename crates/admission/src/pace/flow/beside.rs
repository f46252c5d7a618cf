//! Appliers that work beside one another.
//!
//! Theory. One applier takes rows ÷ rate for a statement, and its lag is what stands before it and
//! that. Where several work beside one another, each is slower than all of them: a statement that
//! takes one of sixteen appliers 0.4 s is a lag of 0.4 s, and yet fifteen more may be applied in the
//! same time. Taken for a queue, that lag kept two on their way at a time, and an eighth of the
//! replica in use. So what a large statement takes *by itself* is told from what stands before it:
//! it is as a longer way to the replica, and only what is more than that is a queue.
//!
//! The least time a row in which a large statement has come through tells it: as long as nobody was
//! before it, that is its own. It is only believed as far as the replica has shown that it does
//! several at once, by delivering more rows a second than one applier could at that speed; what
//! its settings say it could is no proof, for statements that depend on one another are applied one
//! after the other. And it is never more than the appliers that there are can make of the rate.
//!
//! The least is not forgotten as time goes by: where one stands behind the other, the next least would
//! have a queue in it, which would be let stand as well, and so on. It is found anew when the rate has
//! fallen, and for as long as that takes nothing is believed: so it never has more than the queue
//! in it that stands anyway.
//!
//! Where statements differ in size and the order of commits is kept, the small ones wait for the
//! large one before them, and nothing that is let in besides keeps the appliers any busier.
//!
//! Source: the replica's own settings (MySQL's `replica_parallel_workers`, MariaDB's
//! `slave_parallel_threads`).

use super::{Aim, Flow, acknowledging, seconds};
use crate::MonoTime;
use crate::pace::ledger::Large;

/// What a large statement takes by itself counts up to this part of the threshold, with few appliers
/// and with many; the less the longer the largest of late takes, and from a little more on it does
/// not. Two that come one after the other must fit: whoever finds all appliers at work waits for
/// one, the longer the fewer there are, and where the order of commits is kept a large one may stand
/// behind another with small ones between them.
const MOST_WITH_FEW: f64 = 0.25;
const MOST: f64 = 0.4;
const MANY: f64 = 16.0;
const TWO: f64 = 0.1;

/// Where the order is kept, each heartbeat behind it holds an applier until it has committed. So it
/// counts as long as these are at most this part of the others, and not at all from the second on.
const HELD: f64 = 0.5;
const HELD_MOST: f64 = 0.8;

/// From so many appliers' work on it is not one of them alone, and from so many more that is
/// certain.
const SEVERAL: f64 = 1.4;
const CERTAIN: f64 = 0.4;

/// With fewer appliers than this, hardly more can be at work than must be for it to be certain.
const FEW: f64 = 4.0;

/// When the rate has fallen to this part of the highest, the replica has become slower.
const FALLEN: f64 = 0.6;

/// The least is looked for, for so many seconds and for a threshold at least: a queue of before is gone
/// by then.
const LOOKED_FOR: f64 = 10.0;

/// The largest is forgotten down to 1 ÷ e in so many seconds.
const LATELY: f64 = 30.0;

#[derive(Debug)]
pub(super) struct Beside {
    /// How many there are, as the replica says.
    appliers: f64,
    /// The one that took the least time a row.
    least: Option<Through>,
    /// Since when it is looked for, or was.
    since: MonoTime,
    is_found: bool,
    /// The highest rate since, in rows a second.
    rate: f64,
    /// The largest that has come through of late, in rows; and when one did.
    largest: f64,
    at: MonoTime,
}

/// A large statement that has come through.
#[derive(Debug, Clone, Copy)]
struct Through {
    rows: f64,
    /// From its commit until it was seen, in seconds. The way there and back is in it.
    took: f64,
}

impl Through {
    /// Seconds a row, behind a way of so many seconds.
    fn per_row(self, base: f64) -> f64 {
        (self.took - base).max(0.0) / self.rows.max(1.0)
    }
}

impl Beside {
    pub(super) fn new(now: MonoTime) -> Self {
        Self {
            appliers: 1.0,
            least: None,
            since: now,
            is_found: false,
            rate: 0.0,
            largest: 0.0,
            at: now,
        }
    }

    /// Whether it has a single applier.
    pub(super) fn is_alone(&self) -> bool {
        self.appliers <= 1.0
    }

    /// The replica says how many appliers it has.
    pub(super) fn there_are(&mut self, appliers: u32) {
        self.appliers = f64::from(appliers.max(1));
    }

    /// The rate is that now, and the way so long; the threshold is what its lag must stay
    /// below.
    fn follow(&mut self, now: MonoTime, rate: f64, base: f64, threshold: f64) {
        self.rate = self.rate.max(rate);
        let slower = rate < FALLEN * self.rate;
        if slower || self.least.is_some_and(|least| least.took <= base) {
            (self.least, self.since, self.is_found, self.rate) = (None, now, false, rate);
        }
        let long_enough = seconds(self.since, now) >= LOOKED_FOR.max(threshold);
        self.is_found |= long_enough && self.least.is_some();
    }

    /// A large statement was seen applied, the last before a heartbeat; the largest had so many rows.
    fn came_through(&mut self, now: MonoTime, through: Through, largest: f64, base: f64) {
        let forgotten = (-seconds(self.at, now) / LATELY).exp();
        self.largest = (self.largest * forgotten).max(largest);
        self.at = now;
        let least = self.least.map_or(f64::INFINITY, |least| least.per_row(base));
        if through.took > base && through.per_row(base) < least {
            self.least = Some(through);
        }
    }

    /// The part of the threshold up to which it counts.
    fn most(&self) -> f64 {
        let many = ((self.appliers - FEW) / (MANY - FEW)).clamp(0.0, 1.0);
        MOST_WITH_FEW + many * (MOST - MOST_WITH_FEW)
    }

    /// Appliers beside one.
    fn others(&self) -> f64 {
        (self.appliers - 1.0).max(1.0)
    }

    /// What the largest of late takes by itself, in seconds.
    fn longest(&self, base: f64) -> f64 {
        self.least.map_or(0.0, |least| least.per_row(base) * self.largest)
    }

    /// What so many rows take by themselves at a replica of this rate that delivers so much, behind
    /// such a way, in seconds; 0 where it does not do several things at once.
    fn alone(&self, rows: f64, (rate, delivers): (f64, f64), base: f64) -> f64 {
        let is_known = self.is_found && self.appliers >= FEW;
        let Some(least) = self.least.filter(|_| is_known) else { return 0.0 };
        let per_row = least.per_row(base);
        let at_once = rate.min(delivers) * per_row;
        let believed = ((at_once - SEVERAL) / CERTAIN).clamp(0.0, 1.0);
        believed * (per_row * rows).min(self.appliers * rows / rate.max(1.0))
    }
}

impl Flow {
    /// Of what was committed before a heartbeat that was seen applied at `at`, what was large.
    pub(super) fn note_large(&mut self, at: MonoTime, large: Option<Large>, aim: &Aim) {
        let base = self.base.seconds(acknowledging(aim));
        self.beside.follow(at, self.rate, base, aim.threshold);
        let Some(Large { last, rows, largest }) = large else { return };
        let through = Through { rows, took: seconds(last, at) };
        self.beside.came_through(at, through, largest, base);
    }

    /// What a usual large statement takes by itself where appliers work beside one another, in
    /// seconds.
    pub(super) fn alone(&self, aim: &Aim) -> f64 {
        self.alone_behind(self.base.seconds(acknowledging(aim)), aim)
    }

    fn alone_behind(&self, base: f64, aim: &Aim) -> f64 {
        // Of what others do, and where work runs for long, too little is seen to tell it from a queue.
        if aim.others.is_some() || !aim.runs_short() {
            return 0.0;
        }
        let alone = self.beside.alone(aim.lump, (self.rate, self.busy.per_s()), base);
        if alone <= 0.0 {
            return 0.0;
        }
        let most = self.beside.most();
        let longest = self.beside.longest(base);
        let two_fit = ((most + TWO - longest / aim.threshold) / TWO).clamp(0.0, 1.0);
        let held = longest / aim.heartbeat / self.beside.others();
        let free = ((HELD_MOST - held) / (HELD_MOST - HELD)).clamp(0.0, 1.0);
        two_fit * free * alone.min(most * aim.threshold)
    }

    /// The lag that stands without any queue, in seconds.
    pub(super) fn standing(&self, aim: &Aim) -> f64 {
        let base = self.base.seconds(acknowledging(aim));
        base + self.alone_behind(base, aim)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::growth::tests::aim;
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn of(rows: f64, took: f64) -> Through {
        Through { rows, took }
    }

    /// One that has come through in 0.4 s: 1,000 rows.
    fn beside(appliers: u32) -> Beside {
        let mut beside = Beside::new(at(0));
        beside.there_are(appliers);
        beside.came_through(at(1_000), of(1_000.0, 0.4), 1_000.0, 0.0);
        beside.follow(at(11_000), 100.0, 0.0, 1.0);
        beside
    }

    fn alone(beside: &Beside, rows: f64, rate: f64) -> f64 {
        beside.alone(rows, (rate, rate), 0.0)
    }

    #[test]
    fn what_appliers_do_beside_one_another_is_no_queue() {
        assert!((alone(&beside(16), 1_000.0, 40_000.0) - 0.4).abs() < 1e-9);
        assert!((alone(&beside(16), 500.0, 40_000.0) - 0.2).abs() < 1e-9);
        assert_eq!(alone(&beside(1), 1_000.0, 40_000.0), 0.0, "there is one applier");
        let few = alone(&beside(4), 1_000.0, 40_000.0);
        assert!((few - 0.1).abs() < 1e-9, "no four make 40,000 rows/s of such: {few}");
    }

    #[test]
    fn it_is_believed_as_far_as_it_was_shown() {
        assert_eq!(alone(&beside(16), 1_000.0, 2_500.0), 0.0, "one after the other");
        let guess = beside(16).alone(1_000.0, (40_000.0, 2_500.0), 0.0);
        assert_eq!(guess, 0.0, "a rate that is a guess");
        let two = alone(&beside(16), 1_000.0, 5_000.0);
        assert!((two - 0.4).abs() < 1e-9, "{two}");
        assert_eq!(alone(&Beside::new(at(0)), 1_000.0, 5_000.0), 0.0, "nothing came through");
    }

    #[test]
    fn the_least_is_kept_until_the_rate_has_fallen() {
        let mut beside = beside(16);
        beside.follow(at(12_000), 10_000.0, 0.0, 1.0);
        for ms in [13_000, 900_000] {
            beside.came_through(at(ms), of(1_000.0, 0.9), 1_000.0, 0.0);
            beside.follow(at(ms), 7_000.0, 0.0, 1.0);
        }
        assert!((alone(&beside, 1_000.0, 10_000.0) - 0.4).abs() < 1e-9, "{beside:?}");
        beside.came_through(at(901_000), of(100.0, 0.03), 100.0, 0.0);
        assert!((alone(&beside, 1_000.0, 10_000.0) - 0.3).abs() < 1e-9, "{beside:?}");
        beside.follow(at(902_000), 5_900.0, 0.0, 1.0);
        beside.came_through(at(902_000), of(1_000.0, 3.9), 1_000.0, 0.0);
        beside.came_through(at(905_000), of(1_000.0, 0.9), 1_000.0, 0.0);
        beside.follow(at(911_900), 5_900.0, 0.0, 1.0);
        assert_eq!(alone(&beside, 1_000.0, 10_000.0), 0.0, "a queue may have stood: {beside:?}");
        beside.follow(at(912_000), 5_900.0, 0.0, 1.0);
        assert!((alone(&beside, 1_000.0, 10_000.0) - 0.9).abs() < 1e-9, "{beside:?}");
    }

    #[test]
    fn the_way_is_none_of_it_whenever_it_is_found_out() {
        let mut beside = beside(16);
        beside.came_through(at(2_000), of(1_000.0, 0.3), 1_000.0, 0.5);
        assert!((alone(&beside, 1_000.0, 10_000.0) - 0.4).abs() < 1e-9, "not within the way");
        let behind = beside.alone(1_000.0, (10_000.0, 10_000.0), 0.1);
        assert!((behind - 0.3).abs() < 1e-9, "{behind}");
        beside.follow(at(12_000), 10_000.0, 0.5, 1.0);
        assert_eq!(alone(&beside, 1_000.0, 10_000.0), 0.0, "the way has become longer");
    }

    #[test]
    fn where_two_do_not_fit_it_is_as_with_one_applier() {
        let alone = |rows: f64| {
            let mut flow = Flow::new(at(0), Some(10_000.0));
            flow.beside = beside(16);
            flow.beside.came_through(at(1_000), of(10.0, 0.1), rows, 0.0);
            let aim = Aim { lump: 1_000.0, ..aim(0.0) };
            flow.busy.measure(10_000.0, (0.0, 1.0), &aim);
            flow.alone(&aim)
        };
        assert!((alone(1_000.0) - 0.4).abs() < 1e-9, "{}", alone(1_000.0));
        let more = alone(1_125.0);
        assert!(0.15 < more && more < 0.25, "the largest takes 0.45 s: {more}");
        assert_eq!(alone(1_250.0), 0.0);
    }
}
