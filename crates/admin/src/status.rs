//! What Sluice is doing now, as one value: `/api/v1/status` is its JSON, and the page and
//! `sluice status` are its words. So all three say the same.
//!
//! Names are the contract's: those of rules, metrics and refusals. Times of the clock are RFC 3339,
//! spans are seconds (`…_s`). It never holds the text of a statement. Every list is bounded, and
//! says how many there are in truth.

pub mod words;

mod budgets;
mod gather;
mod guards;
mod refused;

use serde::{Deserialize, Serialize};

pub use self::budgets::BudgetStatus;
pub(crate) use self::gather::live;
pub use self::gather::{WAITING_MAX, gather, waiting};
pub use self::guards::GuardStatus;
pub use self::refused::RefusedStatus;
pub use crate::quarantine::QuarantineEntry;

/// The whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The version of Sluice that answers.
    pub version: String,
    /// When this was read.
    pub now: String,
    /// When the process started: counts are from then.
    pub started_at: String,
    /// As `/readyz` says.
    pub ready: bool,
    /// What keeps it from being ready.
    pub not_ready: Vec<String>,
    /// What is not well and keeps nobody away.
    pub notes: Vec<String>,
    /// The configuration file.
    pub config: ConfigStatus,
    /// The clusters, in the order of the file.
    pub clusters: Vec<ClusterStatus>,
}

/// The configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConfigStatus {
    /// False: the file on disk has faults, and is not the one in force.
    pub last_reload_successful: bool,
    /// The file on disk is not in force because files that it names, of secrets or certificates, cannot
    /// be used yet: it is tried again by itself.
    pub waits_for_files: bool,
    /// When the one in force was applied, or found unchanged.
    pub last_reload_at: String,
    /// The keys in which the file differs from what runs until the next restart.
    pub restart_pending: Vec<PendingStatus>,
}

/// A key that waits for a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PendingStatus {
    /// Its path in the file.
    pub key: String,
    /// The value that runs.
    pub running: String,
    /// The value in the file.
    pub file: String,
}

/// One cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterStatus {
    /// Its name.
    pub cluster: String,
    /// Where clients connect.
    pub listen: String,
    /// `enforce` or `observe`: what rules do that say nothing else.
    pub mode: String,
    /// Client connections now.
    pub client_connections: u64,
    /// Admitted statements that the server has not finished.
    pub in_flight: u64,
    /// How fast a line moves.
    pub pace: PaceStatus,
    /// The primary.
    pub primary: PrimaryStatus,
    /// The replicas, by their addresses.
    pub replicas: Vec<ReplicaStatus>,
    /// The signals of its gates.
    pub signals: Vec<SignalStatus>,
    /// Who is held up, and why.
    pub throttled: Vec<ThrottledStatus>,
    /// How many are, in all.
    pub throttled_total: u64,
    /// The statements that wait, the longest wait first.
    pub waiting: Vec<WaitingStatus>,
    /// How many wait, in all.
    pub waiting_total: u64,
    /// Who writes past Sluice, those with most sessions first.
    pub bypass: Vec<BypassStatus>,
    /// Sessions of which it is not known whether they have come through a Sluice; none: nobody
    /// looks, or can.
    pub bypass_unknown: Option<u64>,
    /// Cut-overs of gh-ost that hold their lock.
    pub cut_overs: Vec<CutOverStatus>,
    /// Who is starved, and by whom.
    pub starved: Vec<StarvedStatus>,
    /// What became of each app's statements since the process started; those first that were held
    /// back most.
    pub apps: Vec<AppStatus>,
    /// How many rows of that there are, in all.
    pub apps_total: u64,
    /// Whose statements were refused within the last ten minutes, and by what; those first that were
    /// refused most.
    pub refused: Vec<RefusedStatus>,
    /// How many rows of that there are, in all.
    pub refused_total: u64,
    /// The budgets, those first for which somebody waits.
    pub budgets: Vec<BudgetStatus>,
    /// The checks of the guards, in the order of the file.
    pub guards: Vec<GuardStatus>,
    /// How many there are, in all.
    pub guards_total: u64,
    /// What is refused, or comes last, because a statement like it ran away; the oldest first.
    pub quarantine: Vec<QuarantineEntry>,
    /// The rules, the first that matches decides.
    pub rules: Vec<RuleStatus>,
    /// How many there are, in all.
    pub rules_total: u64,
}

