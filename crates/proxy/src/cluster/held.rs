//! Who waits and who is held up, by name: for metrics and people.
//!
//! The queue may hold 10,000 waiters, and everybody who asks needs the lock that it is behind. So
//! it is read a few hundred waiters at a time, and all sorting and counting is done without it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use admission::{Blocked, IdentityKey, MonoTime, RuleKey, Waiting, WaitingStatement};
use parking_lot::MutexGuard;
use policy::Standing;
use policy::identity::Source;
use sql::Class;

use super::{Cluster, Gatekeeper, Waiter};

/// Waiters read at a time: some tens of microseconds.
const BATCH_LEN: usize = 256;

/// Identities held up that are named: more is not for reading.
pub const THROTTLED_MAX: usize = 200;

/// A statement that waits, and whose it is.
#[derive(Debug, Clone)]
pub struct WaitingClient {
    /// Since when, until when, and why.
    pub waiting: WaitingStatement,
    pub(super) queued: Arc<QueuedName>,
}

/// Who stands in the queue.
#[derive(Debug, Default)]
pub(super) struct QueuedName {
    pub(super) app: Box<[u8]>,
    /// How many waited when it came.
    pub(super) ahead: usize,
    /// Told by the connection once it waits.
    pub(super) introduction: OnceLock<Introduction>,
}

/// What a connection tells of its statement that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// Whose it is.
    pub client: ClientName,
    /// Where its app comes from.
    pub source: Option<Source>,
    /// Its class.
    pub class: Option<Class>,
}

impl From<ClientName> for Introduction {
    fn from(client: ClientName) -> Self {
        Self { client, source: None, class: None }
    }
}

/// A client, as people know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientName {
    /// The MySQL user.
    pub user: Box<[u8]>,
    /// Its address and port, or `unix`.
    pub address: Box<str>,
    /// The server's id of its connection, as in the server's process list.
    pub connection_id: u32,
}

/// An identity that asks in vain.
#[derive(Debug, Clone)]
pub struct Throttled {
    /// The rule it asks under.
    pub rule: RuleKey,
    /// The app as the client named it.
    pub app: Box<[u8]>,
    /// Since when nothing of its has been admitted; `None` where nobody watches for starvation.
    pub since: Option<MonoTime>,
    /// When it last asked.
    pub asked_at: MonoTime,
    /// Who of it waits now, and why. `None`: it was refused lately, and may come again.
    pub waiting: Option<Waiting>,
}

impl Waiter {
    /// What it waits for; `None` if it has its answer.
    pub(crate) fn waiting(&self) -> Option<WaitingStatement> {
        self.cluster.gatekeeper.lock().controller.waiter(self.ticket)
    }
}

impl QueuedName {
    pub(super) fn of(app: &[u8], ahead: usize) -> Self {
        Self { app: app.into(), ahead, introduction: OnceLock::new() }
    }
}

impl WaitingClient {
    /// The app, as the client named it.
    #[must_use]
    pub fn app(&self) -> &[u8] {
        &self.queued.app
    }

    /// How many waited when it came.
    #[must_use]
    pub fn ahead(&self) -> usize {
        self.queued.ahead
    }

    /// The client; `None` for a moment after it has begun to wait.
    #[must_use]
    pub fn client(&self) -> Option<&ClientName> {
        self.introduction().map(|told| &told.client)
    }

    /// What its connection has told of it; `None` for a moment after it has begun to wait.
    #[must_use]
    pub fn introduction(&self) -> Option<&Introduction> {
        self.queued.introduction.get()
    }
}

impl Waiter {
    /// How many waited when it came.
    pub(crate) fn ahead(&self) -> usize {
        self.name.ahead
    }

    /// Tells who it is that waits.
    pub fn introduce(&self, told: impl Into<Introduction>) {
        // A second time says the same.
        drop(self.name.introduction.set(told.into()));
    }
}

impl Cluster {
    /// Everybody who waits, in the order in which they began to. Those who come meanwhile may be
    /// missing.
    pub fn waiters(&self) -> Vec<WaitingClient> {
        let most = usize::try_from(self.policy().queue_len_max).unwrap_or(usize::MAX);
        let mut waiters: Vec<WaitingClient> = Vec::new();
        while waiters.len() < most {
            let before = waiters.len();
            // Nothing is allocated under the lock.
            waiters.reserve(BATCH_LEN);
            let after = waiters.last().and_then(|last| last.waiting.ticket);
            let gatekeeper = self.gatekeeper.lock();
            let Gatekeeper { controller, waiters: queued, .. } = &*gatekeeper;
            waiters.extend(controller.waiters_after(after).take(BATCH_LEN).map(|waiting| {
                let queued = waiting.ticket.and_then(|ticket| queued.get(&ticket));
                let queued = queued.map(|queued| Arc::clone(&queued.name)).unwrap_or_default();
                WaitingClient { waiting, queued }
            }));
            // Whoever waits for the lock comes before the next piece.
            MutexGuard::unlock_fair(gatekeeper);
            if waiters.len() < before.saturating_add(BATCH_LEN) {
                break;
            }
        }
        waiters
    }

