//! What is in force after an edit, key by key.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Change, rule_changes};
use crate::admin::{Admin, AdminAccess};
use crate::cluster::ClusterPolicy;
use crate::config::{Config, Metrics};
use crate::network::Network;
use crate::replica::ReplicaBook;

/// What a running process makes of another file.
#[derive(Debug, Clone)]
pub struct Edit {
    /// What is in force from now on: the file, but for what needs a restart.
    pub config: Config,
    /// What the file changes: first what cannot change live.
    pub changes: Vec<Change>,
    /// Every key that cannot change live, whether it waits for a restart or not.
    pub fixed: Vec<FixedKey>,
}

/// A key that cannot change while the process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedKey {
    /// The cluster whose key it is; `None`: the file's.
    pub cluster: Option<Arc<str>>,
    /// The key. `clusters`: that there is this cluster at all.
    pub key: &'static str,
    /// What the file says instead; `None`: what runs.
    pub pending: Option<Pending>,
}

/// A value that waits for a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// What runs.
    pub running: String,
    /// What the file says.
    pub file: String,
}

impl FixedKey {
    /// Its path in the file.
    #[must_use]
    pub fn path(&self) -> String {
        match (&self.cluster, self.key) {
            (Some(cluster), CLUSTERS) => format!("clusters.{cluster}"),
            (Some(cluster), key) => format!("clusters.{cluster}.{key}"),
            (None, key) => key.to_owned(),
        }
    }
}

impl fmt::Display for FixedKey {
    /// The key's path in the file; with both values while it waits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path())?;
        match &self.pending {
            Some(Pending { running, file }) => write!(f, " ({running} runs, the file says {file})"),
            None => Ok(()),
        }
    }
}

/// The key that stands for a cluster as a whole.
const CLUSTERS: &str = "clusters";

/// What is in force once a process that runs with `running` has read `file`, and what that changes.
#[must_use]
pub fn edit(running: &Config, file: Config) -> Edit {
    let rules = rule_changes(running, &file);
    let mut keys = Keys::default();
    let differs = |cluster: &Arc<ClusterPolicy>| {
        running.cluster(&cluster.name).is_some_and(|known| known.guards != cluster.guards)
    };
    let guards_differ = file.clusters.iter().any(differs);
    // These are the file's, and so the same in all of its clusters.
    let of_file = |config: &Config| {
        let cluster = config.clusters.first();
        cluster.map(|cluster| {
            let counted = (cluster.insights.clone(), cluster.history);
            (cluster.starvation, cluster.identity.clone(), counted)
        })
    };
    let (old, new) = (of_file(running), of_file(&file));
    let Config {
        admin,
        metrics,
        drain_timeout,
        takeover_socket,
        state_dir,
        clusters,
        rule_names,
        secrets,
    } = file;
    let config = Config {
        // Of these the clusters tell what changed.
        rule_names,
        secrets,
        admin: keys.admin(&running.admin, admin),
        takeover_socket: keys.fixed(
            "takeover_socket",
            &running.takeover_socket,
            &takeover_socket,
            show_path,
        ),
        state_dir: keys.fixed("state_dir", &running.state_dir, &state_dir, show_path),
        metrics: keys.metrics(running.metrics, metrics),
        drain_timeout: keys.live("drain_timeout", &running.drain_timeout, drain_timeout),
        clusters: keys.clusters(&running.clusters, clusters),
    };
    keys.note("guards", guards_differ);
    if let (
        Some((old_starvation, old_identity, old_counted)),
        Some((starvation, identity, counted)),
    ) = (old, new)
    {
        keys.note("insights", old_counted.0 != counted.0);
        keys.note("history", old_counted.1 != counted.1);
        keys.note("starvation", old_starvation != starvation);
        keys.note("identity", !old_identity.says_the_same(&identity));
    }
    let Keys { cluster: _, fixed, live } = keys;
    let waits = |key: &&FixedKey| key.pending.is_some();
    let restarts = fixed.iter().filter(waits).map(|key| Change::NeedsRestart(key.to_string()));
    let changes = restarts.chain(live).chain(rules).collect();
    Edit { config, changes, fixed }
}

