//! What is in force in a cluster: the file's policy, and the runtime rules that stand before it.
//!
//! Either may change without the other. Statements under way keep what they began with, and who
//! waits is judged again.

use std::sync::Arc;
use std::time::Duration;

use policy::{ClusterPolicy, Likeness, Quarantine, Quarantined, Rule, RuntimeRule, UnixTime};

use super::{Cluster, starvation};

/// Where what is in force comes from.
#[derive(Debug)]
pub(super) struct Layers {
    file: Arc<ClusterPolicy>,
    /// In their order.
    runtime: Arc<[RuntimeRule]>,
    quarantine: Quarantine,
    /// The number of the next in quarantine.
    next_id: u64,
}

impl Layers {
    /// The file alone.
    pub(super) fn new(file: Arc<ClusterPolicy>) -> Self {
        Self { file, runtime: Arc::default(), quarantine: Quarantine::default(), next_id: 1 }
    }

    fn policy(&self) -> Arc<ClusterPolicy> {
        if self.runtime.is_empty() && self.quarantine == Quarantine::default() {
            return self.file.clone();
        }
        let policy = self.file.with_runtime_rules(&self.runtime);
        Arc::new(policy.with_quarantine(self.quarantine.clone()))
    }
}

impl Cluster {
    /// Puts another file's policy in force, behind the runtime rules that stand. Statements under
    /// way keep theirs; waiters are judged again.
    pub fn apply(self: &Arc<Self>, policy: Arc<ClusterPolicy>) {
        let mut layers = self.layers.lock();
        layers.file = policy;
        self.put_in_force(layers.policy());
    }

    /// Has these runtime rules stand before the file's, in this order, and no others. With
    /// thousands of rules it takes milliseconds: not for a thread that relays.
    pub fn apply_runtime_rules(self: &Arc<Self>, rules: Arc<[RuntimeRule]>) {
        let mut layers = self.layers.lock();
        layers.runtime = rules;
        self.put_in_force(layers.policy());
    }

    /// The runtime rules in force, in their order.
    pub fn runtime_rules(&self) -> Arc<[RuntimeRule]> {
        self.layers.lock().runtime.clone()
    }

    /// Refuses what is like a statement of this rule for so long, from now on.
    pub(crate) fn quarantine(
        self: &Arc<Self>,
        rule: &Rule,
        likeness: Likeness,
        app: &[u8],
        lasts: Duration,
    ) -> Quarantined {
        let since = UnixTime(self.clock.unix_seconds());
        let seconds = i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX);
        let until = UnixTime(since.0.saturating_add(seconds));
        let mut layers = self.layers.lock();
        let id = layers.next_id;
        layers.next_id = id.saturating_add(1);
        let rule_name = rule.name.clone();
        let app = app.into();
        let entry = Quarantined { id, rule: rule_name, key: rule.key, likeness, app, since, until };
        let quarantine = layers.quarantine.with(entry.clone());
        self.put_quarantine(&mut layers, quarantine);
        entry
    }

    /// What is in quarantine.
    pub fn quarantined(&self) -> Vec<Arc<Quarantined>> {
        let now = UnixTime(self.clock.unix_seconds());
        self.policy.load().quarantine.standing(now).cloned().collect()
    }

    /// Frees one entry of the quarantine. False: it is not there.
    pub fn free(self: &Arc<Self>, id: u64) -> bool {
        let mut layers = self.layers.lock();
        let Some(quarantine) = layers.quarantine.without(id) else { return false };
        self.put_quarantine(&mut layers, quarantine);
        true
    }

    /// Rules stay what they are: this is quick enough for a thread that relays.
    fn put_quarantine(self: &Arc<Self>, layers: &mut Layers, quarantine: Quarantine) {
        layers.quarantine = quarantine.clone();
        self.put_in_force(Arc::new(self.policy.load().with_quarantine(quarantine)));
    }

    fn put_in_force(self: &Arc<Self>, policy: Arc<ClusterPolicy>) {
        let config = policy.controller_config();
        self.tls.apply(&policy);
        let starvation = starvation::config(&policy);
        self.facts.follow(&self.policy.load(), &policy);
        self.latencies.follow(&policy);
        let before = self.policy.swap(policy.clone());
        let wall = UnixTime(self.clock.unix_seconds());
        self.cut_overs.tell_of_rules((&before, wall), (&policy, wall));
        // What is left of the lines of before is dropped when the lock is free.
        drop(self.control(|controller, now| {
            controller.watch_starvation(now, starvation);
            controller.reconfigure(config, now)
        }));
        self.rule_changes.send_replace(());
        self.driver.notify_one();
    }
}
