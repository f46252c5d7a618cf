//! Lines of apps that have just begun: of apps that may ask for less than their share.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Head, LineKey, Ring};
use crate::request::Lane;
use crate::{AppKey, MonoTime, RuleKey};

/// So many are known; others take turns.
pub(super) const YOUNG_MAX: usize = 1_024;

/// In the order in which they are looked at. Those that have ended are still among them.
#[derive(Debug, Default)]
pub(super) struct Young(VecDeque<(LineKey, RuleKey, AppKey)>);

impl Young {
    pub(super) fn begin(&mut self, line: LineKey, rule: RuleKey, app: AppKey) {
        if self.0.len() < YOUNG_MAX {
            self.0.push_back((line, rule, app));
        }
    }
}

impl Ring {
    /// How many lines may be young.
    pub(crate) fn young(&self) -> usize {
        self.young.0.len()
    }

    /// Who is next of an app whose line is younger than `age`, another one with each call.
    pub(crate) fn next_young(&mut self, now: MonoTime, age: Duration) -> Option<Head> {
        while let Some((line, rule, app)) = self.young.0.pop_front() {
            let known = self.rules.get(&rule).and_then(|branch| branch.apps.get(&app));
            let is_young = |since| now.saturating_since(since) < age;
            let Some(found) =
                known.filter(|app| app.key() == Some(line) && is_young(app.line_since))
            else {
                continue;
            };
            self.young.0.push_back((line, rule, app));
            let (identity, ticket, stake) = found.next()?;
            let lane = Lane { rule, app, identity };
            return Some(stake.head(ticket, lane));
        }
        None
    }

    /// Whether neither its rule nor its app, which wait, are ahead of their turns by more than so
    /// many rows.
    pub(crate) fn is_due(&self, lane: Lane, ahead: f64) -> bool {
        self.rules.get(&lane.rule).is_some_and(|branch| {
            self.turns.is_due(lane.rule, (ahead, branch.weight))
                && branch.turns.is_due(lane.app, (ahead, 1))
        })
    }
}
