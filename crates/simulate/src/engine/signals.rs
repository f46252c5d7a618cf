//! The signals other than the lag, measured as the proxy measures them.

use std::time::Duration;

use admission::{
    GateConfig, GateKey, LatencyCounts, LatencyWindow, MonoTime, Sample, SignalConfig, SignalKey,
};
use rand::RngExt as _;

use super::agenda::Event;
use super::rules::gate_key;
use super::{LAG, World};
use crate::scenario::{SignalKind, SignalPlan};
use crate::{Effect, Gate, Scenario};

/// How often they are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// The first key behind that of the lag.
const FIRST_KEY: u32 = 2;

/// What is measured for one signal.
#[derive(Debug)]
pub(super) struct Meter {
    /// Of a latency: whose, by its place among the apps.
    app: Option<usize>,
    counts: LatencyCounts,
    window: LatencyWindow,
}

impl Meter {
    pub(super) fn all_of(scenario: &Scenario) -> Vec<Self> {
        let meter = |plan: &SignalPlan| match &plan.kind {
            SignalKind::Latency { app, percentile, window } => Self {
                app: scenario.apps.iter().position(|known| known.name == *app),
                counts: LatencyCounts::default(),
                window: LatencyWindow::new(*window, *percentile),
            },
            SignalKind::ThreadsRunning => Self {
                app: None,
                counts: LatencyCounts::default(),
                window: LatencyWindow::new(LOOK_INTERVAL, 0.0),
            },
        };
        scenario.signals.iter().map(meter).collect()
    }
}

fn key(place: usize) -> SignalKey {
    SignalKey(u32::try_from(place).unwrap_or(u32::MAX).saturating_add(FIRST_KEY))
}

pub(super) fn configs(scenario: &Scenario) -> impl Iterator<Item = SignalConfig> + '_ {
    let plans = scenario.signals.iter().enumerate();
    plans.map(|(place, plan)| plan.config(key(place), scenario.pacing))
}

/// The gates that only some of the apps have.
pub(super) fn gates(scenario: &Scenario) -> Vec<GateConfig> {
    let mut gates: Vec<GateConfig> = Vec::new();
    for app in &scenario.apps {
        let Effect::Asks { gate: gate @ Gate::Signals(set), .. } = app.rule.effect else {
            continue;
        };
        let lag = set.has_lag().then_some(LAG);
        let others = (0..scenario.signals.len()).filter(|place| set.has(*place)).map(key);
        let gate: GateKey = gate_key(gate);
        if !gates.iter().any(|known| known.key == gate) {
            gates.push(GateConfig { key: gate, signals: lag.into_iter().chain(others).collect() });
        }
    }
    gates
}

impl World<'_> {
    pub(super) fn begin_signals(&mut self) {
        if !self.scenario.signals.is_empty() {
            self.agenda.add(MonoTime::ZERO, Event::LookAtSignals);
        }
    }

    /// A statement of this app has come to the server.
    pub(super) fn note_begun(&mut self, proxy: usize, app: usize) {
        self.running = self.running.saturating_add(1);
        for meter in self.meters_of(proxy, app) {
            meter.counts.begun = meter.counts.begun.saturating_add(1);
        }
    }

    /// It has ended there.
    pub(super) fn note_ended(&mut self, proxy: usize, app: usize, latency: Duration) {
        self.running = self.running.saturating_sub(1);
        for meter in self.meters_of(proxy, app) {
            meter.counts.ended = meter.counts.ended.saturating_add(1);
            meter.counts.count(latency);
        }
    }

    /// What a Sluice measures of an app.
    fn meters_of(&mut self, proxy: usize, app: usize) -> impl Iterator<Item = &mut Meter> {
        let meters = self.proxies.get_mut(proxy).into_iter().flat_map(|proxy| &mut proxy.meters);
        meters.filter(move |meter| meter.app == Some(app))
    }

    pub(super) fn look_at_signals(&mut self) {
        self.agenda.add(self.now.saturating_add(LOOK_INTERVAL), Event::LookAtSignals);
        for proxy in 0..self.proxies.len() {
            self.look_at_signals_of(proxy);
        }
    }

    fn look_at_signals_of(&mut self, index: usize) {
        let now = self.now;
        let scenario = self.scenario;
        for (place, plan) in scenario.signals.iter().enumerate() {
            let Some(proxy) = self.proxies.get_mut(index) else { return };
            let Some(meter) = proxy.meters.get_mut(place) else { continue };
            let value = match plan.kind {
                SignalKind::Latency { .. } => meter.window.look(now, &meter.counts),
                SignalKind::ThreadsRunning => Some(f64::from(self.running) + 1.0),
            };
            let noise = 1.0 + self.service.random_range(-1.0..=1.0) * plan.noise;
            let silent = plan.silent.iter().any(|window| window.contains(now));
            let sample = match value.filter(|_| !silent) {
                Some(value) => Sample::Value(value * noise),
                None => Sample::Failed,
            };
            if let (SignalKind::Latency { .. }, Sample::Value(_)) = (&plan.kind, sample) {
                proxy.controller.handle_latencies(now, key(place), meter.window.recent());
            }
            proxy.controller.handle_sample(now, key(place), sample);
            self.settle(index);
        }
    }
}
