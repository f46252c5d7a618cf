//! Which settings of a cluster say what its probes measure, and how.

use crate::cluster::ClusterPolicy;

impl ClusterPolicy {
    /// Whether probes that measure what `other` wants are right for this one too. Every field is
    /// named, so that a new one has to be decided about.
    pub fn is_probed_like(&self, other: &Self) -> bool {
        let Self {
            primary,
            replicas,
            replica_terms,
            probe,
            bypass,
            signals,
            backend_tls,
            name: _,
            listen: _,
            default_gate: _,
            protected_gate: _,
            mode: _,
            check_interval: _,
            pacing: _,
            release_per_s: _,
            queue_len_max: _,
            connect_timeout: _,
            network: _,
            client_tls: _,
            redirect: _,
            client_compression: _,
            backend_compression: _,
            compression_level: _,
            rules: _,
            budgets: _,
            identity: _,
            starvation: _,
            guards: _,
            quarantine: _,
            insights: _,
            history: _,
            gates: _,
        } = self;
        *primary == other.primary
            && *replicas == other.replicas
            && *replica_terms == other.replica_terms
            && *probe == other.probe
            && *bypass == other.bypass
            && *signals == other.signals
            && *backend_tls == other.backend_tls
            // It goes by `pacing` too.
            && self.learns_row_costs() == other.learns_row_costs()
    }
}
