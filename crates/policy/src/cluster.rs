//! What the file says about one cluster.

use std::sync::Arc;
use std::time::Duration;

use admission::{
    AdaptivePacing, BinaryPacing, ControllerConfig, GateConfig, GateKey, InFlightPacing, Mode,
    OnNoData, Pacing, SignalConfig, SignalKey,
};
use sql::{Class, ClassSet};

use crate::budget::Budgets;
use crate::bypass::Bypass;
use crate::compile::limits::show;
use crate::compression::{BackendCompression, ClientCompression, CompressionLevel};
use crate::guard::Guards;
use crate::history::HistoryLimits;
use crate::identity::IdentityPolicy;
use crate::insights::Insights;
use crate::network::{Listen, Network};
use crate::patterns::Patterns;
use crate::replica::ReplicaBook;
use crate::rule::{GateFrom, Rule};
use crate::rules::Rules;
use crate::runaway::Quarantine;
use crate::secret::Secret;
use crate::tls::{BackendTls, ClientTls, Redirect};

/// One cluster: where it is, how it is measured, and the rules in force for it.
#[derive(Debug, Clone)]
pub struct ClusterPolicy {
    /// Its name: the `cluster` label.
    pub name: Arc<str>,
    /// Where clients connect.
    pub listen: Listen,
    /// The server that statements go to, `host:port` or `unix:/path`: see [`crate::ServerAddress`].
    pub primary: Arc<str>,
    /// The servers whose lag is measured, named in the same way.
    pub replicas: Vec<Arc<str>>,
    /// What single ones of them have of their own.
    pub replica_terms: ReplicaBook,
    /// How signals are measured. `None`: the cluster has nothing to measure.
    pub probe: Option<Probe>,
    /// Whether sessions that go around Sluice are looked for.
    pub bypass: Bypass,
    /// The signals, in the order of the file; `lag` is always among them.
    pub signals: Vec<Signal>,
    /// The gate of rules that name none.
    pub default_gate: GateKey,
    /// That gate without its latencies: where an app that one of them protects asks.
    pub(crate) protected_gate: GateKey,
    /// What a statement without a rule counts as, and the mode of rules that name none.
    pub mode: Mode,
    /// Time until a refused check is repeated.
    pub check_interval: Duration,
    /// How statements are let through a contended gate.
    pub pacing: PacingKind,
    /// Checks a second in the first second after a gate opens, where the pace is not adaptive.
    pub release_per_s: u32,
    /// Most waiters of the whole cluster.
    pub queue_len_max: u32,
    /// How long a connection to the primary may take, until the server has greeted.
    pub connect_timeout: Duration,
    /// Limits and options of its connections.
    pub network: Network,
    /// TLS with clients.
    pub client_tls: ClientTls,
    /// TLS with servers.
    pub backend_tls: BackendTls,
    /// What is done with a server that sends clients elsewhere.
    pub redirect: Redirect,
    /// What clients may compress with.
    pub client_compression: ClientCompression,
    /// What the leg to the server is compressed with.
    pub backend_compression: BackendCompression,
    /// How hard Sluice compresses.
    pub compression_level: CompressionLevel,
    /// The rules, in their order: the first that matches decides.
    pub rules: Rules,
    /// What a text may not do.
    pub guards: Guards,
    /// What ran away lately, and is refused for it.
    pub quarantine: Quarantine,
    /// What statements may use together: all that match count.
    pub budgets: Budgets,
    /// Whose claims count.
    pub identity: Arc<IdentityPolicy>,
    /// When an identity counts as starved; `None`: nobody looks.
    pub starvation: Option<Starvation>,
    /// What is counted of each digest.
    pub insights: Insights,
    /// How much of what happened is kept.
    pub history: HistoryLimits,
    pub(crate) gates: Vec<GateConfig>,
}

/// How statements are let through a contended gate, as the file says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacingKind {
    /// By what the replicas have acknowledged. Where no lag is measured it is the same as binary.
    Adaptive,
    /// The plain gate with a ramped release.
    Binary,
}

/// When an identity counts as starved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Starvation {
    /// The share of the window that it has waited or been refused for, above 0 and at most 1.
    pub share: f64,
    /// The time that is looked back on.
    pub window: Duration,
}

/// How a cluster's signals are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The MySQL user of the probes.
    pub user: String,
    /// Its password; `None` is an account without one.
    pub password: Option<Secret>,
    /// How often a heartbeat is written on the primary.
    pub heartbeat_interval: Duration,
    /// How often each server is read.
    pub probe_interval: Duration,
    /// The table the heartbeat is written to.
    pub heartbeat_table: TableName,
    /// Where lag comes from.
    pub source: LagSource,
    /// What a row counts as at the adaptive pace.
    pub row_costs: RowCosts,
}

