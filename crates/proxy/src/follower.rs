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

    /// Puts another configuration in force. Whatever takes files is done ahead of all changes: it may
    /// fail, and take long.
    ///
    /// # Errors
    /// When the probes could not log in with it, or a leg's other certificates cannot be used. Nothing
    /// has changed then.
    pub fn apply(&mut self, config: &Config) -> Result<(), NotApplied> {
        let Self { clusters, probes, drain_timeout } = self;
        probes.could_follow(config)?;
        let followed = |cluster: &Arc<Cluster>| {
            let policy = config.cluster(&cluster.name)?;
            Some(cluster.tls.read(policy).map(|tls| (cluster.clone(), policy.clone(), tls)))
        };
        let read: Vec<_> = clusters.iter().filter_map(followed).collect::<Result<_, _>>()?;
        for (cluster, policy, tls) in read {
            if let Some(renewal) = tls {
                cluster.tls.apply(renewal);
            }
            cluster.apply(policy);
        }
        probes.follow();
        drain_timeout.send_replace(config.drain_timeout);
        Ok(())
    }
}
