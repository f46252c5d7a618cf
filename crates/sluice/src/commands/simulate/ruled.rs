//! A scenario out of the rules of a configuration file and a load.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::simulate::{
    Amount, App, Effect, LagLimits, MetRule, Pace, Replica, RowCosts, Scenario, Window,
};
use admission::{MonoTime, Pacing};
use policy::{BudgetMet, ClusterPolicy, Fault, LagSource, Signal, SignalKind, UnixTime};
use proxy::reload;

use super::met::Met;
use super::{Faults, pace, tried};
use crate::cli::{AppLoad, Load, Simulate};
use crate::commands::explain::cluster_of;

/// A scenario, and where it comes from.
pub(super) struct Ruled {
    pub(super) scenario: Scenario,
    /// The configuration file.
    pub(super) config: PathBuf,
    pub(super) cluster: String,
    /// When rules were looked at.
    pub(super) at: UnixTime,
    /// App by app.
    pub(super) met: Vec<Met>,
    /// What the model takes otherwise than it is, a sentence each.
    pub(super) not_modelled: Vec<String>,
}

/// No replica applies at the same rate all the time.
const JITTER: f64 = 0.3;

/// Longest time that is counted in no figure: until the pace has learned.
const WARMUP_MAX: Duration = Duration::from_secs(10);

/// Most transactions of a run, if nothing held them: each that a replica has not applied is
/// remembered, in about forty bytes.
const TRANSACTIONS_MAX: f64 = 2e6;

/// An answer of a replica arrives so much later at most.
const PROBE_DELAY: Duration = Duration::from_millis(100);

/// The least a statement takes on the primary, where an app does not say.
const LATENCY: Duration = Duration::from_millis(5);

impl Ruled {
    /// # Errors
    /// The faults of the file, as `sluice check` reports them, or what is wrong with the load.
    pub(super) fn load(config: &Path, command: &Simulate) -> Result<Self, Faults> {
        let loaded = reload::load(config).map_err(|error| error.lines(config))?;
        let load = &command.load;
        let config_in_force = match &load.rule {
            Some(rule) => Arc::new(tried::load(config, rule)?),
            None => loaded.config,
        };
        let cluster =
            cluster_of(&config_in_force, load.cluster.as_deref()).map_err(|fault| vec![fault])?;
        check(load, cluster.replicas.len().max(1))?;
        let at = load.at.unwrap_or_else(now);
        let met = load.app.iter().map(|app| Met::of(cluster, app, at));
        let met = met.collect::<Result<Vec<Met>, String>>().map_err(|fault| vec![fault])?;
        let scenario = scenario(cluster, command, &met);
        let not_modelled = not_modelled(cluster, &scenario, &met, at);
        let name = cluster.name.to_string();
        let mut ruled =
            Self { scenario, config: config.to_owned(), cluster: name, at, met, not_modelled };
        // What is written must be read again: one more look at all values.
        Scenario::parse(&ruled.scenario.to_yaml()).map_err(|error| {
            // Its lines are of a text that nobody has seen.
            let named = |fault: &Fault| format!("the load: {}: {}", fault.path, fault.message);
            error.faults.iter().map(named).collect::<Faults>()
        })?;
        ruled.scenario.seed = command.seed.unwrap_or_default();
        Ok(ruled)
    }

    /// The same load, and nobody is held.
    pub(super) fn without_rules(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        for app in &mut scenario.apps {
            app.rule = MetRule { name: None, effect: Effect::Passes };
        }
        scenario
    }

    /// What the written scenario begins with.
    pub(super) fn head(&self) -> String {
        let Self { config, cluster, at, not_modelled, .. } = self;
        let mut lines =
            vec![format!("The rules of cluster {cluster} of {} at {at}.", config.display())];
        lines.extend(self.met.iter().map(|met| {
            let rule = met.rule.name.as_deref().unwrap_or("no rule");
            format!("{} meets {rule}: {}", met.name, met.does)
        }));
        lines.extend(not_modelled.iter().map(|line| format!("Not modelled: {line}")));
        // A name may have what ends a comment.
        let line = |line: &String| format!("# {}\n", line.replace(char::is_control, "?"));
        lines.iter().map(line).collect()
    }
}

