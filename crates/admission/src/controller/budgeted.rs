//! Budgets beside the gate: a statement needs room in all of its budgets and the admission of its
//! rule, and takes from none before it has all.
//!
//! It waits in one line at a time, that of what is missing. Who waits for a budget takes no place
//! at a gate meanwhile, and who waits at a gate takes nothing from a budget: a gate that is shut holds
//! up nobody whom only the budget concerns. Who has had its turn at the gate and finds a budget
//! without room keeps that turn: when the budget has room it passes, if the gate is still open.
//!
//! A wait for a budget lasts as long as the budget says, and the wait that the rule allows begins
//! behind it.

mod fills;
mod so_far;
mod taking_over;

use super::advance::{BATCH_LEN, Batch};
use super::{Controller, Life};
use crate::budget::{
    BudgetHold, BudgetScope, BudgetSet, BudgetUse, BudgetUsed, BudgetView, InTheWay, Sought,
};
use crate::decision::{Decision, Permit, Resolved};
use crate::gate::Obstacle;
use crate::queue::{Spot, Waiter};
use crate::{
    AppKey, DigestKey, IdentityKey, Mode, MonoTime, OnRefusedCheck, OnTimeout, Reason, Request,
    RuleKey, Terms, Ticket,
};

/// Who asks for its budgets alone, and with what: see [`Request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetAsk {
    /// The rule that matched.
    pub rule: RuleKey,
    /// Who asks.
    pub identity: IdentityKey,
    /// The identity's app.
    pub app: AppKey,
    /// By what its cost is foreseen.
    pub digest: Option<DigestKey>,
}

/// What became of whoever was next in a budget's line.
enum Step {
    /// It is not in that line any more.
    Moved,
    /// It is, until then at least if nobody ends.
    Stays(Option<MonoTime>),
}

impl Controller {
    /// May this statement run now, that these budgets meet? As [`Controller::request`] besides. A
    /// rule that only observes is asked for by itself.
    pub fn request_budgeted(
        &mut self,
        now: MonoTime,
        request: &Request,
        budgets: &BudgetSet,
    ) -> Decision {
        match request.terms.mode {
            Mode::Enforce => self.seek(now, request, budgets, BudgetScope::WithRule),
            Mode::Observe => self.request(now, request),
        }
    }

    /// The same for a statement that no rule holds back: only its budgets are asked.
    pub fn request_budgets(
        &mut self,
        now: MonoTime,
        request: &Request,
        budgets: &BudgetSet,
    ) -> Decision {
        self.seek(now, request, budgets, BudgetScope::Alone)
    }

    /// A statement goes to the server that may not be held back: it counts, whether there is room
    /// or not.
    pub fn count_budgeted(
        &mut self,
        now: MonoTime,
        budgets: &BudgetSet,
        (digest, app): (Option<DigestKey>, AppKey),
    ) -> BudgetHold {
        let now = self.tick_quietly(now);
        self.budgets.take(now, budgets, (digest, app))
    }

    /// A statement at the server, which has taken this from its budgets if from any, counts for these
    /// too: they are there since it began.
    pub fn join_budgets(
        &mut self,
        now: MonoTime,
        held: Option<BudgetHold>,
        budgets: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
    ) -> BudgetHold {
        let now = self.tick_quietly(now);
        self.budgets.join(now, held, budgets, asks)
    }

    /// The same as [`Controller::request_budgets`] for a statement that has room at once, without a
    /// permit. `None`: it has not, or somebody has to be told that it passes. Then nothing is taken,
    /// and it is to be asked for.
    pub fn take_budgets(
        &mut self,
        now: MonoTime,
        budgets: &BudgetSet,
        BudgetAsk { rule, identity, app, digest }: BudgetAsk,
    ) -> Option<BudgetHold> {
        let now = self.tick_quietly(now);
        let watch = self.starvation.as_ref();
        if watch.is_some_and(|watch| watch.heeds_admitted(now, (rule, identity))) {
            return None;
        }
        let asks = (digest, app);
        let Self { budgets: ledger, budget_lines, .. } = self;
        ledger.take_if_room(now, budgets, asks, |at| budget_lines.has_line(at))
    }

    /// A statement is over that has taken from its budgets: the server has really finished it, also
    /// when its client has gone.
    pub fn finish_budgeted(&mut self, now: MonoTime, hold: BudgetHold, used: &BudgetUsed) {
        let now = self.tick_quietly(now);
        let freed = self.freed(&hold);
        self.budgets.finish(now, &hold, used);
        self.wake_for(now, freed);
    }

    /// What a statement was taken with, for [`Controller::count_budgeted`]: it may go on later.
    #[must_use]
    pub fn taken_with(&self, hold: &BudgetHold) -> (BudgetSet, (Option<DigestKey>, AppKey)) {
        self.budgets.taken_with(hold)
    }

