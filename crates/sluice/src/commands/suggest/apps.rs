//! The apps of insights, and what is to be said of each.

use std::collections::{BTreeMap, BTreeSet};

use admin::insights::{AppSeconds, Insights, Row};

/// An app, in all clusters.
#[derive(Debug, Clone, Default)]
pub(super) struct App {
    pub(super) name: String,
    pub(super) statements: u64,
    /// Statements that change something, or cannot be told to change nothing.
    pub(super) writes: u64,
    pub(super) rows_changed: u64,
    pub(super) time_s: f64,
    pub(super) users: BTreeSet<String>,
    pub(super) met: Met,
}

/// What a budget of an app meets: the app, and those of which it is a level.
#[derive(Debug, Clone, Default)]
pub(super) struct Met {
    /// Those of which it is a level.
    pub(super) others: BTreeSet<String>,
    pub(super) statements: u64,
    pub(super) time_s: f64,
    /// Statements at the server at once, in 99 of 100 seconds and at most, and how that was found.
    pub(super) at_once: (f64, f64),
    pub(super) source: Source,
}

/// How the number of statements at once was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Source {
    /// Sluice has counted them.
    #[default]
    Counted,
    /// From the mean, as if statements came independently of each other.
    FromMean,
}

/// All of them, those with most time at the server first.
pub(super) fn apps(shown: &Insights) -> Vec<App> {
    let mut found: BTreeMap<&str, App> = BTreeMap::new();
    for row in shown.rows.iter().filter(|row| row.digest.as_deref() != Some("other")) {
        let Some(name) = row.app.as_deref().filter(|name| !name.is_empty()) else { continue };
        found.entry(name).or_default().add(row);
    }
    let mut met = met(shown, &found);
    let mut apps: Vec<App> = found
        .into_iter()
        .map(|(name, app)| App {
            name: name.to_owned(),
            met: met.remove(name).unwrap_or_default(),
            ..app
        })
        .collect();
    apps.sort_by(|a, b| b.time_s.total_cmp(&a.time_s).then_with(|| a.name.cmp(&b.name)));
    apps
}

/// By app, what its budget meets.
fn met<'s>(shown: &'s Insights, found: &BTreeMap<&'s str, App>) -> BTreeMap<&'s str, Met> {
    let mut counted: BTreeMap<&str, Vec<&AppSeconds>> = BTreeMap::new();
    for app in &shown.apps {
        counted.entry(&app.app).or_default().push(app);
    }
    let mut sums: BTreeMap<&str, Sum<'_>> = BTreeMap::new();
    for &name in found.keys().chain(counted.keys()).collect::<BTreeSet<_>>() {
        let named: BTreeSet<&str> = name.split(':').chain([name]).collect();
        for met_by in named.into_iter().filter(|named| found.contains_key(named)) {
            let sum = sums.entry(met_by).or_default();
            sum.add(found.get(name), counted.get(name));
            if name != met_by {
                sum.met.others.insert(name.to_owned());
            }
        }
    }
    let window_s = shown.window_s.max(1.0);
    sums.into_iter().map(|(name, sum)| (name, sum.met(window_s))).collect()
}

/// Of what a budget meets, while it is added up.
#[derive(Default)]
struct Sum<'s> {
    met: Met,
    /// By cluster, for each has a bucket of its own.
    counted: BTreeMap<&'s str, (f64, f64)>,
    /// Of apps that were not counted.
    uncounted_s: Option<f64>,
}

impl<'s> Sum<'s> {
    fn add(&mut self, app: Option<&App>, counted: Option<&Vec<&'s AppSeconds>>) {
        if let Some(app) = app {
            self.met.statements = self.met.statements.saturating_add(app.statements);
            self.met.time_s += app.time_s;
            if counted.is_none() {
                *self.uncounted_s.get_or_insert_default() += app.time_s;
            }
        }
        for counted in counted.into_iter().flatten() {
            let (p99, most) = self.counted.entry(&counted.cluster).or_default();
            *p99 += counted.concurrency_p99;
            *most += counted.concurrency_max;
        }
    }

    fn met(self, window_s: f64) -> Met {
        let fullest = self.counted.into_values().reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)));
        let counted = fullest.unwrap_or_default();
        let (at_once, source) = match self.uncounted_s {
            None => (counted, Source::Counted),
            Some(time_s) => {
                let more = from_mean(time_s / window_s);
                ((counted.0 + more.0, counted.1 + more.1), Source::FromMean)
            }
        };
        Met { at_once, source, ..self.met }
    }
}

impl App {
    fn add(&mut self, row: &Row) {
        let came = row.cost.count.saturating_add(row.cost.refused);
        self.statements = self.statements.saturating_add(came);
        let reads =
            matches!(row.class.as_deref(), Some("read" | "session" | "transaction" | "admin"));
        if !reads {
            self.writes = self.writes.saturating_add(came);
        }
        self.rows_changed = self.rows_changed.saturating_add(row.cost.rows_affected);
        self.time_s += row.cost.time_total_s;
        self.users.extend(row.senders.iter().filter_map(|sender| sender.user.clone()));
    }
}

/// The 99th percentile of a Poisson distribution of this mean, and the same for 9,999 of 10,000:
/// how many are there at once when they come independently of each other, however long they take.
fn from_mean(mean: f64) -> (f64, f64) {
    if !(0.0..=MEAN_MAX).contains(&mean) {
        // It is as good as normal.
        return (mean + 2.33 * mean.abs().sqrt(), mean + 3.72 * mean.abs().sqrt());
    }
    let (mut at, mut part) = (0.0_f64, (-mean).exp());
    let (mut sum, mut p99) = (part, None);
    while sum < 0.9999 && at < MEAN_MAX * 3.0 {
        if p99.is_none() && sum >= 0.99 {
            p99 = Some(at);
        }
        at += 1.0;
        part *= mean / at;
        sum += part;
    }
    (p99.unwrap_or(at).max(1.0), at.max(1.0))
}

/// Above, `exp(-mean)` is too small to be added up.
const MEAN_MAX: f64 = 500.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_of_a_mean_is_that_of_the_tables() {
        for (mean, expected) in [(0.001, 1.0), (1.0, 4.0), (10.0, 18.0), (100.0, 124.0)] {
            assert!((from_mean(mean).0 - expected).abs() < 0.5, "{mean}: {:?}", from_mean(mean));
        }
        assert!((from_mean(10_000.0).0 - 10_233.0).abs() < 1.0);
    }
}
