//! What a cluster's admission is told by the policy. All of it changes live.

use std::time::Duration;

use crate::{BudgetBook, GateKey};

/// Admission of one cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct ControllerConfig {
    /// The signals of the cluster.
    pub signals: Vec<SignalConfig>,
    /// The sets of them that rules name.
    pub gates: Vec<GateConfig>,
    /// Time until a lost check is repeated, ±25 %. Clamped to 1 ms … 1 h. Raising it delays
    /// statements of rules with a ratio further. Default 100 ms.
    pub check_interval: Duration,
    /// How statements are let through a contended gate.
    pub pacing: Pacing,
    /// Most waiters of the cluster; one more is refused at once. Default 10,000.
    pub queue_len_max: u32,
    /// What statements may use together. Over a reload the same key is the same budget, and what is
    /// at the server stays counted.
    pub budgets: BudgetBook,
}

impl Default for ControllerConfig {
    fn default() -> Self {
        Self {
            signals: Vec::new(),
            gates: Vec::new(),
            check_interval: Duration::from_millis(100),
            pacing: Pacing::default(),
            queue_len_max: 10_000,
            budgets: BudgetBook::default(),
        }
    }
}

/// A signal, as a number that only the policy can read. Over a reload the same key is the same
/// signal, and its values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalKey(pub u32);

/// One measured health metric and its limits. The unit is the signal's own (seconds for lag).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalConfig {
    /// Which signal.
    pub key: SignalKey,
    /// What is shown as the limit.
    pub threshold: f64,
    /// The signal opens below this. Usually the threshold.
    pub open_at: f64,
    /// The signal closes at or above this, at least `open_at`. Usually the threshold.
    pub close_at: f64,
    /// A value older than this is not used.
    pub stale_after: Duration,
    /// What the signal says without a usable value.
    pub on_no_data: OnNoData,
    /// How the statements in flight at its gates are limited. `None`: not at all, the gate is open
    /// or shut; the lag has a pace of its own.
    pub in_flight: Option<InFlightPacing>,
}

/// How a signal limits the statements in flight at its gates. Without a usable value nothing is
/// limited where [`OnNoData::Open`] says so, else the last limit holds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct InFlightPacing {
    /// For how long a value tells of what has passed: the window of a percentile. Zero: it tells of
    /// the moment.
    pub memory: Duration,
    /// Of a latency, the share of the statements that take at most the value: then the limit goes by
    /// [`Controller::handle_latencies`](crate::Controller::handle_latencies).
    pub percentile: Option<f64>,
}

impl SignalConfig {
    /// A signal without a band, stale after 3 s, closed without data: the defaults of the manual.
    #[must_use]
    pub const fn at_threshold(key: SignalKey, threshold: f64) -> Self {
        Self {
            key,
            threshold,
            open_at: threshold,
            close_at: threshold,
            stale_after: Duration::from_secs(3),
            on_no_data: OnNoData::Closed,
            in_flight: None,
        }
    }
}

/// What a signal says while it has no usable value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNoData {
    /// It lets statements through.
    Open,
    /// It does not.
    Closed,
    /// It says what it last said, for this long after its value became stale; then, and if it never
    /// had a value, it is closed.
    HoldLast(Duration),
}

/// A set of signals that must all be healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateConfig {
    /// Which set.
    pub key: GateKey,
    /// Its signals; the first unhealthy one is named as the cause. Empty: always open.
    pub signals: Vec<SignalKey>,
}

/// How statements are let through a contended gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// Work in flight is kept within what the replicas apply in the lag aimed for; gates that do
    /// not depend on the lag are binary.
    Adaptive(AdaptivePacing),
    /// The plain gate with a ramped release.
    Binary(BinaryPacing),
}

impl Default for Pacing {
    fn default() -> Self {
        Self::Binary(BinaryPacing::default())
    }
}

/// The pace of gates that depend on the lag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdaptivePacing {
    /// The signal that is the lag: its threshold is what lag must stay below.
    pub lag: SignalKey,
    /// How often a heartbeat is written.
    pub heartbeat_interval: Duration,
    /// How often replicas are asked for it.
    pub probe_interval: Duration,
    /// Whether what rows cost is learned from what the replicas' appliers are at; else a row is a
    /// row.
    pub learns_row_costs: bool,
    /// For gates that do not depend on the lag.
    pub otherwise: BinaryPacing,
}

/// The plain gate: shut or open, and after it opens, checks at a rate that doubles every second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryPacing {
    /// Checks a second in the first second after the gate opens. 0 counts as 1. Default 1,000.
    pub release_per_s: u32,
}

impl Default for BinaryPacing {
    fn default() -> Self {
        Self { release_per_s: 1_000 }
    }
}
