//! What the log is told of a statement.

use std::time::Duration;

use admission::Mode;
use policy::Rule;

use super::super::{Connection, Shared};
use super::AdmissionRecord;
use crate::statement_log::{Held, LONG_WAIT};
use crate::telemetry::StatementDecision;

impl Connection {
    /// The statement under way, as the log names it.
    pub(in crate::connection) fn held<'a>(&'a self, rule: &'a str, waited: Duration) -> Held<'a> {
        Held {
            cluster: &self.shared.cluster.name,
            rule,
            budget: None,
            guard: None,
            quarantine: None,
            signal: None,
            limit: None,
            app: self.session.app(),
            user: self.session.user(),
            client: self.peer,
            trace: self.session.trace_id(),
            waited,
        }
    }

    /// A wait that somebody may look for. Who was refused after one has been told of.
    pub(in crate::connection) fn note_long_wait(
        &self,
        rule: Option<&Rule>,
        waited: Option<Duration>,
    ) {
        let Some((rule, waited)) = rule.zip(waited.filter(|waited| *waited >= LONG_WAIT)) else {
            return;
        };
        let AdmissionRecord { decision, reason, .. } = self.admission;
        let was_told = decision == StatementDecision::Rejected && reason.is_some();
        if was_told || rule.mode == Mode::Observe {
            return;
        }
        let Shared { cluster, telemetry, .. } = &self.shared;
        let held = self.held(&rule.name, waited);
        telemetry.statement_log.waited(cluster.now(), decision, self.admission.why(), &held);
    }
}