/// What a row counts as at the adaptive pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCosts {
    /// A row that the primary tells is a row.
    Told,
    /// What it was found to cost the replicas, by what their appliers are at.
    Applied,
}

/// The name of a table with its schema, both made of letters, digits, `_` and `$` only: they need
/// no quoting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The schema.
    pub schema: String,
    /// The table in it.
    pub table: String,
}

/// Where lag comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LagSource {
    /// Sluice's own heartbeat.
    Heartbeat,
    /// `SHOW REPLICA STATUS`.
    ReplicaStatus,
    /// A query that gives the lag in seconds, run on each replica.
    Query(String),
}

/// One signal of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// The same for the same metric over reloads.
    pub key: SignalKey,
    /// Its name in the file: the `signal` label.
    pub name: Arc<str>,
    /// What is measured.
    pub kind: SignalKind,
    /// On which servers.
    pub scope: Scope,
    /// What is shown as the limit; seconds for lag.
    pub threshold: f64,
    /// It opens below this.
    pub open_at: f64,
    /// It closes at or above this.
    pub close_at: f64,
    /// A value older than this is not used.
    pub stale_after: Duration,
    /// What it says without a usable value.
    pub on_no_data: OnNoData,
}

/// What a signal measures.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalKind {
    /// Replication lag, by [`Probe::source`].
    Lag {
        /// How many of the slowest replicas are left out; never the last one.
        ignore_slowest: u32,
        /// With fewer replicas that can be measured there is no value.
        min_replicas: u32,
    },
    /// The status variable `Threads_running`.
    ThreadsRunning,
    /// InnoDB's history list length.
    HistoryListLength,
    /// A query that gives one number.
    Query(String),
    /// A variable of `SHOW GLOBAL STATUS`.
    Status(String),
    /// A percentile of latencies at the server, as Sluice sees them.
    Latency(Arc<Latency>),
}

/// Whose latencies a signal is of, and which of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Latency {
    /// The apps, matched as by rules. `None`: any.
    pub app: Option<Patterns>,
    /// The rule that decided, by its name. `None`: any, or none.
    pub rule: Option<Arc<str>>,
    /// The classes of statements.
    pub statements: ClassSet,
    /// The share of statements whose latency is at most the value.
    pub percentile: f64,
    /// Over what time.
    pub window: Duration,
}

impl Latency {
    /// Whether it is about a statement of this app and class that this rule decided.
    #[must_use]
    pub fn is_about(&self, app: &[u8], rule: Option<&str>, class: Class) -> bool {
        self.statements.contains(class)
            && self.rule.as_deref().is_none_or(|name| rule == Some(name))
            && self.is_from(app)
    }

    /// Whether it is about statements of this app, as far as apps go.
    #[must_use]
    pub fn is_from(&self, app: &[u8]) -> bool {
        self.app.as_ref().is_none_or(|patterns| patterns.matches_app(app))
    }
}

impl SignalKind {
    /// Whether the value is in seconds.
    #[must_use]
    pub fn is_time(&self) -> bool {
        match self {
            Self::Lag { .. } | Self::Latency(_) => true,
            Self::ThreadsRunning | Self::HistoryListLength | Self::Query(_) | Self::Status(_) => {
                false
            }
        }
    }
}

/// On which servers a signal is measured; the highest value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// The primary: `self/…`.
    Primary,
    /// All replicas: `shard/…`.
    Replicas,
}

impl Scope {
    /// The prefix of signal names, and the `scope` label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Primary => "self",
            Self::Replicas => "shard",
        }
    }
}

impl ClusterPolicy {
    /// The rule with this index.
    #[must_use]
    pub fn rule(&self, index: u32) -> Option<&Rule> {
        self.rules.at(index)
    }

    /// The signal with this key.
    #[must_use]
    pub fn signal(&self, key: SignalKey) -> Option<&Signal> {
        self.signals.iter().find(|signal| signal.key == key)
    }

    /// The signals of a gate, in the order of the file.
    pub fn gate_signals(&self, key: GateKey) -> impl Iterator<Item = &Signal> {
        let gate = self.gates.iter().find(|gate| gate.key == key);
        let keys = gate.map(|gate| gate.signals.as_slice()).unwrap_or_default();
        keys.iter().filter_map(|key| self.signal(*key))
    }

