//! What statements take from the buckets of a cluster, and give back.

mod fill;
mod join;
mod so_far;
mod telling;

use std::time::Duration;

use self::telling::Untold;
use super::bucket::Bucket;
use super::elsewhere::{BudgetDebt, Elsewhere};
use super::known::KnownBudgets;
use super::prediction::{Cost, Finding, Predictions};
use super::store::{BucketSlot, BucketStore};
use super::terms::{BudgetBook, BudgetKey, BudgetSet, BudgetTerms, BudgetUse, OnExceeded};
use crate::{AppKey, DigestKey, Mode, MonoTime, Reason};

#[derive(Debug, Default)]
pub(crate) struct Budgets {
    known: KnownBudgets,
    buckets: BucketStore,
    /// What another process has at the server.
    elsewhere: Elsewhere,
    predictions: Predictions,
    /// `None`: no process behind this one is told anything.
    untold: Option<Box<Untold>>,
}

/// What a statement has taken from its budgets. It is given back exactly once, by
/// [`crate::Controller::finish_budgeted`].
#[derive(Debug)]
#[must_use = "what is not given back is taken for ever"]
pub struct BudgetHold {
    /// Where it has taken something, the first of them. Nobody else's while it has a place there.
    slots: [BucketSlot; BudgetSet::LEN_MAX],
    len: u8,
    /// How many of them it has taken since it began. The others it has joined.
    len_begun: u8,
    /// To which of them it is charged, by a bit each.
    charged: u16,
    /// What its cost is going to say.
    finding: Finding,
    /// What it uses so far is of interest ([`so_far`]), and has been told up to this second.
    watched: Option<u32>,
    asks: (Option<DigestKey>, AppKey),
    cost: Cost,
    since: MonoTime,
}

const _: () = assert!(BudgetSet::LEN_MAX <= 16, "there is a bit for each");

impl BudgetHold {
    /// It goes on with a statement whose cost was learned when it paused: what it uses is owed, and
    /// says nothing of what such statements cost.
    pub fn of_part(self) -> Self {
        Self { finding: Finding::Part, ..self }
    }

    /// When it was taken.
    #[must_use]
    pub fn since(&self) -> MonoTime {
        self.since
    }

    /// It has taken something there.
    fn add(&mut self, slot: BucketSlot) {
        if let Some(free) = self.slots.get_mut(usize::from(self.len)) {
            *free = slot;
            self.len = self.len.saturating_add(1);
        }
    }

    /// It is charged in the bucket that is added next.
    fn charge_next(&mut self) {
        self.charged |= 1_u16.wrapping_shl(u32::from(self.len));
    }

    /// Where it has taken something, and whether it is charged there.
    fn taken(&self) -> impl Iterator<Item = (BucketSlot, bool)> + use<> {
        let Self { slots, len, mut charged, .. } = *self;
        slots.into_iter().take(usize::from(len)).map(move |slot| {
            let is_charged = charged & 1 == 1;
            charged >>= 1;
            (slot, is_charged)
        })
    }
}

/// Where the buckets of a set are, as far as they are remembered, and what the statement is foreseen
/// to cost. It holds until a bucket is made.
#[derive(Debug, Default)]
struct Found {
    slots: [Option<BucketSlot>; BudgetSet::LEN_MAX],
    cost: Option<Cost>,
}

