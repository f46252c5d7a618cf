//! What the rules were, so that a change of them can be told.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::look::RuleLook;
use crate::record::{At, Event};

/// A change that somebody made here is in force within this.
const AUTHOR_WITHIN_MS: i64 = 10_000;

/// Authors that are remembered until the change is seen.
const AUTHORS_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct KnownRules {
    rules: BTreeMap<Arc<str>, RuleLook>,
    is_known: bool,
    /// Who has lifted which rule, and when.
    lifted: BTreeMap<Arc<str>, (String, At)>,
}

impl KnownRules {
    pub(super) fn of(&self, name: &str) -> Option<&RuleLook> {
        self.rules.get(name)
    }

    /// Somebody has changed a rule here.
    pub(super) fn note_author(&mut self, rule: &Arc<str>, author: &str, what: &str, at: At) {
        if what == "lifted" && self.lifted.len() < AUTHORS_MAX {
            self.lifted.insert(rule.clone(), (author.to_owned(), at));
        }
    }

    /// Other rules are in force. What that changes of those that were made at runtime; edits of the
    /// file are told by their own words.
    pub(super) fn change(&mut self, cluster: &str, rules: &[RuleLook], at: At) -> Vec<Event> {
        let now: BTreeMap<Arc<str>, RuleLook> =
            rules.iter().map(|rule| (rule.name.clone(), rule.clone())).collect();
        let before = std::mem::replace(&mut self.rules, now);
        if !std::mem::replace(&mut self.is_known, true) {
            return Vec::new();
        }
        self.lifted.retain(|_, (_, then)| at.0.saturating_sub(then.0) < AUTHOR_WITHIN_MS);
        let mut events = Vec::new();
        for rule in self.rules.values().filter(|rule| rule.author.is_some()) {
            let what = match before.get(&rule.name) {
                None => "was made",
                Some(before) if before != rule => "was changed",
                Some(_) => continue,
            };
            events.push(told(cluster, rule, what, rule.author.as_deref()));
        }
        for rule in before.values().filter(|rule| rule.author.is_some()) {
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
