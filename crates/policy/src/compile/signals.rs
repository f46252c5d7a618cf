//! `signals` of a cluster, and the gates made of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{GateConfig, GateKey, OnNoData, SignalKey};

use super::checks::{duration, list, name, query, whole};
use super::{latency, limits};
use crate::cluster::{Scope, Signal, SignalKind};
use crate::fault::{Faults, Place};
use crate::fnv;
use crate::raw::{self, Level, Maybe, Named, OneOrMany, Spanned};

/// The signals of a cluster and the gates that have been asked for so far.
#[derive(Debug)]
pub(super) struct Signals {
    pub(super) signals: Vec<Signal>,
    /// The base name of each: without `self/` or `shard/`.
    bases: Vec<String>,
    pub(super) gates: Vec<GateConfig>,
    /// Which names stand behind a gate's key, to find collisions.
    gate_names: HashMap<GateKey, String>,
}

impl Signals {
    pub(super) fn compile(signals: Maybe<Named<raw::Signal>>, faults: &mut Faults) -> Self {
        let place = signals.as_ref().map(|signals| signals.place.clone());
        let mut compiled =
            Self { signals: vec![], bases: vec![], gates: vec![], gate_names: HashMap::new() };
        for (name, signal) in signals.map(|signals| signals.value.0).unwrap_or_default() {
            compiled.add(&name, signal, faults);
        }
        let latencies = |signal: &&Signal| matches!(signal.kind, SignalKind::Latency(_));
        if compiled.signals.iter().filter(latencies).count() > limits::LATENCIES_MAX
            && let Some(place) = place
        {
            let message = format!("more than {} latencies", limits::LATENCIES_MAX);
            faults.add(&place, message);
        }
        if !compiled.bases.iter().any(|base| base == "lag") {
            compiled.signals.push(default_lag());
            compiled.bases.push("lag".to_owned());
        }
        compiled
    }

    fn add(&mut self, full_name: &str, signal: Spanned<raw::Signal>, faults: &mut Faults) {
        let Spanned { value, place } = signal;
        name(full_name, &place, faults);
        let (prefix, base) = split_name(full_name);
        if base == "none" || base.is_empty() || base.contains('/') {
            faults.add(&place, "a signal cannot have this name");
        }
        let scope = compile_scope(prefix, base, &value, &place, faults);
        let same = self.signals.iter().zip(&self.bases);
        let mut same = same.filter(|(signal, known)| signal.scope == scope && *known == base);
        if let Some((signal, _)) = same.next() {
            faults.add(&place, format!("the signal `{}` measures the same", signal.name));
        }
        let compiled = compile_signal(full_name, base, scope, Spanned { value, place }, faults);
        self.signals.push(compiled.0);
        self.bases.push(base.to_owned());
        let (Some(last), Some((latest, others))) = (Some(compiled.1), self.signals.split_last())
        else {
            return;
        };
        if let Some(other) = others.iter().find(|other| other.key == latest.key) {
            faults.add(&last, format!("rename it: its key collides with that of `{}`", other.name));
        }
    }

    /// The signal that a gate means by `full_name`: the one of that name, else the one it
    /// describes.
    fn find(&self, full_name: &str) -> Option<usize> {
        if let Some(exact) = self.signals.iter().position(|signal| &*signal.name == full_name) {
            return Some(exact);
        }
        let (prefix, base) = split_name(full_name);
        let scope = prefix.unwrap_or_else(|| default_scope(base));
        let mut described = self.signals.iter().zip(&self.bases);
        described.position(|(signal, known)| signal.scope == scope && known == base)
    }

    /// The gate of these signals. `none`, and nothing else, is the gate without any.
    pub(super) fn gate(
        &mut self,
        names: &OneOrMany<String>,
        cluster: &str,
        place: &Place,
        faults: &mut Faults,
    ) -> GateKey {
        let is_none = matches!(names.0.as_slice(), [only] if only.value == "none");
        if names.0.is_empty() {
            faults.add(place, "an empty gate is always open; write `none` if that is meant");
        }
        let mut members = Vec::new();
        for Spanned { value, place } in names.0.iter().filter(|_| !is_none) {
            match self.find(value) {
                Some(index) if members.contains(&index) => {
                    faults.add(place, format!("the signal `{value}` is there twice"));
                }
                Some(index) => members.push(index),
                None => {
                    let known = list(self.signals.iter().map(|signal| &signal.name));
                    let message =
                        format!("cluster `{cluster}` has no signal `{value}`; it has {known}");
                    faults.add(place, message);
                }
            }
        }
        members.sort_unstable();
        self.gate_of(&members, place, faults)
    }

    fn gate_of(&mut self, members: &[usize], place: &Place, faults: &mut Faults) -> GateKey {
        let members = members.iter().filter_map(|index| self.signals.get(*index));
        let (keys, mut names): (Vec<SignalKey>, Vec<&str>) =
            members.map(|signal| (signal.key, &*signal.name)).unzip();
        names.sort_unstable();
        let name = names.join(" ");
        let key = GateKey(fnv::fold(fnv::hash(&[name.as_bytes()])));
        match self.gate_names.get(&key) {
            Some(known) if *known == name => {}
            Some(known) => {
                faults.add(place, format!("rename a signal: this gate collides with `{known}`"));
            }
            None => {
                self.gates.push(GateConfig { key, signals: keys });
                self.gate_names.insert(key, name);
            }
        }
        key
    }

