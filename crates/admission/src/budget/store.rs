//! The buckets that are remembered, each at a slot that stays its own while anybody is at the server
//! in it.
//!
//! Theory. Most statements meet a few buckets again and again: each of them is busy for a
//! millisecond, and at rest for the next. So a bucket at rest first stays *warm*, among the last
//! [`WARM_MAX`] that came to rest, and nothing is done when it is touched again. Only one that is
//! pushed out from there, and is at rest, is forgotten if it has emptied, and else put in the order
//! in which the others empty ([`Idle`]).
//!
//! Bounds: [`BUCKETS_MAX`] buckets, and as many as statements are at the server. Where more would
//! be remembered, of the budget that has most the one that would be empty first is forgotten.

use std::collections::VecDeque;

use super::bucket::Bucket;
use super::idle::Idle;
use super::known::KnownBudgets;
use super::terms::BudgetUse;
use crate::MonoTime;
use crate::key_map::KeyMap;

/// Buckets remembered, about 250 bytes each.
const BUCKETS_MAX: usize = 65_536;

/// Buckets that have emptied and make room for a new one: two, so that their number shrinks.
const FORGOTTEN_MAX: usize = 2;

/// Buckets that nothing is done for when they come to rest: more than a server works for at once.
pub(super) const WARM_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct BucketStore {
    /// By slot; those that are free too.
    stored: Vec<Stored>,
    free: Vec<BucketSlot>,
    slots: KeyMap<BudgetUse, BucketSlot>,
    /// In the order in which they came here.
    warm: VecDeque<BucketSlot>,
    /// Those at rest that are not warm.
    idle: Idle,
}

/// Where a bucket is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BucketSlot(u32);

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) at: BudgetUse,
    /// Where its budget is among those that are known.
    pub(super) budget: usize,
    pub(super) bucket: Bucket,
    listed: Listed,
}

/// In which list a bucket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// In none: it has been at work since it was made or pushed out.
    Nowhere,
    /// Among the warm ones, at work or not.
    Warm,
    /// Among the idle ones, by when it has emptied.
    Idle(MonoTime),
}

impl BucketStore {
    /// Where the bucket of this use is, if it is remembered.
    #[inline]
    pub(super) fn find(&self, at: BudgetUse) -> Option<BucketSlot> {
        self.slots.get(&at).copied()
    }

    #[inline]
    pub(super) fn get(&self, slot: BucketSlot) -> Option<&Stored> {
        self.stored.get(slot.index())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: BucketSlot) -> Option<&mut Stored> {
        self.stored.get_mut(slot.index())
    }

    /// All that are remembered, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.slots.values().filter_map(|slot| self.stored.get(slot.index()))
    }

    /// All have drained until now. That takes a millisecond where there are tens of thousands, when an
    /// edit has them drain otherwise from then on.
    pub(super) fn drain_all(&mut self, now: MonoTime, known: &KnownBudgets) {
        for stored in &mut self.stored {
            if let Some(terms) = known.terms(stored.budget) {
                stored.bucket.drain(now, terms);
            }
        }
    }

    /// How many are remembered.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The bucket, for somebody who takes from it. `None`: its budget is not in force.
    pub(super) fn touch(
        &mut self,
        now: MonoTime,
        at: BudgetUse,
        known: &KnownBudgets,
    ) -> Option<BucketSlot> {
        match self.find(at) {
            Some(slot) => {
                known.terms(self.get(slot)?.budget)?;
                self.rouse(slot);
                Some(slot)
            }
            None => self.make(now, at, known),
        }
    }

    /// Somebody takes from the bucket in this slot.
    #[inline]
    pub(super) fn rouse(&mut self, slot: BucketSlot) {
        if let Some(stored) = self.stored.get_mut(slot.index())
            && let Listed::Idle(empties_at) = stored.listed
        {
            stored.listed = Listed::Nowhere;
            self.idle.remove(empties_at, stored.at);
        }
    }

    /// A bucket may have come to rest.
    pub(super) fn rest(&mut self, now: MonoTime, slot: BucketSlot, known: &KnownBudgets) {
        let Some(stored) = self.stored.get_mut(slot.index()) else { return };
        if stored.bucket.in_use > 0 || stored.listed != Listed::Nowhere {
            return;
        }
        stored.listed = Listed::Warm;
        self.warm.push_back(slot);
        if self.warm.len() > WARM_MAX {
            self.cool_one(now, known);
        }
    }

    /// The one that has been warm for longest is not any more.
    fn cool_one(&mut self, now: MonoTime, known: &KnownBudgets) {
        let Some(slot) = self.warm.pop_front() else { return };
        let Some(stored) = self.stored.get_mut(slot.index()) else { return };
        stored.listed = Listed::Nowhere;
        if stored.bucket.in_use > 0 {
            return;
        }
        let at = stored.at;
        let empties_at = stored.bucket.empties_at(known.terms(stored.budget));
        if empties_at <= now {
            self.forget(at);
        } else {
            stored.listed = Listed::Idle(empties_at);
            self.idle.insert(empties_at, at);
        }
    }

    fn make(&mut self, now: MonoTime, at: BudgetUse, known: &KnownBudgets) -> Option<BucketSlot> {
        let budget = known.find(at.budget)?;
        known.terms(budget)?;
        self.make_room(now, known);
        let fresh = Stored { at, budget, bucket: Bucket::new(now), listed: Listed::Nowhere };
        let slot = match self.free.pop() {
            Some(slot) => {
                *self.stored.get_mut(slot.index())? = fresh;
                slot
            }
            None => {
                let slot = BucketSlot(u32::try_from(self.stored.len()).ok()?);
                self.stored.push(fresh);
                slot
            }
        };
        self.slots.insert(at, slot);
        Some(slot)
    }

    /// For a new bucket those are forgotten that have emptied, or one that has not.
    fn make_room(&mut self, now: MonoTime, known: &KnownBudgets) {
        for _ in 0..FORGOTTEN_MAX {
            let is_full = self.slots.len() >= BUCKETS_MAX;
            if is_full && self.idle.is_empty() {
                self.cool_one(now, known);
            }
            let least = || self.idle.least().filter(|_| is_full);
            let Some((empties_at, at)) = self.idle.emptied(now).or_else(least) else { return };
            self.idle.remove(empties_at, at);
            if is_full || !self.keep_on(now, at, known) {
                self.forget(at);
            }
        }
    }

    /// A bucket should have emptied. It has not if an edit of the file has it drain more slowly.
    fn keep_on(&mut self, now: MonoTime, at: BudgetUse, known: &KnownBudgets) -> bool {
        let slot = self.find(at).and_then(|slot| self.get_mut(slot));
        let Some(stored) = slot else { return false };
        let Some(terms) = known.terms(stored.budget) else { return false };
        stored.bucket.drain(now, terms);
        let empties_at = stored.bucket.empties_at(Some(terms));
        let owes = empties_at > now;
        if owes {
            stored.listed = Listed::Idle(empties_at);
            self.idle.insert(empties_at, at);
        }
        owes
    }

    fn forget(&mut self, at: BudgetUse) {
        if let Some(slot) = self.slots.remove(&at) {
            self.free.push(slot);
        }
    }
}

impl BucketSlot {
    fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}
