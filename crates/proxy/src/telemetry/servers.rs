//! Whether servers can be reached, read when somebody scrapes.

use admission::MonoTime;
use prometheus::{GaugeVec, Registry};

use super::gauges::gauges;
use crate::board::Reachability;
use crate::cluster::Cluster;

/// The families of one scrape that are about servers.
pub(super) struct Servers {
    primary_reachable: GaugeVec,
    probe_up: GaugeVec,
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
        let primary = cluster.policy().primary.clone();
        for (server, up) in cluster.probes.probes_up(&primary, now) {
            let up = f64::from(u8::from(up));
            self.probe_up.with_label_values(&[&*cluster.name, &*server]).set(up);
        }
    }
}
