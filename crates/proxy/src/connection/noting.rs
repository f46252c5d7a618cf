//! What led to a refusal or a long wait, told to whoever keeps it.

use std::time::Duration;

use admission::{Reason, Refusal};
use policy::{Action, Rule};
use session::Ask;

use super::Connection;
use crate::cluster::{Asker, Verdict};

impl Connection {
    /// The statement is refused, under the number that its client is told.
    pub(super) fn note_refusal(&self, asked: &Ask, rule: &Rule, id: u32, refused: &Refusal) {
        self.note_chain(asked, rule, Verdict::Refused(id, refused));
    }

    /// The statement is admitted; if it has waited long, that is kept.
    pub(super) fn note_long_wait(&self, asked: &Ask, waited: Duration, reason: Option<Reason>) {
        if self.shared.cluster.chains.is_worth(waited)
            && let Some(rule) = self.policy.rule(asked.rule)
        {
            self.note_chain(asked, rule, Verdict::Admitted(reason, waited));
        }
    }

    fn note_chain(&self, asked: &Ask, rule: &Rule, verdict: Verdict<'_>) {
        let ratio = match rule.action {
            Action::Throttle { terms, .. } => asked.priority.scale(terms.ratio).as_f64(),
            Action::Exempt | Action::Deny => 0.0,
        };
        let asker = Asker {
            app: self.session.app(),
            source: self.session.app_source(),
            client: self.client_name(),
            class: asked.class,
            arrived: self.admission.arrived(),
            ahead_at_first: self.admission.ahead,
            ratio,
            policy: &self.policy,
            rule,
        };
        self.shared.cluster.note_chain(asker, verdict);
    }
}
