//! One of `clusters`.

use std::sync::Arc;

use admission::{GateKey, Mode};

use super::budget::{self, BudgetDraft};
use super::bypass;
use super::checks::{MODES, duration, keyword, name, query, secret, server, whole};
use super::compression;
use super::guard::{GuardDraft, check_probe, guards_of};
use super::limits;
use super::network;
use super::replicas;
use super::rule::Draft;
use super::signals::Signals;
use super::tls;
use crate::budget::Budgets;
use crate::cluster::{
    ClusterPolicy, LagSource, PacingKind, Probe, RowCosts, SignalKind, Starvation, TableName,
};
use crate::fault::{Faults, Place};
use crate::history::HistoryLimits;
use crate::identity::IdentityPolicy;
use crate::insights::Insights;
use crate::raw::{self, Maybe, OneOrMany, Spanned};
use crate::rule::Rule;
use crate::rules::Rules;
use crate::runaway::Quarantine;
use crate::tls::Redirect;

/// The table of the heartbeat unless the file says otherwise.
pub(crate) const HEARTBEAT_TABLE: (&str, &str) = ("sluice", "heartbeat");

/// What the file says once for all of its clusters.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) identity: Arc<IdentityPolicy>,
    pub(super) starvation: Option<Starvation>,
    pub(super) guards: Vec<GuardDraft>,
    pub(super) budgets: Vec<BudgetDraft>,
    pub(super) insights: Insights,
    pub(super) history: HistoryLimits,
}

pub(super) fn compile(
    cluster_name: &str,
    cluster: Spanned<raw::Cluster>,
    drafts: &[Draft],
    shared: &Shared,
    faults: &mut Faults,
) -> Option<ClusterPolicy> {
    let Spanned { value: raw, place } = cluster;
    name(cluster_name, &place, faults);
    let listen = raw.listen.as_ref().and_then(|listen| network::listen(listen, faults));
    let primary = raw.primary.as_ref().map(|primary| server(primary, faults));
    let (replicas, replica_terms) = replicas::compile(raw.replicas, faults);
    let mode = keyword(raw.mode, Mode::Enforce, &MODES, faults);
    let pacing = keyword(raw.pacing, PacingKind::Adaptive, &PACINGS, faults);
    let probe = raw.probe.map(|probe| compile_probe(probe, faults));
    let bypass = bypass::compile(raw.bypass, probe.is_some(), faults);
    let mut signals = Signals::compile(raw.signals, faults);
    check_probing(&signals, probe.as_ref(), &replicas, &place, faults);
    let gate = default_gate(raw.default_gate, &place);
    let default_gate = signals.gate(&gate.value, cluster_name, &gate.place, faults);
    let protected_gate = signals.without_latencies(default_gate, &place, faults);
    let check_interval = duration(raw.check_interval, limits::CHECK_INTERVAL, faults);
    let release_per_s = whole(raw.release_per_s, limits::RELEASE_PER_S, faults);
    let queue_len_max = whole(raw.max_queue_total, limits::MAX_QUEUE_TOTAL, faults);
    let client_tls = tls::client(raw.client_tls, faults);
    let backend_tls = tls::backend(raw.backend_tls, faults);
    let redirect = keyword(raw.redirect, Redirect::Strip, &tls::REDIRECTS, faults);
    let client_compression = compression::client(raw.client_compression, faults);
    let backend_compression = compression::backend(raw.backend_compression, faults);
    let compression_level = compression::level(raw.compression_level, faults);
    let keys = network::Keys {
        listen_mode: raw.listen_mode,
        max_connections: raw.max_connections,
        login_timeout: raw.login_timeout,
        keepalive: raw.keepalive,
        proxy_protocol: raw.proxy_protocol,
    };
    let network = network::compile(keys, listen.as_ref(), faults);
    let of = (cluster_name, default_gate, mode);
    let rules = rules_of(drafts, of, probe.as_ref(), &mut signals, faults)?;
    check_probe(&shared.guards, cluster_name, probe.as_ref(), faults);
    let budgets = budget::of_cluster(&shared.budgets, cluster_name, mode);
    let budgets = Budgets::new(budgets).with_lane_for(&rules);
    Some(ClusterPolicy {
        name: cluster_name.into(),
        listen: listen?,
        primary: primary?,
        replicas,
        replica_terms,
        probe,
        bypass,
        default_gate,
        protected_gate,
        mode,
        check_interval,
        pacing,
        release_per_s,
        queue_len_max,
        connect_timeout: duration(raw.connect_timeout, limits::CONNECT_TIMEOUT, faults),
        network,
        client_tls,
        backend_tls,
        redirect,
        client_compression,
        backend_compression,
        compression_level,
        identity: shared.identity.clone(),
        starvation: shared.starvation,
        insights: shared.insights.clone(),
        history: shared.history,
        gates: signals.gates,
        signals: signals.signals,
        rules: Rules::new(rules),
        quarantine: Quarantine::default(),
        guards: guards_of(&shared.guards, cluster_name, mode),
        budgets,
    })
}

