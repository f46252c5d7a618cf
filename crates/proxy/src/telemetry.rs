//! Every metric that Sluice exports; nothing elsewhere makes one.
//!
//! Connections report events; what has a value at any time (signals, queues) is read when somebody
//! scrapes ([`Telemetry::gather`]). A statement costs a few atomic additions: the series that a
//! connection used last are remembered in its [`LabelCache`], so that the usual statement builds no
//! label, takes no lock and allocates nothing.
//!
//! Labels are bounded. Rules, clusters and the enums are closed sets. Apps and users are named by
//! clients, so only the first `max_apps` of them get series of their own and the rest are `other`.

mod apps;
mod around;
mod budgets;
mod certificates;
mod checks;
mod edits;
mod event;
mod families;
mod gauges;
mod guards;
mod labels;
mod limits;
mod pulse;
mod rules;
mod scrape;
mod servers;
mod starved;
mod tally;
mod zeros;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use admission::{Mode, Reason, RuleKey};
use parking_lot::Mutex;
use policy::FixedKey;
use prometheus::{IntGauge, Registry};

use self::checks::CheckTally;
use self::families::Families;
use self::labels::{LabelNames, Series};
use self::pulse::Pulses;
use self::rules::KnownRules;
use self::scrape::Unresolved;
use self::tally::Tally;
use crate::statement_log::StatementLog;

pub use self::apps::AppCount;
pub use self::checks::CheckKey;
pub use self::edits::{Edits, RuleEdit};
pub use self::event::{
    BackendErrorKind, CheckEvent, ConnectionRefusal, KillOutcome, Reload, StatementDecision,
    StatementEvent,
};
pub use self::labels::LabelCache;
pub use self::pulse::{Pulse, quantile};
pub use self::scrape::state_label;
pub use self::tally::{Tallied, TallyKey, Waits};

/// What bounds the labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// Apps, and users, with series of their own (`metrics.max_apps`). Raising it costs the scraper
    /// a set of series for each.
    pub max_apps: usize,
}

/// The metrics of one process.
#[derive(Debug)]
pub struct Telemetry {
    registry: Registry,
    families: Families,
    apps: LabelNames,
    users: LabelNames,
    /// Raised when series are taken out, so that no connection goes on counting into one that is
    /// gone.
    generation: AtomicU64,
    rules: Mutex<KnownRules>,
    pulses: Pulses,
    unresolved: Unresolved,
    tally: Tally,
    checks: CheckTally,
    /// What changed the rules.
    pub edits: Edits,
    /// The keys that cannot change live, by the last file that was applied.
    fixed_keys: Mutex<Vec<FixedKey>>,
    last_reload: Mutex<Option<Reload>>,
    /// What the log tells of single statements.
    pub(crate) statement_log: Arc<StatementLog>,
}

/// One client connection in `sluice_client_connections`, until it is dropped.
#[derive(Debug)]
#[must_use = "the connection is counted while this lives"]
pub struct ConnectionGauge(IntGauge);

impl Drop for ConnectionGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What connections and the reload report.
impl Telemetry {
    /// Metrics that nothing has been counted in yet, in a registry of their own.
    pub fn new(config: TelemetryConfig) -> Arc<Self> {
        let registry = Registry::new();
        let families = Families::new(&registry);
        families.build_info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Arc::new(Self {
            families,
            registry,
            apps: LabelNames::new(config.max_apps),
            users: LabelNames::new(config.max_apps),
            generation: AtomicU64::new(0),
            rules: Mutex::default(),
            pulses: Pulses::default(),
            unresolved: Unresolved::default(),
            tally: Tally::default(),
            checks: CheckTally::default(),
            edits: Edits::default(),
            fixed_keys: Mutex::default(),
            last_reload: Mutex::default(),
            statement_log: Arc::default(),
        })
    }

    /// Counts a statement that is over.
    pub fn statement(&self, cache: &mut LabelCache, event: &StatementEvent<'_>) {
        let generation = self.generation.load(Ordering::Relaxed);
        let series = cache.series(generation, event, || self.resolve(event));
        series.statements.inc();
        series.tally.count(event);
        if let Some(hits) = &series.rule_hits {
            hits.inc();
        }
        if let Some(queued) = event.queued {
            let delay = series.queue_delay.get_or_insert_with(|| {
                let decision = event.decision.as_str();
                let labels = [&**event.cluster, event.rule, &*series.app, decision];
                self.families.queue_delay.with_label_values(&labels)
            });
            delay.observe(queued.as_secs_f64());
            series.beats.waited(queued);
        }
        if event.decision == StatementDecision::Rejected {
            series.beats.refused();
        }
        if let Some(backend) = event.backend {
            series.backend.observe(backend.as_secs_f64());
        }
        self.families.overhead.observe(event.overhead.as_secs_f64());
    }

    /// What became of statements since the last call. One caller keeps the history.
    pub fn take_tally(&self) -> Vec<(TallyKey, Tallied)> {
        self.tally.take()
    }

    /// What became of checks over HTTP since the last call, likewise.
    pub fn take_checks(&self) -> Vec<(CheckKey, u64)> {
        self.checks.take()
    }

