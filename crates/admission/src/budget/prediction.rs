//! What a statement is foreseen to cost the server: exponential averages of what its digest cost
//! before; for a digest that nobody has seen, its app; for an app that nobody has seen, all.
//!
//! What runs although its digest is too expensive for one of its budgets says how it is now, and
//! stands for the average of before: of a digest that is refused hardly anything runs, and an average
//! over what is refused would be paid for by ten minutes a part.
//!
//! What ended in an error, or without an answer, would have cost its digest that at least: it counts
//! if that is more than is known. Where nothing is known but such a bound, the first that ends well
//! stands in its place. What runs yet counts as if it ended now, until one of its digest has ended.
//!
//! Bounds: [`SHAPES_MAX`] averages; beyond, one is forgotten that nobody has asked for, or learned
//! again, since it was last its turn (the clock of page replacement; Corbató, "A paging experiment with
//! the Multics system", 1968). So a flood of digests that come once makes nobody forget what is
//! refused, or what comes again and again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::key_map::KeyMap;
use crate::{AppKey, DigestKey, MonoTime};

/// Averages remembered, about 60 bytes each.
const SHAPES_MAX: usize = 10_000;

/// Averages that are passed over to forget one: it is done within a statement.
const PASSED_MAX: usize = 64;

/// Weight of the newest outcome: the last eight or so count.
const NEWEST: f64 = 0.25;

/// The first statement of all is taken for this.
const UNKNOWN: Cost = Cost { seconds: 0.01, rows: 1.0 };

/// For how long a digest is refused for what it cost when it ran last. Then one is let through:
/// what never runs can never be found to have become cheaper.
const BELIEVED_FOR: Duration = Duration::from_secs(600);

/// What a statement costs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Cost {
    /// Time at the server.
    pub(crate) seconds: f64,
    /// Rows changed, and rows sent.
    pub(crate) rows: f64,
}

/// What statements of a digest have cost.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DigestCost {
    /// Time at the server, in seconds.
    pub seconds: f64,
    /// Rows changed, and rows sent.
    pub rows: f64,
    /// For how long it is refused for that yet where it is too expensive.
    pub believed_for: Duration,
}

/// What the cost of a statement says about its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// One more of many.
    Further,
    /// Nothing: it is a part of one that has been learned from.
    Part,
    /// How it is now: it ran although its like is too expensive.
    Anew,
}

#[derive(Debug, Default)]
pub(super) struct Predictions {
    averages: KeyMap<Shape, Average>,
    /// In whose turn one is forgotten.
    learned: VecDeque<Shape>,
    all: Option<Cost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Digest(DigestKey),
    App(AppKey),
}

#[derive(Debug, Clone, Copy)]
struct Average {
    cost: Cost,
    /// With what runs yet, in seconds, if that makes it more.
    at_least: f64,
    /// Until then its digest is refused for it.
    believed_until: MonoTime,
    /// Nothing of it has ended well.
    is_bound: bool,
    /// It has been asked for, or learned again, since it was last its turn to be forgotten.
    met: bool,
}

impl Predictions {
    pub(super) fn expected(&self, digest: Option<DigestKey>, app: AppKey) -> Cost {
        let of = |shape: Shape| self.averages.get(&shape).map(Average::cost);
        let of_digest = digest.and_then(|digest| of(Shape::Digest(digest)));
        of_digest.or_else(|| of(Shape::App(app))).or(self.all).unwrap_or(UNKNOWN)
    }

    /// What this digest itself has cost, in seconds, however long ago.
    pub(super) fn known(&self, digest: Option<DigestKey>) -> Option<f64> {
        let average = self.averages.get(&Shape::Digest(digest?))?;
        Some(average.cost().seconds)
    }

    /// What this digest itself is known to cost, in seconds. Nobody is refused for what others of
    /// its app cost.
    pub(super) fn believed(&mut self, now: MonoTime, digest: Option<DigestKey>) -> Option<f64> {
        let average = self.averages.get_mut(&Shape::Digest(digest?))?;
        average.met = true;
        (now < average.believed_until).then_some(average.cost().seconds)
    }

