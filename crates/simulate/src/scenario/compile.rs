//! Checks what the file says, and fills in what it does not.

mod apps;
mod times;

use std::collections::BTreeMap;
use std::time::Duration;

use admission::OnNoData;
use policy::reading::{Fault, Spanned};

use self::apps::apps;
pub(super) use self::times::{amount, windows};
use self::times::{instant, transit};
use super::faults::Faults;
use super::limits::{
    APPLIERS_MAX, CHECK_INTERVAL, COMMIT_COST_MAX, HEARTBEAT_INTERVAL, LATENCY, LIST_MAX,
    NAME_CHARS_MAX, PROBE_DELAY, PROBE_DELAY_INTERVALS_MAX, PROBE_INTERVAL, PROXIES_MAX, QUEUE_MAX,
    RELEASE_PER_S_MAX, REPLICAS_MAX, THRESHOLD,
};
use super::raw::{self, Count, Span};
use super::rule::{Effect, Gate};
use super::{Amount, Pace, Replica, RowCosts, Scenario};
use super::{expect, lag, signals};
use crate::TICK;
use crate::engine::{RHYTHM_MAX, rhythm};

const RELEASE_PER_S_DEFAULT: u32 = 1_000;
const QUEUE_LEN_MAX_DEFAULT: u32 = 10_000;

pub(super) fn compile(raw: raw::Scenario, mut noted: Faults) -> Result<Scenario, Vec<Fault>> {
    let faults = &mut noted;
    faults.have_read();
    let signal_names: Vec<String> =
        raw.signals.iter().flat_map(|named| &named.0).map(|(name, _)| name.clone()).collect();
    let duration = duration(raw.duration, raw.warmup, faults);
    let proxies = faults.count(count(raw.proxies, 1), (1, PROXIES_MAX), "proxies");
    let proxies = usize::try_from(proxies).unwrap_or(usize::MAX);
    let apps = apps(raw.apps.unwrap_or_default(), &signal_names, proxies, faults);
    let names: Vec<String> = apps.iter().map(|app| app.name.clone()).collect();
    let threshold = faults.time(time(raw.threshold), THRESHOLD, "threshold");
    let (primary, latency, service) = primary(raw.primary, faults);
    let raw_replicas = raw.replicas.unwrap_or_default();
    let replicas = replicas(raw_replicas, signal_names.is_empty(), faults);
    let scenario = Scenario {
        duration,
        warmup: time(raw.warmup).unwrap_or_default(),
        seed: raw.seed.map_or(0, |seed| seed.0),
        pacing: pacing(raw.pacing.as_deref(), faults),
        row_costs: row_costs(raw.row_costs.as_deref(), faults),
        threshold,
        lag: lag::compile(raw.lag, threshold, replicas.len(), faults),
        check_interval: faults.time(time(raw.check_interval), CHECK_INTERVAL, "check_interval"),
        release_per_s: faults.count(
            count(raw.release_per_s, RELEASE_PER_S_DEFAULT),
            (1, RELEASE_PER_S_MAX),
            "release_per_s",
        ),
        queue_len_max: faults.count(
            count(raw.max_queue_total, QUEUE_LEN_MAX_DEFAULT),
            (1, QUEUE_MAX),
            "max_queue_total",
        ),
        heartbeat_interval: faults.time(
            time(raw.heartbeat_interval),
            HEARTBEAT_INTERVAL,
            "heartbeat_interval",
        ),
        probe_interval: faults.time(time(raw.probe_interval), PROBE_INTERVAL, "probe_interval"),
        probe_delay: faults.time(time(raw.probe_delay), PROBE_DELAY, "probe_delay"),
        primary,
        latency,
        expect: expect::compile(raw.expect, (&names, service.is_some()), faults),
        service,
        replicas,
        signals: signals::compile(raw.signals, &apps, faults),
        background: raw.background.and_then(|background| background.writes_per_s).map_or_else(
            || Amount::constant(0.0),
            |per_s| amount(per_s, "background.writes_per_s", faults),
        ),
        proxies,
        restarts: restarts(raw.restarts.unwrap_or_default(), duration, faults),
        handover: raw.handover.unwrap_or(true),
        apps,
        name: name(raw.name, "name", faults),
    };
    has_lag_where_waited_for(&scenario, faults);
    as_a_whole(&scenario, faults);
    if noted.is_empty() { Ok(scenario) } else { Err(noted.into_sorted()) }
}

