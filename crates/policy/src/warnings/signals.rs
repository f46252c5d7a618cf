//! Signals that never change, and gates that do nothing.

use admission::Ratio;

use super::Found;
use crate::cluster::{ClusterPolicy, Scope, Signal, SignalKind};
use crate::fault::Faults;
use crate::raw::{self, Spanned};
use crate::rule::{Action, Rule};

pub(super) fn look(found: &Found<'_>, warnings: &mut Faults) {
    for (cluster, (_, raw)) in found.config.clusters.iter().zip(found.clusters()) {
        for (name, signal) in raw.value.signals.iter().flat_map(|signals| &signals.value.0) {
            let Some(compiled) = cluster.signals.iter().find(|known| *known.name == **name) else {
                continue;
            };
            thresholds(compiled, signal, warnings);
            servers(compiled, signal, cluster, warnings);
        }
        let default = raw.value.default_gate.as_ref();
        for (name, signal) in raw.value.signals.iter().flat_map(|signals| &signals.value.0) {
            let rule = signal.value.latency.as_ref().and_then(|it| it.value.rule.as_ref());
            if let Some(rule) = rule
                && !cluster.rules.iter().any(|known| *known.name == *rule.value)
            {
                let message =
                    format!("the cluster has no rule `{}`: `{name}` never has a value", rule.value);
                warnings.add(&rule.place, message);
            }
        }
        if let Some(gate) = default.filter(|_| cluster.replicas.is_empty())
            && cluster.gate_signals(cluster.default_gate).any(is_lag)
        {
            let message = "`lag` is always open: the cluster lists no replicas";
            warnings.add(&gate.place, message);
        }
    }
    for rule in found.rules() {
        gate(found, rule, warnings);
        own_latency(found, rule, warnings);
    }
}

/// A rule that names a latency as its gate holds by it whom it matches, and so perhaps the very app
/// whose latency it is: it would wait for itself.
fn own_latency(found: &Found<'_>, rule: &Spanned<raw::Rule>, warnings: &mut Faults) {
    let Some(written) = &rule.value.gate else { return };
    for (cluster, compiled) in found.compiled(&rule.value) {
        let Action::Throttle { gate, .. } = compiled.action else { continue };
        for signal in cluster.gate_signals(gate) {
            let SignalKind::Latency(latency) = &signal.kind else { continue };
            let own =
                compiled.condition.apps().find(|app| latency.app.is_some() && latency.is_from(app));
            if let Some(app) = own {
                let message = format!(
                    "holds `{}` by `{}`, which is its own latency: it waits for itself",
                    String::from_utf8_lossy(app),
                    signal.name
                );
                let named = written.value.0.iter().find(|name| name.value == *signal.name);
                warnings.add(named.map_or(&written.place, |name| &name.place), message);
                return;
            }
        }
    }
}

fn is_lag(signal: &Signal) -> bool {
    matches!(signal.kind, SignalKind::Lag { .. })
}

fn thresholds(signal: &Signal, raw: &Spanned<raw::Signal>, warnings: &mut Faults) {
    let lowest = match signal.kind {
        // Its limits have a range of their own, above zero.
        SignalKind::Lag { .. } | SignalKind::Latency(_) => return,
        // Whoever asks is running.
        SignalKind::ThreadsRunning => 1.0,
        SignalKind::HistoryListLength | SignalKind::Status(_) => 0.0,
        // An operator's own number may be below zero, and a limit that is, is meant.
        SignalKind::Query(_) if signal.close_at < 0.0 => return,
        SignalKind::Query(_) => 0.0,
    };
    let raw::Signal { threshold, open_at, close_at, .. } = &raw.value;
    let place = |own: &raw::Maybe<raw::Level>| {
        let level = own.as_ref().or(threshold.as_ref());
        level.map_or_else(|| raw.place.clone(), |level| level.place.clone())
    };
    if signal.close_at <= lowest {
        let message = format!(
            "the value is never below {lowest}, so the signal is always shut; write a number that \
             it may reach"
        );
        warnings.add(&place(close_at), message);
    } else if signal.open_at <= lowest {
        let message = format!(
            "the value is never below {lowest}, so the signal never opens again once it is shut"
        );
        warnings.add(&place(open_at), message);
    }
}

fn servers(
    signal: &Signal,
    raw: &Spanned<raw::Signal>,
    cluster: &ClusterPolicy,
    warnings: &mut Faults,
) {
    let replicas = cluster.replicas.len();
    if let (SignalKind::Lag { min_replicas, .. }, Some(written)) =
        (&signal.kind, &raw.value.min_replicas)
        && usize::try_from(*min_replicas).is_ok_and(|least| least > replicas)
    {
        let message = if replicas == 0 {
            "the cluster lists no replicas, so there is no lag and its signal is open".to_owned()
        } else {
            format!("the cluster lists {replicas}: there is never a value")
        };
        warnings.add(&written.place, message);
    }
    if signal.scope == Scope::Replicas && !is_lag(signal) && replicas == 0 {
        let message = "is measured on replicas, and the cluster lists none: there is never a value";
        warnings.add(&raw.place, message);
    }
}

/// A gate that is open whatever happens, in every cluster that has the rule.
fn gate(found: &Found<'_>, rule: &Spanned<raw::Rule>, warnings: &mut Faults) {
    let policies = found.compiled(&rule.value);
    let on_lag = |(cluster, rule): &(&ClusterPolicy, &Rule)| match rule.action {
        Action::Throttle { gate, .. } => cluster.gate_signals(gate).any(is_lag),
        Action::Exempt | Action::Deny => false,
    };
    let without = |(cluster, _): &(&ClusterPolicy, &Rule)| cluster.replicas.is_empty();
    if policies.is_empty() || !policies.iter().all(|policy| on_lag(policy) && without(policy)) {
        return;
    }
    if let Some(gate) = &rule.value.gate {
        let lag = gate.value.0.iter().find(|name| name.value.ends_with("lag"));
        let place = lag.map_or(&gate.place, |lag| &lag.place);
        warnings.add(place, "is always open: no cluster of the rule lists replicas");
    } else if policies.iter().all(does_nothing_else) {
        let message = "holds nothing back: its gate is the cluster's, `lag`, and no cluster of the \
                       rule lists replicas";
        warnings.add(&rule.place, message);
    }
}

/// Whether a rule holds statements back by its gate alone, and that by lag alone.
fn does_nothing_else((cluster, rule): &(&ClusterPolicy, &Rule)) -> bool {
    match rule.action {
        Action::Throttle { terms, gate, .. } => {
            terms.ratio == Ratio::ZERO
                && rule.speed.is_full()
                && !terms.hold
                && cluster.gate_signals(gate).all(is_lag)
        }
        Action::Exempt | Action::Deny => false,
    }
}
