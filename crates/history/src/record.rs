//! What is kept: one row for each identity and minute, one for each interval, one for each event.
//!
//! All times are UTC. Spans are measured by the monotonic clock, so that a clock that is set does
//! not make them longer or shorter.

mod beyond;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::beyond::{
    CostKey, CostRow, InsightsName, InsightsWindow, QuarantineKey, QuarantineRow,
};

/// A time of the wall clock, in milliseconds since 1970. In JSON as RFC 3339, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct At(pub i64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_millisecond(self.0) {
            Ok(time) => time.fmt(f),
            Err(_) => self.0.fmt(f),
        }
    }
}

impl Serialize for At {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let time: Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(Self(time.as_millisecond()))
    }
}

/// What became of the statements of one identity under one rule, in one minute of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MinuteRow {
    /// Of which run.
    pub run: i64,
    /// When the minute begins, in seconds since 1970.
    pub at: i64,
    /// The cluster.
    pub cluster: String,
    /// The app as metrics show it.
    pub app: String,
    /// The MySQL user.
    pub user: String,
    /// The rule; `none` where none matched.
    pub rule: String,
    /// The counts.
    pub counts: Counts,
    /// Of those refused, how many for which reason.
    pub refused_by: BTreeMap<String, u64>,
}

/// What became of checks over HTTP of one app under one rule, in one minute of one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckRow {
    /// Of which run.
    pub run: i64,
    /// When the minute begins, in seconds since 1970.
    pub at: i64,
    /// The cluster.
    pub cluster: String,
    /// The app as metrics show it.
    pub app: String,
    /// The rule; `none` where none decided.
    pub rule: String,
    /// Why they were told not to go on; empty: they were told to.
    pub refused: String,
    /// How many.
    pub count: u64,
}

/// What became of statements.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// How many came.
    pub asked: u64,
    /// Forwarded, at once or after a wait.
    pub admitted: u64,
    /// Of all that came, those that had to wait.
    pub delayed: u64,
    /// Refused.
    pub refused: u64,
    /// Of those forwarded, those that a rule in mode `observe` would have delayed or refused.
    pub observed: u64,
    /// Those whose client left, or that were killed, while they waited.
    pub left: u64,
    /// All waits together.
    pub wait_sum_s: f64,
    /// The longest wait.
    pub wait_max_s: f64,
    /// What 99 of a hundred waits were not longer than, of the worst minute.
    pub wait_p99_s: f64,
    /// Rows changed.
    pub rows: u64,
}

impl Counts {
    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let Self { asked, admitted, delayed, refused, observed, left, .. } = *other;
        let add = |own: &mut u64, other: u64| *own = own.saturating_add(other);
        add(&mut self.asked, asked);
        add(&mut self.admitted, admitted);
        add(&mut self.delayed, delayed);
        add(&mut self.refused, refused);
        add(&mut self.observed, observed);
        add(&mut self.left, left);
        add(&mut self.rows, other.rows);
        self.wait_sum_s += other.wait_sum_s;
        self.wait_max_s = self.wait_max_s.max(other.wait_max_s);
        self.wait_p99_s = self.wait_p99_s.max(other.wait_p99_s);
    }
}

/// A signal in one minute of one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SignalRow {
    /// Of which run.
    pub run: i64,
    /// When the minute begins, in seconds since 1970.
    pub at: i64,
    /// The cluster.
    pub cluster: String,
    /// The signal.
    pub signal: String,
    /// What was measured.
    pub values: Values,
}

/// What a signal was.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Values {
    /// What it is held against.
    pub threshold: f64,
    /// The lowest value; 0 without data.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The highest.
    pub max: f64,
    /// Looks that found a value.
    pub samples: u64,
    /// For how long it let nothing through.
    pub shut_s: f64,
}

impl Values {
    /// One more look.
    pub fn note(&mut self, value: Option<f64>, threshold: f64, shut_s: f64) {
        self.threshold = threshold;
        self.shut_s += shut_s;
        let Some(value) = value else { return };
        self.add(&Self { threshold, min: value, mean: value, max: value, samples: 1, shut_s: 0.0 });
    }

