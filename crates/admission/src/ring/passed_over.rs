//! Whoever is next of those who may be.

use std::ops::ControlFlow;

use super::{Head, Ring};
use crate::request::Lane;

/// So many are passed over at once at most: it is done under a lock, for each release.
const PASSED_OVER_MAX: usize = 16;

impl Ring {
    /// Who wins the next check that is won, of those apps that may.
    pub(crate) fn head_where(&self, may: impl FnMut(&Head) -> bool) -> Option<Head> {
        self.pass_over(may).break_value().flatten()
    }

    /// Whether nobody of those who wait may win a check; `false` where that are too many to be asked.
    pub(crate) fn none_may(&self, may: impl FnMut(&Head) -> bool) -> bool {
        self.pass_over(may).is_continue()
    }

    /// Somebody is passed over for another: of what that one has it is owed so many rows at most.
    pub(crate) fn bring_along(&mut self, passed: Lane, other: Lane, rows: f64) {
        let Some(branch) = self.rules.get_mut(&passed.rule) else { return };
        if passed.rule == other.rule {
            branch.turns.bring_along(passed.app, other.app, (rows, 1));
        } else {
            self.turns.bring_along(passed.rule, other.rule, (rows, branch.weight));
        }
    }

    /// `Break(None)`: there are too many.
    fn pass_over(&self, mut may: impl FnMut(&Head) -> bool) -> ControlFlow<Option<Head>> {
        let mut left = PASSED_OVER_MAX;
        for rule in self.turns.in_turn() {
            let Some(branch) = self.rules.get(&rule) else { continue };
            for app in branch.turns.in_turn() {
                let next = branch.apps.get(&app).and_then(super::App::next);
                let Some((identity, ticket, stake)) = next else { continue };
                let head = stake.head(ticket, Lane { rule, app, identity });
                if may(&head) {
                    return ControlFlow::Break(Some(head));
                }
                let Some(fewer) = left.checked_sub(1) else { return ControlFlow::Break(None) };
                left = fewer;
            }
        }
        ControlFlow::Continue(())
    }
}
