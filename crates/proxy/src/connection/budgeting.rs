//! A statement's budgets: asked for at its admission point with its rule, or alone, or counted only;
//! given back when its answer is over.

use admission::{Mode, Request, RuleKey, Terms};
use policy::{app_key, identity_key, ruleless_app_key};
use session::{Ask, Finished, Question};
use wire::response_tracker::ResponseEnd;

use super::Connection;
use crate::cluster::{BudgetGuard, Judgement, PermitGuard, ask, ask_budgets, ask_with_budgets};

impl Connection {
    /// What the controller says of a statement. A rule that observes is asked for by itself: what
    /// it says does not hold back, and the budgets are asked behind it.
    pub(super) fn judge(&self, question: Question, request: &Request) -> Judgement {
        let (cluster, app) = (&self.shared.cluster, self.session.app());
        let budgets = self.session.budgets();
        match (question, request.terms.mode) {
            (Question::Rule, Mode::Enforce) if !budgets.is_empty() => {
                ask_with_budgets(cluster, request, budgets, app)
            }
            (Question::Rule, Mode::Enforce | Mode::Observe) => ask(cluster, request, app),
            (Question::Budgets | Question::Count, _) => ask_budgets(cluster, request, budgets, app),
        }
    }

    /// How a statement asks for its budgets alone.
    pub(super) fn budget_request(&mut self, asked: &Ask) -> Request {
        let arrived = self.arrived();
        let app = self.session.app();
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        let of_all = ruleless_app_key(app);
        // The cluster bounds how many wait; the budget says for how long.
        let terms = Terms { queue_len_max: u32::MAX, ..Terms::default() };
        Request {
            rule: rule.map_or(NO_RULE, |rule| rule.key),
            identity: rule.map_or(admission::IdentityKey(of_all.0), |rule| identity_key(rule, app)),
            app: rule.map_or(of_all, |rule| app_key(rule, app)),
            digest: asked.digest,
            written: None,
            gate: self.policy.default_gate,
            terms,
            arrived,
            since: arrived,
        }
    }

    /// It may not be held back, and counts for its budgets.
    pub(super) fn count_for_budgets(&mut self, asked: &Ask) {
        if self.session.budgets().is_empty() {
            return;
        }
        let app = self.session.app();
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        let app = rule.map_or_else(|| ruleless_app_key(app), |rule| app_key(rule, app));
        let budgets = self.session.budgets();
        self.budget = Some(self.shared.cluster.count_for_budgets(budgets, (asked.digest, app)));
    }

    /// It may run: the permit is its transaction's, and what it takes from budgets its own.
    pub(super) fn take_permit(&mut self, permit: PermitGuard) {
        let (permit, budget) = permit.split();
        if permit.is_some() {
            self.permit = permit;
        }
        self.budget = budget;
    }

    /// The connection is over before the answer is: the server may go on.
    pub(super) fn leave_behind(&mut self) {
        self.cursors.clear();
        if let Some(budget) = self.budget.take() {
            let place = (self.backend.remote(), self.session.connection_id());
            self.shared.cluster.left_behind.add(budget, &self.server, place);
        }
    }

    /// The last bytes of an answer are about to go to the client. What it has taken is free before
    /// the client can read them: its next statement may come on another connection. An admission
    /// that goes on, or may, stays.
    pub(super) fn give_back_answered(&mut self) {
        if self.budget.is_none() && self.permit.is_none() {
            return;
        }
        let Some(end) = self.session.ended_answer().copied() else { return };
        if let Some(mut budget) = self.budget.take() {
            self.note_in(&mut budget, &end);
        }
        let is_over = end.error.is_none() && end.status.is_some_and(|it| !it.in_transaction());
        if let Some(mut permit) = self.permit.take_if(|_| is_over) {
            permit.add(end.changed_rows(), self.timing.backend, false);
        }
    }

    fn note_in(&self, budget: &mut BudgetGuard, response: &ResponseEnd) {
        let rows = response.affected_rows.saturating_add(response.rows);
        budget.note(rows, self.timing.backend, response.error.is_some());
    }

    /// The answer of whatever was under way is over. What it has taken goes back, or to the cursor
    /// that it has opened.
    pub(super) fn give_back_budgets(&mut self, finished: &Finished) {
        let mut budget = self.budget.take();
        if let Some(budget) = &mut budget
            && let Some(response) = &finished.response
        {
            self.note_in(budget, response);
        }
        if finished.cursor.is_some() {
            self.settle_cursor(finished, budget);
        }
    }
}

/// Stands for the rule of statements that none matches.
const NO_RULE: RuleKey = RuleKey(0);
