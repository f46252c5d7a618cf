//! What the probes of one cluster have seen: written by them, read by metrics, pages and health
//! checks.
//!
//! It belongs to the cluster and outlives the probes, which a reload may replace: a replica that
//! stays keeps its standing.

mod blocked;
mod bypass;
mod error;
mod listed;
mod order;
mod reach;
mod renamed;
mod replication;
mod sightings;
mod stopped;
mod tables;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use admission::lag::{LagConfig, LagReading, LagTracker, ReplicaKey, ReplicaState};
use admission::{MonoTime, SignalKey};
use parking_lot::Mutex;
use policy::{ReplicaBook, Signal};

use self::listed::Listed;
use self::order::OrderMemory;
use self::reach::Contacts;
use self::stopped::StoppedOnce;
use self::tables::TableNames;
use crate::link::OwnLinks;
use crate::probe::{BypassMemory, GtidSet};
use crate::standstill::Standstills;

pub use self::blocked::{BlockingLock, CommitWait, HeartbeatBlocked, LockHolder};
pub use self::bypass::{BypassReading, BypassUser};
pub(crate) use self::error::ErrorKind;
pub use self::error::{Contact, ProbeError};
pub use self::order::CommitOrder;
pub use self::reach::{LATELY, Reachability};
pub use self::replication::{Hindrance, ReplicaReading, ReplicationStatus};
pub(crate) use self::sightings::{Birth, IsAt, Sightings};
pub use self::stopped::StoppedReplication;

/// What the probes of one cluster have seen.
#[derive(Debug)]
pub struct ProbeBoard {
    /// Names the heartbeat's row of this cluster and process.
    instance: u128,
    seen: Mutex<Observations>,
    /// Who has reached the primary.
    contacts: Contacts,
    listed: Listed,
    /// When this process did not run.
    pub(crate) standstills: Standstills,
    /// It was looked what a process before this one had found out.
    remembered: AtomicBool,
    /// The probes' own connections to the primary.
    pub(crate) own_links: Arc<OwnLinks>,
    /// Which server the primary's address has led to.
    pub(crate) sightings: Arc<Sightings>,
    /// What the tables are called that appliers were seen at.
    pub(crate) tables: TableNames,
    /// Held by each probe that counts what its replica has applied.
    pub(crate) counts_rows: Arc<()>,
    /// What the looks for those who go around remember.
    pub(crate) bypass_memory: Arc<Mutex<BypassMemory>>,
}

#[derive(Debug, Default)]
struct Observations {
    lag: Option<LagTracker>,
    /// The replicas of now.
    replicas: BTreeMap<Arc<str>, ReplicaKey>,
    /// Those that were taken from the file: they keep their keys, under which they are known.
    departed: BTreeMap<Arc<str>, ReplicaKey>,
    /// Keys are not used twice.
    next_key: u32,
    /// The number of the last heartbeat that was begun.
    last_seq: u64,
    values: BTreeMap<(SignalKey, Arc<str>), Measured>,
    primary: Option<PrimaryContact>,
    /// When the process has begun to wait for the first answer of the primary's probe.
    awaited_since: Option<MonoTime>,
    /// The primary has been asked for what holds for its sessions, whatever came of it.
    settings_asked: bool,
    /// What else is known of the replicas of now.
    news: BTreeMap<Arc<str>, ReplicaNews>,
    /// What the heartbeat waits for, and since when.
    heartbeat_blocked: Option<(HeartbeatBlocked, MonoTime)>,
    /// Who writes past Sluice.
    bypass: Option<BypassReading>,
    /// What the primary had executed at its heartbeats, where a replica is asked for it.
    order: OrderMemory,
}

/// What is known of a replica besides its lag.
#[derive(Debug, Clone, Default)]
struct ReplicaNews {
    error: Option<ProbeError>,
    replication: ReplicationStatus,
    /// When it was asked for that.
    replication_asked_at: MonoTime,
    delay: Duration,
    order: CommitOrder,
    /// It shows a heartbeat of before which it has not executed all.
    overtaken: bool,
    /// How its replication is stopped, or was last.
    stopped: Option<StoppedOnce>,
}