    /// Whether others may wait for what a statement has taken.
    #[must_use]
    pub fn holds_up(&self, hold: &BudgetHold) -> bool {
        self.budgets.holds_up(hold)
    }

    /// The budgets that anybody has met, in no order.
    pub fn budget_views(&self) -> Vec<BudgetView> {
        let mut views: Vec<BudgetView> = self.budgets.views().collect();
        views.sort_unstable_by_key(|view| view.budget);
        for (budget, waiting) in self.budget_lines.waiting() {
            let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
            if let Ok(at) = views.binary_search_by_key(&budget, |view| view.budget)
                && let Some(view) = views.get_mut(at)
            {
                view.waiting = view.waiting.saturating_add(waiting);
            }
        }
        views
    }

    /// What was admitted did not go to the server.
    pub(super) fn give_back(&mut self, now: MonoTime, hold: Option<BudgetHold>) {
        if let Some(hold) = hold {
            let freed = self.freed(&hold);
            self.budgets.give_back(now, &hold);
            self.wake_for(now, freed);
        }
    }

    /// Where something becomes free that somebody may wait for. `None`: nobody waits for a budget.
    fn freed(&self, hold: &BudgetHold) -> Option<BudgetSet> {
        (!self.budget_lines.is_empty()).then(|| self.budgets.taken_with(hold).0)
    }

    fn wake_for(&mut self, now: MonoTime, freed: Option<BudgetSet>) {
        let Some(freed) = freed else { return };
        if !freed.iter().any(|at| self.budget_lines.has_line(at)) {
            return;
        }
        self.tick(now);
        self.budget_lines.wake(now, &freed);
        if self.budget_lines.due(now).is_some() {
            self.advance(now);
        }
    }

    fn seek(
        &mut self,
        now: MonoTime,
        request: &Request,
        set: &BudgetSet,
        scope: BudgetScope,
    ) -> Decision {
        let now = self.tick(now);
        let sought = Sought {
            set: *set,
            scope,
            rule_delay: request.terms.max_delay,
            waits_at: None,
            has_turn: false,
            had_turn: BudgetSet::default(),
        };
        let blocked = {
            let Self { budgets, budget_lines, .. } = self;
            budgets.in_the_way(now, set, asks(request), |at| budget_lines.has_line(at))
        };
        let decision = match blocked {
            // Nobody waits any more; who need not wait goes on.
            Some(_) if self.life == Life::ShuttingDown => {
                Decision::Reject(self.refuse(now, request, Obstacle::plain(Reason::Shutdown)))
            }
            Some(InTheWay::Refused { at, reason }) => {
                self.note_exceeded(request, at);
                Decision::Reject(self.refuse(now, request, of_budget(at, reason)))
            }
            Some(InTheWay::Waits { at, reason, until }) => {
                self.note_exceeded(request, at);
                self.queue_for(now, request, &sought, (at, reason, until))
            }
            None => return self.go_to_gate(now, request, sought),
        };
        self.watch_decision(now, request, &decision);
        decision
    }

    /// It waits no more, and is judged again: that it found no room is counted.
    pub(super) fn decide_again(&mut self, waiter: &Waiter) -> Resolved {
        if let Spot::Budgeted { at, .. } = waiter.spot {
            self.budget_lines.note_judged_again(&waiter.request, at.budget);
        }
        Resolved::DecideAgain
    }

    /// It finds no room there, for the first time.
    fn note_exceeded(&mut self, request: &Request, at: BudgetUse) {
        if !self.budget_lines.is_judged_again(request, at.budget) {
            self.budgets.note_exceeded(at.budget);
        }
    }

    /// All budgets have room.
    fn go_to_gate(&mut self, now: MonoTime, request: &Request, sought: Sought) -> Decision {
        let decision = match sought.scope {
            BudgetScope::Alone => return Decision::Admit(self.admit_alone(now, request, &sought)),
            BudgetScope::WithRule => self.request(now, request),
        };
        match decision {
            Decision::Admit(mut permit) => {
                permit.hold = Some(Box::new(self.budgets.take(now, &sought.set, asks(request))));
                Decision::Admit(permit)
            }
            Decision::Queue(ticket) => {
                self.budget_lines.note(ticket, sought);
                Decision::Queue(ticket)
            }
            Decision::Reject(_) | Decision::Observed(..) => decision,
        }
    }

