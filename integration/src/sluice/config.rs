//! A file for Sluice in front of a topology.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::error::Result;
use crate::ports::{free_port, loopback};
use crate::topology::Topology;

/// The parts of a file with one cluster, `main`. Change what a test is about, render the rest.
///
/// The parts that are text are YAML, written from the left edge; rendering indents them.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where clients connect; a free port.
    pub listen: SocketAddr,
    /// Where the HTTP side listens; a free port.
    pub admin: SocketAddr,
    /// More keys below `admin`, as in `legacy_get: true`. Empty unless told.
    pub admin_keys: String,
    /// More keys of `probe`, with a comma in front.
    pub probe_keys: String,
    /// The primary.
    pub primary: SocketAddr,
    /// The replicas.
    pub replicas: Vec<SocketAddr>,
    /// The mapping below `signals`; `lag: { threshold: 1s }` unless told.
    pub signals: String,
    /// More keys of the cluster. Empty unless told.
    pub cluster: String,
    /// The mapping below `identity`: everybody may claim anything, unless told.
    pub identity: String,
    /// The list below `rules`: one rule that gates nothing, unless told.
    pub rules: String,
    /// More keys at the top of the file. Empty unless told.
    pub top: String,
}

impl Config {
    /// A file for a topology that lets everything through.
    ///
    /// # Errors
    /// When no port is free.
    pub fn new(topology: &Topology) -> Result<Self> {
        let replicas = topology.replicas.iter().map(|replica| replica.addr()).collect();
        Self::in_front_of(topology.primary.addr(), replicas)
    }

    /// The same for addresses.
    ///
    /// # Errors
    /// When no port is free.
    pub fn in_front_of(primary: SocketAddr, replicas: Vec<SocketAddr>) -> Result<Self> {
        Ok(Self {
            listen: loopback(free_port()?),
            admin: loopback(free_port()?),
            admin_keys: String::new(),
            probe_keys: String::new(),
            primary,
            replicas,
            signals: "lag: { threshold: 1s }".into(),
            cluster: String::new(),
            identity: "claims:\n  - { user: \"*\", apps: [\"*\"] }".into(),
            rules: "- { name: everything, gate: none, permanent: true }".into(),
            top: String::new(),
        })
    }

    /// With these rules instead.
    #[must_use]
    pub fn rules(mut self, rules: &str) -> Self {
        rules.clone_into(&mut self.rules);
        self
    }

    /// With these keys below `admin` too.
    #[must_use]
    pub fn admin_keys(mut self, keys: &str) -> Self {
        self.admin_keys = format!(", {keys}");
        self
    }

    /// With these keys below `probe` too.
    #[must_use]
    pub fn probe_keys(mut self, keys: &str) -> Self {
        self.probe_keys = format!(", {keys}");
        self
    }

    /// With these signals instead.
    #[must_use]
    pub fn signals(mut self, signals: &str) -> Self {
        signals.clone_into(&mut self.signals);
        self
    }

    /// With more keys of the cluster.
    #[must_use]
    pub fn cluster(mut self, keys: &str) -> Self {
        keys.clone_into(&mut self.cluster);
        self
    }

    /// With this identity section instead.
    #[must_use]
    pub fn identity(mut self, identity: &str) -> Self {
        identity.clone_into(&mut self.identity);
        self
    }

    /// The file.
    #[must_use]
    pub fn render(&self) -> String {
        let replicas: Vec<String> = self.replicas.iter().map(SocketAddr::to_string).collect();
        let mut text = String::new();
        let header = [
            "version: 1".to_owned(),
            format!("admin: {{ listen: \"{}\"{} }}", self.admin, self.admin_keys),
            "clusters:".to_owned(),
            "  main:".to_owned(),
            format!("    listen: \"{}\"", self.listen),
            format!("    primary: \"{}\"", self.primary),
            format!("    replicas: [{}]", replicas.join(", ")),
            format!(
                "    probe: {{ user: sluice, password_env: SLUICE_PROBE_PASSWORD{} }}",
                self.probe_keys
            ),
        ];
        for line in header {
            put_line(&mut text, 0, &line);
        }
        if !self.signals.trim().is_empty() {
            put_line(&mut text, 4, "signals:");
            put_block(&mut text, 6, &self.signals);
        }
        put_block(&mut text, 4, &self.cluster);
        if !self.identity.trim().is_empty() {
            put_line(&mut text, 0, "identity:");
            put_block(&mut text, 2, &self.identity);
        }
        if !self.rules.trim().is_empty() {
            put_line(&mut text, 0, "rules:");
            put_block(&mut text, 2, &self.rules);
        }
        put_block(&mut text, 0, &self.top);
        text
    }
}

fn put_block(text: &mut String, indent: usize, block: &str) {
    for line in block.lines() {
        put_line(text, indent, line);
    }
}

fn put_line(text: &mut String, indent: usize, line: &str) {
    // Writing to a String cannot fail.
    writeln!(text, "{:indent$}{line}", "").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_indented_below_their_keys() {
        let mut config = Config::in_front_of(loopback(3306), vec![loopback(3316), loopback(3326)])
            .unwrap()
            .cluster("pacing: binary")
            .rules("- name: a\n  permanent: true");
        config.listen = loopback(3307);
        config.admin = loopback(9307);
        let expected = "version: 1\n\
            admin: { listen: \"127.0.0.1:9307\" }\n\
            clusters:\n  main:\n    listen: \"127.0.0.1:3307\"\n    primary: \"127.0.0.1:3306\"\n    \
            replicas: [127.0.0.1:3316, 127.0.0.1:3326]\n    \
            probe: { user: sluice, password_env: SLUICE_PROBE_PASSWORD }\n    \
            signals:\n      lag: { threshold: 1s }\n    pacing: binary\n\
            identity:\n  claims:\n    - { user: \"*\", apps: [\"*\"] }\n\
            rules:\n  - name: a\n    permanent: true\n";
        assert_eq!(config.render(), expected);
    }
}
