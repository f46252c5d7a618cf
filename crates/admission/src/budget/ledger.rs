//! The buckets of a cluster, and what is taken from them.
//!
//! Bounds: [`BUCKETS_MAX`] buckets, and as many as statements are at the server. Where more would
//! be remembered, of the budget that has most the one that would be empty first is forgotten.

use std::collections::HashMap;
use std::time::Duration;

use super::bucket::Bucket;
use super::elsewhere::{BudgetDebt, Elsewhere};
use super::idle::Idle;
use super::prediction::{Cost, Finding, Predictions};
use super::terms::{BudgetBook, BudgetKey, BudgetSet, BudgetTerms, BudgetUse, OnExceeded};
use crate::{AppKey, DigestKey, Mode, MonoTime, Reason};

/// Buckets remembered, about 250 bytes each.
const BUCKETS_MAX: usize = 65_536;

/// Buckets that have emptied and make room for a new one: two, so that their number shrinks.
const FORGOTTEN_MAX: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct Budgets {
    book: BudgetBook,
    buckets: HashMap<BudgetUse, Entry>,
    /// What another process has at the server.
    elsewhere: Elsewhere,
    /// Those of which nobody is at the server.
    idle: Idle,
    predictions: Predictions,
    counts: HashMap<BudgetKey, Counts>,
}

#[derive(Debug)]
struct Entry {
    bucket: Bucket,
    /// As in `idle`.
    idle_at: Option<MonoTime>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    in_use: u64,
    exceeded: u64,
    warned: u64,
}

/// What a statement has taken from its budgets. It is given back exactly once, by
/// [`crate::Controller::finish_budgeted`].
#[derive(Debug)]
#[must_use = "what is not given back is taken for ever"]
pub struct BudgetHold {
    set: BudgetSet,
    /// To which of them it is charged.
    charged: [bool; BudgetSet::LEN_MAX],
    asks: (Option<DigestKey>, AppKey),
    taken: Cost,
    /// What its cost is going to say.
    finding: Finding,
    since: MonoTime,
}

impl BudgetHold {
    pub(crate) fn set(&self) -> &BudgetSet {
        &self.set
    }

    /// It goes on with a statement whose cost was learned when it paused: what it uses is owed, and
    /// says nothing of what such statements cost.
    pub fn of_part(self) -> Self {
        Self { finding: Finding::Part, ..self }
    }

    /// What it was taken with, for [`crate::Controller::count_budgeted`]: the statement may go on
    /// later.
    #[must_use]
    pub fn taken_with(&self) -> (BudgetSet, (Option<DigestKey>, AppKey)) {
        (self.set, self.asks)
    }
}

/// What a statement has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetUsed {
    /// Time at the server.
    pub server_time: Duration,
    /// Rows changed, and rows sent.
    pub rows: u64,
    /// Whether it ended in an error, or without an answer: then it says nothing about the next one.
    pub failed: bool,
}

/// One budget, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetView {
    /// Which.
    pub budget: BudgetKey,
    /// Statements at the server now.
    pub in_use: u64,
    /// Statements that wait for it now.
    pub waiting: u64,
    /// Statements that had no room when they came.
    pub exceeded: u64,
    /// The same, that passed because the budget only warns.
    pub warned: u64,
}

/// What stands in a statement's way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InTheWay {
    /// It is not to wait.
    Refused { at: BudgetUse, reason: Reason },
    /// It has to wait for this bucket; `until`: as long as nobody ends, at least.
    Waits { at: BudgetUse, reason: Reason, until: Option<MonoTime> },
}

impl Budgets {
    /// Other budgets are in force. What is at the server stays counted.
    pub(crate) fn configure(&mut self, book: BudgetBook) {
        self.book = book;
    }

    /// The longest wait for a bucket.
    pub(crate) fn max_delay(&self, budget: BudgetKey) -> Duration {
        self.book.get(budget).map_or(Duration::ZERO, |terms| terms.max_delay)
    }

    /// What stands in the way of a statement that these budgets meet. A budget that refuses says so
    /// before another one makes it wait.
    pub(crate) fn in_the_way(
        &mut self,
        now: MonoTime,
        set: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
        has_line: impl Fn(BudgetUse) -> bool,
    ) -> Option<InTheWay> {
        let cost = self.predictions.expected(asks.0, asks.1);
        let mut waits = None;
        for at in set.iter() {
            let Some(terms) = self.book.get(at.budget) else { continue };
            match terms.mode {
                Mode::Enforce => {}
                Mode::Observe => continue,
            }
            if is_too_expensive(terms, self.predictions.believed(now, asks.0)) {
                return Some(InTheWay::Refused { at, reason: Reason::BudgetQuery });
            }
            let bucket = self.buckets.get_mut(&at).map_or_else(
                || Bucket::new(now),
                |entry| {
                    entry.bucket.drain(now, terms);
                    entry.bucket
                },
            );
            let full = bucket.full(terms, cost, self.elsewhere.at(at));
            let (reason, until) = match full {
                Some(full) => (full.reason, full.until),
                None if has_line(at) => (reason_of(terms), None),
                None => continue,
            };
            match terms.on_exceeded {
                OnExceeded::Refuse => {
                    return Some(InTheWay::Refused { at, reason });
                }
                OnExceeded::Delay => {
                    waits.get_or_insert(InTheWay::Waits { at, reason, until });
                }
            }
        }
        waits
    }

