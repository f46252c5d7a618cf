//! What a statement is expected to write: an exponential average of what statements of its digest
//! wrote before.
//!
//! The unit is a row. A statement that changed rows costs their number. One that told none (DDL,
//! CALL, an UPDATE that matched nothing) costs its server time at [`ROWS_PER_S`]: an ALTER TABLE
//! that took an hour keeps a replica busy for about as long, whatever its count of rows says.
//!
//! Bounds: as many digests as [`DIGESTS_MAX`]; beyond, whoever was learned first is forgotten. A
//! digest that is not known is expected to cost what its app's statements cost.

use std::collections::{HashMap, VecDeque};

use crate::{AppKey, DigestKey, Outcome};

/// Digests remembered, about 40 bytes each. A digest that is forgotten costs one wrong guess.
const DIGESTS_MAX: usize = 10_000;

/// Weight of the newest outcome: the last eight or so count.
const NEWEST: f64 = 0.25;

/// Weight of the newest statement in the part that is new: the last 32 or so count.
const NEWS_NEWEST: f64 = 0.03;

/// Rows that a second of server time stands for.
const ROWS_PER_S: f64 = 100.0;

/// The least that a statement is expected to cost.
pub(crate) const COST_MIN: f64 = 1.0;

/// The most; beyond, sums lose their small parts.
const COST_MAX: f64 = 1e12;

#[derive(Debug, Default)]
pub(crate) struct Costs {
    averages: HashMap<Shape, f64>,
    learned: VecDeque<Shape>,
    /// The part of each app's statements whose digest nobody had seen.
    news: HashMap<AppKey, f64>,
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
    /// In rows, at least [`COST_MIN`]. A digest that is not known costs what its app's statements
    /// do, and at least `prudent`: it may be anything. The less so the more of what the app asks is
    /// new every time; that is what its mean is of.
    pub(crate) fn expected(&self, digest: Option<DigestKey>, app: AppKey, prudent: f64) -> f64 {
        let of_digest = digest.and_then(|digest| self.averages.get(&Shape::Digest(digest)));
        if let Some(average) = of_digest {
            return average.max(COST_MIN);
        }
        let Some(of_app) = self.averages.get(&Shape::App(app)) else {
            return prudent.max(COST_MIN);
        };
        let news = match (digest, self.news.get(&app)) {
            (None, _) => 1.0,
            (Some(_), news) => news.copied().unwrap_or(0.0),
        };
        of_app.max(prudent * (1.0 - news)).max(COST_MIN)
    }

    /// What the statements of an app cost, if any is known.
    pub(crate) fn of_app(&self, app: AppKey) -> Option<f64> {
        self.averages.get(&Shape::App(app)).copied()
    }

    pub(crate) fn learn(&mut self, digest: Option<DigestKey>, app: AppKey, cost: f64) {
        if let Some(digest) = digest {
            let shape = Shape::Digest(digest);
            let is_new = f64::from(u8::from(!self.averages.contains_key(&shape)));
            let news = self.news.entry(app).or_insert(0.0);
            *news += NEWS_NEWEST * (is_new - *news);
            self.learn_one(shape, cost);
        }
        self.learn_one(Shape::App(app), cost);
    }

