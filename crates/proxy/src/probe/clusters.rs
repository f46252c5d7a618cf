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
            password(cluster, &policy)?;
            let mut probes = Probes::default();
            probes.follow(cluster, &policy, &all);
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
            password(&running.cluster, policy)
                .map_err(|error| NotApplied(format!("clusters.{name}.probe: {error}")))?;
        }
        Ok(())
    }

    /// Measures what the policies that are in force by now want. Probes that stay right go on. No file is
    /// read: those of passwords are at each login.
    pub fn follow(&mut self) {
        let Self { running, clusters } = self;
        for running in running {
            let policy = running.cluster.policy();
            if policy.is_probed_like(&running.policy) {
                continue;
            }
            running.probes.follow(&running.cluster, &policy, clusters);
            running.policy = policy;
        }
    }
}

/// Whether the probes of a policy have their password.
fn password(cluster: &Cluster, policy: &ClusterPolicy) -> Result<(), SecretError> {
    let Some(probe) = &policy.probe else { return Ok(()) };
    let links = &cluster.probes.own_links;
    ProbeAccount::of(probe, &policy.backend_tls, links).password().map(drop)
}
