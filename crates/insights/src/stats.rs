//! What statements of one kind have cost together.

use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::histogram::Histogram;
use crate::record::{Ending, Record};
use crate::windows::Time;

/// What statements of one kind have cost together.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Statements that reached the server.
    pub count: u64,
    /// Of these, those that the server answered with an error, by its number.
    pub errors: Counts,
    /// Of these, those whose connection ended before the answer did.
    pub lost: u64,
    /// Warnings, as the server counts them.
    pub warnings: u64,
    /// Time at the server, in nanoseconds; what cursors took later is in it, and not in what follows.
    pub time_ns: u64,
    /// The shortest.
    pub time_min_ns: u64,
    /// The longest.
    pub time_max_ns: u64,
    /// All of them.
    pub times: Histogram,
    /// Time that statements were kept waiting, also those that were refused in the end, in
    /// nanoseconds.
    pub queued_ns: u64,
    /// Statements that were refused and never reached the server, by the reason's number.
    pub refused: Counts,
    /// Statements whose clients left while they waited.
    pub client_gone: u64,
    /// Rows of result sets.
    pub rows_sent: u64,
    /// Rows changed.
    pub rows_affected: u64,
    /// Bytes of commands.
    pub bytes_in: u64,
    /// Bytes of answers.
    pub bytes_out: u64,
    /// When the first of them was over.
    pub first_seen: Option<Time>,
    /// When the last was.
    pub last_seen: Option<Time>,
}

impl Stats {
    /// Adds a statement that was over at about this time.
    pub(crate) fn add(&mut self, record: &Record, at: Time) {
        let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
        add(&mut self.queued_ns, record.queued_ns);
        match record.ending {
            Ending::Done | Ending::Fetched => {}
            Ending::Failed(errno) | Ending::FetchFailed(errno) => {
                self.errors.add(errno, 1);
                self.errors.bound();
            }
            Ending::Lost => add(&mut self.lost, 1),
            Ending::Refused(reason) => {
                self.refused.add(reason, 1);
                self.refused.bound();
            }
            Ending::ClientGone => add(&mut self.client_gone, 1),
        }
        if record.ending.is_executed() && !record.ending.is_more_of_one() {
            let time = record.server_ns;
            self.time_min_ns = if self.count == 0 { time } else { self.time_min_ns.min(time) };
            self.time_max_ns = self.time_max_ns.max(time);
            add(&mut self.count, 1);
            self.times.add(time);
        }
        if record.ending.is_executed() {
            add(&mut self.time_ns, record.server_ns);
            add(&mut self.warnings, u64::from(record.warnings));
            add(&mut self.rows_sent, record.rows_sent);
            add(&mut self.rows_affected, record.rows_affected);
            add(&mut self.bytes_in, record.bytes_in);
            add(&mut self.bytes_out, record.bytes_out);
        }
        self.see(Some(at));
    }

    /// Adds what others have cost to a row that is kept.
    pub(crate) fn merge_bounded(&mut self, other: &Self) {
        self.merge(other);
        self.errors.bound();
        self.refused.bound();
    }

    /// Adds what others have cost.
    pub fn merge(&mut self, other: &Self) {
        if other.count > 0 {
            let min = other.time_min_ns;
            self.time_min_ns = if self.count == 0 { min } else { self.time_min_ns.min(min) };
            self.time_max_ns = self.time_max_ns.max(other.time_max_ns);
        }
        for (sum, value) in [
            (&mut self.count, other.count),
            (&mut self.lost, other.lost),
            (&mut self.warnings, other.warnings),
            (&mut self.time_ns, other.time_ns),
            (&mut self.queued_ns, other.queued_ns),
            (&mut self.client_gone, other.client_gone),
            (&mut self.rows_sent, other.rows_sent),
            (&mut self.rows_affected, other.rows_affected),
            (&mut self.bytes_in, other.bytes_in),
            (&mut self.bytes_out, other.bytes_out),
        ] {
            *sum = sum.saturating_add(value);
        }
        self.errors.merge(&other.errors);
        self.refused.merge(&other.refused);
        self.times.merge(&other.times);
        self.see(other.first_seen);
        self.see(other.last_seen);
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // A window may have only the rest of a statement of another one.
        self.count == 0 && self.time_ns == 0 && self.refused.sum() == 0 && self.client_gone == 0
    }

    /// The time below which this share of the statements was done, in seconds; at most the longest
    /// there was and at least the shortest.
    #[must_use]
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        let [min, max] = [self.time_min_ns, self.time_max_ns].map(seconds);
        self.times.quantile_s(share).map(|time| time.clamp(min, max.max(min)))
    }

    fn see(&mut self, at: Option<Time>) {
        let Some(at) = at.filter(|_| self.last_seen != at) else { return };
        self.first_seen = Some(self.first_seen.map_or(at, |first| first.min(at)));
        self.last_seen = Some(self.last_seen.map_or(at, |last| last.max(at)));
    }

    pub(crate) fn shrink(&mut self) {
        self.times.shrink();
        self.errors.shrink();
        self.refused.shrink();
    }
}

pub(crate) fn seconds(nanos: u64) -> f64 {
    std::time::Duration::from_nanos(nanos).as_secs_f64()
}
