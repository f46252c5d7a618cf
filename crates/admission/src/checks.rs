//! Results of checks, counted per rule and app.
//!
//! The counts are drained by whoever exports them. A pair that has not been checked since the last
//! drain is forgotten, so memory follows the apps that are active; a pair that stays costs no
//! allocation.

use std::collections::BTreeMap;

use crate::{AppKey, RuleKey};

/// Pairs of rule and app counted apart between two drains. Clients choose apps, so there is a
/// bound; beyond it checks are counted for the rule alone.
const PAIRS_MAX: usize = 4_096;

/// Checks of one rule and app since the last drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckCount {
    /// The rule.
    pub rule: RuleKey,
    /// The app; `None` for those beyond the bound on pairs.
    pub app: Option<AppKey>,
    /// Checks that won the dice and found the gate open.
    pub passed: u64,
    /// Checks that lost the dice.
    pub lost: u64,
    /// Checks that won the dice and found the gate shut or contended (only in `mode: observe`:
    /// others are not checked before it is their turn).
    pub stopped: u64,
}

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Passed,
    Lost,
    Stopped,
}

#[derive(Debug, Default)]
pub(crate) struct CheckCounts {
    by_pair: BTreeMap<(RuleKey, Option<AppKey>), Tally>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    lost: u64,
    stopped: u64,
}

impl CheckCounts {
    pub(crate) fn count(&mut self, rule: RuleKey, app: AppKey, check: Check) {
        self.add(rule, app, check, 1);
    }

    /// So many checks ended like this.
    pub(crate) fn add(&mut self, rule: RuleKey, app: AppKey, check: Check, checks: u64) {
        if checks == 0 {
            return;
        }
        let mut pair = (rule, Some(app));
        if self.by_pair.len() >= PAIRS_MAX && !self.by_pair.contains_key(&pair) {
            pair = (rule, None);
        }
        let tally = self.by_pair.entry(pair).or_default();
        let field = match check {
            Check::Passed => &mut tally.passed,
            Check::Lost => &mut tally.lost,
            Check::Stopped => &mut tally.stopped,
        };
        *field = field.saturating_add(checks);
    }

    pub(crate) fn drain(&mut self, mut each: impl FnMut(CheckCount)) {
        self.by_pair.retain(|&(rule, app), tally| {
            let Tally { passed, lost, stopped } = std::mem::take(tally);
            let active = passed > 0 || lost > 0 || stopped > 0;
            if active {
                each(CheckCount { rule, app, passed, lost, stopped });
            }
            active
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(counts: &mut CheckCounts) -> Vec<CheckCount> {
        let mut all = Vec::new();
        counts.drain(|count| all.push(count));
        all
    }

    #[test]
    fn a_drain_gives_each_check_once_and_forgets_the_idle() {
        let mut counts = CheckCounts::default();
        counts.count(RuleKey(1), AppKey(2), Check::Passed);
        counts.count(RuleKey(1), AppKey(2), Check::Lost);
        counts.count(RuleKey(1), AppKey(2), Check::Lost);
        let app = Some(AppKey(2));
        let expected = CheckCount { rule: RuleKey(1), app, passed: 1, lost: 2, stopped: 0 };
        assert_eq!(drained(&mut counts), [expected]);
        assert_eq!(drained(&mut counts), []);
        assert!(counts.by_pair.is_empty());
    }

    #[test]
    fn apps_beyond_the_bound_are_counted_for_their_rule() {
        let mut counts = CheckCounts::default();
        for app in 0..10_000 {
            counts.count(RuleKey(1), AppKey(app), Check::Passed);
        }
        assert_eq!(counts.by_pair.len(), PAIRS_MAX + 1);
        let all = drained(&mut counts);
        assert_eq!(all.iter().map(|count| count.passed).sum::<u64>(), 10_000);
        assert_eq!(all.iter().find(|c| c.app.is_none()).unwrap().passed, 10_000 - 4_096);
    }
}