/// The rules that are for this cluster.
fn rules_of(
    drafts: &[Draft],
    (cluster, default_gate, mode): (&str, GateKey, Mode),
    probe: Option<&Probe>,
    signals: &mut Signals,
    faults: &mut Faults,
) -> Option<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    for draft in drafts.iter().filter(|draft| draft.is_for(cluster)) {
        draft.check_kill(cluster, probe, faults);
        let gate = gate_of(draft, default_gate, signals, cluster, faults);
        let index = u32::try_from(rules.len()).ok()?;
        rules.push(draft.rule(index, gate, signals.is_always_open(gate), mode));
    }
    Some(rules)
}

/// The gate that a rule names, or the cluster's.
fn gate_of(
    draft: &Draft,
    default_gate: GateKey,
    signals: &mut Signals,
    cluster: &str,
    faults: &mut Faults,
) -> GateKey {
    let named = draft.gate.as_ref();
    named.map_or(default_gate, |gate| signals.gate(&gate.value, cluster, &gate.place, faults))
}

/// The gate of rules that name none: the lag, unless the file says otherwise.
fn default_gate(raw: Maybe<OneOrMany<String>>, place: &Place) -> Spanned<OneOrMany<String>> {
    raw.unwrap_or_else(|| Spanned {
        value: OneOrMany(vec![Spanned { value: "lag".to_owned(), place: place.clone() }]),
        place: place.clone(),
    })
}

const PACINGS: [(&str, PacingKind); 2] =
    [("adaptive", PacingKind::Adaptive), ("binary", PacingKind::Binary)];

const ROW_COSTS: [(&str, RowCosts); 2] = [("told", RowCosts::Told), ("applied", RowCosts::Applied)];

fn compile_probe(probe: Spanned<raw::Probe>, faults: &mut Faults) -> Probe {
    let Spanned { value: raw, place } = probe;
    if let Some(user) = raw.user.as_ref().filter(|user| user.value.is_empty()) {
        faults.add(&user.place, "must not be empty");
    }
    let source = match raw.source {
        None => LagSource::Heartbeat,
        Some(Spanned { value: raw::LagSource::Query(text), .. }) => {
            LagSource::Query(text.map(|text| query(text, faults)).unwrap_or_default())
        }
        Some(Spanned { value: raw::LagSource::Keyword(word), place }) => match word.as_str() {
            "heartbeat" => LagSource::Heartbeat,
            "replica_status" => LagSource::ReplicaStatus,
            other => {
                let message = format!(
                    "`{other}` is not one of `heartbeat`, `replica_status`, {{query: \"…\"}}"
                );
                faults.add(&place, message);
                LagSource::Heartbeat
            }
        },
    };
    Probe {
        user: raw.user.map(|user| user.value).unwrap_or_default(),
        password: secret(raw.password_env, raw.password_file, &place, faults),
        heartbeat_interval: duration(raw.heartbeat_interval, limits::HEARTBEAT_INTERVAL, faults),
        probe_interval: duration(raw.probe_interval, limits::PROBE_INTERVAL, faults),
        heartbeat_table: table_name(raw.heartbeat_table, faults),
        source,
        row_costs: keyword(raw.row_costs, RowCosts::Applied, &ROW_COSTS, faults),
    }
}

fn table_name(name: Maybe<String>, faults: &mut Faults) -> TableName {
    let (schema, table) = HEARTBEAT_TABLE;
    let default = TableName { schema: schema.to_owned(), table: table.to_owned() };
    let Some(Spanned { value, place }) = name else { return default };
    let is_name = |name: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        !name.is_empty() && name.len() <= IDENTIFIER_LEN_MAX && name.chars().all(allowed)
    };
    match value.split_once('.') {
        Some((_, RULES_TABLE)) => {
            faults.add(&place, "`rules` is the table of the rules made at runtime");
            default
        }
        Some((schema, table)) if is_name(schema) && is_name(table) => {
            TableName { schema: schema.to_owned(), table: table.to_owned() }
        }
        Some(_) | None => {
            faults.add(&place, "must be schema.table of letters, digits, _ and $");
            default
        }
    }
}

/// What stands beside the heartbeat's, in the same schema.
const RULES_TABLE: &str = "rules";

/// Longest name of a schema or a table (manual: Identifier Length Limits).
const IDENTIFIER_LEN_MAX: usize = 64;

/// What is to be measured needs somebody who measures, more often than values become stale.
fn check_probing(
    signals: &Signals,
    probe: Option<&Probe>,
    replicas: &[Arc<str>],
    place: &Place,
    faults: &mut Faults,
) {
    let measures = |signal: &&crate::cluster::Signal| match signal.kind {
        SignalKind::Lag { .. } => !replicas.is_empty(),
        // Sluice sees it itself.
        SignalKind::Latency(_) => false,
        SignalKind::ThreadsRunning
        | SignalKind::HistoryListLength
        | SignalKind::Query(_)
        | SignalKind::Status(_) => true,
    };
    let Some(probe) = probe else {
        if signals.signals.iter().any(|signal| measures(&signal)) {
            faults.add(place, "`probe` is missing: without it no signal can be measured");
        }
        return;
    };
    for signal in signals.signals.iter().filter(measures) {
        let twice = probe.probe_interval.saturating_mul(2);
        if signal.stale_after < twice {
            let place = place.key("signals", place.line).key(&signal.name, place.line);
            let message = format!(
                "`stale_after` must be at least twice `probe_interval`, that is {}",
                limits::show(twice)
            );
            faults.add(&place.key("stale_after", place.line), message);
        }
    }
}