    /// How long until a bucket has room for a statement behind so many, about.
    pub(crate) fn room_in(
        &mut self,
        now: MonoTime,
        at: BudgetUse,
        (asks, waiting): ((Option<DigestKey>, AppKey), usize),
    ) -> Duration {
        let cost = self.predictions.expected(asks.0, asks.1);
        let behind = f64::from(u32::try_from(waiting).unwrap_or(u32::MAX)) + 1.0;
        let Some(terms) = self.book.get(at.budget) else { return Duration::ZERO };
        let mut bucket = self.buckets.get(&at).map_or(Bucket::new(now), |entry| entry.bucket);
        bucket.drain(now, terms);
        bucket.room_in(terms, cost, behind)
    }

    /// How long until one is let through again whose digest was found to be too expensive.
    pub(crate) fn tried_in(&self, now: MonoTime, digest: Option<DigestKey>) -> Duration {
        self.predictions.believed_for(now, digest)
    }

    /// How long a busy bucket takes to have room for one more such statement, about, in seconds.
    pub(crate) fn turnover(&self, at: BudgetUse, asks: (Option<DigestKey>, AppKey)) -> f64 {
        let cost = self.predictions.expected(asks.0, asks.1);
        self.book.get(at.budget).map_or(0.0, |terms| Bucket::turnover(terms, cost))
    }

    /// A statement came that has to wait, or is refused.
    pub(crate) fn note_exceeded(&mut self, budget: BudgetKey) {
        let counts = self.counts.entry(budget).or_default();
        counts.exceeded = counts.exceeded.saturating_add(1);
    }

    /// A statement goes to the server: it takes its part of every budget, whether there is room or
    /// not.
    pub(crate) fn take(
        &mut self,
        now: MonoTime,
        set: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
    ) -> BudgetHold {
        let cost = self.predictions.expected(asks.0, asks.1);
        let believed = self.predictions.believed(now, asks.0);
        let (mut taken, mut charged) = (BudgetSet::default(), [false; BudgetSet::LEN_MAX]);
        let mut is_charged = charged.iter_mut();
        let known = self.predictions.known(asks.0);
        let mut finding = Finding::Further;
        for at in set.iter() {
            let Some(terms) = self.book.get(at.budget).copied() else { continue };
            if is_too_expensive(&terms, known) {
                finding = Finding::Anew;
                if believed.is_none() {
                    self.predictions.try_again(now, asks.0);
                }
            }
            let elsewhere = self.elsewhere.at(at);
            let bucket = self.touch(now, at);
            bucket.drain(now, &terms);
            let is_full = bucket.full(&terms, cost, elsewhere).is_some();
            let is_over = is_full || is_too_expensive(&terms, believed);
            taken.add(at);
            bucket.enter(now, cost.seconds);
            // What would have waited, or been refused, is not owed: a budget that warns says what
            // one would that holds, and begins like that when an edit has it hold.
            let pays = !is_over || terms.mode == Mode::Enforce;
            if pays {
                bucket.charge(cost);
            }
            if let Some(is_charged) = is_charged.next() {
                *is_charged = pays;
            }
            let counts = self.counts.entry(at.budget).or_default();
            counts.in_use = counts.in_use.saturating_add(1);
            if is_over && terms.mode == Mode::Observe {
                counts.warned = counts.warned.saturating_add(1);
            }
        }
        // A budget that is not in force any more has nothing to be given back to.
        BudgetHold { set: taken, charged, asks, taken: cost, finding, since: now }
    }

    /// A statement is over, and has used so much.
    pub(crate) fn finish(&mut self, now: MonoTime, hold: &BudgetHold, used: &BudgetUsed) {
        let rows = u32::try_from(used.rows).map_or(f64::from(u32::MAX), f64::from);
        let cost = Cost { seconds: used.server_time.as_secs_f64(), rows };
        let more = cost.less(hold.taken);
        self.leave(now, hold, |bucket| bucket.correct(more));
        if !used.failed {
            self.predictions.learn(now, hold.asks, (cost, hold.finding));
        }
    }

    /// A statement that was admitted never went to the server.
    pub(crate) fn give_back(&mut self, now: MonoTime, hold: &BudgetHold) {
        self.leave(now, hold, |bucket| bucket.give_back(hold.taken));
    }

