//! What is done when a command is over.

use session::{Finished, StatementOutcome};
use sql::Class;
use tokio::time::Instant;

use super::Connection;
use super::asking::{AdmissionRecord, Timing};
use super::departure::Departure;
use crate::registry::Control;

impl Connection {
    /// Counts a command that is over and gives its permit back when its transaction is over too.
    pub(super) fn finish(&mut self, finished: &Finished) {
        if let Some(permit) = self.permit.as_mut() {
            if let Some(response) = &finished.response {
                let failed = response.error.is_some();
                if only_reads(finished.statement) {
                    permit.add_reading(self.timing.backend, failed);
                } else {
                    permit.add(response.changed_rows(), self.timing.backend, failed);
                }
            }
            if finished.admission_over {
                self.permit = None;
            }
        }
        self.latency.end(finished.statement.map(|_| self.timing.backend));
        self.note_worked(finished);
        self.note_cut_over();
        if let Some(statement) = finished.statement {
            if let Some(end) = &finished.response {
                self.insights.note_answer(end);
                self.timing.rows = end.affected_rows;
            }
            self.count(&statement);
        }
        self.record_fetched(finished);
        self.give_back_budgets(finished);
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
        self.end_runaway(finished);
    }
}

/// Whether nothing of it is for replicas to apply, however long it takes. What is no statement changes nothing.
pub(super) fn only_reads(statement: Option<StatementOutcome>) -> bool {
    statement.is_none_or(|statement| match statement.class {
        Class::Read | Class::LockingRead => true,
        Class::Write
        | Class::Load
        | Class::Call
        | Class::Ddl
        | Class::Unknown
        | Class::Transaction
        | Class::Session
        | Class::Admin => false,
    })
}
