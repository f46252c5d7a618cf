//! Work admitted, completed, and how much of it was complete when each heartbeat was begun.
//!
//! Work that has not completed is counted by *epoch*, the time between the begins of two heartbeats
//! in which it was admitted. Only that of late counts as on its way: a transaction that its client
//! keeps open for an hour sends nothing meanwhile, and must not hold a place in the window.
//! Whatever it has written counts when it completes. How late is late, whoever asks says.
//!
//! All costs are in rows.

use std::collections::VecDeque;
use std::time::Duration;

use crate::MonoTime;

/// Heartbeats remembered: four minutes at the default interval. A replica that is further behind
/// lags, so its gate is shut; acknowledgements go on when it shows one that is remembered.
const EPOCHS_MAX: usize = 1_024;

/// Between which two heartbeats something was admitted. They are numbered from 0.
pub(crate) type Epoch = u64;

/// Work that was admitted and has not completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charge {
    epoch: Epoch,
    admitted_at: MonoTime,
    cost: f64,
    /// Of the cost, what was charged for fear alone.
    feared: f64,
}

/// What is charged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// In rows.
    pub(crate) rows: f64,
    /// Of these, what is charged for fear alone: nothing is known of such a statement, and it may
    /// be a large one.
    pub(crate) feared: f64,
    /// For how many seconds it is expected to run, if that is known.
    pub(crate) lasts: Option<f64>,
}

impl Cost {
    /// Of what is known.
    pub(crate) const fn known(rows: f64) -> Self {
        Self { rows, feared: 0.0, lasts: None }
    }

    /// Of what costs so many rows as far as is known, and is charged for more.
    pub(crate) fn of(rows: f64, known: f64) -> Self {
        Self { rows, feared: (rows - known).max(0.0), lasts: None }
    }

    /// The same, of what runs for so many seconds.
    pub(crate) const fn lasting(self, lasts: Option<f64>) -> Self {
        Self { lasts, ..self }
    }
}

impl Charge {
    pub(crate) const fn cost(&self) -> f64 {
        self.cost
    }

    pub(crate) const fn feared(&self) -> f64 {
        self.feared
    }

    /// What was charged beside that.
    pub(crate) fn known(&self) -> f64 {
        self.cost - self.feared
    }

    /// How many heartbeats were begun before it was admitted.
    pub(crate) const fn epoch(&self) -> Epoch {
        self.epoch
    }

    #[cfg(test)]
    pub(crate) const fn known_in(epoch: Epoch, admitted_at: MonoTime, cost: f64) -> Self {
        Self { epoch, admitted_at, cost, feared: 0.0 }
    }

    pub(crate) const fn admitted_at(&self) -> MonoTime {
        self.admitted_at
    }

    /// Both as one, admitted at the time between. For charges of the same epoch.
    pub(crate) fn with(self, other: Self) -> Self {
        let cost = self.cost + other.cost;
        let feared = self.feared + other.feared;
        let between = other.admitted_at.saturating_since(self.admitted_at);
        let part = if cost > 0.0 { (other.cost / cost).clamp(0.0, 1.0) } else { 0.0 };
        let admitted_at = self.admitted_at.saturating_add(between.mul_f64(part));
        Self { epoch: self.epoch, admitted_at, cost, feared }
    }

    /// Takes so much of it off, as far as there is so much.
    pub(crate) fn split(&mut self, cost: f64) -> Self {
        let part = cost.clamp(0.0, self.cost.max(0.0));
        let feared = part.min(self.feared);
        self.cost -= part;
        self.feared -= feared;
        Self { cost: part, feared, ..*self }
    }
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    completed: f64,
    /// The epochs begun by heartbeats, oldest first. Work admitted before the first counts in none.
    marks: VecDeque<Mark>,
    /// The epoch of now: how many heartbeats were begun.
    epoch: Epoch,
    /// Running work admitted before the first heartbeat.
    running_before: AtWork,
}

/// Running work, in rows.
#[derive(Debug, Clone, Copy, Default)]
struct AtWork {
    cost: f64,
    /// Of it, what was charged for fear alone.
    feared: f64,
}

/// A heartbeat, and the epoch that it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub(super) seq: u64,
    pub(super) begun_at: MonoTime,
    /// Work completed before it was begun.
    pub(super) completed: f64,
    /// Work admitted in this epoch that still runs.
    running: AtWork,
    /// When work completed first in this epoch.
    completed_at: Option<MonoTime>,
    /// The large work that completed in it.
    large: Option<Large>,
}

/// Large work that has completed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Large {
    /// When the last of it has, and how many rows that was.
    pub(super) last: MonoTime,
    pub(super) rows: f64,
    /// Rows of the largest.
    pub(super) largest: f64,
}

impl Ledger {
    pub(super) fn begin_epoch(&mut self, now: MonoTime, seq: u64) {
        if self.marks.back().is_some_and(|mark| seq <= mark.seq) {
            return;
        }
        if self.marks.len() >= EPOCHS_MAX {
            self.marks.pop_front();
        }
        let completed = self.completed;
        self.marks.push_back(Mark {
            seq,
            begun_at: now,
            completed,
            running: AtWork::default(),
            completed_at: None,
            large: None,
        });
        self.epoch = self.epoch.saturating_add(1);
    }

