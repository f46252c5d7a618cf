//! What is counted of a statement that is over, or refused.

use std::time::Duration;

use admission::{Mode, Passage, Reason};
use policy::{Action as RuleAction, Gated, Rule};
use session::{Ask, StatementOutcome};
use sql::Class;

use super::Connection;
use crate::printable::Printable;
use crate::telemetry::{NO_RULE, NO_RULE_KEY, StatementDecision, StatementEvent};

impl Connection {
    /// Counts a statement whose connection ends at its admission point.
    pub(super) fn count_asked(&mut self, asked: &Ask) {
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        let mode = rule.map_or(Mode::Enforce, |rule| rule.mode);
        let (rule, class) = (asked.rule, asked.class);
        let (watched, never_held, long_data) = (None, false, 0);
        self.count(&StatementOutcome { rule, watched, class, mode, never_held, long_data });
    }

    /// Counts a statement that is over.
    pub(super) fn count(&mut self, statement: &StatementOutcome) {
        let total = self.timing.started.map(|started| started.elapsed()).unwrap_or_default();
        let queued = self.admission.waited();
        let elsewhere = self.timing.backend.saturating_add(queued.unwrap_or_default());
        let reason = self.admission.why();
        // Guards are asked before the rules: what one refuses no rule has decided.
        let rule = statement.rule.filter(|_| reason != Some(Reason::Guard));
        let rule = rule.and_then(|index| self.policy.rule(index));
        let backend = (self.timing.backend > Duration::ZERO).then_some(self.timing.backend);
        self.shared.telemetry.statement(
            &mut self.labels,
            &StatementEvent {
                cluster: &self.shared.cluster.name,
                rule: rule.map_or(NO_RULE, |rule| &rule.name),
                rule_key: rule.map_or(NO_RULE_KEY, |rule| rule.key),
                app: self.session.app(),
                user: self.session.user(),
                naming: self.session.naming(),
                class: statement.class,
                decision: self.admission.decision,
                reason,
                mode: self.admission.mode(statement.mode),
                queued,
                backend,
                rows: self.timing.rows,
                overhead: total.saturating_sub(elsewhere),
            },
        );
        self.note_long_wait(rule, queued);
        let passed = self.admission.decision == StatementDecision::Admitted;
        if passed && self.shared.cluster.is_contended() {
            self.note_passed(statement.class, rule);
        }
        self.record(statement, queued);
    }

    /// A statement that did not have to ask may be why others wait.
    fn note_passed(&self, class: Class, rule: Option<&Rule>) {
        let passage = match rule.map(|rule| &rule.action) {
            Some(RuleAction::Exempt) => Passage::Exempt,
            None | Some(RuleAction::Throttle { gated: Gated::No, .. }) => Passage::Ungated,
            Some(RuleAction::Throttle { gated: Gated::Yes, .. } | RuleAction::Deny) => return,
        };
        match class {
            Class::Write | Class::Load | Class::Call | Class::Ddl | Class::Unknown => {
                self.shared.cluster.note_passed(passage, rule, self.session.app());
            }
            Class::Read
            | Class::LockingRead
            | Class::Transaction
            | Class::Session
            | Class::Admin => {}
        }
    }

    /// Counts claims that were ignored; the first of a connection is logged.
    pub(super) fn note_refused_claims(&mut self, claims: u32) {
        let user = self.session.user();
        for _ in 0..claims {
            self.shared.telemetry.claim_refused(user);
        }
        if !std::mem::replace(&mut self.claim_logged, true) {
            tracing::warn!(
                cluster = %self.shared.cluster.name,
                claimed = %Printable(self.session.refused_claim()),
                user = %Printable(user),
                client = %self.peer,
                "an identity claim that identity.claims does not allow was ignored; \
                 further ones of this connection are only counted"
            );
        }
    }
}
