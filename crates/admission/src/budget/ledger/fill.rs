//! How full budgets are, for people.

use std::collections::HashMap;

use super::Budgets;
use crate::MonoTime;
use crate::budget::store::Stored;
use crate::budget::terms::{BudgetKey, BudgetUse};

/// With more buckets than these only those are looked at that all of a budget's statements share:
/// a look is not to hold up statements, and so many take a fraction of a millisecond.
const LOOKED_AT_MAX: usize = 4_096;

impl Budgets {
    /// How full the fullest bucket is of each budget of which one is remembered.
    pub(crate) fn fills(&self, now: MonoTime) -> HashMap<BudgetKey, f64> {
        let mut fills: HashMap<BudgetKey, f64> = HashMap::new();
        let mut look = |stored: &Stored| {
            let Some(terms) = self.known.terms(stored.budget) else { return };
            let elsewhere = self.elsewhere.at(stored.at);
            if let Some(fill) = stored.bucket.fill(now, terms, elsewhere) {
                let fullest = fills.entry(stored.at.budget).or_default();
                *fullest = fullest.max(fill);
            }
        };
        if self.buckets.len() > LOOKED_AT_MAX {
            let shared = self.known.all_met().filter_map(|(budget, _)| {
                self.buckets.get(self.buckets.find(BudgetUse { budget, instance: 0 })?)
            });
            shared.for_each(&mut look);
        } else {
            self.buckets.iter().for_each(&mut look);
        }
        fills
    }
}
