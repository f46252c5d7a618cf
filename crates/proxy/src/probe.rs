//! The probes of a cluster: Sluice's own connections to its servers, which measure the signals.
//!
//! Every probe is a task of its own with a connection of its own and a time limit for each query, so that a
//! server that hangs holds up nothing but its own probe, and none of them is ever on the path of a
//! statement. What they see goes to the cluster's [`ProbeBoard`] and to its admission controller.
//!
//! - The *heartbeat* raises a number in our own row on the primary. Each *replica probe* reads that row;
//!   from both [`admission::lag`] makes the lag. With another `probe.source`, replicas tell their lag
//!   themselves, and the primary is only asked whether it answers.
//! - Every few seconds each replica is asked whether it is delayed on purpose.
//! - The other signals are measured by one more task for each server.
//!
//! While a replica probe is waiting for its answer the lag is published again and again: not seen to be
//! shown is not shown, so it grows.
//!
//! Hibernation. With nobody gated for a minute, heartbeats and probes slow down, within a second and a
//! third of `stale_after`, so a value never becomes stale by it: whoever comes first after that is judged
//! by a value that is fresh in the same sense as always, only up to a second old, and measured with
//! heartbeats a second apart. Within a quarter of a second all probes are back at their intervals. A value
//! that did become stale (the servers did not answer) is `no_data`, hibernating or not.

mod answer;
mod board;
mod health;
mod heartbeat;
mod link;
mod primary;
mod replica;
mod replication;
mod rhythm;
mod signals;

use std::sync::Arc;
use std::time::Duration;

use admission::SignalKey;
use admission::lag::LagConfig;
use mysql_async::{Opts, OptsBuilder};
use policy::{ClusterPolicy, LagSource, Probe, Scope, Secret, Signal, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::board::Primary;
use self::rhythm::{Rhythm, Tempo, keep_tempo};
use crate::cluster::Cluster;
use crate::secret::{self, SecretError};

pub use self::board::{PrimaryState, ProbeBoard, ReplicaReading, ServerReading};
pub use self::link::ProbeError;

/// The longest a replica's answer may take, and a login. A server that is stopped answers nothing.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The slowest beat of hibernation.
const HIBERNATION_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The probes of one cluster while they run.
#[derive(Debug)]
#[must_use = "the probes stop when this is dropped"]
pub struct Probes {
    tasks: JoinSet<()>,
}

impl Probes {
    /// Starts measuring what `policy` names. A cluster without replicas has no lag, which is told to its
    /// gate before this returns.
    ///
    /// # Errors
    /// When the password is not where the file says it is.
    pub fn spawn(cluster: &Arc<Cluster>, policy: &Arc<ClusterPolicy>) -> Result<Self, SecretError> {
        if let Some(Probe { password: Some(password), .. }) = &policy.probe {
            secret::read(password)?;
        }
        let mut probes = Self { tasks: JoinSet::new() };
        let Some(site) = Site::of(cluster, policy) else { return Ok(probes) };
        let site = Arc::new(site);
        let primary =
            if policy.probe.is_some() { Primary::Probed } else { Primary::NotProbed };
        let limits = |replicas| LagConfig { replicas, ..site.lag_limits.clone() };
        cluster.probes.configure(&policy.replicas, limits, primary, cluster.now());
        site.publish_lag();
        probes.start(&site, policy);
        Ok(probes)
    }

    /// Stops measuring: values become stale.
    pub fn stop(mut self) {
        self.tasks.abort_all();
    }

    fn start(&mut self, site: &Arc<Site>, policy: &Arc<ClusterPolicy>) {
        let (tempo, listener) = watch::channel(Tempo::Awake);
        if policy.replicas.is_empty() {
            self.tasks.spawn(publish_for_ever(site.clone(), listener.clone()));
        }
        let Some(probe) = &policy.probe else { return };
        self.tasks.spawn(keep_tempo(site.cluster.clone(), tempo));
        let servers = Servers { site, probe, tempo: listener };
        self.tasks.spawn(primary::watch(servers.task(&policy.primary)));
        for replica in &policy.replicas {
            self.tasks.spawn(replica::watch(servers.task(replica)));
        }
        for (scope, servers_of_scope) in [
            (Scope::Primary, std::slice::from_ref(&policy.primary)),
            (Scope::Replicas, policy.replicas.as_slice()),
        ] {
            let wanted: Vec<Signal> = signals::wanted(policy, scope).cloned().collect();
            if wanted.is_empty() {
                continue;
            }
            for server in servers_of_scope {
                self.tasks.spawn(signals::watch(servers.task(server), wanted.clone()));
            }
        }
    }
}
