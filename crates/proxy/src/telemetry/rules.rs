//! The series of rules, which come and go with the file.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use policy::{Config, RuntimeChange};
use prometheus::core::{Collector, MetricVec, MetricVecBuilder};

use super::Telemetry;
use super::apps::whole;
use crate::cluster::Cluster;

/// How long the series of a rule stay after it has left the file: scrapers come by several times
/// meanwhile and see the last counts.
const RETIRE_AFTER: Duration = Duration::from_secs(15 * 60);

/// The rules that have series, or may get some.
#[derive(Debug, Default)]
pub(super) struct KnownRules {
    /// Those of the file, with their ends.
    file: HashMap<Box<str>, Option<i64>>,
    /// Those made at runtime, with their ends by cluster.
    runtime: HashMap<Box<str>, HashMap<Arc<str>, i64>>,
    /// Since when a rule is nowhere any more.
    absent: HashMap<Box<str>, Instant>,
}

impl KnownRules {
    /// The end of a rule, if it is there at all.
    fn end_of(&self, name: &str) -> Option<Option<i64>> {
        let made = self.runtime.get(name).and_then(|ends| ends.values().max().copied());
        self.file.get(name).copied().or(made.map(Some))
    }
}

/// The series of rules come and go with the file.
impl Telemetry {
    /// A configuration is in force: exports when its rules expire, lets go of rules that are gone,
    /// and takes over its bounds. Connections that remember `other` for an app go on with it.
    pub fn handle_config(&self, config: &Config) {
        self.follow_config(config, Instant::now());
    }

    pub(super) fn follow_config(&self, config: &Config, now: Instant) {
        let max_apps = usize::try_from(config.metrics.max_apps).unwrap_or(usize::MAX);
        self.apps.set_max(max_apps);
        self.users.set_max(max_apps);
        let rules = config.clusters.iter().flat_map(|cluster| cluster.rules.iter());
        let named = rules.map(|rule| (rule.name.as_ref().into(), rule.expires_at.map(|at| at.0)));
        let mut known = self.rules.lock();
        let gone = std::mem::replace(&mut known.file, named.collect());
        let names: HashSet<Box<str>> = gone.into_keys().chain(known.file.keys().cloned()).collect();
        self.follow_rules(&mut known, names.iter(), now);
        drop(known);
        self.begin_at_zero(config);
        // There may be nobody who scrapes.
        self.retire_rules(now);
    }

    /// These runtime rules of a cluster stand now, or do not any more: exports when they end, and
    /// lets go of those that are gone.
    pub fn handle_runtime_changes(&self, cluster: &Cluster, changes: &[RuntimeChange]) {
        self.follow_runtime_changes(cluster, changes, Instant::now());
    }

    pub(super) fn follow_runtime_changes(
        &self,
        cluster: &Cluster,
        changes: &[RuntimeChange],
        now: Instant,
    ) {
        let count = i64::try_from(cluster.policy().rules.made_at_runtime()).unwrap_or(i64::MAX);
        self.families.runtime_rules.with_label_values(&[&*cluster.name]).set(count);
        let mut known = self.rules.lock();
        let mut names: Vec<Box<str>> = Vec::new();
        for change in changes {
            let name = match change {
                RuntimeChange::Stands(rule) => {
                    self.families.rule_hits.with_label_values(&[&**rule.name()]);
                    let ends = known.runtime.entry(rule.name().as_ref().into()).or_default();
                    ends.insert(cluster.name.clone(), rule.expires_at().0);
                    rule.name()
                }
                RuntimeChange::Gone(name) => {
                    if let Some(ends) = known.runtime.get_mut(&**name) {
                        ends.remove(&cluster.name);
                    }
                    name
                }
            };
            names.push(name.as_ref().into());
        }
        for name in &names {
            if known.runtime.get(name).is_some_and(HashMap::is_empty) {
                known.runtime.remove(name);
            }
        }
        self.follow_rules(&mut known, names.iter(), now);
        drop(known);
        self.retire_rules(now);
    }

    /// A series of this rule is made, which may have left long ago: a statement counts when it is over.
    pub(super) fn note_series_of(&self, rule: &str) {
        let mut known = self.rules.lock();
        if known.end_of(rule).is_none() && !known.absent.contains_key(rule) {
            known.absent.insert(rule.into(), Instant::now());
        }
    }

    /// The table of runtime rules on this cluster's primary was read, or could not be.
    pub fn rules_synced(&self, cluster: &str, synced: bool) {
        self.families.rules_synced.with_label_values(&[cluster]).set(i64::from(synced));
    }

    /// Statements that one rule has decided about so far.
    pub fn hits_of(&self, rule: &str) -> u64 {
        self.families.rule_hits.with_label_values(&[rule]).get()
    }

    /// Statements that each rule has decided about so far.
    pub fn rule_hits(&self) -> HashMap<String, u64> {
        let mut hits = HashMap::new();
        for family in self.families.rule_hits.collect() {
            for metric in family.get_metric() {
                if let Some(rule) = metric.get_label().first() {
                    hits.insert(rule.value().to_owned(), whole(metric.get_counter().get_value()));
                }
            }
        }
        hits
    }

    /// The series of these rules are what is known of them.
    fn follow_rules<'n>(
        &self,
        known: &mut KnownRules,
        names: impl Iterator<Item = &'n Box<str>>,
        now: Instant,
    ) {
        for name in names {
            let end = known.end_of(name);
            match end.flatten() {
                Some(end) => {
                    self.families.rule_expires.with_label_values(&[name]).set(seconds(end))
                }
                // It is not there if the rule never had an end.
                None => drop(self.families.rule_expires.remove_label_values(&[name])),
            }
            if end.is_some() {
                known.absent.remove(name);
            } else {
                known.absent.entry(name.clone()).or_insert(now);
            }
        }
    }

    /// Takes out the series of rules that have been gone for long.
    pub(super) fn retire_rules(&self, now: Instant) {
        let mut known = self.rules.lock();
        let mut retired: HashSet<Box<str>> = HashSet::new();
        known.absent.retain(|name, since| {
            let stays = now.saturating_duration_since(*since) < RETIRE_AFTER;
            if !stays {
                retired.insert(name.clone());
            }
            stays
        });
        if retired.is_empty() {
            return;
        }
        remove_rules(&self.families.statements, &retired);
        remove_rules(&self.families.checks, &retired);
        remove_rules(&self.families.cooperative_checks, &retired);
        remove_rules(&self.families.queue_delay, &retired);
        remove_rules(&self.families.rule_hits, &retired);
        remove_rules(&self.families.runaway, &retired);
        self.generation.fetch_add(1, Ordering::Relaxed);
    }
}

fn remove_rules<B: MetricVecBuilder>(family: &MetricVec<B>, retired: &HashSet<Box<str>>) {
    for metrics in family.collect() {
        for metric in metrics.get_metric() {
            let labels: HashMap<&str, &str> =
                metric.get_label().iter().map(|label| (label.name(), label.value())).collect();
            if labels.get("rule").is_some_and(|rule| retired.contains(*rule)) {
                // It was there a moment ago, and nobody else takes series out.
                drop(family.remove(&labels));
            }
        }
    }
}

/// Unix seconds as Prometheus has them: exact for millions of years.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "there is no From")]
fn seconds(unix: i64) -> f64 {
    unix as f64
}
