//! The probes of a cluster: Sluice's own connections to its servers, which measure the signals.
//!
//! Every probe is a task of its own with a connection of its own and a time limit for each query,
//! so that a server that hangs holds up nothing but its own probe, and none of them is ever on the
//! path of a statement. What they see goes to the cluster's
//! [`ProbeBoard`](crate::board::ProbeBoard) and to its admission controller.
//!
//! - The *heartbeat* raises a number in our own row on the primary. Each *replica probe* reads that
//!   row; from both [`admission::lag`] makes the lag. With another `probe.source`, replicas tell
//!   their lag themselves, and the primary is only asked whether it answers.
//!   Of a replica whose appliers may overtake one another the executed GTIDs are read beside it
//!   (`order`).
//!   Where the heartbeat's write waits for somebody's lock, `blocker` finds out whose.
//! - What the pace has found out is kept beside the heartbeats, by a connection of its own
//!   (`learned`): the next process begins with it.
//! - Every second each replica is asked whether its replication runs, and whether it is delayed on
//!   purpose.
//! - The other signals are measured by one more task for each server.
//! - The table of runtime rules has a connection to the primary of its own, so that whoever locks
//!   that table does not hold up heartbeats.
//! - Every few seconds the primary is asked for its sessions: `bypass` finds those that write past
//!   Sluice.
//! - Every five seconds a new connection to the primary is asked which server it has come to
//!   (`whereabouts`): behind a switchover all connections to the primary are made anew.
//! - One more connection to the primary reads what its sessions cannot see of it: its functions that
//!   write nothing, and the settings that a session begins with.
//!
//! While a replica probe is waiting for its answer the lag is published again and again: not seen
//! to be shown is not shown, so it grows.
//!
//! Hibernation. With nobody gated for a minute, heartbeats and probes slow down, within a second
//! and a third of `stale_after`, so a value never becomes stale by it. Whoever comes first after
//! that wakes all of them at once, and waits, as at a shut gate, for what they are told then: of the
//! lag, until replicas show a heartbeat of since then, or one that is younger than the threshold.
//! Without an answer the value becomes stale as always, and is `no_data`.

