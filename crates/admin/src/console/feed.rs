//! Reads every cluster once a second, and has everybody who looks see it: one reading for all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use axum::body::Bytes;
use parking_lot::Mutex;
use proxy::cluster::Cluster;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{MissedTickBehavior, interval};

use super::changes::Changes;
use super::frame::{ClusterTrail, FrameEvent, PastEvent, When};
use super::past::Past;
use super::reading::{Columns, Looks, Reading};
use crate::AdminState;
use crate::refusal::{Error, Refusal};
use crate::status;

/// Streams at a time: a team and its screens on walls. Each is a connection of the door.
const VIEWERS_MAX: usize = 48;

/// Frames that wait for a viewer that does not read; the next are not for it.
const BEHIND_MAX: usize = 4;

/// How often is looked.
const EVERY: Duration = Duration::from_secs(1);

/// Waiting statements in a frame, of each cluster: more are at `/api/v1/waiting`.
const WAITING_LEN: usize = 50;

/// Rows of who was refused in a frame, of each cluster: more are at `/api/v1/status`.
const REFUSED_LEN: usize = 50;

/// With more rules than these, their hits are in every tenth frame.
const FEW_RULES: usize = 500;
const SELDOM: u64 = 10;

/// Rules in a frame whose hits have changed.
const HITS_MAX: usize = 500;

/// What viewers see.
pub(crate) struct Feed {
    state: AdminState,
    memory: Mutex<Memory>,
    viewers: Mutex<Vec<Sender<Bytes>>>,
}

#[derive(Debug)]
struct Memory {
    looks: u64,
    clusters: Vec<ClusterMemory>,
    hits: HashMap<String, u64>,
}

#[derive(Debug)]
struct ClusterMemory {
    looks: Looks,
    past: Past,
    changes: Changes,
    last: Reading,
}

impl Feed {
    /// Of what `state` shows.
    pub(crate) fn new(state: AdminState) -> Arc<Self> {
        let clusters = state.clusters.iter().map(|cluster| ClusterMemory {
            looks: Looks::default(),
            past: Past::default(),
            changes: Changes::new(cluster.policy()),
            last: Reading::default(),
        });
        let memory = Memory { looks: 0, clusters: clusters.collect(), hits: HashMap::new() };
        let memory = Mutex::new(memory);
        Arc::new(Self { state, memory, viewers: Mutex::default() })
    }

    /// Looks once a second, until the task is dropped.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut looks = interval(EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let feed = Arc::clone(&self);
            if let Err(error) = tokio::task::spawn_blocking(move || feed.look()).await {
                tracing::error!(%error, "the console has missed a second");
            }
        }
    }

    /// A place among those who look. It is given back when the receiver is dropped.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn subscribe(&self) -> Result<Receiver<Bytes>, Refusal> {
        let mut viewers = self.viewers.lock();
        viewers.retain(|viewer| !viewer.is_closed());
        if viewers.len() >= VIEWERS_MAX {
            let message = format!("{VIEWERS_MAX} pages look already");
            return Err(Refusal::new(Error::Unavailable, message)
                .remedy("close one of them, or look at /plain or `sluice status`"));
        }
        let (sender, receiver) = channel(BEHIND_MAX);
        viewers.push(sender);
        Ok(receiver)
    }

    /// What was, as the first event of a stream.
    pub(crate) fn past(&self) -> Bytes {
        let memory = self.memory.lock();
        let clusters = self.state.clusters.iter().zip(&memory.clusters);
        let trails = clusters.map(|(cluster, memory)| {
            let columns = Columns::of(memory.past.readings());
            memory.trail(cluster, columns, f64::NEG_INFINITY)
        });
        let event = PastEvent::new(When::now(self.now_s()), trails.collect());
        drop(memory);
        event.bytes()
    }

    fn look(&self) {
        let is_watched = {
            let mut viewers = self.viewers.lock();
            viewers.retain(|viewer| !viewer.is_closed());
            !viewers.is_empty()
        };
        let mut memory = self.memory.lock();
        memory.looks = memory.looks.wrapping_add(1);
        let before = memory.clusters.first().map_or(0.0, |first| first.last.at_s);
        for (cluster, memory) in self.state.clusters.iter().zip(&mut memory.clusters) {
            memory.look(cluster, &self.state);
        }
        if !is_watched {
            memory.hits.clear();
            return;
        }
        let frame = self.frame(&mut memory, before);
        drop(memory);
        let bytes = frame.bytes();
        for viewer in &*self.viewers.lock() {
            // Whoever does not read, or has left, misses it.
            drop(viewer.try_send(bytes.clone()));
        }
    }

    fn frame(&self, memory: &mut Memory, before: f64) -> FrameEvent {
        let clusters = self.state.clusters.iter().zip(&memory.clusters);
        let trails = clusters.map(|(cluster, memory)| {
            let columns = Columns::of(std::iter::once(&memory.last));
            memory.trail(cluster, columns, before)
        });
        let clusters = trails.collect();
        let hits = self.hits(memory);
        let status = status::live(&self.state, WAITING_LEN, REFUSED_LEN);
        FrameEvent { when: When::now(self.now_s()), status, clusters, hits }
    }

    fn hits(&self, memory: &mut Memory) -> BTreeMap<String, u64> {
        let rules: usize = self.state.clusters.iter().map(|it| it.policy().rules.len()).sum();
        if rules > FEW_RULES && !memory.looks.is_multiple_of(SELDOM) {
            return BTreeMap::new();
        }
        let hits = self.state.telemetry.rule_hits();
        let known = std::mem::take(&mut memory.hits);
        let has_changed = |(rule, count): &(&String, &u64)| known.get(*rule) != Some(*count);
        let changed = hits.iter().filter(has_changed).take(HITS_MAX);
        let changed = changed.map(|(rule, count)| (rule.clone(), *count)).collect();
        memory.hits = hits;
        changed
    }

    fn now_s(&self) -> f64 {
        let now = self.state.clusters.first().map(|cluster| cluster.now()).unwrap_or_default();
        now.saturating_since(MonoTime::ZERO).as_secs_f64()
    }
}

impl ClusterMemory {
    fn look(&mut self, cluster: &Arc<Cluster>, state: &AdminState) {
        let reading = self.looks.look(cluster, &state.telemetry);
        self.changes.look(reading.at_s, cluster.policy());
        self.past.push(reading.clone());
        self.last = reading;
    }

    fn trail(&self, cluster: &Arc<Cluster>, columns: Columns, since_s: f64) -> ClusterTrail {
        ClusterTrail {
            cluster: cluster.name.to_string(),
            revision: self.changes.revision,
            slowest: cluster.probes.slowest(cluster.now()).map(|server| server.to_string()),
            columns,
            marks: self.changes.since(since_s).cloned().collect(),
        }
    }
}
