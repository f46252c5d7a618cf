//! The limit of one signal. [`super`] has the law.

use std::time::Duration;

use super::demand::{Demand, Growth};
use super::slow::TooSlow;
use crate::{GateKey, InFlightPacing, LatencyRecent, MonoTime, OnNoData, SignalConfig};

/// Over which values are averaged: a few probes.
pub(super) const SMOOTHING: f64 = 1.0;

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

/// Below one a limit is the part of the time in which one is in flight. It is no smaller, or nobody would
/// learn that more may.
const LIMIT_MIN: f64 = 0.02;

/// No rest between two statements is longer, in seconds.
const REST_MAX: f64 = 30.0;

/// An excess is taken for no larger: of a value, and of the part that is too slow.
const ERROR_MIN: f64 = -2.0;
const SLOW_ERROR_MIN: f64 = -4.0;

/// How far a limit of one and more moves by a step of one: in its roots, and in statements at least.
/// [`super`] has the reason.
const ROOT_STEP: f64 = 0.5;
const STEP_MIN: f64 = 1.0;

/// The part of a percentile's window that statements count for.
const REMEMBERED: f64 = 0.5;

/// How hard the limit falls.
const FALLS: f64 = 1.0;

/// The part of the threshold that the aim stays below it, at least and at most, and how many mean
/// deviations.
const MARGIN_MIN: f64 = 0.1;
const MARGIN_MAX: f64 = 0.5;
const MARGIN_DEVIATIONS: f64 = 2.0;

/// A gap between values is taken for no longer than this, in seconds.
pub(super) const GAP_MAX: f64 = 1.0;

#[derive(Debug)]
pub(super) struct Limit {
    /// Since when there is the signal.
    begun: MonoTime,
    pacing: InFlightPacing,
    threshold: f64,
    stale_after: Duration,
    on_no_data: OnNoData,
    limit: f64,
    /// Up to here it doubles: it held before the last excess.
    held_before: f64,
    excess: Excess,
    values: Option<Values>,
    too_slow: TooSlow,
    demand: Demand,
    /// When the last statement gave its place back, and for how many seconds it had held it.
    last_held: Option<(MonoTime, f64)>,
    /// Seconds for which a place is held.
    service: f64,
    /// When somebody was last seen in flight.
    used_at: Option<MonoTime>,
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
            begun: now,
            pacing: InFlightPacing::default(),
            threshold: 0.0,
            stale_after: Duration::ZERO,
            on_no_data: OnNoData::Closed,
            limit: LIMIT_FIRST,
            held_before: LIMIT_MAX,
            excess: Excess::No,
            values: None,
            too_slow: TooSlow::new(now),
            demand: Demand::new(now),
            last_held: None,
            service: 0.0,
            used_at: None,
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

    /// Statements that may be in flight; below one, the part of the time in which one may be. `None`:
    /// as many as come.
    pub(super) fn in_force(&self, now: MonoTime) -> Option<f64> {
        // Before the first value nobody knows whether the app is idle, and all who wait would rush in.
        let known_at = self.values.as_ref().map_or(self.begun, |values| values.at);
        let is_fresh = now.saturating_since(known_at) <= self.stale_after;
        match (is_fresh, self.on_no_data) {
            (false, OnNoData::Open) => None,
            (true, OnNoData::Open) | (_, OnNoData::Closed | OnNoData::HoldLast(_)) => {
                Some(self.limit)
            }
        }
    }

    /// Until when it is in force without a value.
    pub(super) fn begins_until(&self) -> Option<MonoTime> {
        let until = self.begun.saturating_add(self.stale_after);
        let ends = self.values.is_none() && self.on_no_data == OnNoData::Open;
        ends.then(|| until.saturating_add(Duration::from_nanos(1)))
    }

    /// Somebody was held back by it.
    pub(super) fn want(&mut self, now: MonoTime) {
        self.wanted_at = Some(now);
    }

    /// So many are in flight.
    pub(super) fn note_used(&mut self, now: MonoTime, in_flight: f64) {
        self.used = self.used.max(in_flight);
        if in_flight > 0.0 {
            self.used_at = Some(now);
        }
    }

    /// A statement has held its place for so long. Of a limit below one, the rest begins.
    pub(super) fn note_held(&mut self, now: MonoTime, held: Duration) {
        let held = held.as_secs_f64().min(SERVICE_MAX);
        self.service += SERVICE_NEWEST * (held - self.service);
        self.last_held = Some((now, held));
        self.used_at = Some(now);
    }

