//! What a statement is expected to write, and for how long it runs: exponential averages of what
//! statements of its digest did before.
//!
//! The unit is a row. A statement that changed rows costs their number. One that told none (DDL,
//! CALL, an UPDATE that matched nothing) costs its server time at [`ROWS_PER_S`]: an ALTER TABLE
//! that took an hour keeps a replica busy for about as long, whatever its count of rows says. What
//! only reads costs a replica nothing, however long it takes.
//!
//! Bounds: as many digests as [`DIGESTS_MAX`] and as many apps as [`APPS_MAX`]; beyond, whoever was
//! learned first is forgotten. A digest that is not known is expected to cost what its app's
//! statements cost. So apps are forgotten for apps alone: one whose texts are all new would soon
//! have put itself out, and be a stranger again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::decision::Account;
use crate::key_map::KeyMap;
use crate::{AppKey, DigestKey, Outcome};

/// Digests remembered, about 40 bytes each. A digest that is forgotten costs one wrong guess.
const DIGESTS_MAX: usize = 10_000;

/// Apps remembered.
const APPS_MAX: usize = 10_000;

/// Weight of the newest outcome: the last eight or so count.
const NEWEST: f64 = 0.25;

/// Weight of the newest statement in the part that is new: the last 32 or so count.
const NEWS_NEWEST: f64 = 0.03;

/// After so many new digests of an app the next is half as doubtful.
const DIGESTS_DOUBTED: f64 = 10.0;

/// Rows that a second of server time stands for.
const ROWS_PER_S: f64 = 100.0;

/// The least that a statement is expected to cost.
pub(crate) const COST_MIN: f64 = 1.0;

/// The most; beyond, sums lose their small parts.
const COST_MAX: f64 = 1e12;

#[derive(Debug, Default)]
pub(crate) struct Costs {
    averages: KeyMap<Shape, Average>,
    /// What is in it, in the order in which it was learned.
    digests: VecDeque<DigestKey>,
    apps: VecDeque<AppKey>,
    news: KeyMap<AppKey, News>,
    /// How many statements run whose digest nobody has seen, of each such digest and each app.
    running: KeyMap<Shape, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Average {
    rows: f64,
    /// From admission to the end of its transaction, in seconds, where that has been seen.
    lasts: Option<f64>,
}

/// What is known of an app's statements whose digest nobody had seen.
#[derive(Debug, Clone, Copy, Default)]
struct News {
    /// Their part of all.
    part: f64,
    /// How many there were.
    digests: f64,
    /// What they cost.
    cost: f64,
}

impl News {
    /// How far the next may be anything: the less so the more of what the app asks is new, and the
    /// more of that has been seen. The latter is the rule of succession. Of those that run nobody
    /// knows yet, and they may be alike.
    fn doubt(&self, running: u32) -> f64 {
        let seen = DIGESTS_DOUBTED / (DIGESTS_DOUBTED + self.digests);
        let running = f64::from(running) + 1.0;
        ((1.0 - self.part).min(seen) * running * running).min(1.0)
    }
}

/// What digests cost.
type DigestCosts = Vec<(DigestKey, f64)>;
/// What apps cost, and the part of what they ask that is new.
type AppCosts = Vec<(AppKey, f64, f64)>;

/// What an average is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Shape {
    Digest(DigestKey),
    App(AppKey),
}

impl Costs {
    /// In rows, at least [`COST_MIN`].
    pub(crate) fn expected(&self, digest: Option<DigestKey>, app: AppKey, prudent: f64) -> f64 {
        self.average(digest, app, prudent).max(COST_MIN)
    }

    /// In rows; less than one where not every such statement writes. A digest that is not known costs what its app's
    /// statements do, and its new ones, and at least `prudent` as far as it may be anything: all of it while the first
    /// of its kind runs, or where nothing is known of the app.
    pub(crate) fn average(&self, digest: Option<DigestKey>, app: AppKey, prudent: f64) -> f64 {
        let of_digest = digest.and_then(|digest| self.averages.get(&Shape::Digest(digest)));
        if let Some(average) = of_digest {
            return average.rows;
        }
        let Some(of_app) = self.averages.get(&Shape::App(app)) else {
            return prudent;
        };
        let Some(digest) = digest else { return of_app.rows };
        let news = self.news.get(&app).copied().unwrap_or_default();
        let runs = |shape| self.running.get(&shape).copied().unwrap_or(0);
        let doubt =
            if runs(Shape::Digest(digest)) > 0 { 1.0 } else { news.doubt(runs(Shape::App(app))) };
        of_app.rows.max(news.cost).max(prudent * doubt)
    }

    /// Whether such a statement may be anything, and one of its kind runs of which that will be known.
    pub(crate) fn will_be_known(&self, digest: Option<DigestKey>, app: AppKey) -> bool {
        let knows = |shape| self.averages.contains_key(&shape);
        let runs = |shape| self.running.contains_key(&shape);
        let (digest, app) = (digest.map(Shape::Digest), Shape::App(app));
        !self.running.is_empty()
            && digest.is_some_and(|digest| {
                !knows(digest) && (runs(digest) || (!knows(app) && runs(app)))
            })
    }

    /// A statement runs. Whether nobody knows its digest, which then is to be told when it ends.
    pub(crate) fn begin(&mut self, digest: Option<DigestKey>, app: AppKey) -> bool {
        let Some(digest) = digest else { return false };
        let shape = Shape::Digest(digest);
        if self.averages.contains_key(&shape) || self.running.len() >= DIGESTS_MAX {
            return false;
        }
        for shape in [shape, Shape::App(app)] {
            let running = self.running.entry(shape).or_insert(0);
            *running = running.saturating_add(1);
        }
        true
    }

