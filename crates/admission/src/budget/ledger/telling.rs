//! What the process behind this one is told of budgets, and what the one before has told this one.
//!
//! Debts are told as what is added to them, once each: they drain here and there alike. So what is
//! owed there is what both have taken together, whoever took it and whenever its cost was known.

use std::collections::{HashMap, HashSet};

use super::Budgets;
use crate::budget::elsewhere::{BudgetDebt, BudgetNews};
use crate::budget::prediction::DigestCost;
use crate::budget::terms::BudgetUse;
use crate::{DigestKey, MonoTime};

/// Buckets of which there is something to tell, as many as are remembered: the process behind may
/// not listen.
const UNTOLD_MAX: usize = 65_536;

/// Digests whose costs are told at first: those that cost most.
const COSTS_MAX: usize = 4_096;

/// What has changed since the process behind was told last.
#[derive(Debug, Default)]
pub(super) struct Untold {
    owed: HashMap<BudgetUse, BudgetDebt>,
    /// Of these something was learned.
    digests: HashSet<DigestKey>,
}

impl Untold {
    pub(super) fn owe(&mut self, at: BudgetUse, more: BudgetDebt) {
        if self.owed.len() < UNTOLD_MAX || self.owed.contains_key(&at) {
            let owed = self.owed.entry(at).or_default();
            *owed = owed.and(more);
        }
    }

    pub(super) fn learn(&mut self, digest: DigestKey) {
        if self.digests.len() < UNTOLD_MAX {
            self.digests.insert(digest);
        }
    }
}

impl Budgets {
    /// A process behind this one is told from now on, first what is owed already,
    /// and what digests cost.
    pub(crate) fn tell(&mut self, now: MonoTime) {
        let owed = self.debts(now).into_iter().collect();
        let digests = self.predictions.costliest(COSTS_MAX).into_iter().collect();
        self.untold = Some(Box::new(Untold { owed, digests }));
    }

    /// It does not listen any more.
    pub(crate) fn tell_no_more(&mut self) {
        self.untold = None;
    }

    /// What it has to know now.
    pub(crate) fn news(&mut self, now: MonoTime) -> BudgetNews {
        let untold = self.untold.as_mut().map(|untold| std::mem::take(&mut **untold));
        let Untold { owed, digests } = untold.unwrap_or_default();
        let cost = |digest| Some((digest, self.predictions.of_digest(now, digest)?));
        BudgetNews {
            there: self.there(),
            owed: owed.into_iter().collect(),
            costs: digests.into_iter().filter_map(cost).collect(),
        }
    }

    /// The digests that cost more than the least `max_query_cost`, for a process to come.
    pub(crate) fn too_costly(&self, now: MonoTime) -> Vec<(DigestKey, DigestCost)> {
        let least = self.known.all_terms().filter_map(|terms| terms.max_query_cost);
        let Some(least) = least.min_by(f64::total_cmp) else { return Vec::new() };
        self.predictions.costlier(now, least, COSTS_MAX)
    }

    /// A process that is gone has learned this.
    pub(crate) fn learn_costs(&mut self, now: MonoTime, costs: Vec<(DigestKey, DigestCost)>) {
        for (digest, cost) in costs {
            if self.predictions.take_over(now, digest, cost)
                && let Some(untold) = &mut self.untold
            {
                untold.learn(digest);
            }
        }
    }

    /// How many are at the server, by bucket. The process behind hears of the one before this from
    /// nobody else.
    pub(crate) fn there(&self) -> HashMap<BudgetUse, u32> {
        let mut there = self.elsewhere.all().clone();
        for stored in self.buckets.iter().filter(|stored| stored.bucket.in_use > 0) {
            let count = there.entry(stored.at).or_default();
            *count = count.saturating_add(stored.bucket.in_use);
        }
        there
    }

    /// What is owed, by bucket.
    pub(crate) fn debts(&self, now: MonoTime) -> Vec<(BudgetUse, BudgetDebt)> {
        let debts = self.buckets.iter().filter_map(|stored| {
            let mut bucket = stored.bucket;
            bucket.drain(now, self.known.terms(stored.budget)?);
            Some((stored.at, bucket.debt()))
        });
        debts.filter(|(_, debt)| *debt != BudgetDebt::default()).collect()
    }

    /// The process before this one has told this. The buckets that may have room by that.
    pub(crate) fn note_news(&mut self, now: MonoTime, news: BudgetNews) -> Vec<BudgetUse> {
        let BudgetNews { there, owed, costs } = news;
        self.learn_costs(now, costs);
        let mut changed = Vec::new();
        for (at, more) in owed {
            self.owe(now, at, more);
            changed.push(at);
        }
        for at in there.keys() {
            // It is shown also when nobody has met it here.
            if let Some(index) = self.known.find(at.budget) {
                self.known.met(index);
            }
        }
        changed.extend(self.elsewhere.replace(there));
        changed
    }

    fn owe(&mut self, now: MonoTime, at: BudgetUse, more: BudgetDebt) {
        let Self { known, buckets, untold, .. } = self;
        let Some(slot) = buckets.touch(now, at, known) else { return };
        if let Some(stored) = buckets.get_mut(slot)
            && let Some(terms) = known.terms(stored.budget)
        {
            stored.bucket.drain(now, terms);
            stored.bucket.owe(more);
            if let Some(untold) = untold {
                untold.owe(at, more);
            }
        }
        buckets.rest(now, slot, known);
    }
}