    fn queue_for(
        &mut self,
        now: MonoTime,
        request: &Request,
        sought: &Sought,
        (at, reason, until): (BudgetUse, Reason, Option<MonoTime>),
    ) -> Decision {
        let max_delay = self.budgets.max_delay(at.budget);
        let waits = Request { terms: Terms { max_delay, ..request.terms }, ..*request };
        let spot = Spot::Budgeted { at, reason };
        let decision = self.enqueue(now, &waits, spot, of_budget(at, reason));
        if let Decision::Queue(ticket) = decision {
            self.budget_lines.note(ticket, *sought);
            self.join_line(now, ticket, request, (at, until));
        }
        decision
    }

    fn join_line(
        &mut self,
        now: MonoTime,
        ticket: Ticket,
        request: &Request,
        at: (BudgetUse, Option<MonoTime>),
    ) {
        let who = (request.lane(), (request.since, ticket));
        self.budget_lines.join(now, at, who, (request.terms.weight, &mut self.dice));
    }

    /// Looks at those who wait for budgets, as far as these reach.
    pub(super) fn release_budgeted(&mut self, now: MonoTime) -> Batch {
        let mut left = BATCH_LEN;
        while let Some(at) = self.budget_lines.due(now) {
            loop {
                if left == 0 {
                    return Batch::MoreIsDue;
                }
                left = left.saturating_sub(1);
                let step = match self.budget_lines.head(at) {
                    Some(ticket) => self.look_at_head(now, at, ticket),
                    None => Step::Stays(None),
                };
                if let Step::Stays(until) = step {
                    self.budget_lines.rest(now, at, until);
                    break;
                }
            }
        }
        Batch::Done
    }

    fn look_at_head(&mut self, now: MonoTime, at: BudgetUse, ticket: Ticket) -> Step {
        let Some(waiter) = self.queue.get(ticket).copied() else { return Step::Stays(None) };
        let Some(sought) = self.budget_lines.get(ticket).copied() else {
            return Step::Stays(None);
        };
        let asks = asks(&waiter.request);
        let mut own = BudgetSet::default();
        own.add(at);
        if let Some(InTheWay::Waits { until, .. }) =
            self.budgets.in_the_way(now, &own, asks, |_| false)
        {
            return Step::Stays(until);
        }
        if let Some(sought) = self.budget_lines.get_mut(ticket) {
            sought.had_turn.add(at);
        }
        let blocked = {
            let Self { budgets, budget_lines, .. } = self;
            // Who is at the head here goes behind those who wait elsewhere.
            let is_behind = |there| there != at && budget_lines.is_behind(there, ticket);
            budgets.in_the_way(now, &sought.set, asks, is_behind)
        };
        match blocked {
            Some(InTheWay::Waits { at: there, until, .. })
                if self.comes_first(ticket, (at, there), asks) =>
            {
                Step::Stays(until)
            }
            Some(blocked) => {
                self.stop_at(now, (ticket, &waiter), blocked);
                Step::Moved
            }
            None => {
                self.budget_lines.take_turn(at, &mut self.dice);
                self.go_on(now, ticket, &waiter, &sought);
                Step::Moved
            }
        }
    }

    /// Whether the head of a line waits there for what else it needs, and nobody passes it: it has
    /// had its turn at that too, and here is where there is room less often.
    fn comes_first(
        &mut self,
        ticket: Ticket,
        (at, there): (BudgetUse, BudgetUse),
        asks: (Option<DigestKey>, AppKey),
    ) -> bool {
        if self.budget_lines.comes_first(at, ticket) {
            return true;
        }
        let had_turn =
            self.budget_lines.get(ticket).is_some_and(|sought| sought.had_turn.contains(there));
        let is_slower = self.budgets.turnover(at, asks) >= self.budgets.turnover(there, asks);
        had_turn && is_slower && self.budget_lines.claim(ticket)
    }

    /// Its budgets have room: it passes, or goes to its gate.
    fn go_on(&mut self, now: MonoTime, ticket: Ticket, waiter: &Waiter, sought: &Sought) {
        let request = &waiter.request;
        let gate = self.gates.get(&request.gate);
        let is_open = gate.is_some_and(|gate| gate.open_since().is_some());
        match sought.scope {
            BudgetScope::Alone => self.let_through(now, ticket),
            BudgetScope::WithRule if sought.has_turn && is_open => self.let_through(now, ticket),
            BudgetScope::WithRule => {
                self.leave_line(ticket, waiter);
                self.queue.place(ticket, Spot::Held);
                let waited = now.saturating_since(request.arrived);
                self.queue.set_max_delay(ticket, sought.rule_delay.saturating_add(waited));
                if let Some(sought) = self.budget_lines.get_mut(ticket) {
                    sought.has_turn = false;
                }
                self.check_again(now, ticket, crate::rates::From::Arrival);
                self.refuse_who_may_not_wait(now, ticket);
            }
        }
    }

