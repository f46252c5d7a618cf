//! Replication lag, measured by own heartbeats.
//!
//! Theory. Sluice writes numbered heartbeats into its own row on the primary and reads that row on
//! every replica. A replica's lag is the age of the oldest own heartbeat that the primary has
//! committed and the replica does not show yet; 0 if it shows the newest. Only one clock is ever
//! compared, the shell's. While a probe is late the lag therefore grows: not seen to be shown is
//! not shown.
//!
//! - A primary that froze, or a writer that stopped, is not lag: once nothing has been committed
//!   for `writer_stale_after`, a replica that shows everything has no lag to report, and a cluster
//!   of such replicas has no value; the signal runs out of data after its own `stale_after`. A
//!   replica that does not show the last heartbeat still lags, ever more.
//! - Nobody knows what a replica has missed in a gap of more than `writer_stale_after`: until it
//!   shows a heartbeat of after the gap there is no value for `SHOWN_AGAIN_WITHIN`, and then its lag
//!   counts from the last heartbeat before the gap.
//! - Heartbeat numbers must grow, also over restarts of the shell (start them from wall-clock
//!   time), or a replica that still shows a former run's number would look caught up.
//!
//! Who counts ([`ReplicaState`]). Left out are replicas that are unreachable (silent for
//! `stale_after`, or the server is the primary), delayed on purpose, or that have never caught up since they appeared: a replica
//! being restored must not block a cluster for hours. One that answers with an error, or answers
//! anything else than the probe, is not silent: it
//! keeps its standing, and what it does not show is missing. Where nothing else is measured there is no value. A replica that was counted and comes back
//! keeps its standing, and so blocks at once if it lags, unless it was gone for more than
//! [`RETURNS_WITHIN`] or is further behind than its absence explains: then it was rebuilt, and
//! appears anew. So a restart of seconds is no hole through which a crowd rushes when the replica
//! comes back with its lag. `ignore_slowest` leaves out the worst of those that count, never the
//! last one.
//!
//! A replica may have a threshold of its own: one for reports may lag for longer. The slowest is
//! the one that is nearest to its own threshold, and the lag of the cluster is that one's.
//!
//! A replica whose applier or receiver is stopped has a state of its own, and that is all: whether
//! it counts is what its lag says, as before. Leaving it out would open the gate over it.
//!
//! Source: freno and the Vitess tablet throttler for the aggregate, pt-heartbeat for the row.

mod config;
mod heartbeats;
mod replica;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

pub use self::config::{LagConfig, RETURNS_WITHIN, ReplicaKey};
use self::heartbeats::Heartbeats;
use self::replica::Replica;
pub use self::replica::{ReplicaState, ReplicaView, StoppedThread};
use crate::MonoTime;

/// The lag of a cluster, for [`crate::Controller::handle_lag`].
#[derive(Debug, Clone, PartialEq)]
pub struct LagReading {
    /// Seconds; `None` if nothing could be measured.
    pub value: Option<f64>,
    /// When it was measured.
    pub at: MonoTime,
    /// The replica it is the lag of: the one that is nearest to its threshold.
    pub slowest: Option<ReplicaKey>,
    /// That replica's threshold; `None`: the signal's.
    pub threshold: Option<Duration>,
    /// How far those are whose lag counts: they govern the pace, the slowest of them most.
    pub governing: Vec<Progress>,
}

impl LagReading {
    /// Whether it was asked for since then, and is no guess: each replica has shown a heartbeat of
    /// since then, or one so young that its lag is below the threshold for certain.
    #[must_use]
    pub fn is_certain(&self, now: MonoTime, since: MonoTime, threshold: Duration) -> bool {
        self.governing.iter().all(|replica| {
            let threshold = replica.threshold.unwrap_or(threshold);
            let shown = match (replica.shown, replica.committed_at) {
                (Some(_), Some(at)) => at >= since || now.saturating_since(at) < threshold,
                (Some(_), None) => false,
                // It tells its lag itself.
                (None, _) => true,
            };
            shown && replica.asked_at >= since
        })
    }
}

/// How far one replica has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Which.
    pub replica: ReplicaKey,
    /// Its lag.
    pub lag: Duration,
    /// What that must stay below; `None`: the threshold of the signal.
    pub threshold: Option<Duration>,
    /// Its newest own heartbeat; `None` if it shows none, or tells its lag itself.
    pub shown: Option<u64>,
    /// When the primary had committed that; `None` if it is not remembered.
    pub committed_at: Option<MonoTime>,
    /// When it last answered.
    pub answered_at: MonoTime,
    /// When it was asked for that.
    pub asked_at: MonoTime,
    /// How many appliers its settings say may work beside one another; 1 if nobody knows.
    pub appliers: u32,
}

/// Measures the lag of one cluster's replicas.
#[derive(Debug)]
pub struct LagTracker {
    config: LagConfig,
    replicas: BTreeMap<ReplicaKey, Replica>,
    /// Those that a reload has taken out, and when: they may come back.
    departed: BTreeMap<ReplicaKey, (Replica, MonoTime)>,
    heartbeats: Heartbeats,
}

