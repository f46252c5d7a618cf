//! The heartbeats that were committed.

use std::collections::VecDeque;
use std::time::Duration;

use crate::MonoTime;

/// Heartbeats remembered: 17 minutes at the default interval, 64 KiB. A replica that falls behind
/// further keeps its true lag, since the time of its first missing heartbeat stays with it; only
/// one that moves while it is further behind reports the oldest remembered heartbeat's age, which
/// is less than the truth.
pub(super) const HEARTBEATS_MAX: usize = 4_096;

/// The own heartbeats that the primary has committed, oldest first, numbers and times growing.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    pub(super) committed: VecDeque<(u64, MonoTime)>,
}

/// The oldest heartbeat that a replica does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missing {
    /// From when its lag counts: when that was committed, or behind a gap the one before it, for
    /// nobody knows what the replica has missed since.
    pub(super) since: MonoTime,
    /// When it was committed, behind a gap.
    pub(super) resumed_at: Option<MonoTime>,
}

impl Heartbeats {
    /// Whether it was new.
    pub(super) fn push(&mut self, seq: u64, at: MonoTime) -> bool {
        if self.committed.back().is_some_and(|&(newest, _)| seq <= newest) {
            return false;
        }
        if self.committed.len() >= HEARTBEATS_MAX {
            self.committed.pop_front();
        }
        self.committed.push_back((seq, at));
        true
    }

    /// The oldest one after `shown`.
    pub(super) fn first_after(&self, shown: Option<u64>, gap: Duration) -> Option<Missing> {
        let index = match shown {
            Some(shown) => self.committed.partition_point(|&(seq, _)| seq <= shown),
            None => 0,
        };
        let &(_, at) = self.committed.get(index)?;
        let before = index.checked_sub(1).and_then(|before| self.committed.get(before));
        let before = before.filter(|(_, before)| at.saturating_since(*before) > gap);
        Some(match before {
            Some(&(_, before)) => Missing { since: before, resumed_at: Some(at) },
            None => Missing { since: at, resumed_at: None },
        })
    }

    /// When this one was.
    pub(super) fn committed_at(&self, seq: u64) -> Option<MonoTime> {
        let index = self.committed.partition_point(|&(other, _)| other < seq);
        self.committed.get(index).filter(|&&(found, _)| found == seq).map(|&(_, at)| at)
    }

    pub(super) fn newest(&self) -> Option<u64> {
        self.committed.back().map(|&(seq, _)| seq)
    }

    pub(super) fn newest_at(&self) -> Option<MonoTime> {
        self.committed.back().map(|&(_, at)| at)
    }
}
