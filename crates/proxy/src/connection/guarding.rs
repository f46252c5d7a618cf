//! What guards say of a command: counted, logged, and carried out.

use admission::Reason;
use policy::{GuardHit, GuardMode, write_guard_message};
use session::{Answer, ByGuards};

use super::Connection;
use crate::printable::Printable;

impl Connection {
    /// Refuses the command if a guard denies it, and lets it pass otherwise.
    pub(super) fn guard(&mut self, by_guards: ByGuards) {
        let report = &by_guards.report;
        if !self.admission.note_guarded() {
            let telemetry = &self.shared.telemetry;
            for hit in &report.hits {
                telemetry.guard_hit(&hit.guard, hit.check, hit.mode);
            }
            for (guard, check) in &report.unjudged {
                telemetry.guard_unjudged(guard, check);
            }
        }
        let quarantined = report.quarantined.as_ref();
        let guarded = report.refusal().map(|hit| (Reason::Guard, self.guard_answer(hit)));
        let refused = guarded.or_else(|| {
            let answer = self.quarantined_answer(quarantined?)?;
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

    /// The error of a refusal, and its one line in the log.
    fn guard_answer(&self, hit: &GuardHit) -> Answer {
        let id = rand::random::<u32>();
        let guards = &self.policy.guards;
        let mut message = Vec::new();
        write_guard_message(&mut message, guards, hit, id, self.session.app());
        let error = guards.error(hit);
        tracing::info!(
            cluster = %self.shared.cluster.name,
            id = format_args!("{id:08x}"),
            guard = %hit.guard,
            check = hit.check,
            offset = hit.offset,
            app = %Printable(self.session.app()),
            user = %Printable(self.session.user()),
            client = %self.peer,
            reason = Reason::Guard.as_str(),
            "statement refused"
        );
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
