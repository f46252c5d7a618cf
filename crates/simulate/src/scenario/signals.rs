//! Signals other than the lag, and the server whose statements take turns.

use std::time::Duration;

use admission::{InFlightPacing, OnNoData, SignalConfig, SignalKey};
use policy::reading::{Named, OneOrMany, Spanned};
use sql::Class;

use super::compile::{amount, time, windows};
use super::faults::Faults;
use super::lag::on_no_data;
use super::limits::{LATENCY, RUNNING_MAX, SIGNALS_MAX, SLOTS_MAX, STALE_AFTER, THRESHOLD, WINDOW};
use super::raw::{self, Level};
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

/// As in the product's file.
const PERCENTILE_DEFAULT: f64 = 0.99;

pub(super) fn service(raw: raw::Service, faults: &mut Faults) -> Service {
    let path = "primary.service.slots";
    let slots = raw.slots.map(|slots| amount(slots, path, faults));
    let slots = slots.unwrap_or_else(|| Amount::constant(1.0));
    let in_range = |slots: f64| (1.0..=SLOTS_MAX).contains(&slots);
    let good = match &slots {
        Amount::Steps(steps) => steps.iter().all(|(_, slots)| in_range(*slots)),
        Amount::Sine { min, max, .. } => in_range(*min) && in_range(*max),
    };
    faults.hold(good, path, &format!("must be from 1 to {SLOTS_MAX} at any time"));
    let path = "primary.service.per_statement";
    Service { slots, per_statement: faults.time(time(raw.per_statement), LATENCY, path) }
}

pub(super) fn compile(
    raw: Option<Named<raw::Signal>>,
    apps: &[App],
    faults: &mut Faults,
) -> Vec<SignalPlan> {
    let mut named = raw.map(|Named(named)| named).unwrap_or_default();
    let few = named.len() <= SIGNALS_MAX;
    faults.hold(few, "signals", &format!("must be at most {SIGNALS_MAX}"));
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    named.into_iter().map(|(name, raw)| signal(name, raw, apps, faults)).collect()
}

fn signal(
    name: String,
    Spanned { value: raw, place }: Spanned<raw::Signal>,
    apps: &[App],
    faults: &mut Faults,
) -> SignalPlan {
    let path = place.path;
    let at = |key: &str| format!("{path}.{key}");
    let kind = match (name.as_str(), raw.latency) {
        ("lag" | "none" | "", _) => {
            faults
                .add(&path, "must have a name of its own: the lag is there, and none is no signal");
            SignalKind::ThreadsRunning
        }
        ("threads_running", None) => SignalKind::ThreadsRunning,
        (_, Some(raw)) => latency(raw, apps, &at("latency"), faults),
        (_, None) => {
            faults.add(&path, "`latency` is missing, unless it is threads_running");
            SignalKind::ThreadsRunning
        }
    };
    let without_data = match kind {
        SignalKind::Latency { .. } => OnNoData::Open,
        SignalKind::ThreadsRunning => OnNoData::Closed,
    };
    let noise = raw.noise.unwrap_or_default();
    let silent = raw.silent.map(|raw::Pairs(silent)| silent).unwrap_or_default();
    SignalPlan {
        threshold: threshold(&kind, raw.threshold, &at("threshold"), faults),
        noise: faults.number(noise, (0.0, 1.0), &at("noise")),
        silent: windows(&silent, &at("silent"), faults),
        stale_after: faults.time(time(raw.stale_after), STALE_AFTER, &at("stale_after")),
        on_no_data: raw.on_no_data.map_or(without_data, on_no_data),
        kind,
        name,
    }
}

fn latency(raw: raw::Latency, apps: &[App], path: &str, faults: &mut Faults) -> SignalKind {
    let percentile = raw.percentile.unwrap_or(PERCENTILE_DEFAULT);
    let between = percentile > 0.0 && percentile < 1.0;
    let key = format!("{path}.percentile");
    faults.hold(between, &key, "must be between 0 and 1, like 0.99");
    let app = raw.app.unwrap_or_default();
    let known = apps.iter().find(|known| known.name == app);
    if known.is_none() && faults.has_read("apps") && !app.is_empty() {
        faults.add(&format!("{path}.app"), format!("there is no app {app:?}"));
    }
    if let Some(OneOrMany(classes)) = raw.statements {
        let path = format!("{path}.statements");
        faults.hold(!classes.is_empty(), &path, "names no class");
        let words = classes.iter().filter(|class| Class::parse(&class.value).is_none());
        for word in words.clone() {
            let known: Vec<&str> = Class::ALL.iter().map(|class| class.as_str()).collect();
            let message = format!("{:?} is no class; there are {}", word.value, known.join(", "));
            faults.add(&word.place.path, message);
        }
        // A signal of statements that nobody issues would never have a value.
        let issues = known.map(|app| if app.rows.max == 0 { Class::Read } else { Class::Write });
        let missing = issues.filter(|issues| {
            words.count() == 0 && !classes.iter().any(|class| class.value == issues.as_str())
        });
        if let Some(missing) = missing.filter(|_| !classes.is_empty()) {
            let missing = missing.as_str();
            faults.add(&path, format!("{missing} is not among them, and {app} has no others"));
        }
    }
    let window = faults.time(time(raw.window), WINDOW, &format!("{path}.window"));
    SignalKind::Latency { app, percentile, window }
}

fn threshold(kind: &SignalKind, said: Option<Level>, path: &str, faults: &mut Faults) -> f64 {
    match (kind, said) {
        (_, None) => 1.0,
        (SignalKind::Latency { .. }, Some(Level::Time(time))) => {
            faults.time(Some(time.0), THRESHOLD, path).as_secs_f64()
        }
        (SignalKind::ThreadsRunning, Some(Level::Number(number))) => {
            faults.number(number, (1.0, RUNNING_MAX), path)
        }
        (SignalKind::Latency { .. }, Some(Level::Number(_)))
        | (SignalKind::ThreadsRunning, Some(Level::Time(_))) => {
            faults.add(path, "must be a duration for a latency, like 20ms, else a number");
            1.0
        }
    }
}
