//! What statements that are at the server have used so far.

use std::time::Duration;

use crate::budget::BudgetHold;
use crate::{Controller, MonoTime};

impl Controller {
    /// A statement that has taken from its budgets has had the server work for so long, and is not over
    /// ([`BudgetHold::next_told`]).
    pub fn note_used_so_far(&mut self, now: MonoTime, hold: &mut BudgetHold, used: Duration) {
        let now = self.tick_quietly(now);
        self.budgets.note_so_far(now, hold, used);
    }
}
