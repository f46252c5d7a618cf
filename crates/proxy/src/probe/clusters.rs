//! The probes of all clusters, kept in step with the policies in force.

use std::sync::Arc;

use policy::{ClusterPolicy, Config};

use super::Probes;
use crate::cluster::Cluster;
use crate::link::ProbeAccount;
use crate::reload::NotApplied;
use crate::secret::SecretError;

/// The probes of all clusters. They stop when this is dropped.
#[derive(Debug)]
pub struct ClusterProbes {
    running: Vec<RunningProbes>,
    clusters: Arc<[Arc<Cluster>]>,
}

#[derive(Debug)]
struct RunningProbes {
    cluster: Arc<Cluster>,
    /// What `probes` measure.
    policy: Arc<ClusterPolicy>,
    probes: Probes,
}

impl ClusterProbes {
    /// Starts measuring every cluster.
    ///
    /// # Errors
    /// When a password is not where the file says it is.
    pub fn start(clusters: &[Arc<Cluster>]) -> Result<Self, SecretError> {
        let all: Arc<[Arc<Cluster>]> = clusters.into();
        let start = |cluster: &Arc<Cluster>| {
            let policy = cluster.policy();
            let mut probes = Probes::default();
            probes.follow(cluster, &policy, &all)?;
            Ok(RunningProbes { cluster: cluster.clone(), policy, probes })
        };
        let running = clusters.iter().map(start).collect::<Result<_, SecretError>>()?;
        Ok(Self { running, clusters: all })
    }

    /// Whether the probes of another configuration would have their passwords.
    ///
    /// # Errors
    /// The first that is not where the file says it is.
    pub fn could_follow(&self, config: &Config) -> Result<(), NotApplied> {
        for running in &self.running {
            let name = &running.cluster.name;
            let Some(policy) = config.cluster(name) else { continue };
            if policy.is_probed_like(&running.policy) {
                continue;
            }
            let Some(probe) = &policy.probe else { continue };
            let links = &running.cluster.probes.own_links;
            let password = ProbeAccount::of(probe, &policy.backend_tls, links).password();
            password.map_err(|error| NotApplied(format!("clusters.{name}.probe: {error}")))?;
        }
        Ok(())
    }

    /// Measures what the policies that are in force by now want. Probes that stay right go on.
    pub fn follow(&mut self) {
        let Self { running, clusters } = self;
        for running in running {
            let policy = running.cluster.policy();
            if policy.is_probed_like(&running.policy) {
                continue;
            }
            match running.probes.follow(&running.cluster, &policy, clusters) {
                Ok(()) => running.policy = policy,
                Err(error) => tracing::error!(
                    cluster = %running.cluster.name, %error,
                    "the probes go on as before: there is no password for the new ones"
                ),
            }
        }
    }
}
