//! The primary, which commits, and the replicas, which apply.

mod parallel;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use admission::MonoTime;
use admission::lag::ReplicaKey;

use crate::{Amount, TICK, scenario};

/// A server of rows, first come first served.
#[derive(Debug, Default)]
pub(super) struct Primary {
    /// When it has done what it was given.
    free_at: MonoTime,
    /// When each of its slots is free, earliest first.
    slots_free_at: Vec<MonoTime>,
}

impl Primary {
    /// When what begins now is committed.
    pub(super) fn commits_at(
        &mut self,
        now: MonoTime,
        rows: f64,
        (capacity, end): (&Amount, MonoTime),
        latency: Duration,
    ) -> MonoTime {
        self.free_at = capacity.passed_at(self.free_at.max(now), rows, end);
        self.free_at.max(now.saturating_add(latency))
    }

    /// How long a statement takes that works for so long in one of so many slots, first come first
    /// served. When there are fewer slots than before, those that are free first are gone.
    pub(super) fn takes(&mut self, now: MonoTime, slots: f64, works: Duration) -> Duration {
        let there_are = f64::from(u32::try_from(self.slots_free_at.len()).unwrap_or(u32::MAX));
        let mut missing = slots.floor() - there_are;
        while missing >= 1.0 {
            self.slots_free_at.insert(0, now);
            missing -= 1.0;
        }
        while missing <= -1.0 {
            self.slots_free_at.remove(0);
            missing += 1.0;
        }
        let free_at =
            if self.slots_free_at.is_empty() { now } else { self.slots_free_at.remove(0) };
        let ends = free_at.max(now).saturating_add(works);
        let place = self.slots_free_at.partition_point(|at| *at <= ends);
        self.slots_free_at.insert(place, ends);
        ends.saturating_since(now)
    }
}

/// A replica at work.
#[derive(Debug)]
pub(super) struct Replica {
    pub(super) key: ReplicaKey,
    pub(super) presence: Presence,
    /// What it could apply without jitter.
    pub(super) nominal_per_s: f64,
    /// What it can in this tick.
    per_s: f64,
    /// Rows applied in this tick so far.
    pub(super) applied: f64,
    /// Up to when it has applied.
    advanced_to: MonoTime,
    queue: VecDeque<Entry>,
    /// How many of these are transactions.
    pending: usize,
    /// The work of each app that it has applied.
    applied_of: BTreeMap<usize, f64>,
    /// What its lag must stay below, if that is its own.
    pub(super) threshold: Option<Duration>,
    /// Work of a transaction whatever it writes.
    commit_cost: f64,
    appliers: u32,
    /// How many its settings say there are.
    pub(super) workers: u32,
    in_order: bool,
    /// The newest heartbeat that it shows of each Sluice.
    shown: Vec<Option<u64>>,
}

/// Whether it is in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Here,
    Away,
}

/// What is left of a transaction, or a heartbeat in its place.
#[derive(Debug)]
struct Entry {
    committed: MonoTime,
    arrives: MonoTime,
    rows: f64,
    rows_left: f64,
    /// Whose it is, if it is an app's.
    app: Option<usize>,
    heartbeat: Option<Beat>,
    /// Heartbeats from behind it that have overtaken it, and count once it is applied.
    overtaken_by: Vec<Beat>,
}

impl Entry {
    /// Of each Sluice the newest is enough: all of them count at once.
    fn is_overtaken_by(&mut self, beat: Beat) {
        match self.overtaken_by.iter_mut().find(|other| other.proxy == beat.proxy) {
            Some(other) => other.seq = other.seq.max(beat.seq),
            None => self.overtaken_by.push(beat),
        }
    }
}

/// What a transaction is to a replica.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    pub(super) rows: f64,
    /// Whose it is, if it is an app's.
    pub(super) app: Option<usize>,
}

/// A heartbeat: whose, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beat {
    pub(super) proxy: usize,
    pub(super) seq: u64,
}

/// Less of a row than this is none: what is left after sums of fractions.
const ROWS_EPSILON: f64 = 1e-9;

