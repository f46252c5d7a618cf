//! What is counted while the scenario runs.

use std::collections::BTreeMap;
use std::time::Duration;

use admission::{MonoTime, Reason};

use super::servers::{Presence, Replica};
use super::shares::Fairness;
use super::told::Told;
use crate::report::{AppFigures, Distribution, Plot, Report};
use crate::{Scenario, TICK};

/// Everything that is counted, from the end of the warm-up on. The plot begins at the origin.
#[derive(Debug)]
pub(super) struct Measure {
    from: MonoTime,
    duration: Duration,
    threshold: Duration,
    demand: bool,
    /// One sample for each tick, in seconds.
    lags: Vec<f64>,
    samples: f64,
    over: f64,
    applied: f64,
    capacity: f64,
    apps: Vec<AppCounts>,
    /// Whether statements take turns at the server: then their latencies are worth a figure.
    latencies: bool,
    plot: Plot,
}

/// Who was let through sooner has not waited: a queue is handed on by tasks, which take their time.
const WAITED_MIN: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
struct AppCounts {
    admitted: f64,
    rows: f64,
    waited: f64,
    rejected: BTreeMap<Reason, f64>,
    observed: f64,
    /// In seconds.
    delays: Vec<f64>,
    /// From the first try on, in seconds.
    in_all: Vec<f64>,
    /// At the server, in seconds.
    latencies: Vec<f64>,
}

impl Measure {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let ticks = scenario.duration.as_nanos().checked_div(TICK.as_nanos()).unwrap_or(0);
        Self {
            from: MonoTime::ZERO.saturating_add(scenario.warmup),
            duration: scenario.duration,
            threshold: scenario.threshold,
            demand: false,
            lags: Vec::with_capacity(usize::try_from(ticks).unwrap_or(0).saturating_add(1)),
            samples: 0.0,
            over: 0.0,
            applied: 0.0,
            capacity: 0.0,
            apps: scenario.apps.iter().map(|_| AppCounts::default()).collect(),
            latencies: scenario.service.is_some(),
            plot: Plot::new(scenario.duration),
        }
    }

    /// Whether anybody wants to write in the tick that begins.
    pub(super) fn demand(&mut self, demand: bool) {
        self.demand = demand;
    }

    /// A tick is over. How many transactions and heartbeats were looked at.
    pub(super) fn tick(&mut self, now: MonoTime, replicas: &[Replica]) -> usize {
        let present = || replicas.iter().filter(|replica| replica.presence == Presence::Here);
        let (mut worst, mut is_over, mut scanned) = (Duration::ZERO, false, 0_usize);
        for replica in present() {
            let (lag, looked_at) = replica.look_at_lag(now);
            worst = worst.max(lag);
            is_over |= lag >= replica.threshold.unwrap_or(self.threshold);
            scanned = scanned.saturating_add(looked_at);
        }
        self.plot.lag(now, worst.as_secs_f64());
        if now <= self.from {
            return scanned;
        }
        self.lags.push(worst.as_secs_f64());
        self.samples += 1.0;
        if is_over {
            self.over += 1.0;
        }
        let slowest = present().min_by(|a, b| a.nominal_per_s.total_cmp(&b.nominal_per_s));
        if let (Some(slowest), true) = (slowest, self.demand) {
            self.applied += slowest.applied;
            self.capacity += slowest.capacity();
        }
        scanned
    }

    /// The app with most admissions and refusals, by its number.
    pub(super) fn busiest(&self) -> Option<usize> {
        let of = |counts: &AppCounts| counts.admitted + counts.rejected.values().sum::<f64>();
        let apps = self.apps.iter().enumerate().filter(|(_, counts)| of(counts) > 0.0);
        apps.max_by(|(_, a), (_, b)| of(a).total_cmp(&of(b))).map(|(app, _)| app)
    }

    pub(super) fn admitted(
        &mut self,
        now: MonoTime,
        app: usize,
        rows: f64,
        (waited, in_all): (Duration, Duration),
    ) {
        self.plot.admitted(now, rows);
        if let (Some(app), true) = (self.apps.get_mut(app), now >= self.from) {
            app.admitted += 1.0;
            app.rows += rows;
            app.waited += if waited >= WAITED_MIN { 1.0 } else { 0.0 };
            app.delays.push(waited.as_secs_f64());
            app.in_all.push(in_all.as_secs_f64());
        }
    }

    /// A statement has ended at the server.
    pub(super) fn ended(&mut self, now: MonoTime, app: usize, latency: Duration) {
        if let (Some(app), true) = (self.apps.get_mut(app), self.latencies && now >= self.from) {
            app.latencies.push(latency.as_secs_f64());
        }
    }

    pub(super) fn rejected(&mut self, now: MonoTime, app: usize, reason: Reason) {
        if let (Some(app), true) = (self.apps.get_mut(app), now >= self.from) {
            *app.rejected.entry(reason).or_default() += 1.0;
        }
    }

    /// A rule that only observes would have held a statement.
    pub(super) fn observed(&mut self, now: MonoTime, app: usize) {
        if let (Some(app), true) = (self.apps.get_mut(app), now >= self.from) {
            app.observed += 1.0;
        }
    }

    pub(super) fn report(
        self,
        scenario: &Scenario,
        told: &[Told],
        fairness: &[Fairness],
    ) -> Report {
        let seconds = self.duration.saturating_sub(scenario.warmup).as_secs_f64();
        let apps = scenario.apps.iter().zip(self.apps).enumerate();
        let apps = apps.map(|(app, (plan, counts))| {
            let per_s = |count: f64| rounded(count / seconds);
            let rejected = counts.rejected.iter();
            let fairness = fairness.get(app).copied().unwrap_or_default();
            let figures = AppFigures {
                rule: plan.rule.name.clone(),
                admitted_per_s: per_s(counts.admitted),
                rows_per_s: per_s(counts.rows),
                waited_per_s: per_s(counts.waited),
                rejected_per_s: per_s(counts.rejected.values().fold(0.0, |sum, n| sum + n)),
                rejected_for: rejected.map(|(why, n)| (why.as_str(), per_s(*n))).collect(),
                observed_per_s: per_s(counts.observed),
                told_right: told.get(app).copied().and_then(Told::part).map(rounded),
                received_of_share: fairness.received_of_share.map(rounded),
                below_share: fairness.below_share.map(rounded),
                delay_s: distribution(counts.delays),
                in_all_s: distribution(counts.in_all),
                latency_s: self.latencies.then(|| distribution(counts.latencies)),
            };
            (plan.name.clone(), figures)
        });
        let mut report = Report {
            name: scenario.name.clone(),
            seed: scenario.seed,
            pacing: scenario.pacing.as_str(),
            threshold_s: scenario.threshold.as_secs_f64(),
            capacity_used: if self.capacity > 0.0 {
                rounded(self.applied / self.capacity)
            } else {
                0.0
            },
            over_threshold: rounded(self.over / self.samples.max(1.0)),
            lag_s: distribution(self.lags),
            apps: apps.collect(),
            missed: Vec::new(),
            plot: self.plot,
        };
        report.missed =
            scenario.expect.iter().filter_map(|expected| expected.missed(&report)).collect();
        report
    }
}

/// Six digits after the point: more is not known.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn distribution(mut values: Vec<f64>) -> Distribution {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = |percent: usize| {
        let index = last.saturating_mul(percent).div_ceil(100);
        values.get(index).copied().map_or(0.0, rounded)
    };
    Distribution { p50: at(50), p95: at(95), p99: at(99), max: at(100) }
}
