//! What is done when a command is over.

use std::time::Duration;

use session::{Finished, StatementOutcome};
use sql::Class;
use tokio::time::Instant;
use wire::response_tracker::ResponseEnd;

use super::Connection;
use super::asking::{AdmissionRecord, Timing};
use super::departure::Departure;
use crate::cluster::PermitGuard;
use crate::registry::Control;

impl Connection {
    /// Counts a command that is over and gives its permit back when its transaction is over too.
    pub(super) fn finish(&mut self, finished: &Finished) {
        if let Some(permit) = self.permit.as_mut() {
            if let Some(response) = &finished.response {
                add(permit, finished.statement, response, self.timing.backend);
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

/// Adds to a permit what a command under it did. Rows that the server tells count, whatever the command was taken for.
pub(super) fn add(
    permit: &mut PermitGuard,
    statement: Option<StatementOutcome>,
    end: &ResponseEnd,
    took: Duration,
) {
    if only_reads(statement) {
        permit.note_reading(took);
    }
    permit.add(end.changed_rows(), took, end.error.is_some());
}

/// Whether nothing of it is for replicas to apply, however long it takes. What is no statement changes nothing.
fn only_reads(statement: Option<StatementOutcome>) -> bool {
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

#[cfg(test)]
mod tests {
    use admission::Mode;

    use super::*;

    #[test]
    fn only_what_cannot_write_is_nothing_to_a_replica() {
        let of = |class| {
            let (rule, watched, mode) = (None, None, Mode::Enforce);
            let (never_held, long_data) = (false, 0);
            only_reads(Some(StatementOutcome { rule, watched, class, mode, never_held, long_data }))
        };
        assert!(of(Class::Read) && of(Class::LockingRead));
        for class in [Class::Write, Class::Load, Class::Call, Class::Ddl, Class::Unknown] {
            assert!(!of(class), "{class:?}");
        }
        assert!(only_reads(None), "COM_STMT_FETCH");
    }
}
