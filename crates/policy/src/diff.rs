//! What another file changes.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::cluster::ClusterPolicy;
use crate::config::{Admin, Config, Metrics};
use crate::network::Network;
use crate::rule::Rule;

/// One difference between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// This key is different, and the process keeps what it started with until it is started again.
    NeedsRestart(String),
    /// This key is different, and in force.
    Setting(String),
    /// A rule is new.
    RuleAdded(Arc<str>),
    /// A rule is gone.
    RuleRemoved(Arc<str>),
    /// A rule says something else.
    RuleChanged(Arc<str>),
    /// The rules that were there before stand in another order.
    RulesReordered,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeedsRestart(key) => write!(f, "{key} cannot change without a restart"),
            Self::Setting(key) => write!(f, "{key} changed"),
            Self::RuleAdded(name) => write!(f, "rule {name} added"),
            Self::RuleRemoved(name) => write!(f, "rule {name} removed"),
            Self::RuleChanged(name) => write!(f, "rule {name} changed"),
            Self::RulesReordered => f.write_str("rules reordered"),
        }
    }
}

/// What `new` changes, once it is in force: first what cannot change live.
#[must_use]
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let Config { admin, metrics, drain_timeout, takeover_socket, clusters } = old;
    let Admin { listen } = admin;
    let Metrics { max_apps } = metrics;
    let mut changes = Changes::default();
    changes.restart("admin.listen", *listen != new.admin.listen);
    changes.setting("metrics.max_apps", *max_apps != new.metrics.max_apps);
    changes.restart("takeover_socket", *takeover_socket != new.takeover_socket);
    changes.setting("drain_timeout", *drain_timeout != new.drain_timeout);
    for cluster in clusters {
        match new.cluster(&cluster.name) {
            Some(same) => changes.of_cluster(cluster, same),
            None => changes.restart(&format!("clusters.{}", cluster.name), true),
        }
    }
    for cluster in &new.clusters {
        changes
            .restart(&format!("clusters.{}", cluster.name), old.cluster(&cluster.name).is_none());
    }
    // These are the file's, and so the same in all of its clusters.
    if let (Some(old), Some(new)) = (clusters.first(), new.clusters.first()) {
        changes.setting("starvation", old.starvation != new.starvation);
        changes.setting("identity", !old.identity.says_the_same(&new.identity));
    }
    changes.of_rules(&rules(old, new), &rules(new, old));
    let Changes { mut restarts, live } = changes;
    restarts.extend(live);
    restarts
}

#[derive(Default)]
struct Changes {
    restarts: Vec<Change>,
    live: Vec<Change>,
}

impl Changes {
    fn restart(&mut self, key: &str, differs: bool) {
        if differs {
            self.restarts.push(Change::NeedsRestart(key.to_owned()));
        }
    }

    fn setting(&mut self, key: &str, differs: bool) {
        if differs {
            self.live.push(Change::Setting(key.to_owned()));
        }
    }

    fn of_cluster(&mut self, old: &ClusterPolicy, new: &ClusterPolicy) {
        let ClusterPolicy {
            name,
            listen,
            primary,
            replicas,
            probe,
            signals,
            default_gate,
            mode,
            check_interval,
            pacing,
            release_per_s,
            queue_len_max,
            connect_timeout,
            network,
            client_tls,
            backend_tls,
            redirect,
            client_compression,
            backend_compression,
            compression_level,
            // They are compared for the whole file.
            rules: _,
            identity: _,
            starvation: _,
            // They are made from signals and rules.
            gates: _,
        } = old;
        let key = |key: &str| format!("clusters.{name}.{key}");
        self.restart(&key("listen"), *listen != new.listen);
        self.restart(&key("primary"), *primary != new.primary);
        self.setting(&key("replicas"), *replicas != new.replicas);
        self.setting(&key("probe"), *probe != new.probe);
        self.setting(&key("signals"), *signals != new.signals);
        self.setting(&key("default_gate"), *default_gate != new.default_gate);
        self.setting(&key("mode"), *mode != new.mode);
        self.setting(&key("check_interval"), *check_interval != new.check_interval);
        self.setting(&key("pacing"), *pacing != new.pacing);
        self.setting(&key("release_per_s"), *release_per_s != new.release_per_s);
        self.setting(&key("max_queue_total"), *queue_len_max != new.queue_len_max);
        self.setting(&key("connect_timeout"), *connect_timeout != new.connect_timeout);
        self.of_network(key, network, &new.network);
        self.setting(&key("client_tls"), *client_tls != new.client_tls);
        self.setting(&key("backend_tls"), *backend_tls != new.backend_tls);
        self.setting(&key("redirect"), *redirect != new.redirect);
        self.setting(&key("client_compression"), *client_compression != new.client_compression);
        self.setting(&key("backend_compression"), *backend_compression != new.backend_compression);
        self.setting(&key("compression_level"), *compression_level != new.compression_level);
    }

