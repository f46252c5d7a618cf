//! Open cursors of prepared statements: what they have taken from budgets, and whose their rows are.
//!
//! The answer of an execution that opens a cursor has no rows; they come by COM_STMT_FETCH, and the
//! statement is over with the last of them. So its place stays taken meanwhile, as it does while a
//! client takes its time over the rows of any other answer, and what fetching takes is its cost.
//!
//! Between two fetches the server does nothing for it. Who does something else in between, or does
//! not come back for [`IDLE_MAX`], has its place no longer: a loop over the rows of a cursor that
//! changes each would otherwise wait for itself. It may fetch on all the same, for what has begun is
//! not held back, and counts again from then on. Of several cursors the one that was fetched from
//! last has the place: a session is at the server once.

use std::sync::Arc;
use std::time::Duration;

use admission::{AppKey, BudgetSet, DigestKey};
use session::{CursorUse, Finished};
use tokio::time::Instant;

use super::Connection;
use super::fetching::FetchLimits;
use crate::cluster::{BudgetGuard, Cluster};
use crate::insights::Counted;

/// How long a place is kept for a client that does not fetch.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// Cursors of one connection that are known. Of further ones nobody knows which is which: they count
/// for the budgets of each other, and end at once where a rule limits what is fetched from them.
const CURSORS_MAX: usize = 1_024;

/// The open cursors of one connection.
#[derive(Debug, Default)]
pub(super) struct Cursors {
    known: Vec<Open>,
    /// For the budgets of all others that have been open since the last reset.
    beyond: Option<Box<Budgeted>>,
}

#[derive(Debug)]
struct Open {
    statement_id: u32,
    /// As what its execution was counted.
    counted: Option<Counted>,
    budgets: Option<Box<Budgeted>>,
    /// What it may still fetch, if a rule limits that.
    limits: Option<Box<FetchLimits>>,
}

/// What it has to do with budgets.
#[derive(Debug)]
struct Budgeted {
    set: BudgetSet,
    asks: (Option<DigestKey>, AppKey),
    /// What it has taken, if it has not been given back meanwhile, and since when nobody fetches.
    held: Option<(BudgetGuard, Instant)>,
}