    /// It does not run any more.
    pub(crate) fn end(&mut self, account: &Account) {
        let Some(digest) = account.digest.filter(|_| account.is_new) else { return };
        for shape in [Shape::Digest(digest), Shape::App(account.lane.app)] {
            let Some(running) = self.running.get_mut(&shape) else { continue };
            *running = running.saturating_sub(1);
            if *running == 0 {
                self.running.remove(&shape);
            }
        }
    }

    /// What the statements of an app cost, if any is known.
    pub(crate) fn of_app(&self, app: AppKey) -> Option<f64> {
        self.averages.get(&Shape::App(app)).map(|average| average.rows)
    }

    /// For how many seconds it is expected to run, with the transaction that it begins; `None` where
    /// nobody knows.
    pub(crate) fn lasts(&self, digest: Option<DigestKey>, app: AppKey) -> Option<f64> {
        let lasts = |shape| self.averages.get(&shape).and_then(|average| average.lasts);
        digest.map(Shape::Digest).and_then(lasts).or_else(|| lasts(Shape::App(app)))
    }

    /// One that has been learned ran for so long.
    pub(crate) fn ran(&mut self, digest: Option<DigestKey>, app: AppKey, took: Duration) {
        let took = took.as_secs_f64();
        for shape in digest.map(Shape::Digest).into_iter().chain([Shape::App(app)]) {
            let Some(average) = self.averages.get_mut(&shape) else { continue };
            let before = average.lasts.unwrap_or(took);
            average.lasts = Some(before + NEWEST * (took - before));
        }
    }

    pub(crate) fn learn(&mut self, digest: Option<DigestKey>, app: AppKey, cost: f64) {
        if let Some(digest) = digest {
            let shape = Shape::Digest(digest);
            let is_new = !self.averages.contains_key(&shape);
            let news = self.news.entry(app).or_default();
            news.part += NEWS_NEWEST * (f64::from(u8::from(is_new)) - news.part);
            if is_new {
                let newest = if news.digests > 0.0 { NEWEST } else { 1.0 };
                news.cost += newest * (cost - news.cost);
                news.digests += 1.0;
            }
            self.learn_one(shape, cost);
        }
        self.learn_one(Shape::App(app), cost);
    }

    /// What is known: of so many digests and of so many apps at most, whoever costs most first.
    pub(crate) fn known(&self, most: usize) -> (DigestCosts, AppCosts) {
        let (mut digests, mut apps) = (Vec::new(), Vec::new());
        for (shape, &average) in &self.averages {
            match *shape {
                Shape::Digest(digest) => digests.push((digest, average.rows)),
                Shape::App(app) => {
                    let part = self.news.get(&app).map_or(0.0, |news| news.part);
                    apps.push((app, average.rows, part));
                }
            }
        }
        digests.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.0.cmp(&b.0.0)));
        apps.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.0.cmp(&b.0.0)));
        digests.truncate(most);
        apps.truncate(most);
        (digests, apps)
    }

    /// Takes in what another had learned; what this one has learned itself stays. Costs that make
    /// no sense are left out.
    pub(crate) fn begin_with(&mut self, digests: &[(DigestKey, f64)], apps: &[(AppKey, f64, f64)]) {
        let makes_sense = |cost: f64| (0.0..=COST_MAX).contains(&cost);
        for &(digest, cost) in digests {
            let shape = Shape::Digest(digest);
            if makes_sense(cost) && !self.averages.contains_key(&shape) {
                self.learn_one(shape, cost);
            }
        }
        for &(app, cost, news) in apps {
            let shape = Shape::App(app);
            if makes_sense(cost) && !self.averages.contains_key(&shape) {
                self.learn_one(shape, cost);
                let part = news.clamp(0.0, 1.0);
                self.news.insert(app, News { part, ..News::default() });
            }
        }
    }

    fn learn_one(&mut self, shape: Shape, cost: f64) {
        if let Some(average) = self.averages.get_mut(&shape) {
            average.rows += NEWEST * (cost - average.rows);
            return;
        }
        match shape {
            Shape::Digest(digest) => {
                if let Some(oldest) = make_place(&mut self.digests, DIGESTS_MAX, digest) {
                    self.averages.remove(&Shape::Digest(oldest));
                }
            }
            Shape::App(app) => {
                if let Some(oldest) = make_place(&mut self.apps, APPS_MAX, app) {
                    self.averages.remove(&Shape::App(oldest));
                    self.news.remove(&oldest);
                }
            }
        }
        self.averages.insert(shape, Average { rows: cost, lasts: None });
    }
}

/// Puts one more at the end, and gives which has to go for it.
fn make_place<K>(learned: &mut VecDeque<K>, most: usize, newest: K) -> Option<K> {
    let oldest = if learned.len() >= most { learned.pop_front() } else { None };
    learned.push_back(newest);
    oldest
}

/// What a statement has cost.
pub(crate) fn cost_of(outcome: &Outcome) -> f64 {
    match outcome.affected_rows {
        // A statement that failed has written nothing, however long it waited for a lock.
        0 if outcome.error => 0.0,
        0 => {
            let worked = outcome.server_time.saturating_sub(outcome.reading);
            (worked.as_secs_f64() * ROWS_PER_S).min(COST_MAX)
        }
        rows => rows_cost(rows),
    }
}

/// A number of rows as a cost.
pub(crate) fn rows_cost(rows: u64) -> f64 {
    u32::try_from(rows).map_or(COST_MAX, f64::from)
}

#[cfg(test)]
mod tests;