/// The last that was heard from the primary.
#[derive(Debug, Clone)]
struct PrimaryContact {
    answered_at: Option<MonoTime>,
    error: Option<ProbeError>,
}

#[derive(Debug, Clone, Copy)]
struct Measured {
    value: f64,
    asked_at: MonoTime,
    at: MonoTime,
}

/// Whether the primary answers its probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrimaryState {
    /// Nobody asks it: the cluster has no `probe`.
    NotProbed,
    /// It has not been asked long enough to tell.
    Unknown,
    /// It answered, so long ago.
    Answers(Duration),
    /// It does not.
    Silent(ProbeError),
}

/// What a signal other than lag was on one server.
#[derive(Debug, Clone)]
pub struct ServerReading {
    /// Which signal, by its key in the policy.
    pub signal: SignalKey,
    /// The server's address in the file.
    pub server: Arc<str>,
    /// In the unit of its threshold.
    pub value: f64,
    /// How old it is.
    pub age: Duration,
}

impl Default for ProbeBoard {
    fn default() -> Self {
        Self {
            instance: rand::random(),
            seen: Mutex::default(),
            contacts: Contacts::default(),
            listed: Listed::default(),
            standstills: Standstills::default(),
            remembered: AtomicBool::new(false),
            own_links: Arc::default(),
            sightings: Arc::default(),
            tables: TableNames::default(),
            counts_rows: Arc::default(),
            bypass_memory: Arc::default(),
        }
    }
}

/// What metrics, pages and health checks read.
impl ProbeBoard {
    /// The replica whose lag is that of the cluster.
    pub fn slowest(&self, now: MonoTime) -> Option<Arc<str>> {
        let seen = self.seen.lock();
        let slowest = seen.lag.as_ref()?.reading(now).slowest?;
        drop(seen);
        self.server_of(slowest)
    }

    /// The address of a replica of now.
    pub fn server_of(&self, replica: ReplicaKey) -> Option<Arc<str>> {
        let seen = self.seen.lock();
        let mut servers = seen.replicas.iter();
        servers.find(|(_, key)| **key == replica).map(|(server, _)| server.clone())
    }

    /// What a replica of now is known by.
    pub(crate) fn key_of(&self, server: &str) -> Option<ReplicaKey> {
        self.seen.lock().replicas.get(server).copied()
    }

    /// Whether the primary was reached lately, by a client or a probe.
    pub fn reachability(&self, now: MonoTime) -> Reachability {
        let seen = self.seen.lock();
        let awaited_until = seen.awaited_since.map(|since| since.saturating_add(LATELY));
        let settings_asked = seen.settings_asked;
        drop(seen);
        match self.contacts.look(now, awaited_until) {
            // The first sessions are read by its settings, not in every way there is.
            Reachability::Reached(_)
                if !settings_asked && awaited_until.is_some_and(|until| now < until) =>
            {
                Reachability::Awaited
            }
            reachability => reachability,
        }
    }

    /// The primary was asked for its settings, whatever came of it.
    pub(crate) fn note_settings_asked(&self) {
        self.seen.lock().settings_asked = true;
    }

    /// The servers that are probed, and whether they answer the probes' account; the primary, by
    /// its address in the file, first.
    pub fn probes_up(&self, primary: &Arc<str>, now: MonoTime) -> Vec<(Arc<str>, bool)> {
        let primary_up = match self.primary(now, LATELY) {
            PrimaryState::NotProbed => return Vec::new(),
            PrimaryState::Answers(_) => true,
            PrimaryState::Unknown | PrimaryState::Silent(_) => false,
        };
        let replicas = self.replicas(now).into_iter().map(|replica| {
            let up = replica.view.state != ReplicaState::Unreachable && replica.error.is_none();
            (replica.server, up)
        });
        std::iter::once((primary.clone(), primary_up)).chain(replicas).collect()
    }

    /// The other signals, server by server.
    pub fn values(&self, now: MonoTime) -> Vec<ServerReading> {
        let seen = self.seen.lock();
        let readings = seen.values.iter().map(|((signal, server), measured)| ServerReading {
            signal: *signal,
            server: server.clone(),
            value: measured.value,
            age: now.saturating_since(measured.at),
        });
        readings.collect()
    }

