//! What there would have been above a budget's limits, second by second.
//!
//! Of each app it is known how many seconds had how many of its statements at the server at once, ended
//! how many and how many rows. That is told of a bucket which is the app's, and the only one that is.
//! A second had no more than its level says, so what is told to be above a limit is the most that was.
//! What a budget holds back comes a little later, so these are the statements that it delays first.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use admin::insights::{AppSeconds, most, p99};

use super::report::{Above, Peaks};
use super::tally::number;

/// What a limit is of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    /// Statements at the server at once: seconds of the server a second.
    Concurrency,
    Statements,
    Rows,
}

/// The apps whose buckets are theirs alone.
pub(super) struct Peaked<'p>(Vec<&'p AppSeconds>);

impl<'p> Peaked<'p> {
    /// Of the apps of each bucket.
    pub(super) fn of<'b>(
        buckets: impl Iterator<Item = &'b BTreeSet<String>>,
        known: &HashMap<&str, &'p AppSeconds>,
    ) -> Self {
        // By app: whether it is alone in its one bucket.
        let mut alone: BTreeMap<&str, bool> = BTreeMap::new();
        for apps in buckets {
            for app in apps {
                let is_alone = apps.len() == 1 && !alone.contains_key(&**app);
                alone.insert(app, is_alone);
            }
        }
        let alone = alone.into_iter().filter(|(_, is_alone)| *is_alone);
        Self(alone.filter_map(|(app, _)| known.get(app).copied()).collect())
    }

    /// The app with most above a limit, or with most in its seconds where none has.
    pub(super) fn above(&self, of: Of, allowed: f64) -> Option<Peaks> {
        let peaks = self.0.iter().filter_map(|app| of.peaks(app, allowed));
        let above = |peaks: &Peaks| peaks.above.as_ref().map_or(0.0, |above| above.above);
        peaks.max_by(|a, b| above(a).total_cmp(&above(b)).then(a.p99.total_cmp(&b.p99)))
    }
}

impl Of {
    fn peaks(self, app: &AppSeconds, allowed: f64) -> Option<Peaks> {
        let seconds = match self {
            Self::Concurrency => &app.by_concurrency,
            Self::Statements => &app.by_statements,
            Self::Rows => &app.by_rows,
        };
        let p99 = match self {
            Self::Concurrency => app.concurrency_p99,
            Self::Statements | Self::Rows if seconds.is_empty() => return None,
            Self::Statements | Self::Rows => p99(seconds),
        };
        let above = (!seconds.is_empty()).then(|| above(seconds, allowed));
        Some(Peaks { app: app.app.clone(), p99, above })
    }
}

fn above(seconds: &[(f64, u64)], allowed: f64) -> Above {
    let mut told = Above { max: most(seconds), seconds: 0, seconds_above: 0, above: 0.0 };
    for (upto, count) in seconds {
        told.seconds = told.seconds.saturating_add(*count);
        if *upto > allowed {
            told.seconds_above = told.seconds_above.saturating_add(*count);
            told.above += (upto - allowed) * number(*count);
        }
    }
    told
}
