//! The tables of what refuses statements beside rules: budgets, guards, and what is in quarantine;
//! and of whom they and rules refuse.

use super::{Row, Table, Tone, none, span, table, whole};
use crate::status::{BudgetStatus, ClusterStatus, GuardStatus, QuarantineEntry, RefusedStatus};

pub(super) fn refused(cluster: &ClusterStatus) -> Table {
    let row = |refused: &RefusedStatus| {
        let cells = vec![
            refused.app.clone(),
            refused.user.clone(),
            refused_by(refused),
            refused.reason.clone(),
            refused.count.to_string(),
            format!("{} ({} ago)", refused.since, span(refused.for_s)),
            format!("{} ago", span(refused.last_s)),
            format!("sluice why {}", refused.last_id),
        ];
        Row { tone: Tone::Bad, cells }
    };
    Table {
        total: cluster.refused_total,
        ..table(
            "Who was refused in the last ten minutes, and by what",
            &["app", "user", "refused by", "reason", "statements", "since", "last", "the last one"],
            cluster.refused.iter().map(row).collect(),
        )
    }
}

/// What refuses them: the guard with its check, the budget, what is in quarantine, or the rule.
#[must_use]
pub fn refused_by(refused: &RefusedStatus) -> String {
    let RefusedStatus { rule, budget, guard, check, quarantine, .. } = refused;
    match (guard, budget, quarantine) {
        (Some(guard), _, _) => format!("guard {guard}: {}", check.as_deref().unwrap_or_default()),
        (None, Some(budget), _) => format!("budget {budget}"),
        (None, None, Some(id)) => format!("quarantine {id} of rule {rule}"),
        (None, None, None) => format!("rule {rule}"),
    }
}

pub(super) fn guards(cluster: &ClusterStatus) -> Table {
    let row = |guard: &GuardStatus| {
        let check = match &*guard.limit {
            "" => guard.check.clone(),
            limit => format!("{}: {limit}", guard.check),
        };
        let counts = [guard.hits, guard.unjudged].map(|count| count.to_string());
        let mut cells = vec![guard.guard.clone(), check, guard.mode.clone()];
        cells.extend(counts);
        cells.push(guard.reason.clone());
        Row { tone: Tone::Plain, cells }
    };
    Table {
        total: cluster.guards_total,
        ..table(
            "Guards, and the statements to which they objected since the start",
            &["guard", "check", "mode", "objected", "not judged", "reason"],
            cluster.guards.iter().map(row).collect(),
        )
    }
}

pub(super) fn budgets(cluster: &ClusterStatus) -> Table {
    let row = |budget: &BudgetStatus| {
        let tone = if budget.waiting > 0 { Tone::Bad } else { Tone::Plain };
        let counts =
            [budget.in_use, budget.waiting, budget.exceeded].map(|count| count.to_string());
        let mut cells = vec![budget.budget.clone(), budget.mode.clone(), budget.allows.clone()];
        cells.push(fill(budget));
        cells.extend(counts);
        cells.push(budget.reason.clone());
        Row { tone, cells }
    };
    table(
        "Budgets",
        &["budget", "mode", "allows", "full", "in use", "waiting", "had no room", "reason"],
        cluster.budgets.iter().map(row).collect(),
    )
}

/// How full a budget is.
fn fill(budget: &BudgetStatus) -> String {
    budget.fill.map_or_else(none, |fill| format!("{:.0} %", fill * 100.0))
}

pub(super) fn quarantine(cluster: &ClusterStatus) -> Table {
    let row = |entry: &QuarantineEntry| {
        let becomes = if entry.action == "kill" { "refused" } else { "one at a time" };
        let like = format!("{} {}", entry.by, entry.hash);
        let QuarantineEntry { id, app, rule, since, .. } = entry.clone();
        let left = whole(entry.left_s).to_string();
        let cells = vec![id, app, rule, like, becomes.to_owned(), since, left];
        Row { tone: Tone::Bad, cells }
    };
    table(
        "Quarantine: a statement like it ran away",
        &["id", "app", "rule", "like", "becomes", "since", "left"],
        cluster.quarantine.iter().map(row).collect(),
    )
}
