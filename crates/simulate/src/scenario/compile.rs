//! Checks what the file says, and fills in what it does not.

use std::collections::BTreeMap;
use std::time::Duration;

use admission::MonoTime;

use super::raw::{self, Span};
use super::{Amount, App, Pace, Replica, RowCosts, Rows, Scenario, ScenarioError, Window};
use super::{expect, lag, rule, signals};
use crate::TICK;

/// Most sessions of a scenario: each costs an event or two at any time.
const SESSIONS_MAX: u32 = 100_000;
/// Most rows a second, and most rows of one permit: sums of them stay exact.
const ROWS_MAX: f64 = 1e9;
/// Most threads of a replica: as many as a server has.
const APPLIERS_MAX: u32 = 1_024;
/// Most Sluices in front of one primary: each writes and reads heartbeats of its own.
const PROXIES_MAX: usize = 64;
/// The dearest row: more is a statement of its own.
const APPLY_COST_MAX: f64 = 1e6;

const THRESHOLD_DEFAULT: Duration = Duration::from_secs(1);
const HEARTBEAT_INTERVAL_DEFAULT: Duration = Duration::from_millis(250);
const PROBE_INTERVAL_DEFAULT: Duration = Duration::from_millis(100);
const PROBE_DELAY_DEFAULT: Duration = Duration::from_millis(100);
const LATENCY_DEFAULT: Duration = Duration::from_millis(5);
const CHECK_INTERVAL_DEFAULT: Duration = Duration::from_millis(100);
const RELEASE_PER_S_DEFAULT: u32 = 1_000;
const QUEUE_LEN_MAX_DEFAULT: u32 = 10_000;

pub(super) type Faults = Vec<String>;

pub(super) fn compile(raw: raw::Scenario) -> Result<Scenario, ScenarioError> {
    let mut faults = Faults::new();
    let gates: Vec<String> = raw.signals.keys().cloned().collect();
    let proxies = proxies(raw.proxies, &mut faults);
    let apps = apps(raw.apps, &gates, proxies, &mut faults);
    let names: Vec<String> = apps.iter().map(|app| app.name.clone()).collect();
    let threshold = span(raw.threshold, THRESHOLD_DEFAULT, "threshold", &mut faults);
    let scenario = Scenario {
        duration: at_least(raw.duration, TICK, "duration", &mut faults),
        warmup: raw.warmup.0,
        seed: raw.seed,
        pacing: pacing(raw.pacing.as_deref(), &mut faults),
        row_costs: row_costs(raw.row_costs.as_deref(), &mut faults),
        threshold,
        lag: lag::compile(raw.lag, threshold, &mut faults),
        check_interval: span(
            raw.check_interval,
            CHECK_INTERVAL_DEFAULT,
            "check_interval",
            &mut faults,
        ),
        release_per_s: raw.release_per_s.unwrap_or(RELEASE_PER_S_DEFAULT),
        queue_len_max: raw.max_queue_total.unwrap_or(QUEUE_LEN_MAX_DEFAULT),
        heartbeat_interval: span(
            raw.heartbeat_interval,
            HEARTBEAT_INTERVAL_DEFAULT,
            "heartbeat_interval",
            &mut faults,
        ),
        probe_interval: span(
            raw.probe_interval,
            PROBE_INTERVAL_DEFAULT,
            "probe_interval",
            &mut faults,
        ),
        probe_delay: raw.probe_delay.map_or(PROBE_DELAY_DEFAULT, |span| span.0),
        primary: amount(raw.primary.writes_per_s, "primary.writes_per_s", &mut faults),
        latency: span(raw.primary.latency, LATENCY_DEFAULT, "primary.latency", &mut faults),
        service: raw.primary.service.map(|service| signals::service(service, &mut faults)),
        replicas: replicas(raw.replicas, raw.signals.is_empty(), &mut faults),
        signals: signals::compile(raw.signals, &apps, &mut faults),
        background: raw.background.map_or_else(
            || Amount::constant(0.0),
            |background| amount(background.writes_per_s, "background.writes_per_s", &mut faults),
        ),
        proxies,
        restarts: restarts(&raw.restarts, &mut faults),
        handover: raw.handover.unwrap_or(true),
        expect: expect::compile(raw.expect, &names, &mut faults),
        apps,
        name: raw.name,
    };
    if scenario.warmup >= scenario.duration {
        faults.push("warmup: it must be shorter than the duration".to_owned());
    }
    if faults.is_empty() { Ok(scenario) } else { Err(ScenarioError { faults }) }
}

/// Shortest interval and latency: a scenario of nothing but heartbeats would never end.
const SPAN_MIN: Duration = Duration::from_micros(100);

