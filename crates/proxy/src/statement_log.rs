//! Lines of the log about single statements: those that were refused, those that waited long, and
//! those that ran away.
//!
//! A client that spins is refused thousands of times a second. So the first few of a rule and an
//! app have a line each, and the others one with their number ([`flood`]). Counters and histograms
//! are not made of these lines and miss nothing.

mod flood;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use admission::{MonoTime, Reason, RuleLimit};
use parking_lot::Mutex;
use policy::QuarantineId;
use policy::identity::TraceId;
use tokio::sync::Notify;

use self::flood::{Flood, Kind, Noted, Sum, Whose, Worth};
use crate::clock::Clock;
use crate::cluster::GuardStop;
use crate::printable::Printable;
use crate::socket::Peer;
use crate::telemetry::StatementDecision;

/// A statement that waited for less is not told of. People notice a second, and most rules let wait
/// for a few.
pub(crate) const LONG_WAIT: Duration = Duration::from_secs(1);

/// How often sums are looked for while there are any.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// A statement to tell of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'a> {
    pub(crate) cluster: &'a Arc<str>,
    pub(crate) rule: &'a str,
    /// The budget that had no room for it.
    pub(crate) budget: Option<&'a str>,
    /// The signal behind its reason.
    pub(crate) signal: Option<&'a str>,
    /// What of its own rule is behind it.
    pub(crate) limit: Option<RuleLimit>,
    /// The guard that refused it.
    pub(crate) guard: Option<&'a GuardStop>,
    /// What is in quarantine like it.
    pub(crate) quarantine: Option<QuarantineId>,
    pub(crate) app: &'a [u8],
    pub(crate) user: &'a [u8],
    pub(crate) client: Peer,
    /// The trace it belongs to, for whoever looks from the application's side.
    pub(crate) trace: Option<TraceId>,
    pub(crate) waited: Duration,
}

/// One that runs away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RanAway<'a> {
    pub(crate) cluster: &'a Arc<str>,
    pub(crate) rule: &'a str,
    pub(crate) app: &'a [u8],
    pub(crate) user: &'a [u8],
    pub(crate) client: Peer,
    pub(crate) connection: u32,
    /// As insights have it.
    pub(crate) digest: Option<u64>,
    /// The limit that it is over.
    pub(crate) limit: &'static str,
    pub(crate) elapsed: Duration,
    /// What is done with it.
    pub(crate) action: &'static str,
}

/// What is told of statements, and what of it is still to be told.
#[derive(Debug, Default)]
pub(crate) struct StatementLog {
    flood: Mutex<Flood>,
    /// There is something to look after.
    noted: Notify,
}

impl StatementLog {
    /// One was refused; `id` is in its error message too.
    pub(crate) fn refused(&self, now: MonoTime, id: u32, reason: Reason, held: &Held<'_>) {
        if self.note(now, Kind::Refused, Some(reason), held) == Noted::Counted {
            return;
        }
        let Held { cluster, rule, budget, guard, quarantine, app, user, client, .. } = held;
        let Held { signal, limit, trace, waited, .. } = held;
        tracing::info!(
            %cluster,
            id = format_args!("{id:08x}"),
            rule,
            budget,
            guard = guard.map(|stop| &*stop.guard),
            check = guard.map(|stop| stop.check),
            offset = guard.map(|stop| stop.offset),
            quarantine = quarantine.map(tracing::field::display),
            app = %Printable(app),
            user = %Printable(user),
            %client,
            reason = reason.as_str(),
            signal,
            limit = limit.map(RuleLimit::as_str),
            waited_ms = millis(*waited),
            trace_id = trace.map(tracing::field::display),
            "statement refused"
        );
    }