/// Replicas that are remembered behind a reload that takes them out.
const DEPARTED_MAX: usize = 64;

impl LagTracker {
    /// A tracker to which all replicas have just appeared.
    #[must_use]
    pub fn new(config: LagConfig, now: MonoTime) -> Self {
        let mut tracker = Self {
            config,
            replicas: BTreeMap::new(),
            departed: BTreeMap::new(),
            heartbeats: Heartbeats::default(),
        };
        tracker.meet_replicas(now);
        tracker
    }

    /// Live reload: replicas that stay, or were taken out within [`RETURNS_WITHIN`], keep what is known of
    /// them; new ones appear now.
    pub fn reconfigure(&mut self, config: LagConfig, now: MonoTime) {
        self.config = config;
        self.meet_replicas(now);
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &LagConfig {
        &self.config
    }

    fn meet_replicas(&mut self, now: MonoTime) {
        let mut known = std::mem::take(&mut self.replicas);
        for key in self.config.replicas.clone() {
            let known = known.remove(&key).or_else(|| self.take_departed(now, key));
            let mut replica = known.unwrap_or_else(|| Replica::appears(now));
            replica.must_stay_below(self.config.threshold_of(key));
            self.replicas.insert(key, replica);
        }
        self.departed.retain(|_, (_, left)| now.saturating_since(*left) <= RETURNS_WITHIN);
        self.departed.extend(known.into_iter().map(|(key, replica)| (key, (replica, now))));
        while self.departed.len() > DEPARTED_MAX {
            self.departed.pop_first();
        }
    }

    fn take_departed(&mut self, now: MonoTime, key: ReplicaKey) -> Option<Replica> {
        let (replica, left) = self.departed.remove(&key)?;
        (now.saturating_since(left) <= RETURNS_WITHIN).then_some(replica)
    }

    /// A replica is the server that was known as another one, which a reload has taken out: it has another
    /// name. What was counted under that is counted.
    pub fn handle_replica_was(&mut self, now: MonoTime, key: ReplicaKey, before: ReplicaKey) {
        if !self.replicas.contains_key(&key) {
            return;
        }
        let known = self.take_departed(now, before);
        if let (Some(known), Some(replica)) = (known, self.replicas.get_mut(&key)) {
            replica.is_known_as(known);
        }
    }

    /// The primary has committed heartbeat `seq`; numbers that do not grow are ignored.
    pub fn handle_heartbeat_committed(&mut self, seq: u64, committed_at: MonoTime) {
        let last = self.heartbeats.newest();
        if self.heartbeats.push(seq, committed_at)
            && let Some(missing) = self.heartbeats.first_after(last, self.config.writer_stale_after)
        {
            for replica in self.replicas.values_mut() {
                replica.heartbeat_committed(seq, missing);
            }
        }
    }

    /// A replica is asked now; what it answers is what it showed then or later.
    pub fn handle_replica_asked(&mut self, now: MonoTime, key: ReplicaKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.is_asked(now);
        }
    }

