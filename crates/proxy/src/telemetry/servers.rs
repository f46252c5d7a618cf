//! Whether servers can be reached, and what replicas are, read when somebody scrapes.

use admission::MonoTime;
use prometheus::{GaugeVec, Registry};

use super::gauges::gauges;
use super::scrape::state_label;
use crate::board::Reachability;
use crate::cluster::Cluster;

/// The families of one scrape that are about servers.
pub(super) struct Servers {
    primary_reachable: GaugeVec,
    probe_up: GaugeVec,
    replica_state: GaugeVec,
    replica_counted: GaugeVec,
    replica_threshold: GaugeVec,
    replica_keeps_order: GaugeVec,
}

impl Servers {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauges = |name, help, labels: &[&str]| gauges(registry, name, help, labels);
        Self {
            primary_reachable: gauges(
                "sluice_primary_reachable",
                "1 if the primary was reached lately, by a client or a probe; 0 if it could not \
                 be. No series while nobody has tried.",
                &["cluster"],
            ),
            probe_up: gauges(
                "sluice_probe_up",
                "1 if the probes' account gets its answers from a server; 0 if it does not.",
                &["cluster", "server"],
            ),
            replica_state: gauges(
                "sluice_replica_state",
                "1 for the state a replica is in. The lag of the cluster is that of counted ones.",
                &["cluster", "server", "state"],
            ),
            replica_counted: gauges(
                "sluice_replica_counted",
                "1 if the lag of a replica counts for the gate, 0 if it is left out.",
                &["cluster", "server"],
            ),
            replica_threshold: gauges(
                "sluice_replica_lag_threshold_seconds",
                "What the lag of a replica must stay below: its own threshold, or the signal's.",
                &["cluster", "server", "group"],
            ),
            replica_keeps_order: gauges(
                "sluice_replica_keeps_commit_order",
                "1 if a replica commits in the primary's order, 0 if its appliers may overtake \
                 one another. No series while it has not said.",
                &["cluster", "server"],
            ),
        }
    }

    pub(super) fn read(&self, cluster: &Cluster, now: MonoTime) {
        let reachable = match cluster.probes.reachability(now) {
            Reachability::Reached(_) => Some(1.0),
            Reachability::Unreached(_) => Some(0.0),
            Reachability::Awaited | Reachability::Unknown => None,
        };
        if let Some(reachable) = reachable {
            self.primary_reachable.with_label_values(&[&*cluster.name]).set(reachable);
        }
        let policy = cluster.policy();
        for replica in cluster.probes.replicas(now) {
            let state = state_label(replica.view.state);
            let labels = [&*cluster.name, &*replica.server, state];
            self.replica_state.with_label_values(&labels).set(1.0);
            let counted = f64::from(u8::from(replica.view.counts));
            let terms = policy.replica_terms.of(&replica.server);
            let group = terms.and_then(|terms| terms.group.as_deref()).unwrap_or_default();
            let labels = [&*cluster.name, &*replica.server, group];
            let threshold = replica.view.threshold.as_secs_f64();
            self.replica_threshold.with_label_values(&labels).set(threshold);
            let labels = [&*cluster.name, &*replica.server];
            self.replica_counted.with_label_values(&labels).set(counted);
            if let Some(keeps) = replica.order.is_kept() {
                let keeps = f64::from(u8::from(keeps));
                self.replica_keeps_order.with_label_values(&labels).set(keeps);
            }
        }
        for (server, up) in cluster.probes.probes_up(&policy.primary, now) {
            let up = f64::from(u8::from(up));
            self.probe_up.with_label_values(&[&*cluster.name, &*server]).set(up);
        }
    }
}
