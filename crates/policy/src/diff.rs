//! What another file changes while the process runs.
//!
//! [`edit`] makes what is in force of what was in force and the file: each key is taken from one of
//! the two, and where it is taken is where its change is told. A new key has to be decided about,
//! or it does not compile.

mod edit;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::cluster::ClusterPolicy;
use crate::config::Config;
use crate::rule::Rule;

pub use self::edit::{Edit, FixedKey, Pending, edit};

/// One difference between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This key is different, and the process keeps what it started with until it is started again.
    NeedsRestart(String),
    /// This key is different, and in force.
    Setting(String),
    /// A rule is new.
    RuleAdded(Arc<str>),
    /// A rule is gone.
    RuleRemoved(Arc<str>),
    /// A rule says something else.
    RuleChanged(Arc<str>),
    /// The rules that were there before stand in another order.
    RulesReordered,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsRestart(key) => write!(f, "{key} cannot change without a restart"),
            Self::Setting(key) => write!(f, "{key} changed"),
            Self::RuleAdded(name) => write!(f, "rule {name} added"),
            Self::RuleRemoved(name) => write!(f, "rule {name} removed"),
            Self::RuleChanged(name) => write!(f, "rule {name} changed"),
            Self::RulesReordered => f.write_str("rules reordered"),
        }
    }
}

/// What the rules of two files differ in. Those of a cluster that only one of them has are not
/// compared.
fn rule_changes(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes = Changes::default();
    changes.of_rules(&rules(old, new), &rules(new, old));
    changes.live
}

#[derive(Default)]
struct Changes {
    live: Vec<Change>,
}

impl Changes {
    fn of_rules(&mut self, old: &NamedRules<'_>, new: &NamedRules<'_>) {
        for name in &old.order {
            if !new.by_name.contains_key(name) {
                self.live.push(Change::RuleRemoved((*name).into()));
            }
        }
        for name in &new.order {
            match (old.by_name.get(name), new.by_name.get(name)) {
                (None, _) => self.live.push(Change::RuleAdded((*name).into())),
                (Some(before), Some(after)) if !say_the_same(before, after) => {
                    self.live.push(Change::RuleChanged((*name).into()));
                }
                (Some(_), _) => {}
            }
        }
        let before = old.order.iter().filter(|name| new.by_name.contains_key(*name));
        let after = new.order.iter().filter(|name| old.by_name.contains_key(*name));
        if !before.eq(after) {
            self.live.push(Change::RulesReordered);
        }
    }
}

/// The rules of a file: each name once, with what it says in each cluster that both files have.
struct NamedRules<'c> {
    order: Vec<&'c str>,
    by_name: HashMap<&'c str, Vec<(&'c str, &'c Rule)>>,
}

fn rules<'c>(config: &'c Config, other: &Config) -> NamedRules<'c> {
    let mut rules = NamedRules { order: Vec::new(), by_name: HashMap::new() };
    let both = |cluster: &&Arc<ClusterPolicy>| other.cluster(&cluster.name).is_some();
    for cluster in config.clusters.iter().filter(both) {
        for rule in cluster.rules.iter() {
            let known = rules.by_name.entry(&*rule.name).or_default();
            if known.is_empty() {
                rules.order.push(&rule.name);
            }
            known.push((&*cluster.name, rule));
        }
    }
    rules
}

fn say_the_same(before: &[(&str, &Rule)], after: &[(&str, &Rule)]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|((in_a, a), (in_b, b))| in_a == in_b && same_rule(a, b))
}

/// Whether two rules say the same, wherever they stand.
fn same_rule(a: &Rule, b: &Rule) -> bool {
    let Rule {
        name,
        key,
        index: _,
        condition,
        statements,
        action,
        gate_from,
        speed,
        mode,
        error,
        honour_priority,
        schedule,
        on_client_gone,
        runaway,
        expires_at,
        essential,
        author,
        reason,
    } = a;
    *name == b.name
        && *key == b.key
        && *condition == b.condition
        && *statements == b.statements
        && *action == b.action
        && *gate_from == b.gate_from
        && *speed == b.speed
        && *mode == b.mode
        && *error == b.error
        && *honour_priority == b.honour_priority
        && *schedule == b.schedule
        && *on_client_gone == b.on_client_gone
        && *runaway == b.runaway
        && *expires_at == b.expires_at
        && *essential == b.essential
        && *author == b.author
        && *reason == b.reason
}

#[cfg(test)]
mod tests;
