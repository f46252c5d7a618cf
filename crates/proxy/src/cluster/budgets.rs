//! What statements have taken from budgets, and how it goes back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{
    AppKey, BudgetAsk, BudgetHold, BudgetKey, BudgetSet, BudgetUsed, BudgetView, Controller,
    DigestKey, MonoTime, Request,
};

use super::{Cluster, Judgement, PermitGuard, ask_for};

/// What a statement at the server has taken from its budgets. It goes back when it is dropped, with
/// what the statement has used.
#[derive(Debug)]
#[must_use]
pub(crate) struct BudgetGuard {
    cluster: Arc<Cluster>,
    hold: Option<BudgetHold>,
    used: Option<BudgetUsed>,
}

impl BudgetGuard {
    fn new(cluster: &Arc<Cluster>, hold: BudgetHold) -> Self {
        Self { cluster: cluster.clone(), hold: Some(hold), used: None }
    }

    /// An answer is over: so much more has it used.
    pub(crate) fn note(&mut self, rows: u64, server_time: Duration, failed: bool) {
        let used = self.used.unwrap_or_default();
        self.used = Some(BudgetUsed {
            rows: used.rows.saturating_add(rows),
            server_time: used.server_time.saturating_add(server_time),
            failed: used.failed || failed,
        });
    }

    /// For how long the server will have worked for the answer under way when that is to be told next
    /// ([`Self::note_so_far`]). `None`: it makes no difference.
    pub(crate) fn next_told(&self) -> Option<Duration> {
        let next = self.hold.as_ref()?.next_told()?;
        Some(next.saturating_sub(self.used.unwrap_or_default().server_time))
    }

    /// The server has worked for so long for the answer under way, which is not over.
    pub(crate) fn note_so_far(&mut self, server_time: Duration) {
        if self.next_told().is_none_or(|next| server_time < next) {
            return;
        }
        let Self { cluster, hold: Some(hold), used } = self else { return };
        let used = used.unwrap_or_default().server_time.saturating_add(server_time);
        cluster.control_quietly(|controller, now| controller.note_used_so_far(now, hold, used));
    }

    /// Nobody hears of its answer any more, and the server goes on.
    pub(crate) fn note_unheard(&mut self) {
        if let (Some(hold), None) = (&self.hold, self.used) {
            self.note_so_far(self.cluster.now().saturating_since(hold.since()));
        }
    }

    /// It goes on with a statement whose place was given back.
    pub(crate) fn of_part(mut self) -> Self {
        self.hold = self.hold.take().map(BudgetHold::of_part);
        self
    }

    /// Whether others may wait for it: not for what only warns.
    pub(crate) fn holds_up(&self) -> bool {
        let Some(hold) = &self.hold else { return false };
        self.cluster.control_quietly(|controller, _| controller.holds_up(hold))
    }

    /// What it was taken with.
    pub(crate) fn taken_with(&self) -> Option<(BudgetSet, (Option<DigestKey>, AppKey))> {
        let hold = self.hold.as_ref()?;
        Some(self.cluster.control_quietly(|controller, _| controller.taken_with(hold)))
    }
}

impl Drop for BudgetGuard {
    fn drop(&mut self) {
        let Some(hold) = self.hold.take() else { return };
        let used = self.used;
        self.cluster.control_quietly(|controller, now| {
            // Without an answer nobody knows more than how long it was there.
            let used = used.unwrap_or_else(|| BudgetUsed {
                server_time: now.saturating_since(hold.since()),
                rows: 0,
                failed: true,
            });
            controller.finish_budgeted(now, hold, &used);
        });
    }
}

impl PermitGuard {
    /// The permit of its rule, if one gave it, and what was taken from budgets, if any.
    pub(crate) fn split(mut self) -> (Option<Self>, Option<BudgetGuard>) {
        let Some(permit) = &mut self.permit else { return (None, None) };
        let hold = permit.take_hold();
        let is_of_rule = permit.is_of_rule();
        let guard = hold.map(|hold| BudgetGuard::new(&self.cluster, hold));
        if !is_of_rule {
            // There is nothing to be completed.
            self.permit = None;
            return (None, guard);
        }
        (Some(self), guard)
    }
}

/// Asks for a statement that its rule and these budgets may hold back.
pub(crate) fn ask_with_budgets(
    cluster: &Arc<Cluster>,
    request: &Request,
    budgets: &BudgetSet,
    app: &[u8],
) -> Judgement {
    ask_for(cluster, request, app, |controller, now| {
        controller.request_budgeted(now, request, budgets)
    })
}

/// Asks for one that only these budgets may hold back.
pub(crate) fn ask_budgets(
    cluster: &Arc<Cluster>,
    request: &Request,
    budgets: &BudgetSet,
    app: &[u8],
) -> Judgement {
    ask_for(cluster, request, app, |controller, now| {
        controller.request_budgets(now, request, budgets)
    })
}

impl Cluster {
    /// Counts a statement for budgets that may not hold it back.
    pub(crate) fn count_for_budgets(
        self: &Arc<Self>,
        budgets: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
    ) -> BudgetGuard {
        let hold =
            self.control_quietly(|controller, now| controller.count_budgeted(now, budgets, asks));
        BudgetGuard::new(self, hold)
    }

    /// Counts a statement at the server, that has taken this already if anything, for budgets that are
    /// there since it began.
    pub(crate) fn join_budgets(
        self: &Arc<Self>,
        held: Option<BudgetGuard>,
        budgets: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
    ) -> BudgetGuard {
        let mut held = held;
        let before = held.as_mut().and_then(|guard| guard.hold.take());
        let hold = self
            .control_quietly(|controller, now| controller.join_budgets(now, before, budgets, asks));
        match held {
            None => BudgetGuard::new(self, hold),
            Some(mut guard) => {
                guard.hold = Some(hold);
                guard
            }
        }
    }

    /// Takes from the budgets of a statement that nothing else holds back, if all have room now, and
    /// says when. `None`: it is to be asked for.
    pub(crate) fn take_budgets(
        self: &Arc<Self>,
        budgets: &BudgetSet,
        ask: BudgetAsk,
    ) -> Option<(BudgetGuard, MonoTime)> {
        let hold =
            self.control_quietly(|controller, now| controller.take_budgets(now, budgets, ask))?;
        let now = hold.since();
        Some((BudgetGuard::new(self, hold), now))
    }

    /// The budgets that anybody has met since the process began, in no order.
    pub fn budgets(self: &Arc<Self>) -> Vec<BudgetView> {
        if self.policy().budgets.is_empty() {
            return Vec::new();
        }
        self.control(|controller, _| controller.budget_views())
    }

    /// How full budgets are, 1 for one without room: of one that is `per` something, the fullest of
    /// its buckets. Those are missing that nobody has taken from, or that limit nothing of the kind.
    pub fn budget_fills(self: &Arc<Self>) -> HashMap<BudgetKey, f64> {
        if self.policy().budgets.is_empty() {
            return HashMap::new();
        }
        self.control(Controller::budget_fills)
    }
}
