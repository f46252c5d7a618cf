//! The families of counters, gauges and histograms that events are counted in.

use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

/// Waiting: from what a human cannot see to the longest `max_delay` anybody sets.
const DELAY_BUCKETS: [f64; 18] = [
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
    20.0, 30.0, 60.0,
];

/// The server: point selects to what nobody waits for.
const BACKEND_BUCKETS: [f64; 17] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0, 60.0,
];

/// Sluice itself: microseconds; anything in milliseconds is a machine that is overloaded.
const OVERHEAD_BUCKETS: [f64; 14] = [
    0.000_005, 0.000_01, 0.000_02, 0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.01,
    0.05, 0.1, 1.0,
];

#[derive(Debug)]
pub(super) struct Families {
    pub(super) statements: IntCounterVec,
    pub(super) checks: IntCounterVec,
    pub(super) cooperative_checks: IntCounterVec,
    pub(super) queue_delay: HistogramVec,
    pub(super) backend: HistogramVec,
    pub(super) overhead: Histogram,
    pub(super) rule_expires: GaugeVec,
    pub(super) rule_hits: IntCounterVec,
    pub(super) guard_hits: IntCounterVec,
    pub(super) runaway: IntCounterVec,
    pub(super) guard_unjudged: IntCounterVec,
    pub(super) guard_explains: IntCounterVec,
    pub(super) runtime_rules: IntGaugeVec,
    pub(super) rules_synced: IntGaugeVec,
    pub(super) claims_refused: IntCounterVec,
    pub(super) client_connections: IntGaugeVec,
    pub(super) backend_errors: IntCounterVec,
    pub(super) connections_refused: IntCounterVec,
    pub(super) kills: IntCounterVec,
    pub(super) faults: IntCounterVec,
    pub(super) reload_successful: IntGauge,
    pub(super) reload_timestamp: Gauge,
    pub(super) build_info: IntGaugeVec,
    pub(super) relay_threads: IntGauge,
    pub(super) relay_busy: GaugeVec,
    pub(super) relay_moves: IntCounter,
    pub(super) log_lines_dropped: IntCounter,
}

impl Families {
    #[expect(clippy::expect_used, reason = "names and labels are literals, and a test makes them")]
    pub(super) fn new(registry: &Registry) -> Self {
        Self::try_new(registry).expect("the families are well-formed and have different names")
    }

