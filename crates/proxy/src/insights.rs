//! What every digest, app and schema costs: from the connections to [`insights::Insights`].
//!
//! A statement that is over becomes a record of a dozen words in a queue of its thread's (module
//! `ring`): no lock, no memory, no other thread is waited for. A thread of its own takes the records
//! twice a second, or when a queue is half full, and counts; who asks for a view has it take what is
//! there first. Texts and names are hashes in a record, and are told once, through a channel; the
//! memo that saves reading a text's digest remembers which were ([`sql::DigestMemo`]).
//!
//! When a queue is full the record's numbers are added to sums, so that totals stay exact, and
//! nobody waits. Docs: `docs/decisions/0039-insights-beside-the-path.md`.

mod ring;
mod spill;
mod tap;

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::Thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{io, thread};

use insights::{
    Insights, Kept, KeptMinute, KeptName, Learned, Look, Mark, Past, Record, Restored, Time, View,
};
use parking_lot::Mutex;
use policy::ClusterPolicy;
use sql::DigestMemo;

use self::ring::{Put, Ring};
use self::spill::Spill;
use crate::cluster::Cluster;

pub use self::tap::refusal_name;
pub(crate) use self::tap::{Counted, InsightsTap, Whose, reason_number};

/// Threads with a queue of their own; more share.
const RINGS_MAX: usize = 64;

/// Texts and names on their way; what finds no place is told by the next statement.
const NEWS_MAX: usize = 1_024;

/// How often records are taken.
const INTERVAL: Duration = Duration::from_millis(500);

/// The insights of one cluster.
pub struct InsightsBoard {
    memo: DigestMemo,
    /// Made when its thread has its first record: 850 KiB each.
    rings: Box<[OnceLock<Box<Ring>>]>,
    spill: Spill,
    news: SyncSender<Learned>,
    counted: Mutex<Counting>,
    /// Whoever counts.
    counter: OnceLock<Thread>,
}

struct Counting {
    insights: Insights,
    news: Receiver<Learned>,
}

/// What a run keeps of its insights, or has been kept by others.
#[derive(Debug)]
pub struct ToKeep {
    /// What its statements have cost.
    pub kept: Vec<Kept>,
    /// What apps did in each second: how many were there at once, and what came.
    pub at_once: Vec<KeptMinute>,
    /// What the hashes in it stand for.
    pub names: Vec<(u64, KeptName)>,
}

