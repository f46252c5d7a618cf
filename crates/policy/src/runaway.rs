//! Statements that take more than their rule lets them, and what is like them.
//!
//! Theory. A rule says how long its statements may be at the server, or how much they may answer. One
//! that goes over it is logged or killed; one that was killed may put its like in quarantine: what
//! has its digest, or its text, and is decided by the same rule, is refused until some time has
//! passed or somebody frees it. What is in quarantine belongs to what is in force, as rules do.

use std::sync::Arc;
use std::time::Duration;

use admission::RuleKey;

use crate::cluster::ClusterPolicy;
use crate::fnv;
use crate::rule::Rule;
use crate::time::UnixTime;

/// `runaway` of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runaway {
    /// Longest time at the server, from the last byte sent to it to the last one of its answer.
    pub elapsed: Option<Duration>,
    /// Most bytes of an answer.
    pub bytes_sent: Option<u64>,
    /// What is done with a statement that goes over it.
    pub action: RunawayAction,
    /// What becomes of statements like it.
    pub watch: Option<Watch>,
}

/// What is done with a statement that runs away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunawayAction {
    /// It is counted and logged.
    Log,
    /// KILL QUERY over the probe's account.
    Kill,
}

/// For how long statements like a killed one are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// What makes them alike.
    pub by: WatchBy,
    /// How long.
    pub lasts: Duration,
}

/// What makes statements alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WatchBy {
    /// The text without its values.
    Digest,
    /// The text, byte by byte.
    Text,
}

impl WatchBy {
    /// The word of the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Digest => "digest",
            Self::Text => "text",
        }
    }
}

/// What a statement is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Likeness {
    /// How its rule tells.
    pub by: WatchBy,
    /// The hash of that.
    pub hash: u64,
}

impl Likeness {
    /// The hash of a text as it stands.
    #[must_use]
    pub fn hash_of_text(text: &[u8]) -> u64 {
        fnv::plain(text)
    }
}

/// What is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Its number, the same as long as it stands.
    pub id: u64,
    /// The rule that it ran away from.
    pub rule: Arc<str>,
    /// The same, over reloads.
    pub key: RuleKey,
    /// What is refused.
    pub likeness: Likeness,
    /// Whose statement was killed.
    pub app: Box<[u8]>,
    /// When.
    pub since: UnixTime,
    /// From this second on it is free.
    pub until: UnixTime,
}

/// Everything in quarantine in one cluster, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quarantine {
    list: Arc<[Arc<Quarantined>]>,
    /// When the last of them is free.
    until: UnixTime,
    /// The highest number that was ever given.
    last_id: u64,
}

/// Most entries of a cluster: the oldest leave first. Each was a statement that was killed.
const QUARANTINE_MAX: usize = 1_000;

impl Quarantine {
    fn of(list: Vec<Arc<Quarantined>>, last_id: u64) -> Self {
        let until = list.iter().map(|entry| entry.until).max().unwrap_or_default();
        Self { list: list.into(), until, last_id }
    }

    /// A number for the next entry.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.last_id.saturating_add(1)
    }

    /// Whether somebody may be in it now: then what a statement is like has to be known.
    #[must_use]
    pub fn may_hold(&self, now: UnixTime) -> bool {
        now < self.until
    }

    /// The entry that refuses a statement of this rule.
    #[must_use]
    pub fn holds(
        &self,
        rule: RuleKey,
        likeness: Likeness,
        now: UnixTime,
    ) -> Option<&Arc<Quarantined>> {
        let is_like = |entry: &&Arc<Quarantined>| {
            entry.key == rule && entry.likeness == likeness && now < entry.until
        };
        self.list.iter().rev().find(is_like)
    }

    /// Everything in it now.
    pub fn standing(&self, now: UnixTime) -> impl Iterator<Item = &Arc<Quarantined>> {
        self.list.iter().filter(move |entry| now < entry.until)
    }

    /// The same and one more, in place of one like it; without those that are free.
    #[must_use]
    pub fn with(&self, new: Quarantined) -> Self {
        let is_other =
            |entry: &&Arc<Quarantined>| (entry.key, entry.likeness) != (new.key, new.likeness);
        let mut list: Vec<Arc<Quarantined>> =
            self.standing(new.since).filter(is_other).cloned().collect();
        if list.len() >= QUARANTINE_MAX {
            list.remove(0);
        }
        let last_id = self.last_id.max(new.id);
        list.push(Arc::new(new));
        Self::of(list, last_id)
    }

    /// The same without this entry. `None`: it is not there.
    #[must_use]
    pub fn without(&self, id: u64) -> Option<Self> {
        self.list.iter().any(|entry| entry.id == id).then(|| {
            Self::of(
                self.list.iter().filter(|entry| entry.id != id).cloned().collect(),
                self.last_id,
            )
        })
    }
}

impl ClusterPolicy {
    /// The same with this in quarantine.
    #[must_use]
    pub fn with_quarantine(&self, quarantine: Quarantine) -> Self {
        Self { quarantine, ..self.clone() }
    }
}

impl Rule {
    /// What makes statements of this rule alike, if one that is killed puts its like in quarantine.
    #[must_use]
    pub fn watches_by(&self) -> Option<WatchBy> {
        Some(self.runaway?.watch?.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: u64, hash: u64, since: i64) -> Quarantined {
        Quarantined {
            id,
            rule: "slow".into(),
            key: RuleKey(7),
            likeness: Likeness { by: WatchBy::Digest, hash },
            app: Box::default(),
            since: UnixTime(since),
            until: UnixTime(since.saturating_add(60)),
        }
    }

    #[test]
    fn what_is_caught_again_stands_once_and_what_is_free_leaves() {
        let quarantine = Quarantine::default().with(entry(1, 11, 0)).with(entry(2, 22, 10));
        let like = |hash| Likeness { by: WatchBy::Digest, hash };
        let holds = |quarantine: &Quarantine, hash, now| {
            quarantine.holds(RuleKey(7), like(hash), UnixTime(now)).map(|entry| entry.id)
        };
        assert_eq!(holds(&quarantine, 11, 59), Some(1));
        assert_eq!(holds(&quarantine, 11, 60), None);
        assert_eq!(quarantine.holds(RuleKey(8), like(11), UnixTime(1)), None);
        let text = Likeness { by: WatchBy::Text, hash: 11 };
        assert_eq!(quarantine.holds(RuleKey(7), text, UnixTime(1)), None);
        let again = quarantine.with(entry(3, 11, 65));
        assert_eq!(again.standing(UnixTime(66)).map(|entry| entry.id).collect::<Vec<_>>(), [2, 3]);
        let freed = again.without(3).unwrap();
        assert_eq!(holds(&freed, 11, 66), None);
        assert!(freed.may_hold(UnixTime(69)) && !freed.may_hold(UnixTime(70)));
        assert_eq!(freed.without(3), None);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut quarantine = Quarantine::default();
        for id in 0..1_500 {
            quarantine = quarantine.with(entry(id, id, 0));
        }
        let ids: Vec<u64> = quarantine.standing(UnixTime(1)).map(|entry| entry.id).collect();
        assert_eq!((ids.len(), ids[0]), (1_000, 500));
    }
}
