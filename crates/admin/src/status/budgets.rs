//! The budgets of a cluster, for people.

use std::collections::HashMap;
use std::sync::Arc;

use admission::{BudgetKey, BudgetView, Mode};
use policy::{Budget, ClusterPolicy};
use proxy::cluster::Cluster;
use serde::{Deserialize, Serialize};

/// Most budgets that are shown.
const BUDGETS_MAX: usize = 200;

/// A budget.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BudgetStatus {
    /// Its name.
    pub budget: String,
    /// `enforce` or `warn`.
    pub mode: String,
    /// What it allows, in words.
    pub allows: String,
    /// Statements at the server now.
    pub in_use: u64,
    /// Statements that wait for it now.
    pub waiting: u64,
    /// Statements for which it had no room since the process started.
    pub exceeded: u64,
    /// How full it is, by the limit that is nearest: 1 has no room. Of one that is `per` something
    /// the fullest of its buckets. None: nobody has taken from it lately, or it is not known.
    pub fill: Option<f64>,
    /// Why it exists.
    pub reason: String,
}

/// Those that are in the file, those first that had no room most often.
pub(super) fn gather(cluster: &Arc<Cluster>, policy: &ClusterPolicy) -> Vec<BudgetStatus> {
    let views: HashMap<BudgetKey, BudgetView> =
        cluster.budgets().into_iter().map(|view| (view.budget, view)).collect();
    let fills = cluster.budget_fills();
    let status = |budget: &Budget| {
        let fill = fills.get(&budget.key).copied();
        BudgetStatus { fill, ..status(budget, views.get(&budget.key)) }
    };
    let mut all: Vec<BudgetStatus> = policy.budgets.iter().map(status).collect();
    all.sort_by_key(|budget| std::cmp::Reverse((budget.waiting, budget.exceeded)));
    all.truncate(BUDGETS_MAX);
    all
}

fn status(budget: &Budget, view: Option<&BudgetView>) -> BudgetStatus {
    let count = |of: fn(&BudgetView) -> u64| view.map_or(0, of);
    let mode = match budget.terms.mode {
        Mode::Enforce => "enforce",
        Mode::Observe => "warn",
    };
    BudgetStatus {
        budget: budget.name.to_string(),
        mode: mode.to_owned(),
        allows: budget.allows(),
        in_use: count(|view| view.in_use),
        waiting: count(|view| view.waiting),
        exceeded: count(|view| view.exceeded.saturating_add(view.warned)),
        fill: None,
        reason: budget.reason.to_string(),
    }
}
