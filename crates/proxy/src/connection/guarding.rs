//! What guards say of a command: counted, logged, and carried out.

use admission::{Reason, Refusal};
use policy::{GuardHit, GuardMode, write_guard_message};
use session::{Answer, ByGuards};
use sql::Class;

use super::{Connection, Shared};
use crate::cluster::{GuardStop, Stop};
use crate::printable::Printable;
use crate::statement_log::Held;
use crate::telemetry::NO_RULE;

impl Connection {
    /// Refuses the command if a guard denies it, and lets it pass otherwise.
    pub(super) fn guard(&mut self, by_guards: ByGuards) {
        let report = &by_guards.report;
        if !self.admission.note_guarded() {
            let (telemetry, cluster) = (&self.shared.telemetry, &self.shared.cluster.name);
            for hit in &report.hits {
                telemetry.guard_hit(cluster, &hit.guard, hit.check, hit.mode);
            }
            for (guard, check) in &report.unjudged {
                telemetry.guard_unjudged(cluster, guard, check);
            }
        }
        let class = by_guards.class;
        let quarantined = report.quarantined.as_ref();
        let guarded = report.refusal().map(|hit| (Reason::Guard, self.guard_answer(hit, class)));
        let refused = guarded.or_else(|| {
            let answer = self.quarantined_answer(quarantined?, class)?;
            Some((Reason::Quarantined, answer))
        });
        match &refused {
            Some((reason, _)) => self.admission.note_refused(*reason),
            None => {
                let warned = report.hits.iter().find(|hit| hit.mode == GuardMode::Warn);
                if let Some(hit) = warned {
                    self.warn(hit);
                }
            }
        }
        let answer = refused.map(|(_, answer)| answer);
        self.session.handle_guarded(by_guards, answer);
    }

    /// The error of a refusal, its line in the log, and what is kept for whoever asks why.
    fn guard_answer(&self, hit: &GuardHit, class: Option<Class>) -> Answer {
        let id = rand::random::<u32>();
        let guards = &self.policy.guards;
        let mut message = Vec::new();
        // It may have come to be while its statement waited.
        let waited = self.admission.waited().unwrap_or_default();
        write_guard_message(&mut message, guards, hit, (id, waited), self.session.app());
        let refusal = Refusal {
            reason: Reason::Guard,
            cause: None,
            budget: None,
            limit: None,
            waited,
            retry_after: hit.retry_after(),
        };
        let stop = GuardStop {
            guard: hit.guard.clone(),
            check: hit.check,
            offset: hit.offset,
            advice: hit.advice(),
            reason: guards.of(hit).map(|guard| guard.reason.clone()).unwrap_or_default(),
        };
        let Shared { cluster, telemetry, .. } = &self.shared;
        let held = Held { guard: Some(&stop), ..self.held(NO_RULE, refusal.waited) };
        telemetry.statement_log.refused(cluster.now(), id, refusal.reason, &held);
        self.note_stopped((Stop::Guard(stop), class), None, id, &refusal);
        let error = guards.error(hit);
        Answer { errno: error.errno, sqlstate: error.sqlstate, message }
    }

    /// The first of a connection is logged.
    fn warn(&mut self, hit: &GuardHit) {
        if std::mem::replace(&mut self.guard_logged, true) {
            return;
        }
        tracing::warn!(
            cluster = %self.shared.cluster.name,
            guard = %hit.guard,
            check = hit.check,
            offset = hit.offset,
            app = %Printable(self.session.app()),
            user = %Printable(self.session.user()),
            client = %self.peer,
            "a guard would refuse a statement; further ones of this connection are only counted"
        );
    }
}