/// What two or more values make together.
fn as_a_whole(scenario: &Scenario, faults: &mut Faults) {
    let Scenario { probe_delay, probe_interval, .. } = scenario;
    let latest = probe_interval.saturating_mul(PROBE_DELAY_INTERVALS_MAX);
    if *probe_delay > latest && faults.has_read("probe_delay") && faults.has_read("probe_interval")
    {
        let message = format!("must be at most {PROBE_DELAY_INTERVALS_MAX} times probe_interval");
        faults.add("probe_delay", message);
    }
    let steps = rhythm(scenario);
    if faults.is_empty() && steps > RHYTHM_MAX {
        faults.add(
            "duration",
            format!(
                "too long for so many replicas, proxies, heartbeats and probes: about {steps:.0} \
                 steps without any statement, and {RHYTHM_MAX:.0} at most are simulated; make it \
                 shorter, their intervals longer, or have fewer of them"
            ),
        );
    }
}

/// Without replicas there is no lag, and whoever waits for it waits for ever.
fn has_lag_where_waited_for(scenario: &Scenario, faults: &mut Faults) {
    let is_unknown = scenario.replicas.is_empty()
        && !scenario.signals.is_empty()
        && scenario.lag.on_no_data != OnNoData::Open
        && ["replicas", "signals", "apps"].iter().all(|key| faults.has_read(key));
    if !is_unknown {
        return;
    }
    for (index, app) in scenario.apps.iter().enumerate() {
        let waits = match app.rule.effect {
            Effect::Asks { terms, .. } if terms.hold => false,
            Effect::Asks { gate: Gate::Lag, .. } => true,
            Effect::Asks { gate: Gate::Signals(signals), .. } => signals.has_lag(),
            Effect::Asks { gate: Gate::Open, .. } | Effect::Passes | Effect::Denies(_) => false,
        };
        let message = "waits for the lag (the default), and there is none without replicas: \
                       nothing would ever be admitted; say `none` or one of the signals";
        faults.hold(!waits, &format!("apps[{index}].gate"), message);
    }
}

/// A name, which is shown in a line of its own.
fn name(said: Option<String>, path: &str, faults: &mut Faults) -> String {
    let Some(name) = said else { return String::new() };
    let length = name.chars().count();
    let shows = length <= NAME_CHARS_MAX && !name.chars().any(char::is_control);
    if name.trim().is_empty() || !shows {
        let message = format!(
            "must be a name of 1 to {NAME_CHARS_MAX} characters in one line, not of blanks alone"
        );
        faults.add(path, message);
    }
    name
}

pub(super) fn time(said: Option<Span>) -> Option<Duration> {
    said.map(|Span(span)| span)
}

fn count(said: Option<Count>, default: u32) -> u32 {
    said.map_or(default, |Count(count)| count)
}

/// How long it runs. What cannot be read is taken for the longest, so that nothing is behind it.
fn duration(said: Option<Span>, warmup: Option<Span>, faults: &mut Faults) -> Duration {
    let Some(Span(duration)) = said else { return Duration::MAX };
    faults.hold(duration >= TICK, "duration", &format!("must be at least {TICK:?}"));
    let is_shorter = warmup.is_none_or(|Span(warmup)| warmup < duration);
    faults.hold(is_shorter, "warmup", "must be shorter than the duration");
    duration
}

fn primary(
    raw: Option<raw::Primary>,
    faults: &mut Faults,
) -> (Amount, Duration, Option<super::Service>) {
    let (per_s, latency, service) =
        raw.map_or((None, None, None), |raw| (raw.writes_per_s, raw.latency, raw.service));
    let per_s = per_s.map_or_else(
        || Amount::constant(1.0),
        |per_s| amount(per_s, "primary.writes_per_s", faults),
    );
    let latency = faults.time(time(latency), LATENCY, "primary.latency");
    (per_s, latency, service.map(|service| signals::service(service, faults)))
}