impl InsightsBoard {
    pub(crate) fn new(policy: &ClusterPolicy, seed: u64) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let (sender, receiver) = sync_channel(NEWS_MAX);
        let insights = Insights::new(places(policy), seed, now());
        Self {
            memo: DigestMemo::starting_at(seed),
            rings: std::iter::repeat_with(OnceLock::new).take(threads.min(RINGS_MAX)).collect(),
            spill: Spill::default(),
            news: sender,
            counted: Mutex::new(Counting { insights, news: receiver }),
            counter: OnceLock::new(),
        }
    }

    /// The digests that came before.
    pub(crate) fn memo(&self) -> &DigestMemo {
        &self.memo
    }

    /// What a window shows, with all statements that are over by now.
    pub fn look(&self, look: &Look, policy: &ClusterPolicy) -> View {
        self.look_twice(look, None, policy).0
    }

    /// The same, and beside it what another window shows.
    pub fn look_twice(
        &self,
        look: &Look,
        other: Option<&Look>,
        policy: &ClusterPolicy,
    ) -> (View, Option<View>) {
        let (pieces, others) = {
            let mut counted = self.counted.lock();
            self.take_all(&mut counted, policy);
            let insights = &counted.insights;
            (insights.pieces(look), other.map(|other| insights.pieces(other)))
        };
        // Adding up a day takes a while, and nobody is to wait for it.
        let (sums, others) = (pieces.add_up(), others.map(|pieces| pieces.add_up()));
        let counted = self.counted.lock();
        let other = other.zip(others).map(|(look, sums)| counted.insights.name(&sums, look));
        (counted.insights.name(&sums, look), other)
    }

    /// The windows that have begun behind the mark and are over, or all that have begun if the run
    /// ends, with the names in them that were not told before.
    pub fn to_keep(
        &self,
        run: i64,
        (mark, told): (&mut Mark, &mut HashSet<u64>),
        end: Option<&ClusterPolicy>,
    ) -> ToKeep {
        let mut counted = self.counted.lock();
        if let Some(policy) = end {
            self.take_all(&mut counted, policy);
        }
        let insights = &counted.insights;
        let (mut kept, mut at_once) = (insights.over(run, mark), insights.at_once_over(run, mark));
        if end.is_some() {
            kept.extend(insights.unfinished(run));
            at_once.extend(insights.at_once_unfinished(run, mark));
        }
        let names = insights.names(&kept, told);
        ToKeep { kept, at_once, names }
    }

    /// Takes in what other runs have kept: all of it, of which what is new counts.
    pub fn take_in(&self, past: &mut Past, ToKeep { kept, at_once, names }: ToKeep) {
        let places = self.counted.lock().insights.places();
        // Nobody is to wait for that.
        let restored: Restored = past.take_in((&kept, at_once), places);
        self.counted.lock().insights.restore(restored, names);
    }

    /// Says what a hash stands for. If there is no room, the next statement says it again.
    fn tell(&self, hash: u64, learned: impl FnOnce() -> Learned) {
        if self.news.try_send(learned()).is_ok() {
            self.memo.note_told(hash);
        }
    }

    #[inline]
    fn put(&self, record: &Record, worker: usize) {
        let ring = self.rings.get(worker).or_else(|| {
            let shared = worker.checked_rem(self.rings.len())?;
            self.rings.get(shared)
        });
        let Some(ring) = ring else { return self.spill.add(record) };
        match ring.get_or_init(Box::default).put(&record.to_words()) {
            Put::Done => {}
            Put::HalfFull => {
                if let Some(counter) = self.counter.get() {
                    counter.unpark();
                }
            }
            Put::Full => self.spill.add(record),
        }
    }

    fn collect(&self, policy: &ClusterPolicy) {
        self.take_all(&mut self.counted.lock(), policy);
    }

    fn take_all(&self, counted: &mut Counting, policy: &ClusterPolicy) {
        let Counting { insights, news } = counted;
        insights.set_places(places(policy));
        insights.advance(now());
        for ring in self.rings.iter().filter_map(OnceLock::get) {
            ring.take_all(|record| insights.observe(&Record::from_words(record)));
        }
        if let Some(spilled) = self.spill.take() {
            insights.observe_lost(&spilled);
        }
        // Before what is new comes, to which nothing refers yet.
        if insights.tidy() {
            self.memo.forget_told();
        }
        for learned in news.try_iter().take(NEWS_MAX) {
            insights.learn(learned);
        }
    }
}

/// Starts the thread that counts; it ends when the clusters are gone.
///
/// # Errors
/// When no thread can be started.
pub(crate) fn count(clusters: &[Arc<Cluster>]) -> io::Result<()> {
    let counted: Vec<Weak<Cluster>> = clusters.iter().map(Arc::downgrade).collect();
    let thread = thread::Builder::new().name("insights".to_owned()).spawn(move || {
        loop {
            thread::park_timeout(INTERVAL);
            let mut left = false;
            for cluster in counted.iter().filter_map(Weak::upgrade) {
                left = true;
                cluster.insights.collect(&cluster.policy());
            }
            if !left {
                return;
            }
        }
    })?;
    for cluster in clusters {
        // Nobody else sets it.
        drop(cluster.insights.counter.set(thread.thread().clone()));
    }
    Ok(())
}

fn places(policy: &ClusterPolicy) -> usize {
    usize::try_from(policy.insights.max_digests).unwrap_or(usize::MAX)
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