impl Cursors {
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.beyond.is_none()
    }

    /// All are closed.
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            *self = Self::default();
        }
    }

    fn close(&mut self, statement_id: u32) {
        let before = self.known.len();
        self.known.retain(|open| open.statement_id != statement_id);
        if self.known.len() == before
            && let Some(beyond) = &mut self.beyond
        {
            beyond.held = None;
        }
    }

    /// A cursor is open behind a command. If there are too many, what its rule limits is given back.
    fn keep(&mut self, open: Open) -> Option<Box<FetchLimits>> {
        self.close(open.statement_id);
        if self.known.len() < CURSORS_MAX {
            self.known.push(open);
            return None;
        }
        if let Some(mut budgets) = open.budgets {
            let others = self.beyond.take();
            for budget in others.iter().flat_map(|others| others.set.iter()) {
                // More than one statement can be held to are not counted.
                budgets.set.add(budget);
            }
            self.beyond = Some(budgets);
        }
        open.limits
    }

    /// As what the execution was counted whose rows are fetched.
    pub(super) fn counted(&self, statement_id: u32) -> Option<Counted> {
        self.known.iter().find(|open| open.statement_id == statement_id)?.counted
    }

    /// What a cursor may still fetch, if a rule limits that.
    pub(super) fn limits(&mut self, statement_id: u32) -> Option<&mut FetchLimits> {
        self.open(statement_id)?.limits.as_deref_mut()
    }

    /// The same, taken out of it.
    fn take_limits(&mut self, statement_id: u32) -> Option<Box<FetchLimits>> {
        self.open(statement_id)?.limits.take()
    }

    fn open(&mut self, statement_id: u32) -> Option<&mut Open> {
        self.known.iter_mut().find(|open| open.statement_id == statement_id)
    }

    /// What a cursor has taken, or takes anew: its rows are being fetched.
    fn take(&mut self, statement_id: u32, cluster: &Arc<Cluster>) -> Option<BudgetGuard> {
        let Self { known, beyond } = self;
        let open = known.iter_mut().find(|open| open.statement_id == statement_id);
        let is_known = open.is_some();
        let budgets = open.map_or(beyond, |open| &mut open.budgets).as_mut()?;
        let (set, asks) = (budgets.set, budgets.asks);
        let held = budgets.held.take().map(|(held, _)| held);
        // It may have been taken for another one of those that are not known.
        let held = held.filter(|held| is_known || held.taken_with().is_some_and(|of| of.0 == set));
        // A session has the place of the cursor that it fetches from last.
        self.give_back();
        Some(held.unwrap_or_else(|| cluster.count_for_budgets(&set, asks).of_part()))
    }

    fn budgeted(&mut self) -> impl Iterator<Item = &mut Budgeted> {
        let known = self.known.iter_mut().filter_map(|open| open.budgets.as_deref_mut());
        known.chain(self.beyond.as_deref_mut())
    }

    /// Gives back what they have taken.
    pub(super) fn give_back(&mut self) {
        for budgets in self.budgeted() {
            budgets.held = None;
        }
    }

    /// When somebody has not fetched for too long.
    pub(super) fn due(&self) -> Option<Instant> {
        let known = self.known.iter().filter_map(|open| open.budgets.as_deref());
        let held = known.chain(self.beyond.as_deref()).filter_map(|budgets| budgets.held.as_ref());
        held.filter_map(|(_, since)| since.checked_add(IDLE_MAX)).min()
    }

    /// Gives back what those have taken who have not.
    pub(super) fn give_back_idle(&mut self, now: Instant) {
        for budgets in self.budgeted() {
            let is_idle = |since: &Instant| now.saturating_duration_since(*since) >= IDLE_MAX;
            budgets.held.take_if(|(_, since)| is_idle(since));
        }
    }
}

impl Connection {
    /// The server works on what was sent: if rows are fetched, for the statement that opened their
    /// cursor.
    pub(super) fn resume_cursor(&mut self) {
        if self.cursors.is_empty() || self.budget.is_some() {
            return;
        }
        if let Some(CursorUse::Fetch(statement_id)) = self.session.cursor_use() {
            self.budget = self.cursors.take(statement_id, &self.shared.cluster);
        }
    }

    /// A command is over that has taken this from its budgets: given back, unless a cursor is open
    /// behind it.
    pub(super) fn settle_cursor(&mut self, finished: &Finished, budget: Option<BudgetGuard>) {
        let is_open = finished.response.as_ref().is_some_and(|response| response.cursor_open);
        let statement_id = match finished.cursor {
            None => return,
            Some(CursorUse::CloseAll) => return self.cursors.clear(),
            Some(CursorUse::Close(statement_id)) => return self.cursors.close(statement_id),
            Some(CursorUse::Execute(statement_id) | CursorUse::Fetch(statement_id)) => statement_id,
        };
        if matches!(finished.cursor, Some(CursorUse::Fetch(_))) {
            self.note_fetched(statement_id, finished, is_open);
        }
        if !is_open {
            // Also after an error: the server has closed it then, or gives its rows to nobody.
            return self.cursors.close(statement_id);
        }
        let (counted, limits) = match finished.cursor {
            Some(CursorUse::Fetch(_)) => {
                (self.cursors.counted(statement_id), self.cursors.take_limits(statement_id))
            }
            Some(CursorUse::Execute(_) | CursorUse::Close(_) | CursorUse::CloseAll) | None => {
                (self.insights.counted(), self.limits_of_cursor(finished))
            }
        };
        let budgets = budget.and_then(|budget| {
            let (set, asks) = budget.taken_with()?;
            Some(Box::new(Budgeted { set, asks, held: Some((budget, Instant::now())) }))
        });
        let unwatched = self.cursors.keep(Open { statement_id, counted, budgets, limits });
        if let Some(mut limits) = unwatched {
            self.end_uncounted(statement_id, &mut limits);
        }
    }
}
