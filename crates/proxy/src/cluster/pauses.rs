//! Who pauses: statements that are kept outside of the queue, by their rule's `speed` or because
//! they came sooner than they were told. The controller knows nothing of them, so they are listed
//! here, for people. The lock is taken when a pause begins and when it ends; a session has one at a
//! time, so there are never more than sessions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use admission::{IdentityKey, MonoTime, Reason, RuleKey, RuleLimit, WaitingStatement};
use parking_lot::Mutex;

use super::held::{Introduction, QueuedName, WaitingClient};

/// The pauses of one cluster.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<Listed>);

#[derive(Debug, Default)]
struct Listed {
    pauses: BTreeMap<u64, WaitingClient>,
    next: u64,
}

/// A pause that is listed until this is dropped.
#[derive(Debug)]
pub(crate) struct PauseListed {
    pauses: Arc<Pauses>,
    key: u64,
}

/// A statement that pauses.
pub(crate) struct Pausing<'a> {
    pub(crate) rule: RuleKey,
    pub(crate) identity: IdentityKey,
    pub(crate) app: &'a [u8],
    pub(crate) introduction: Introduction,
    pub(crate) since: MonoTime,
    pub(crate) until: MonoTime,
    /// The rule's `speed`; none: it came too soon.
    pub(crate) limit: Option<RuleLimit>,
}

impl Pauses {
    /// Everybody who pauses, in the order in which they began to.
    pub(super) fn all(&self) -> Vec<WaitingClient> {
        self.0.lock().pauses.values().cloned().collect()
    }

    /// Lists a pause that begins.
    pub(crate) fn list(self: &Arc<Self>, pausing: Pausing<'_>) -> PauseListed {
        let Pausing { rule, identity, app, introduction, since, until, limit } = pausing;
        let waiting = WaitingStatement {
            ticket: None,
            rule,
            identity,
            arrived: since,
            deadline: until,
            reason: Reason::Paced,
            cause: None,
            budget: None,
            limit,
        };
        let introduction = OnceLock::from(introduction);
        let queued = Arc::new(QueuedName { app: app.into(), ahead: 0, introduction });
        let mut listed = self.0.lock();
        let key = listed.next;
        listed.next = key.saturating_add(1);
        listed.pauses.insert(key, WaitingClient { waiting, queued });
        PauseListed { pauses: Arc::clone(self), key }
    }
}

impl Drop for PauseListed {
    fn drop(&mut self) {
        self.pauses.0.lock().pauses.remove(&self.key);
    }
}