pub(crate) mod answer;
mod appliers;
mod blocker;
mod bypass;
mod clusters;
mod facts;
mod group;
mod gtids;
mod health;
mod heartbeat;
mod learned;
mod logging;
mod order;
mod primary;
mod replica;
mod replication;
mod rhythm;
mod rules;
mod signals;
mod source;
pub mod trial;
mod whereabouts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::SignalKey;
use admission::lag::LagConfig;
use policy::{ClusterPolicy, LagSource, Probe, Scope, SignalKind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::rhythm::{Rhythm, watch_quiet};
use crate::board::{Contact, PrimaryProbing, ProbeError};
use crate::caught::caught;
use crate::cluster::Cluster;
use crate::link::{Link, ProbeAccount};

pub(crate) use self::bypass::BypassMemory;
pub use self::clusters::ClusterProbes;
pub(crate) use self::gtids::GtidSet;
pub(crate) use self::logging::Logging;
pub(crate) use self::rhythm::Tempo;
pub(crate) use self::source::SourceIdentity;
pub(crate) use self::whereabouts::{ServerIdentity, identify};

/// The longest an answer may take, and a login. A server that is stopped answers nothing.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// The slowest beat of hibernation.
const HIBERNATION_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Without a heartbeat for this long, and for several intervals, its writer has stopped. It is
/// longer than the slowest beat, so that hibernation is not taken for it.
const WRITER_STALE_AFTER_MIN: Duration = Duration::from_secs(2);

/// The probes of one cluster while they run.
///
/// On a runtime of one thread a probe that is ended is not polled any more: what it had asked for says
/// nothing to what is configured behind that, however long its server takes to answer.
#[derive(Debug, Default)]
#[must_use = "the probes stop when this is dropped"]
pub struct Probes {
    tasks: JoinSet<()>,
}

impl Probes {
    /// Measures what `policy` names from now on, and nothing of before. `neighbours` are all clusters of this
    /// process. A cluster without replicas has no lag, and its gate knows so before this returns.
    pub fn follow(
        &mut self,
        cluster: &Arc<Cluster>,
        policy: &Arc<ClusterPolicy>,
        neighbours: &Arc<[Arc<Cluster>]>,
    ) {
        self.tasks = JoinSet::new();
        let Some(lag) = Lag::of(policy) else { return };
        let links = &cluster.probes.own_links;
        links.try_tls();
        let account =
            policy.probe.as_ref().map(|probe| ProbeAccount::of(probe, &policy.backend_tls, links));
        let primary =
            if account.is_some() { PrimaryProbing::Probed } else { PrimaryProbing::NotProbed };
        let replicas = (&*policy.replicas, &policy.replica_terms);
        cluster.probes.configure(replicas, &lag.limits, primary, cluster.now());
        let site = Arc::new(Site {
            cluster: cluster.clone(),
            policy: policy.clone(),
            neighbours: neighbours.clone(),
            lag,
            tempo: cluster.tempo(),
        });
        site.publish_lag();
        if policy.replicas.is_empty() {
            self.tasks.spawn(publish_for_ever(site.clone()));
        }
        if let (Some(probe), Some(account)) = (&policy.probe, account) {
            self.tasks.spawn(watch_quiet(cluster.clone()));
            self.start(&site, probe, &account);
        }
    }

    fn start(&mut self, site: &Arc<Site>, probe: &Probe, account: &ProbeAccount) {
        let ClusterPolicy { primary, replicas, .. } = &*site.policy;
        let (moved, moves) = watch::channel(());
        let on = |server: &Arc<str>| ProbeTarget {
            site: site.clone(),
            server: server.clone(),
            account: account.clone(),
            probe: probe.clone(),
            moves: (server == primary).then(|| moves.clone()),
        };
        let target = ProbeTarget { moves: None, ..on(primary) };
        self.keep(target, move |target| whereabouts::watch(target, moved.clone()));
        self.keep(on(primary), primary::watch);
        self.keep(on(primary), facts::watch);
        if probe.source == LagSource::Heartbeat && !replicas.is_empty() {
            self.keep(on(primary), learned::watch);
        }
        if let Some(keeper) = site.cluster.rule_keeper() {
            self.keep(on(primary), move |target| rules::watch(target, keeper.clone()));
        }
        if let Some(interval) = site.policy.bypass.interval {
            self.keep(on(primary), move |target| bypass::watch(target, interval));
        }
        for replica in replicas {
            self.keep(on(replica), replica::watch);
            self.keep(on(replica), whereabouts::watch_replica);
            if site.policy.learns_row_costs() {
                self.keep(on(replica), appliers::watch);
            }
            match probe.source {
                LagSource::Heartbeat | LagSource::Query(_) => {
                    self.keep(on(replica), replica::watch_status);
                }
                // The same answer tells both.
                LagSource::ReplicaStatus => {}
            }
        }
        for (scope, servers) in [
            (Scope::Primary, std::slice::from_ref(primary)),
            (Scope::Replicas, replicas.as_slice()),
        ] {
            let signals = signals::wanted(&site.policy, scope);
            if !signals.is_empty() {
                for server in servers {
                    let signals = signals.clone();
                    self.keep(on(server), move |target| signals::watch(target, signals.clone()));
                }
            }
        }
    }

    /// Keeps a probe going, on whatever server the name leads to. A client library can panic on an
    /// answer that makes no sense (one allocates what the server announces); that must not leave a
    /// signal unmeasured for ever.
    fn keep<P>(&mut self, target: ProbeTarget, probe: impl Fn(ProbeTarget) -> P + Send + 'static)
    where
        P: Future<Output = ()> + Send + 'static,
    {
        let mut moves = target.moves.clone();
        self.tasks.spawn(async move {
            loop {
                // No task of its own: that would be polled once more behind the end of this one.
                let ended = tokio::select! {
                    ended = caught(probe(target.clone())) => ended,
                    () = next_move(&mut moves) => continue,
                };
                match ended {
                    Err(_) => {
                        let cluster = &target.site.cluster.name;
                        tracing::error!(%cluster, server = %target.server, "a probe panicked; it \
                            starts again");
                        tokio::time::sleep(RESTART_PAUSE).await;
                    }
                    Ok(()) => return,
                }
            }
        });
    }
}

/// Until the server is another one: for ever, where nobody looks.
async fn next_move(moves: &mut Option<watch::Receiver<()>>) {
    if let Some(moves) = moves
        && moves.changed().await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Before a probe that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// What all probes of a cluster share.
struct Site {
    cluster: Arc<Cluster>,
    policy: Arc<ClusterPolicy>,
    /// All clusters of this process, this one among them: several may have one primary.
    neighbours: Arc<[Arc<Cluster>]>,
    lag: Lag,
    tempo: watch::Receiver<Tempo>,
}

/// The signal `lag` of a cluster.
struct Lag {
    key: SignalKey,
    /// Its replicas and their thresholds are filled in by the board, which has their keys.
    limits: LagConfig,
}

/// One server and what a probe of it needs.
#[derive(Clone)]
struct ProbeTarget {
    site: Arc<Site>,
    server: Arc<str>,
    account: ProbeAccount,
    probe: Probe,
    /// The server is another one, from time to time.
    moves: Option<watch::Receiver<()>>,
}

impl Lag {
    fn of(policy: &ClusterPolicy) -> Option<Self> {
        let beats = policy.probe.as_ref().map_or(Duration::ZERO, |probe| probe.heartbeat_interval);
        policy.signals.iter().find_map(|signal| match signal.kind {
            SignalKind::Lag { ignore_slowest, min_replicas } => Some(Self {
                key: signal.key,
                limits: LagConfig {
                    replicas: Vec::new(),
                    thresholds: BTreeMap::new(),
                    ignore_slowest,
                    min_replicas,
                    stale_after: signal.stale_after,
                    caught_up_below: Duration::try_from_secs_f64(signal.threshold)
                        .unwrap_or(Duration::MAX),
                    writer_stale_after: beats.saturating_mul(4).max(WRITER_STALE_AFTER_MIN),
                },
            }),
            SignalKind::ThreadsRunning
            | SignalKind::HistoryListLength
            | SignalKind::Query(_)
            | SignalKind::Status(_)
            | SignalKind::Latency(_) => None,
        })
    }
}

impl Site {
    /// Tells the gate what the lag is now.
    fn publish_lag(&self) {
        let Some(reading) = self.cluster.probes.lag(self.cluster.now()) else { return };
        self.cluster.control(|controller, now| controller.handle_lag(now, self.lag.key, &reading));
    }

    fn rhythm(&self, awake: Duration, hibernating: Duration) -> Rhythm {
        let slowest = hibernating.min(HIBERNATION_INTERVAL_MAX);
        Rhythm::new(self.tempo.clone(), awake, slowest)
    }
}

impl ProbeTarget {
    fn link(&self, time_limit: Duration) -> Link {
        let link = Link::new(&self.server, self.account.clone(), time_limit);
        // Ids of another server say nothing about the primary's sessions.
        if self.server == self.site.policy.primary {
            link.noted_in(&self.site.cluster.probes.own_links)
        } else {
            // A reading that waits until the lag is gone tells none.
            link.reading_at_once()
        }
    }

    /// Notes what an answer shows of the primary, whose target this is.
    fn note_contact<T>(&self, answer: &Result<T, ProbeError>) {
        let contact = answer.as_ref().map_or_else(ProbeError::contact, |_| Contact::Reached);
        let cluster = &self.site.cluster;
        cluster.probes.primary_contact(contact, cluster.now());
    }

    /// Notes that a replica, whose target this is, has said something, if it has: a probe that waits
    /// there waits for something else.
    fn note_heard<T>(&self, answer: &Result<T, ProbeError>) {
        let has_said =
            |error: &ProbeError| error.is_refusal() && error.contact() == Contact::Reached;
        if answer.as_ref().map_or_else(has_said, |_| true) {
            let cluster = &self.site.cluster;
            let now = cluster.now();
            cluster
                .probes
                .on_replica(&self.server, |tracker, key| tracker.handle_replica_heard(now, key));
        }
    }

    fn health(&self, purpose: health::Purpose) -> health::Health {
        health::Health::new(&self.site.cluster, &self.server, purpose)
    }
}

/// A cluster without replicas has no lag, and says so before anybody can think the value stale.
async fn publish_for_ever(site: Arc<Site>) {
    let period = site.lag.limits.stale_after / 3;
    let mut rhythm = site.rhythm(period.min(HIBERNATION_INTERVAL_MAX), period);
    loop {
        rhythm.beat().await;
        site.publish_lag();
    }
}

#[cfg(test)]
mod tests;
