//! The figures of one run.

mod plot;
mod text;

use std::collections::BTreeMap;
use std::time::Duration;

use admission::{MonoTime, Reason};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

pub(crate) use self::plot::Plot;

/// What came of a scenario. As JSON its keys are these fields.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The scenario's.
    pub name: String,
    /// Where chance came from.
    pub seed: u64,
    /// `adaptive` or `binary`.
    pub pacing: &'static str,
    /// What the lag was to stay below, in seconds.
    pub threshold_s: f64,
    /// Rows that the slowest replica applied over those it could have, while somebody wanted to write.
    pub capacity_used: f64,
    /// Share of time in which the true lag was at or over the threshold.
    pub over_threshold: f64,
    /// The true lag of the replica that is furthest behind, in seconds.
    pub lag_s: Distribution,
    /// App by app, in the order of the file.
    #[serde(serialize_with = "as_map")]
    pub apps: Vec<(String, AppFigures)>,
    /// What was expected and is not so.
    pub missed: Vec<String>,
    /// Lag and rate over time.
    #[serde(skip)]
    pub(crate) plot: Plot,
}

/// What came of one app.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AppFigures {
    /// The rule that its statements met, if it has a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Permits a second.
    pub admitted_per_s: f64,
    /// Rows a second under them.
    pub rows_per_s: f64,
    /// How many of the admitted a second had to wait, for a millisecond or more.
    pub waited_per_s: f64,
    /// Refusals a second.
    pub rejected_per_s: f64,
    /// The same by their reasons.
    pub rejected_for: BTreeMap<&'static str, f64>,
    /// How many of the admitted a second would have been delayed or refused by a rule that only
    /// observes.
    pub observed_per_s: f64,
    /// The part of the refusals that were told within a factor of two of the truth
    /// ([`RefusedStatement::told_right`]); `None` where none could be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_right: Option<f64>,
    /// What it received of its fair share beside others at the gate, over the last minute or so in
    /// which it waited; `None` where it did not, or the scenario expects nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_of_share: Option<f64>,
    /// The part of the run for which an identity of it received less than half of its fair share;
    /// 0 if that is less than five seconds. `None` where the scenario expects nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_share: Option<f64>,
    /// How long the admitted waited, in seconds.
    pub delay_s: Distribution,
    /// How long they waited since they asked for the first time, refusals and what they were told
    /// included, in seconds.
    pub in_all_s: Distribution,
    /// How long they took at the server, in seconds; `None` where statements do not take turns there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_s: Option<Distribution>,
}

/// A statement that was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RefusedStatement {
    /// Whose: the number of its session, over all apps.
    pub session: usize,
    /// When it asked first.
    pub arrived: MonoTime,
    /// When it was refused.
    pub at: MonoTime,
    /// Why.
    pub reason: Reason,
    /// How long it had waited.
    pub waited: Duration,
    /// When it was told to come back.
    pub retry_after: Duration,
    /// When its session was admitted next; `None`: not by the end.
    pub admitted_at: Option<MonoTime>,
    /// Whether its session comes back when it is told.
    pub heeds: bool,
    /// When its turn came: its line had moved on by as many as were before it. `None`: not by the end,
    /// or it was not refused for a line.
    pub turn_at: Option<MonoTime>,
}

impl RefusedStatement {
    /// Whether it was admitted by twice the time that it was told, or its turn came by then if it
    /// did not come back as told, and its turn not before half of it; `None` if the run ended
    /// before. Nobody is told less than `check_interval`, so what took less counts as that.
    #[must_use]
    pub fn told_right(&self, end: MonoTime, check_interval: Duration) -> Option<bool> {
        let at_most = self.retry_after.saturating_mul(2);
        if self.at.saturating_add(at_most) > end {
            return None;
        }
        let at_least = self.retry_after.mul_f64(0.5);
        let came = if self.heeds { self.admitted_at } else { self.turn_at };
        let first = [came, self.turn_at].into_iter().flatten().min();
        let took = |at: MonoTime| at.saturating_since(self.at).max(check_interval);
        let not_too_short = came.is_some_and(|at| at.saturating_since(self.at) <= at_most);
        Some(not_too_short && first.is_some_and(|at| took(at) >= at_least))
    }
}

/// How values are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Distribution {
    /// Half are at most this.
    pub p50: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// 99 of 100 are at most this.
    pub p99: f64,
    /// All are at most this.
    pub max: f64,
}

impl Report {
    /// A figure by its name, as in `lag_s.p99` or `apps.etl.rows_per_s`.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "capacity_used" => return Some(self.capacity_used),
            "over_threshold" => return Some(self.over_threshold),
            _ => {}
        }
        if let Some(quantile) = name.strip_prefix("lag_s.") {
            return self.lag_s.figure(quantile);
        }
        let rest = name.strip_prefix("apps.")?;
        self.apps.iter().find_map(|(app, figures)| {
            let name = rest.strip_prefix(app.as_str())?.strip_prefix('.')?;
            figures.figure(name)
        })
    }
}

impl AppFigures {
    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "admitted_per_s" => Some(self.admitted_per_s),
            "rows_per_s" => Some(self.rows_per_s),
            "waited_per_s" => Some(self.waited_per_s),
            "rejected_per_s" => Some(self.rejected_per_s),
            "observed_per_s" => Some(self.observed_per_s),
            "told_right" => self.told_right,
            "received_of_share" => self.received_of_share,
            "below_share" => self.below_share,
            _ => match name.split_once('.')? {
                ("delay_s", quantile) => self.delay_s.figure(quantile),
                ("in_all_s", quantile) => self.in_all_s.figure(quantile),
                ("latency_s", quantile) => self.latency_s?.figure(quantile),
                _ => None,
            },
        }
    }
}

impl Distribution {
    fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "p50" => Some(self.p50),
            "p95" => Some(self.p95),
            "p99" => Some(self.p99),
            "max" => Some(self.max),
            _ => None,
        }
    }
}

/// The names of all figures of a report about these apps.
pub(crate) fn figure_names(apps: &[String]) -> Vec<String> {
    const QUANTILES: [&str; 4] = ["p50", "p95", "p99", "max"];
    let mut names = vec!["capacity_used".to_owned(), "over_threshold".to_owned()];
    names.extend(QUANTILES.map(|quantile| format!("lag_s.{quantile}")));
    for app in apps {
        let rates =
            ["admitted_per_s", "rows_per_s", "waited_per_s", "rejected_per_s", "observed_per_s"];
        names.extend(rates.map(|rate| format!("apps.{app}.{rate}")));
        names.extend(
            ["told_right", "received_of_share", "below_share"]
                .map(|part| format!("apps.{app}.{part}")),
        );
        for figure in ["delay_s", "in_all_s", "latency_s"] {
            names.extend(QUANTILES.map(|quantile| format!("apps.{app}.{figure}.{quantile}")));
        }
    }
    names
}

fn as_map<S: Serializer>(apps: &[(String, AppFigures)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(apps.len()))?;
    for (name, figures) in apps {
        map.serialize_entry(name, figures)?;
    }
    map.end()
}
