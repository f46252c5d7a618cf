//! What is ahead of a place in a ring.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Ring, count, part_of};
use crate::request::Lane;
use crate::{MonoTime, Ratio, Terms};

/// Those who first asked within the same such time are counted together.
const GRAIN: Duration = Duration::from_millis(250);

/// Of those before a place so many counts are added up, or of those behind it.
const COUNTED_MAX: usize = 64;

/// So many statements, and what they are known to cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Standing {
    pub(crate) statements: usize,
    /// In rows.
    pub(crate) cost: f64,
}

/// Statements by when they first asked.
#[derive(Debug, Default)]
pub(crate) struct BySince {
    counts: BTreeMap<u64, Standing>,
    sum: Standing,
}

/// A place in line, of a statement that does not stand there now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stands {
    pub(crate) lane: Lane,
    pub(crate) weight: u32,
    pub(crate) ratio: Ratio,
    /// What it is known to cost.
    pub(crate) cost: f64,
    /// By what its place goes.
    pub(crate) since: MonoTime,
    pub(crate) absent: Absent,
}

/// Those who are to come back and stand before a place then.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Absent {
    /// Of its lane.
    pub(crate) lane: Standing,
    /// Of its app.
    pub(crate) app: Standing,
    /// Other lanes of its app with somebody absent, and other apps of its rule.
    pub(crate) lanes: usize,
    pub(crate) apps: usize,
    /// Parts of the other rules with somebody absent.
    pub(crate) parts: u64,
}

/// What an app was given of late of what all were.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Part {
    pub(crate) part: f64,
    /// Of so many of its statements.
    pub(crate) statements: u32,
}

/// What is ahead of a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ahead {
    /// What its app is given until it has had its turn, its own with it, in rows.
    pub(crate) own: f64,
    /// The part of it that stands in line.
    pub(crate) here: f64,
    /// How much more all are given meanwhile, by the weights of those who stand in line, and of
    /// those who are absent as well.
    pub(crate) times: [f64; 2],
    /// Whether dice decide as well.
    pub(crate) diced: bool,
    /// What all who stand in line are known to cost, and it, in rows.
    pub(crate) all: f64,
    /// Statements of its app that have their turns before it.
    pub(crate) statements: usize,
    /// When the first of its app has asked.
    pub(crate) since: Option<MonoTime>,
}

impl Standing {
    pub(crate) fn add(&mut self, other: Self) {
        self.statements = self.statements.saturating_add(other.statements);
        self.cost += other.cost;
    }

    pub(crate) fn take(&mut self, other: Self) {
        self.statements = self.statements.saturating_sub(other.statements);
        // Sums of floats drift; nothing is left to be summed.
        self.cost = if self.statements == 0 { 0.0 } else { (self.cost - other.cost).max(0.0) };
    }

    fn less(mut self, other: Self) -> Self {
        self.take(other);
        self
    }
}

impl BySince {
    pub(crate) fn add(&mut self, since: MonoTime, cost: f64) {
        let one = Standing { statements: 1, cost };
        self.counts.entry(grain(since)).or_default().add(one);
        self.sum.add(one);
    }

    pub(crate) fn take(&mut self, since: MonoTime, cost: f64) {
        self.take_many(since, Standing { statements: 1, cost });
    }

