//! How full budgets are, for people.

use std::collections::HashMap;

use crate::budget::BudgetKey;
use crate::{Controller, MonoTime};

impl Controller {
    /// How full budgets are that somebody has taken from: of the limits of a bucket that which is
    /// nearest, of the buckets of a budget the fullest; 1 is full. With thousands of buckets those
    /// of what a budget is `per` are not looked at.
    pub fn budget_fills(&mut self, now: MonoTime) -> HashMap<BudgetKey, f64> {
        let now = self.tick(now);
        self.budgets.fills(now)
    }
}