    /// One has waited for [`LONG_WAIT`] or more, and was not refused in the end.
    pub(crate) fn waited(
        &self,
        now: MonoTime,
        decision: StatementDecision,
        reason: Option<Reason>,
        held: &Held<'_>,
    ) {
        if self.note(now, Kind::Waited, reason, held) == Noted::Counted {
            return;
        }
        let Held { cluster, rule, app, user, client, trace, waited, .. } = held;
        tracing::info!(
            %cluster,
            rule,
            app = %Printable(app),
            user = %Printable(user),
            %client,
            decision = decision.as_str(),
            reason = reason.map(Reason::as_str),
            waited_ms = millis(*waited),
            trace_id = trace.map(tracing::field::display),
            "statement waited"
        );
    }

    /// One is over a limit of its rule: a rule that only watches may have thousands a second.
    pub(crate) fn ran_away(&self, now: MonoTime, of: &RanAway<'_>) {
        let &RanAway { cluster, rule, app, user, client, connection, digest, .. } = of;
        let &RanAway { limit, elapsed, action, .. } = of;
        let whose = Whose { kind: Kind::RanAway, cluster, rule, guard: None, app };
        let worth = Worth { reason: None, waited: elapsed, trace: None };
        if self.count(now, whose, worth) == Noted::Counted {
            return;
        }
        tracing::warn!(
            %cluster,
            rule,
            app = %Printable(app),
            user = %Printable(user),
            %client,
            connection,
            digest = digest.map(|digest| tracing::field::display(format!("{digest:016x}"))),
            limit,
            elapsed_ms = millis(elapsed),
            action,
            "a statement runs away"
        );
    }

    fn note(&self, now: MonoTime, kind: Kind, reason: Option<Reason>, held: &Held<'_>) -> Noted {
        let Held { cluster, rule, guard, app, waited, trace, .. } = *held;
        let worth = Worth { reason, waited, trace };
        let guard = guard.map(|stop| &*stop.guard);
        let whose = Whose { kind, cluster, rule, guard, app };
        self.count(now, whose, worth)
    }

    fn count(&self, now: MonoTime, whose: Whose<'_>, worth: Worth) -> Noted {
        let noted = self.flood.lock().note(now, whose, worth);
        self.noted.notify_one();
        noted
    }

    /// Tells of what had no line of its own, when it is time to; of the rest of it when this is
    /// dropped.
    ///
    /// # Cancellation
    /// Safe: what is left is told.
    pub(crate) async fn keep(self: Arc<Self>, clock: Clock) {
        let keeper = Keeper(self);
        let Keeper(log) = &keeper;
        loop {
            // Without a line to wait for there is nothing to look at.
            if log.flood.lock().is_empty() {
                log.noted.notified().await;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
            let sums = log.flood.lock().due(clock.now());
            sums.iter().for_each(tell);
        }
    }
}

/// Whoever keeps the log, until its end.
struct Keeper(Arc<StatementLog>);

impl Drop for Keeper {
    fn drop(&mut self) {
        let Self(log) = self;
        let sums = log.flood.lock().rest();
        sums.iter().for_each(tell);
    }
}

fn tell(sum: &Sum) {
    let Sum { kind, of, untold, longest, trace, by_reason } = sum;
    let whose = of.as_ref();
    let cluster = whose.map(|whose| &*whose.cluster);
    let rule = whose.map(|whose| &*whose.rule);
    let guard = whose.and_then(|whose| whose.guard.as_deref());
    let app = whose.map(|whose| tracing::field::display(Printable(&whose.app)));
    let longest_ms = millis(*longest);
    let trace_id = trace.map(tracing::field::display);
    let reasons = Counts(by_reason);
    match kind {
        Kind::Refused => tracing::info!(
            cluster, rule, guard, app, untold, %reasons, longest_ms, trace_id,
            "more statements refused"
        ),
        Kind::Waited => tracing::info!(
            cluster,
            rule,
            app,
            untold,
            longest_ms,
            trace_id,
            "more statements waited"
        ),
        Kind::RanAway => {
            tracing::warn!(cluster, rule, app, untold, longest_ms, "more statements run away");
        }
    }
}

/// `ratio=7,hold=2`.
struct Counts<'a>(&'a [(Reason, u64)]);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(counts) = self;
        for (index, (reason, count)) in counts.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{reason}={count}")?;
        }
        Ok(())
    }
}

/// As a number that JSON has.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