    /// The same gate without its latencies.
    pub(super) fn without_latencies(
        &mut self,
        key: GateKey,
        place: &Place,
        faults: &mut Faults,
    ) -> GateKey {
        let Some(gate) = self.gates.iter().find(|gate| gate.key == key) else { return key };
        let stays = |signal: &Signal| {
            gate.signals.contains(&signal.key) && !matches!(signal.kind, SignalKind::Latency(_))
        };
        let all = self.signals.iter().enumerate();
        let members: Vec<usize> =
            all.filter(|(_, signal)| stays(signal)).map(|(index, _)| index).collect();
        self.gate_of(&members, place, faults)
    }

    /// Whether the gate depends on nothing.
    pub(super) fn is_always_open(&self, key: GateKey) -> bool {
        self.gates.iter().any(|gate| gate.key == key && gate.signals.is_empty())
    }
}

/// `self/threads_running` in its parts.
fn split_name(full_name: &str) -> (Option<Scope>, &str) {
    for scope in [Scope::Primary, Scope::Replicas] {
        let rest = full_name.strip_prefix(scope.as_str()).and_then(|rest| rest.strip_prefix('/'));
        if let Some(base) = rest {
            return (Some(scope), base);
        }
    }
    (None, full_name)
}

fn default_scope(base: &str) -> Scope {
    if base == "lag" { Scope::Replicas } else { Scope::Primary }
}

fn compile_scope(
    prefix: Option<Scope>,
    base: &str,
    signal: &raw::Signal,
    place: &Place,
    faults: &mut Faults,
) -> Scope {
    let on = signal.on.as_ref().and_then(|on| match on.value.as_str() {
        "primary" => Some(Scope::Primary),
        "replicas" => Some(Scope::Replicas),
        other => {
            faults.add(&on.place, format!("`{other}` is not one of `primary`, `replicas`"));
            None
        }
    });
    if let (Some(prefix), Some(on)) = (prefix, on)
        && prefix != on
    {
        faults.add(place, format!("`{}/` and `on` contradict each other", prefix.as_str()));
    }
    let scope = on.or(prefix).unwrap_or_else(|| default_scope(base));
    if base == "lag" && scope == Scope::Primary {
        faults.add(place, "lag is measured on replicas");
        return Scope::Replicas;
    }
    scope
}

/// The lag of a cluster that says nothing about it.
fn default_lag() -> Signal {
    let threshold = limits::LAG_THRESHOLD.default.as_secs_f64();
    let kind = SignalKind::Lag {
        ignore_slowest: limits::IGNORE_SLOWEST.default,
        min_replicas: limits::MIN_REPLICAS.default,
    };
    Signal {
        key: signal_key("lag", &kind, Scope::Replicas),
        name: "lag".into(),
        kind,
        scope: Scope::Replicas,
        threshold,
        open_at: threshold,
        close_at: threshold,
        stale_after: limits::STALE_AFTER.default,
        on_no_data: OnNoData::Closed,
    }
}

/// The key of a metric. Another query is another metric: values of the old one say nothing about
/// it.
fn signal_key(name: &str, kind: &SignalKind, scope: Scope) -> SignalKey {
    let told;
    let (what, text) = match kind {
        SignalKind::Lag { .. } => ("lag", ""),
        SignalKind::ThreadsRunning => ("threads_running", ""),
        SignalKind::HistoryListLength => ("history_list_length", ""),
        SignalKind::Query(query) => ("query", query.as_str()),
        SignalKind::Status(variable) => ("status", variable.as_str()),
        // Another app is another metric; how far is looked back changes nothing of that.
        SignalKind::Latency(latency) => {
            told = format!("{:?} {:?} {:?}", latency.app, latency.rule, latency.statements);
            ("latency", told.as_str())
        }
    };
    let parts = [name, scope.as_str(), what, text].map(str::as_bytes);
    SignalKey(fnv::fold(fnv::hash(&parts)))
}

