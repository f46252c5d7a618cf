//! What is done when a command begins at the server, and when it is over.

use session::{Finished, StatementOutcome};
use tokio::time::Instant;

use super::Connection;
use super::asking::{AdmissionRecord, Timing};
use super::departure::Departure;
use crate::registry::Control;

impl Connection {
    /// The server has what signals may be made of.
    pub(super) fn note_begun(&mut self) {
        if let Some(StatementOutcome { rule, class, .. }) = self.session.under_way() {
            let rule = rule.and_then(|index| self.policy.rule(index));
            self.latency.begin(self.session.app(), rule.map(|rule| &*rule.name), class);
        }
    }

    /// Counts a command that is over and gives its permit back when its transaction is over too.
    pub(super) fn finish(&mut self, finished: &Finished) {
        if let Some(permit) = self.permit.as_mut() {
            if let Some(response) = &finished.response {
                permit.add(response.affected_rows, self.timing.backend, response.error.is_some());
            }
            if finished.admission_over {
                self.permit = None;
            }
        }
        self.give_back_budgets(finished);
        self.latency.end(finished.statement.map(|_| self.timing.backend));
        self.note_worked(finished);
        self.note_cut_over();
        if let Some(statement) = finished.statement {
            self.insights.response = finished.response;
            self.count(&statement);
        }
        self.insights.end_command();
        if finished.claims_refused > 0 {
            self.note_refused_claims(finished.claims_refused);
        }
        if let Some(kill) = finished.kill {
            let sent = self.timing.started.unwrap_or_else(Instant::now);
            let control = if kill.query_only { Control::KillQuery { sent } } else { Control::Kill };
            if let Ok(victim) = u32::try_from(kill.connection_id) {
                self.shared.cluster.registry.tell(victim, control);
            }
        }
        if let Some(change) = self.routine_change.take() {
            change.end();
        }
        self.client.end_stream();
        self.departure = Departure::default();
        self.admission = AdmissionRecord::default();
        self.timing = Timing::default();
    }
}
