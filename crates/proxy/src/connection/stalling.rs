//! A client that has sent a part of a statement and does not go on, while others wait for what it holds.
//!
//! A long statement has its permit, and its places in budgets, when as much of it is there as is
//! looked at; the rest is on its way then. Both servers wait for that as they do for the next
//! statement, up to `wait_timeout`, which is eight hours by default: `net_read_timeout` is not for
//! commands. Without Sluice that is nobody else's business. Here it is, so such a client has to go on:
//! with [`REST_LEN_MIN`] in each [`REST_PERIOD`] in which it is waited for. What counts is what comes
//! over the socket: a record of TLS (16 KiB), or a block of zstd (128 KiB), that comes over a slow line
//! is nothing until all of it is there.

use std::time::Duration;

use admission::Mode;
use session::Reads;
use tokio::time::Instant;

use super::{Connection, Ended, errors};
use crate::cluster::BudgetGuard;
use crate::printable::Printable;
use crate::stream::Stream;
use crate::telemetry::ConnectionRefusal;

/// MySQL's default of `net_read_timeout`.
const REST_PERIOD: Duration = Duration::from_secs(30);

/// What is more than a drip, in bytes: two thousand bits a second.
const REST_LEN_MIN: u64 = 8 * 1024;

/// What is waited for of the rest of a statement. Begins anew when that has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    until: Instant,
    /// In bytes.
    missing: u64,
    /// [`Stream::received`] of the client when that was looked at last.
    received: u64,
}

impl Rest {
    fn begin(client: &Stream, now: Instant) -> Self {
        let until = now + REST_PERIOD;
        Self { until, missing: REST_LEN_MIN, received: client.received() }
    }

    /// Whether something has come of which nothing can be read yet.
    pub(super) fn has_missed(&self, client: &Stream) -> bool {
        client.received() != self.received
    }

    /// Something has come, or may have. What was compressed counts as what it has become, where that
    /// is more.
    fn take(&mut self, client: &Stream, now: Instant) {
        let received = client.received();
        let come = received.wrapping_sub(std::mem::replace(&mut self.received, received));
        let read = u64::try_from(client.bytes().len()).unwrap_or(u64::MAX);
        self.missing = self.missing.saturating_sub(come.max(read));
        if self.missing == 0 {
            *self = Self::begin(client, now);
        }
    }
}

impl Connection {
    /// Until when the client has to go on with its statement, if it is in the middle of one and holds
    /// something.
    pub(super) fn rest_due(&mut self, reads: Reads) -> Option<Instant> {
        let holds = self.budget.is_some() || self.permit.is_some();
        if reads != Reads::Either || !holds || !self.session.awaits_rest() {
            self.rest = None;
            return None;
        }
        let now = Instant::now();
        // What went by while the server did not take it is not the client's.
        let kept = self.rest.filter(|rest| now < rest.until);
        Some(self.rest.insert(kept.unwrap_or_else(|| Rest::begin(&self.client, now))).until)
    }

    /// Whether others may wait for what it holds. Asks the controller.
    fn holds_others_up(&self) -> bool {
        let observes = || self.session.under_way().is_some_and(|it| it.mode == Mode::Observe);
        let has_place = self.budget.as_ref().is_some_and(BudgetGuard::holds_up);
        has_place || self.permit.is_some() && !observes()
    }

    /// Something has come, of the rest if that was waited for.
    pub(super) fn note_rest(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest.take(&self.client, Instant::now());
        }
    }

    /// It has not gone on, and is ended if that is anybody else's business. Of what the server has not
    /// got whole it runs nothing, so what it has taken is free at once. To be boxed.
    pub(super) async fn end_stalled(&mut self) -> Result<(), Ended> {
        if !self.holds_others_up() {
            self.rest = None;
            return Ok(());
        }
        let cluster = &self.shared.cluster.name;
        self.shared.telemetry.connection_refused(cluster, ConnectionRefusal::Stalled);
        tracing::warn!(
            %cluster,
            app = %Printable(self.session.app()),
            user = %Printable(self.session.user()),
            client = %self.peer,
            connection = self.session.connection_id(),
            "a client does not go on with a statement that holds others up: its connection is closed"
        );
        if let Some(mut budget) = self.budget.take() {
            budget.note(0, self.timing.backend, true);
        }
        self.permit = None;
        self.leave(&errors::read_interrupted()).await
    }
}