    /// Counts a check over HTTP that was answered.
    pub fn check(&self, event: &CheckEvent<'_>) {
        let app = self.app_label(event.app);
        let CheckEvent { cluster, rule, dialect, decision, reason, app: _ } = *event;
        let labels = [cluster, rule, &*app, dialect, decision.as_str(), reason.unwrap_or_default()];
        self.families.cooperative_checks.with_label_values(&labels).inc();
        self.checks.count(event, &app);
        if rule != NO_RULE {
            self.families.rule_hits.with_label_values(&[rule]).inc();
        }
    }

    /// A client has connected; it is counted until the guard is dropped.
    pub fn client_connected(&self, cluster: &str) -> ConnectionGauge {
        let gauge = self.families.client_connections.with_label_values(&[cluster]);
        gauge.inc();
        ConnectionGauge(gauge)
    }

    /// Over how many threads the load is spread, and what part of a core each has used.
    pub(crate) fn relay_threads(&self, used: usize, busy: impl Iterator<Item = f64>) {
        self.families.relay_threads.set(i64::try_from(used).unwrap_or(i64::MAX));
        for (thread, busy) in busy.enumerate() {
            self.families.relay_busy.with_label_values(&[&thread.to_string()]).set(busy);
        }
    }

    /// A connection goes on on another thread.
    pub(crate) fn relay_moved(&self) {
        self.families.relay_moves.inc();
    }

    /// So many lines of the log are not written.
    pub fn log_lines_dropped(&self, lines: u64) {
        self.families.log_lines_dropped.inc_by(lines);
    }

    /// A backend failed a connection.
    pub fn backend_error(&self, cluster: &str, kind: BackendErrorKind) {
        self.families.backend_errors.with_label_values(&[cluster, kind.as_str()]).inc();
    }

    /// A client was turned away.
    pub fn connection_refused(&self, cluster: &str, reason: ConnectionRefusal) {
        self.families.connections_refused.with_label_values(&[cluster, reason.as_str()]).inc();
    }

    /// A statement was to be killed because its client had left.
    pub fn kill(&self, cluster: &str, outcome: KillOutcome) {
        self.families.kills.with_label_values(&[cluster, outcome.as_str()]).inc();
    }

    /// Sluice has contradicted itself, and ended a connection for it.
    pub fn internal_fault(&self, cluster: &str) {
        self.families.faults.with_label_values(&[cluster]).inc();
    }

    /// A client claimed an identity that `identity.claims` does not let this user have.
    pub fn claim_refused(&self, user: &[u8]) {
        let user = self.users.label(&String::from_utf8_lossy(user));
        self.families.claims_refused.with_label_values(&[&*user]).inc();
    }

    /// The configuration file was read, or read again. A failed one leaves the time of the last
    /// good one.
    pub fn reload(&self, outcome: Reload, unix_seconds: f64) {
        match outcome {
            Reload::Applied => {
                self.families.reload_successful.set(1);
                self.families.reload_timestamp.set(unix_seconds);
            }
            Reload::Failed | Reload::Waiting | Reload::Torn => {
                self.families.reload_successful.set(0);
            }
        }
        *self.last_reload.lock() = Some(outcome);
    }

    /// How the last reading of the configuration file ended; none before the first.
    pub fn last_reload(&self) -> Option<Reload> {
        *self.last_reload.lock()
    }

    /// What the last file that was applied says of keys that cannot change live.
    pub fn handle_fixed_keys(&self, keys: Vec<FixedKey>) {
        *self.fixed_keys.lock() = keys;
    }

    /// The keys in which the file differs from what runs.
    pub fn pending_keys(&self) -> Vec<FixedKey> {
        let keys = self.fixed_keys.lock();
        keys.iter().filter(|key| key.pending.is_some()).cloned().collect()
    }

    /// Whether the last reading of the configuration file was a good one.
    pub fn config_is_valid(&self) -> bool {
        self.families.reload_successful.get() == 1
    }

    /// When the configuration that is in force was applied, in Unix seconds; 0 before the first.
    pub fn config_applied_at(&self) -> f64 {
        self.families.reload_timestamp.get()
    }

    fn resolve(&self, event: &StatementEvent<'_>) -> Series {
        let app = self.app_label(event.app);
        let Families { statements, rule_hits, backend, .. } = &self.families;
        let class = event.class.as_str();
        let labels = [
            &**event.cluster,
            event.rule,
            &*app,
            class,
            event.decision.as_str(),
            event.reason.map_or("", Reason::as_str),
            mode_label(event.mode),
        ];
        let has_rule = event.rule != NO_RULE;
        if has_rule {
            self.note_series_of(event.rule);
        }
        Series {
            statements: statements.with_label_values(&labels),
            rule_hits: has_rule.then(|| rule_hits.with_label_values(&[event.rule])),
            backend: backend.with_label_values(&[&**event.cluster, class]),
            queue_delay: None,
            tally: self.tally.cell(event, &app),
            beats: self.pulses.of(event.cluster),
            app,
        }
    }

    /// The label of an app: without what changes from run to run, and capped.
    fn app_label(&self, app: &[u8]) -> Arc<str> {
        let mut label = String::new();
        policy::app_label(app, &mut label);
        self.apps.label(&label)
    }
}

/// The `rule` label of statements that no rule matched.
pub const NO_RULE: &str = "none";

/// Stands for the rule of statements that none matches: who waits for a budget may have none.
pub(crate) const NO_RULE_KEY: RuleKey = RuleKey(0);

const fn mode_label(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "observe",
    }
}

#[cfg(test)]
mod tests;