impl Replica {
    pub(super) fn new(plan: &scenario::Replica, key: ReplicaKey, proxies: usize) -> Self {
        Self {
            key,
            presence: Presence::Here,
            nominal_per_s: plan.apply.at(MonoTime::ZERO),
            per_s: 0.0,
            applied: 0.0,
            advanced_to: MonoTime::ZERO,
            queue: VecDeque::new(),
            pending: 0,
            applied_of: BTreeMap::new(),
            threshold: plan.threshold,
            commit_cost: plan.commit_cost,
            appliers: plan.appliers,
            workers: plan.workers,
            in_order: plan.preserve_commit_order,
            shown: vec![None; proxies],
        }
    }

    /// One tick is over and has been looked at. One that comes back shows what there is: the newest
    /// that each Sluice has committed.
    pub(super) fn begin_tick(
        &mut self,
        plan: &scenario::Replica,
        now: MonoTime,
        jitter: f64,
        newest: impl Iterator<Item = Option<u64>>,
    ) {
        let away = plan.away.iter().any(|window| window.contains(now));
        match (self.presence, away) {
            (Presence::Here, true) => {
                self.presence = Presence::Away;
                self.queue.clear();
                self.pending = 0;
            }
            (Presence::Away, false) => {
                self.presence = Presence::Here;
                self.shown = newest.collect();
            }
            (Presence::Here, false) | (Presence::Away, true) => {}
        }
        self.nominal_per_s = plan.apply.at(now);
        self.per_s = self.nominal_per_s * jitter;
        self.applied = 0.0;
        self.advanced_to = now;
    }

    /// Applies for the time that has passed. What it does not need of it is lost.
    pub(super) fn advance(&mut self, now: MonoTime) {
        if self.appliers > 1 {
            self.advance_parallel(now);
            return;
        }
        let passed = now.saturating_since(self.advanced_to).as_secs_f64();
        self.advanced_to = self.advanced_to.max(now);
        let mut rows = passed * self.per_s;
        while let Some(first) = self.queue.front_mut() {
            if first.arrives > now {
                return;
            }
            // Nothing is applied before it is there.
            rows = rows.min(now.saturating_since(first.arrives).as_secs_f64() * self.per_s);
            let applied = first.rows_left.min(rows);
            first.rows_left -= applied;
            rows -= applied;
            self.applied += applied;
            let stalled = first.heartbeat.is_some() && self.per_s <= 0.0;
            if stalled || first.rows_left > ROWS_EPSILON {
                return;
            }
            if let Some(done) = self.queue.pop_front() {
                self.has_applied(&done);
                self.show(done.heartbeat);
            }
        }
    }

    /// A transaction is committed, so much work for the replica.
    pub(super) fn append(&mut self, now: MonoTime, transit: Duration, work: Work) {
        let arrives = self.arrives(now, transit);
        self.push(
            now,
            Entry {
                committed: now,
                arrives,
                rows: work.rows,
                rows_left: work.rows + self.commit_cost,
                app: work.app,
                heartbeat: None,
                overtaken_by: Vec::new(),
            },
        );
    }

    /// A heartbeat is committed.
    pub(super) fn append_heartbeat(&mut self, now: MonoTime, transit: Duration, beat: Beat) {
        let arrives = self.arrives(now, transit);
        self.push(
            now,
            Entry {
                committed: now,
                arrives,
                rows: 0.0,
                rows_left: 0.0,
                app: None,
                heartbeat: Some(beat),
                overtaken_by: Vec::new(),
            },
        );
    }

    /// When it is there. The stream keeps its order.
    fn arrives(&self, now: MonoTime, transit: Duration) -> MonoTime {
        let before = self.queue.back().map_or(MonoTime::ZERO, |entry| entry.arrives);
        now.saturating_add(transit).max(before)
    }

    fn push(&mut self, now: MonoTime, entry: Entry) {
        match self.presence {
            Presence::Away => {}
            Presence::Here => {
                // An idle replica does not save time up.
                if self.queue.is_empty() {
                    self.advanced_to = now;
                }
                if entry.heartbeat.is_none() {
                    self.pending = self.pending.saturating_add(1);
                }
                self.queue.push_back(entry);
            }
        }
    }

