//! What a valid file says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::ClusterPolicy;

/// A valid configuration file.
#[derive(Debug, Clone)]
pub struct Config {
    /// The HTTP side.
    pub admin: Admin,
    /// What is exported.
    pub metrics: Metrics,
    /// How long open transactions may take to finish after SIGTERM.
    pub drain_timeout: Duration,
    /// Where the next process can ask for the listeners of this one.
    pub takeover_socket: Option<PathBuf>,
    /// The clusters in the order of the file; at least one.
    pub clusters: Vec<Arc<ClusterPolicy>>,
}

/// The HTTP side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admin {
    /// Where it listens.
    pub listen: SocketAddr,
}

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metrics {
    /// Most values of the label `app`; the rest are `other`.
    pub max_apps: u32,
}

impl Config {
    /// The cluster of that name.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<&Arc<ClusterPolicy>> {
        self.clusters.iter().find(|cluster| &*cluster.name == name)
    }
}
