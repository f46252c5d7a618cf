//! Statements that take more than their rule lets them, and what is like them.
//!
//! Theory. A rule says how long its statements may be at the server, or how much they may answer. One
//! that goes over it is logged, killed, or goes on. One that was killed may put its like in quarantine:
//! what has its digest, or its text, and is decided by the same rule, is refused until some time has
//! passed or somebody frees it. The like of one that goes on but is to come last (`deprioritise`) is in
//! quarantine too, and one of it at a time may be at the server: it has a budget of its own
//! ([`Quarantined::lane`]). What is in quarantine belongs to what is in force, as rules do. How long it
//! stays there goes by the monotonic clock: no step of the wall clock frees it, or keeps it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use admission::{BudgetUse, MonoTime, RuleKey};
use sql::Class;

use crate::budget::lane_key;
use crate::cluster::ClusterPolicy;
use crate::fnv;
use crate::rule::Rule;
use crate::rules::Rules;

/// `runaway` of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runaway {
    /// Longest time at the server, from the last byte sent to it to the last one of its answer.
    pub elapsed: Option<Duration>,
    /// Most bytes of an answer.
    pub bytes_sent: Option<u64>,
    /// Most rows of an answer, of all its result sets together.
    pub rows_sent: Option<u64>,
    /// What is done with a statement that goes over it.
    pub action: RunawayAction,
    /// What becomes of statements like it.
    pub watch: Option<Watch>,
}

impl Runaway {
    /// Its limits and what is done, for people: `after 2s or above 10 rows: kill`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let elapsed = self.elapsed.map(|elapsed| format!("after {elapsed:?}"));
        let bytes = self.bytes_sent.map(|most| format!("above {most} bytes"));
        let rows = self.rows_sent.map(|most| format!("above {most} rows"));
        let limits: Vec<String> = [elapsed, bytes, rows].into_iter().flatten().collect();
        format!("{}: {}", limits.join(" or "), self.action.as_str())
    }
}

/// What is done with a statement that runs away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunawayAction {
    /// It is counted and logged.
    Log,
    /// KILL QUERY over the probe's account.
    Kill,
    /// It goes on; of what is like it, one at a time is at the server.
    Deprioritise,
}

impl RunawayAction {
    /// The word of the file.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Kill => "kill",
            Self::Deprioritise => "deprioritise",
        }
    }

    /// What the word says.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Log, Self::Kill, Self::Deprioritise].into_iter().find(|it| it.as_str() == word)
    }
}

/// Whether a statement of this class may be killed at all: never what ends a transaction.
#[must_use]
pub fn is_killable(class: Class) -> bool {
    match class {
        Class::Transaction | Class::Session => false,
        Class::Read
        | Class::LockingRead
        | Class::Write
        | Class::Load
        | Class::Call
        | Class::Ddl
        | Class::Admin
        | Class::Unknown => true,
    }
}

/// For how long statements like one that ran away are refused, or come last.
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

    /// What the word says.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Digest, Self::Text].into_iter().find(|it| it.as_str() == word)
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

/// The name of what is in quarantine: its rule and what it is like, as twelve hexadecimal digits. So it
/// is the same in every process, and never another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuarantineId(u64);

/// Bits of such a name.
const ID_BITS: u32 = 48;

impl fmt::Display for QuarantineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:012x}", self.0)
    }
}

impl FromStr for QuarantineId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

/// What is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The rule that it ran away from.
    pub rule: Arc<str>,
    /// The same, over reloads.
    pub key: RuleKey,
    /// What is refused, or comes last.
    pub likeness: Likeness,
    /// Which of the two: what its rule does with what runs away.
    pub action: RunawayAction,
    /// Whose statement ran away.
    pub app: Box<[u8]>,
    /// When, or when this process took it over from the one before.
    pub since: MonoTime,
    /// How long it had stood by then.
    pub stood: Duration,
    /// From then on it is free.
    pub until: MonoTime,
}

impl Quarantined {
    /// What it is called.
    #[must_use]
    pub fn id(&self) -> QuarantineId {
        QuarantineId(self.lane().instance >> (u64::BITS - ID_BITS))
    }

    /// How long it stands in all.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.until.saturating_since(self.since).saturating_add(self.stood)
    }

    /// The same as its rule has it: with this action, standing for so long in all.
    fn under(entry: &Arc<Self>, (action, lasts): (RunawayAction, Duration)) -> Arc<Self> {
        if (entry.action, entry.lasts()) == (action, lasts) {
            return entry.clone();
        }
        let until = entry.since.saturating_add(lasts.saturating_sub(entry.stood));
        Arc::new(Self { action, until, ..Self::clone(entry) })
    }

    /// The budget that lets one statement like it be at the server at a time.
    #[must_use]
    pub fn lane(&self) -> BudgetUse {
        let Likeness { by, hash } = self.likeness;
        let parts = [self.key.0.to_le_bytes(), hash.to_le_bytes()];
        let instance = fnv::hash(&[by.as_str().as_bytes(), parts.as_flattened()]);
        BudgetUse { budget: lane_key(), instance }
    }
}