    /// Whether it commits in the primary's order.
    pub(super) fn keeps_order(&self) -> bool {
        self.in_order
    }

    /// The newest heartbeat of a Sluice that it shows now.
    pub(super) fn shows(&mut self, now: MonoTime, proxy: usize) -> Option<u64> {
        self.advance(now);
        self.shown.get(proxy).copied().flatten()
    }

    /// Whose transactions its appliers are at, and whether at their rows. One that is done and waits for its turn to
    /// commit is at nothing.
    pub(super) fn at_work(&mut self, now: MonoTime) -> Vec<(Option<usize>, bool)> {
        self.advance(now);
        let appliers = usize::try_from(self.appliers).unwrap_or(usize::MAX);
        let there = self.queue.iter().filter(|entry| entry.heartbeat.is_none());
        let taken = there.take(appliers).filter(|entry| entry.arrives <= now);
        taken
            .filter(|entry| entry.rows_left > ROWS_EPSILON)
            .map(|entry| (entry.app, entry.rows_left > self.commit_cost))
            .collect()
    }

    /// A transaction, or a heartbeat, is not in the queue any more.
    fn has_applied(&mut self, done: &Entry) {
        if done.heartbeat.is_none() {
            self.pending = self.pending.saturating_sub(1);
        }
        if let Some(app) = done.app {
            *self.applied_of.entry(app).or_default() += done.rows;
        }
    }

    /// The work of each app that it has applied.
    pub(super) fn applied_of(&self) -> impl Iterator<Item = (usize, f64)> {
        self.applied_of.iter().map(|(app, work)| (*app, *work))
    }

    /// What it has applied it shows: of each Sluice the newest.
    fn show(&mut self, heartbeat: Option<Beat>) {
        let Some(Beat { proxy, seq }) = heartbeat else { return };
        if let Some(shown) = self.shown.get_mut(proxy) {
            *shown = (*shown).max(Some(seq));
        }
    }

    /// The age of the oldest transaction that is not applied, and how many entries were looked at to
    /// find it.
    pub(super) fn look_at_lag(&self, now: MonoTime) -> (Duration, usize) {
        if self.pending == 0 {
            return (Duration::ZERO, 0);
        }
        let oldest = self.queue.iter().position(|entry| entry.heartbeat.is_none());
        let entry = oldest.and_then(|place| self.queue.get(place));
        let lag = entry.map_or(Duration::ZERO, |entry| now.saturating_since(entry.committed));
        (lag, oldest.unwrap_or(self.queue.len()))
    }

    /// What its queue takes.
    pub(super) fn queued_bytes(&self) -> usize {
        self.queue.len().saturating_mul(size_of::<Entry>())
    }

