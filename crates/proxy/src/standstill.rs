//! Times in which this process did not run: a signal, a paused machine, no processor for it.
//!
//! What a server does meanwhile nobody here sees, so it is no time of a statement: one of 0.3 s that
//! was under way would have cost as much as the pause took, for as long as that is remembered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use parking_lot::Mutex;
use tokio::time::{MissedTickBehavior, interval};

use crate::cluster::Cluster;

/// How often it is looked whether this process runs.
const EVERY: Duration = Duration::from_millis(100);

/// Who looks so much later did not run. A busy machine is late by less.
const LATE: Duration = Duration::from_millis(500);

/// Those that are remembered: a statement may have been under way for several.
const REMEMBERED: usize = 64;

/// The times in which this process did not run.
#[derive(Debug, Default)]
pub(crate) struct Standstills(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// `None`: nobody looks.
    looked_at: Option<MonoTime>,
    times: VecDeque<(MonoTime, MonoTime)>,
}

impl Standstills {
    /// For how long somebody has waited by now, as far as this process ran. What is shorter than any
    /// standstill takes no lock.
    pub(crate) fn waited(&self, since: MonoTime, now: MonoTime) -> Duration {
        let all = now.saturating_since(since);
        if all < LATE {
            return all;
        }
        let seen = self.0.lock();
        let times = seen.times.iter().copied().chain(seen.standstill(now));
        let stood = times.map(|(from, to)| to.min(now).saturating_since(from.max(since)));
        all.saturating_sub(stood.sum())
    }

    /// How long the last one was, that ended within this time or ends now.
    pub(crate) fn lately(&self, within: Duration, now: MonoTime) -> Option<Duration> {
        let seen = self.0.lock();
        let (from, to) = seen.standstill(now).or_else(|| seen.times.back().copied())?;
        (now.saturating_since(to) < within).then(|| to.saturating_since(from))
    }

    /// It runs. For how long it did not before.
    pub(crate) fn look(&self, now: MonoTime) -> Option<Duration> {
        let mut seen = self.0.lock();
        let stood = seen.standstill(now);
        seen.looked_at = Some(now);
        let (from, to) = stood?;
        if seen.times.len() >= REMEMBERED {
            seen.times.pop_front();
        }
        seen.times.push_back((from, to));
        Some(to.saturating_since(from))
    }
}

impl Seen {
    /// The one that ends now.
    fn standstill(&self, now: MonoTime) -> Option<(MonoTime, MonoTime)> {
        let due = self.looked_at?.saturating_add(EVERY);
        (now.saturating_since(due) >= LATE).then_some((due, now))
    }
}

/// Looks, until it is dropped.
pub(crate) async fn watch(clusters: Vec<Arc<Cluster>>) {
    let watched = Watched(clusters);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let looks = watched.0.iter().map(|cluster| cluster.probes.standstills.look(cluster.now()));
        let stood = looks.flatten().max();
        if let Some(stood) = stood {
            let for_s = format!("{:.1}", stood.as_secs_f64());
            tracing::warn!(%for_s, "this process did not run: stopped, on a paused machine, or without a processor");
        }
    }
}

struct Watched(Vec<Arc<Cluster>>);

impl Drop for Watched {
    fn drop(&mut self) {
        for cluster in &self.0 {
            cluster.probes.standstills.0.lock().looked_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_waited_while_nothing_ran_does_not_count() {
        let at = |ms| MonoTime::ZERO.saturating_add(Duration::from_millis(ms));
        let of = Standstills::default();
        let waited = |since, now| u64::try_from(of.waited(at(since), at(now)).as_millis()).unwrap();
        assert_eq!(waited(0, 5_000), 5_000, "nobody looks");
        assert_eq!(of.look(at(5_000)), None);
        assert_eq!(of.look(at(5_400)), None, "it was only late");
        assert_eq!((waited(5_000, 8_500), waited(5_400, 8_500)), (500, 100), "not looked at yet");
        let lately = |now| of.lately(Duration::from_secs(1), at(now));
        assert_eq!(lately(8_500), Some(Duration::from_secs(3)), "it ends now");
        assert_eq!(of.look(at(8_500)), Some(Duration::from_secs(3)));
        assert_eq!(of.look(at(8_600)), None);
        assert_eq!((waited(5_000, 9_150), waited(5_400, 9_150)), (1_150, 750));
        assert_eq!(waited(8_600, 9_150), 550);
        assert_eq!(of.look(at(9_150)), None);
        assert_eq!((lately(9_499), lately(9_500)), (Some(Duration::from_secs(3)), None));
        for nth in 0..1_000 {
            assert!(of.look(at(10_000 + nth * 700)).is_some());
        }
        assert_eq!(of.0.lock().times.len(), REMEMBERED);
    }
}
