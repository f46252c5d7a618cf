//! What the rules were, so that a change of them can be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::intervals::Moment;
use crate::look::RuleLook;
use crate::record::{At, Event};

/// A change that somebody made here is in force within this.
const AUTHOR_WITHIN_MS: i64 = 10_000;

/// Authors that are remembered until the change is seen.
const AUTHORS_MAX: usize = 1_000;

/// Ends that differ by no more than this are the same end, named by a clock that was set meanwhile.
const SAME_END_MS: u64 = 2_500;

/// A rule, and when it ends by the steady clock, in milliseconds.
#[derive(Debug)]
struct Known {
    rule: RuleLook,
    steady_end: Option<i64>,
}

impl Known {
    fn new(rule: &RuleLook, before: Option<&Self>, now: Moment) -> Self {
        let steady = |end: At| {
            let mono = i64::try_from(now.mono.as_millis()).unwrap_or(i64::MAX);
            end.0.saturating_sub(now.at.0).saturating_add(mono)
        };
        let steady_end = match before {
            Some(before) if before.rule.ends == rule.ends => before.steady_end,
            Some(_) | None => rule.ends.map(steady),
        };
        Self { rule: rule.clone(), steady_end }
    }

    /// Whether somebody has changed it since `before`: a clock that is set gives its end another name.
    fn is_other_than(&self, before: &Self) -> bool {
        let same_end = match (self.steady_end, before.steady_end) {
            (Some(now), Some(before)) => now.abs_diff(before) <= SAME_END_MS,
            (now, before) => now == before,
        };
        !same_end || self.rule != RuleLook { ends: self.rule.ends, ..before.rule.clone() }
    }
}

#[derive(Debug, Default)]
pub(super) struct KnownRules {
    rules: BTreeMap<Arc<str>, Known>,
    is_known: bool,
    /// Who has lifted which rule, and when.
    lifted: BTreeMap<Arc<str>, (String, At)>,
}

impl KnownRules {
    pub(super) fn of(&self, name: &str) -> Option<&RuleLook> {
        self.rules.get(name).map(|known| &known.rule)
    }

    /// Somebody has changed a rule here.
    pub(super) fn note_author(&mut self, rule: &Arc<str>, author: &str, what: &str, at: At) {
        if what == "lifted" && self.lifted.len() < AUTHORS_MAX {
            self.lifted.insert(rule.clone(), (author.to_owned(), at));
        }
    }

    /// Other rules are in force. What that changes of those that were made at runtime; edits of the
    /// file are told by their own words.
    pub(super) fn change(&mut self, cluster: &str, rules: &[RuleLook], now: Moment) -> Vec<Event> {
        let known = |rule: &RuleLook| {
            (rule.name.clone(), Known::new(rule, self.rules.get(&rule.name), now))
        };
        let current: BTreeMap<Arc<str>, Known> = rules.iter().map(known).collect();
        let before = std::mem::replace(&mut self.rules, current);
        if !std::mem::replace(&mut self.is_known, true) {
            return Vec::new();
        }
        let at = now.at;
        self.lifted.retain(|_, (_, then)| at.0.saturating_sub(then.0) < AUTHOR_WITHIN_MS);
        let mut events = Vec::new();
        for known in self.rules.values().filter(|known| known.rule.author.is_some()) {
            let rule = &known.rule;
            let what = match before.get(&rule.name) {
                None => "was made",
                Some(before) if known.is_other_than(before) => "was changed",
                Some(_) => continue,
            };
            events.push(told(cluster, rule, what, rule.author.as_deref()));
        }
        for Known { rule, .. } in before.values().filter(|known| known.rule.author.is_some()) {
            if self.rules.contains_key(&rule.name) {
                continue;
            }
            let lifted = self.lifted.remove(&rule.name);
            let has_ended = rule.ends.is_some_and(|ends| ends.0 <= at.0.saturating_add(1_000));
            events.push(match (lifted, has_ended) {
                (Some((author, _)), _) => told(cluster, rule, "was lifted", Some(&author)),
                (None, true) => told(cluster, rule, "ended", None),
                (None, false) => told(cluster, rule, "was lifted at another Sluice", None),
            });
        }
        events
    }
}

fn told(cluster: &str, rule: &RuleLook, what: &str, author: Option<&str>) -> Event {
    let RuleLook { name, does, reason, .. } = rule;
    let by = author.map(|author| format!(" by {author}")).unwrap_or_default();
    let because = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    Event {
        cluster: cluster.to_owned(),
        kind: "rule".to_owned(),
        subject: name.to_string(),
        author: author.map(str::to_owned),
        text: format!("rule {name} {what}{by}: {does}{because}"),
        ..Event::default()
    }
}
