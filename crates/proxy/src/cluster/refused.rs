//! Who is refused, by what, and since when: the first question of whoever is called at night.
//!
//! Of each app, user and cause there is one row with its number, so that a client that spins has one
//! and not thousands. A row is gone when nothing was added to it for [`KEPT`]: what is shown is what
//! goes on.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use admission::{MonoTime, Reason};
use parking_lot::Mutex;
use policy::QuarantineId;

use super::{Chain, Stop};

/// For how long nothing may be refused before what comes next counts as another beginning.
pub const KEPT: Duration = Duration::from_secs(600);

/// Rows that are told apart, at most: a megabyte with what led to the last of each. Names come from
/// clients.
const ROWS_MAX: usize = 500;

/// Statements of one app and user that were refused by one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The app as the client named it.
    pub app: Box<[u8]>,
    /// The MySQL user.
    pub user: Box<[u8]>,
    /// The rule; none where no rule matched, or none was asked.
    pub rule: Option<Arc<str>>,
    /// Why.
    pub reason: Reason,
    /// What has refused them.
    pub by: RefusedBy,
    /// How many there were since then.
    pub count: u64,
    /// When the first of them was refused.
    pub since: MonoTime,
    /// When the last one was.
    pub last: MonoTime,
    /// What the client of that was told as its id.
    pub last_id: u32,
}

/// What refuses statements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RefusedBy {
    /// The rule, by its dice, its gate or because it says so.
    Rule,
    /// This budget.
    Budget(Arc<str>),
    /// This guard, by this check.
    Guard(Arc<str>, &'static str),
    /// What is in quarantine like them.
    Quarantine(QuarantineId),
}

/// The rows of one cluster.
#[derive(Debug, Default)]
pub(super) struct RefusedBook {
    /// By the hash of what they are told apart by, which nobody can foresee.
    rows: Mutex<HashMap<u64, Row>>,
    hashed: RandomState,
}

#[derive(Debug)]
struct Row {
    told: Refused,
    /// What led to the last of them.
    chain: Arc<Chain>,
}

impl RefusedBook {
    /// A statement was refused for `reason`.
    pub(super) fn note(&self, chain: &Arc<Chain>, reason: Reason) {
        let Chain { app, client, rule, at, .. } = &**chain;
        let (user, rule, now) = (&client.user, rule.as_ref().map(|rule| &rule.name), *at);
        let by = RefusedBy::of(chain);
        let key = self.hashed.hash_one((app, user, rule, reason.as_str(), &by));
        let mut rows = self.rows.lock();
        if rows.len() >= ROWS_MAX && !rows.contains_key(&key) {
            make_room(&mut rows, now);
        }
        let row = rows.entry(key).or_insert_with(|| Row {
            told: Refused {
                app: app.clone(),
                user: user.clone(),
                rule: rule.cloned(),
                reason,
                by,
                count: 0,
                since: now,
                last: now,
                last_id: chain.id,
            },
            chain: chain.clone(),
        });
        let told = &mut row.told;
        if now.saturating_since(told.last) >= KEPT {
            (told.count, told.since) = (0, now);
        }
        told.count = told.count.saturating_add(1);
        (told.last, told.last_id) = (now, chain.id);
        row.chain = chain.clone();
    }

    /// The last of those that are meant. Each row has its own, whatever else is refused meanwhile.
    pub(super) fn last(&self, is_meant: impl Fn(&Chain) -> bool) -> Option<Arc<Chain>> {
        let rows = self.rows.lock();
        let meant = rows.values().map(|row| &row.chain).filter(|chain| is_meant(chain));
        meant.max_by_key(|chain| chain.seq).cloned()
    }

    /// The last of each row, of those with a number of at least `seq`.
    pub(super) fn since(&self, seq: u64) -> Vec<Arc<Chain>> {
        let rows = self.rows.lock();
        rows.values().map(|row| &row.chain).filter(|chain| chain.seq >= seq).cloned().collect()
    }

    /// Those that go on, the largest first.
    pub(super) fn rows(&self, now: MonoTime) -> Vec<Refused> {
        let mut rows = self.rows.lock();
        rows.retain(|_, row| now.saturating_since(row.told.last) < KEPT);
        let mut going_on: Vec<Refused> = rows.values().map(|row| row.told.clone()).collect();
        drop(rows);
        going_on.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.since.cmp(&b.since)));
        going_on
    }
}

impl RefusedBy {
    fn of(chain: &Chain) -> Self {
        match (&chain.stop, &chain.budget) {
            (Some(Stop::Guard(stop)), _) => Self::Guard(stop.guard.clone(), stop.check),
            (Some(Stop::Quarantine(like, _)), _) => Self::Quarantine(like.id()),
            (None, Some(budget)) => Self::Budget(budget.clone()),
            (None, None) => Self::Rule,
        }
    }
}

/// Forgets those that do not go on; if all do, the one that has been quiet for longest.
fn make_room(rows: &mut HashMap<u64, Row>, now: MonoTime) {
    rows.retain(|_, row| now.saturating_since(row.told.last) < KEPT);
    if rows.len() >= ROWS_MAX {
        let quiet = rows.iter().min_by_key(|(_, row)| row.told.last).map(|(key, _)| *key);
        quiet.and_then(|key| rows.remove(&key));
    }
}

#[cfg(test)]
mod tests;