    /// Whether the primary answers. Silent is one that has not for `stale_after`.
    pub fn primary(&self, now: MonoTime, stale_after: Duration) -> PrimaryState {
        let Some(PrimaryContact { answered_at, error }) = self.seen.lock().primary.clone() else {
            return PrimaryState::NotProbed;
        };
        let age = answered_at.map(|at| now.saturating_since(at));
        let is_fresh =
            answered_at.is_some_and(|at| self.standstills.waited(at, now) <= stale_after);
        match (age, error) {
            (Some(age), _) if is_fresh => PrimaryState::Answers(age),
            (Some(_) | None, Some(error)) => PrimaryState::Silent(error),
            (Some(_), None) => PrimaryState::Silent(ProbeError::TimedOut),
            (None, None) => PrimaryState::Unknown,
        }
    }
}

/// What the probes write.
impl ProbeBoard {
    /// Whether it was looked what a process before this one had found out.
    pub(crate) fn has_remembered(&self) -> bool {
        self.remembered.load(Ordering::Relaxed)
    }

    pub(crate) fn note_remembered(&self) {
        self.remembered.store(true, Ordering::Relaxed);
    }

    pub(crate) fn instance(&self) -> u128 {
        self.instance
    }

    /// The replicas and limits from now on, and whether the primary is asked.
    pub(crate) fn configure(
        &self,
        (replicas, terms): (&[Arc<str>], &ReplicaBook),
        limits: &LagConfig,
        primary: PrimaryProbing,
        now: MonoTime,
    ) {
        let mut seen = self.seen.lock();
        let mut before = std::mem::take(&mut seen.replicas);
        for server in replicas {
            let known = before.remove(server).or_else(|| seen.departed.remove(server));
            let key = known.unwrap_or_else(|| {
                seen.next_key = seen.next_key.wrapping_add(1);
                ReplicaKey(seen.next_key)
            });
            seen.replicas.insert(server.clone(), key);
        }
        seen.keep_departed(before);
        let replicas = seen.replicas.values().copied().collect();
        let key_of = |(server, own)| Some((*seen.replicas.get(server)?, own));
        let thresholds = terms.thresholds().filter_map(key_of).collect();
        let config = LagConfig { replicas, thresholds, ..limits.clone() };
        match seen.lag.as_mut() {
            Some(tracker) => tracker.reconfigure(config, now),
            None => {
                seen.lag = Some(LagTracker::new(config, now));
                // Only at the start: a probe that a reload adds makes nobody unready.
                seen.awaited_since = (primary == PrimaryProbing::Probed).then_some(now);
            }
        }
        let Observations { news, replicas, order, .. } = &mut *seen;
        news.retain(|server, _| replicas.contains_key(server));
        order.retain(|server| replicas.contains_key(server));
        seen.values.clear();
        seen.heartbeat_blocked = None;
        seen.bypass = None;
        seen.primary = match (primary, seen.primary.take()) {
            (PrimaryProbing::Probed, None) => {
                Some(PrimaryContact { answered_at: None, error: None })
            }
            (PrimaryProbing::Probed, known @ Some(_)) => known,
            (PrimaryProbing::NotProbed, _) => None,
        };
    }

    /// The lag of the cluster.
    pub(crate) fn lag(&self, now: MonoTime) -> Option<LagReading> {
        self.seen.lock().lag.as_ref().map(|tracker| tracker.reading(now))
    }

    /// Tells the tracker something about one replica.
    pub(crate) fn on_replica(&self, server: &str, event: impl FnOnce(&mut LagTracker, ReplicaKey)) {
        let mut seen = self.seen.lock();
        let Observations { lag, replicas, .. } = &mut *seen;
        if let (Some(tracker), Some(key)) = (lag, replicas.get(server)) {
            event(tracker, *key);
        }
    }

    /// How a probe of a replica has ended.
    pub(crate) fn replica_said(&self, server: &Arc<str>, error: Option<&ProbeError>) {
        let mut seen = self.seen.lock();
        if seen.replicas.contains_key(server) {
            seen.news.entry(server.clone()).or_default().error = error.cloned();
        }
    }

