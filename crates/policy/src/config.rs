//! What a valid file says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::admin::Admin;
use crate::cluster::ClusterPolicy;
use crate::fault::Place;
use crate::raw::Maybe;
use crate::secret::Secret;
use crate::tls::{BackendTls, ClientTls, TlsIdentity};

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
    /// Fewest characters that it has to have.
    pub len_min: usize,
}

/// What a file names that lies elsewhere: it may be missing, or of no use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedElsewhere {
    /// In the file's order.
    pub secrets: Vec<NamedSecret>,
    /// What the HTTP side shows.
    pub admin_tls: Option<TlsIdentity>,
    /// By cluster.
    pub legs: Vec<NamedLegs>,
}

/// The settings of TLS of one cluster, which name its certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLegs {
    /// The cluster.
    pub cluster: String,
    /// Between clients and Sluice.
    pub client: ClientTls,
    /// Between Sluice and the servers.
    pub backend: BackendTls,
}

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metrics {
    /// Most values of the label `app`; the rest are `other`.
    pub max_apps: u32,
}

impl NamedSecret {
    /// The secret that one of the two keys names.
    pub(crate) fn of(env: &Maybe<String>, file: &Maybe<String>, len_min: usize) -> Option<Self> {
        let (named, secret) = match (env, file) {
            (Some(env), _) => (env, Secret::Env(env.value.clone())),
            (None, Some(file)) => (file, Secret::File(file.value.clone().into())),
            (None, None) => return None,
        };
        let Place { path, line } = named.place.clone();
        Some(Self { secret, key: path, line, len_min })
    }
}

impl Config {
    /// The cluster of that name.
    #[must_use]
    pub fn cluster(&self, name: &str) -> Option<&Arc<ClusterPolicy>> {
        self.clusters.iter().find(|cluster| &*cluster.name == name)
    }
}
