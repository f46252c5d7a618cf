//! What the probe's account sees of other sessions of the primary, read when somebody scrapes.

use prometheus::{GaugeVec, Registry};

use super::gauges::gauges;
use crate::cluster::Cluster;

/// The families of one scrape that are about other sessions of the primary.
pub(super) struct Around {
    heartbeat_blocked: GaugeVec,
    sessions: GaugeVec,
    share: GaugeVec,
    unknown: GaugeVec,
}

/// Users that have a series of their own; the rest are `other`.
const USERS_MAX: usize = 50;

impl Around {
    pub(super) fn new(registry: &Registry) -> Self {
        let gauges = |name, help, labels: &[&str]| gauges(registry, name, help, labels);
        Self {
            heartbeat_blocked: gauges(
                "sluice_heartbeat_blocked",
                "1 while the heartbeat's write waits for somebody's lock (`lock`: `global_read`, \
                 `table`, `row`), for its own commit (`semi_sync`, `group`, `commit`) or for what \
                 the server does not name (`unknown`); there is no series otherwise. The log says \
                 for whose, or what.",
                &["cluster", "lock"],
            ),
            sessions: gauges(
                "sluice_bypass_sessions",
                "Sessions of the primary that have not come through a Sluice of the cluster and \
                 write, by their MySQL user. There is no series for a user without any.",
                &["cluster", "user"],
            ),
            share: gauges(
                "sluice_bypass_write_share",
                "The part of the rows changed on the primary in the last looks that such sessions \
                 have changed, 0 to 1. No series where the server does not tell.",
                &["cluster", "user"],
            ),
            unknown: gauges(
                "sluice_bypass_unknown_sessions",
                "Sessions of the primary of which it is not known whether they have come through a \
                 Sluice. There is no series while nobody looks, or can.",
                &["cluster"],
            ),
        }
    }

    pub(super) fn read(&self, cluster: &Cluster) {
        if let Some((blocked, _)) = cluster.probes.heartbeat_blocked() {
            let labels = [&*cluster.name, blocked.as_str()];
            self.heartbeat_blocked.with_label_values(&labels).set(1.0);
        }
        let Some(bypass) = cluster.probes.bypass() else { return };
        let count = |sessions: u64| f64::from(u32::try_from(sessions).unwrap_or(u32::MAX));
        self.unknown.with_label_values(&[&*cluster.name]).set(count(bypass.unknown));
        for (place, user) in bypass.users.iter().enumerate() {
            let name = if place < USERS_MAX { &*user.user } else { "other" };
            let labels = [&*cluster.name, name];
            self.sessions.with_label_values(&labels).add(count(user.sessions));
            if let Some(share) = user.share {
                self.share.with_label_values(&labels).add(share);
            }
        }
    }
}