    /// Everybody who waits, in the queue or in a pause before it.
    pub fn held_back(&self) -> Vec<WaitingClient> {
        let mut held = self.waiters();
        held.extend(self.pauses.all());
        held
    }

    /// Who is held up, of these waiters and of those who were refused lately: those first of whom
    /// nothing has passed for longest, at most [`THROTTLED_MAX`]; and how many there are in all.
    pub fn throttled(&self, waiters: &[WaitingClient]) -> (Vec<Throttled>, usize) {
        let mut held = held_up(groups(waiters), &self.blocked());
        // Whom a rule refused that is over since is not held by it any more.
        let in_force = self.rules_in_force();
        held.retain(|held| held.waiting.is_some() || in_force.contains(&held.key.0));
        held.sort_by_key(|held| held.since.unwrap_or(held.asked_at));
        let all = held.len();
        held.truncate(THROTTLED_MAX);
        let gatekeeper = self.gatekeeper.lock();
        let throttled = held.into_iter().map(|held| {
            let HeldUp { key: (rule, identity), since, asked_at, waiting } = held;
            let (waiting, app) = match waiting {
                Some((waiting, app)) => (Some(waiting), app),
                None => (None, gatekeeper.names.identity(identity).into()),
            };
            Throttled { rule, app, since, asked_at, waiting }
        });
        (throttled.collect(), all)
    }

    /// With the key of those that no rule holds, but budgets.
    fn rules_in_force(&self) -> HashSet<RuleKey> {
        let policy = self.policy();
        let now = self.rule_time();
        let in_force = policy.rules.iter().filter(|rule| rule.standing(now) == Standing::InForce);
        in_force.map(|rule| rule.key).chain([RuleKey(0)]).collect()
    }

    fn blocked(&self) -> Vec<Blocked> {
        let mut blocked: Vec<Blocked> = Vec::new();
        loop {
            let before = blocked.len();
            blocked.reserve(BATCH_LEN);
            let after = blocked.last().map(|last| (last.rule, last.identity));
            let gatekeeper = self.gatekeeper.lock();
            let further = gatekeeper.controller.blocked_after(self.clock.now(), after);
            blocked.extend(further.take(BATCH_LEN));
            MutexGuard::unlock_fair(gatekeeper);
            if blocked.len() < before.saturating_add(BATCH_LEN) {
                return blocked;
            }
        }
    }
}

type Key = (RuleKey, IdentityKey);

/// An identity before it has a name.
struct HeldUp {
    key: Key,
    since: Option<MonoTime>,
    asked_at: MonoTime,
    waiting: Option<(Waiting, Box<[u8]>)>,
}

/// Who waits, and who is blocked without waiting now.
fn held_up(groups: Vec<(Waiting, Box<[u8]>)>, blocked: &[Blocked]) -> Vec<HeldUp> {
    let mut watched: HashMap<Key, &Blocked> =
        blocked.iter().map(|blocked| ((blocked.rule, blocked.identity), blocked)).collect();
    let mut held: Vec<HeldUp> = Vec::with_capacity(groups.len());
    for (waiting, app) in groups {
        let key = (waiting.rule, waiting.identity);
        let watched = watched.remove(&key);
        let since = watched.map(|watched| watched.since);
        let asked_at = watched.map_or(waiting.oldest, |watched| watched.asked_at);
        held.push(HeldUp { key, since, asked_at, waiting: Some((waiting, app)) });
    }
    held.extend(watched.into_iter().map(|(key, watched)| {
        let Blocked { since, asked_at, .. } = *watched;
        HeldUp { key, since: Some(since), asked_at, waiting: None }
    }));
    held
}

/// Waiters per rule and identity, with the app that each identity stands for.
pub(super) fn groups(waiters: &[WaitingClient]) -> Vec<(Waiting, Box<[u8]>)> {
    let apps: HashMap<Key, &[u8]> = waiters
        .iter()
        .map(|waiter| ((waiter.waiting.rule, waiter.waiting.identity), waiter.app()))
        .collect();
    let groups = Waiting::groups(waiters.iter().map(|waiter| waiter.waiting));
    let named = |waiting: Waiting| {
        let app = apps.get(&(waiting.rule, waiting.identity)).copied().unwrap_or_default();
        (waiting, app.into())
    };
    groups.into_iter().map(named).collect()
}
