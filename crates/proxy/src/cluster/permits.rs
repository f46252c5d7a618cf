//! Permits, as connections hold them.

use std::sync::Arc;
use std::time::Duration;

use admission::{Outcome, Permit};

use super::Cluster;

/// A permit that goes back to the controller when it is dropped.
#[must_use]
pub struct PermitGuard {
    pub(super) cluster: Arc<Cluster>,
    pub(super) permit: Option<Permit>,
    outcome: Outcome,
    /// From so many rows on, the pace is told of them before the work is over: it doubles each
    /// time, so that a transaction of any length takes the controller's lock a few times only.
    charge_at: u64,
}

/// Work of fewer rows is charged when it is over.
const CHARGE_ROWS_MIN: u64 = 16;

impl PermitGuard {
    pub(super) fn new(cluster: &Arc<Cluster>, permit: Permit) -> Self {
        Self {
            cluster: cluster.clone(),
            permit: Some(permit),
            outcome: Outcome::default(),
            charge_at: CHARGE_ROWS_MIN,
        }
    }

    /// How long the statement waited for it.
    pub fn waited(&self) -> Duration {
        self.permit.as_ref().map_or(Duration::ZERO, Permit::waited)
    }

    /// Why it was given although the checks had not been won: `timeout`.
    pub fn reason(&self) -> Option<admission::Reason> {
        self.permit.as_ref().and_then(Permit::reason)
    }

    /// So much of the server's time that is added was for reading.
    pub fn note_reading(&mut self, server_time: Duration) {
        self.outcome.reading = self.outcome.reading.saturating_add(server_time);
    }

    /// Adds what one statement under this permit did; a transaction has several.
    pub fn add(&mut self, affected_rows: u64, server_time: Duration, failed: bool) {
        self.outcome.affected_rows = self.outcome.affected_rows.saturating_add(affected_rows);
        self.outcome.server_time = self.outcome.server_time.saturating_add(server_time);
        self.outcome.error |= failed;
        let rows = self.outcome.affected_rows;
        if rows >= self.charge_at
            && let Some(permit) = self.permit.as_mut()
        {
            self.cluster.control(|controller, now| controller.charge(now, permit, rows));
            self.charge_at = rows.saturating_mul(2);
        }
    }
}

impl Drop for PermitGuard {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            let outcome = self.outcome;
            self.cluster.control(|controller, now| controller.complete(now, permit, outcome));
        }
    }
}

impl std::fmt::Debug for PermitGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PermitGuard").field("permit", &self.permit).finish_non_exhaustive()
    }
}