/// Everything in quarantine in one cluster, the newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quarantine {
    list: Arc<[Arc<Quarantined>]>,
    /// When the last of them is free.
    until: MonoTime,
    /// When the first of those that come last is.
    lane_ends: Option<MonoTime>,
}

/// Most entries of a cluster: the oldest leave first. Each was a statement that was killed.
const QUARANTINE_MAX: usize = 1_000;

/// Most of a second that are to come last: each has whoever waits be judged again.
const DEPRIORITISED_PER_S_MAX: usize = 20;

impl Quarantine {
    fn of(list: Vec<Arc<Quarantined>>) -> Self {
        let until = list.iter().map(|entry| entry.until).max().unwrap_or_default();
        let comes_last = |entry: &&Arc<Quarantined>| entry.action == RunawayAction::Deprioritise;
        let lane_ends = list.iter().filter(comes_last).map(|entry| entry.until).min();
        Self { list: list.into(), until, lane_ends }
    }

    /// What stood in an earlier process, the oldest first.
    #[must_use]
    pub fn restored(mut entries: Vec<Quarantined>) -> Self {
        entries.sort_by_key(|entry| (Reverse(entry.stood), entry.id()));
        let list = entries.split_off(entries.len().saturating_sub(QUARANTINE_MAX));
        Self::of(list.into_iter().map(Arc::new).collect())
    }

