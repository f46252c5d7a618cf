//! Buckets that have been at rest for a while, in the order in which they are forgotten.
//!
//! Where there are too many, the budget that has most of them loses one: whoever can make up as many
//! as it likes of one budget has nobody forget what is owed to another.

use std::collections::{BTreeMap, BTreeSet};

use super::terms::{BudgetKey, BudgetUse};
use crate::MonoTime;

#[derive(Debug, Default)]
pub(super) struct Idle {
    /// By when they have emptied.
    by_time: BTreeSet<(MonoTime, BudgetUse)>,
    /// The same of each budget, by instance.
    by_budget: BTreeMap<BudgetKey, BTreeSet<(MonoTime, u64)>>,
    /// How many each budget has.
    sizes: BTreeSet<(usize, BudgetKey)>,
}

impl Idle {
    pub(super) fn insert(&mut self, empties_at: MonoTime, at: BudgetUse) {
        self.by_time.insert((empties_at, at));
        self.change(at.budget, |of_budget| of_budget.insert((empties_at, at.instance)));
    }

    pub(super) fn remove(&mut self, empties_at: MonoTime, at: BudgetUse) {
        self.by_time.remove(&(empties_at, at));
        self.change(at.budget, |of_budget| of_budget.remove(&(empties_at, at.instance)));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    /// One that has emptied.
    pub(super) fn emptied(&self, now: MonoTime) -> Option<(MonoTime, BudgetUse)> {
        self.by_time.first().filter(|(empties_at, _)| *empties_at <= now).copied()
    }

    /// Of the budget that has most, the one that would be empty first.
    pub(super) fn least(&self) -> Option<(MonoTime, BudgetUse)> {
        let (_, budget) = *self.sizes.last()?;
        let (empties_at, instance) = *self.by_budget.get(&budget)?.first()?;
        Some((empties_at, BudgetUse { budget, instance }))
    }

    fn change(
        &mut self,
        budget: BudgetKey,
        change: impl FnOnce(&mut BTreeSet<(MonoTime, u64)>) -> bool,
    ) {
        let of_budget = self.by_budget.entry(budget).or_default();
        self.sizes.remove(&(of_budget.len(), budget));
        change(of_budget);
        if of_budget.is_empty() {
            self.by_budget.remove(&budget);
        } else {
            self.sizes.insert((of_budget.len(), budget));
        }
    }
}
