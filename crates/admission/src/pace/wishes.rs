//! Which rules want of the pace, which of them wait for it most of the time, and what the others
//! have of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::sweep::Sweep;
use crate::{MonoTime, RuleKey};

/// The time constant of how much of the time a rule waits, in seconds.
const MEMORY: f64 = 2.0;

/// From this part of the time on it waits most of it, and down to the other.
const MOSTLY: f64 = 0.5;
const BARELY: f64 = 0.25;

/// What a rule has is its mean of about so long, in seconds.
const USES: f64 = 4.0;

/// Who has not asked for so long wants nothing.
const ASKED_FOR: Duration = Duration::from_secs(3);

/// Rules told apart. There are as many as the policy has; those of former policies are forgotten.
const RULES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Wishes {
    rules: BTreeMap<RuleKey, Wish>,
    looked_at: MonoTime,
    sweep: Sweep,
}

#[derive(Debug)]
struct Wish {
    weight: f64,
    asked_at: MonoTime,
    /// It waits now.
    waits: bool,
    /// The part of the time in which it waited of late.
    waited: f64,
    mostly: bool,
    /// What it has, in rows a second.
    used: f64,
}

impl Wishes {
    /// A statement of this rule asks.
    pub(crate) fn note(&mut self, now: MonoTime, rule: RuleKey, weight: f64) {
        if let Some(wish) = self.rules.get_mut(&rule) {
            (wish.asked_at, wish.weight) = (now, weight);
            return;
        }
        if self.rules.len() >= RULES_MAX && self.sweep.is_due(now) {
            self.rules.retain(|_, wish| wish.is_wanted(now));
        }
        if self.rules.len() < RULES_MAX {
            self.rules.insert(rule, Wish::new(now, weight));
        }
    }

    /// So many rows of this rule are let through, or turn out to be more, or less than nothing: a
    /// refund.
    pub(crate) fn spend(&mut self, rule: RuleKey, cost: f64) {
        if let Some(wish) = self.rules.get_mut(&rule) {
            wish.used += cost / USES;
        }
    }

    /// These rules wait now.
    pub(crate) fn look(&mut self, now: MonoTime, waiting: impl Iterator<Item = RuleKey>) {
        let since = now.saturating_since(self.looked_at).as_secs_f64();
        self.looked_at = now;
        for rule in waiting {
            if let Some(wish) = self.rules.get_mut(&rule) {
                (wish.waits, wish.asked_at) = (true, now);
            }
        }
        let newest = 1.0 - (-since / MEMORY).exp();
        let left = (-since / USES).exp();
        for wish in self.rules.values_mut() {
            wish.used *= left;
            let waits = if std::mem::take(&mut wish.waits) { 1.0 } else { 0.0 };
            wish.waited += newest * (waits - wish.waited);
            wish.mostly = wish.waited >= if wish.mostly { BARELY } else { MOSTLY };
        }
    }

    /// The weights of the rules that wait most of the time; 0 if none does.
    pub(crate) fn pressing(&self) -> f64 {
        self.rules.values().filter(|wish| wish.mostly).map(|wish| wish.weight).sum()
    }

    /// What the rules have that do not wait most of the time, in rows a second.
    pub(crate) fn beside(&self) -> f64 {
        self.rules.values().filter(|wish| !wish.mostly).map(|wish| wish.used.max(0.0)).sum()
    }

    /// What the rules have that wait most of the time, in rows a second.
    pub(crate) fn given(&self) -> f64 {
        self.rules.values().filter(|wish| wish.mostly).map(|wish| wish.used.max(0.0)).sum()
    }

    /// The weights of the rules that have asked of late.
    pub(crate) fn asking(&self, now: MonoTime) -> f64 {
        self.rules.values().filter(|wish| wish.is_wanted(now)).map(|wish| wish.weight).sum()
    }
}

impl Wish {
    fn new(now: MonoTime, weight: f64) -> Self {
        Self { weight, asked_at: now, waits: false, waited: 0.0, mostly: false, used: 0.0 }
    }

    fn is_wanted(&self, now: MonoTime) -> bool {
        now.saturating_since(self.asked_at) <= ASKED_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    #[test]
    fn a_rule_presses_when_it_waits_most_of_the_time() {
        let mut wishes = Wishes::default();
        for look in 1..100 {
            wishes.note(at(look * 100), RuleKey(1), 3.0);
            wishes.note(at(look * 100), RuleKey(2), 1.0);
            let rarely = (look % 8 == 0).then_some(RuleKey(2));
            wishes.look(at(look * 100), [RuleKey(1)].into_iter().chain(rarely));
        }
        assert!((wishes.pressing() - 3.0).abs() < 1e-9);
        assert!((wishes.asking(at(9_900)) - 4.0).abs() < 1e-9);
        for look in 100..140 {
            wishes.look(at(look * 100), std::iter::empty());
        }
        assert!(wishes.pressing().abs() < 1e-9 && wishes.asking(at(13_900)).abs() < 1e-9);
    }

    #[test]
    fn what_rules_have_that_wait_or_do_not_is_known() {
        let mut wishes = Wishes::default();
        for look in 1..300 {
            for (rule, rows) in [(1, 30.0), (2, 5.0), (3, 7.0)] {
                wishes.note(at(look * 100), RuleKey(rule), 1.0);
                wishes.spend(RuleKey(rule), rows);
            }
            wishes.look(at(look * 100), [RuleKey(1)].into_iter());
        }
        assert!((wishes.beside() - 120.0).abs() < 3.0, "{}", wishes.beside());
        assert!((wishes.given() - 300.0).abs() < 8.0, "{}", wishes.given());
    }

    #[test]
    fn rules_of_former_policies_are_forgotten() {
        let mut wishes = Wishes::default();
        for rule in 0..10_000 {
            wishes.note(at(rule), RuleKey(rule), 1.0);
        }
        assert!(wishes.rules.len() <= RULES_MAX, "{}", wishes.rules.len());
        assert!(wishes.rules.contains_key(&RuleKey(9_999)));
    }
}
