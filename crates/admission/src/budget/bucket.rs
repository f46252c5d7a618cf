//! One bucket: its places and its debts.

use std::time::Duration;

use super::elsewhere::BudgetDebt;
use super::prediction::Cost;
use super::terms::BudgetTerms;
use crate::{MonoTime, Reason};

/// What may come at once at a rate, as time at the rate; one statement always may.
const BURST: Duration = Duration::from_millis(50);

/// Debt that is none: what sums of floats leave.
const NOTHING: f64 = 1e-9;

/// Fuller than this nobody has to know.
const FILL_MAX: f64 = 100.0;

/// A time beyond which nobody plans.
const FAR: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bucket {
    pub(super) in_use: u32,
    /// Of these, the sums of when they came and of how long they were foreseen to take, in seconds.
    came: f64,
    foreseen: f64,
    /// Statements, rows and server-seconds that are owed.
    statements: f64,
    rows: f64,
    seconds: f64,
    /// Up to when they have drained.
    at: MonoTime,
}

/// Why a bucket has no room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Full {
    pub(super) reason: Reason,
    /// When it has, by draining alone; `None`: somebody has to end first.
    pub(super) until: Option<MonoTime>,
}

/// A debt, what drains it in a second, and how much of it there may be.
#[derive(Debug, Clone, Copy)]
struct Level {
    debt: f64,
    per_s: f64,
    size: f64,
}

impl Level {
    /// How long until so much more has room; `None`: it has.
    fn covers_in(self, cost: f64) -> Option<Duration> {
        let over = self.over(cost);
        if over <= NOTHING {
            return None;
        }
        Some(Duration::try_from_secs_f64(over / self.per_s).unwrap_or(FAR).min(FAR))
    }

    /// What has to drain first.
    fn over(self, cost: f64) -> f64 {
        (self.debt + cost - self.size).min(self.debt)
    }

    /// How long until nothing is owed.
    fn empties_in(self) -> Duration {
        Duration::try_from_secs_f64(self.debt / self.per_s).unwrap_or(FAR).min(FAR)
    }
}