    /// The gate at which a statement of this app asks that this rule holds: an app that a latency
    /// of the default gate protects is not held by any of them, unless the rule names its gate.
    #[must_use]
    pub fn gate_of(&self, rule: &Rule, gate: GateKey, app: &[u8]) -> GateKey {
        let is_default = match rule.gate_from {
            GateFrom::Cluster => self.protected_gate != self.default_gate,
            GateFrom::Rule => false,
        };
        let protected = is_default
            && self.gate_signals(gate).any(|signal| match &signal.kind {
                SignalKind::Latency(latency) => latency.app.is_some() && latency.is_from(app),
                SignalKind::Lag { .. }
                | SignalKind::ThreadsRunning
                | SignalKind::HistoryListLength
                | SignalKind::Query(_)
                | SignalKind::Status(_) => false,
            });
        if protected { self.protected_gate } else { gate }
    }

    /// What single replicas have in place of the limit of the lag, for people. None: nothing, or
    /// another signal.
    #[must_use]
    pub fn own_thresholds(&self, signal: &Signal) -> Option<String> {
        let own = self.replica_terms.thresholds();
        let own: Vec<String> =
            own.map(|(server, limit)| format!("{} at {server}", show(limit))).collect();
        let is_lag = matches!(signal.kind, SignalKind::Lag { .. });
        (is_lag && !own.is_empty()).then(|| own.join(", "))
    }

    /// The signals that are latencies, with what they are of.
    pub fn latencies(&self) -> impl Iterator<Item = (&Signal, &Arc<Latency>)> {
        self.signals.iter().filter_map(|signal| match &signal.kind {
            SignalKind::Latency(latency) => Some((signal, latency)),
            SignalKind::Lag { .. }
            | SignalKind::ThreadsRunning
            | SignalKind::HistoryListLength
            | SignalKind::Query(_)
            | SignalKind::Status(_) => None,
        })
    }

    /// What this cluster's admission is told.
    #[must_use]
    pub fn controller_config(&self) -> ControllerConfig {
        let signals = self.signals.iter().map(|signal| signal.config(self.pacing)).collect();
        ControllerConfig {
            signals,
            gates: self.gates.clone(),
            check_interval: self.check_interval,
            pacing: self.controller_pacing(),
            queue_len_max: self.queue_len_max,
            budgets: self.budgets.book(),
        }
    }
}

impl ClusterPolicy {
    /// Whether what rows cost the replicas is to be learned.
    #[must_use]
    pub fn learns_row_costs(&self) -> bool {
        let wanted = self.probe.as_ref().is_some_and(|probe| probe.row_costs == RowCosts::Applied);
        wanted && self.pacing == PacingKind::Adaptive && !self.replicas.is_empty()
    }

    /// Without replicas, or somebody to measure them, there is no lag to be paced by.
    fn controller_pacing(&self) -> Pacing {
        let otherwise = BinaryPacing { release_per_s: self.release_per_s };
        let is_lag = |signal: &&Signal| matches!(signal.kind, SignalKind::Lag { .. });
        let lag = self.signals.iter().find(is_lag);
        match (self.pacing, lag, &self.probe) {
            (PacingKind::Adaptive, Some(lag), Some(probe)) if !self.replicas.is_empty() => {
                Pacing::Adaptive(AdaptivePacing {
                    lag: lag.key,
                    heartbeat_interval: probe.heartbeat_interval,
                    probe_interval: probe.probe_interval,
                    learns_row_costs: probe.row_costs == RowCosts::Applied,
                    otherwise,
                })
            }
            (PacingKind::Adaptive | PacingKind::Binary, _, _) => Pacing::Binary(otherwise),
        }
    }
}

impl Signal {
    fn config(&self, pacing: PacingKind) -> SignalConfig {
        SignalConfig {
            key: self.key,
            threshold: self.threshold,
            open_at: self.open_at,
            close_at: self.close_at,
            stale_after: self.stale_after,
            on_no_data: self.on_no_data,
            in_flight: self.in_flight(pacing),
        }
    }

    /// Under adaptive pacing every signal but the lag, which has a pace of its own, limits what is
    /// in flight.
    fn in_flight(&self, pacing: PacingKind) -> Option<InFlightPacing> {
        match (pacing, &self.kind) {
            (PacingKind::Binary, _) | (PacingKind::Adaptive, SignalKind::Lag { .. }) => None,
            (
                PacingKind::Adaptive,
                SignalKind::ThreadsRunning
                | SignalKind::HistoryListLength
                | SignalKind::Query(_)
                | SignalKind::Status(_),
            ) => Some(InFlightPacing::default()),
            (PacingKind::Adaptive, SignalKind::Latency(latency)) => Some(InFlightPacing {
                memory: latency.window,
                percentile: Some(latency.percentile),
            }),
        }
    }
}