    pub(crate) fn take_many(&mut self, since: MonoTime, some: Standing) {
        let at = grain(since);
        let Some(here) = self.counts.get_mut(&at) else { return };
        here.take(some);
        if here.statements == 0 {
            self.counts.remove(&at);
        }
        self.sum.take(some);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// When the first of them asked, about.
    pub(crate) fn first(&self) -> Option<MonoTime> {
        let nanos = u64::try_from(GRAIN.as_nanos()).unwrap_or(u64::MAX);
        self.counts.keys().next().map(|at| MonoTime::from_nanos(at.saturating_mul(nanos)))
    }

    /// Those who asked before. Where there are many counts before and many behind, what is between
    /// is halved.
    pub(crate) fn before(&self, since: MonoTime) -> Standing {
        let at = grain(since);
        let counts = self.counts.range(..at).map(|(_, one)| *one);
        if let Some(sum) = sum_of_few(counts) {
            return sum;
        }
        match sum_of_few(self.counts.range(at..).map(|(_, one)| *one)) {
            Some(behind) => self.sum.less(behind),
            None => Standing { statements: self.sum.statements / 2, cost: self.sum.cost / 2.0 },
        }
    }
}

fn sum_of_few(mut counts: impl Iterator<Item = Standing>) -> Option<Standing> {
    let mut sum = Standing::default();
    for _ in 0..COUNTED_MAX {
        match counts.next() {
            Some(one) => sum.add(one),
            None => return Some(sum),
        }
    }
    None
}

fn grain(at: MonoTime) -> u64 {
    let nanos = u128::from(at.as_nanos()).checked_div(GRAIN.as_nanos());
    nanos.and_then(|grain| u64::try_from(grain).ok()).unwrap_or(0)
}

impl Ahead {
    /// What must be admitted until it has had its turn, in rows: of those in line, and of those who
    /// are absent.
    pub(crate) fn rows(&self, part: Option<Part>) -> (f64, f64) {
        let Self { own, here, times: [least, most], diced, all, .. } = *self;
        let Some(Part { part, statements }) = part else {
            // The others may be served and gone.
            return ((here * least).min(all).max(here), (own - here) * least);
        };
        let seen = (1.0 / part.max(f64::MIN_POSITIVE)).clamp(1.0, most.max(1.0));
        // Who does not wait does not take its own: then an app gets more than its share. A few
        // statements more, by chance, are not that.
        let errors = if diced { 3.0 } else { 2.0 };
        let chance = 1.0 + errors / f64::from(statements.max(1)).sqrt();
        let times = if seen * chance >= least { seen.max(least) } else { seen };
        (here * times, (own - here) * times)
    }
}

impl Ring {
    /// What must be admitted until a statement that stands there has had its turn. Its app's turns
    /// go from lane to lane, so it waits for those of its app who asked before it, and for no more
    /// of each other lane than stands before it in its own.
    pub(crate) fn ahead(&self, stands: &Stands) -> Ahead {
        let Stands { lane, weight, ratio, cost, since, absent } = *stands;
        let branch = self.rules.get(&lane.rule).filter(|branch| !branch.apps.is_empty());
        let app = branch.and_then(|branch| branch.apps.get(&lane.app));
        let line = app.and_then(|app| app.lanes.get(&lane.identity));
        let of_app = app.map_or(Standing::default(), |app| app.standing.before(since));
        let here = app.map_or(0, |app| app.lanes.len());
        let lanes = here.saturating_add(absent.lanes).saturating_add(usize::from(line.is_none()));
        // Of many in front and many behind it are those who have come back: who is at its deadline
        // for the first time stands between them and those who came new.
        let in_front = line.map(|line| match line.in_front_of(since) {
            Some(in_front) => in_front,
            None if here == 1 => of_app,
            None => line.kept,
        });
        let in_front = in_front.unwrap_or_default();
        let of_app = if here == 1 && line.is_some() { in_front } else { of_app };
        let apps = branch.map_or(1, |branch| branch.apps.len().max(1));
        let weight = weight.clamp(1, Terms::WEIGHT_MAX);
        let mine = branch.map_or_else(|| part_of(weight, ratio), |branch| branch.part);
        let joined = if branch.is_some() { 0 } else { mine };
        let parts = self.parts.saturating_add(joined);
        let times = |apps, parts| number(apps) * count(parts) / count(mine.max(1));
        let most = times(apps.saturating_add(absent.apps), parts.saturating_add(absent.parts));
        let times = [times(apps, parts), most];
        // Who was given more than its turn when it was last there waits for the others' to come.
        let owes = app.map_or(0.0, |app| app.identities.owes(lane.identity, cost));
        let in_lane = in_front.cost + absent.lane.cost + cost;
        let before = of_app.cost + absent.app.cost + cost;
        let own = before.min(in_lane * number(lanes)).max(in_lane) + owes * number(lanes);
        let here = own * ((of_app.cost + cost) / before.max(f64::MIN_POSITIVE)).min(1.0);
        let of_lane = in_front.statements.saturating_add(absent.lane.statements);
        let rounds = of_lane.saturating_add(1).saturating_mul(lanes).saturating_sub(1);
        let statements = of_app.statements.saturating_add(absent.app.statements);
        let statements = statements.min(rounds).max(of_lane);
        let first = app.and_then(|app| app.standing.first());
        let diced = self.diced > 0;
        Ahead { own, here, times, diced, all: self.cost + cost, statements, since: first }
    }

    /// How many stand in line of an app.
    pub(crate) fn len_of(&self, lane: Lane) -> usize {
        let app = self.rules.get(&lane.rule).and_then(|branch| branch.apps.get(&lane.app));
        app.map_or(0, |app| app.standing.sum.statements)
    }
}

fn number(of: usize) -> f64 {
    count(u64::try_from(of).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_before_are_exact_where_they_or_those_behind_are_few() {
        let at = |s: u64| MonoTime::from_nanos(s.saturating_mul(1_000_000_000));
        let mut all = BySince::default();
        for s in 0..200 {
            all.add(at(s), 2.0);
            all.add(at(s), 1.0);
        }
        let before = |all: &BySince, s| {
            let Standing { statements, cost } = all.before(at(s));
            (statements, cost)
        };
        assert_eq!(before(&all, 60), (120, 180.0));
        assert_eq!(before(&all, 150), (300, 450.0));
        assert_eq!(before(&all, 100), (200, 300.0), "half");
        assert_eq!(all.before(MonoTime::MAX), all.sum);
        all.take(at(0), 2.0);
        assert_eq!((before(&all, 60), all.first()), ((119, 178.0), Some(at(0))));
        all.take(at(0), 1.0);
        assert_eq!(all.first(), Some(at(1)));
    }
}
