//! Statements whose records found no place: nobody knows whose they were, but they are counted.

use std::sync::atomic::{AtomicU64, Ordering};

use insights::{Ending, Record, Stats};

/// Sums of what was turned away.
#[derive(Debug, Default)]
pub(super) struct Spill {
    count: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    refused: AtomicU64,
    client_gone: AtomicU64,
    warnings: AtomicU64,
    time_ns: AtomicU64,
    queued_ns: AtomicU64,
    rows_sent: AtomicU64,
    rows_affected: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Spill {
    pub(super) fn add(&self, record: &Record) {
        let add = |sum: &AtomicU64, value: u64| {
            sum.fetch_add(value, Ordering::Relaxed);
        };
        add(&self.queued_ns, record.queued_ns);
        match record.ending {
            Ending::Done | Ending::Fetched => {}
            Ending::Failed(_) | Ending::FetchFailed(_) => add(&self.failed, 1),
            Ending::Lost => add(&self.lost, 1),
            Ending::Refused(_) => add(&self.refused, 1),
            Ending::ClientGone => add(&self.client_gone, 1),
        }
        if record.ending.is_executed() {
            add(&self.warnings, u64::from(record.warnings));
            add(&self.time_ns, record.server_ns);
            add(&self.rows_sent, record.rows_sent);
            add(&self.rows_affected, record.rows_affected);
            add(&self.bytes_in, record.bytes_in);
            add(&self.bytes_out, record.bytes_out);
            if !record.ending.is_more_of_one() {
                add(&self.count, 1);
            }
        }
    }

    /// What has come since this was last called; `None` for nothing.
    pub(super) fn take(&self) -> Option<Stats> {
        let take = |sum: &AtomicU64| match sum.load(Ordering::Relaxed) {
            0 => 0,
            _ => sum.swap(0, Ordering::Relaxed),
        };
        let mut stats = Stats {
            count: take(&self.count),
            lost: take(&self.lost),
            warnings: take(&self.warnings),
            time_ns: take(&self.time_ns),
            queued_ns: take(&self.queued_ns),
            client_gone: take(&self.client_gone),
            rows_sent: take(&self.rows_sent),
            rows_affected: take(&self.rows_affected),
            bytes_in: take(&self.bytes_in),
            bytes_out: take(&self.bytes_out),
            ..Stats::default()
        };
        // By which number is not known any more.
        stats.errors.add_others(take(&self.failed));
        stats.refused.add_others(take(&self.refused));
        (stats != Stats::default()).then_some(stats)
    }
}
