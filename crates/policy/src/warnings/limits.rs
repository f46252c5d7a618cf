//! Budgets, guards, and limits of rules that do not do what they say.

use admission::{Mode, OnExceeded};

use super::Found;
use crate::cluster::ClusterPolicy;
use crate::compile::limits;
use crate::fault::Faults;
use crate::raw::{self, OrOff, Size, Spanned};
use crate::rule::{Action, Rule};
use crate::runaway::RunawayAction;

pub(super) fn look(found: &Found<'_>, warnings: &mut Faults) {
    for rule in found.rules() {
        let compiled = found.compiled(&rule.value);
        if let Some(floor) = &rule.value.min_rate
            && !compiled.is_empty()
            && compiled.iter().all(|(cluster, rule)| has_no_gate(cluster, rule))
        {
            let message =
                "has no effect: it is a floor beside the pace of a gate, and the rule has none";
            warnings.add(&floor.place, message);
        }
        idle_watch(&rule.value, compiled, warnings);
    }
    for budget in found.budgets() {
        let budget = &budget.value;
        if let Some(delay) = &budget.max_delay
            && let Some((_, compiled)) = found.compiled_budgets(budget).first()
            && compiled.terms.on_exceeded == OnExceeded::Refuse
        {
            let message = "nobody waits for this budget, `on_exceeded` is `refuse`";
            warnings.add(&delay.place, message);
        }
        let clusters = found.compiled_budgets(budget).iter().map(|(cluster, _)| *cluster);
        only_observes(&budget.mode, "enforce", clusters, warnings);
    }
    for guard in found.guards() {
        let guard = &guard.value;
        let clusters = found.compiled_guards(guard).iter().map(|(cluster, _)| *cluster);
        only_observes(&guard.mode, "deny", clusters, warnings);
        unseen_length(guard, warnings);
    }
}

/// `watch` of a `runaway` that only logs.
fn idle_watch(rule: &raw::Rule, compiled: &[(&ClusterPolicy, &Rule)], warnings: &mut Faults) {
    let logs =
        |rule: &Rule| rule.runaway.is_some_and(|runaway| runaway.action == RunawayAction::Log);
    if let Some(watch) = rule.runaway.as_ref().and_then(|runaway| runaway.value.watch.as_ref())
        && compiled.first().is_some_and(|(_, rule)| logs(rule))
    {
        let message = "has no effect with `action: log`: what is only logged is not quarantined";
        warnings.add(&watch.place, message);
    }
}

/// A limit that no frame of a text goes over.
fn unseen_length(guard: &raw::Guard, warnings: &mut Faults) {
    if let Some(Spanned { value: OrOff::On(Size(most)), place }) = &guard.max_statement_bytes
        && *most >= limits::STATEMENT_BYTES_SEEN
    {
        let message = format!(
            "refuses nothing: of a text that goes on in a second frame only the first {} bytes are \
             counted when it has to be judged, and it passes as not judged; say less than that",
            limits::STATEMENT_BYTES_SEEN
        );
        warnings.add(place, message);
    }
}

fn has_no_gate(cluster: &ClusterPolicy, rule: &Rule) -> bool {
    match rule.action {
        Action::Throttle { gate, .. } => cluster.gate_signals(gate).next().is_none(),
        Action::Exempt | Action::Deny => false,
    }
}

/// A mode that somebody has written down, and that is in force in no cluster: they all observe.
fn only_observes<'c>(
    mode: &Option<Spanned<String>>,
    acts: &str,
    mut clusters: impl Iterator<Item = &'c ClusterPolicy>,
    warnings: &mut Faults,
) {
    let Some(mode) = mode.as_ref().filter(|mode| mode.value == acts) else { return };
    let Some(first) = clusters.next() else { return };
    let observes = |cluster: &ClusterPolicy| cluster.mode == Mode::Observe;
    if observes(first) && clusters.all(observes) {
        let message = format!(
            "only counts all the same: `{}` is in `mode: observe`, which for budgets and guards has \
             the last word; take it from the cluster, and write it at the rules that are to observe",
            first.name
        );
        warnings.add(&mode.place, message);
    }
}
