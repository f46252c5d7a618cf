//! The budget of statements that come last because one like them ran away: one of a kind at a time.
//!
//! No `match` meets it. Which statements do is found where quarantine is ([`crate::Quarantined`]); for
//! admission, metrics and people it is a budget like others.

use std::sync::Arc;

use admission::{BudgetBook, BudgetKey, BudgetTerms, Mode, OnExceeded};

use super::{Budget, Budgets, Per, budget_key};
use crate::compile::limits;
use crate::rule::Rule;
use crate::runaway::RunawayAction;

/// Its name. No budget of a file can have it, for names have no brackets.
const LANE: &str = "(deprioritised)";

/// Its key.
pub(crate) fn lane_key() -> BudgetKey {
    budget_key(LANE)
}

impl Budgets {
    /// The same, and this one if one of the rules has its runaway statements come last.
    #[must_use]
    pub(crate) fn with_lane_for(self, rules: &[Rule]) -> Self {
        let deprioritises = |rule: &Rule| {
            rule.runaway.is_some_and(|runaway| runaway.action == RunawayAction::Deprioritise)
        };
        if !rules.iter().any(deprioritises) {
            return self;
        }
        let index = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let lane = Budget {
            name: LANE.into(),
            key: lane_key(),
            index,
            condition: Arc::default(),
            terms: terms(),
            per: Some(Per::Digest),
            reason: "a statement like it has run away".into(),
        };
        let list: Arc<[Budget]> = self.list.iter().cloned().chain([lane]).collect();
        let book = BudgetBook::new(list.iter().map(|one| (one.key, one.terms)).collect());
        Self { list, book, ..self }
    }
}

fn terms() -> BudgetTerms {
    BudgetTerms {
        max_concurrency: Some(1),
        rate: None,
        rows_per_s: None,
        share: None,
        burst: 0.0,
        max_query_cost: None,
        on_exceeded: OnExceeded::Delay,
        max_delay: limits::BUDGET_MAX_DELAY.default,
        mode: Mode::Enforce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_there_for_rules_that_deprioritise_and_nothing_meets_it_by_itself() {
        assert!(Budgets::default().with_lane_for(&[]).is_empty());
        let file = "
version: 1
clusters: { main: { listen: 127.0.0.1:3307, primary: 127.0.0.1:3306 } }
rules:
  - { name: late, gate: none, permanent: true, runaway: { rows_sent: 10, action: deprioritise, watch: { for: 1m } } }";
        let policy = crate::load(file).unwrap();
        let budgets = &policy.clusters[0].budgets;
        assert_eq!(budgets.iter().map(|budget| &*budget.name).collect::<Vec<_>>(), [LANE]);
        assert_eq!(budgets.get(lane_key()).unwrap().terms.max_concurrency, Some(1));
    }
}
