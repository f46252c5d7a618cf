//! The limit of one signal. [`super`] has the law.

use std::time::Duration;

use crate::{GateKey, InFlightPacing, MonoTime, OnNoData, SignalConfig};

/// Over which values are averaged: a few probes.
const SMOOTHING: f64 = 1.0;

/// A limit that nobody knows anything of yet.
const LIMIT_FIRST: f64 = 4.0;

/// No limit is larger: so many may wait in a cluster by default.
const LIMIT_MAX: f64 = 10_000.0;

/// A limit that nobody wanted for so long was not in use; it halves each such time.
const UNUSED_AFTER: Duration = Duration::from_secs(10);

/// Somebody who was held back within this time wants more.
const WANTED_WITHIN: Duration = Duration::from_secs(1);

/// Of the times that places are held, the last dozen count.
const SERVICE_NEWEST: f64 = 0.08;

/// A statement that ran for longer was not the rule, in seconds.
const SERVICE_MAX: f64 = 30.0;

/// How hard the limit falls.
const FALLS: f64 = 1.0;

/// The part of the threshold that the aim stays below it, at least and at most, and how many mean
/// deviations.
const MARGIN_MIN: f64 = 0.1;
const MARGIN_MAX: f64 = 0.5;
const MARGIN_DEVIATIONS: f64 = 2.0;

/// A gap between values is taken for no longer than this, in seconds.
const GAP_MAX: f64 = 1.0;

#[derive(Debug)]
pub(super) struct Limit {
    pacing: InFlightPacing,
    threshold: f64,
    stale_after: Duration,
    on_no_data: OnNoData,
    limit: f64,
    /// Up to here it doubles: it held before the last excess.
    held_before: f64,
    excess: Excess,
    values: Option<Values>,
    /// Seconds for which a place is held.
    service: f64,
    /// When somebody was last held back by it.
    wanted_at: Option<MonoTime>,
    /// The most in flight since `used_since`.
    used: f64,
    used_since: MonoTime,
    gates: Vec<GateKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Excess {
    No,
    Yes,
}

#[derive(Debug, Clone, Copy)]
struct Values {
    at: MonoTime,
    mean: f64,
    deviation: f64,
}

impl Limit {
    pub(super) fn new(now: MonoTime) -> Self {
        Self {
            pacing: InFlightPacing::default(),
            threshold: 0.0,
            stale_after: Duration::ZERO,
            on_no_data: OnNoData::Closed,
            limit: LIMIT_FIRST,
            held_before: LIMIT_MAX,
            excess: Excess::No,
            values: None,
            service: 0.0,
            wanted_at: None,
            used: 0.0,
            used_since: now,
            gates: Vec::new(),
        }
    }

    pub(super) fn configure(
        &mut self,
        pacing: InFlightPacing,
        config: &SignalConfig,
        gates: Vec<GateKey>,
    ) {
        self.pacing = pacing;
        self.threshold = config.close_at;
        self.stale_after = config.stale_after;
        self.on_no_data = config.on_no_data;
        self.gates = gates;
    }

    /// The gates that have the signal.
    pub(super) fn gates(&self) -> &[GateKey] {
        &self.gates
    }

    /// Seconds for which a place is held.
    pub(super) fn service(&self) -> f64 {
        self.service
    }

    /// Statements that may be in flight, at least one; `None`: as many as come.
    pub(super) fn in_force(&self, now: MonoTime) -> Option<f64> {
        let fresh = |values: &Values| now.saturating_since(values.at) <= self.stale_after;
        match (self.values.as_ref().is_some_and(fresh), self.on_no_data) {
            (false, OnNoData::Open) => None,
            (true, OnNoData::Open) | (_, OnNoData::Closed | OnNoData::HoldLast(_)) => {
                Some(self.limit)
            }
        }
    }

    /// Somebody was held back by it.
    pub(super) fn want(&mut self, now: MonoTime) {
        self.wanted_at = Some(now);
    }

    /// So many are in flight.
    pub(super) fn note_used(&mut self, in_flight: f64) {
        self.used = self.used.max(in_flight);
    }

    /// A statement has held its place for so long.
    pub(super) fn note_held(&mut self, held: Duration) {
        let held = held.as_secs_f64().min(SERVICE_MAX);
        self.service += SERVICE_NEWEST * (held - self.service);
    }

    pub(super) fn handle_value(&mut self, now: MonoTime, value: f64) {
        let Some(last) = self.values.filter(|_| value.is_finite()) else {
            if value.is_finite() {
                self.values = Some(Values { at: now, mean: value, deviation: 0.0 });
            }
            return;
        };
        let passed = now.saturating_since(last.at).as_secs_f64().min(GAP_MAX);
        let part = passed / (SMOOTHING + passed);
        let off = value - last.mean;
        let values = Values {
            at: now,
            mean: last.mean + part * off,
            deviation: last.deviation + part * (off.abs() - last.deviation),
        };
        self.values = Some(values);
        self.steer(now, &values, passed);
        self.forget_unused(now);
    }

    fn steer(&mut self, now: MonoTime, values: &Values, passed: f64) {
        let settling = self.pacing.memory.as_secs_f64() + SMOOTHING + self.service;
        let error = (1.0 - values.mean / self.aim(values)).clamp(-2.0, 1.0);
        if error < 0.0 {
            if self.excess == Excess::No {
                self.held_before = self.limit;
            }
            self.excess = Excess::Yes;
            self.limit *= (FALLS * error * passed / settling).exp();
        } else {
            self.excess = Excess::No;
            let wanted = self.wanted_at.is_some_and(|at| now.saturating_since(at) <= WANTED_WITHIN);
            if wanted {
                let growth =
                    if self.limit < self.held_before { self.limit } else { self.limit.sqrt() };
                self.limit += growth * error * passed / settling;
            }
        }
        self.limit = self.limit.clamp(1.0, LIMIT_MAX);
    }

    /// What the signal is steered to.
    fn aim(&self, values: &Values) -> f64 {
        let least = self.threshold * (1.0 - MARGIN_MAX);
        let margin = (MARGIN_DEVIATIONS * values.deviation).max(self.threshold * MARGIN_MIN);
        (self.threshold - margin).max(least).max(f64::MIN_POSITIVE)
    }

    fn forget_unused(&mut self, now: MonoTime) {
        if now.saturating_since(self.used_since) < UNUSED_AFTER {
            return;
        }
        let wanted = self.wanted_at.is_some_and(|at| at >= self.used_since);
        if !wanted {
            self.limit = (self.limit / 2.0).max(self.used * 2.0).max(LIMIT_FIRST).min(self.limit);
        }
        self.used = 0.0;
        self.used_since = now;
    }
}
