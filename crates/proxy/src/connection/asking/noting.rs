//! The answer of a refusal; what led to it, or to a long wait, told to whoever keeps that.

use std::time::Duration;

use admission::{Reason, Refusal};
use policy::{Action, QuarantineId, Rule, refusal};
use session::{Answer, Ask};
use sql::Class;

use super::super::pausing::Place;
use super::super::{Connection, Shared};
use crate::cluster::{Asker, ClientName, Introduction, Stop, Verdict};
use crate::statement_log::Held;
use crate::telemetry::NO_RULE;

impl Connection {
    /// Who waits, for people.
    pub(super) fn client_name(&self) -> ClientName {
        ClientName {
            user: self.session.user().into(),
            address: self.peer.to_string().into(),
            connection_id: self.session.connection_id(),
        }
    }

    /// The same with what waits.
    pub(in super::super) fn introduction(&self, asked: &Ask) -> Introduction {
        let (client, source) = (self.client_name(), self.session.app_source());
        Introduction { client, source, class: Some(asked.class) }
    }

    /// The error of a refusal, and what the log has of it and what led to it.
    pub(super) fn answer(&self, asked: &Ask, rule: Option<&Rule>, refused: &Refusal) -> Answer {
        let (id, answer) = self.answer_unasked(rule, refused, None);
        self.note_refusal(asked, rule, id, refused);
        answer
    }

    /// The same for a statement that was not asked for, or is like what is in quarantine under this
    /// number; with the number that its client is told.
    pub(in super::super) fn answer_unasked(
        &self,
        rule: Option<&Rule>,
        refused: &Refusal,
        quarantine: Option<QuarantineId>,
    ) -> (u32, Answer) {
        let id = rand::random::<u32>();
        let mut message = Vec::new();
        refusal::write_message(&mut message, &self.policy, rule, id, self.session.app(), refused);
        let Shared { cluster, telemetry, .. } = &self.shared;
        let budget = refused.budget.and_then(|key| self.policy.budgets.get(key));
        let held = self.held(rule.map_or(NO_RULE, |rule| &rule.name), refused.waited);
        let signal = refused.cause.and_then(|cause| self.policy.signal(cause.signal));
        let held = Held {
            budget: budget.map(|budget| &*budget.name),
            signal: signal.map(|signal| &*signal.name),
            limit: refused.limit,
            quarantine,
            ..held
        };
        telemetry.statement_log.refused(cluster.now(), id, refused.reason, &held);
        let profile = refusal::profile(rule, refused.reason);
        (id, Answer { errno: profile.errno, sqlstate: profile.sqlstate, message })
    }

    /// The statement is refused, under the number that its client is told.
    fn note_refusal(&self, asked: &Ask, rule: Option<&Rule>, id: u32, refused: &Refusal) {
        self.note_chain(asked, rule, Verdict::Refused(id, refused));
    }

    /// The statement is admitted; if it has waited long, that is kept.
    pub(super) fn keep_long_wait(&self, asked: &Ask, waited: Duration, reason: Option<Reason>) {
        if self.shared.cluster.chains.is_worth(waited) {
            let rule = asked.rule.and_then(|index| self.policy.rule(index));
            self.note_chain(asked, rule, Verdict::Admitted(reason, waited));
        }
    }

    /// Its client leaves; if it has waited long, what for is kept.
    pub(super) fn keep_left(&self, asked: &Ask, place: &Place) {
        let Place::InQueue(waiter) = place else { return };
        let waited = self.admission.queued.unwrap_or_default();
        if !self.shared.cluster.chains.is_worth(waited) {
            return;
        }
        if let Some(waiting) = waiter.waiting() {
            let rule = asked.rule.and_then(|index| self.policy.rule(index));
            self.note_chain(asked, rule, Verdict::Left(&waiting, waited));
        }
    }

    /// The statement has only paused for its rule's `speed`; if that was long, it is kept.
    pub(super) fn keep_long_pause(&self, asked: &Ask) {
        if self.admission.has_paused() && self.admission.queued.is_none() {
            let waited = self.admission.waited().unwrap_or_default();
            self.keep_long_wait(asked, waited, Some(Reason::Paced));
        }
    }

    fn note_chain(&self, asked: &Ask, rule: Option<&Rule>, verdict: Verdict<'_>) {
        let ratio = match rule.map(|rule| rule.action) {
            Some(Action::Throttle { terms, .. }) => asked.priority.scale(terms.ratio).as_f64(),
            Some(Action::Exempt | Action::Deny) | None => 0.0,
        };
        let asker = Asker {
            app: self.session.app(),
            source: self.session.app_source(),
            client: self.client_name(),
            class: Some(asked.class),
            stop: None,
            arrived: self.admission.arrived,
            ahead_at_first: self.admission.ahead,
            ratio,
            policy: &self.policy,
            rule,
        };
        self.shared.cluster.note_chain(asker, verdict);
    }

    /// A guard, or the quarantine, has refused it before its rule was asked.
    pub(in super::super) fn note_stopped(
        &self,
        (stop, class): (Stop, Option<Class>),
        rule: Option<&Rule>,
        id: u32,
        refused: &Refusal,
    ) {
        let asker = Asker {
            app: self.session.app(),
            source: self.session.app_source(),
            client: self.client_name(),
            class,
            stop: Some(stop),
            arrived: self.admission.arrived,
            ahead_at_first: self.admission.ahead,
            ratio: 0.0,
            policy: &self.policy,
            rule,
        };
        self.shared.cluster.note_chain(asker, Verdict::Refused(id, refused));
    }
}
