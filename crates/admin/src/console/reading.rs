//! One look at a cluster, once a second, cheap however many rules, apps and waiters there are.

use std::collections::VecDeque;
use std::sync::Arc;

use admission::SignalView;
use proxy::cluster::Cluster;
use proxy::telemetry::{Pulse, Telemetry, quantile};
use serde::Serialize;

/// Signals that are plotted; a cluster with more of them shows those first in its file.
const SIGNALS_MAX: usize = 8;

/// Waits that ended within so many looks make a quantile.
const WAITS_OVER: usize = 10;

/// What is plotted of a cluster, at one time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reading {
    /// Seconds since the process started: they never jump.
    pub(super) at_s: f64,
    pub(super) signals: Vec<SignalReading>,
    /// What the default gate lets through in a second while statements wait.
    pub(super) pace: Option<f64>,
    /// Rows a second that the slowest replica applies when it is busy.
    pub(super) applied: Option<f64>,
    /// Rows a second that gated statements have changed.
    pub(super) written: Option<f64>,
    /// Statements a second that the server answered.
    pub(super) served: Option<f64>,
    /// Statements a second that were refused.
    pub(super) refused: Option<f64>,
    pub(super) waiting: u64,
    pub(super) in_flight: u64,
    /// How long who waits longest has, in seconds.
    pub(super) oldest: Option<f64>,
    /// Of the waits that ended lately, in seconds.
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SignalReading {
    pub(super) name: Arc<str>,
    pub(super) value: Option<f64>,
    pub(super) threshold: f64,
    pub(super) open: bool,
}

/// What has to be remembered from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Of the last looks, the newest last.
    pulses: VecDeque<Pulse>,
    /// When the last was, and how many rows had been changed.
    last: Option<(f64, u64)>,
}

impl Looks {
    /// Looks at `cluster`.
    pub(super) fn look(&mut self, cluster: &Arc<Cluster>, telemetry: &Telemetry) -> Reading {
        let policy = cluster.policy();
        let gate = policy.default_gate;
        let (views, mut reading, rows) = cluster.control(|controller, now| {
            let views: Vec<SignalView> = controller.signals(now).take(SIGNALS_MAX).collect();
            let oldest = controller.waiters_after(None).next();
            let oldest = oldest.map(|oldest| now.saturating_since(oldest.arrived).as_secs_f64());
            let reading = Reading {
                at_s: now.saturating_since(admission::MonoTime::ZERO).as_secs_f64(),
                pace: controller.release_per_s(gate, now),
                applied: controller.applied_per_s(),
                waiting: u64::try_from(controller.waiting_len()).unwrap_or(u64::MAX),
                in_flight: controller.in_flight(),
                oldest,
                ..Reading::default()
            };
            (views, reading, controller.work().affected_rows)
        });
        reading.signals = views.iter().filter_map(|view| signal(&policy, view)).collect();
        self.count(&mut reading, telemetry.pulse(&cluster.name), rows);
        reading
    }

    /// What has come since the look before.
    fn count(&mut self, reading: &mut Reading, pulse: Pulse, rows: u64) {
        let last = self.last.replace((reading.at_s, rows));
        if let (Some((at_s, before)), Some(known)) = (last, self.pulses.back()) {
            let seconds = (reading.at_s - at_s).max(0.001);
            let rate = |now: u64, before: u64| Some(float(now.saturating_sub(before)) / seconds);
            reading.written = rate(rows, before);
            reading.served = rate(pulse.served, known.served);
            reading.refused = rate(pulse.refused, known.refused);
        }
        if let Some(first) = self.pulses.front() {
            let waits = pulse.waits.iter().zip(&first.waits);
            let waits: Vec<u64> = waits.map(|(now, then)| now.saturating_sub(*then)).collect();
            reading.p50 = quantile(&waits, 0.5);
            reading.p99 = quantile(&waits, 0.99);
        }
        self.pulses.push_back(pulse);
        if self.pulses.len() > WAITS_OVER {
            self.pulses.pop_front();
        }
    }
}

