//! The apps of insights, and what is to be said of each.

use std::collections::{BTreeMap, BTreeSet};

use admin::insights::{Insights, Row};

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
    let window_s = shown.window_s.max(1.0);
    let mut apps: Vec<App> = found
        .into_iter()
        .map(|(name, app)| {
            let counted = shown.apps.iter().filter(|counted| counted.app == name);
            let counted = counted
                .map(|counted| (counted.concurrency_p99, counted.concurrency_max))
                .reduce(|a, b| (a.0.max(b.0), a.1.max(b.1)));
            let (at_once, source) = match counted {
                Some(counted) => (counted, Source::Counted),
                None => (from_mean(app.time_s / window_s), Source::FromMean),
            };
            App { name: name.to_owned(), at_once, source, ..app }
        })
        .collect();
    apps.sort_by(|a, b| b.time_s.total_cmp(&a.time_s).then_with(|| a.name.cmp(&b.name)));
    apps
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
