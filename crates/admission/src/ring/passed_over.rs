//! Whoever is next of those who may be.

use super::{Head, Ring};
use crate::request::Lane;

/// So many are passed over at once at most: it is done under a lock, for each release.
const PASSED_OVER_MAX: usize = 16;

impl Ring {
    /// Who wins the next check that is won, of those apps that may.
    pub(crate) fn head_where(&self, mut may: impl FnMut(&Head) -> bool) -> Option<Head> {
        let mut left = PASSED_OVER_MAX;
        for rule in self.turns.in_turn() {
            let Some(branch) = self.rules.get(&rule) else { continue };
            for app in branch.turns.in_turn() {
                let next = branch.apps.get(&app).and_then(super::App::next);
                let Some((identity, ticket, stake)) = next else { continue };
                let head = stake.head(ticket, Lane { rule, app, identity });
                if may(&head) {
                    return Some(head);
                }
                left = left.checked_sub(1)?;
            }
        }
        None
    }
}
