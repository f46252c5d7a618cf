//! The latencies that signals are made of, counted where the server answers.
//!
//! Every relaying thread counts into counters of its own, which only grow: a statement costs a few
//! atomic additions that no other thread contends for, no lock and no memory; without such a signal
//! it costs one look. The cluster's driver adds the threads up a few times a second and tells the
//! controller the percentile ([`admission::LatencyWindow`]).
//!
//! A statement is under way from when Sluice begins to wait for the server until its answer is over,
//! or its connection is; one that never ends is seen as well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use admission::{
    LATENCY_BUCKETS, LatencyCounts, LatencyRecent, LatencyWindow, Sample, SignalKey, latency_bucket,
};
use arc_swap::ArcSwap;
use policy::{ClusterPolicy, Latency};
use sql::Class;

use crate::cluster::Cluster;

/// Threads that count apart; more share.
const SHARDS_MAX: usize = 64;

/// Values are no rarer, however long the window.
const INTERVAL_MAX: Duration = Duration::from_millis(250);

/// The latencies of a cluster.
pub(crate) struct LatencyBoard(ArcSwap<Vec<Tap>>);

/// One signal's.
struct Tap {
    key: SignalKey,
    what: Arc<Latency>,
    shards: Arc<[Shard]>,
}

/// What one thread counts.
struct Shard {
    begun: AtomicU64,
    ended: AtomicU64,
    buckets: Box<[AtomicU64]>,
}

impl Default for Shard {
    fn default() -> Self {
        let buckets = std::iter::repeat_with(AtomicU64::default).take(LATENCY_BUCKETS);
        Self {
            begun: AtomicU64::default(),
            ended: AtomicU64::default(),
            buckets: buckets.collect(),
        }
    }
}

impl LatencyBoard {
    pub(crate) fn new(policy: &ClusterPolicy) -> Self {
        let board = Self(ArcSwap::from_pointee(Vec::new()));
        board.follow(policy);
        board
    }

    /// Other signals are in force; those that stay go on with what was counted.
    pub(crate) fn follow(&self, policy: &ClusterPolicy) {
        let known = self.0.load();
        let taps: Vec<Tap> = policy
            .latencies()
            .map(|(signal, what)| {
                let same = known.iter().find(|tap| tap.key == signal.key);
                let shards = same.map_or_else(shards, |tap| Arc::clone(&tap.shards));
                Tap { key: signal.key, what: Arc::clone(what), shards }
            })
            .collect();
        if !(taps.is_empty() && known.is_empty()) {
            self.0.store(Arc::new(taps));
        }
    }
}

fn shards() -> Arc<[Shard]> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::iter::repeat_with(Shard::default).take(threads.min(SHARDS_MAX)).collect()
}

/// What one connection counts.
pub(crate) struct LatencyTap {
    taps: Arc<Vec<Tap>>,
    /// Which thread it lives on.
    worker: usize,
    /// The signals that the statement under way is counted in, by a bit each.
    under_way: Option<u32>,
    /// What the one before was, and its signals: the next is mostly like it.
    last: Like,
}

/// What decides about the signals that a statement is counted in.
#[derive(Default)]
struct Like {
    /// In which state of the session's names.
    naming: u64,
    rule: Option<u32>,
    class: Option<Class>,
    counted: u32,
}

impl LatencyTap {
    pub(crate) fn new(board: &LatencyBoard, worker: usize) -> Self {
        Self { taps: board.0.load_full(), worker, under_way: None, last: Like::default() }
    }

    /// It lives on this thread now. What is under way ends there; all threads are added up.
    pub(crate) fn move_to(&mut self, worker: usize) {
        self.worker = worker;
    }

    /// There may be other signals, and other rules.
    pub(crate) fn follow(&mut self, board: &LatencyBoard) {
        self.last.class = None;
        let taps = board.0.load();
        if !Arc::ptr_eq(&taps, &self.taps) {
            self.end(None);
            self.taps = Arc::clone(&taps);
        }
    }