    fn of_network(&mut self, key: impl Fn(&str) -> String, old: &Network, new: &Network) {
        let Network { listen_mode, connections_max, login_timeout, keepalive, proxy_protocol } =
            old;
        self.restart(&key("listen_mode"), *listen_mode != new.listen_mode);
        self.setting(&key("max_connections"), *connections_max != new.connections_max);
        self.setting(&key("login_timeout"), *login_timeout != new.login_timeout);
        self.setting(&key("keepalive"), *keepalive != new.keepalive);
        self.setting(&key("proxy_protocol"), *proxy_protocol != new.proxy_protocol);
    }

    fn of_rules(&mut self, old: &NamedRules<'_>, new: &NamedRules<'_>) {
        for name in &old.order {
            if !new.by_name.contains_key(name) {
                self.live.push(Change::RuleRemoved((*name).into()));
            }
        }
        for name in &new.order {
            match (old.by_name.get(name), new.by_name.get(name)) {
                (None, _) => self.live.push(Change::RuleAdded((*name).into())),
                (Some(before), Some(after)) if !say_the_same(before, after) => {
                    self.live.push(Change::RuleChanged((*name).into()));
                }
                (Some(_), _) => {}
            }
        }
        let before = old.order.iter().filter(|name| new.by_name.contains_key(*name));
        let after = new.order.iter().filter(|name| old.by_name.contains_key(*name));
        if !before.eq(after) {
            self.live.push(Change::RulesReordered);
        }
    }
}

/// The rules of a file: each name once, with what it says in each cluster that both files have.
struct NamedRules<'c> {
    order: Vec<&'c str>,
    by_name: HashMap<&'c str, Vec<(&'c str, &'c Rule)>>,
}

fn rules<'c>(config: &'c Config, other: &Config) -> NamedRules<'c> {
    let mut rules = NamedRules { order: Vec::new(), by_name: HashMap::new() };
    let both = |cluster: &&Arc<ClusterPolicy>| other.cluster(&cluster.name).is_some();
    for cluster in config.clusters.iter().filter(both) {
        for rule in cluster.rules.iter() {
            let known = rules.by_name.entry(&*rule.name).or_default();
            if known.is_empty() {
                rules.order.push(&rule.name);
            }
            known.push((&*cluster.name, rule));
        }
    }
    rules
}

fn say_the_same(before: &[(&str, &Rule)], after: &[(&str, &Rule)]) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).all(|((in_a, a), (in_b, b))| in_a == in_b && same_rule(a, b))
}

/// Whether two rules say the same, wherever they stand.
fn same_rule(a: &Rule, b: &Rule) -> bool {
    let Rule {
        name,
        key,
        index: _,
        condition,
        statements,
        action,
        speed,
        mode,
        error,
        honour_priority,
        schedule,
        on_client_gone,
        expires_at,
        essential,
        reason,
    } = a;
    *name == b.name
        && *key == b.key
        && *condition == b.condition
        && *statements == b.statements
        && *action == b.action
        && *speed == b.speed
        && *mode == b.mode
        && *error == b.error
        && *honour_priority == b.honour_priority
        && *schedule == b.schedule
        && *on_client_gone == b.on_client_gone
        && *expires_at == b.expires_at
        && *essential == b.essential
        && *reason == b.reason
}

#[cfg(test)]
mod tests;