    #[expect(clippy::too_many_lines, reason = "a list")]
    fn try_new(registry: &Registry) -> prometheus::Result<Self> {
        let registered = Registered(registry);
        Ok(Self {
            statements: registered.counters(
                "sluice_statements_total",
                "Statements that are over, by what became of them and why. In mode observe, \
                 `rejected` is what would have been delayed or refused.",
                &["cluster", "rule", "app", "class", "decision", "reason", "mode"],
            )?,
            checks: registered.counters(
                "sluice_checks_total",
                "Checks: throws of a rule's dice, each followed by a look at the gate. Result \
                 `ratio`: the dice lost; `gate`: the dice won and the gate was shut (mode \
                 observe).",
                &["cluster", "rule", "app", "result"],
            )?,
            cooperative_checks: registered.counters(
                "sluice_cooperative_checks_total",
                "Checks over HTTP, by what they were told and why. In mode observe, `rejected` is \
                 what they would have been told.",
                &["cluster", "rule", "app", "dialect", "decision", "reason"],
            )?,
            queue_delay: registered.histograms(
                HistogramOpts::new(
                    "sluice_queue_delay_seconds",
                    "How long statements that had to wait were in the admission queue.",
                )
                .buckets(DELAY_BUCKETS.to_vec()),
                &["cluster", "rule", "app", "decision"],
            )?,
            backend: registered.histograms(
                HistogramOpts::new(
                    "sluice_backend_seconds",
                    "Time spent waiting for the server, per statement.",
                )
                .buckets(BACKEND_BUCKETS.to_vec()),
                &["cluster", "class"],
            )?,
            overhead: registered.with(Histogram::with_opts(
                HistogramOpts::new(
                    "sluice_proxy_overhead_seconds",
                    "Time a statement spent in Sluice, less time queued and time at the server.",
                )
                .buckets(OVERHEAD_BUCKETS.to_vec()),
            )?)?,
            rule_expires: registered.with(GaugeVec::new(
                Opts::new(
                    "sluice_rule_expires_timestamp_seconds",
                    "When a rule expires, in Unix time. Permanent rules have no series.",
                ),
                &["rule"],
            )?)?,
            rule_hits: registered.counters(
                "sluice_rule_hits_total",
                "Statements, and checks over HTTP, that a rule decided about.",
                &["rule"],
            )?,
            guard_hits: registered.counters(
                "sluice_guard_hits_total",
                "Statements that a guard objects to: in mode `deny` they were refused.",
                &["cluster", "guard", "check", "mode"],
            )?,
            runaway: registered.counters(
                "sluice_runaway_total",
                "Statements that took more than `runaway` of their rule lets them: `log`, `kill`, \
                 `deprioritise`, `left` where they commit, `over` where too large an answer was there before \
                 it could be killed, `failed` where the server was not reached or refused.",
                &["rule", "action"],
            )?,
            guard_unjudged: registered.counters(
                "sluice_guard_unjudged_total",
                "Statements that a guard could not judge; they were not refused.",
                &["cluster", "guard", "check"],
            )?,
            guard_explains: registered.counters(
                "sluice_guard_explains_total",
                "Statements that `max_rows_expected` of a guard wanted the primary's estimate of: \
                 `cached`, `asked`, `nothing_read`, or why there is none: `not_explained`, `timed_out`, \
                 `busy`, `denied`, `failed`.",
                &["cluster", "result"],
            )?,
            runtime_rules: registered.gauges(
                "sluice_runtime_rules",
                "Rules made at runtime that stand now.",
                &["cluster"],
            )?,
            rules_synced: registered.gauges(
                "sluice_fleet_rules_synced",
                "Whether the table of runtime rules on the primary was read at the last attempt.",
                &["cluster"],
            )?,
            claims_refused: registered.counters(
                "sluice_identity_claims_refused_total",
                "Identity claims that identity.claims does not allow this user; they were ignored.",
                &["user"],
            )?,
            client_connections: registered.gauges(
                "sluice_client_connections",
                "Client connections open now.",
                &["cluster"],
            )?,
            backend_errors: registered.counters(
                "sluice_backend_errors_total",
                "Connections that the backend failed.",
                &["cluster", "kind"],
            )?,
            connections_refused: registered.counters(
                "sluice_connections_refused_total",
                "Clients that Sluice itself turned away: before their login, or `stalled` within a \
                 statement that held others up.",
                &["cluster", "reason"],
            )?,
            kills: registered.counters(
                "sluice_client_gone_kills_total",
                "Statements that were to be killed because their client had left: `killed`, or \
                 `failed` where the server was not reached or refused.",
                &["cluster", "result"],
            )?,
            faults: registered.counters(
                "sluice_internal_faults_total",
                "Connections ended because Sluice contradicted itself. Each is a defect: please \
                 report it with its line of the log.",
                &["cluster"],
            )?,
            reload_successful: registered.with(IntGauge::new(
                "sluice_config_last_reload_successful",
                "1 if the configuration file was good when it was last read; at 0 the one before \
                 is still in force.",
            )?)?,
            reload_timestamp: registered.with(Gauge::new(
                "sluice_config_last_reload_timestamp_seconds",
                "When the configuration in force was read, in Unix time.",
            )?)?,
            build_info: registered.gauges("sluice_build_info", "Always 1.", &["version"])?,
            relay_threads: registered.with(IntGauge::new(
                "sluice_relay_threads",
                "Relaying threads that the load is spread over.",
            )?)?,
            relay_busy: registered.with(GaugeVec::new(
                Opts::new(
                    "sluice_relay_busy_ratio",
                    "CPU time of a relaying thread, of a core, over the last tenth of a second.",
                ),
                &["thread"],
            )?)?,
            relay_moves: registered.with(IntCounter::new(
                "sluice_relay_moves_total",
                "Connections that went on on another relaying thread.",
            )?)?,
            log_lines_dropped: registered.with(IntCounter::new(
                "sluice_log_lines_dropped_total",
                "Lines of the log that could not be written, or whose reader did not read.",
            )?)?,
        })
    }
}

/// Makes families and enters them in a registry.
struct Registered<'r>(&'r Registry);

impl Registered<'_> {
    fn counters(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> prometheus::Result<IntCounterVec> {
        self.with(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
        self.with(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn histograms(&self, opts: HistogramOpts, labels: &[&str]) -> prometheus::Result<HistogramVec> {
        self.with(HistogramVec::new(opts, labels)?)
    }

    fn with<C: Collector + Clone + 'static>(&self, family: C) -> prometheus::Result<C> {
        self.0.register(Box::new(family.clone()))?;
        Ok(family)
    }
}
