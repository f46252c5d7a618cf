//! What the process behind this one has to know of budgets, and what this one has from the one before.

use std::collections::HashMap;

use crate::budget::{BudgetDebt, BudgetSet, BudgetUse};
use crate::{Controller, MonoTime};

impl Controller {
    /// How many statements are at the server, by bucket of a budget, with those of the process before.
    #[must_use]
    pub fn budgeted_there(&self) -> HashMap<BudgetUse, u32> {
        self.budgets.there()
    }

    /// What is owed to budgets now.
    pub fn budget_debts(&mut self, now: MonoTime) -> Vec<(BudgetUse, BudgetDebt)> {
        let now = self.tick(now);
        self.budgets.debts(now)
    }

    /// The process before this one has so many statements at the server, by bucket: they have places
    /// here too.
    pub fn note_budgeted_elsewhere(&mut self, now: MonoTime, counts: HashMap<BudgetUse, u32>) {
        let now = self.tick(now);
        for at in self.budgets.note_elsewhere(counts) {
            let mut set = BudgetSet::default();
            set.add(at);
            self.budget_lines.wake(now, &set);
        }
        if self.budget_lines.due(now).is_some() {
            self.advance(now);
        }
    }

    /// So much was owed in the process before this one: it is owed here. To be told once.
    pub fn take_over_debts(&mut self, now: MonoTime, debts: Vec<(BudgetUse, BudgetDebt)>) {
        let now = self.tick(now);
        for (at, debt) in debts {
            self.budgets.take_over(now, at, debt);
        }
    }
}