fn show_path(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string())
}

/// Chooses for each key, and notes what was chosen.
#[derive(Default)]
struct Keys {
    /// The cluster whose keys are looked at.
    cluster: Option<Arc<str>>,
    fixed: Vec<FixedKey>,
    live: Vec<Change>,
}

impl Keys {
    /// A key that changes live.
    fn live<T: PartialEq>(&mut self, key: &str, running: &T, file: T) -> T {
        self.note(key, *running != file);
        file
    }

    fn note(&mut self, key: &str, differs: bool) {
        if differs {
            let path = match &self.cluster {
                Some(cluster) => format!("clusters.{cluster}.{key}"),
                None => key.to_owned(),
            };
            self.live.push(Change::Setting(path));
        }
    }

    /// A key that does not: it stays what it is.
    fn fixed<T: PartialEq + Clone>(
        &mut self,
        key: &'static str,
        running: &T,
        file: &T,
        show: impl Fn(&T) -> String,
    ) -> T {
        let pending =
            (running != file).then(|| Pending { running: show(running), file: show(file) });
        self.fixed.push(FixedKey { cluster: self.cluster.clone(), key, pending });
        running.clone()
    }

    fn admin(&mut self, running: &Admin, file: Admin) -> Admin {
        let Admin { listen, tls, access } = file;
        let AdminAccess { tokens, loopback_changes, legacy_get, hosts } = access;
        let before = &running.access;
        Admin {
            listen: self.fixed("admin.listen", &running.listen, &listen, ToString::to_string),
            tls: self.live("admin.tls", &running.tls, tls),
            access: AdminAccess {
                tokens: self.live("admin.tokens", &before.tokens, tokens),
                loopback_changes: self.live(
                    "admin.loopback_changes",
                    &before.loopback_changes,
                    loopback_changes,
                ),
                legacy_get: self.live("admin.legacy_get", &before.legacy_get, legacy_get),
                hosts: self.live("admin.hosts", &before.hosts, hosts),
            },
        }
    }

    fn metrics(&mut self, running: Metrics, file: Metrics) -> Metrics {
        let Metrics { max_apps } = file;
        Metrics { max_apps: self.live("metrics.max_apps", &running.max_apps, max_apps) }
    }

    /// The clusters that run, with what the file says of them. One that it does not name any more
    /// goes on as it was.
    fn clusters(
        &mut self,
        running: &[Arc<ClusterPolicy>],
        mut file: Vec<Arc<ClusterPolicy>>,
    ) -> Vec<Arc<ClusterPolicy>> {
        let mut clusters = Vec::with_capacity(running.len());
        for cluster in running {
            self.cluster = Some(cluster.name.clone());
            let same = file.iter().position(|other| other.name == cluster.name);
            self.presence(true, same.is_some());
            clusters.push(match same {
                Some(index) => {
                    // Nobody else has it yet, so nothing is copied.
                    let policy = Arc::unwrap_or_clone(file.remove(index));
                    Arc::new(self.cluster(cluster, policy))
                }
                None => cluster.clone(),
            });
        }
        for cluster in file {
            self.cluster = Some(cluster.name.clone());
            self.presence(false, true);
        }
        self.cluster = None;
        clusters
    }

    fn presence(&mut self, runs: bool, stands_in_file: bool) {
        let show = |there: &bool| if *there { "a cluster" } else { "none" }.to_owned();
        self.fixed(CLUSTERS, &runs, &stands_in_file, show);
    }

