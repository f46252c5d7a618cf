//! What a new configuration goes to.

use std::sync::Arc;
use std::time::Duration;

use policy::Config;
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::probe::ClusterProbes;
use crate::reload::NotApplied;

/// Whatever follows the configuration while the process runs. What cannot change without a restart does not
/// reach it: [`policy::edit`] keeps that as it was.
#[derive(Debug)]
pub struct Follower {
    clusters: Arc<[Arc<Cluster>]>,
    probes: ClusterProbes,
    drain_timeout: watch::Sender<Duration>,
}

impl Follower {
    /// Follows the configuration that `clusters` and `probes` were started with. The receiver has the drain
    /// timeout in force.
    #[must_use]
    pub fn new(
        config: &Config,
        clusters: Arc<[Arc<Cluster>]>,
        probes: ClusterProbes,
    ) -> (Self, watch::Receiver<Duration>) {
        let (drain_timeout, in_force) = watch::channel(config.drain_timeout);
        (Self { clusters, probes, drain_timeout }, in_force)
    }

    /// Puts another configuration in force.
    ///
    /// # Errors
    /// When the probes could not log in with it. Nothing has changed then.
    pub fn apply(&mut self, config: &Config) -> Result<(), NotApplied> {
        let Self { clusters, probes, drain_timeout } = self;
        probes.could_follow(config)?;
        for cluster in clusters.iter() {
            if let Some(policy) = config.cluster(&cluster.name) {
                cluster.apply(policy.clone());
            }
        }
        probes.follow();
        drain_timeout.send_replace(config.drain_timeout);
        Ok(())
    }
}