    /// Whether the beginning of a statement is to be noted.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.taps.is_empty() && self.under_way.is_none()
    }

    /// The server has a statement of this app and class, which this rule decided: its place in the
    /// policy in force, and its name. The app comes with the state of the session's names, which is
    /// never the same with another one.
    pub(crate) fn begin<'p>(
        &mut self,
        (naming, app): (u64, &[u8]),
        rule: Option<u32>,
        class: Class,
        name_of: impl FnOnce(u32) -> Option<&'p str>,
    ) {
        let Like { naming: as_named, rule: last_rule, class: last_class, counted } = &mut self.last;
        if *last_class != Some(class) || *last_rule != rule || *as_named != naming {
            let name = rule.and_then(name_of);
            let about = self.taps.iter().zip(bits());
            let about = about.filter(|(tap, _)| tap.what.is_about(app, name, class));
            *counted = about.fold(0, |counted, (_, bit)| counted | bit);
            (*as_named, *last_rule, *last_class) = (naming, rule, Some(class));
        }
        let counted = self.last.counted;
        self.under_way = Some(counted);
        for shard in self.shards(counted) {
            shard.begun.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// This thread's counters of these signals.
    fn shards(&self, counted: u32) -> impl Iterator<Item = &Shard> {
        let taps = if counted == 0 { &[] } else { self.taps.as_slice() };
        let taps = taps.iter().zip(bits()).filter(move |(_, bit)| counted & bit != 0);
        taps.filter_map(|(tap, _)| tap.shard(self.worker))
    }

    /// Its answer is over; `None`: it is over without one.
    pub(crate) fn end(&mut self, latency: Option<Duration>) {
        let Some(counted) = self.under_way.take() else { return };
        for shard in self.shards(counted) {
            let bucket = latency.and_then(|latency| shard.buckets.get(latency_bucket(latency)));
            if let Some(bucket) = bucket {
                bucket.fetch_add(1, Ordering::Relaxed);
            }
            shard.ended.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for LatencyTap {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// The bits of the signals, in their order.
fn bits() -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter_map(|n| 1_u32.checked_shl(n))
}

impl Tap {
    fn shard(&self, worker: usize) -> Option<&Shard> {
        self.shards.get(worker.checked_rem(self.shards.len())?)
    }

    /// All threads together. What has ended is read before what has begun, so that nothing looks as
    /// if it ended without a beginning.
    fn sum(&self, counts: &mut LatencyCounts) {
        counts.buckets.fill(0);
        let sum = |of: fn(&Shard) -> &AtomicU64| {
            let values = self.shards.iter().map(|shard| of(shard).load(Ordering::Relaxed));
            values.fold(0, u64::wrapping_add)
        };
        counts.ended = sum(|shard| &shard.ended);
        counts.begun = sum(|shard| &shard.begun);
        for shard in &*self.shards {
            for (sum, count) in counts.buckets.iter_mut().zip(&shard.buckets) {
                *sum = sum.wrapping_add(count.load(Ordering::Relaxed));
            }
        }
    }
}

impl Cluster {
    fn tell_latency(self: &Arc<Self>, key: SignalKey, value: f64, recent: &LatencyRecent) {
        self.control(|controller, now| {
            controller.handle_latencies(now, key, recent);
            controller.handle_sample(now, key, Sample::Value(value));
        });
    }

    /// Tells the controller the latencies that signals are made of, until it is dropped. While the
    /// apps in question are idle there is nothing to tell.
    pub(crate) async fn watch_latencies(self: &Arc<Self>) {
        let mut changes = self.rule_changes();
        let mut windows: Vec<(SignalKey, Arc<Latency>, LatencyWindow)> = Vec::new();
        let mut counts = LatencyCounts::default();
        loop {
            let taps = self.latencies.0.load_full();
            let mut before = std::mem::take(&mut windows);
            for tap in &*taps {
                let same = |(key, what, _): &(SignalKey, Arc<Latency>, LatencyWindow)| {
                    *key == tap.key && *what == tap.what
                };
                let window = match before.iter().position(same) {
                    Some(index) => before.swap_remove(index).2,
                    None => LatencyWindow::new(tap.what.window, tap.what.percentile),
                };
                windows.push((tap.key, Arc::clone(&tap.what), window));
            }
            for (tap, (key, _, window)) in taps.iter().zip(&mut windows) {
                tap.sum(&mut counts);
                if let Some(value) = window.look(self.now(), &counts) {
                    self.tell_latency(*key, value, window.recent());
                }
            }
            let interval = windows.iter().map(|(.., window)| window.interval()).min();
            let sleep = async {
                match interval {
                    Some(interval) => tokio::time::sleep(interval.min(INTERVAL_MAX)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = sleep => {}
                // The sender lives as long as the cluster.
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
version: 1
clusters:
  a:
    listen: 127.0.0.1:1
    primary: 127.0.0.1:2
    signals:
      web_p99: { latency: { app: web, statements: [read, write] }, threshold: 20ms }
      slow: { latency: { rule: everything }, threshold: 1s }
rules: []
";

    const RULE: Option<u32> = Some(3);

    fn name_of(rule: u32) -> Option<&'static str> {
        (Some(rule) == RULE).then_some("everything")
    }

    fn sums(board: &LatencyBoard) -> Vec<(u64, u64, u64)> {
        let taps = board.0.load();
        let mut counts = LatencyCounts::default();
        let sum = |tap: &Tap| {
            tap.sum(&mut counts);
            (counts.begun, counts.ended, counts.buckets.iter().sum())
        };
        taps.iter().map(sum).collect()
    }

    #[test]
    fn a_statement_is_counted_in_the_signals_that_are_about_it_and_never_runs_for_ever() {
        let policy = policy::load(FILE).unwrap().clusters[0].clone();
        let board = LatencyBoard::new(&policy);
        let mut tap = LatencyTap::new(&board, 5);
        assert!(tap.is_awaited());
        tap.begin((1, b"shop:web"), RULE, Class::Read, name_of);
        assert!(!tap.is_awaited(), "it is noted once");
        assert_eq!(sums(&board), [(1, 0, 0), (1, 0, 0)]);
        tap.move_to(4);
        tap.end(Some(Duration::from_millis(3)));
        tap.begin((2, b"etl"), RULE, Class::Write, name_of);
        tap.end(None);
        assert_eq!(
            sums(&board),
            [(1, 1, 1), (2, 2, 1)],
            "an answer that never came has no latency"
        );
        tap.begin((3, b"web"), None, Class::Ddl, name_of);
        drop(tap);
        assert_eq!(sums(&board), [(1, 1, 1), (2, 2, 1)], "neither class nor rule is theirs");
        let mut tap = LatencyTap::new(&board, 6);
        tap.begin((3, b"web"), None, Class::Write, name_of);
        board.follow(&policy);
        tap.follow(&board);
        assert_eq!(sums(&board)[0], (2, 2, 1), "a reload loses no end");
    }

    #[test]
    fn what_the_last_statement_was_decides_nothing_about_one_that_differs() {
        let policy = policy::load(FILE).unwrap().clusters[0].clone();
        let board = LatencyBoard::new(&policy);
        let mut tap = LatencyTap::new(&board, 0);
        let mut begun = |app: &[u8], rule, class, before: [u64; 2]| {
            tap.begin((u64::from(app == b"web"), app), rule, class, name_of);
            tap.end(None);
            let now: Vec<u64> = sums(&board).into_iter().map(|(begun, ..)| begun).collect();
            [now[0] - before[0], now[1] - before[1]]
        };
        assert_eq!(begun(b"web", RULE, Class::Read, [0, 0]), [1, 1]);
        assert_eq!(begun(b"web", RULE, Class::Read, [1, 1]), [1, 1]);
        assert_eq!(begun(b"we", RULE, Class::Read, [2, 2]), [0, 1], "another app");
        assert_eq!(begun(b"web", None, Class::Read, [2, 3]), [1, 0], "no rule");
        assert_eq!(begun(b"web", Some(4), Class::Read, [3, 3]), [1, 0], "another rule");
        assert_eq!(begun(b"web", RULE, Class::Ddl, [4, 3]), [0, 1], "another class");
        // Another file, where the place is another rule's.
        tap.follow(&board);
        tap.begin((1, b"web"), RULE, Class::Ddl, |_| Some("renamed"));
        assert_eq!(sums(&board).iter().map(|(begun, ..)| *begun).sum::<u64>(), 8);
    }
}