/// What a statement has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BudgetUsed {
    /// Time at the server.
    pub server_time: Duration,
    /// Rows changed, and rows sent.
    pub rows: u64,
    /// Whether it ended in an error, or without an answer: the next one may cost more than this.
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
    pub(crate) fn configure(&mut self, now: MonoTime, book: &BudgetBook) {
        let Self { known, buckets, .. } = self;
        if known.drains_otherwise(book) {
            buckets.drain_all(now, known);
        }
        known.configure(now, book);
    }

    /// The longest wait for a bucket.
    pub(crate) fn max_delay(&self, budget: BudgetKey) -> Duration {
        self.known.terms_of(budget).map_or(Duration::ZERO, |terms| terms.max_delay)
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
        self.look(now, (set, asks), has_line, &mut Found::default())
    }

    /// Takes from all of these budgets if nothing stands in the way.
    pub(crate) fn take_if_room(
        &mut self,
        now: MonoTime,
        set: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
        has_line: impl Fn(BudgetUse) -> bool,
    ) -> Option<BudgetHold> {
        let mut found = Found::default();
        match self.look(now, (set, asks), has_line, &mut found) {
            Some(InTheWay::Refused { .. } | InTheWay::Waits { .. }) => None,
            None => Some(self.take_from(now, (set, asks), &found)),
        }
    }

    /// What stands in the way, and what was found on the way.
    #[inline]
    fn look(
        &mut self,
        now: MonoTime,
        (set, asks): (&BudgetSet, (Option<DigestKey>, AppKey)),
        has_line: impl Fn(BudgetUse) -> bool,
        found: &mut Found,
    ) -> Option<InTheWay> {
        let Self { known, buckets, elsewhere, predictions, untold: _ } = self;
        let cost = predictions.expected(asks.0, asks.1);
        found.cost = Some(cost);
        let mut waits = None;
        for (at, found) in set.iter().zip(&mut found.slots) {
            *found = buckets.find(at);
            let stored = found.and_then(|slot| buckets.get_mut(slot));
            let terms = match &stored {
                Some(stored) => known.terms(stored.budget),
                None => known.terms_of(at.budget),
            };
            let Some(terms) = terms else { continue };
            match terms.mode {
                Mode::Enforce => {}
                Mode::Observe => continue,
            }
            if terms.max_query_cost.is_some()
                && is_too_expensive(terms, predictions.believed(now, asks.0))
            {
                return Some(InTheWay::Refused { at, reason: Reason::BudgetQuery });
            }
            let elsewhere = elsewhere.at(at);
            let full = match stored {
                Some(stored) => {
                    stored.bucket.drain(now, terms);
                    stored.bucket.full(terms, cost, elsewhere)
                }
                None => Bucket::new(now).full(terms, cost, elsewhere),
            };
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

    /// How long until what is owed in a bucket has drained for a statement, which is known, and
    /// until there is room for it behind so many, about.
    pub(crate) fn room_in(
        &mut self,
        now: MonoTime,
        at: BudgetUse,
        (asks, waiting): ((Option<DigestKey>, AppKey), usize),
    ) -> [Duration; 2] {
        let cost = self.predictions.expected(asks.0, asks.1);
        let behind = f64::from(u32::try_from(waiting).unwrap_or(u32::MAX)) + 1.0;
        let Some(terms) = self.known.terms_of(at.budget) else { return Default::default() };
        let stored = self.buckets.find(at).and_then(|slot| self.buckets.get(slot));
        let mut bucket = stored.map_or(Bucket::new(now), |stored| stored.bucket);
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
        self.known.terms_of(at.budget).map_or(0.0, |terms| Bucket::turnover(terms, cost))
    }

    /// A statement came that has to wait, or is refused.
    pub(crate) fn note_exceeded(&mut self, budget: BudgetKey) {
        let counts = self.known.find(budget).and_then(|index| self.known.counts(index));
        if let Some(counts) = counts {
            counts.exceeded = counts.exceeded.saturating_add(1);
        }
    }

    /// A statement goes to the server: it takes its part of every budget, whether there is room or
    /// not.
    pub(crate) fn take(
        &mut self,
        now: MonoTime,
        set: &BudgetSet,
        asks: (Option<DigestKey>, AppKey),
    ) -> BudgetHold {
        self.take_from(now, (set, asks), &Found::default())
    }

    fn take_from(
        &mut self,
        now: MonoTime,
        (set, asks): (&BudgetSet, (Option<DigestKey>, AppKey)),
        found: &Found,
    ) -> BudgetHold {
        let Self { known, buckets, elsewhere, predictions, untold } = self;
        let cost = found.cost.unwrap_or_else(|| predictions.expected(asks.0, asks.1));
        let (slots, len, charged) = ([BucketSlot::default(); BudgetSet::LEN_MAX], 0, 0);
        let (finding, watched) = (Finding::Further, None);
        let len_begun = 0;
        let mut hold =
            BudgetHold { slots, len, len_begun, charged, finding, watched, asks, cost, since: now };
        // Its digest's cost of before, and as far as that is believed.
        let mut learned = None;
        let mut tries_again = false;
        // Where one is to be made, another one may be forgotten for it.
        let is_complete = set.iter().zip(found.slots).all(|(_, slot)| slot.is_some());
        for (at, found) in set.iter().zip(found.slots) {
            // A budget that is not in force any more has nothing to be given back to.
            let slot = match found.filter(|_| is_complete) {
                Some(slot) => slot,
                None => match buckets.touch(now, at, known) {
                    Some(slot) => slot,
                    None => continue,
                },
            };
            let Some(index) = buckets.get(slot).map(|stored| stored.budget) else { continue };
            let charge = known.owed_by(index, now, BudgetDebt::of(1.0, cost));
            let Some((terms, counts)) = known.met(index) else { continue };
            buckets.rouse(slot);
            let Some(stored) = buckets.get_mut(slot) else { continue };
            let mut is_over = false;
            if terms.max_query_cost.is_some() {
                let before = || (predictions.known(asks.0), predictions.believed(now, asks.0));
                let (known, believed) = *learned.get_or_insert_with(before);
                is_over = is_too_expensive(terms, believed);
                if is_too_expensive(terms, known) {
                    hold.finding = Finding::Anew;
                    tries_again |= believed.is_none();
                }
            }
            if terms.share.is_some() || terms.max_query_cost.is_some() {
                hold.watched = Some(0);
            }
            let bucket = &mut stored.bucket;
            bucket.drain(now, terms);
            // What would have waited, or been refused, is not owed: a budget that warns says what
            // one would that holds, and begins like that when an edit has it hold.
            let is_charged = match terms.mode {
                Mode::Enforce => true,
                Mode::Observe => !is_over && bucket.full(terms, cost, elsewhere.at(at)).is_none(),
            };
            bucket.enter(now, cost.seconds);
            if is_charged {
                bucket.owe(charge);
                if let Some(untold) = untold {
                    untold.owe(at, charge);
                }
                hold.charge_next();
            } else {
                counts.warned = counts.warned.saturating_add(1);
            }
            counts.in_use = counts.in_use.saturating_add(1);
            hold.add(slot);
        }
        hold.len_begun = hold.len;
        if tries_again {
            predictions.try_again(now, asks.0);
        }
        hold
    }

    /// What a statement has taken from.
    pub(crate) fn taken_with(&self, hold: &BudgetHold) -> (BudgetSet, (Option<DigestKey>, AppKey)) {
        let mut set = BudgetSet::default();
        for stored in hold.taken().filter_map(|(slot, _)| self.buckets.get(slot)) {
            // There is room for as many as can be taken.
            set.add(stored.at);
        }
        (set, hold.asks)
    }

    /// Whether others may wait for what a statement has taken.
    pub(crate) fn holds_up(&self, hold: &BudgetHold) -> bool {
        let mut terms =
            hold.taken().filter_map(|(slot, _)| self.known.terms(self.buckets.get(slot)?.budget));
        terms.any(|terms| terms.mode == Mode::Enforce)
    }

    /// A statement is over, and has used so much.
    pub(crate) fn finish(&mut self, now: MonoTime, hold: &BudgetHold, used: &BudgetUsed) {
        let rows = u32::try_from(used.rows).map_or(f64::from(u32::MAX), f64::from);
        let cost = Cost { seconds: used.server_time.as_secs_f64(), rows };
        let more = cost.less(hold.cost);
        self.leave(now, hold, BudgetDebt::of(0.0, more));
        let is_new = if used.failed {
            let least = Cost { rows: cost.rows.max(hold.cost.rows), ..cost };
            self.predictions.learn_at_least(now, hold.asks.0, (least, hold.finding))
        } else {
            self.predictions.learn(now, hold.asks, (cost, hold.finding));
            true
        };
        if let (Some(untold), Some(digest), true) = (&mut self.untold, hold.asks.0, is_new) {
            untold.learn(digest);
        }
    }

    /// A statement that was admitted never went to the server.
    pub(crate) fn give_back(&mut self, now: MonoTime, hold: &BudgetHold) {
        self.leave(now, hold, BudgetDebt::of(-1.0, Cost::default().less(hold.cost)));
    }

    /// It leaves, and so much more is owed where it was charged.
    fn leave(&mut self, now: MonoTime, hold: &BudgetHold, more: BudgetDebt) {
        for (place, (slot, is_charged)) in hold.taken().enumerate() {
            let is_counted = self.is_counted_by(hold, place);
            let Self { known, buckets, untold, .. } = self;
            let Some(stored) = buckets.get_mut(slot) else { continue };
            if is_counted && let Some(counts) = known.counts(stored.budget) {
                counts.in_use = counts.in_use.saturating_sub(1);
            }
            if let Some(terms) = known.terms(stored.budget) {
                stored.bucket.drain(now, terms);
            }
            stored.bucket.leave(hold.since, hold.cost.seconds);
            if is_charged {
                let more = known.owed_by(stored.budget, hold.since, more);
                stored.bucket.owe(more);
                if let Some(untold) = untold {
                    untold.owe(stored.at, more);
                }
            }
            buckets.rest(now, slot, known);
        }
    }

    /// The budgets that anybody has met, in no order.
    pub(crate) fn views(&self) -> impl Iterator<Item = BudgetView> + '_ {
        self.known.all_met().map(|(budget, counts)| BudgetView {
            budget,
            in_use: counts.in_use.saturating_add(self.elsewhere.of(budget)),
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