/// A cut-over of gh-ost: while it holds its lock, its other sessions' statements on its own tables
/// pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CutOverStatus {
    /// The server's id of the connection that holds the lock.
    pub connection_id: u32,
    /// Its MySQL user.
    pub user: String,
    /// The schema of the table.
    pub schema: String,
    /// The table that is changed, and locked.
    pub table: String,
    /// For how long.
    pub for_s: f64,
    /// Statements of other sessions that have passed for it.
    pub passed: u64,
}

/// How fast a line moves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PaceStatus {
    /// The signals of the default gate, which is that of rules that name none.
    pub gate: Vec<String>,
    /// `adaptive` or `binary`.
    pub pacing: String,
    /// What the default gate lets through in a second while statements wait; none while it is shut,
    /// or has no signals.
    pub per_second: Option<f64>,
    /// Of what: `rows`, `statements` or `checks`.
    pub unit: String,
    /// The signal whose pace held somebody back within the last seconds.
    pub governs: Option<String>,
}

/// The primary.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrimaryStatus {
    /// Its address in the file.
    pub server: String,
    /// `answers`, `not_probed`, `unknown` (not heard from yet) or `silent`.
    pub state: String,
    /// When its probe answered last.
    pub age_s: Option<f64>,
    /// Why it is silent.
    pub error: Option<String>,
    /// When a client or a probe reached it last, if that is lately.
    pub reached_s: Option<f64>,
    /// Why nobody reached it lately, if somebody tried.
    pub unreached: Option<String>,
    /// Whose lock the heartbeat waits for, in words.
    pub heartbeat_blocked: Option<String>,
}

/// The sessions of one MySQL user that write to the primary and have not come through a Sluice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BypassStatus {
    /// The user.
    pub user: String,
    /// Some of the addresses that they come from.
    pub hosts: Vec<String>,
    /// How many there are.
    pub sessions: u64,
    /// Their part of the rows changed in the last looks, 0 to 1; none: the server does not tell.
    pub share: Option<f64>,
}

/// A replica.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaStatus {
    /// Its address in the file.
    pub server: String,
    /// As in `sluice_replica_state`.
    pub state: String,
    /// How long it has been in this state.
    pub for_s: f64,
    /// How far behind it is, also where that does not count.
    pub lag_s: Option<f64>,
    /// Its group in the file.
    pub group: Option<String>,
    /// The threshold of its own; none: that of the signal.
    pub threshold_s: Option<f64>,
    /// Whether its lag counts for that of the cluster.
    pub counts: bool,
    /// What is wrong with it.
    pub error: Option<String>,
    /// What to do about that.
    pub advice: Option<String>,
}

/// A signal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalStatus {
    /// Its name.
    pub signal: String,
    /// Its last value, however old.
    pub value: Option<f64>,
    /// What it is held against: for `lag` that of the replica that is nearest to its own.
    pub threshold: f64,
    /// The server that the value is of; none: not of a single one.
    pub server: Option<String>,
    /// Of both: `s`, or nothing.
    pub unit: String,
    /// `open`, `closed` or `no_data`.
    pub state: String,
    /// How long it has said that.
    pub for_s: f64,
    /// How old the value is.
    pub age_s: Option<f64>,
    /// Whether it lets statements through: without data that is `on_no_data`'s.
    pub open: bool,
    /// Gated statements at the server, at gates with it; none if it does not limit them.
    pub in_flight: Option<u64>,
    /// How many may be; below 1, the part of the time in which one may. None while as many as come.
    pub in_flight_limit: Option<f64>,
}

/// What stands in the way of a statement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Obstacle {
    /// One of the reasons; none while nothing of it waits.
    pub reason: Option<String>,
    /// The signal behind it.
    pub signal: Option<String>,
    /// The signal's value.
    pub value: Option<f64>,
    /// What that is held against.
    pub threshold: Option<f64>,
    /// Of both: `s`, or nothing.
    pub unit: Option<String>,
    /// The budget that has no room for it.
    pub budget: Option<String>,
    /// The limit of its own rule behind it: `max_rate`, `max_in_flight` or `speed`.
    pub limit: Option<String>,
}

