//! What one look at a running Sluice finds.

use std::sync::Arc;
use std::time::Duration;

use proxy::cluster::GateSignal;
use proxy::telemetry::{CheckKey, Tallied, TallyKey};

use crate::record::At;

/// What is found at one moment.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The monotonic clock.
    pub mono: Duration,
    /// The wall clock.
    pub at: At,
    /// What became of statements since the last look.
    pub counted: Vec<(TallyKey, Tallied)>,
    /// What became of checks over HTTP since then.
    pub checks: Vec<(CheckKey, u64)>,
    /// The clusters.
    pub clusters: Vec<ClusterLook>,
    /// What happened since the last look.
    pub happened: Vec<Happened>,
}

/// One cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterLook {
    /// Its name.
    pub cluster: Arc<str>,
    /// Who waits.
    pub waiting: Vec<WaitingLook>,
    /// What is behind what was refused lately. The same may be in two looks, for its count may
    /// come with the second.
    pub causes: Vec<CauseLook>,
    /// Its signals.
    pub signals: Vec<SignalLook>,
    /// Its primary and replicas.
    pub servers: Vec<ServerLook>,
    /// Who is starved.
    pub starved: Vec<StarvedLook>,
    /// The rules, if they are others than at the last look.
    pub rules: Option<Vec<RuleLook>>,
}

/// The waiters of one app under one rule.
#[derive(Debug, Clone)]
pub struct WaitingLook {
    /// The app as metrics show it.
    pub app: String,
    /// The rule.
    pub rule: Arc<str>,
    /// How many.
    pub depth: u64,
    /// For how long the oldest has waited.
    pub oldest: Duration,
    /// Why that one waits.
    pub reason: &'static str,
    /// What is behind that, as in [`CauseLook`].
    pub behind: Option<String>,
}

/// What is behind refusals of one app under one rule.
#[derive(Debug, Clone)]
pub struct CauseLook {
    /// The app as metrics show it.
    pub app: String,
    /// The rule; `none` where none matched.
    pub rule: Arc<str>,
    /// Why they were refused.
    pub reason: &'static str,
    /// The signal, the budget, the guard, or the limit of the rule (`speed`); empty: the pace.
    pub behind: String,
    /// The signal as it was then, if it is one.
    pub signal: Option<GateSignal>,
}

/// A signal.
#[derive(Debug, Clone)]
pub struct SignalLook {
    /// Its name.
    pub signal: Arc<str>,
    /// `s`, or nothing.
    pub unit: &'static str,
    /// Its value, if it is fresh.
    pub value: Option<f64>,
    /// What that is held against.
    pub threshold: f64,
    /// `closed` or `no_data`; none while it lets statements through.
    pub shut: Option<&'static str>,
    /// How long it has been in its state.
    pub lasts: Duration,
    /// Where it is highest.
    pub server: Option<Arc<str>>,
}

/// A server.
#[derive(Debug, Clone)]
pub struct ServerLook {
    /// Its address in the file.
    pub server: String,
    /// Whether it is the primary.
    pub is_primary: bool,
    /// Its state, by the name that the status has.
    pub state: String,
    /// How long it has been in that, where that is known.
    pub lasts: Option<Duration>,
    /// What is wrong with it.
    pub trouble: Option<String>,
}

/// Somebody who is starved.
#[derive(Debug, Clone)]
pub struct StarvedLook {
    /// The app as metrics show it.
    pub app: String,
    /// The rule.
    pub rule: String,
    /// For how long.
    pub lasts: Duration,
    /// Who passed meanwhile, in words.
    pub meanwhile: String,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLook {
    /// Its name.
    pub name: Arc<str>,
    /// Who made it at runtime; none: it is the file's.
    pub author: Option<Arc<str>>,
    /// Why it exists.
    pub reason: String,
    /// What it does, in words.
    pub does: String,
    /// When it ends.
    pub ends: Option<At>,
    /// Whether it has sessions go at a part of their speed, by pauses that no look may meet.
    pub slows: bool,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Happened {
    /// The file was saved, and is in force.
    File {
        /// Its path.
        path: String,
        /// What that changes, in words.
        changes: Vec<String>,
        /// The same, line by line.
        diff: String,
    },
    /// Somebody has made or lifted a rule at this Sluice.
    Rule {
        /// The cluster.
        cluster: Arc<str>,
        /// The rule.
        rule: Arc<str>,
        /// Who.
        author: String,
        /// `made` or `lifted`.
        what: &'static str,
    },
    /// Sluice ends.
    Stop,
    /// The file says that no history is to be kept.
    Off,
}
