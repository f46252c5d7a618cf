//! What a valid file says.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cluster::ClusterPolicy;
use crate::secret::Secret;

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
    /// Where what must outlive the process is kept. `None`: nowhere.
    pub state_dir: Option<PathBuf>,
    /// The clusters in the order of the file; at least one.
    pub clusters: Vec<Arc<ClusterPolicy>>,
    /// The names of all rules, in the order of the file: those of one cluster may be fewer.
    pub rule_names: Vec<Arc<str>>,
    /// The secrets it names, in the order of the file.
    pub secrets: Vec<NamedSecret>,
}

/// A secret, and where the file names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSecret {
    /// Where it comes from.
    pub secret: Secret,
    /// The key of the configuration that names it, as in [`crate::Fault::path`].
    pub key: String,
    /// The line of the configuration.
    pub line: u32,
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