    /// Until when nothing passes, if the limit is in force.
    pub(super) fn rests_until(&self) -> MonoTime {
        match self.last_held {
            Some((ended, held)) if self.limit < 1.0 => {
                let rest = held * (1.0 / self.limit - 1.0);
                ended.saturating_add(Duration::from_secs_f64(rest.min(REST_MAX)))
            }
            Some(_) | None => MonoTime::ZERO,
        }
    }

    /// A percentile has been told this since its last value.
    pub(super) fn handle_latencies(&mut self, now: MonoTime, recent: &LatencyRecent) {
        let Some(percentile) = self.pacing.percentile else { return };
        let (all, aim) = (recent.all(), self.threshold * (1.0 - MARGIN_MIN));
        let told = (all, recent.over(aim));
        self.too_slow.add(now, told, (self.remembers(), 1.0 - percentile));
        // One that waits for reports is not to count for more of the app than it is.
        if let Some(growth) = self.demand.add(now, (all, recent.took(aim))) {
            self.give_way(now, growth);
        }
    }

    /// The app that is protected has grown.
    fn give_way(&mut self, now: MonoTime, growth: Growth) {
        if self.was_used(now) {
            self.limit -= growth.in_flight.min(self.limit * growth.part);
            self.limit = self.limit.max(LIMIT_MIN);
        }
    }

    /// Whether somebody was in flight within the window: who was not there for so long is not to blame.
    fn was_used(&self, now: MonoTime) -> bool {
        self.used_at.is_some_and(|at| now.saturating_since(at) <= self.pacing.memory)
    }

    /// For how long statements count that told their latencies, at least: a part of the window, so
    /// that the limit has been put right before the window is over its threshold.
    fn remembers(&self) -> Duration {
        self.pacing.memory.mul_f64(REMEMBERED).max(Duration::from_secs_f64(SMOOTHING))
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
        match self.pacing.percentile {
            Some(percentile) => self.steer_by_the_slow(now, percentile, passed),
            None => self.steer(now, &values, passed),
        }
        self.forget_unused(now);
    }

    fn steer(&mut self, now: MonoTime, values: &Values, passed: f64) {
        let settling = self.pacing.memory.as_secs_f64() + SMOOTHING + self.service;
        let error = (1.0 - values.mean / self.aim(values)).clamp(ERROR_MIN, 1.0);
        if error < 0.0 {
            if self.excess == Excess::No {
                self.held_before = self.limit;
            }
            self.excess = Excess::Yes;
            self.limit *= (FALLS * error * passed / settling).exp();
        } else {
            self.excess = Excess::No;
            if self.is_wanted(now) {
                let growth =
                    if self.limit < self.held_before { self.limit } else { self.limit.sqrt() };
                self.limit += growth * error * passed / settling;
            }
        }
        self.limit = self.limit.clamp(1.0, LIMIT_MAX);
    }

    /// The law of a percentile: by the part of the latest statements that were over the aim.
    fn steer_by_the_slow(&mut self, now: MonoTime, percentile: f64, passed: f64) {
        let Some(part) = self.too_slow.part() else { return };
        let error = (1.0 - part / (1.0 - percentile)).clamp(SLOW_ERROR_MIN, 1.0);
        let may_change =
            if error < 0.0 { self.was_used(now) } else { self.limit < 1.0 || self.is_wanted(now) };
        if may_change {
            let memory = self.remembers().as_secs_f64().max(self.too_slow.memory());
            let step = error * passed / (memory + self.service);
            self.limit = moved(self.limit, step);
        }
        self.limit = self.limit.clamp(LIMIT_MIN, LIMIT_MAX);
    }

    /// What the signal is steered to.
    fn aim(&self, values: &Values) -> f64 {
        let least = self.threshold * (1.0 - MARGIN_MAX);
        let margin = (MARGIN_DEVIATIONS * values.deviation).max(self.threshold * MARGIN_MIN);
        (self.threshold - margin).max(least).max(f64::MIN_POSITIVE)
    }

    fn is_wanted(&self, now: MonoTime) -> bool {
        self.wanted_at.is_some_and(|at| now.saturating_since(at) <= WANTED_WITHIN)
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

/// The limit behind such a step: a part of the time by factors, a number by its root.
fn moved(limit: f64, step: f64) -> f64 {
    let by_factors = limit * step.exp();
    let by_root = limit + (ROOT_STEP * limit.sqrt()).max(STEP_MIN) * step;
    match (limit < 1.0, step < 0.0) {
        (true, _) => by_factors,
        (false, true) => by_root.max(by_factors),
        (false, false) => by_root,
    }
}
