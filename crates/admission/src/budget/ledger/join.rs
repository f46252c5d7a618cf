//! What runs already, in budgets that an edit of the file has brought or changed.
//!
//! Where an edit divides a budget by something else, its buckets are others from then on. What a
//! statement joined by an edit before, it leaves: nobody asks there any more. What it has taken as it
//! began it keeps: when the file goes back to what it said then, nobody joins anything, and the
//! statement has to be there. It is one statement of the budget all the same.

use super::{BudgetHold, Budgets};
use crate::budget::prediction::Finding;
use crate::budget::store::{BucketSlot, Stored};
use crate::budget::terms::{BudgetKey, BudgetSet};
use crate::{AppKey, DigestKey, MonoTime};

impl Budgets {
    /// A statement that is at the server takes a place in these budgets too from now on, beside what it
    /// has taken. It is not charged there: what it uses was not limited when it began.
    pub(crate) fn join(
        &mut self,
        now: MonoTime,
        held: Option<BudgetHold>,
        set: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
    ) -> BudgetHold {
        let mut hold = held.unwrap_or_else(|| BudgetHold {
            slots: [BucketSlot::default(); BudgetSet::LEN_MAX],
            len: 0,
            len_begun: 0,
            charged: 0,
            finding: Finding::Part,
            watched: None,
            asks,
            cost: self.predictions.expected(asks.0, asks.1),
            since: now,
        });
        let (taken, _) = self.taken_with(&hold);
        for at in set.iter().filter(|at| !taken.contains(*at)) {
            if self.known.terms_of(at.budget).is_none() {
                continue;
            }
            self.leave_former(now, &mut hold, at.budget);
            self.leave_one_if_full(now, &mut hold, at.budget);
            if hold.is_full() {
                continue;
            }
            let Self { known, buckets, .. } = self;
            let Some(slot) = buckets.touch(now, at, known) else { continue };
            let Some(index) = buckets.get(slot).map(|stored| stored.budget) else { continue };
            let Some((terms, _)) = known.met(index) else { continue };
            buckets.rouse(slot);
            let Some(stored) = buckets.get_mut(slot) else { continue };
            stored.bucket.drain(now, terms);
            stored.bucket.enter(hold.since, hold.cost.seconds);
            let place = usize::from(hold.len);
            hold.add(slot);
            if self.is_counted_by(&hold, place)
                && let Some(counts) = self.known.counts(index)
            {
                counts.in_use = counts.in_use.saturating_add(1);
            }
        }
        hold
    }

    /// Whether a statement is counted in a budget for what it has at this place: once, however many of
    /// its buckets it is in.
    pub(super) fn is_counted_by(&self, hold: &BudgetHold, place: usize) -> bool {
        if place < usize::from(hold.len_begun) {
            return true;
        }
        let budget = |slot| self.buckets.get(slot).map(|stored: &Stored| stored.budget);
        let of = hold.slots.get(place).and_then(|slot| budget(*slot));
        !hold.taken().take(place).any(|(slot, _)| budget(slot) == of)
    }

    /// It leaves what it has joined of this budget when that was divided by something else.
    fn leave_former(&mut self, now: MonoTime, hold: &mut BudgetHold, budget: BudgetKey) {
        let is_former = |stored: &Stored| stored.at.budget == budget;
        let begun = usize::from(hold.len_begun);
        if let Some(place) = self.last_place(hold, is_former).filter(|place| *place >= begun) {
            self.leave_place(now, hold, place);
        }
    }

    /// Where it has no place for another bucket, it leaves what it has of a budget that is not in force
    /// any more, or was divided by something else: nobody is held back there.
    fn leave_one_if_full(&mut self, now: MonoTime, hold: &mut BudgetHold, budget: BudgetKey) {
        if !hold.is_full() {
            return;
        }
        let is_gone = |stored: &Stored| self.known.terms(stored.budget).is_none();
        let is_former = |stored: &Stored| stored.at.budget == budget;
        let gone = self.last_place(hold, is_gone);
        if let Some(place) = gone.or_else(|| self.last_place(hold, is_former)) {
            self.leave_place(now, hold, place);
        }
    }

    /// The last place at which it has something in such a bucket.
    fn last_place(&self, hold: &BudgetHold, is: impl Fn(&Stored) -> bool) -> Option<usize> {
        let places = hold.taken().enumerate();
        let such = places.filter(|(_, (slot, _))| self.buckets.get(*slot).is_some_and(&is));
        such.last().map(|(place, _)| place)
    }

    /// It has nothing at this place any more. What it was charged there stays owed.
    fn leave_place(&mut self, now: MonoTime, hold: &mut BudgetHold, place: usize) {
        let Some(&slot) = hold.slots.get(place) else { return };
        let is_counted = self.is_counted_by(hold, place);
        let Self { known, buckets, .. } = self;
        let Some(stored) = buckets.get_mut(slot) else { return };
        if is_counted && let Some(counts) = known.counts(stored.budget) {
            counts.in_use = counts.in_use.saturating_sub(1);
        }
        stored.bucket.leave(hold.since, hold.cost.seconds);
        buckets.rest(now, slot, known);
        hold.remove(place);
    }
}

impl BudgetHold {
    fn is_full(&self) -> bool {
        usize::from(self.len) == BudgetSet::LEN_MAX
    }

    /// What is behind it comes one place nearer.
    fn remove(&mut self, place: usize) {
        let taken = self.taken();
        if place < usize::from(self.len_begun) {
            self.len_begun = self.len_begun.saturating_sub(1);
        }
        (self.len, self.charged) = (0, 0);
        for (_, (slot, is_charged)) in taken.enumerate().filter(|(at, _)| *at != place) {
            if is_charged {
                self.charge_next();
            }
            self.add(slot);
        }
    }
}