    /// `on_refused_check: reject` refuses what waited for its budgets alone.
    fn refuse_who_may_not_wait(&mut self, now: MonoTime, ticket: Ticket) {
        let Some(waiter) = self.queue.get(ticket).copied() else { return };
        let waits_for_budget = matches!(waiter.spot, Spot::Budgeted { .. });
        match waiter.request.terms.on_refused_check {
            OnRefusedCheck::Reject if !waits_for_budget => {
                let obstacle = self.obstacle_of(ticket, &waiter);
                self.reject(now, ticket, obstacle);
            }
            OnRefusedCheck::Reject | OnRefusedCheck::Delay => {}
        }
    }

    /// A waiter has had its turn; if a budget of its has no room it waits for that.
    pub(super) fn shelve(&mut self, now: MonoTime, ticket: Ticket) -> bool {
        let Some(sought) = self.budget_lines.get(ticket).copied() else { return false };
        let Some(waiter) = self.queue.get(ticket).copied() else { return false };
        let request = &waiter.request;
        let blocked = {
            let Self { budgets, budget_lines, .. } = self;
            let is_behind = |there| budget_lines.is_behind_claim(there, ticket);
            budgets.in_the_way(now, &sought.set, asks(request), is_behind)
        };
        let Some(blocked) = blocked else { return false };
        if let Some(sought) = self.budget_lines.get_mut(ticket) {
            sought.has_turn = true;
        }
        self.stop_at(now, (ticket, &waiter), blocked);
        true
    }

    /// `on_timeout: admit` is about the gate: what it lets through waits for its budgets yet.
    pub(super) fn shelve_overdue(&mut self, now: MonoTime, ticket: Ticket) -> bool {
        let Some(waiter) = self.queue.get(ticket) else { return false };
        let passes = match (waiter.spot, waiter.request.terms.on_timeout) {
            (Spot::Budgeted { .. }, _) | (_, OnTimeout::Reject) => false,
            (_, OnTimeout::Admit) => !waiter.request.terms.hold,
        };
        passes && self.shelve(now, ticket)
    }

    fn stop_at(&mut self, now: MonoTime, (ticket, waiter): (Ticket, &Waiter), blocked: InTheWay) {
        match blocked {
            InTheWay::Refused { at, reason } => {
                self.budgets.note_exceeded(at.budget);
                self.reject(now, ticket, of_budget(at, reason));
            }
            InTheWay::Waits { at, reason, until } => {
                self.leave_line(ticket, waiter);
                if !matches!(waiter.spot, Spot::Budgeted { .. }) {
                    self.budgets.note_exceeded(at.budget);
                    let waited = now.saturating_since(waiter.request.arrived);
                    let delay = self.budgets.max_delay(at.budget).saturating_add(waited);
                    self.queue.set_max_delay(ticket, delay);
                }
                self.queue.place(ticket, Spot::Budgeted { at, reason });
                self.join_line(now, ticket, &waiter.request, (at, until));
            }
        }
    }

    fn reject(&mut self, now: MonoTime, ticket: Ticket, obstacle: Obstacle) {
        if let Some(waiter) = self.take_out(ticket) {
            self.watch_refused(now, &waiter.request, obstacle.reason);
            let refusal = self.refuse(now, &waiter.request, obstacle);
            self.queue.resolve(ticket, Resolved::Reject(refusal));
        }
    }

    /// The permit of a waiter, who takes from its budgets now.
    pub(super) fn admit_waiter(
        &mut self,
        now: MonoTime,
        request: &Request,
        sought: Option<&Sought>,
    ) -> Permit {
        match sought {
            None => self.admit(now, request, None),
            Some(sought) => match sought.scope {
                BudgetScope::Alone => self.admit_alone(now, request, sought),
                BudgetScope::WithRule => {
                    let permit = self.admit(now, request, None);
                    self.with_budgets(now, permit, (request, sought))
                }
            },
        }
    }

    pub(super) fn with_budgets(
        &mut self,
        now: MonoTime,
        mut permit: Permit,
        (request, sought): (&Request, &Sought),
    ) -> Permit {
        permit.hold = Some(Box::new(self.budgets.take(now, &sought.set, asks(request))));
        permit
    }

    /// Nothing but its budgets is taken for it.
    fn admit_alone(&mut self, now: MonoTime, request: &Request, sought: &Sought) -> Permit {
        self.watch_admitted(now, request);
        let permit = Permit::without_account(now.saturating_since(request.arrived));
        self.with_budgets(now, permit, (request, sought))
    }
}

/// By what its cost is foreseen.
fn asks(request: &Request) -> (Option<DigestKey>, AppKey) {
    (request.digest, request.app)
}

fn of_budget(at: BudgetUse, reason: Reason) -> Obstacle {
    Obstacle { budget: Some(at), ..Obstacle::plain(reason) }
}