    /// How long that is believed yet.
    pub(super) fn believed_for(&self, now: MonoTime, digest: Option<DigestKey>) -> Duration {
        let known = digest.and_then(|digest| self.averages.get(&Shape::Digest(digest)));
        known.map_or(Duration::ZERO, |average| average.believed_until.saturating_since(now))
    }

    /// One that is believed to be too expensive is let through, to see whether it still is: the
    /// others wait for what it finds.
    pub(super) fn try_again(&mut self, now: MonoTime, digest: Option<DigestKey>) {
        let known = digest.and_then(|digest| self.averages.get_mut(&Shape::Digest(digest)));
        if let Some(average) = known {
            average.believed_until = now.saturating_add(BELIEVED_FOR);
        }
    }

    /// What a digest has cost, for another process.
    pub(super) fn of_digest(&self, now: MonoTime, digest: DigestKey) -> Option<DigestCost> {
        Some(self.averages.get(&Shape::Digest(digest))?.told(now))
    }

    /// The digests that cost the server most time, at most so many.
    pub(super) fn costliest(&self, most: usize) -> Vec<DigestKey> {
        let mut digests: Vec<(DigestKey, f64)> = self.averages.iter().filter_map(cost_of).collect();
        digests.sort_unstable_by(|(_, one), (_, other)| other.total_cmp(one));
        digests.into_iter().take(most).map(|(digest, _)| digest).collect()
    }

    /// The digests that are believed to cost more than so many seconds, at most so many: those that
    /// cost most.
    pub(super) fn costlier(
        &self,
        now: MonoTime,
        than: f64,
        most: usize,
    ) -> Vec<(DigestKey, DigestCost)> {
        let of_digest = |(shape, average): (&Shape, &Average)| match shape {
            Shape::Digest(digest) => Some((*digest, average.told(now))),
            Shape::App(_) => None,
        };
        let is_costlier = |(_, told): &(DigestKey, DigestCost)| {
            told.seconds > than && !told.believed_for.is_zero()
        };
        let costlier = self.averages.iter().filter_map(of_digest).filter(is_costlier);
        let mut costlier: Vec<(DigestKey, DigestCost)> = costlier.collect();
        if costlier.len() > most {
            costlier.sort_unstable_by(|(_, one), (_, other)| other.seconds.total_cmp(&one.seconds));
            costlier.truncate(most);
        }
        costlier
    }

    /// Another process has learned this. False: what is known here is newer.
    pub(super) fn take_over(&mut self, now: MonoTime, digest: DigestKey, told: DigestCost) -> bool {
        let DigestCost { seconds, rows, believed_for } = told;
        let believed_until = now.saturating_add(believed_for.min(BELIEVED_FOR));
        let shape = Shape::Digest(digest);
        let known = self.averages.get(&shape);
        if known.is_some_and(|known| known.believed_until >= believed_until) {
            return false;
        }
        let cost = Cost { seconds, rows };
        self.put(shape, Average { believed_until, ..Average::of(cost, now) });
        true
    }

    pub(super) fn learn(
        &mut self,
        now: MonoTime,
        (digest, app): (Option<DigestKey>, AppKey),
        (cost, finding): (Cost, Finding),
    ) {
        if finding == Finding::Part {
            return;
        }
        if let Some(digest) = digest {
            self.learn_one(now, Shape::Digest(digest), (cost, finding));
        }
        self.learn_one(now, Shape::App(app), (cost, Finding::Further));
        self.all = Some(self.all.map_or(cost, |all| all.nearer_to(cost)));
    }

    /// One of this digest has failed behind so much. False: that says nothing.
    pub(super) fn learn_at_least(
        &mut self,
        now: MonoTime,
        digest: Option<DigestKey>,
        (least, finding): (Cost, Finding),
    ) -> bool {
        let Some(shape) = digest.map(Shape::Digest).filter(|_| finding != Finding::Part) else {
            return false;
        };
        match self.averages.get(&shape) {
            Some(average) if average.cost.seconds >= least.seconds => return false,
            Some(Average { is_bound: false, .. }) => self.learn_one(now, shape, (least, finding)),
            Some(Average { is_bound: true, .. }) | None => {
                let bound = Average { is_bound: true, ..Average::of(least, now) };
                self.put(shape, bound);
            }
        }
        true
    }