fn row_costs(word: Option<&str>, faults: &mut Faults) -> RowCosts {
    match word {
        None | Some("applied") => RowCosts::Applied,
        Some("told") => RowCosts::Told,
        Some(other) => {
            faults.add("row_costs", format!("must be told or applied, not {other:?}"));
            RowCosts::Applied
        }
    }
}

fn pacing(word: Option<&str>, faults: &mut Faults) -> Pace {
    match word {
        None | Some("adaptive") => Pace::Adaptive,
        Some("binary") => Pace::Binary,
        Some(other) => {
            faults.add("pacing", format!("must be adaptive or binary, not {other:?}"));
            Pace::Adaptive
        }
    }
}

fn restarts(
    raw: Vec<Spanned<Span>>,
    duration: Duration,
    faults: &mut Faults,
) -> Vec<admission::MonoTime> {
    for restart in raw.iter().filter(|restart| restart.value.0 >= duration) {
        let message = format!("comes when the {duration:?} are over, so it would never come");
        faults.add(&restart.place.path, message);
    }
    let times: Vec<_> = raw.iter().map(|restart| instant(restart.value)).collect();
    let grows = times.is_sorted_by(|a, b| a < b);
    faults.hold(grows, "restarts", "must be in the order of time, each once");
    faults.hold(times.len() <= LIST_MAX, "restarts", &format!("must be at most {LIST_MAX}"));
    times
}

fn replicas(raw: Vec<Spanned<raw::Replica>>, needed: bool, faults: &mut Faults) -> Vec<Replica> {
    let read = faults.has_read("replicas") && faults.has_read("signals");
    let some = !raw.is_empty() || !needed || !read;
    faults.hold(some, "replicas", "must be at least one, unless there are signals");
    let few = raw.len() <= REPLICAS_MAX;
    faults.hold(few, "replicas", &format!("must be at most {REPLICAS_MAX}"));
    let groups = groups(&raw, faults);
    let each = raw.into_iter().map(|Spanned { value: raw, place }| {
        let path = place.path;
        let of_group = raw.group.as_ref().and_then(|group| groups.get(group));
        let away = raw.away.map(|away| away.0).unwrap_or_default();
        let own = raw
            .threshold
            .map(|own| faults.time(Some(own.0), THRESHOLD, &format!("{path}.threshold")));
        let apply_path = format!("{path}.apply_per_s");
        let apply = raw.apply_per_s.map(|per_s| amount(per_s, &apply_path, faults));
        let jitter = raw.jitter.unwrap_or_default();
        let appliers = count(raw.appliers, 1);
        let appliers = faults.count(appliers, (1, APPLIERS_MAX), &format!("{path}.appliers"));
        let workers = count(raw.workers, appliers);
        Replica {
            apply: apply.unwrap_or_else(|| Amount::constant(1.0)),
            jitter: faults.number(jitter, (0.0, 1.0), &format!("{path}.jitter")),
            threshold: of_group.copied().or(own),
            away: windows(&away, &format!("{path}.away"), faults),
            transit: transit(raw.transit, &format!("{path}.transit"), faults),
            appliers,
            workers: faults.count(workers, (1, APPLIERS_MAX), &format!("{path}.workers")),
            preserve_commit_order: raw.preserve_commit_order.unwrap_or(true),
            commit_cost: faults.number(
                raw.commit_cost.unwrap_or_default(),
                (0.0, COMMIT_COST_MAX),
                &format!("{path}.commit_cost"),
            ),
        }
    });
    each.collect()
}

/// The thresholds of groups: said of one replica, it is that of all of its group.
fn groups(raw: &[Spanned<raw::Replica>], faults: &mut Faults) -> BTreeMap<String, Duration> {
    let mut groups = BTreeMap::new();
    for Spanned { value: replica, place } in raw {
        let Some(group) = &replica.group else { continue };
        name(Some(group.clone()), &format!("{}.group", place.path), faults);
        let Some(Span(threshold)) = replica.threshold else { continue };
        if *groups.entry(group.clone()).or_insert(threshold) != threshold {
            let path = format!("{}.threshold", place.path);
            faults.add(&path, format!("the group {group} has another"));
        }
    }
    groups
}