fn signal(policy: &policy::ClusterPolicy, view: &SignalView) -> Option<SignalReading> {
    let name = Arc::clone(&policy.signal(view.key)?.name);
    let SignalView { value, threshold, lets_through: open, .. } = *view;
    Some(SignalReading { name, value, threshold, open })
}

fn float(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Readings as columns, which is what plots take.
#[derive(Debug, Default, Serialize)]
pub(super) struct Columns {
    at_s: Vec<f64>,
    pace: Vec<Option<f64>>,
    applied: Vec<Option<f64>>,
    written: Vec<Option<f64>>,
    served: Vec<Option<f64>>,
    refused: Vec<Option<f64>>,
    waiting: Vec<u64>,
    in_flight: Vec<u64>,
    oldest: Vec<Option<f64>>,
    p50: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    signals: Vec<SignalColumns>,
}

#[derive(Debug, Serialize)]
struct SignalColumns {
    signal: String,
    value: Vec<Option<f64>>,
    threshold: Vec<Option<f64>>,
    /// None: it was not there.
    open: Vec<Option<bool>>,
}

impl Columns {
    /// Of `readings`, oldest first, with the signals that the newest has.
    pub(super) fn of<'r>(readings: impl Iterator<Item = &'r Reading>) -> Self {
        let readings: Vec<&Reading> = readings.collect();
        let known = readings.last().map(|last| last.signals.as_slice()).unwrap_or_default();
        let signals = known.iter().map(|signal| signal_columns(&signal.name, &readings)).collect();
        let mut columns = Self { signals, ..Self::default() };
        for reading in readings {
            columns.at_s.push(round(reading.at_s));
            columns.pace.push(reading.pace.map(round));
            columns.applied.push(reading.applied.map(round));
            columns.written.push(reading.written.map(round));
            columns.served.push(reading.served.map(round));
            columns.refused.push(reading.refused.map(round));
            columns.waiting.push(reading.waiting);
            columns.in_flight.push(reading.in_flight);
            columns.oldest.push(reading.oldest.map(round));
            columns.p50.push(reading.p50.map(round));
            columns.p99.push(reading.p99.map(round));
        }
        columns
    }
}

fn signal_columns(name: &Arc<str>, readings: &[&Reading]) -> SignalColumns {
    let mut columns = SignalColumns {
        signal: name.to_string(),
        value: Vec::with_capacity(readings.len()),
        threshold: Vec::with_capacity(readings.len()),
        open: Vec::with_capacity(readings.len()),
    };
    for reading in readings {
        let signal = reading.signals.iter().find(|signal| signal.name == *name);
        columns.value.push(signal.and_then(|signal| signal.value).map(round));
        columns.threshold.push(signal.map(|signal| signal.threshold));
        columns.open.push(signal.map(|signal| signal.open));
    }
    columns
}

/// To the thousandth.
pub(super) fn round(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_that_passed_and_quantiles_of_the_last_looks() {
        let mut looks = Looks::default();
        let mut at = |at_s, served, waits: [u64; 3], rows| {
            let mut reading = Reading { at_s, ..Reading::default() };
            looks.count(&mut reading, Pulse { served, refused: 0, waits: waits.into() }, rows);
            reading
        };
        let first = at(1.0, 100, [0, 5, 0], 7);
        assert_eq!((first.served, first.p50), (None, None), "it began before we looked");
        let second = at(3.0, 140, [0, 5, 2], 27);
        assert_eq!(
            (second.served, second.written, second.refused),
            (Some(20.0), Some(10.0), Some(0.0))
        );
        assert!(second.p50.is_some_and(|p50| p50 > 0.001 && p50 < 0.0015), "{second:?}");
        for second in 4..20 {
            at(f64::from(second), 140, [0, 5, 2], 27);
        }
        let quiet = at(21.0, 140, [0, 5, 2], 27);
        assert_eq!((quiet.p99, quiet.served), (None, Some(0.0)));
    }
}
