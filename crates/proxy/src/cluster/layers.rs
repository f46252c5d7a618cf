//! What is in force in a cluster: the file's policy, and the runtime rules that stand before it.
//!
//! Either may change without the other. Statements under way keep what they began with, and who
//! waits is judged again.

use std::sync::Arc;

use policy::{ClusterPolicy, RuntimeRule, UnixTime};

use super::{Cluster, starvation};

/// Where what is in force comes from.
#[derive(Debug)]
pub(super) struct Layers {
    file: Arc<ClusterPolicy>,
    /// In their order.
    runtime: Arc<[RuntimeRule]>,
}

impl Layers {
    /// The file alone.
    pub(super) fn new(file: Arc<ClusterPolicy>) -> Self {
        Self { file, runtime: Arc::default() }
    }

    fn policy(&self) -> Arc<ClusterPolicy> {
        if self.runtime.is_empty() {
            return self.file.clone();
        }
        Arc::new(self.file.with_runtime_rules(&self.runtime))
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