/// An identity that is held up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThrottledStatus {
    /// The app as the client named it.
    pub app: String,
    /// The rule that holds it.
    pub rule: String,
    /// Since when nothing of its has been admitted. None: `starvation` is off.
    pub since: Option<String>,
    /// How long that is.
    pub for_s: Option<f64>,
    /// How long ago it last asked; if it does not wait, it was refused or gave up then.
    pub asked_s: f64,
    /// How many of its statements wait now.
    pub waiting: u64,
    /// How long the longest of them has.
    pub oldest_s: Option<f64>,
    /// Why that one waits.
    #[serde(flatten)]
    pub why: Obstacle,
}

/// A statement that waits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitingStatus {
    /// The cluster.
    pub cluster: String,
    /// The server's id of the connection: `SHOW PROCESSLIST` shows it as `Sleep`.
    pub connection_id: u32,
    /// The MySQL user.
    pub user: String,
    /// The client's address and port, or `unix`.
    pub client: String,
    /// The app as the client named it.
    pub app: String,
    /// The rule that holds it.
    pub rule: String,
    /// How long it has waited.
    pub waited_s: f64,
    /// How long it may wait yet.
    pub left_s: f64,
    /// Why it waits.
    #[serde(flatten)]
    pub why: Obstacle,
}

/// The statements that wait, of all clusters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// When this was read.
    pub now: String,
    /// How many wait, in all.
    pub waiting_total: u64,
    /// The longest wait of each cluster first.
    pub waiting: Vec<WaitingStatus>,
}

/// An identity that is starved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StarvedStatus {
    /// The app as the client named it.
    pub app: String,
    /// The rule that holds it.
    pub rule: String,
    /// `blocked`: nothing of it was let through. `below_share`: less than half of its fair share.
    pub kind: String,
    /// The part of `starvation.window` for which it was.
    pub share: f64,
    /// What it got of its fair share while it was below it. None: it was not.
    pub received_of_share: Option<f64>,
    /// When that began.
    pub since: String,
    /// How long ago that is.
    pub for_s: f64,
    /// Whether it is held up now.
    pub blocked: bool,
    /// The likely cause if it is not who passed: its own rule, or a replica that is stopped.
    pub likely_cause: Option<String>,
    /// The replica whose stopped replication is the likely cause, in words.
    pub stopped_replica: Option<String>,
    /// Who was let through meanwhile, the likely cause first.
    pub passed: Vec<PassedStatus>,
}

/// An app that was let through while somebody was starved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PassedStatus {
    /// The app as metrics show it.
    pub app: String,
    /// The rule that it came under.
    pub rule: Option<String>,
    /// `exempt`, `ungated` or `asked`.
    pub passage: String,
    /// How many statements.
    pub count: u64,
}

/// What became of the statements of one app under one rule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AppStatus {
    /// The app as metrics show it.
    pub app: String,
    /// The rule; `none` where no rule matched.
    pub rule: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// Passed, at once or after a wait.
    pub admitted: u64,
    /// Of all these, those that had to wait.
    pub delayed: u64,
    /// Refused. Under `observe`: passed, and would have been delayed or refused.
    pub rejected: u64,
    /// Left while they waited.
    pub client_gone: u64,
}

/// A rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleStatus {
    /// Its name.
    pub rule: String,
    /// `throttle`, `hold`, `exempt` or `deny`.
    pub action: String,
    /// What that means, in words.
    pub does: String,
    /// `enforce` or `observe`.
    pub mode: String,
    /// `in_force`, `expired` or `off_schedule`.
    pub standing: String,
    /// When it ends. None: it is permanent.
    pub expires_at: Option<String>,
    /// How long that is; below 0 it has.
    pub expires_in_s: Option<i64>,
    /// Statements it has decided about since the process started.
    pub hits: u64,
    /// Who made it at runtime. None: it is the file's.
    pub author: Option<String>,
    /// Why it exists.
    pub reason: String,
}