    pub(super) fn admit(&mut self, now: MonoTime, cost: Cost) -> Charge {
        let Cost { rows: cost, feared, .. } = cost;
        let charge = Charge { epoch: self.epoch, admitted_at: now, cost, feared };
        let running = self.at_work(charge.epoch);
        running.cost += cost;
        running.feared += feared;
        charge
    }

    /// Raises the cost of running work to `cost`; gives by how much.
    pub(super) fn charge(&mut self, charge: &mut Charge, cost: f64) -> f64 {
        let more = (cost - charge.cost).max(0.0);
        let feared = charge.feared.min(charge.cost + more - cost);
        let running = self.at_work(charge.epoch);
        running.cost += more;
        running.feared = (running.feared + feared - charge.feared).max(0.0);
        charge.cost += more;
        charge.feared = feared;
        more
    }

    /// Work of `large_from` rows and more is large.
    pub(super) fn complete(&mut self, now: MonoTime, charge: Charge, cost: f64, large_from: f64) {
        self.take_back(charge);
        self.completed += cost;
        if let Some(mark) = self.marks.back_mut() {
            mark.completed_at.get_or_insert(now);
            if cost >= large_from {
                let before = mark.large.map_or(0.0, |large| large.largest);
                mark.large = Some(Large { last: now, rows: cost, largest: before.max(cost) });
            }
        }
    }

    pub(super) fn take_back(&mut self, charge: Charge) {
        let running = self.at_work(charge.epoch);
        running.cost = (running.cost - charge.cost).max(0.0);
        running.feared = (running.feared - charge.feared).max(0.0);
    }

    pub(super) fn mark(&self, seq: u64) -> Option<&Mark> {
        let index = self.marks.partition_point(|mark| mark.seq < seq);
        self.marks.get(index).filter(|mark| mark.seq == seq)
    }

    /// The oldest heartbeat after `seq`.
    pub(super) fn first_after(&self, seq: u64) -> Option<&Mark> {
        self.marks.get(self.marks.partition_point(|mark| mark.seq <= seq))
    }

    /// When work completed first after this heartbeat was begun; `None`: none has.
    pub(super) fn completed_after(&self, seq: u64) -> Option<MonoTime> {
        let from = self.marks.partition_point(|mark| mark.seq < seq);
        self.marks.iter().skip(from).find_map(|mark| mark.completed_at)
    }

    /// The large work that completed between the begins of these two heartbeats.
    pub(super) fn large_between(&self, after: u64, before: u64) -> Option<Large> {
        let from = self.marks.partition_point(|mark| mark.seq < after);
        let until = self.marks.partition_point(|mark| mark.seq < before);
        let all = self.marks.range(from..until.max(from)).filter_map(|mark| mark.large);
        all.reduce(|before, last| Large { largest: last.largest.max(before.largest), ..last })
    }

    /// Work that has completed and that whoever has acknowledged `acked` has not acknowledged.
    pub(super) fn unacknowledged(&self, acked: f64) -> f64 {
        (self.completed - acked).max(0.0)
    }

    /// Work admitted and not acknowledged by whoever has acknowledged `acked`; of what still runs,
    /// what was admitted within `late`.
    pub(super) fn outstanding(&self, acked: f64, now: MonoTime, late: Duration) -> f64 {
        self.unacknowledged(acked) + self.running_of_late(now, late).cost
    }

    /// Of that, what was charged for fear alone.
    pub(super) fn feared(&self, now: MonoTime, late: Duration) -> f64 {
        self.running_of_late(now, late).feared
    }

    fn running_of_late(&self, now: MonoTime, late: Duration) -> AtWork {
        if self.marks.is_empty() {
            return self.running_before;
        }
        let recent = self.marks.iter().rev();
        let recent = recent.take_while(|mark| now.saturating_since(mark.begun_at) <= late);
        recent.fold(AtWork::default(), |all, mark| AtWork {
            cost: all.cost + mark.running.cost,
            feared: all.feared + mark.running.feared,
        })
    }

    pub(super) fn completed(&self) -> f64 {
        self.completed
    }

    /// Heartbeats before `seq` are not asked for any more; those that count running work stay.
    pub(super) fn forget_before(&mut self, seq: Option<u64>) {
        let Some(seq) = seq else { return };
        while self.marks.len() > EPOCHS_MIN && self.marks.front().is_some_and(|mark| mark.seq < seq)
        {
            self.marks.pop_front();
        }
    }

    /// Running work of an epoch. Of one that is forgotten, it counts nowhere any more.
    fn at_work(&mut self, epoch: Epoch) -> &mut AtWork {
        let age = usize::try_from(self.epoch.saturating_sub(epoch)).unwrap_or(usize::MAX);
        let index = self.marks.len().checked_sub(age.saturating_add(1));
        match index.and_then(|index| self.marks.get_mut(index)) {
            Some(mark) => &mut mark.running,
            None => &mut self.running_before,
        }
    }
}

/// Heartbeats kept although everybody shows them: they count running work.
const EPOCHS_MIN: usize = 64;
