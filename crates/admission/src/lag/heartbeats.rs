//! The heartbeats that were committed.

use std::collections::VecDeque;

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
    /// The first ever: a replica that shows less has shown nothing of this tracker's.
    pub(super) first: Option<u64>,
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
        self.first = self.first.or(Some(seq));
        self.committed.push_back((seq, at));
        true
    }

    /// When the oldest one after `shown` was committed.
    pub(super) fn first_after(&self, shown: Option<u64>) -> Option<MonoTime> {
        let index = match shown {
            Some(shown) => self.committed.partition_point(|&(seq, _)| seq <= shown),
            None => 0,
        };
        self.committed.get(index).map(|&(_, at)| at)
    }

    /// When this one was.
    pub(super) fn committed_at(&self, seq: u64) -> Option<MonoTime> {
        let index = self.committed.partition_point(|&(other, _)| other < seq);
        self.committed.get(index).filter(|&&(found, _)| found == seq).map(|&(_, at)| at)
    }

    pub(super) fn newest_at(&self) -> Option<MonoTime> {
        self.committed.back().map(|&(_, at)| at)
    }
}
