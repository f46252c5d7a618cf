//! Whether Sluice is ready for clients.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proxy::board::PrimaryState;
use proxy::cluster::Cluster;

use crate::AdminState;

/// A primary that has not answered its probe for this long is not there. Heartbeats may be a second
/// apart and may take seconds on a loaded server.
const PRIMARY_STALE_AFTER: Duration = Duration::from_secs(6);

/// What keeps it from being ready, each with its reason. A cluster without probes counts as ready:
/// nobody knows better without logging in.
pub(crate) fn obstacles(state: &AdminState) -> Vec<String> {
    let mut obstacles = Vec::new();
    if state.draining.load(Ordering::Relaxed) {
        obstacles.push("draining".to_owned());
    }
    if !state.telemetry.config_is_valid() {
        obstacles.push(
            "the configuration file has faults; the one before it is in force (see the log)"
                .to_owned(),
        );
    }
    for cluster in state.clusters.iter() {
        let name = &cluster.name;
        match primary(cluster) {
            PrimaryState::Answers(_) | PrimaryState::NotProbed => {}
            PrimaryState::Unknown => {
                obstacles.push(format!("cluster {name}: the primary has not answered yet"));
            }
            PrimaryState::Silent(error) => {
                obstacles.push(format!("cluster {name}: the primary {}", error.sentence()));
            }
        }
    }
    obstacles
}

/// Whether a cluster's primary answers its probe.
pub(crate) fn primary(cluster: &Cluster) -> PrimaryState {
    cluster.probes.primary(cluster.now(), PRIMARY_STALE_AFTER)
}
