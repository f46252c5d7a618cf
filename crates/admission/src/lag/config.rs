//! Which replicas are measured, and which of them count.

use std::collections::BTreeMap;
use std::time::Duration;

/// A replica that was counted and comes back within this time is counted at once: restarts and
/// failovers take up to minutes, restores take longer. It bounds for how long lag from an absence
/// can block: about as long as the absence.
pub const RETURNS_WITHIN: Duration = Duration::from_secs(300);

/// Behind a gap in the heartbeats nobody is asked to show the next one sooner: as long as it takes to
/// reach a replica that is well, however far it is.
pub(super) const SHOWN_AGAIN_WITHIN: Duration = Duration::from_secs(1);

/// A replica is asked again within half of `stale_after` of its last answer, also while the cluster
/// hibernates: `probe_interval` is no longer. Of one that was not, the silence says nothing.
pub(super) const ASKED_WITHIN: f64 = 0.5;

/// A replica, as a number that only the shell can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaKey(pub u32);

/// Which replicas, and which of them count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LagConfig {
    /// The replicas of the cluster. None: the lag is always 0.
    pub replicas: Vec<ReplicaKey>,
    /// What the lag of single ones must stay below, where that is not the threshold of the signal.
    pub thresholds: BTreeMap<ReplicaKey, Duration>,
    /// How many of the slowest counted replicas are left out; never the last one.
    pub ignore_slowest: u32,
    /// With fewer counted replicas there is no value. With none there never is: nothing was
    /// measured.
    pub min_replicas: u32,
    /// A replica that is silent for this long is unreachable.
    pub stale_after: Duration,
    /// A replica without a threshold of its own has caught up when its lag is below this: the
    /// threshold of the signal.
    pub caught_up_below: Duration,
    /// Without a committed heartbeat for this long, a replica that shows all of them says nothing.
    pub writer_stale_after: Duration,
}

impl LagConfig {
    /// What the lag of a replica must stay below.
    #[must_use]
    pub fn threshold_of(&self, replica: ReplicaKey) -> Duration {
        self.thresholds.get(&replica).copied().unwrap_or(self.caught_up_below)
    }

    /// How near a replica with this lag is to its threshold: 1 is there.
    pub(super) fn nearness(&self, replica: ReplicaKey, lag: Duration) -> f64 {
        lag.as_secs_f64() / self.threshold_of(replica).as_secs_f64().max(f64::MIN_POSITIVE)
    }
}
