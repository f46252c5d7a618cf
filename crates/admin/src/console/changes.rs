//! Changes of rules, as marks in the time lines.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;

use policy::{ClusterPolicy, RUNTIME_PREFIX, Rule};
use serde::Serialize;

use crate::status::words;

/// Marks that are kept of a cluster: an hour of somebody who edits every ten seconds.
const MARKS_MAX: usize = 360;

/// Rules that one mark names; the others are counted.
const NAMED_MAX: usize = 3;

/// A change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Mark {
    /// Seconds since the process started.
    pub(super) at_s: f64,
    /// What has changed, in words.
    pub(super) text: String,
}

/// What is known of a cluster's rules.
#[derive(Debug)]
pub(super) struct Changes {
    policy: Arc<ClusterPolicy>,
    /// How often they have changed.
    pub(super) revision: u64,
    marks: VecDeque<Mark>,
}

impl Changes {
    pub(super) fn new(policy: Arc<ClusterPolicy>) -> Self {
        Self { policy, revision: 0, marks: VecDeque::new() }
    }

    /// Compares what is in force now with what was.
    pub(super) fn look(&mut self, at_s: f64, policy: Arc<ClusterPolicy>) {
        if Arc::ptr_eq(&policy, &self.policy) {
            return;
        }
        let text = describe(&self.policy, &policy);
        self.policy = policy;
        self.revision = self.revision.saturating_add(1);
        let Some(text) = text else { return };
        self.marks.push_back(Mark { at_s, text });
        if self.marks.len() > MARKS_MAX {
            self.marks.pop_front();
        }
    }

    /// The marks after this time, oldest first.
    pub(super) fn since(&self, at_s: f64) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(move |mark| mark.at_s > at_s)
    }
}

/// What is different, in words; `None` where nothing is that a rule says.
fn describe(before: &ClusterPolicy, after: &ClusterPolicy) -> Option<String> {
    let mut gone: HashMap<&str, &Rule> =
        before.rules.iter().map(|rule| (&*rule.name, rule)).collect();
    let mut said = Vec::new();
    for rule in after.rules.iter() {
        match gone.remove(&*rule.name) {
            None => said.push(format!("{}: {}{}", short(rule), does(rule, after), author(rule))),
            Some(old) if !is_same(old, before, rule, after) => {
                said.push(format!("{} is now: {}{}", short(rule), does(rule, after), author(rule)));
            }
            Some(_) => {}
        }
    }
    let mut ended: Vec<&Rule> = gone.into_values().collect();
    ended.sort_by(|a, b| a.name.cmp(&b.name));
    said.extend(ended.into_iter().map(|rule| format!("{} ended", short(rule))));
    let further = said.len().saturating_sub(NAMED_MAX);
    said.truncate(NAMED_MAX);
    if further > 0 {
        said.push(format!("{further} more"));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn is_same(old: &Rule, before: &ClusterPolicy, new: &Rule, after: &ClusterPolicy) -> bool {
    old.expires_at == new.expires_at
        && old.mode == new.mode
        && does(old, before) == does(new, after)
        && old.reason == new.reason
}

fn does(rule: &Rule, policy: &ClusterPolicy) -> String {
    words::action(rule, policy)
}

fn author(rule: &Rule) -> String {
    rule.author.as_ref().map(|author| format!(", by {author}")).unwrap_or_default()
}

fn short(rule: &Rule) -> &str {
    rule.name.strip_prefix(RUNTIME_PREFIX).unwrap_or(&rule.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(rules: &str) -> Arc<ClusterPolicy> {
        let file = format!(
            "version: 1\nclusters:\n  main: {{ listen: 127.0.0.1:0, primary: 127.0.0.1:3306 }}\n\
             rules:\n{rules}"
        );
        policy::load(&file).unwrap().clusters.first().unwrap().clone()
    }

    #[test]
    fn a_mark_says_what_came_changed_and_ended() {
        let held = "- { name: a, match: { app: a }, hold: true, permanent: true }\n";
        let denied = "- { name: a, match: { app: a }, deny: true, permanent: true }\n";
        let other =
            "- { name: b, match: { app: b }, exempt: true, essential: true, permanent: true }\n";
        let mut changes = Changes::new(policy(held));
        changes.look(1.0, changes.policy.clone());
        changes.look(2.0, policy(held));
        assert_eq!((changes.since(0.0).count(), changes.revision), (0, 1));
        changes.look(3.0, policy(&format!("{held}{other}")));
        changes.look(4.0, policy(&format!("{denied}{other}")));
        changes.look(5.0, policy(other));
        let said: Vec<&str> = changes.since(0.0).map(|mark| &*mark.text).collect();
        assert_eq!(said, ["b: exempt", "a is now: deny", "a ended"]);
        assert_eq!(changes.since(4.0).count(), 1);
    }

    #[test]
    fn of_many_changes_some_are_named_and_marks_are_bounded() {
        let many: String = (0..10)
            .map(|n| {
                format!("- {{ name: r{n}, match: {{ app: a{n} }}, hold: true, permanent: true }}\n")
            })
            .collect();
        let one = "- { name: r0, match: { app: a0 }, hold: true, permanent: true }\n";
        let (few, many) = (policy(one), policy(&many));
        let mut changes = Changes::new(few.clone());
        for second in 1..1_000 {
            let next = if second % 2 == 1 { &many } else { &few };
            changes.look(f64::from(second), next.clone());
        }
        assert_eq!(changes.since(0.0).count(), MARKS_MAX);
        let last = changes.since(998.0).next().unwrap();
        assert!(last.text.ends_with("; 6 more"), "{last:?}");
    }
}