pub(super) fn span(
    raw: Option<Span>,
    default: Duration,
    path: &str,
    faults: &mut Faults,
) -> Duration {
    at_least(Span(raw.map_or(default, |span| span.0)), SPAN_MIN, path, faults)
}

fn at_least(span: Span, least: Duration, path: &str, faults: &mut Faults) -> Duration {
    if span.0 < least {
        faults.push(format!("{path}: at least {least:?}"));
    }
    span.0
}

fn row_costs(word: Option<&str>, faults: &mut Faults) -> RowCosts {
    match word {
        None | Some("told") => RowCosts::Told,
        Some("applied") => RowCosts::Applied,
        Some(other) => {
            faults.push(format!("row_costs: told or applied, not {other:?}"));
            RowCosts::Told
        }
    }
}

fn pacing(word: Option<&str>, faults: &mut Faults) -> Pace {
    match word {
        None | Some("adaptive") => Pace::Adaptive,
        Some("binary") => Pace::Binary,
        Some(other) => {
            faults.push(format!("pacing: adaptive or binary, not {other:?}"));
            Pace::Adaptive
        }
    }
}

fn proxies(raw: Option<usize>, faults: &mut Faults) -> usize {
    let proxies = raw.unwrap_or(1);
    if !(1..=PROXIES_MAX).contains(&proxies) {
        faults.push(format!("proxies: from 1 to {PROXIES_MAX}"));
    }
    proxies
}

fn restarts(raw: &[Span], faults: &mut Faults) -> Vec<MonoTime> {
    let restarts: Vec<MonoTime> = raw.iter().map(|at| instant(*at)).collect();
    if !restarts.is_sorted() {
        faults.push("restarts: in the order of time".to_owned());
    }
    restarts
}

fn replicas(raw: Vec<raw::Replica>, only_lag: bool, faults: &mut Faults) -> Vec<Replica> {
    if raw.is_empty() && only_lag {
        faults.push("replicas: at least one".to_owned());
    }
    let groups = groups(&raw, faults);
    let each = raw.into_iter().enumerate().map(|(index, raw)| {
        let path = format!("replicas[{index}]");
        let of_group = raw.group.as_ref().and_then(|group| groups.get(group));
        if !(0.0..=1.0).contains(&raw.jitter) {
            faults.push(format!("{path}.jitter: from 0 to 1"));
        }
        Replica {
            apply: amount(raw.apply_per_s, &format!("{path}.apply_per_s"), faults),
            jitter: raw.jitter,
            threshold: of_group.copied().or(raw.threshold.map(|threshold| threshold.0)),
            away: windows(&raw.away, &format!("{path}.away"), faults),
            transit: transit(&raw.transit, &format!("{path}.transit"), faults),
            appliers: appliers(raw.appliers, &path, faults),
            preserve_commit_order: raw.preserve_commit_order.unwrap_or(true),
        }
    });
    each.collect()
}

/// The thresholds of groups: said of one replica, it is that of all of its group.
fn groups(raw: &[raw::Replica], faults: &mut Faults) -> BTreeMap<String, Duration> {
    let mut groups = BTreeMap::new();
    for (index, replica) in raw.iter().enumerate() {
        let (Some(group), Some(Span(threshold))) = (&replica.group, replica.threshold) else {
            continue;
        };
        if *groups.entry(group.clone()).or_insert(threshold) != threshold {
            faults.push(format!("replicas[{index}].threshold: the group {group} has another"));
        }
    }
    groups
}

fn transit(raw: &raw::Transit, path: &str, faults: &mut Faults) -> Vec<(MonoTime, Duration)> {
    let steps: Vec<(MonoTime, Duration)> =
        raw.0.iter().map(|(from, transit)| (instant(*from), transit.0)).collect();
    let starts = steps.first().is_none_or(|(from, _)| *from == MonoTime::ZERO);
    if !starts || !steps.is_sorted_by_key(|(from, _)| *from) {
        faults.push(format!("{path}: steps begin at 0s and are in the order of time"));
    }
    // No delay is none, however it is said.
    if steps.iter().all(|(_, transit)| transit.is_zero()) { Vec::new() } else { steps }
}

fn appliers(raw: Option<u32>, path: &str, faults: &mut Faults) -> u32 {
    let appliers = raw.unwrap_or(1);
    if !(1..=APPLIERS_MAX).contains(&appliers) {
        faults.push(format!("{path}.appliers: from 1 to {APPLIERS_MAX}"));
    }
    appliers
}

