//! Signals other than the lag, and the server whose statements take turns.

use std::collections::BTreeMap;
use std::time::Duration;

use admission::{InFlightPacing, OnNoData, SignalConfig, SignalKey};
use serde::Deserialize;

use super::compile::{Faults, amount, span, windows};
use super::lag::NoData;
use super::raw::{self, Span};
use super::{Amount, App, Pace, Window};

/// A server with so many statements at work at a time; the others wait for their turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Statements at work at a time.
    pub slots: Amount,
    /// The mean time that a statement is at work, unless its app says another as its `latency`: any
    /// time between half of it and half as much again, each as likely.
    pub per_statement: Duration,
}

/// A signal other than the lag.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalPlan {
    /// What it is called.
    pub name: String,
    /// What it measures.
    pub kind: SignalKind,
    /// What its value must stay below.
    pub threshold: f64,
    /// Every value is multiplied by a number between 1 − noise and 1 + noise.
    pub noise: f64,
    /// When it gives no values.
    pub silent: Vec<Window>,
    /// A value older than this is not used.
    pub stale_after: Duration,
    /// What holds without a value.
    pub on_no_data: OnNoData,
}

/// What a signal measures.
#[derive(Debug, Clone, PartialEq)]
pub enum SignalKind {
    /// A percentile of an app's latencies at the server.
    Latency {
        /// Whose.
        app: String,
        /// Which, from 0 to 1.
        percentile: f64,
        /// Over what time.
        window: Duration,
    },
    /// Statements at the server, and the one that asks.
    ThreadsRunning,
}

impl SignalPlan {
    /// What the controller is told.
    #[must_use]
    pub(crate) fn config(&self, key: SignalKey, pace: Pace) -> SignalConfig {
        let pacing = match self.kind {
            SignalKind::Latency { window, percentile, .. } => {
                InFlightPacing { memory: window, percentile: Some(percentile) }
            }
            SignalKind::ThreadsRunning => InFlightPacing::default(),
        };
        let in_flight = match pace {
            Pace::Adaptive => Some(pacing),
            Pace::Binary => None,
        };
        SignalConfig {
            stale_after: self.stale_after,
            on_no_data: self.on_no_data,
            in_flight,
            ..SignalConfig::at_threshold(key, self.threshold)
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSignal {
    latency: Option<RawLatency>,
    threshold: Level,
    #[serde(default)]
    noise: f64,
    #[serde(default)]
    silent: Vec<(Span, Span)>,
    stale_after: Option<Span>,
    on_no_data: Option<NoData>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLatency {
    app: String,
    statements: Option<Vec<String>>,
    percentile: Option<f64>,
    window: Option<Span>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawService {
    slots: raw::Amount,
    per_statement: Span,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Level {
    Number(f64),
    Time(Span),
}

/// A signal of statements that nobody issues would never have a value.
fn has_statements(app: &App, classes: &[String], path: &str, faults: &mut Faults) {
    let of_app = if app.rows.max == 0 { "read" } else { "write" };
    if !classes.iter().any(|class| class == of_app) {
        faults.push(format!("{path}: {of_app} is not among them, and {} has no others", app.name));
    }
}

/// As in the product's file.
const PERCENTILE_DEFAULT: f64 = 0.99;
const WINDOW_DEFAULT: Duration = Duration::from_secs(5);
const STALE_AFTER_DEFAULT: Duration = Duration::from_secs(3);

/// A gate is a set of at most so many.
const SIGNALS_MAX: usize = 31;

pub(super) fn service(raw: RawService, faults: &mut Faults) -> Service {
    let slots = amount(raw.slots, "primary.service.slots", faults);
    let lowest = match &slots {
        Amount::Steps(steps) => steps.iter().map(|(_, slots)| *slots).fold(f64::MAX, f64::min),
        Amount::Sine { min, .. } => *min,
    };
    if lowest < 1.0 {
        faults.push("primary.service.slots: at least 1 at any time".to_owned());
    }
    let per_statement = raw.per_statement;
    let path = "primary.service.per_statement";
    Service { slots, per_statement: span(Some(per_statement), per_statement.0, path, faults) }
}

pub(super) fn compile(
    raw: BTreeMap<String, RawSignal>,
    apps: &[App],
    faults: &mut Faults,
) -> Vec<SignalPlan> {
    if raw.len() > SIGNALS_MAX {
        faults.push(format!("signals: at most {SIGNALS_MAX}"));
    }
    raw.into_iter().map(|(name, raw)| signal(name, raw, apps, faults)).collect()
}

fn signal(name: String, raw: RawSignal, apps: &[App], faults: &mut Faults) -> SignalPlan {
    let path = format!("signals.{name}");
    let kind = match (name.as_str(), raw.latency) {
        ("lag" | "none", _) => {
            faults.push(format!("{path}: the lag is not one of these, and none is no signal"));
            SignalKind::ThreadsRunning
        }
        ("threads_running", None) => SignalKind::ThreadsRunning,
        (_, Some(RawLatency { app, statements, percentile, window })) => {
            let percentile = percentile.unwrap_or(PERCENTILE_DEFAULT);
            let known = apps.iter().find(|known| known.name == app);
            if known.is_none() || !(0.0..1.0).contains(&percentile) {
                faults.push(format!("{path}.latency: an app, and a percentile from 0 to 1"));
            }
            if let (Some(known), Some(statements)) = (known, statements) {
                has_statements(known, &statements, &format!("{path}.latency.statements"), faults);
            }
            let window = span(window, WINDOW_DEFAULT, &format!("{path}.latency.window"), faults);
            SignalKind::Latency { app, percentile, window }
        }
        (_, None) => {
            faults.push(format!("{path}: `latency` is missing, unless it is threads_running"));
            SignalKind::ThreadsRunning
        }
    };
    let threshold = match (&kind, raw.threshold) {
        (SignalKind::Latency { .. }, Level::Time(time)) => time.0.as_secs_f64(),
        (SignalKind::ThreadsRunning, Level::Number(number)) => number,
        (SignalKind::Latency { .. }, Level::Number(_))
        | (SignalKind::ThreadsRunning, Level::Time(_)) => {
            faults.push(format!("{path}.threshold: a duration for a latency, else a number"));
            0.0
        }
    };
    let without_data = match kind {
        SignalKind::Latency { .. } => OnNoData::Open,
        SignalKind::ThreadsRunning => OnNoData::Closed,
    };
    SignalPlan {
        threshold,
        noise: raw.noise,
        silent: windows(&raw.silent, &format!("{path}.silent"), faults),
        stale_after: span(
            raw.stale_after,
            STALE_AFTER_DEFAULT,
            &format!("{path}.stale_after"),
            faults,
        ),
        on_no_data: raw.on_no_data.map_or(without_data, |NoData(word)| word),
        kind,
        name,
    }
}