    /// Adds those of another time.
    pub fn add(&mut self, other: &Self) {
        self.threshold = other.threshold;
        self.shut_s += other.shut_s;
        if other.samples == 0 {
            return;
        }
        if self.samples == 0 {
            let shut_s = self.shut_s;
            *self = Self { shut_s, ..*other };
            return;
        }
        let (own, new) = (float(self.samples), float(other.samples));
        self.mean = (self.mean * own + other.mean * new) / (own + new);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// A count as a number to calculate with; exact up to 2^53.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "counts of a history")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// What an interval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Statements of an app waited or were refused; the state is the rule.
    Held,
    /// A signal let nothing through; the state is `closed` or `no_data`.
    Signal,
    /// A replica was in a state.
    Replica,
    /// The primary was.
    Primary,
    /// An app was starved; the state is the rule.
    Starved,
}

/// Whether a server's state is one in which nothing is wrong.
pub(crate) fn is_usual(state: &str) -> bool {
    matches!(state, "counted" | "answers" | "not_probed" | "unknown" | "ignored_slowest")
}

impl SpanKind {
    /// Every one.
    pub const ALL: [Self; 5] =
        [Self::Held, Self::Signal, Self::Replica, Self::Primary, Self::Starved];

    /// The name in the file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Signal => "signal",
            Self::Replica => "replica",
            Self::Primary => "primary",
            Self::Starved => "starved",
        }
    }
}

/// An interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// In which run it began.
    pub run: i64,
    /// Its number in that run.
    pub n: i64,
    /// What it is about.
    pub kind: SpanKind,
    /// The cluster.
    pub cluster: String,
    /// The app, signal or server.
    pub subject: String,
    /// The rule, or the state.
    pub state: String,
    /// When it began.
    pub began: At,
    /// When it ended. None: it has not, or nobody was there to see it.
    pub ended: Option<At>,
    /// How long it has lasted, as far as that was seen.
    pub lasted_ms: i64,
    /// More about it.
    pub facts: SpanFacts,
}

/// More about an interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpanFacts {
    /// How often something waited or was refused for which reason.
    pub reasons: BTreeMap<String, u64>,
    /// Of each, how often what was behind it: the signal, the budget, the guard, or the limit of the
    /// rule; for the pace, nothing.
    pub behind: BTreeMap<String, BTreeMap<String, u64>>,
    /// The signal that the interval is of, or that last refused something at once.
    pub signal: Option<String>,
    /// Of its values: `s`, or nothing.
    pub unit: String,
    /// What it is held against.
    pub threshold: Option<f64>,
    /// The highest value.
    pub highest: Option<f64>,
    /// The server at which that was.
    pub server: Option<String>,
    /// Statements that had to wait, and do not any more.
    pub delayed: u64,
    /// The longest of these waits.
    pub wait_max_s: f64,
    /// Statements that were refused.
    pub refused: u64,
    /// Who made the rule, if it was made at runtime.
    pub author: Option<String>,
    /// Why the rule exists, or what is wrong with the server, or who passed meanwhile.
    pub text: String,
}

/// Something that happened at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    /// In which run.
    #[serde(skip)]
    pub run: i64,
    /// Its number in that run.
    #[serde(skip)]
    pub n: i64,
    /// When.
    pub at: At,
    /// The cluster; empty: all of them.
    pub cluster: String,
    /// `file`, `rule`, `start`, `stop` or `clock`. What switches the history off or on is a stop or a
    /// start.
    pub kind: String,
    /// The file, or the rule.
    pub subject: String,
    /// Who did it, where that is known.
    pub author: Option<String>,
    /// What, in words.
    pub text: String,
    /// What another file says otherwise, line by line.
    pub diff: Option<String>,
}

/// A time in which one process wrote, by one reading of its clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its number.
    pub run: i64,
    /// When it began.
    pub began: At,
    /// When it was seen last.
    pub seen: At,
    /// When it ended in an orderly way.
    pub ended: Option<At>,
    /// The version of Sluice.
    pub version: String,
}