impl Bucket {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { at: now, ..Self::default() }
    }

    /// Has drained what drains until now.
    pub(super) fn drain(&mut self, now: MonoTime, terms: &BudgetTerms) {
        if now <= self.at {
            return;
        }
        let passed = now.saturating_since(self.at).as_secs_f64();
        self.at = now;
        if self.debt() == BudgetDebt::default() {
            return;
        }
        let left = |debt: f64, per_s: Option<f64>| {
            per_s.map_or(0.0, |per_s| (debt - per_s * passed).max(0.0))
        };
        self.statements = left(self.statements, terms.rate);
        self.rows = left(self.rows, terms.rows_per_s);
        self.seconds = left(self.seconds, terms.share);
    }

    /// Why a statement of this cost has no room now beside so many of another process; `None`: it
    /// has. The bucket has been drained.
    pub(super) fn full(&self, terms: &BudgetTerms, cost: Cost, elsewhere: u32) -> Option<Full> {
        let in_use = self.in_use.saturating_add(elsewhere);
        if terms.max_concurrency.is_some_and(|most| in_use >= most) {
            return Some(Full { reason: Reason::BudgetConcurrency, until: None });
        }
        if self.has_drained_for(terms, cost) {
            return None;
        }
        let wait = |level: Option<Level>, cost: f64, reason: Reason| {
            let wait = level?.covers_in(cost)?;
            Some(Full { reason, until: Some(self.at.saturating_add(wait)) })
        };
        let [statements, rows, seconds] = self.levels(terms);
        let waits = [
            wait(statements, 1.0, Reason::BudgetRate),
            wait(rows, cost.rows, Reason::BudgetRate),
            wait(seconds, cost.seconds, Reason::BudgetShare),
        ];
        waits.into_iter().flatten().max_by_key(|full| full.until)
    }

    /// Whether its debts leave room for such a statement: mostly they do, and nobody asks when they
    /// will.
    fn has_drained_for(&self, terms: &BudgetTerms, cost: Cost) -> bool {
        let [statements, rows, seconds] = self.levels(terms);
        let levels = [(statements, 1.0), (rows, cost.rows), (seconds, cost.seconds)];
        levels
            .into_iter()
            .all(|(level, cost)| level.is_none_or(|level| level.over(cost) <= NOTHING))
    }

    /// How long until what is owed has drained for a statement of this cost, which is known, and
    /// until so many of them have had room, about.
    pub(super) fn room_in(&self, terms: &BudgetTerms, cost: Cost, count: f64) -> [Duration; 2] {
        let places = terms.max_concurrency.map(|most| self.place_in(most.max(1), cost, count));
        let [statements, rows, seconds] = self.levels(terms);
        // What is larger than there may be owed passes when nothing is, and not later.
        let drained = |count: f64| {
            [(statements, 1.0), (rows, cost.rows), (seconds, cost.seconds)]
                .into_iter()
                .filter_map(|(level, cost)| Some((level?, cost)))
                .map(|(level, cost)| {
                    (Level { debt: level.debt + cost * (count - 1.0), ..level }, cost)
                })
                .filter_map(|(behind_others, cost)| behind_others.covers_in(cost))
                .max()
                .unwrap_or_default()
        };
        let places = Duration::try_from_secs_f64(places.unwrap_or_default()).unwrap_or(FAR);
        [drained(1.0), drained(count).max(places)]
    }

    /// How long until so many have had a place, about, in seconds. Those who are there may have come
    /// together or one behind the other: what is told is between the two. Who has been there for
    /// longer than was foreseen is likely to be for as long again. Those who wait are taken to be
    /// like them.
    fn place_in(&self, most: u32, cost: Cost, count: f64) -> f64 {
        let there = f64::from(self.in_use);
        if self.in_use == 0 {
            return cost.seconds * count / f64::from(most);
        }
        let foreseen = self.foreseen / there;
        let ran = (seconds(self.at) - self.came / there).max(0.0);
        let left = if ran < foreseen { foreseen - ran } else { ran };
        let next = if self.in_use < most { 0.0 } else { left / there.sqrt() };
        next + foreseen * (count - 1.0) / f64::from(most)
    }

    /// How full it is, by the limit that is nearest, beside so many of another process; `None`:
    /// nothing of it is limited.
    pub(super) fn fill(
        mut self,
        now: MonoTime,
        terms: &BudgetTerms,
        elsewhere: u32,
    ) -> Option<f64> {
        self.drain(now, terms);
        let in_use = f64::from(self.in_use.saturating_add(elsewhere));
        let places = terms.max_concurrency.map(|most| in_use / f64::from(most.max(1)));
        let levels = self.levels(terms).into_iter().flatten();
        let debts =
            levels.map(|level| if level.debt > NOTHING { level.debt / level.size } else { 0.0 });
        places.into_iter().chain(debts).reduce(f64::max).map(|fill| fill.min(FILL_MAX))
    }

    fn levels(&self, terms: &BudgetTerms) -> [Option<Level>; 3] {
        let burst = BURST.as_secs_f64();
        let at_rate = |debt: f64, per_s: Option<f64>| {
            per_s.map(|per_s| Level { debt, per_s, size: (per_s * burst).max(1.0) })
        };
        let size = terms.burst;
        [
            at_rate(self.statements, terms.rate),
            at_rate(self.rows, terms.rows_per_s),
            terms.share.map(|per_s| Level { debt: self.seconds, per_s, size }),
        ]
    }

    /// How long one that is busy takes to have room for another statement of this cost, about, in
    /// seconds.
    pub(super) fn turnover(terms: &BudgetTerms, cost: Cost) -> f64 {
        let per = |amount: f64, per_s: Option<f64>| per_s.map(|per_s| amount / per_s);
        let all = [
            per(cost.seconds, terms.max_concurrency.map(f64::from)),
            per(1.0, terms.rate),
            per(cost.rows, terms.rows_per_s),
            per(cost.seconds, terms.share),
        ];
        all.into_iter().flatten().fold(0.0, f64::max)
    }

    /// A statement is at the server, that is foreseen to take so long.
    pub(super) fn enter(&mut self, now: MonoTime, foreseen: f64) {
        self.in_use = self.in_use.saturating_add(1);
        self.came += seconds(now);
        self.foreseen += foreseen;
    }

    /// It takes so much longer than was foreseen.
    pub(super) fn foresee_more(&mut self, seconds: f64) {
        self.foreseen += seconds;
    }

    /// It is not any more.
    pub(super) fn leave(&mut self, came: MonoTime, foreseen: f64) {
        self.in_use = self.in_use.saturating_sub(1);
        self.came -= seconds(came);
        self.foreseen -= foreseen;
        if self.in_use == 0 {
            // What sums of floats leave.
            (self.came, self.foreseen) = (0.0, 0.0);
        }
    }

    /// What is owed. The bucket has been drained.
    pub(super) fn debt(&self) -> BudgetDebt {
        let Self { statements, rows, seconds, .. } = *self;
        BudgetDebt { statements, rows, seconds }
    }

    /// So much more is owed, or less.
    pub(super) fn owe(&mut self, more: BudgetDebt) {
        let BudgetDebt { statements, rows, seconds } = more;
        self.statements = (self.statements + statements).max(0.0);
        self.rows = (self.rows + rows).max(0.0);
        self.seconds = (self.seconds + seconds).max(0.0);
    }

    /// When nothing is owed any more, if nobody comes; what nothing drains is not owed.
    pub(super) fn empties_at(&self, terms: Option<&BudgetTerms>) -> MonoTime {
        let levels = terms.map(|terms| self.levels(terms)).into_iter().flatten().flatten();
        let last = levels.map(Level::empties_in).max().unwrap_or_default();
        self.at.saturating_add(last)
    }
}

fn seconds(at: MonoTime) -> f64 {
    at.saturating_since(MonoTime::ZERO).as_secs_f64()
}
