//! Everybody who waits in one cluster, by ticket, deadline, time of the next check and rule.
//!
//! This keeps the places; whose turn it is at a contended gate is the [`crate::ring`]'s.
//!
//! Bounds: waiters per rule (`Terms::queue_len_max`) and in all
//! (`ControllerConfig::queue_len_max`); every index here has at most one entry per waiter. All
//! operations are O(log waiters).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use crate::decision::{Resolution, Resolved};
use crate::{BudgetUse, MonoTime, Reason, Request, RuleKey, Ticket};

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiters: BTreeMap<Ticket, Waiter>,
    deadlines: BTreeSet<(MonoTime, Ticket)>,
    /// Waiters in back-off, by when they check again.
    retries: BTreeSet<(MonoTime, Ticket)>,
    per_rule: BTreeMap<RuleKey, u32>,
    next_ticket: u64,
    /// Outcomes in the order they came about. A ticket whose outcome was taken back has none in
    /// `resolved`.
    ready: VecDeque<Ticket>,
    resolved: BTreeMap<Ticket, Resolved>,
    /// Those of a former policy, or of a process that ends; none is empty.
    leaving: VecDeque<BTreeMap<Ticket, Waiter>>,
}

/// What is left of a queue that was evacuated: only to be dropped, which takes its time.
#[derive(Debug)]
pub(crate) struct Indexes {
    _by_time: [BTreeSet<(MonoTime, Ticket)>; 2],
    _per_rule: BTreeMap<RuleKey, u32>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) request: Request,
    pub(crate) spot: Spot,
}

/// Where a waiter waits.
///
/// ```text
///   ask ──▶ BackOff ──retry: lost again──▶ BackOff
///    │         └─────retry: contended────▶ InLine ──a check won──▶ admitted
///    ├───────────────contended───────────────▲
///    ├──▶ Limited     until its rule has room: then it is checked
///    ├──▶ Budgeted    until its budgets have room: then it is checked
///    ├──▶ Held        until the deadline or the next policy
///    └──▶ Unplaced    until it is decided again
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spot {
    /// In the gate's ring.
    InLine { last_loss: Option<MonoTime> },
    /// Has lost a check at a gate where nobody waits, checks again at this time.
    BackOff { retry_at: MonoTime },
    /// No check can be won under this policy: a hold, or ratio 1.
    Held,
    /// In its rule's own line: the rule has no rows or no place left for it.
    Limited,
    /// In the line of a budget that has no room for it.
    Budgeted { at: BudgetUse, reason: Reason },
    /// The gate is not one of this policy's: decided again at this time.
    Unplaced { retry_at: MonoTime },
}

impl Spot {
    fn retry_at(self) -> Option<MonoTime> {
        match self {
            Self::BackOff { retry_at } | Self::Unplaced { retry_at } => Some(retry_at),
            Self::InLine { .. } | Self::Limited | Self::Budgeted { .. } | Self::Held => None,
        }
    }
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn len_of(&self, rule: RuleKey) -> u32 {
        self.per_rule.get(&rule).copied().unwrap_or(0)
    }

    pub(crate) fn get(&self, ticket: Ticket) -> Option<&Waiter> {
        self.waiters.get(&ticket)
    }

    /// Those with a later ticket than this one, in the order of their tickets.
    pub(crate) fn after(&self, ticket: Option<Ticket>) -> impl Iterator<Item = (Ticket, &Waiter)> {
        let from = ticket.map_or(Bound::Unbounded, Bound::Excluded);
        let later = self.waiters.range((from, Bound::Unbounded));
        later.map(|(ticket, waiter)| (*ticket, waiter))
    }

    pub(crate) fn of(&self, ticket: Ticket) -> Option<&Waiter> {
        self.waiters.get(&ticket)
    }

