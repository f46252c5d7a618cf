//! A statement is refused, by the queue or by a rule that denies.

use std::time::Duration;

use admission::{Mode, Reason, Refusal};
use policy::{Action as RuleAction, refusal};
use session::{Ask, Question};

use super::Fault;
use crate::connection::{Connection, Ended, errors};
use crate::registry::Inbox;
use crate::telemetry::StatementDecision;

/// Advised when the time of a drain is over: nobody knows when there will be somebody to ask.
const SHUTDOWN_RETRY_AFTER: Duration = Duration::from_secs(1);

impl Connection {
    /// A rule that denies: refused as a policy, whatever the load.
    pub(in crate::connection) async fn deny(
        &mut self,
        asked: Ask,
        control: &mut Inbox,
    ) -> Result<(), Ended> {
        self.admission.decision = StatementDecision::Rejected;
        self.admission.reason = Some(Reason::Deny);
        let Some(rule) = asked.rule.and_then(|index| self.policy.rule(index)) else {
            return Err(self.contradicted(&asked, Fault::NoSuchRule).await);
        };
        if !matches!(rule.action, RuleAction::Deny) {
            return Err(self.contradicted(&asked, Fault::RuleDoesNotDeny).await);
        }
        match rule.mode {
            Mode::Observe => match asked.question {
                Question::Rule => self.session.handle_admitted(asked),
                Question::Budgets | Question::Count => match self.ask(asked) {
                    None => {}
                    Some(unsettled) => return self.settle(unsettled, control).await,
                },
            },
            Mode::Enforce => {
                let denial = Refusal {
                    reason: Reason::Deny,
                    cause: None,
                    budget: None,
                    limit: None,
                    // The rule may have come while the statement waited.
                    waited: self.admission.waited().unwrap_or_default(),
                    retry_after: Duration::ZERO,
                };
                let answer = self.answer(&asked, Some(rule), &denial);
                self.session.handle_refused(asked, answer);
            }
        }
        Ok(())
    }

    /// Session and policy disagree about what was asked: nothing of it passes, and the connection
    /// ends. Nobody knows what else of it is wrong.
    pub(super) async fn contradicted(&mut self, asked: &Ask, fault: Fault) -> Ended {
        let cluster = &self.shared.cluster.name;
        self.shared.telemetry.internal_fault(cluster);
        tracing::error!(
            %cluster, peer = %self.peer, rule = ?asked.rule, fault = fault.as_str(),
            "a fault of Sluice's: the connection is ended, and its statement has not passed"
        );
        self.admission.decision = StatementDecision::Rejected;
        self.count_asked(asked);
        // The last answer, if its state allows one; either way it is over.
        drop(self.leave(&errors::internal_fault()).await);
        Ended::BySluice(fault)
    }

    pub(super) async fn refuse(&mut self, asked: Ask, refused: &Refusal) -> Result<(), Ended> {
        self.admission.decision = StatementDecision::Rejected;
        self.admission.reason = Some(refused.reason);
        if refused.reason == Reason::Shutdown {
            self.leaving.note_refused();
        }
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        if rule.is_none() && asked.rule.is_some() {
            return Err(self.contradicted(&asked, Fault::NoSuchRule).await);
        }
        let now = self.shared.cluster.rule_time();
        let refused = &refusal::as_long_as_it_stands(rule, *refused, now);
        let answer = self.answer(&asked, rule, refused);
        self.appoint(&asked, refused);
        self.session.handle_refused(asked, answer);
        Ok(())
    }

    /// The time of a drain is over while the statement waits: it is refused as at the beginning of
    /// one, and the connection ends with that.
    pub(super) async fn refuse_and_leave(&mut self, asked: &Ask) -> Result<(), Ended> {
        self.admission.decision = StatementDecision::Rejected;
        self.admission.reason = Some(Reason::Shutdown);
        let rule = asked.rule.and_then(|index| self.policy.rule(index));
        if rule.is_none() && asked.rule.is_some() {
            return Err(self.contradicted(asked, Fault::NoSuchRule).await);
        }
        let refusal = Refusal {
            reason: Reason::Shutdown,
            cause: None,
            budget: None,
            limit: None,
            waited: self.admission.queued.or(self.admission.paused).unwrap_or_default(),
            retry_after: SHUTDOWN_RETRY_AFTER,
        };
        let answer = self.answer(asked, rule, &refusal);
        self.count_asked(asked);
        self.leave(&answer).await
    }
}