    /// One of this digest runs, and has taken so many seconds so far. False: that says nothing.
    pub(super) fn note_so_far(
        &mut self,
        now: MonoTime,
        digest: Option<DigestKey>,
        (so_far, finding): (f64, Finding),
    ) -> bool {
        let shape = digest.map(Shape::Digest);
        match shape.and_then(|shape| self.averages.get_mut(&shape)) {
            Some(average) if finding != Finding::Part && !average.is_bound => {
                let least = match finding {
                    Finding::Anew => so_far,
                    Finding::Further | Finding::Part => {
                        average.cost.seconds + NEWEST * (so_far - average.cost.seconds)
                    }
                };
                let is_news = least > average.cost().seconds;
                if is_news {
                    average.at_least = least;
                    average.believed_until = now.saturating_add(BELIEVED_FOR);
                }
                is_news
            }
            Some(_) | None => {
                let least = Cost { seconds: so_far, ..Cost::default() };
                self.learn_at_least(now, digest, (least, finding))
            }
        }
    }

    fn learn_one(&mut self, now: MonoTime, shape: Shape, (cost, finding): (Cost, Finding)) {
        let cost = match (self.averages.get(&shape), finding) {
            (None, _) | (Some(_), Finding::Anew) => cost,
            (Some(Average { is_bound: true, .. }), Finding::Further | Finding::Part) => cost,
            (Some(average), Finding::Further | Finding::Part) => average.cost.nearer_to(cost),
        };
        self.put(shape, Average::of(cost, now));
    }

    fn put(&mut self, shape: Shape, learned: Average) {
        if let Some(average) = self.averages.get_mut(&shape) {
            *average = Average { met: true, ..learned };
            return;
        }
        if self.averages.len() >= SHAPES_MAX {
            self.forget_one();
        }
        self.averages.insert(shape, learned);
        self.learned.push_back(shape);
    }

    fn forget_one(&mut self) {
        for passed in 0..=PASSED_MAX {
            let Some(shape) = self.learned.pop_front() else { return };
            match self.averages.get_mut(&shape) {
                Some(average) if average.met && passed < PASSED_MAX => {
                    average.met = false;
                    self.learned.push_back(shape);
                }
                Some(_) | None => {
                    self.averages.remove(&shape);
                    return;
                }
            }
        }
    }
}

fn cost_of((shape, average): (&Shape, &Average)) -> Option<(DigestKey, f64)> {
    match shape {
        Shape::Digest(digest) => Some((*digest, average.cost().seconds)),
        Shape::App(_) => None,
    }
}

impl Average {
    /// Learned now.
    fn of(cost: Cost, now: MonoTime) -> Self {
        let believed_until = now.saturating_add(BELIEVED_FOR);
        Self { cost, at_least: 0.0, believed_until, is_bound: false, met: false }
    }

    /// With what runs yet.
    fn cost(&self) -> Cost {
        Cost { seconds: self.cost.seconds.max(self.at_least), ..self.cost }
    }

    /// The same for another process.
    fn told(&self, now: MonoTime) -> DigestCost {
        let Cost { seconds, rows } = self.cost();
        DigestCost { seconds, rows, believed_for: self.believed_until.saturating_since(now) }
    }
}

impl Cost {
    fn nearer_to(self, newest: Self) -> Self {
        Self {
            seconds: self.seconds + NEWEST * (newest.seconds - self.seconds),
            rows: self.rows + NEWEST * (newest.rows - self.rows),
        }
    }

    /// How much more this is.
    pub(super) fn less(self, other: Self) -> Self {
        Self { seconds: self.seconds - other.seconds, rows: self.rows - other.rows }
    }
}
