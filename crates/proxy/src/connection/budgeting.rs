//! A statement's budgets: asked for at its admission point with its rule, or alone, or counted only;
//! given back when its answer is over.

use admission::{BudgetAsk, DigestKey, IdentityKey, Mode, Request, Terms};
use policy::{Rule, app_key, identity_key, ruleless_app_key};
use session::{Ask, Finished, Question};
use tokio::time::Instant;
use wire::response_tracker::ResponseEnd;

use super::Connection;
use super::departure::Departure;
use super::finishing;
use super::running_away::running;
use crate::cluster::{Judgement, PermitGuard, ask, ask_budgets, ask_with_budgets};
use crate::telemetry::NO_RULE_KEY;

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

    /// Takes from the budgets of a statement that nothing else holds back, if all have room at once.
    /// False: it is to be asked for.
    pub(super) fn take_budgets(&mut self, asked: &Ask) -> bool {
        let ask = self.budget_ask(asked);
        match self.shared.cluster.take_budgets(self.session.budgets(), ask) {
            Some((budget, now)) => {
                self.admission.note_arrived(now);
                self.budget = Some(budget);
                true
            }
            None => false,
        }
    }

    /// How a statement asks for its budgets alone.
    pub(super) fn budget_request(&mut self, asked: &Ask) -> Request {
        let arrived = self.arrived();
        let BudgetAsk { rule, identity, app, digest } = self.budget_ask(asked);
        // The cluster bounds how many wait; the budget says for how long.
        let terms = Terms { queue_len_max: u32::MAX, ..Terms::default() };
        let gate = self.policy.default_gate;
        let (written, since) = (None, arrived);
        Request { rule, identity, app, digest, written, gate, terms, arrived, since }
    }

    fn budget_ask(&mut self, asked: &Ask) -> BudgetAsk {
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        let named = (self.session.naming(), self.session.app());
        self.asked_as.with(rule, named, asked.digest)
    }

    /// It may not be held back, and counts for its budgets.
    pub(super) fn count_for_budgets(&mut self, asked: &Ask) {
        if self.session.budgets().is_empty() {
            return;
        }
        let BudgetAsk { app, digest, .. } = self.budget_ask(asked);
        let budgets = self.session.budgets();
        self.budget = Some(self.shared.cluster.count_for_budgets(budgets, (digest, app)));
    }

    /// The file may have budgets that it had not when the statement at the server was judged: it has
    /// a place in these from now on.
    pub(super) fn join_budgets(&mut self) {
        let Some(statement) = self.session.under_way().filter(|it| !it.never_held) else { return };
        let Some(newer) = self.shared.cluster.newer_policy(&self.policy) else { return };
        let running = running(&self.policy, &self.session, &statement);
        let digest = self.session.about().digest;
        let further = newer.budgets.meeting_running(&self.policy.budgets, &running, digest);
        if !further.is_empty() {
            let asks = (None, ruleless_app_key(self.session.app()));
            let held = self.budget.take();
            self.budget = Some(self.shared.cluster.join_budgets(held, &further, asks));
        }
    }

    /// When it is to be told what the statement at the server has used, whose answer is waited for since
    /// then. Of one whose client has left that is told elsewhere.
    pub(super) fn budget_due(&self, since: Instant) -> Option<Instant> {
        let next = self.budget.as_ref()?.next_told()?;
        let is_heard = self.departure == Departure::Unnoticed;
        let left = next.saturating_sub(self.timing.backend);
        since.checked_add(left).filter(|_| is_heard)
    }

    /// The server has worked on.
    pub(super) fn note_used_so_far(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.note_so_far(self.timing.backend);
        }
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
            let lost = self.lost_session();
            self.shared.cluster.left_behind.add(budget, lost);
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
        self.note_used(&end);
        self.budget = None;
        let is_over = end.error.is_none() && end.status.is_some_and(|it| !it.in_transaction());
        if let Some(mut permit) = self.permit.take_if(|_| is_over) {
            finishing::add(&mut permit, self.session.under_way(), &end, self.timing.backend);
        }
    }

    fn note_used(&mut self, response: &ResponseEnd) {
        if let Some(budget) = &mut self.budget {
            let rows = response.affected_rows.saturating_add(response.rows);
            budget.note(rows, self.timing.backend, response.error.is_some());
        }
    }

    /// The answer of whatever was under way is over. What it has taken goes back, or to the cursor
    /// that it has opened.
    pub(super) fn give_back_budgets(&mut self, finished: &Finished) {
        if let Some(response) = &finished.response {
            self.note_used(response);
        }
        if finished.cursor.is_some() {
            let budget = self.budget.take();
            self.settle_cursor(finished, budget);
        }
        self.budget = None;
    }
}

