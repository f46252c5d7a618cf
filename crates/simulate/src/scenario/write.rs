//! A scenario as the file that it could have been read from.

use std::cmp::Ordering;
use std::time::Duration;

use admission::{MonoTime, OnNoData, OnTimeout, Speed, Terms};

use super::rule::{MODES, ON_REFUSED_CHECK, ON_TIMEOUT, word};
use super::{
    Amount, App, Effect, Expectation, Gate, LagLimits, Replica, Rows, Scenario, Service,
    SignalKind, SignalPlan, Window,
};

pub(super) fn yaml(scenario: &Scenario) -> String {
    // All fields are named: one that is new must be written too.
    let Scenario {
        name,
        duration,
        warmup,
        seed,
        pacing,
        row_costs,
        threshold,
        lag,
        check_interval,
        release_per_s,
        queue_len_max,
        heartbeat_interval,
        probe_interval,
        probe_delay,
        primary,
        latency,
        service,
        signals,
        replicas,
        background,
        proxies,
        restarts,
        handover,
        apps,
        expect,
    } = scenario;
    let mut lines = vec![
        format!("name: {}", scalar(name)),
        format!("duration: {}", span(*duration)),
        format!("warmup: {}", span(*warmup)),
        format!("seed: {seed}"),
        format!("pacing: {}", pacing.as_str()),
        format!("row_costs: {}", row_costs.as_str()),
        format!("threshold: {}", span(*threshold)),
        format!("lag: {}", lag_limits(lag)),
        format!("check_interval: {}", span(*check_interval)),
        format!("release_per_s: {release_per_s}"),
        format!("max_queue_total: {queue_len_max}"),
        format!("heartbeat_interval: {}", span(*heartbeat_interval)),
        format!("probe_interval: {}", span(*probe_interval)),
        format!("probe_delay: {}", span(*probe_delay)),
        format!(
            "primary: {{ writes_per_s: {}, latency: {}{} }}",
            amount(primary),
            span(*latency),
            service.as_ref().map(at_work).unwrap_or_default()
        ),
        format!("background: {{ writes_per_s: {} }}", amount(background)),
    ];
    lines.extend(signal_lines(signals));
    lines.push(if replicas.is_empty() { "replicas: []" } else { "replicas:" }.to_owned());
    lines.extend(replicas.iter().map(|plan| format!("  - {}", replica(plan))));
    lines.extend((*proxies != 1).then(|| format!("proxies: {proxies}")));
    if !restarts.is_empty() {
        let times: Vec<String> = restarts.iter().map(|at| time(*at)).collect();
        lines.push(format!("restarts: [{}]", times.join(", ")));
    }
    lines.extend((!handover).then(|| "handover: false".to_owned()));
    lines.push(if apps.is_empty() { "apps: []".to_owned() } else { "apps:".to_owned() });
    lines.extend(apps.iter().map(|plan| format!("  - {}", app(plan, signals))));
    if !expect.is_empty() {
        lines.push("expect:".to_owned());
        lines.extend(expect.iter().map(|expected| format!("  {}", expectation(expected))));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn signal_lines(signals: &[SignalPlan]) -> impl Iterator<Item = String> {
    let head = (!signals.is_empty()).then(|| "signals:".to_owned());
    let one = |plan: &SignalPlan| format!("  {}: {}", scalar(&plan.name), signal(plan));
    head.into_iter().chain(signals.iter().map(one))
}

fn lag_limits(limits: &LagLimits) -> String {
    let LagLimits { open_at, close_at, stale_after, on_no_data, ignore_slowest, min_replicas } =
        limits;
    let on_no_data = no_data(on_no_data);
    flow(&[
        ("open_at", span(*open_at)),
        ("close_at", span(*close_at)),
        ("stale_after", span(*stale_after)),
        ("on_no_data", on_no_data),
        ("ignore_slowest", ignore_slowest.to_string()),
        ("min_replicas", min_replicas.to_string()),
    ])
}

fn no_data(word: &OnNoData) -> String {
    match word {
        OnNoData::Open => "open".to_owned(),
        OnNoData::Closed => "closed".to_owned(),
        OnNoData::HoldLast(time) => format!("{{ hold_last: {} }}", span(*time)),
    }
}

fn at_work(Service { slots, per_statement }: &Service) -> String {
    let slots = amount(slots);
    format!(", service: {{ slots: {slots}, per_statement: {} }}", span(*per_statement))
}

fn signal(plan: &SignalPlan) -> String {
    let SignalPlan { name: _, kind, threshold, noise, silent, stale_after, on_no_data } = plan;
    let mut keys = match kind {
        SignalKind::ThreadsRunning => vec![("threshold", number(*threshold))],
        SignalKind::Latency { app, percentile, window } => {
            let latency = flow(&[
                ("app", scalar(app)),
                ("percentile", number(*percentile)),
                ("window", span(*window)),
            ]);
            let threshold = Duration::try_from_secs_f64(*threshold).unwrap_or_default();
            vec![("latency", latency), ("threshold", span(threshold))]
        }
    };
    keys.push(("noise", number(*noise)));
    if !silent.is_empty() {
        keys.push(("silent", windows(silent)));
    }
    keys.push(("stale_after", span(*stale_after)));
    keys.push(("on_no_data", no_data(on_no_data)));
    flow(&keys)
}

fn gate_names(gate: Gate, signals: &[SignalPlan]) -> String {
    match gate {
        Gate::Lag => "lag".to_owned(),
        Gate::Open => "none".to_owned(),
        Gate::Signals(set) => {
            let named = signals.iter().enumerate().filter(|(place, _)| set.has(*place));
            let lag = set.has_lag().then(|| "lag".to_owned());
            let names: Vec<String> =
                lag.into_iter().chain(named.map(|(_, plan)| scalar(&plan.name))).collect();
            format!("[{}]", names.join(", "))
        }
    }
}

fn replica(plan: &Replica) -> String {
    let Replica {
        apply,
        jitter,
        threshold,
        away,
        transit,
        appliers,
        workers,
        preserve_commit_order,
        commit_cost,
    } = plan;
    let mut keys = vec![("apply_per_s", amount(apply)), ("jitter", number(*jitter))];
    if let Some(threshold) = threshold {
        keys.push(("threshold", span(*threshold)));
    }
    if !away.is_empty() {
        keys.push(("away", windows(away)));
    }
    if !transit.is_empty() {
        let step =
            |(from, delay): &(MonoTime, Duration)| format!("[{}, {}]", time(*from), span(*delay));
        let steps: Vec<String> = transit.iter().map(step).collect();
        keys.push(("transit", format!("[{}]", steps.join(", "))));
    }
    if *appliers != 1 || !preserve_commit_order {
        keys.push(("appliers", appliers.to_string()));
        keys.push(("preserve_commit_order", preserve_commit_order.to_string()));
    }
    if *commit_cost > 0.0 {
        keys.push(("commit_cost", number(*commit_cost)));
    }
    if workers != appliers {
        keys.push(("workers", workers.to_string()));
    }
    flow(&keys)
}

fn app(plan: &App, signals: &[SignalPlan]) -> String {
    let App {
        name,
        sessions,
        proxies,
        identities,
        rule,
        latency,
        digests,
        rows: Rows { min, max },
        apply_cost,
        table,
        phantom_rows,
        transactions,
        think_time,
        comes_back_after,
        active,
    } = plan;
    let rows = if min == max { min.to_string() } else { format!("{{ min: {min}, max: {max} }}") };
    let mut keys = vec![("app", scalar(name)), ("sessions", sessions.to_string())];
    keys.extend(latency.map(|latency| ("latency", span(latency))));
    keys.push(("rows_per_statement", rows));
    let places: Vec<String> = proxies.iter().map(ToString::to_string).collect();
    let optional = [
        ("proxies", format!("[{}]", places.join(", ")), !places.is_empty()),
        ("identities", identities.to_string(), *identities != 1),
        ("digests", digests.to_string(), *digests != 1),
        ("apply_cost", number(*apply_cost), !matches!(apply_cost.total_cmp(&1.0), Ordering::Equal)),
        ("phantom_rows", phantom_rows.to_string(), *phantom_rows != 0),
        ("transactions", transactions.to_string(), *transactions != 1),
        ("think_time", span(*think_time), !think_time.is_zero()),
        ("active", windows(active), !always(active)),
    ];
    keys.extend(
        optional.into_iter().filter(|(.., said)| *said).map(|(key, value, _)| (key, value)),
    );
    keys.extend(table.as_ref().map(|table| ("table", scalar(&table.name))));
    keys.extend(comes_back_after.map(|wait| ("comes_back_after", span(wait))));
    keys.extend(rule.name.as_deref().map(|name| ("rule", scalar(name))));
    keys.extend(effect(&rule.effect, signals));
    flow(&keys)
}

fn always(active: &[Window]) -> bool {
    matches!(active, [Window { from: MonoTime::ZERO, to: MonoTime::MAX }])
}

fn effect(effect: &Effect, signals: &[SignalPlan]) -> Vec<(&'static str, String)> {
    let yes = || "true".to_owned();
    match effect {
        Effect::Passes => vec![("exempt", yes())],
        Effect::Denies(mode) => vec![("deny", yes()), ("mode", word(&MODES, mode).to_owned())],
        Effect::Asks { terms, gate, speed } => {
            let Terms {
                ratio,
                weight,
                max_delay,
                on_refused_check,
                on_timeout,
                queue_len_max,
                hold,
                mode,
                min_rate,
                max_rate,
                max_in_flight,
            } = terms;
            let count = |count: &Option<u32>| count.unwrap_or(0).to_string();
            let default = Terms::default();
            let refused = word(&ON_REFUSED_CHECK, on_refused_check).to_owned();
            let timeout = word(&ON_TIMEOUT, on_timeout).to_owned();
            let keys = [
                ("ratio", number(ratio.as_f64()), true),
                ("weight", weight.to_string(), true),
                ("max_delay", span(*max_delay), true),
                ("speed", number(speed.as_f64()), *speed != Speed::FULL),
                ("gate", gate_names(*gate, signals), *gate != Gate::Lag),
                ("on_refused_check", refused, *on_refused_check != default.on_refused_check),
                ("on_timeout", timeout, *on_timeout != OnTimeout::Reject),
                ("max_queue", queue_len_max.to_string(), *queue_len_max != default.queue_len_max),
                ("hold", yes(), *hold),
                ("min_rate", count(min_rate), min_rate.is_some()),
                ("max_rate", count(max_rate), max_rate.is_some()),
                ("max_in_flight", count(max_in_flight), max_in_flight.is_some()),
                ("mode", word(&MODES, mode).to_owned(), *mode != default.mode),
            ];
            let said = keys.into_iter().filter(|(.., said)| *said);
            said.map(|(key, value, _)| (key, value)).collect()
        }
    }
}

fn expectation(expected: &Expectation) -> String {
    match expected {
        Expectation::Figure { name, low, high } => {
            format!("{}: [{}, {}]", scalar(name), number(*low), number(*high))
        }
        Expectation::Shares { parts, within } => {
            let parts = parts.iter().map(|(app, part)| (scalar(app), number(*part)));
            let keys: Vec<(String, String)> =
                parts.chain([("within".to_owned(), number(*within))]).collect();
            format!("ratio: {}", flow(&keys))
        }
    }
}

fn amount(amount: &Amount) -> String {
    match amount {
        Amount::Steps(steps) => match steps.as_slice() {
            [(MonoTime::ZERO, per_s)] => number(*per_s),
            steps => {
                let step = |(from, per_s): &(MonoTime, f64)| {
                    format!("[{}, {}]", time(*from), number(*per_s))
                };
                let steps: Vec<String> = steps.iter().map(step).collect();
                format!("[{}]", steps.join(", "))
            }
        },
        Amount::Sine { min, max, period } => {
            let (min, max, period) = (number(*min), number(*max), span(*period));
            format!("{{ sine: {{ min: {min}, max: {max}, period: {period} }} }}")
        }
    }
}

fn windows(windows: &[Window]) -> String {
    let window = |Window { from, to }: &Window| format!("[{}, {}]", time(*from), time(*to));
    let windows: Vec<String> = windows.iter().map(window).collect();
    format!("[{}]", windows.join(", "))
}

fn flow<K: AsRef<str>>(keys: &[(K, String)]) -> String {
    let keys: Vec<String> =
        keys.iter().map(|(key, value)| format!("{}: {value}", key.as_ref())).collect();
    format!("{{ {} }}", keys.join(", "))
}

fn time(at: MonoTime) -> String {
    span(at.saturating_since(MonoTime::ZERO))
}

/// In the largest unit of which it is a whole number.
fn span(span: Duration) -> String {
    let micros = span.as_micros();
    for (unit, per_unit) in [("s", 1_000_000), ("ms", 1_000)] {
        if let Some(whole) = micros.checked_div(per_unit)
            && whole.checked_mul(per_unit) == Some(micros)
        {
            return format!("{whole}{unit}");
        }
    }
    format!("{micros}us")
}

fn number(number: f64) -> String {
    if number.is_infinite() { ".inf".to_owned() } else { number.to_string() }
}

/// A text that means itself wherever a scalar may stand.
fn scalar(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if begins && text.bytes().all(plain) && !WORDS.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\U{:08x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What YAML, in any version, takes for something else than a text.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_the_largest_unit_of_which_it_is_whole() {
        let written =
            [0, 250, 1_000, 1_500_000, 120_000_000].map(|us| span(Duration::from_micros(us)));
        assert_eq!(written, ["0s", "250us", "1ms", "1500ms", "120s"]);
    }

    #[test]
    fn texts_that_yaml_would_read_otherwise_are_quoted() {
        for text in ["etl", "gh-ost", "web.shop"] {
            assert_eq!(scalar(text), text);
        }
        assert_eq!(scalar("yes"), "\"yes\"");
        assert_eq!(scalar("1:etl"), "\"1:etl\"");
        assert_eq!(scalar("a\"b\n"), "\"a\\\"b\\U0000000a\"");
    }
}
