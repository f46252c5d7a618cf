//! A replica of several appliers: each takes the next transaction of the stream when it is free,
//! and works at its part of the rate. All transactions can be applied beside each other.
//!
//! So the appliers always have the first of those that have arrived. With the primary's order kept,
//! one that is done waits until all before it are; else it takes the next at once. A heartbeat that
//! has overtaken counts when all before it is applied, as where the executed GTIDs are looked at.

use std::time::Duration;

use admission::MonoTime;

use super::{ROWS_EPSILON, Replica};

impl Replica {
    pub(super) fn advance_parallel(&mut self, now: MonoTime) {
        let mut at = self.advanced_to.min(now);
        self.advanced_to = self.advanced_to.max(now);
        loop {
            self.show_what_is_done(at);
            let until = self.next_change(at, now);
            if until <= at {
                return;
            }
            self.work(at, until);
            at = until;
        }
    }

    /// Rows a second of one applier.
    fn share(&self) -> f64 {
        self.per_s / f64::from(self.appliers.max(1))
    }

    /// How many transactions of the stream they have.
    fn taken(&self) -> usize {
        usize::try_from(self.appliers).unwrap_or(usize::MAX)
    }

    fn show_what_is_done(&mut self, at: MonoTime) {
        if self.per_s <= 0.0 {
            return;
        }
        let mut index = 0;
        while index < self.taken() {
            let Some(entry) = self.queue.get(index) else { return };
            if entry.arrives > at {
                return;
            }
            if entry.rows_left > ROWS_EPSILON {
                index = index.saturating_add(1);
            } else if index == 0 || !self.in_order {
                let Some(done) = self.queue.remove(index) else { return };
                self.has_applied(&done);
                let beats = done.overtaken_by.into_iter().chain(done.heartbeat);
                match index.checked_sub(1).and_then(|before| self.queue.get_mut(before)) {
                    Some(before) => beats.for_each(|beat| before.is_overtaken_by(beat)),
                    None => beats.for_each(|beat| self.show(Some(beat))),
                }
            } else {
                index = index.saturating_add(1);
            }
        }
    }

    /// When an applier is done, or the next transaction arrives for one that is free; `now` at the
    /// latest.
    fn next_change(&self, at: MonoTime, now: MonoTime) -> MonoTime {
        let share = self.share();
        let mut next = now;
        for entry in self.queue.iter().take(self.taken()) {
            if entry.arrives > at {
                return next.min(entry.arrives);
            }
            if share > 0.0 && entry.rows_left > ROWS_EPSILON {
                let left = Duration::try_from_secs_f64(entry.rows_left / share);
                let left = left.unwrap_or(Duration::MAX).max(Duration::from_nanos(1));
                next = next.min(at.saturating_add(left));
            }
        }
        next
    }

    fn work(&mut self, at: MonoTime, until: MonoTime) {
        // Times are whole nanoseconds: what is left of less is nothing.
        let rows = until.saturating_since(at).as_secs_f64() * self.share();
        let rounding = self.share() * 2e-9;
        let taken = self.taken();
        for entry in self.queue.iter_mut().take(taken) {
            if entry.arrives > at {
                return;
            }
            let mut applied = entry.rows_left.min(rows);
            if entry.rows_left - applied <= rounding {
                applied = entry.rows_left;
            }
            entry.rows_left -= applied;
            self.applied += applied;
        }
    }
}

#[cfg(test)]
mod tests {
    use admission::lag::ReplicaKey;

    use super::super::{Beat, Work};
    use super::*;
    use crate::{Amount, scenario};

    fn work(rows: f64) -> Work {
        Work { rows, app: None }
    }

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// Two appliers of 500 rows a second each.
    fn replica(in_order: bool) -> Replica {
        let plan = scenario::Replica {
            apply: Amount::constant(1_000.0),
            jitter: 0.0,
            away: Vec::new(),
            threshold: None,
            transit: Vec::new(),
            appliers: 2,
            workers: 2,
            preserve_commit_order: in_order,
            commit_cost: 0.0,
        };
        let mut replica = Replica::new(&plan, ReplicaKey(1), 1);
        replica.begin_tick(&plan, at(0), 1.0, std::iter::once(None));
        replica
    }

    #[test]
    fn a_heartbeat_counts_with_all_before_it_whatever_the_order() {
        for in_order in [false, true] {
            let mut replica = replica(in_order);
            replica.append(at(0), Duration::ZERO, work(10.0));
            replica.append_heartbeat(at(1), Duration::ZERO, Beat { proxy: 0, seq: 1 });
            assert_eq!(replica.shows(at(5), 0), None, "order kept: {in_order}");
            assert_eq!(replica.look_at_lag(at(5)).0, Duration::from_millis(5));
            assert_eq!(replica.shows(at(21), 0), Some(1));
            assert_eq!(replica.look_at_lag(at(21)).0, Duration::ZERO);
        }
    }

    #[test]
    fn an_applier_that_is_done_takes_the_next_unless_the_order_is_kept() {
        for (in_order, applied) in [(false, 15.0), (true, 11.0)] {
            let mut replica = replica(in_order);
            for rows in [10.0, 1.0, 4.0] {
                replica.append(at(0), Duration::ZERO, work(rows));
            }
            replica.append_heartbeat(at(1), Duration::ZERO, Beat { proxy: 0, seq: 1 });
            assert_eq!(replica.shows(at(19), 0), None);
            replica.advance(at(20));
            assert!((replica.applied - applied).abs() < 1e-6, "{}", replica.applied);
            assert_eq!(replica.shows(at(30), 0), Some(1), "order kept: {in_order}");
        }
    }

    #[test]
    fn appliers_work_beside_each_other_and_never_ahead_of_what_has_arrived() {
        let mut replica = replica(false);
        let far = Duration::from_millis(10);
        replica.append(at(0), far, work(5.0));
        replica.append(at(0), far, work(5.0));
        replica.append(at(0), far, work(5.0));
        replica.advance(at(10));
        assert!(replica.applied.abs() < 1e-9);
        replica.advance(at(20));
        assert!((replica.applied - 10.0).abs() < 1e-6, "{}", replica.applied);
        replica.advance(at(40));
        assert!(
            (replica.applied - 15.0).abs() < 1e-6,
            "one has nothing to do: {}",
            replica.applied
        );
        assert_eq!(replica.look_at_lag(at(40)).0, Duration::ZERO);
    }
}