/// The keys of whoever asked last: they are made of names, and mostly asked for again.
///
/// Apart from the connection: most ask for none.
#[derive(Debug, Default)]
pub(super) struct AskedAs(Option<Box<LastAsk>>);

#[derive(Debug)]
struct LastAsk {
    /// In which state of the session's names it was last asked for with this app.
    naming: u64,
    app: Vec<u8>,
    /// Without a digest.
    ask: BudgetAsk,
}

impl AskedAs {
    fn with(
        &mut self,
        rule: Option<&Rule>,
        (naming, app): (u64, &[u8]),
        digest: Option<DigestKey>,
    ) -> BudgetAsk {
        let key = rule.map_or(NO_RULE_KEY, |rule| rule.key);
        if let Some(last) = &mut self.0
            && last.ask.rule == key
            && (last.naming == naming || last.app == app)
        {
            last.naming = naming;
            return BudgetAsk { digest, ..last.ask };
        }
        let (identity, app_key) = match rule {
            Some(rule) => (identity_key(rule, app), app_key(rule, app)),
            None => {
                let app = ruleless_app_key(app);
                (IdentityKey(app.0), app)
            }
        };
        let ask = BudgetAsk { rule: key, identity, app: app_key, digest: None };
        match &mut self.0 {
            Some(last) => {
                last.naming = naming;
                last.app.clear();
                last.app.extend_from_slice(app);
                last.ask = ask;
            }
            none => *none = Some(Box::new(LastAsk { naming, app: app.to_vec(), ask })),
        }
        BudgetAsk { digest, ..ask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
version: 1
clusters: { a: { listen: 127.0.0.1:1, primary: 127.0.0.1:2 } }
rules:
  - { name: one, match: { app: etl }, gate: none, permanent: true }
  - { name: other, gate: none, permanent: true }
";

    #[test]
    fn keys_are_those_of_the_rule_and_the_app_of_now_whoever_asked_before() {
        let policy = policy::load(FILE).unwrap().clusters[0].clone();
        let [one, other] = [0, 1].map(|index| policy.rule(index));
        assert!(one.is_some() && other.is_some());
        let digest = Some(DigestKey(7));
        let mut asked_as = AskedAs::default();
        let (mut naming, mut last): (_, &[u8]) = (0, b"");
        let asks: [(Option<&Rule>, &[u8]); 6] = [
            (one, b"etl"),
            (one, b"etl:a"),
            (other, b"etl:a"),
            (None, b"etl:a"),
            (None, b""),
            (one, b""),
        ];
        for ask in asks {
            for (rule, app) in [ask, ask, asks[0], ask] {
                // As sessions do: another number with another app, mostly the same with the same.
                naming += u64::from(last != app);
                last = app;
                let known = asked_as.with(rule, (naming, app), digest);
                assert_eq!(known, AskedAs::default().with(rule, (7, app), digest), "{app:?}");
            }
            naming += 1;
        }
        let etl: (u64, &[u8]) = (naming, b"etl");
        assert_eq!(asked_as.with(one, etl, None).digest, None, "it is the statement's own");
        let differ = asked_as.with(one, etl, digest).app != asked_as.with(other, etl, digest).app;
        assert!(differ, "the keys are the rule's");
    }
}