    fn leave(&mut self, now: MonoTime, hold: &BudgetHold, settle: impl Fn(&mut Bucket)) {
        for (at, is_charged) in hold.set.iter().zip(hold.charged) {
            let terms = self.book.get(at.budget);
            if let Some(counts) = self.counts.get_mut(&at.budget) {
                counts.in_use = counts.in_use.saturating_sub(1);
            }
            let Some(entry) = self.buckets.get_mut(&at) else { continue };
            if let Some(terms) = terms {
                entry.bucket.drain(now, terms);
            }
            entry.bucket.leave(hold.since, hold.taken.seconds);
            if is_charged {
                settle(&mut entry.bucket);
            }
            self.rest(now, at);
        }
    }

    /// Whoever was at the server has left it, or nobody was there: what is owed is kept until it has
    /// drained.
    fn rest(&mut self, now: MonoTime, at: BudgetUse) {
        let terms = self.book.get(at.budget);
        let Some(entry) = self.buckets.get_mut(&at).filter(|entry| entry.bucket.in_use == 0) else {
            return;
        };
        let empties_at = entry.bucket.empties_at(terms);
        if empties_at <= now {
            self.buckets.remove(&at);
        } else {
            entry.idle_at = Some(empties_at);
            self.idle.insert(empties_at, at);
        }
    }

    /// What the process behind this one has to know: how many are at the server, by bucket.
    pub(crate) fn there(&self) -> HashMap<BudgetUse, u32> {
        let there = self.buckets.iter().map(|(at, entry)| (*at, entry.bucket.in_use));
        there.filter(|(_, in_use)| *in_use > 0).collect()
    }

    /// What is owed, by bucket.
    pub(crate) fn debts(&mut self, now: MonoTime) -> Vec<(BudgetUse, BudgetDebt)> {
        let Self { book, buckets, .. } = self;
        let debts = buckets.iter_mut().filter_map(|(at, entry)| {
            entry.bucket.drain(now, book.get(at.budget)?);
            Some((*at, entry.bucket.debt()))
        });
        debts.filter(|(_, debt)| *debt != BudgetDebt::default()).collect()
    }

    /// The process before this one has so many at the server. The buckets of which there are fewer
    /// than before.
    pub(crate) fn note_elsewhere(&mut self, counts: HashMap<BudgetUse, u32>) -> Vec<BudgetUse> {
        for at in counts.keys().filter(|at| self.book.get(at.budget).is_some()) {
            // It is shown also when nobody has met it here.
            self.counts.entry(at.budget).or_default();
        }
        self.elsewhere.replace(counts)
    }

    /// So much was owed in the process before this one.
    pub(crate) fn take_over(&mut self, now: MonoTime, at: BudgetUse, debt: BudgetDebt) {
        let Some(terms) = self.book.get(at.budget).copied() else { return };
        let bucket = self.touch(now, at);
        bucket.drain(now, &terms);
        bucket.take_over(debt);
        self.rest(now, at);
    }

    /// The bucket, for somebody who takes from it.
    fn touch(&mut self, now: MonoTime, at: BudgetUse) -> &mut Bucket {
        if !self.buckets.contains_key(&at) {
            self.make_room(now);
        }
        let fresh = || Entry { bucket: Bucket::new(now), idle_at: None };
        let entry = self.buckets.entry(at).or_insert_with(fresh);
        if let Some(idle_at) = entry.idle_at.take() {
            self.idle.remove(idle_at, at);
        }
        &mut entry.bucket
    }

    /// For a new bucket those are forgotten that have emptied, or one that has not.
    fn make_room(&mut self, now: MonoTime) {
        for _ in 0..FORGOTTEN_MAX {
            let is_full = self.buckets.len() >= BUCKETS_MAX;
            let least = || self.idle.least().filter(|_| is_full);
            let Some((empties_at, at)) = self.idle.emptied(now).or_else(least) else { return };
            self.idle.remove(empties_at, at);
            self.buckets.remove(&at);
        }
    }

    /// The budgets that anybody has met, in no order.
    pub(crate) fn views(&self) -> impl Iterator<Item = BudgetView> + '_ {
        self.counts.iter().map(|(budget, counts)| BudgetView {
            budget: *budget,
            in_use: counts.in_use.saturating_add(self.elsewhere.of(*budget)),
            waiting: 0,
            exceeded: counts.exceeded,
            warned: counts.warned,
        })
    }

    #[cfg(test)]
    pub(super) fn buckets_len(&self) -> usize {
        self.buckets.len()
    }
}

fn is_too_expensive(terms: &BudgetTerms, seconds: Option<f64>) -> bool {
    terms.max_query_cost.is_some_and(|most| seconds.is_some_and(|seconds| seconds > most))
}

/// What whoever waits behind others waits for: what most likely keeps those.
fn reason_of(terms: &BudgetTerms) -> Reason {
    if terms.max_concurrency.is_some() {
        Reason::BudgetConcurrency
    } else if terms.rate.is_some() || terms.rows_per_s.is_some() {
        Reason::BudgetRate
    } else {
        Reason::BudgetShare
    }
}