fn apps(raw: Vec<raw::App>, gates: &[String], proxies: usize, faults: &mut Faults) -> Vec<App> {
    let sessions = raw.iter().fold(0_u32, |sum, app| sum.saturating_add(app.sessions));
    if sessions > SESSIONS_MAX {
        faults.push(format!("apps: at most {SESSIONS_MAX} sessions in all"));
    }
    let mut apps: Vec<App> = Vec::with_capacity(raw.len());
    for (index, raw) in raw.into_iter().enumerate() {
        let path = format!("apps[{index}]");
        if apps.iter().any(|app| app.name == raw.app) {
            faults.push(format!("{path}.app: {:?} is there already", raw.app));
        }
        if raw.proxies.iter().any(|place| *place >= proxies) {
            let last = proxies.saturating_sub(1);
            faults.push(format!("{path}.proxies: numbers from 0 to {last}"));
        }
        apps.push(app(raw, gates, &path, faults));
    }
    apps
}

fn app(raw: raw::App, gates: &[String], path: &str, faults: &mut Faults) -> App {
    let rule = rule::compile(&raw, gates, path, faults);
    let identities = raw.identities.unwrap_or(1);
    if identities == 0 {
        faults.push(format!("{path}.identities: at least 1"));
    }
    let transactions = raw.transactions.unwrap_or(1);
    let rows = raw
        .rows_per_statement
        .map_or(Rows { min: 1, max: 1 }, |rows| Rows { min: rows.0.min, max: rows.0.max });
    if rows.min > rows.max || transactions == 0 {
        faults.push(format!("{path}: rows_per_statement from min to max, transactions at least 1"));
    }
    if f64::from(rows.max) * f64::from(transactions) > ROWS_MAX {
        faults.push(format!("{path}: at most {ROWS_MAX} rows under one permit"));
    }
    let apply_cost = raw.apply_cost.unwrap_or(1.0);
    if !(0.0..=APPLY_COST_MAX).contains(&apply_cost) {
        faults.push(format!("{path}.apply_cost: from 0 to {APPLY_COST_MAX}"));
    }
    let always = || vec![Window { from: MonoTime::ZERO, to: MonoTime::MAX }];
    let active_path = format!("{path}.active");
    App {
        name: raw.app,
        sessions: raw.sessions,
        proxies: raw.proxies,
        identities,
        rule,
        latency: raw
            .latency
            .map(|latency| span(Some(latency), latency.0, &format!("{path}.latency"), faults)),
        rows,
        apply_cost,
        phantom_rows: raw.phantom_rows,
        transactions,
        think_time: raw.think_time.0,
        comes_back_after: raw
            .comes_back_after
            .map(|wait| span(Some(wait), wait.0, &format!("{path}.comes_back_after"), faults)),
        active: raw.active.map_or_else(always, |list| windows(&list, &active_path, faults)),
    }
}

pub(super) fn windows(raw: &[(Span, Span)], path: &str, faults: &mut Faults) -> Vec<Window> {
    let windows: Vec<Window> =
        raw.iter().map(|(from, to)| Window { from: instant(*from), to: instant(*to) }).collect();
    let ends: Vec<MonoTime> = windows.iter().flat_map(|window| [window.from, window.to]).collect();
    if !ends.is_sorted() {
        faults.push(format!("{path}: windows [from, to] in the order of time"));
    }
    windows
}

pub(super) fn amount(raw: raw::Amount, path: &str, faults: &mut Faults) -> Amount {
    let amount = match raw {
        raw::Amount::Number(per_s) => Amount::constant(per_s),
        raw::Amount::Steps(steps) => {
            let steps: Vec<(MonoTime, f64)> =
                steps.into_iter().map(|(from, per_s)| (instant(from), per_s)).collect();
            let starts = steps.first().is_some_and(|(from, _)| *from == MonoTime::ZERO);
            if !starts || !steps.is_sorted_by_key(|(from, _)| *from) {
                faults.push(format!("{path}: steps begin at 0s and are in the order of time"));
            }
            Amount::Steps(steps)
        }
        raw::Amount::Sine(raw::Sine { min, max, period }) => {
            if period.0 < TICK || min > max {
                faults.push(format!(
                    "{path}.sine: from min to max, with a period of {TICK:?} or more"
                ));
            }
            Amount::Sine { min, max, period: period.0 }
        }
    };
    let in_range = |per_s: &f64| (0.0..=ROWS_MAX).contains(per_s);
    let good = match &amount {
        Amount::Steps(steps) => steps.iter().all(|(_, per_s)| in_range(per_s)),
        Amount::Sine { min, max, .. } => in_range(min) && in_range(max),
    };
    if !good {
        faults.push(format!("{path}: from 0 to {ROWS_MAX} rows a second"));
    }
    amount
}

fn instant(span: Span) -> MonoTime {
    MonoTime::ZERO.saturating_add(span.0)
}
