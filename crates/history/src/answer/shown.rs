//! The answer, as programs read it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{At, Counts, Event, Values};

/// The history of a time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// When it was asked.
    pub now: At,
    /// The begin of the time.
    pub since: At,
    /// Its end.
    pub until: At,
    /// The app, if one was asked for.
    pub app: Option<String>,
    /// What happened, in words, what matters most first.
    pub sentences: Vec<String>,
    /// What became of statements in all of the time, to whole minutes.
    pub total: Counts,
    /// How many were refused for which reason.
    pub refused_by: BTreeMap<String, u64>,
    /// What became of checks over HTTP.
    pub checks: Checks,
    /// When apps were held, in the order of their beginning.
    pub held: Vec<Held>,
    /// How long one part of the time is.
    pub part_s: i64,
    /// What became of statements in each part; those without any are left out.
    pub parts: Vec<Part>,
    /// What the signals were.
    pub signals: Vec<SignalPart>,
    /// The states of signals, servers and those who were starved.
    pub states: Vec<State>,
    /// Changes of rules, starts, clocks that were set.
    pub events: Vec<Event>,
    /// How many of these there are that the answer has no room for.
    pub left_out: LeftOut,
    /// Where this comes from.
    pub kept: Kept,
}

/// What became of checks over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Checks {
    /// How many came.
    pub asked: u64,
    /// How many were told to go on.
    pub passed: u64,
    /// How many were told not to.
    pub refused: u64,
    /// Of these, how many for which reason.
    pub refused_by: BTreeMap<String, u64>,
}

/// What an answer has no room for: a shorter time has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Intervals in which apps were held, shorter than those that are told.
    pub held: u64,
    /// States, earlier than those that are told.
    pub states: u64,
    /// Events, likewise.
    pub events: u64,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// When it begins.
    pub at: At,
    /// What became of statements.
    #[serde(flatten)]
    pub counts: Counts,
}

/// A signal in a part of the time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalPart {
    /// When that begins.
    pub at: At,
    /// The cluster.
    pub cluster: String,
    /// The signal.
    pub signal: String,
    /// What it was.
    #[serde(flatten)]
    pub values: Values,
}

/// An interval in which an app was held.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Held {
    /// The cluster.
    pub cluster: String,
    /// The app as metrics show it.
    pub app: String,
    /// The rule.
    pub rule: String,
    /// When it began.
    pub began: At,
    /// When it ended. None: it goes on.
    pub ended: Option<At>,
    /// How long it has lasted, by the monotonic clock.
    pub lasted_s: f64,
    /// Why: the reason that explains most.
    pub reason: String,
    /// What held it most often besides.
    pub besides: Option<String>,
    /// The budget behind the reason.
    pub budget: Option<String>,
    /// The guard behind it.
    pub guard: Option<String>,
    /// The limit of the rule behind it: `max_rate`, `max_in_flight` or `speed`.
    pub limit: Option<String>,
    /// The signal behind that, with its highest value in that time.
    pub signal: Option<String>,
    /// `s`, or nothing.
    pub unit: String,
    /// The highest value.
    pub highest: Option<f64>,
    /// What it is held against.
    pub threshold: Option<f64>,
    /// The server at which it was highest.
    pub server: Option<String>,
    /// For how long of that time the signal let nothing through.
    pub shut_s: f64,
    /// Statements that had to wait.
    pub delayed: u64,
    /// The longest of these waits.
    pub wait_max_s: f64,
    /// Statements that were refused.
    pub refused: u64,
    /// Who else wrote in these minutes, those with most rows first.
    pub meanwhile: Vec<Share>,
    /// Who made the rule, if it was made at runtime.
    pub author: Option<String>,
    /// Why the rule exists.
    pub because: String,
}

/// Who wrote.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Share {
    /// The app.
    pub app: String,
    /// The rows that it changed.
    pub rows: u64,
    /// Its part of all rows that came through Sluice, 0 to 1.
    pub share: f64,
}

/// A state of a signal, a server, or of somebody who is starved.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// `signal`, `replica`, `primary` or `starved`.
    pub kind: String,
    /// The cluster.
    pub cluster: String,
    /// The signal, server or app.
    pub subject: String,
    /// The state; of who is starved, the rule.
    pub state: String,
    /// When it began.
    pub began: At,
    /// When it ended. None: it goes on.
    pub ended: Option<At>,
    /// How long it has lasted.
    pub lasted_s: f64,
    /// The signal's highest value.
    pub highest: Option<f64>,
    /// What that is held against.
    pub threshold: Option<f64>,
    /// `s`, or nothing.
    pub unit: String,
    /// Where it was highest.
    pub server: Option<String>,
    /// What was wrong, or who passed meanwhile.
    pub text: String,
}

/// Where the history is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// Whether it is kept on disk.
    pub on_disk: bool,
    /// Since when there is anything.
    pub since: At,
    /// What is wrong with that.
    pub trouble: Option<String>,
    /// Times of which nothing was written here.
    pub gaps: Vec<Gap>,
}

/// A time of which nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gap {
    /// Its begin.
    pub began: At,
    /// Its end.
    pub ended: At,
    /// Whether the clock of a process was set, which ran all the time; else no Sluice ran here.
    pub clock_set: bool,
}