    /// A replica answered: its newest own heartbeat; `None` if it has no row yet.
    pub fn handle_replica_shows(&mut self, now: MonoTime, key: ReplicaKey, seq: Option<u64>) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.shows(now, seq, &self.heartbeats, &self.config);
        }
    }

    /// Instead of heartbeats: a replica answered with its own idea of its lag (`SHOW REPLICA
    /// STATUS`, or a given query). `None`: replication does not run (the column is NULL), so it
    /// falls behind from what it said last.
    pub fn handle_replica_reports(
        &mut self,
        now: MonoTime,
        key: ReplicaKey,
        lag: Option<Duration>,
    ) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.reports(now, lag, &self.heartbeats, &self.config);
        }
    }

    /// A probe was answered with an error. One that has answered well before keeps its standing, and
    /// its lag grows; nobody knows how far one is that never has.
    pub fn handle_replica_refuses(&mut self, now: MonoTime, key: ReplicaKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.refuses(now, &self.config);
        }
    }

    /// A probe was in vain. The replica counts until its server has been silent for `stale_after`:
    /// one failure is not an absence, and meanwhile its lag grows.
    pub fn handle_replica_unreachable(&mut self, now: MonoTime, key: ReplicaKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.probe_failed(now);
        }
    }

    /// The replica's server has said something, though not what its lag is: it is there, and may keep
    /// the probe waiting (behind a lock on the heartbeat's table). Its standing stays.
    pub fn handle_replica_heard(&mut self, now: MonoTime, key: ReplicaKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.is_heard(now, &self.config);
        }
    }

    /// The server is no replica: it is the primary by now, or counts under another name. It does not
    /// count from now until it answers as a replica.
    pub fn handle_no_replica(&mut self, now: MonoTime, key: ReplicaKey) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.is_no_replica(now);
        }
    }

    /// Whether a delay is configured on the replica (`SOURCE_DELAY`). When it is lifted the replica
    /// must catch up first.
    pub fn handle_replica_delayed_on_purpose(
        &mut self,
        now: MonoTime,
        key: ReplicaKey,
        delayed: bool,
    ) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.delayed_on_purpose(now, delayed);
        }
    }

    /// What the replica's server says is stopped of its replication; `None`: nothing, or it does not
    /// say.
    pub fn handle_replica_stopped(
        &mut self,
        now: MonoTime,
        key: ReplicaKey,
        stopped: Option<StoppedThread>,
    ) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.says_stopped(now, stopped);
        }
    }

    /// The replica's server says how many appliers may work beside one another there.
    pub fn handle_replica_appliers(&mut self, key: ReplicaKey, appliers: u32) {
        if let Some(replica) = self.replicas.get_mut(&key) {
            replica.has_appliers(appliers);
        }
    }

    /// The lag of the cluster: the highest of those that count.
    #[must_use]
    pub fn reading(&self, now: MonoTime) -> LagReading {
        if self.replicas.is_empty() {
            return LagReading { value: Some(0.0), ..nothing(now) };
        }
        let mut counted: Vec<Counted> = self.counted(now).collect();
        let too_few = counted.len() < length(self.config.min_replicas);
        let awaited = |replica: &Replica| replica.is_awaited(now, &self.config);
        if too_few || self.replicas.values().any(awaited) {
            return nothing(now);
        }
        counted.sort_unstable_by(|a, b| b.cmp(a));
        let ignored = self.ignored_of(counted.len());
        let slowest = counted.get(ignored);
        let probed = counted.iter().filter_map(|it| self.replicas.get(&it.key)?.probed_at()).max();
        let is_old = |at| now.saturating_since(at) > self.config.stale_after;
        if probed.is_some_and(is_old) {
            return nothing(now);
        }
        let governing =
            counted.iter().skip(ignored).filter_map(|&Counted { lag, key: replica, .. }| {
                let known = self.replicas.get(&replica)?;
                let answered_at = known.probed_at()?;
                let asked_at = known.asked_at().unwrap_or(answered_at);
                let shown = known.shown();
                let committed_at = shown.and_then(|seq| self.heartbeats.committed_at(seq));
                let threshold = self.config.thresholds.get(&replica).copied();
                Some(Progress {
                    replica,
                    lag,
                    threshold,
                    shown,
                    committed_at,
                    answered_at,
                    asked_at,
                    appliers: known.appliers(),
                })
            });
        LagReading {
            governing: governing.collect(),
            value: slowest.map(|it| it.lag.as_secs_f64()),
            at: probed.unwrap_or(now),
            slowest: slowest.map(|it| it.key),
            threshold: slowest.and_then(|it| self.config.thresholds.get(&it.key).copied()),
        }
    }

    /// One replica; `None` if it is not configured.
    #[must_use]
    pub fn replica(&self, now: MonoTime, key: ReplicaKey) -> Option<ReplicaView> {
        let replica = self.replicas.get(&key)?;
        let mut view = replica.view(now, &self.heartbeats, &self.config);
        if let (true, Some(lag)) = (view.counts, view.lag) {
            let this = self.with_nearness(key, lag);
            let slower = self.counted(now).filter(|other| *other > this).count();
            if slower < self.ignored_of(self.counted(now).count()) {
                view.counts = false;
                if view.state == ReplicaState::Counted {
                    view.state = ReplicaState::IgnoredSlowest;
                }
            }
        }
        Some(view)
    }

    /// All replicas, by key.
    pub fn replicas(&self, now: MonoTime) -> impl Iterator<Item = (ReplicaKey, ReplicaView)> + '_ {
        self.replicas.keys().filter_map(move |&key| Some((key, self.replica(now, key)?)))
    }

    /// Those whose lag counts, before the slowest are ignored.
    fn counted(&self, now: MonoTime) -> impl Iterator<Item = Counted> + '_ {
        self.replicas.iter().filter_map(move |(&key, replica)| {
            let view = replica.view(now, &self.heartbeats, &self.config);
            if view.counts { Some(self.with_nearness(key, view.lag?)) } else { None }
        })
    }

    fn with_nearness(&self, key: ReplicaKey, lag: Duration) -> Counted {
        Counted { nearness: self.config.nearness(key, lag), lag, key }
    }

    fn ignored_of(&self, counted: usize) -> usize {
        length(self.config.ignore_slowest).min(counted.saturating_sub(1))
    }
}

/// A replica whose lag counts. The greatest is the slowest.
#[derive(Debug, Clone, Copy)]
struct Counted {
    nearness: f64,
    lag: Duration,
    key: ReplicaKey,
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        let nearer = self.nearness.total_cmp(&other.nearness);
        nearer.then(self.lag.cmp(&other.lag)).then(self.key.cmp(&other.key))
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Counted {}

fn nothing(now: MonoTime) -> LagReading {
    LagReading { value: None, at: now, slowest: None, threshold: None, governing: Vec::new() }
}

fn length(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
