//! Times in which this process did not run: a signal, a paused machine, no processor for it.
//!
//! What a server does meanwhile nobody here sees, so it is no time of a statement: one of 0.3 s that
//! was under way would have cost as much as the pause took, for as long as that is remembered.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

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
    looked_at: Option<Instant>,
    times: VecDeque<(Instant, Instant)>,
}

impl Standstills {
    /// For how long somebody has waited by now, as far as this process ran. What is shorter than any
    /// standstill takes no lock.
    pub(crate) fn waited(&self, since: Instant) -> Duration {
        let now = Instant::now();
        let all = now.saturating_duration_since(since);
        if all < LATE {
            return all;
        }
        let seen = self.0.lock();
        let times = seen.times.iter().copied().chain(seen.standstill(now));
        let stood = times.map(|(from, to)| to.min(now).saturating_duration_since(from.max(since)));
        all.saturating_sub(stood.sum())
    }

    /// It runs. For how long it did not before.
    fn look(&self, now: Instant) -> Option<Duration> {
        let mut seen = self.0.lock();
        let stood = seen.standstill(now);
        seen.looked_at = Some(now);
        let (from, to) = stood?;
        if seen.times.len() >= REMEMBERED {
            seen.times.pop_front();
        }
        seen.times.push_back((from, to));
        Some(to.saturating_duration_since(from))
    }
}

impl Seen {
    /// The one that ends now.
    fn standstill(&self, now: Instant) -> Option<(Instant, Instant)> {
        let due = self.looked_at?.checked_add(EVERY)?;
        (now.saturating_duration_since(due) >= LATE).then_some((due, now))
    }
}

/// Looks, until it is dropped.
pub(crate) async fn watch(clusters: Vec<Arc<Cluster>>) {
    let watched = Watched(clusters);
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let now = Instant::now();
        let stood = watched.0.iter().filter_map(|cluster| cluster.standstills.look(now)).max();
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
            cluster.standstills.0.lock().looked_at = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_was_waited_while_nothing_ran_does_not_count() {
        let sleep = async |ms| tokio::time::sleep(Duration::from_millis(ms)).await;
        let waited = |of: &Standstills, since| u64::try_from(of.waited(since).as_millis()).unwrap();
        let of = Standstills::default();
        let unwatched = Instant::now();
        sleep(5_000).await;
        assert_eq!(waited(&of, unwatched), 5_000, "nobody looks");
        assert_eq!(of.look(Instant::now()), None);
        let before = Instant::now();
        sleep(400).await;
        assert_eq!(of.look(Instant::now()), None, "it was only late");
        let within = Instant::now();
        sleep(3_100).await;
        assert_eq!((waited(&of, before), waited(&of, within)), (500, 100), "not looked at yet");
        assert_eq!(of.look(Instant::now()), Some(Duration::from_secs(3)));
        sleep(100).await;
        assert_eq!(of.look(Instant::now()), None);
        let behind = Instant::now();
        sleep(550).await;
        assert_eq!((waited(&of, before), waited(&of, within)), (1_150, 750));
        assert_eq!(waited(&of, behind), 550);
        for _ in 0..1_000 {
            sleep(700).await;
            assert!(of.look(Instant::now()).is_some());
        }
        assert_eq!(of.0.lock().times.len(), REMEMBERED);
    }
}
