//! Budgets: what is in use, who waits, and how often there was no room.

use std::collections::HashMap;
use std::sync::Arc;

use admission::{BudgetKey, BudgetView};
use policy::ClusterPolicy;
use prometheus::{GaugeVec, IntCounterVec, Registry};

use super::gauges::{counters, gauges};
use crate::cluster::Cluster;

/// Budgets that have series before anybody has met them; of more, only those that somebody has.
const ZEROS_MAX: usize = 1_000;

/// The families of one scrape.
pub(super) struct BudgetFamilies {
    in_use: GaugeVec,
    waiting: GaugeVec,
    exceeded: IntCounterVec,
    left_behind: GaugeVec,
    left_behind_over: IntCounterVec,
}

impl BudgetFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        let labels = ["cluster", "budget"];
        Self {
            in_use: gauges(
                registry,
                "sluice_budget_in_use",
                "Statements of a budget at the server now.",
                &labels,
            ),
            waiting: gauges(
                registry,
                "sluice_budget_waiting",
                "Statements that wait for a budget now.",
                &labels,
            ),
            exceeded: counters(
                registry,
                "sluice_budget_exceeded_total",
                "Statements for which a budget had no room: they waited or were refused (mode \
                 enforce), or passed (mode warn).",
                &["cluster", "budget", "mode"],
            ),
            left_behind: gauges(
                registry,
                "sluice_budget_left_behind",
                "Statements whose connection has ended before their answer and that budgets count, \
                 for the server may go on with them.",
                &["cluster"],
            ),
            left_behind_over: counters(
                registry,
                "sluice_budget_left_behind_total",
                "Such statements that budgets count no more, by why: `ended` at the server; \
                 `unknown`, not heard of for half a minute; `expired`, there for an hour.",
                &["cluster", "result"],
            ),
        }
    }

    pub(super) fn read(&self, cluster: &Arc<Cluster>, policy: &ClusterPolicy) {
        let views: HashMap<BudgetKey, BudgetView> =
            cluster.budgets().into_iter().map(|view| (view.budget, view)).collect();
        if !policy.budgets.is_empty() {
            let left = u32::try_from(cluster.left_behind.len()).unwrap_or(u32::MAX);
            self.left_behind.with_label_values(&[&*cluster.name]).set(f64::from(left));
            for (fate, count) in cluster.left_behind.over() {
                let labels = [&*cluster.name, fate.as_str()];
                self.left_behind_over.with_label_values(&labels).inc_by(count);
            }
        }
        for (budget, at) in policy.budgets.iter().zip(0_usize..) {
            let view = views.get(&budget.key);
            if at >= ZEROS_MAX && view.is_none() {
                continue;
            }
            let count = |of: fn(&BudgetView) -> u64| view.map_or(0, of);
            let labels = [&*cluster.name, &*budget.name];
            let gauge = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
            self.in_use.with_label_values(&labels).set(gauge(count(|view| view.in_use)));
            self.waiting.with_label_values(&labels).set(gauge(count(|view| view.waiting)));
            let modes =
                [("enforce", count(|view| view.exceeded)), ("warn", count(|view| view.warned))];
            for (mode, exceeded) in modes {
                let labels = [&*cluster.name, &*budget.name, mode];
                self.exceeded.with_label_values(&labels).inc_by(exceeded);
            }
        }
    }
}
