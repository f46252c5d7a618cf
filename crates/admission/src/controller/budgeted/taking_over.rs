//! What the process behind this one has to know of budgets, and what this one has from the one before.

use std::collections::HashMap;

use crate::budget::{BudgetNews, BudgetSet, BudgetUse, DigestCost};
use crate::{Controller, DigestKey, MonoTime};

impl Controller {
    /// How many statements are at the server, by bucket of a budget, with those of the process before.
    #[must_use]
    pub fn budgeted_there(&self) -> HashMap<BudgetUse, u32> {
        self.budgets.there()
    }

    /// A process behind this one is told of budgets from now on, by [`Controller::budget_news`].
    pub fn tell_budgets(&mut self, now: MonoTime) {
        let now = self.tick(now);
        self.budgets.tell(now);
    }

    /// It does not listen any more.
    pub fn tell_budgets_no_more(&mut self) {
        self.budgets.tell_no_more();
    }

    /// What it has to know now. To be told once: what is owed there is added to then.
    #[must_use]
    pub fn budget_news(&mut self, now: MonoTime) -> BudgetNews {
        let now = self.tick(now);
        self.budgets.news(now)
    }

    /// What a process to come has to know, also when this one has told it nothing: the digests that are
    /// believed to cost more than the least `max_query_cost` in force, 4,096 at most.
    #[must_use]
    pub fn too_costly(&mut self, now: MonoTime) -> Vec<(DigestKey, DigestCost)> {
        let now = self.tick_quietly(now);
        self.budgets.too_costly(now)
    }

    /// A process that is gone has learned this.
    pub fn learn_costs(&mut self, now: MonoTime, costs: Vec<(DigestKey, DigestCost)>) {
        let now = self.tick(now);
        self.budgets.learn_costs(now, costs);
    }

    /// The process before this one has told this: its statements have places here too, what they cost
    /// is owed here, and what it has learned is known.
    pub fn note_budget_news(&mut self, now: MonoTime, news: BudgetNews) {
        let now = self.tick(now);
        for at in self.budgets.note_news(now, news) {
            let mut set = BudgetSet::default();
            set.add(at);
            self.budget_lines.wake(now, &set);
        }
        if self.budget_lines.due(now).is_some() {
            self.advance(now);
        }
    }
}