fn now() -> UnixTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixTime(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn check(load: &Load, replicas: usize) -> Result<(), Faults> {
    let mut faults = Faults::new();
    let rates = load.replica_rows_per_second.len();
    if rates > replicas {
        faults.push(format!(
            "--replica-rows-per-second: {rates} numbers, and the cluster has {replicas} of them"
        ));
    }
    let mut transactions = 0.0;
    for (index, app) in load.app.iter().enumerate() {
        if load.app.iter().take(index).any(|other| other.name == app.name) {
            faults.push(format!("--app {}: it is there already", app.name));
        }
        let round = (app.server.saturating_mul(app.statements)).saturating_add(app.think);
        let rounds = load.duration.as_secs_f64() / round.as_secs_f64().max(ROUND_MIN_S);
        transactions += f64::from(app.sessions) * rounds;
    }
    if transactions > TRANSACTIONS_MAX {
        faults.push(format!(
            "the load is up to {transactions:.0} transactions, and {TRANSACTIONS_MAX} at most are \
             simulated: shorten --duration, or have fewer sessions"
        ));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// No statement is shorter in scenarios.
const ROUND_MIN_S: f64 = 1e-4;

fn scenario(cluster: &ClusterPolicy, command: &Simulate, met: &[Met]) -> Scenario {
    let load = &command.load;
    let controller = cluster.controller_config();
    let file_pacing = match controller.pacing {
        Pacing::Adaptive(_) => Pace::Adaptive,
        Pacing::Binary(_) => Pace::Binary,
    };
    let (threshold, lag) = lag(cluster);
    let probe = cluster.probe.as_ref();
    Scenario {
        name: format!("{} under load", cluster.name),
        duration: load.duration,
        warmup: micros(load.duration.mul_f64(0.1)).min(WARMUP_MAX),
        seed: 0,
        pacing: pace(command.pacing).unwrap_or(file_pacing),
        row_costs: RowCosts::Told,
        threshold,
        lag,
        check_interval: cluster.check_interval,
        release_per_s: cluster.release_per_s,
        queue_len_max: cluster.queue_len_max,
        heartbeat_interval: probe.map_or(HEARTBEAT_INTERVAL, |probe| probe.heartbeat_interval),
        probe_interval: probe.map_or(PROBE_INTERVAL, |probe| probe.probe_interval),
        probe_delay: PROBE_DELAY,
        primary: Amount::constant(load.primary_rows_per_second),
        latency: LATENCY,
        service: None,
        signals: Vec::new(),
        replicas: replicas(cluster, &load.replica_rows_per_second),
        background: Amount::constant(load.background_rows_per_second),
        proxies: 1,
        restarts: Vec::new(),
        handover: true,
        apps: load.app.iter().zip(met).map(|(load, met)| app(load, met)).collect(),
        expect: Vec::new(),
    }
}

/// Where the file has no probe, nobody looks at the lag; the model does all the same.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

fn app(load: &AppLoad, met: &Met) -> App {
    App {
        name: load.name.clone(),
        sessions: load.sessions,
        proxies: Vec::new(),
        identities: 1,
        rule: met.rule.clone(),
        latency: Some(load.server),
        digests: 1,
        rows: met.rows,
        apply_cost: 1.0,
        table: None,
        phantom_rows: 0,
        transactions: load.statements,
        think_time: load.think,
        comes_back_after: None,
        active: vec![Window { from: MonoTime::ZERO, to: MonoTime::MAX }],
    }
}

/// As many as the file has, and one to look at if it has none.
fn replicas(cluster: &ClusterPolicy, per_s: &[f64]) -> Vec<Replica> {
    let last = per_s.last().copied().unwrap_or_default();
    let rates = per_s.iter().copied().chain(std::iter::repeat(last));
    let of = |index: usize| cluster.replica_terms.of(cluster.replicas.get(index)?)?.threshold;
    let replica = |(index, per_s)| Replica {
        threshold: of(index),
        apply: Amount::constant(per_s),
        jitter: JITTER,
        away: Vec::new(),
        transit: Vec::new(),
        appliers: 1,
        workers: 1,
        preserve_commit_order: true,
        commit_cost: 0.0,
    };
    rates.take(cluster.replicas.len().max(1)).enumerate().map(replica).collect()
}

/// The threshold, and what else is said of the lag.
fn lag(cluster: &ClusterPolicy) -> (Duration, LagLimits) {
    let of = |signal: &Signal| match signal.kind {
        SignalKind::Lag { ignore_slowest, min_replicas } => {
            Some((signal.clone(), ignore_slowest, min_replicas))
        }
        SignalKind::ThreadsRunning
        | SignalKind::HistoryListLength
        | SignalKind::Query(_)
        | SignalKind::Status(_)
        | SignalKind::Latency(_) => None,
    };
    let Some((signal, ignore_slowest, min_replicas)) = cluster.signals.iter().find_map(of) else {
        return (THRESHOLD, LagLimits::at_threshold(THRESHOLD));
    };
    let seconds = |value| micros(Duration::try_from_secs_f64(value).unwrap_or(THRESHOLD));
    let limits = LagLimits {
        open_at: seconds(signal.open_at),
        close_at: seconds(signal.close_at),
        stale_after: signal.stale_after,
        on_no_data: signal.on_no_data,
        ignore_slowest,
        min_replicas,
    };
    (seconds(signal.threshold), limits)
}

/// Every cluster has the signal; this is for one that had not.
const THRESHOLD: Duration = Duration::from_secs(5);

/// As exact as scenarios are.
fn micros(span: Duration) -> Duration {
    let micros = (span.as_secs_f64() * 1e6).round();
    Duration::try_from_secs_f64(micros / 1e6).unwrap_or(span)
}

fn not_modelled(
    cluster: &ClusterPolicy,
    scenario: &Scenario,
    met: &[Met],
    at: UnixTime,
) -> Vec<String> {
    let mut lines = Vec::new();
    if cluster.replicas.is_empty() {
        lines.push(
            "the file names no replicas, so no lag holds anybody; the lag here is that of one \
             that is not looked at"
                .to_owned(),
        );
    }
    let source = cluster.probe.as_ref().map(|probe| &probe.source);
    match source {
        Some(LagSource::ReplicaStatus) => lines.push(format!("SHOW REPLICA STATUS {FINER}")),
        Some(LagSource::Query(_)) => lines.push(format!("the query for the lag {FINER}")),
        Some(LagSource::Heartbeat) | None => {}
    }
    if cluster.learns_row_costs() {
        lines.push("probe.row_costs: here every row costs the replicas the same".to_owned());
    }
    let sessions = scenario.apps.iter().fold(0_u32, |sum, app| sum.saturating_add(app.sessions));
    let most = cluster.network.connections_max;
    if sessions > most {
        lines.push(format!(
            "max_connections is {most}: the others of {sessions} sessions would be told errno 1040"
        ));
    }
    let end = at.0.saturating_add(i64::try_from(scenario.duration.as_secs()).unwrap_or(i64::MAX));
    for (index, app) in met.iter().enumerate() {
        lines.extend(of_app(app, UnixTime(end)));
        let same = |other: &&Met| app.turn.is_some() && other.turn == app.turn;
        if let Some(other) = met.iter().take(index).find(same) {
            lines.push(format!(
                "{} and {} are one app to Sluice, whose identities share its turns; here each has \
                 its own",
                other.name, app.name
            ));
        }
    }
    let without_text: Vec<&str> =
        met.iter().filter(|met| met.needs_text).map(|met| met.name.as_str()).collect();
    if !without_text.is_empty() {
        lines.push(format!(
            "rules look at tables or digests: without sql= nothing that {} sends is of a table of \
             yours",
            without_text.join(", ")
        ));
    }
    lines
}

/// Of a source of lag.
const FINER: &str = "is simulated as own heartbeats, which are finer";

fn of_app(met: &Met, end: UnixTime) -> Vec<String> {
    let Met { name, explanation, other_signals, .. } = met;
    let rule = met.rule.name.as_deref().unwrap_or("no rule");
    let mut lines = Vec::new();
    if !other_signals.is_empty() {
        let signals = other_signals.join(" and ");
        lines.push(format!("{signals}: taken as healthy for {name} (rule {rule})"));
    }
    if met.scheduled {
        lines.push(format!("the schedule of {rule} is taken as in force all the time"));
    }
    if let Some(expiry) = met.expires_at.filter(|expiry| *expiry <= end) {
        lines.push(format!("{rule} expires within the simulated time, at {expiry}; it is kept"));
    }
    for BudgetMet { budget, allows, else_it } in &explanation.budgets {
        lines.push(format!(
            "budget {budget} ({allows}; without room a statement {else_it}): {name} is simulated \
             without it"
        ));
    }
    if met.runaway {
        lines.push(format!("runaway of {rule}: nothing of {name} is taken to run away"));
    }
    for skipped in &explanation.not_in_force {
        lines.push(format!("{} would decide for {name}, but is {}", skipped.rule, skipped.why));
    }
    if explanation.refused_claims > 0 {
        let app = &explanation.app;
        lines.push(format!("identity.claims does not let {name} be called so: it is {app}"));
    }
    if explanation.class == sql::Class::Ddl.as_str() {
        lines.push(format!("what replicas need to apply the DDL of {name}"));
    }
    lines
}
