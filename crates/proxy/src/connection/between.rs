//! Between two statements: what a session leaves, gives back and takes up when nothing is under way.

use tokio::time::Instant;

use super::leaving::{Between, Parting, Stay};
use super::{Connection, Ended};

impl Connection {
    /// Nothing is under way: leave if told to, give memory back, take the newest rules.
    pub(super) fn between_statements(&mut self) -> Result<Between, Ended> {
        if self.client_gone.is_some() {
            return Err(Ended::ByClient);
        }
        if self.kill_may_come {
            return Err(Ended::Quietly);
        }
        if self.client.bytes().is_empty() {
            match self.stay() {
                Stay::AsLongAsItLikes | Stay::Until(_) => {}
                // It is not quiet; the runtime has not looked yet.
                Stay::Over(Parting::Silent) if self.client.has_unread() => {
                    self.leaving.note_command();
                }
                Stay::Over(Parting::Silent) => return Ok(Between::Leaves),
                Stay::Over(Parting::Told) => return Ok(Between::IsTold),
            }
            self.client.rest();
            self.backend.rest();
            self.session.shrink();
            return Ok(Between::Stays);
        }
        // A command may come in pieces, and long after its first byte.
        self.take_newer_facts();
        if self.timing.started.is_none() {
            let now = Instant::now();
            self.timing.started = Some(now);
            let cluster = &self.shared.cluster;
            let now = cluster.clock().at(now);
            self.now = (cluster.rule_time_at(now), now);
            self.leaving.note_command();
            self.take_newer_policy();
        }
        Ok(Between::Stays)
    }

    pub(super) fn take_newer_policy(&mut self) {
        if let Some(policy) = self.shared.cluster.newer_policy(&self.policy) {
            self.policy = policy;
            self.latency.follow(&self.shared.cluster.latencies);
            self.session.handle_new_policy();
        }
    }

    pub(super) fn take_newer_facts(&mut self) {
        if let Some(known) = self.shared.cluster.facts.newer(&self.known, &self.birth.address) {
            self.known = known;
            self.session.handle_new_facts();
        }
    }
}
