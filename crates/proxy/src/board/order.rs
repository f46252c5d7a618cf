//! What a heartbeat acknowledges on a replica that does not keep the primary's order.
//!
//! A heartbeat that a replica shows says that all before it is there: as long as the replica commits
//! in the order of the primary. Several appliers that may overtake one another
//! (`replica_preserve_commit_order = OFF`; on MariaDB, another domain) show a heartbeat while work
//! of before it still waits. Then what the primary had executed when it had committed the heartbeat
//! is asked of the replica, by GTID: what came after the first heartbeat that was noted, so that a
//! replica which was made without what was before it is not behind for ever.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::probe::GtidSet;

/// How a replica commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommitOrder {
    /// It has not been asked yet.
    #[default]
    Unasked,
    /// As the primary has.
    Kept,
    /// Its appliers may overtake one another; a heartbeat counts with the executed GTIDs before it.
    ByGtid,
    /// They may, and the servers have no GTIDs to see it by: its lag is what its status says.
    Unseen,
}

impl CommitOrder {
    /// Whether it is the primary's; none if nobody knows.
    pub fn is_kept(self) -> Option<bool> {
        match self {
            Self::Unasked => None,
            Self::Kept => Some(true),
            Self::ByGtid | Self::Unseen => Some(false),
        }
    }
}

/// What the primary had executed at its heartbeats.
#[derive(Debug, Default)]
pub(super) struct OrderMemory {
    /// The replicas for which it is kept.
    wanted_by: BTreeSet<Arc<str>>,
    /// What the primary had executed at the first.
    before: Option<GtidSet>,
    /// By number: what had been added to it, the newest last.
    beats: VecDeque<(u64, GtidSet)>,
}

/// Heartbeats that are remembered: seven minutes of them, ten a second. A replica that is further
/// behind shows none of them, and its lag grows as it should.
const BEATS_MAX: usize = 4_096;

impl OrderMemory {
    pub(super) fn is_wanted(&self) -> bool {
        !self.wanted_by.is_empty()
    }

    /// Whether this replica wants it from now on.
    pub(super) fn want(&mut self, server: &Arc<str>, wants: bool) {
        if wants {
            self.wanted_by.insert(server.clone());
        } else {
            self.retain(|other| other != server);
        }
    }

    /// Only these replicas want it yet. For nobody nothing is kept: whoever comes later is asked for
    /// what is added from then on.
    pub(super) fn retain(&mut self, is_replica: impl Fn(&Arc<str>) -> bool) {
        self.wanted_by.retain(is_replica);
        if self.wanted_by.is_empty() && self.before.is_some() {
            *self = Self::default();
        }
    }

    /// The primary is another server from now on: what it has executed that no replica has is not asked for.
    pub(super) fn begin_anew(&mut self) {
        self.before = None;
        self.beats.clear();
    }

    /// What the primary has executed, read when it had committed the heartbeat.
    pub(super) fn note(&mut self, seq: u64, executed: &GtidSet) {
        // Another server is the primary, or what it had executed was taken from it.
        if self.before.as_ref().is_none_or(|before| !executed.contains(before)) {
            self.before = Some(executed.clone());
        }
        let added = self.before.as_ref().map(|before| executed.without(before));
        if self.beats.len() >= BEATS_MAX {
            self.beats.pop_front();
        }
        self.beats.push_back((seq, added.unwrap_or_default()));
    }

    /// The newest heartbeat up to `shown` with all before it among what a replica has executed.
    pub(super) fn acknowledged(&self, shown: u64, executed: &GtidSet) -> Option<u64> {
        let up_to = self.beats.partition_point(|(seq, _)| *seq <= shown);
        let there = |(_, added): &&(u64, GtidSet)| executed.contains(added);
        self.beats.range(..up_to).rev().find(there).map(|(seq, _)| *seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> GtidSet {
        GtidSet::parse(text).unwrap()
    }

    #[test]
    fn a_heartbeat_counts_with_all_that_was_before_it() {
        let mut memory = OrderMemory::default();
        let a = "4350f323-7565-4e59-8763-4b1b83a0ce0e";
        for (seq, top) in [(1, 100), (2, 110), (4, 130)] {
            memory.note(seq, &set(&format!("{a}:1-{top}")));
        }
        let acknowledged =
            |shown, executed: &str| memory.acknowledged(shown, &set(&format!("{a}:{executed}")));
        assert_eq!(acknowledged(4, "1-130"), Some(4));
        assert_eq!(
            acknowledged(4, "50-130"),
            Some(4),
            "what was before the first is not asked for"
        );
        assert_eq!(acknowledged(4, "1-109:111-130"), Some(1), "the second has work before it");
        assert_eq!(acknowledged(3, "1-130"), Some(2), "it shows no more");
        assert_eq!(acknowledged(0, "1-130"), None);
    }

    #[test]
    fn after_a_failover_it_begins_anew() {
        let mut memory = OrderMemory::default();
        memory.note(1, &set("0-1-100"));
        memory.note(2, &set("0-1-120"));
        // The new primary never had the last twenty.
        memory.note(3, &set("0-1-99"));
        memory.note(4, &set("0-2-105"));
        assert_eq!(memory.acknowledged(4, &set("0-2-105")), Some(4));
        assert_eq!(memory.acknowledged(4, &set("0-2-104")), Some(3));
    }

    /// What was executed there by itself came to no replica.
    #[test]
    fn a_server_that_has_more_than_the_one_of_before_begins_anew_once_it_is_known_to_be_another() {
        let a = "4350f323-7565-4e59-8763-4b1b83a0ce0e:1-100";
        let own = "5350f323-7565-4e59-8763-4b1b83a0ce0e:1";
        let executed = |more: &str| set(&format!("{a},{own}{more}"));
        let mut memory = OrderMemory::default();
        memory.note(1, &set(a));
        memory.note(2, &executed(""));
        assert_eq!(memory.acknowledged(2, &set(a)), Some(1));
        memory.begin_anew();
        memory.note(3, &executed(""));
        memory.note(4, &executed(":5"));
        assert_eq!(memory.acknowledged(4, &set(a)), Some(3));
    }

    #[test]
    fn nothing_is_kept_for_nobody() {
        let mut memory = OrderMemory::default();
        let server: Arc<str> = "r1".into();
        memory.want(&server, true);
        for seq in 0..10_000 {
            memory.note(seq, &set("0-1-100"));
        }
        assert_eq!(memory.beats.len(), BEATS_MAX);
        memory.want(&server, false);
        assert!(memory.beats.is_empty() && !memory.is_wanted());

        // One that leaves the file, too.
        memory.want(&server, true);
        memory.note(10_001, &set("0-1-100"));
        memory.retain(|_| false);
        memory.want(&server, true);
        memory.note(10_002, &set("0-1-500"));
        assert!(
            memory.acknowledged(10_002, &set("0-1-1")).is_some(),
            "it is asked for what is new"
        );
    }
}