    /// In which order a replica commits; what it was said to do before.
    pub(crate) fn order_said(&self, server: &Arc<str>, order: CommitOrder) -> CommitOrder {
        let mut seen = self.seen.lock();
        if !seen.replicas.contains_key(server) {
            return order;
        }
        seen.order.want(server, order == CommitOrder::ByGtid);
        let news = seen.news.entry(server.clone()).or_default();
        std::mem::replace(&mut news.order, order)
    }

    /// Whether a replica shows a heartbeat of before which it has not executed all.
    pub(crate) fn overtaken_said(&self, server: &Arc<str>, overtaken: bool) {
        if let Some(news) = self.seen.lock().news.get_mut(server) {
            news.overtaken = overtaken;
        }
    }

    /// What was said of that last.
    pub(crate) fn is_overtaken(&self, server: &Arc<str>) -> bool {
        self.seen.lock().news.get(server).is_some_and(|news| news.overtaken)
    }

    /// In which order a replica commits, as far as it was asked.
    pub(crate) fn order_of(&self, server: &Arc<str>) -> CommitOrder {
        self.seen.lock().news.get(server).map(|news| news.order).unwrap_or_default()
    }

    /// Whether a replica is asked for what the primary had executed at its heartbeats.
    pub(crate) fn wants_executed(&self) -> bool {
        self.seen.lock().order.is_wanted()
    }

    /// What the primary has executed, read when it had committed this heartbeat.
    pub(crate) fn heartbeat_executed(&self, seq: u64, executed: &GtidSet) {
        self.seen.lock().order.note(seq, executed);
    }

    /// The primary is another server than before.
    pub(crate) fn primary_moved(&self) {
        self.seen.lock().order.begin_anew();
    }

    /// The newest heartbeat up to `shown` with all before it among what a replica has executed.
    pub(crate) fn acknowledged(&self, shown: u64, executed: &GtidSet) -> Option<u64> {
        self.seen.lock().order.acknowledged(shown, executed)
    }

    /// Somebody has had a word from the primary, or has tried in vain.
    pub(crate) fn primary_contact(&self, contact: Contact, now: MonoTime) {
        match contact {
            Contact::Reached => self.contacts.reached(now),
            Contact::Failed(why) => self.contacts.failed(now, why),
            Contact::NotTried => {}
        }
    }

    /// The number of the next heartbeat. It grows over reloads; another process has another row.
    pub(crate) fn next_seq(&self) -> u64 {
        let mut seen = self.seen.lock();
        seen.last_seq = seen.last_seq.saturating_add(1);
        seen.last_seq
    }

    /// The primary has committed a heartbeat.
    pub(crate) fn heartbeat_committed(&self, seq: u64, at: MonoTime) {
        if let Some(tracker) = &mut self.seen.lock().lag {
            tracker.handle_heartbeat_committed(seq, at);
        }
    }

    /// The primary has answered its probe, or not.
    pub(crate) fn primary_said(&self, answer: Result<(), &ProbeError>, now: MonoTime) {
        if let Some(primary) = &mut self.seen.lock().primary {
            match answer {
                Ok(()) => *primary = PrimaryContact { answered_at: Some(now), error: None },
                Err(error) => primary.error = Some(error.clone()),
            }
        }
    }

    /// Takes in a signal's value on one server, and when that was asked for. Gives the highest of
    /// those that are fresh, and when the first of them was asked for.
    pub(crate) fn measured(
        &self,
        signal: &Signal,
        server: &Arc<str>,
        answer: Option<(f64, MonoTime)>,
        now: MonoTime,
    ) -> Option<(f64, MonoTime)> {
        let mut seen = self.seen.lock();
        if let Some((value, asked_at)) = answer {
            let key = (signal.key, server.clone());
            seen.values.insert(key, Measured { value, asked_at, at: now });
        }
        let of_signal = seen.values.iter().filter(|((key, _), _)| *key == signal.key);
        of_signal
            .filter(|(_, measured)| now.saturating_since(measured.at) <= signal.stale_after)
            .map(|(_, measured)| (measured.value, measured.asked_at))
            .reduce(|a, b| (a.0.max(b.0), a.1.min(b.1)))
    }
}

/// Whether somebody asks the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrimaryProbing {
    Probed,
    NotProbed,
}

#[cfg(test)]
mod tests;