    /// What is known: of so many digests and of so many apps at most, whoever costs most first.
    pub(crate) fn known(&self, most: usize) -> (DigestCosts, AppCosts) {
        let (mut digests, mut apps) = (Vec::new(), Vec::new());
        for (shape, &average) in &self.averages {
            match *shape {
                Shape::Digest(digest) => digests.push((digest, average)),
                Shape::App(app) => {
                    let news = self.news.get(&app).copied().unwrap_or(0.0);
                    apps.push((app, average, news));
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
                self.news.insert(app, news.clamp(0.0, 1.0));
            }
        }
    }

    fn learn_one(&mut self, shape: Shape, cost: f64) {
        if let Some(average) = self.averages.get_mut(&shape) {
            *average += NEWEST * (cost - *average);
            return;
        }
        if self.averages.len() >= DIGESTS_MAX
            && let Some(oldest) = self.learned.pop_front()
        {
            self.averages.remove(&oldest);
            if let Shape::App(app) = oldest {
                self.news.remove(&app);
            }
        }
        self.averages.insert(shape, cost);
        self.learned.push_back(shape);
    }
}

/// What a statement has cost.
pub(crate) fn cost_of(outcome: &Outcome) -> f64 {
    match outcome.affected_rows {
        // A statement that failed has written nothing, however long it waited for a lock.
        0 if outcome.error => 0.0,
        0 => (outcome.server_time.as_secs_f64() * ROWS_PER_S).min(COST_MAX),
        rows => rows_cost(rows),
    }
}

/// A number of rows as a cost.
pub(crate) fn rows_cost(rows: u64) -> f64 {
    u32::try_from(rows).map_or(COST_MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const APP: AppKey = AppKey(1);
    const COPY: Option<DigestKey> = Some(DigestKey(1));

    #[test]
    fn what_a_digest_wrote_is_expected_again_and_a_change_is_followed() {
        let mut costs = Costs::default();
        assert_eq!(costs.expected(COPY, APP, 0.0), COST_MIN);
        costs.learn(COPY, APP, 10_000.0);
        assert_eq!(costs.expected(COPY, APP, 0.0), 10_000.0);
        for _ in 0..20 {
            costs.learn(COPY, APP, 100.0);
        }
        assert!((100.0..150.0).contains(&costs.expected(COPY, APP, 0.0)));
        assert_eq!(costs.expected(Some(DigestKey(2)), AppKey(2), 0.0), COST_MIN);
    }

    #[test]
    fn a_digest_that_is_not_known_costs_what_its_app_costs() {
        let mut costs = Costs::default();
        costs.learn(COPY, APP, 500.0);
        assert_eq!(costs.expected(Some(DigestKey(2)), APP, 0.0), 500.0);
        assert_eq!(costs.expected(None, APP, 0.0), 500.0);
    }

    #[test]
    fn a_digest_that_nobody_knows_may_be_a_large_one() {
        let mut costs = Costs::default();
        assert_eq!(costs.expected(COPY, APP, 600.0), 600.0);
        costs.learn(COPY, APP, 1.0);
        assert_eq!(costs.expected(COPY, APP, 600.0), 1.0);
        let next = costs.expected(Some(DigestKey(2)), APP, 600.0);
        assert!(next > 500.0, "another digest of the same app: {next}");
        assert_eq!(costs.expected(None, APP, 600.0), 1.0, "without digests the app is what counts");
    }

    #[test]
    fn an_app_whose_statements_are_all_new_is_known_by_its_mean() {
        let mut costs = Costs::default();
        for n in 0..300 {
            costs.learn(Some(DigestKey(n)), APP, 2.0);
        }
        let next = costs.expected(Some(DigestKey(999)), APP, 600.0);
        assert!(next < 3.0, "{next}");
    }

    #[test]
    fn a_statement_without_rows_costs_its_time() {
        let hour = Outcome { server_time: Duration::from_secs(3_600), ..Outcome::default() };
        assert_eq!(cost_of(&hour), 360_000.0);
        assert_eq!(cost_of(&Outcome { affected_rows: 7, ..hour }), 7.0);
        assert_eq!(rows_cost(u64::MAX), COST_MAX);
    }

    #[test]
    fn what_was_known_is_known_again_the_dearest_first_and_what_is_learned_stays() {
        let mut costs = Costs::default();
        for (n, cost) in [(1, 10.0), (2, 500.0), (3, 70.0)] {
            costs.learn(Some(DigestKey(n)), APP, cost);
        }
        let (digests, apps) = costs.known(2);
        assert_eq!(digests, [(DigestKey(2), 500.0), (DigestKey(3), 70.0)]);
        let mut next = Costs::default();
        next.learn(Some(DigestKey(3)), AppKey(9), 1.0);
        next.begin_with(&digests, &apps);
        assert_eq!(next.expected(Some(DigestKey(2)), APP, 9_000.0), 500.0);
        assert_eq!(next.expected(Some(DigestKey(3)), APP, 9_000.0), 1.0, "learned here");
        assert_eq!(next.expected(None, APP, 9_000.0), costs.expected(None, APP, 9_000.0));
        next.begin_with(&[(DigestKey(7), f64::NAN), (DigestKey(8), -1.0)], &[]);
        assert_eq!(next.expected(Some(DigestKey(8)), AppKey(5), 600.0), 600.0);
    }

    #[test]
    fn digests_that_clients_make_up_are_forgotten() {
        let mut costs = Costs::default();
        for n in 0..50_000 {
            costs.learn(Some(DigestKey(n)), AppKey(n), 3.0);
        }
        assert!(costs.averages.len() <= DIGESTS_MAX);
        assert_eq!(costs.averages.len(), costs.learned.len());
        assert!(costs.news.len() <= DIGESTS_MAX);
    }
}
