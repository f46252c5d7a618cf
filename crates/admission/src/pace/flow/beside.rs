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
//! Where statements differ in size and the order of commits is kept, the small ones wait for the
//! large one before them, and nothing that is let in besides keeps the appliers any busier.
//!
//! Source: the replica's own settings (MySQL's `replica_parallel_workers`, MariaDB's
//! `slave_parallel_threads`).

use super::{Aim, Flow, acknowledging, seconds};
use crate::MonoTime;
use crate::pace::ledger::Large;

/// What a large statement takes by itself counts up to this part of the threshold; the less the
/// longer the largest of late takes, and from the second part on it does not. Two that come one
/// after the other must fit: whoever finds all appliers at work waits for one, and where the order
/// of commits is kept a large one may stand behind another with small ones between them.
const MOST: f64 = 0.4;
const TWO: f64 = 0.5;

/// From so many appliers' work on it is not one of them alone, and from so many more that is
/// certain.
const SEVERAL: f64 = 1.4;
const CERTAIN: f64 = 0.4;

/// The least time becomes e times as long by itself in so many seconds.
const FORGOTTEN: f64 = 600.0;

/// The largest is forgotten down to 1 ÷ e in so many seconds.
const LATELY: f64 = 30.0;

#[derive(Debug)]
pub(super) struct Beside {
    /// How many there are, as the replica says.
    appliers: f64,
    /// The least time a row in which a large statement came through, in seconds; and when it was last
    /// looked at.
    per_row: f64,
    at: MonoTime,
    /// The largest that has come through of late, in rows.
    largest: f64,
}

impl Beside {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { appliers: 1.0, per_row: f64::INFINITY, at: now, largest: 0.0 }
    }

    /// The replica says how many appliers it has.
    pub(super) fn there_are(&mut self, appliers: u32) {
        self.appliers = f64::from(appliers.max(1));
    }

    /// A large statement was seen applied, so many seconds after it had arrived.
    fn came_through(&mut self, now: MonoTime, took: f64, rows: f64) {
        let since = seconds(self.at, now);
        self.per_row *= (since / FORGOTTEN).exp();
        self.largest = (self.largest * (-since / LATELY).exp()).max(rows);
        self.at = now;
        self.per_row = self.per_row.min(took.max(0.0) / rows.max(1.0));
    }

    /// What the largest of late takes by itself, in seconds.
    fn longest(&self) -> f64 {
        if self.per_row.is_finite() { self.per_row * self.largest } else { 0.0 }
    }

    /// What so many rows take by themselves at a replica of this rate that delivers so much, in
    /// seconds; 0 where it does not do several things at once.
    fn alone(&self, rows: f64, rate: f64, delivers: f64) -> f64 {
        if self.appliers <= 1.0 || !self.per_row.is_finite() {
            return 0.0;
        }
        let at_once = rate.min(delivers) * self.per_row;
        let believed = ((at_once - SEVERAL) / CERTAIN).clamp(0.0, 1.0);
        believed * (self.per_row * rows).min(self.appliers * rows / rate.max(1.0))
    }
}

impl Flow {
    /// `large` was committed before a heartbeat that was seen applied at `at`.
    pub(super) fn note_large(&mut self, at: MonoTime, large: Option<Large>, aim: &Aim) {
        let Some(large) = large else { return };
        let took = seconds(large.completed_at, at) - self.base.seconds(acknowledging(aim));
        self.beside.came_through(at, took, large.rows);
    }

    /// What a usual large statement takes by itself where appliers work beside one another, in
    /// seconds.
    pub(super) fn alone(&self, aim: &Aim) -> f64 {
        let others = aim.others.unwrap_or(0.0);
        let rows = aim.lump.max(aim.others_lump);
        let alone = self.beside.alone(rows, self.rate + others, self.busy.per_s() + others);
        let longest = self.beside.longest() / aim.threshold;
        let two_fit = ((TWO - longest) / (TWO - MOST)).clamp(0.0, 1.0);
        two_fit * alone.min(MOST * aim.threshold)
    }

    /// The lag that stands without any queue, in seconds.
    pub(super) fn standing(&self, aim: &Aim) -> f64 {
        self.base.seconds(acknowledging(aim)) + self.alone(aim)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// One that has come through in 0.4 s: 1,000 rows.
    fn beside(appliers: u32) -> Beside {
        let mut beside = Beside::new(at(0));
        beside.there_are(appliers);
        beside.came_through(at(1_000), 0.4, 1_000.0);
        beside
    }

    #[test]
    fn what_appliers_do_beside_one_another_is_no_queue() {
        assert!((beside(16).alone(1_000.0, 40_000.0, 40_000.0) - 0.4).abs() < 1e-9);
        assert!((beside(16).alone(500.0, 40_000.0, 40_000.0) - 0.2).abs() < 1e-9);
        assert_eq!(beside(1).alone(1_000.0, 40_000.0, 40_000.0), 0.0, "there is one applier");
        let few = beside(4).alone(1_000.0, 40_000.0, 40_000.0);
        assert!((few - 0.1).abs() < 1e-9, "no four make 40,000 rows/s of such: {few}");
    }

    #[test]
    fn it_is_believed_as_far_as_it_was_shown() {
        let one_after_the_other = beside(16).alone(1_000.0, 2_500.0, 2_500.0);
        assert_eq!(one_after_the_other, 0.0);
        assert_eq!(beside(16).alone(1_000.0, 40_000.0, 2_500.0), 0.0, "a rate that is a guess");
        let two = beside(16).alone(1_000.0, 5_000.0, 5_000.0);
        assert!((two - 0.4).abs() < 1e-9, "{two}");
        assert_eq!(
            Beside::new(at(0)).alone(1_000.0, 5_000.0, 5_000.0),
            0.0,
            "nothing came through"
        );
    }

    #[test]
    fn where_two_do_not_fit_it_is_as_with_one_applier() {
        let alone = |rows: f64| {
            let mut flow = Flow::new(at(0), Some(10_000.0));
            flow.beside = beside(16);
            flow.beside.came_through(at(1_000), rows * 0.000_4, rows);
            flow.busy.measure(10_000.0, (0.0, 1.0), &AIM);
            flow.alone(&Aim { lump: rows, ..AIM })
        };
        assert!((alone(1_000.0) - 0.4).abs() < 1e-9, "{}", alone(1_000.0));
        let more = alone(1_125.0);
        assert!(0.15 < more && more < 0.25, "0.45 s: {more}");
        assert_eq!(alone(1_250.0), 0.0);
    }

    const AIM: Aim = Aim {
        threshold: 1.0,
        lenient: None,
        heartbeat: 0.25,
        probe: 0.1,
        looking: 0.1,
        lump: 1.0,
        service: 0.0,
        running: 0.0,
        others: None,
        others_lump: 0.0,
    };

    #[test]
    fn the_least_counts_and_is_forgotten_slowly() {
        let mut beside = beside(16);
        beside.came_through(at(2_000), 0.9, 1_000.0);
        assert!((beside.per_row - 0.000_4).abs() < 1e-6, "{beside:?}");
        beside.came_through(at(601_000), 0.9, 1_000.0);
        assert!((beside.per_row - 0.000_9).abs() < 1e-6, "{beside:?}");
        beside.came_through(at(601_000), 0.05, 100.0);
        assert!((beside.per_row - 0.000_5).abs() < 1e-6, "{beside:?}");
    }
}
