//! Whether a cluster's primary was reached lately, by anybody: clients that connect, and probes.
//!
//! What counts is that the server has said something, be it an error: one that refuses the probe's
//! password is there for clients. And it is unreachable only when somebody has tried in vain: where
//! nobody tries, nobody knows, and that is no reason to send clients away.

use std::time::Duration;

use admission::MonoTime;
use parking_lot::Mutex;

/// For how long a contact tells something. Heartbeats may be a second apart and may take five on a
/// loaded server; attempts that fail are two and a half seconds apart.
pub const LATELY: Duration = Duration::from_secs(6);

/// Whether the primary can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reachability {
    /// It said something so long ago.
    Reached(Duration),
    /// Lately it was tried in vain.
    Unreached(String),
    /// The process has just started, and the probe's first answers are not there yet.
    Awaited,
    /// Nobody has tried lately: there is no probe, or it has no password to try with.
    Unknown,
}

/// Who has reached the primary, and who has not.
#[derive(Debug, Default)]
pub(super) struct Contacts {
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    reached_at: Option<MonoTime>,
    failed: Option<(MonoTime, String)>,
}

impl Contacts {
    pub(super) fn reached(&self, now: MonoTime) {
        self.last.lock().reached_at = Some(now);
    }

    pub(super) fn failed(&self, now: MonoTime, why: String) {
        self.last.lock().failed = Some((now, why));
    }

    /// How it is now; `awaited` until when the first answer of a probe is waited for.
    pub(super) fn look(&self, now: MonoTime, awaited_until: Option<MonoTime>) -> Reachability {
        let last = self.last.lock();
        let lately = |at: MonoTime| now.saturating_since(at) <= LATELY;
        match (last.reached_at, &last.failed) {
            (Some(at), _) if lately(at) => Reachability::Reached(now.saturating_since(at)),
            (_, Some((at, why))) if lately(*at) => Reachability::Unreached(why.clone()),
            (None, None) if awaited_until.is_some_and(|until| now < until) => Reachability::Awaited,
            (Some(_) | None, Some(_) | None) => Reachability::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    #[test]
    fn without_anybody_who_tries_nobody_knows() {
        let contacts = Contacts::default();
        assert_eq!(contacts.look(at(0), None), Reachability::Unknown);
        assert_eq!(contacts.look(at(1), Some(at(6))), Reachability::Awaited);
        assert_eq!(contacts.look(at(6), Some(at(6))), Reachability::Unknown);
        contacts.reached(at(7));
        assert_eq!(contacts.look(at(100), Some(at(6))), Reachability::Unknown);
    }

    #[test]
    fn a_failure_counts_once_nobody_has_reached_it_for_some_time_and_not_for_ever() {
        let contacts = Contacts::default();
        contacts.failed(at(0), "refused".to_owned());
        assert_eq!(contacts.look(at(1), Some(at(6))), Reachability::Unreached("refused".into()));
        contacts.reached(at(2));
        contacts.failed(at(3), "refused".to_owned());
        assert_eq!(contacts.look(at(4), None), Reachability::Reached(Duration::from_secs(2)));
        assert_eq!(contacts.look(at(9), None), Reachability::Unreached("refused".into()));
        assert_eq!(contacts.look(at(10), None), Reachability::Unknown);
    }
}