    /// Whether nothing has changed since it was that one.
    #[must_use]
    pub fn is_still(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list)
    }

    /// Whether somebody may be in it now: then what a statement is like has to be known.
    #[must_use]
    pub fn may_hold(&self, now: MonoTime) -> bool {
        now < self.until
    }

    /// The entry that a statement of this rule is like.
    #[must_use]
    pub fn holds(
        &self,
        rule: RuleKey,
        likeness: Likeness,
        now: MonoTime,
    ) -> Option<&Arc<Quarantined>> {
        let is_like = |entry: &&Arc<Quarantined>| {
            entry.key == rule && entry.likeness == likeness && now < entry.until
        };
        self.list.iter().rev().find(is_like)
    }

    /// Everything in it now.
    pub fn standing(&self, now: MonoTime) -> impl Iterator<Item = &Arc<Quarantined>> {
        self.list.iter().filter(move |entry| now < entry.until)
    }

    /// When somebody who comes last need not any more: to be looked at then, for who stands in that line
    /// waits for nothing. `None`: nobody comes last.
    #[must_use]
    pub fn lane_ends(&self) -> Option<MonoTime> {
        self.lane_ends
    }

    /// The same without what is free by now.
    #[must_use]
    pub fn at(&self, now: MonoTime) -> Self {
        Self::of(self.standing(now).cloned().collect())
    }

    /// Whether an entry changes enough to be put in force. Killing is slow, and always worth it. What
    /// goes on is caught as often as it is sent: what stands for half its time yet is let stand, and
    /// some entries a second are enough.
    #[must_use]
    pub fn is_worth(&self, new: &Quarantined) -> bool {
        match new.action {
            RunawayAction::Log | RunawayAction::Kill => return true,
            RunawayAction::Deprioritise => {}
        }
        let lasts = new.until.saturating_since(new.since);
        let stands = self.holds(new.key, new.likeness, new.since).is_some_and(|entry| {
            let left = entry.until.saturating_since(new.since);
            entry.action == new.action && left.saturating_mul(2) > lasts
        });
        let is_of_late = |entry: &&Arc<Quarantined>| {
            new.since.saturating_since(entry.since) < Duration::from_secs(1)
        };
        let of_late = self.list.iter().rev().take_while(is_of_late).count();
        !stands && of_late < DEPRIORITISED_PER_S_MAX
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
        list.push(Arc::new(new));
        Self::of(list)
    }

    /// What of it stands under these rules: that whose rule watches for it, with the action that it has,
    /// and for as long as it says from when it was caught.
    #[must_use]
    pub fn under(&self, rules: &Rules, now: MonoTime) -> Self {
        if !self.may_hold(now) {
            return Self::default();
        }
        let watch = |rule: &Rule| {
            let runaway = rule.runaway?;
            Some((rule.key, (runaway.action, runaway.watch?)))
        };
        let watches: HashMap<RuleKey, (RunawayAction, Watch)> =
            rules.iter().filter_map(watch).collect();
        let stands = |entry: &Arc<Quarantined>| {
            let (action, watch) = watches.get(&entry.key)?;
            let is_like = watch.by == entry.likeness.by;
            let stands = is_like.then(|| Quarantined::under(entry, (*action, watch.lasts)));
            stands.filter(|entry| now < entry.until)
        };
        let list: Vec<Arc<Quarantined>> = self.standing(now).filter_map(stands).collect();
        if *list == *self.list { self.clone() } else { Self::of(list) }
    }

    /// The same without this entry. `None`: it is not there.
    #[must_use]
    pub fn without(&self, id: QuarantineId) -> Option<Self> {
        let others: Vec<Arc<Quarantined>> =
            self.list.iter().filter(|entry| entry.id() != id).cloned().collect();
        (others.len() < self.list.len()).then(|| Self::of(others))
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

    fn at(second: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_secs(second))
    }

    fn entry(hash: u64, since: u64) -> Quarantined {
        Quarantined {
            rule: "slow".into(),
            key: RuleKey(7),
            likeness: Likeness { by: WatchBy::Digest, hash },
            action: RunawayAction::Kill,
            app: Box::default(),
            since: at(since),
            stood: Duration::ZERO,
            until: at(since.saturating_add(60)),
        }
    }

    #[test]
    fn what_is_caught_again_stands_once_and_what_is_free_leaves() {
        let quarantine = Quarantine::default().with(entry(11, 0)).with(entry(22, 10));
        let like = |hash| Likeness { by: WatchBy::Digest, hash };
        let holds = |quarantine: &Quarantine, hash, now| {
            quarantine.holds(RuleKey(7), like(hash), at(now)).map(|entry| entry.since)
        };
        assert_eq!(holds(&quarantine, 11, 59), Some(at(0)));
        assert_eq!(holds(&quarantine, 11, 60), None);
        assert_eq!(quarantine.holds(RuleKey(8), like(11), at(1)), None);
        let text = Likeness { by: WatchBy::Text, hash: 11 };
        assert_eq!(quarantine.holds(RuleKey(7), text, at(1)), None);
        let again = quarantine.with(entry(11, 65));
        let hashes: Vec<u64> = again.standing(at(66)).map(|entry| entry.likeness.hash).collect();
        assert_eq!(hashes, [22, 11]);
        let id = entry(11, 65).id();
        let freed = again.without(id).unwrap();
        assert_eq!(holds(&freed, 11, 66), None);
        assert!(freed.may_hold(at(69)) && !freed.may_hold(at(70)));
        assert_eq!(freed.without(id), None);
    }

    #[test]
    fn what_goes_on_is_not_put_in_force_again_and_again() {
        let late =
            |hash, since| Quarantined { action: RunawayAction::Deprioritise, ..entry(hash, since) };
        let quarantine = Quarantine::default().with(late(11, 0));
        assert!(!quarantine.is_worth(&late(11, 0)) && !quarantine.is_worth(&late(11, 29)));
        assert!(quarantine.is_worth(&late(11, 30)) && quarantine.is_worth(&late(22, 0)));
        assert!(quarantine.is_worth(&entry(11, 0)), "a KILL has happened");
        let busy = (102..=120).fold(quarantine, |quarantine, hash| quarantine.with(late(hash, 0)));
        assert!(!busy.is_worth(&late(21, 0)) && busy.is_worth(&late(21, 1)));
    }

    #[test]
    fn a_lane_ends_with_the_time_of_what_comes_last() {
        let late = |hash, since| {
            Arc::new(Quarantined { action: RunawayAction::Deprioritise, ..entry(hash, since) })
        };
        let killed = Arc::new(entry(33, 0));
        let all = Quarantine::of(vec![killed.clone(), late(11, 5), late(22, 10)]);
        assert_eq!(all.lane_ends(), Some(at(65)));
        assert_eq!(all.at(at(65)).lane_ends(), Some(at(70)));
        assert_eq!(Quarantine::of(vec![killed]).lane_ends(), None, "nobody waits for it");
    }

    #[test]
    fn what_comes_last_has_a_lane_for_each_rule_and_likeness() {
        let lane = |key: u64, by, hash| {
            let likeness = Likeness { by, hash };
            Quarantined { key: RuleKey(key), likeness, ..entry(0, 0) }.lane()
        };
        let first = lane(7, WatchBy::Digest, 11);
        assert_eq!(first, lane(7, WatchBy::Digest, 11));
        for other in [(8, WatchBy::Digest, 11), (7, WatchBy::Text, 11), (7, WatchBy::Digest, 12)] {
            let other = lane(other.0, other.1, other.2);
            assert_eq!(first.budget, other.budget);
            assert_ne!(first.instance, other.instance);
        }
    }

    #[test]
    fn there_is_room_for_so_many() {
        let mut quarantine = Quarantine::default();
        for hash in 0..1_500 {
            quarantine = quarantine.with(entry(hash, 0));
        }
        let kept: Vec<u64> = quarantine.standing(at(1)).map(|entry| entry.likeness.hash).collect();
        assert_eq!((kept.len(), kept[0]), (1_000, 500));
    }

    /// Counted by each process, two that ran beside one another gave the same.
    #[test]
    fn an_id_is_that_of_a_rule_and_a_likeness_and_read_as_it_is_shown() {
        let id = entry(11, 0).id();
        assert_eq!(entry(11, 30).id(), id);
        assert_ne!(entry(12, 0).id(), id);
        assert_ne!(Quarantined { key: RuleKey(8), ..entry(11, 0) }.id(), id);
        let shown = id.to_string();
        assert_eq!((shown.len(), shown.parse()), (12, Ok(id)));
        assert!("-1".parse::<QuarantineId>().is_err() && "".parse::<QuarantineId>().is_err());
    }
}
