//! What is in a file, as it is in force.

use std::collections::HashMap;
use std::time::Duration;

use admission::{Mode, OnNoData, OnRefusedCheck};
use policy::{Action, ClusterPolicy, Config, GuardMode, Rule, Scope, Signal, SignalKind};
use sql::{Class, ClassSet};

use super::count;

/// Rules listed: whoever has more looks for a name, not at a list.
const LISTED_RULES_MAX: usize = 100;

pub(super) fn of(config: &Config, warnings: usize) -> String {
    let mut text = match warnings {
        0 => "The file is good.\n".to_owned(),
        number => format!("The file is valid, with {}.\n", count(number, "warning")),
    };
    text += &format!("admin on {}\n", config.admin.listen);
    // Rules are numbered as in the path of a fault.
    let numbers: HashMap<&str, usize> =
        config.rule_names.iter().enumerate().map(|(at, name)| (&**name, at)).collect();
    for cluster in &config.clusters {
        let ClusterPolicy { name, listen, primary, replicas, .. } = &**cluster;
        let replicas = count(replicas.len(), "replica");
        text += &format!("\ncluster {name}: {listen} -> {primary}, {replicas}\n");
        for signal in &cluster.signals {
            text += &format!("  signal {}\n", of_signal(signal, cluster));
        }
        let rules = count(cluster.rules.len(), "rule");
        text += &format!("  {rules}, the first that matches decides:\n");
        for rule in cluster.rules.iter().take(LISTED_RULES_MAX) {
            let number = numbers.get(&*rule.name).copied().unwrap_or_default();
            text += &format!("    rules[{number}] {}\n", of_rule(rule, cluster));
        }
        let further = cluster.rules.len().saturating_sub(LISTED_RULES_MAX);
        if further > 0 {
            text += &format!("    and {further} more\n");
        }
        text += &limits(cluster);
    }
    if config.clusters.iter().any(|cluster| !cluster.rules.is_empty()) {
        text += &format!("\n{WRITE}\n");
    }
    text
}

/// What holds whatever rule decides: budgets and guards.
fn limits(cluster: &ClusterPolicy) -> String {
    let warns = |is_so: bool| if is_so { ", warns only" } else { "" };
    let budgets = cluster.budgets.iter().map(|budget| {
        let warns = warns(budget.terms.mode == Mode::Observe);
        format!("  budget {}: {}{warns}\n", budget.name, budget.allows())
    });
    let guards = cluster.guards.iter().flat_map(|guard| {
        guard.checks().map(|(check, mode)| {
            format!("  guard {}: {check}{}\n", guard.name, warns(mode == GuardMode::Warn))
        })
    });
    let mut text: String = budgets.take(LISTED_RULES_MAX).chain(guards).collect();
    let further = cluster.budgets.iter().count().saturating_sub(LISTED_RULES_MAX);
    if further > 0 {
        text += &format!("  and {}\n", count(further, "more budget"));
    }
    text
}

/// What each list of classes would say again and again.
const WRITE: &str = "`write` stands for locking_read, load, call and unknown too.";

/// Its limits in its unit, where it is measured, and what it says without a value.
fn of_signal(signal: &Signal, cluster: &ClusterPolicy) -> String {
    let Signal { name, threshold, open_at, close_at, .. } = signal;
    let mut text = format!("{name}: threshold {}", level(signal, *threshold));
    // The band says more than the threshold that it replaces.
    if open_at != threshold || close_at != threshold {
        let (shut, open) = (level(signal, *close_at), level(signal, *open_at));
        text += &format!(", shut from {shut}, open below {open}");
    }
    if let Some(own) = cluster.own_thresholds(signal) {
        text += &format!(", {own}");
    }
    if cluster.replicas.is_empty() && matches!(signal.kind, SignalKind::Lag { .. }) {
        return format!("{text}, always open: there are no replicas");
    }
    let on = match signal.scope {
        Scope::Primary => "primary",
        Scope::Replicas => "replicas",
    };
    let otherwise = match signal.on_no_data {
        OnNoData::Open => "open".to_owned(),
        OnNoData::Closed => "closed".to_owned(),
        OnNoData::HoldLast(time) => format!("what it last said, for {time:?}"),
    };
    text += &format!(", on the {on}, a value is good for {:?}", signal.stale_after);
    format!("{text}, without one it is {otherwise}")
}

fn level(signal: &Signal, value: f64) -> String {
    match signal.kind {
        SignalKind::Lag { .. } | SignalKind::Latency(_) => {
            let time = Duration::try_from_secs_f64(value).unwrap_or_default();
            format!("{time:?}")
        }
        SignalKind::ThreadsRunning => format!("{value} threads"),
        SignalKind::HistoryListLength => format!("{value} transactions to be purged"),
        SignalKind::Query(_) => format!("{value} (what its query gives)"),
        SignalKind::Status(_) => value.to_string(),
    }
}

/// One rule in a line.
fn of_rule(rule: &Rule, cluster: &ClusterPolicy) -> String {
    let does = match rule.action {
        Action::Exempt => "exempt".to_owned(),
        Action::Deny => "deny".to_owned(),
        Action::Throttle { terms, gate, .. } => {
            let gate: Vec<&str> = cluster.gate_signals(gate).map(|signal| &*signal.name).collect();
            let gate = if gate.is_empty() { "none".to_owned() } else { gate.join(", ") };
            let hold = if terms.hold { "hold, " } else { "" };
            let (ratio, max_delay) = (terms.ratio.as_f64(), terms.max_delay);
            let speed = rule.speed_to_expect().map(|speed| speed + ", ").unwrap_or_default();
            let limits = rule.limits_to_expect().map(|limits| limits + ", ").unwrap_or_default();
            let until = match terms.on_refused_check {
                OnRefusedCheck::Delay => format!("max_delay {max_delay:?}"),
                OnRefusedCheck::Reject => "on_refused_check reject".to_owned(),
            };
            format!("{hold}{speed}ratio {ratio}, gate {gate}, {limits}{until}")
        }
    };
    let observes = match rule.mode {
        Mode::Enforce => "",
        Mode::Observe => ", observes only",
    };
    let runaway = rule
        .runaway
        .map_or_else(String::new, |runaway| format!(", runaway {}", runaway.in_words()));
    let ends = rule.expires_at.map_or_else(String::new, |end| format!(", until {end}"));
    let classes = match rule.action {
        Action::Exempt => "all statements".to_owned(),
        Action::Deny | Action::Throttle { .. } => of_classes(rule.statements),
    };
    format!("{}: {does}{runaway}{observes}{ends}; {classes}", rule.name)
}

/// The classes as a file names them: `write` stands for all that it covers.
fn of_classes(classes: ClassSet) -> String {
    let covered = |class: &Class| class.is_covered_by_write();
    let as_write = Class::ALL.into_iter().filter(covered).all(|class| classes.contains(class));
    let shown = |class: &Class| {
        classes.contains(*class)
            && !(as_write && class.is_covered_by_write() && *class != Class::Write)
    };
    let names: Vec<&str> = Class::ALL.into_iter().filter(shown).map(Class::as_str).collect();
    names.join(", ")
}