    fn cluster(&mut self, running: &ClusterPolicy, file: ClusterPolicy) -> ClusterPolicy {
        let primary = self.fixed("primary", &running.primary, &file.primary, ToString::to_string);
        ClusterPolicy {
            listen: self.fixed("listen", &running.listen, &file.listen, ToString::to_string),
            replicas: self.replicas(running, &file),
            replica_terms: self.replica_terms(running, &file),
            primary,
            probe: self.live("probe", &running.probe, file.probe),
            bypass: self.live("bypass", &running.bypass, file.bypass),
            signals: self.live("signals", &running.signals, file.signals),
            default_gate: self.live("default_gate", &running.default_gate, file.default_gate),
            protected_gate: file.protected_gate,
            mode: self.live("mode", &running.mode, file.mode),
            check_interval: self.live(
                "check_interval",
                &running.check_interval,
                file.check_interval,
            ),
            pacing: self.live("pacing", &running.pacing, file.pacing),
            release_per_s: self.live("release_per_s", &running.release_per_s, file.release_per_s),
            queue_len_max: self.live("max_queue_total", &running.queue_len_max, file.queue_len_max),
            connect_timeout: self.live(
                "connect_timeout",
                &running.connect_timeout,
                file.connect_timeout,
            ),
            network: self.network(&running.network, file.network),
            client_tls: self.live("client_tls", &running.client_tls, file.client_tls),
            backend_tls: self.live("backend_tls", &running.backend_tls, file.backend_tls),
            redirect: self.live("redirect", &running.redirect, file.redirect),
            client_compression: self.live(
                "client_compression",
                &running.client_compression,
                file.client_compression,
            ),
            backend_compression: self.live(
                "backend_compression",
                &running.backend_compression,
                file.backend_compression,
            ),
            compression_level: self.live(
                "compression_level",
                &running.compression_level,
                file.compression_level,
            ),
            budgets: self.live("budgets", &running.budgets, file.budgets),
            name: file.name,
            // Live, and compared for the whole file.
            rules: file.rules,
            guards: file.guards,
            quarantine: file.quarantine,
            identity: file.identity,
            starvation: file.starvation,
            insights: file.insights,
            history: file.history,
            // They are made from signals and rules.
            gates: file.gates,
        }
    }

    /// The replicas of a primary that is to be another one are those of that one: measured against
    /// the one that runs, the new list could show no lag where there is some.
    fn replicas(&mut self, running: &ClusterPolicy, file: &ClusterPolicy) -> Vec<Arc<str>> {
        let (old, new) = (&running.replicas, &file.replicas);
        let show = |servers: &Vec<Arc<str>>| format!("[{}]", servers.join(", "));
        if running.primary == file.primary {
            self.fixed("replicas", new, new, show);
            return self.live("replicas", old, new.clone());
        }
        self.fixed("replicas", old, new, show)
    }

    /// What is said of servers goes with the list of them.
    fn replica_terms(&mut self, running: &ClusterPolicy, file: &ClusterPolicy) -> ReplicaBook {
        if running.primary != file.primary {
            return running.replica_terms.clone();
        }
        // Another list is told already.
        let differs = running.replica_terms != file.replica_terms;
        self.note("replicas", differs && running.replicas == file.replicas);
        file.replica_terms.clone()
    }

    fn network(&mut self, running: &Network, file: Network) -> Network {
        let octal = |mode: &u32| format!("{mode:04o}");
        let Network { listen_mode, connections_max, login_timeout, keepalive, proxy_protocol } =
            file;
        Network {
            listen_mode: self.fixed("listen_mode", &running.listen_mode, &listen_mode, octal),
            connections_max: self.live(
                "max_connections",
                &running.connections_max,
                connections_max,
            ),
            login_timeout: self.live("login_timeout", &running.login_timeout, login_timeout),
            keepalive: self.live("keepalive", &running.keepalive, keepalive),
            proxy_protocol: self.live("proxy_protocol", &running.proxy_protocol, proxy_protocol),
        }
    }
}