    /// Rows it could apply in this tick.
    pub(super) fn capacity(&self) -> f64 {
        self.per_s * TICK.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(rows: f64) -> Work {
        Work { rows, app: None }
    }

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn beat(seq: u64) -> Beat {
        Beat { proxy: 0, seq }
    }

    fn replica(apply_per_s: f64, away: Vec<scenario::Away>) -> (Replica, scenario::Replica) {
        let plan = scenario::Replica {
            apply: Amount::constant(apply_per_s),
            jitter: 0.0,
            away,
            threshold: None,
            transit: Vec::new(),
            appliers: 1,
            workers: 1,
            preserve_commit_order: true,
            commit_cost: 0.0,
        };
        let mut replica = Replica::new(&plan, ReplicaKey(1), 1);
        replica.begin_tick(&plan, at(0), 1.0, std::iter::once(None));
        (replica, plan)
    }

    #[test]
    fn a_heartbeat_shows_when_all_before_it_is_applied() {
        let (mut replica, _) = replica(1_000.0, Vec::new());
        replica.append_heartbeat(at(0), Duration::ZERO, beat(1));
        assert_eq!(replica.shows(at(0), 0), Some(1));
        replica.append(at(1), Duration::ZERO, work(3.0));
        replica.append_heartbeat(at(2), Duration::ZERO, beat(2));
        replica.append(at(2), Duration::ZERO, work(1.0));
        assert_eq!(replica.shows(at(3), 0), Some(1));
        assert_eq!(replica.look_at_lag(at(3)).0, Duration::from_millis(2));
        assert_eq!(replica.shows(at(4), 0), Some(2));
        assert_eq!(replica.look_at_lag(at(4)).0, Duration::from_millis(2));
        replica.advance(at(5));
        assert_eq!(replica.look_at_lag(at(5)).0, Duration::ZERO);
    }

    #[test]
    fn a_stalled_replica_does_not_show_heartbeats_either() {
        let (mut replica, _) = replica(0.0, Vec::new());
        replica.append_heartbeat(at(1), Duration::ZERO, beat(1));
        assert_eq!(replica.shows(at(5), 0), None);
        assert_eq!(replica.look_at_lag(at(5)).0, Duration::ZERO);
    }

    #[test]
    fn an_idle_replica_saves_nothing_up() {
        let (mut replica, _) = replica(1_000.0, Vec::new());
        replica.append(at(8), Duration::ZERO, work(1.0));
        replica.advance(at(8));
        assert_eq!(replica.look_at_lag(at(8)).0, Duration::ZERO);
        replica.append(at(8), Duration::ZERO, work(1.0));
        replica.advance(at(9));
        assert!((replica.applied - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nor_does_one_that_nobody_has_looked_at_meanwhile() {
        let (mut replica, _) = replica(1_000.0, Vec::new());
        let of_first = |rows| Work { rows, app: Some(0) };
        replica.append(at(0), Duration::ZERO, of_first(2.0));
        replica.append(at(8), Duration::ZERO, of_first(4.0));
        assert_eq!(replica.at_work(at(11)), [(Some(0), true)], "three of the four");
        assert_eq!(replica.applied_of().collect::<Vec<_>>(), [(0, 2.0)]);
        assert!(replica.at_work(at(12)).is_empty());
    }

    #[test]
    fn a_replica_that_comes_back_shows_what_there_is() {
        let away = scenario::Window { from: at(10), to: at(20) };
        let (mut replica, plan) = replica(1.0, vec![away]);
        replica.append(at(5), Duration::ZERO, work(100.0));
        replica.begin_tick(&plan, at(10), 1.0, std::iter::once(Some(3)));
        assert_eq!(replica.presence, Presence::Away);
        replica.append(at(15), Duration::ZERO, work(100.0));
        assert_eq!(replica.look_at_lag(at(16)).0, Duration::ZERO);
        replica.begin_tick(&plan, at(20), 1.0, std::iter::once(Some(4)));
        assert_eq!((replica.presence, replica.shows(at(20), 0)), (Presence::Here, Some(4)));
    }

    #[test]
    fn statements_take_turns_in_the_slots_there_are() {
        let mut primary = Primary::default();
        let mut takes =
            |now, slots, ms| primary.takes(at(now), slots, Duration::from_millis(ms)).as_millis();
        assert_eq!([takes(0, 2.0, 10), takes(0, 2.0, 4), takes(0, 2.0, 4)], [10, 4, 8]);
        assert_eq!(takes(20, 2.0, 5), 5, "all are free");
        assert_eq!([takes(40, 1.0, 5), takes(40, 1.0, 5)], [5, 10], "one is left");
        assert_eq!(takes(41, 3.0, 5), 5, "two more");
    }

    #[test]
    fn statements_queue_for_the_primary_and_overlap_in_their_latency() {
        let (mut primary, capacity) = (Primary::default(), Amount::constant(1_000.0));
        let latency = Duration::from_millis(5);
        let mut commit = |now, rows| primary.commits_at(now, rows, (&capacity, at(1_000)), latency);
        assert_eq!([commit(at(0), 1.0), commit(at(0), 1.0)], [at(5), at(5)]);
        assert_eq!([commit(at(0), 8.0), commit(at(1), 1.0)], [at(10), at(11)]);
        assert_eq!(commit(at(20), 1.0), at(25));
    }
}