    pub(crate) fn insert(&mut self, request: Request, spot: Spot) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket = self.next_ticket.saturating_add(1);
        self.deadlines.insert((request.deadline(), ticket));
        if let Some(at) = spot.retry_at() {
            self.retries.insert((at, ticket));
        }
        let of_rule = self.per_rule.entry(request.rule).or_default();
        *of_rule = of_rule.saturating_add(1);
        self.waiters.insert(ticket, Waiter { request, spot });
        ticket
    }

    /// Moves a waiter to another spot.
    pub(crate) fn place(&mut self, ticket: Ticket, spot: Spot) {
        let Some(waiter) = self.waiters.get_mut(&ticket) else { return };
        if let Some(at) = waiter.spot.retry_at() {
            self.retries.remove(&(at, ticket));
        }
        if let Some(at) = spot.retry_at() {
            self.retries.insert((at, ticket));
        }
        waiter.spot = spot;
    }

    /// The waiter's longest wait is another one now.
    pub(crate) fn set_max_delay(&mut self, ticket: Ticket, max_delay: Duration) {
        let Some(waiter) = self.waiters.get_mut(&ticket) else { return };
        self.deadlines.remove(&(waiter.request.deadline(), ticket));
        waiter.request.terms.max_delay = max_delay;
        self.deadlines.insert((waiter.request.deadline(), ticket));
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.waiters.remove(&ticket)?;
        let Waiter { request, spot } = waiter;
        self.deadlines.remove(&(request.deadline(), ticket));
        if let Some(at) = spot.retry_at() {
            self.retries.remove(&(at, ticket));
        }
        if let Some(of_rule) = self.per_rule.get_mut(&request.rule) {
            *of_rule = of_rule.saturating_sub(1);
            if *of_rule == 0 {
                self.per_rule.remove(&request.rule);
            }
        }
        Some(waiter)
    }

    /// Everybody leaves: they are in nobody's way from now on, and go one by one, see
    /// [`Self::next_to_leave`]. At once for any number of them.
    pub(crate) fn evacuate(&mut self) -> Indexes {
        let waiters = std::mem::take(&mut self.waiters);
        if !waiters.is_empty() {
            self.leaving.push_back(waiters);
        }
        Indexes {
            _by_time: [std::mem::take(&mut self.deadlines), std::mem::take(&mut self.retries)],
            _per_rule: std::mem::take(&mut self.per_rule),
        }
    }

    /// The next of those who leave, whoever began to wait first first.
    pub(crate) fn next_to_leave(&mut self) -> Option<(Ticket, Waiter)> {
        let waiters = self.leaving.front_mut()?;
        let next = waiters.pop_first();
        if waiters.is_empty() {
            self.leaving.pop_front();
        }
        next
    }

    /// Whether somebody leaves yet.
    pub(crate) fn is_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// One of those who leave is gone already.
    pub(crate) fn forget_leaving(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.leaving.iter_mut().find_map(|waiters| waiters.remove(&ticket));
        self.leaving.retain(|waiters| !waiters.is_empty());
        waiter
    }

    /// The waiter whose deadline has come.
    pub(crate) fn overdue(&self, now: MonoTime) -> Option<Ticket> {
        self.deadlines.first().filter(|(at, _)| *at <= now).map(|(_, ticket)| *ticket)
    }

    /// The waiter in back-off whose next check has come.
    pub(crate) fn retrying(&self, now: MonoTime) -> Option<Ticket> {
        self.retries.first().filter(|(at, _)| *at <= now).map(|(_, ticket)| *ticket)
    }

    /// When the first of those comes.
    pub(crate) fn next_event(&self) -> Option<MonoTime> {
        let first = |set: &BTreeSet<(MonoTime, Ticket)>| set.first().map(|(at, _)| *at);
        let next = [first(&self.deadlines), first(&self.retries)].into_iter().flatten().min();
        next.filter(|&at| at < MonoTime::MAX)
    }

    pub(crate) fn resolve(&mut self, ticket: Ticket, outcome: Resolved) {
        self.resolved.insert(ticket, outcome);
        self.ready.push_back(ticket);
    }

    pub(crate) fn next_resolution(&mut self) -> Option<Resolution> {
        loop {
            let ticket = self.ready.pop_front()?;
            if let Some(outcome) = self.resolved.remove(&ticket) {
                return Some(Resolution { ticket, outcome });
            }
        }
    }

    /// An outcome that nobody has polled and nobody wants any more.
    pub(crate) fn take_back(&mut self, ticket: Ticket) -> Option<Resolved> {
        let outcome = self.resolved.remove(&ticket);
        if self.resolved.is_empty() {
            self.ready.clear();
        }
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_that_were_taken_back_leave_nothing_behind() {
        let mut queue = Queue::default();
        for n in 0..100 {
            queue.resolve(Ticket(n), Resolved::DecideAgain);
            assert!(queue.take_back(Ticket(n)).is_some());
            assert!(queue.take_back(Ticket(n)).is_none());
        }
        assert!(queue.ready.is_empty());
        queue.resolve(Ticket(100), Resolved::DecideAgain);
        queue.resolve(Ticket(101), Resolved::DecideAgain);
        assert!(queue.take_back(Ticket(100)).is_some());
        assert_eq!(queue.next_resolution().map(|resolution| resolution.ticket), Some(Ticket(101)));
        assert!(queue.next_resolution().is_none());
    }
}