fn compile_signal(
    full_name: &str,
    base: &str,
    scope: Scope,
    signal: Spanned<raw::Signal>,
    faults: &mut Faults,
) -> (Signal, Place) {
    let Spanned { value: mut raw, place } = signal;
    let kind = compile_kind(base, &mut raw, &place, faults);
    let is_latency = matches!(kind, SignalKind::Latency(_));
    if is_latency && scope == Scope::Replicas {
        faults.add(&place, "a latency is seen at the primary, where statements go");
    }
    let default =
        (kind.is_time() && !is_latency).then(|| limits::LAG_THRESHOLD.default.as_secs_f64());
    if raw.threshold.is_none() && default.is_none() {
        faults.add(&place, "`threshold` is missing");
    }
    let threshold = level(&raw.threshold, &kind, faults).or(default).unwrap_or_default();
    let open_at = level(&raw.open_at, &kind, faults).unwrap_or(threshold);
    let close_at = level(&raw.close_at, &kind, faults).unwrap_or(threshold);
    if open_at > close_at {
        let at = raw.open_at.or(raw.close_at).map_or_else(|| place.clone(), |level| level.place);
        faults.add(&at, "`open_at` must not be above `close_at` (both are `threshold` by default)");
    }
    let signal = Signal {
        key: signal_key(full_name, &kind, scope),
        name: Arc::from(full_name),
        kind,
        scope,
        threshold,
        open_at,
        close_at,
        stale_after: duration(raw.stale_after, limits::STALE_AFTER, faults),
        // An app that is idle is no reason to hold anybody back.
        on_no_data: match raw.on_no_data {
            None if is_latency => OnNoData::Open,
            policy => on_no_data(policy, faults),
        },
    };
    (signal, place)
}

fn compile_kind(
    base: &str,
    raw: &mut raw::Signal,
    place: &Place,
    faults: &mut Faults,
) -> SignalKind {
    let built_in = matches!(base, "lag" | "threads_running" | "history_list_length");
    let source = (raw.query.take(), raw.status.take());
    if let Some(written) = raw.latency.take() {
        if built_in || source != (None, None) {
            faults.add(&written.place, "stands alone, in a signal with a name of its own");
        }
        return SignalKind::Latency(Arc::new(latency::compile(written, faults)));
    }
    if built_in && source != (None, None) {
        faults.add(place, "a built-in signal has no `query` and no `status`; give it another name");
    }
    let for_lag = [("ignore_slowest", &raw.ignore_slowest), ("min_replicas", &raw.min_replicas)];
    for (key, value) in for_lag {
        if let Some(value) = value.as_ref().filter(|_| base != "lag") {
            faults.add(&value.place, format!("`{key}` is for `lag` only"));
        }
    }
    match (base, source) {
        ("lag", _) => SignalKind::Lag {
            ignore_slowest: whole(raw.ignore_slowest.take(), limits::IGNORE_SLOWEST, faults),
            min_replicas: whole(raw.min_replicas.take(), limits::MIN_REPLICAS, faults),
        },
        ("threads_running", _) => SignalKind::ThreadsRunning,
        ("history_list_length", _) => SignalKind::HistoryListLength,
        (_, (Some(text), None)) => SignalKind::Query(query(text, faults)),
        (_, (None, Some(status))) => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if status.value.is_empty() || !status.value.chars().all(allowed) {
                faults.add(&status.place, "must be the name of a status variable");
            }
            SignalKind::Status(status.value)
        }
        (_, (Some(_), Some(status))) => {
            let message = "it has two sources, `query` and `status`: leave one out";
            faults.add(&status.place, message);
            SignalKind::Status(status.value)
        }
        (_, (None, None)) => {
            faults.add(
                place,
                "not a built-in signal (`lag`, `threads_running`, `history_list_length`), so it \
                 needs `latency`, `query` or `status`",
            );
            SignalKind::ThreadsRunning
        }
    }
}

/// A limit in the signal's unit.
fn level(level: &Maybe<Level>, kind: &SignalKind, faults: &mut Faults) -> Option<f64> {
    let Spanned { value, place } = level.as_ref()?;
    match (value, kind.is_time()) {
        (Level::Time(time), true) => {
            let time = Some(Spanned { value: *time, place: place.clone() });
            let range = match kind {
                SignalKind::Latency(_) => limits::LATENCY_THRESHOLD,
                SignalKind::Lag { .. }
                | SignalKind::ThreadsRunning
                | SignalKind::HistoryListLength
                | SignalKind::Query(_)
                | SignalKind::Status(_) => limits::LAG_THRESHOLD,
            };
            Some(duration(time, range, faults).as_secs_f64())
        }
        (Level::Number(number), false) => {
            if !number.is_finite() {
                faults.add(place, "must be a finite number");
            }
            Some(*number)
        }
        (Level::Number(_), true) => {
            faults.add(place, "must be a duration with its unit, like 250ms or 5s");
            None
        }
        (Level::Time(_), false) => {
            faults.add(place, "must be a plain number");
            None
        }
    }
}

fn on_no_data(policy: Maybe<raw::OnNoData>, faults: &mut Faults) -> OnNoData {
    let Some(Spanned { value, place }) = policy else { return OnNoData::Closed };
    match value {
        raw::OnNoData::Keyword(word) if word == "open" => OnNoData::Open,
        raw::OnNoData::Keyword(word) if word == "closed" => OnNoData::Closed,
        raw::OnNoData::Keyword(word) => {
            let message = format!("`{word}` is not one of `open`, `closed`, {{hold_last: 30s}}");
            faults.add(&place, message);
            OnNoData::Closed
        }
        raw::OnNoData::HoldLast(time) => {
            let time: Duration = duration(time, limits::HOLD_LAST, faults);
            OnNoData::HoldLast(time)
        }
    }
}