/// What is to be written.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    /// These runs.
    pub runs: Vec<Run>,
    /// Minutes, in place of what there is of them.
    pub minutes: Vec<MinuteRow>,
    /// The signals of minutes, likewise.
    pub signals: Vec<SignalRow>,
    /// The checks of minutes, likewise.
    pub checks: Vec<CheckRow>,
    /// Intervals, likewise.
    pub spans: Vec<Span>,
    /// Events.
    pub events: Vec<Event>,
    /// What is known of statements that were refused or waited long: number, time, app and JSON.
    pub statements: Vec<StatementRow>,
    /// Windows of insights, in place of what there is of them.
    pub insights: Vec<InsightsWindow>,
    /// What their hashes stand for.
    pub names: Vec<InsightsName>,
    /// What has come into quarantine, or stays longer.
    pub quarantined: Vec<QuarantineRow>,
    /// What was freed.
    pub freed: Vec<QuarantineKey>,
    /// What was found to cost too much for a budget.
    pub costs: Vec<CostRow>,
    /// What was found not to, any more.
    pub cheaper: Vec<CostKey>,
}

impl Writes {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        let Self {
            runs,
            minutes,
            signals,
            checks,
            spans,
            events,
            statements,
            insights,
            names,
            quarantined,
            freed,
            costs,
            cheaper,
        } = self;
        let windows = insights.iter().map(|window| window.count.saturating_add(1)).sum();
        [
            runs.len(),
            minutes.len(),
            signals.len(),
            checks.len(),
            spans.len(),
            events.len(),
            statements.len(),
            windows,
            names.len(),
            quarantined.len(),
            freed.len(),
            costs.len(),
            cheaper.len(),
        ]
        .into_iter()
        .fold(0, usize::saturating_add)
    }
}

impl Writes {
    /// Gives up the rows that newer writes have in their place, so that a disk that is away costs
    /// memory for what happened and not for how often it was to be written.
    pub fn give_way_to(&mut self, newer: &Self) {
        let minutes: BTreeSet<(i64, i64)> =
            newer.minutes.iter().map(|row| (row.run, row.at)).collect();
        self.minutes.retain(|row| !minutes.contains(&(row.run, row.at)));
        let signals: BTreeSet<(i64, i64)> =
            newer.signals.iter().map(|row| (row.run, row.at)).collect();
        self.signals.retain(|row| !signals.contains(&(row.run, row.at)));
        let checks: BTreeSet<(i64, i64)> =
            newer.checks.iter().map(|row| (row.run, row.at)).collect();
        self.checks.retain(|row| !checks.contains(&(row.run, row.at)));
        let spans: BTreeSet<(i64, i64)> = newer.spans.iter().map(|row| (row.run, row.n)).collect();
        self.spans.retain(|row| !spans.contains(&(row.run, row.n)));
        let runs: BTreeSet<i64> = newer.runs.iter().map(|row| row.run).collect();
        self.runs.retain(|row| !runs.contains(&row.run));
    }
}

/// What is known of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementRow {
    /// As in the client's error.
    pub id: u32,
    /// When.
    pub at: At,
    /// The cluster.
    pub cluster: String,
    /// The app as metrics show it.
    pub app: String,
    /// What led to it, as JSON.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_newer_writes_have_is_not_kept_twice_and_nothing_else_goes() {
        let minute = |at, asked| MinuteRow {
            run: 1,
            at,
            counts: Counts { asked, ..Counts::default() },
            ..MinuteRow::default()
        };
        let event = |n| Event { n, ..Event::default() };
        let mut old = Writes {
            minutes: vec![minute(0, 5), minute(60, 1)],
            events: vec![event(0)],
            ..Writes::default()
        };
        let newer =
            Writes { minutes: vec![minute(60, 2)], events: vec![event(1)], ..Writes::default() };
        old.give_way_to(&newer);
        assert_eq!(old.minutes, [minute(0, 5)]);
        assert_eq!(old.events, [event(0)], "what happened once is in one of them");
    }
}
