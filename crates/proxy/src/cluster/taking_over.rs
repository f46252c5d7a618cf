//! What a cluster has from the process before this one, and owes to the one behind it.
//!
//! ```text
//! before ──tells──▶ this one ──tells──▶ behind
//! ```
//!
//! The one behind hears of the one before from this one alone. So a drain in which somebody is told
//! of budgets lasts until there is nothing to tell any more: until the process before has ended, and
//! nothing is at the server that a budget counts, session or not.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use admission::{BudgetNews, BudgetUse, Controller, DigestCost, DigestKey};

use super::Cluster;

/// Who is before this process, and behind it.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// One before this tells what it has.
    before: AtomicBool,
    /// One behind this is told.
    behind: AtomicBool,
}

impl Neighbours {
    /// Whether a process before this one tells what it has.
    pub(crate) fn set_before(&self, is_there: bool) {
        self.before.store(is_there, Ordering::Relaxed);
    }

    fn set_behind(&self, is_there: bool) {
        self.behind.store(is_there, Ordering::Relaxed);
    }
}

impl Cluster {
    /// Whether nobody is connected, and the process behind has nothing more to hear.
    pub(crate) fn is_drained(self: &Arc<Self>) -> bool {
        let Neighbours { before, behind } = &self.neighbours;
        let has_to_tell = || before.load(Ordering::Relaxed) || !self.budgeted_there().is_empty();
        self.registry.is_empty() && !(behind.load(Ordering::Relaxed) && has_to_tell())
    }

    /// How many statements are at the server, by bucket, with those of the process before.
    pub(crate) fn budgeted_there(self: &Arc<Self>) -> HashMap<BudgetUse, u32> {
        self.control(|controller, _| controller.budgeted_there())
    }

    /// A process behind this one is told of budgets from now on.
    pub(crate) fn begin_to_tell(self: &Arc<Self>) {
        self.neighbours.set_behind(true);
        self.control(Controller::tell_budgets);
    }

    /// It does not listen any more.
    pub(crate) fn tell_no_more(self: &Arc<Self>) {
        self.neighbours.set_behind(false);
        self.control(|controller, _| controller.tell_budgets_no_more());
    }

    /// What it has to know now.
    pub(crate) fn budget_news(self: &Arc<Self>) -> BudgetNews {
        self.control(Controller::budget_news)
    }

    /// What a process to come has to know: the digests that cost more than a `max_query_cost`.
    pub fn too_costly(self: &Arc<Self>) -> Vec<(DigestKey, DigestCost)> {
        self.control_quietly(|controller, now| controller.too_costly(now))
    }

    /// A process that is gone has learned what these cost: to be called before anybody is let in.
    pub fn learn_costs(self: &Arc<Self>, costs: Vec<(DigestKey, DigestCost)>) {
        self.control(|controller, now| controller.learn_costs(now, costs));
    }

    /// The process before this one has told this.
    pub(crate) fn note_budget_news(self: &Arc<Self>, news: BudgetNews) {
        self.control(|controller, now| controller.note_budget_news(now, news));
    }
}
