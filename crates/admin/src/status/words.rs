//! The status in words: lines and tables, which the page writes as HTML and `sluice status` as
//! text.

mod limits;
mod signals;

use std::time::Duration;

use admission::OnRefusedCheck;
use policy::{Action, ClusterPolicy, Rule};

pub use self::limits::refused_by;
use self::limits::{budgets, guards, quarantine, refused};
use self::signals::signals;
use super::{
    AppStatus, ClusterStatus, Obstacle, PaceStatus, PrimaryStatus, ReplicaStatus, RuleStatus,
    SignalStatus, StarvedStatus, Status, ThrottledStatus, WaitingStatus,
};

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Nothing to say about it.
    Plain,
    /// As it should be.
    Good,
    /// Look here.
    Bad,
}

/// One line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// How that stands.
    pub tone: Tone,
    /// What it says.
    pub text: String,
}

/// A table with something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What is in it.
    pub caption: &'static str,
    /// The heads of its columns.
    pub columns: &'static [&'static str],
    /// As many cells as columns each.
    pub rows: Vec<Row>,
    /// How many rows there are in truth.
    pub total: u64,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// How that stands.
    pub tone: Tone,
    /// What is in it. Names in it come from clients.
    pub cells: Vec<String>,
}

impl Line {
    fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into() }
    }
}

/// How the process stands.
#[must_use]
pub fn head(status: &Status) -> Vec<Line> {
    let Status { version, now, started_at, not_ready, notes, config, .. } = status;
    let about = format!("Sluice {version}, started {started_at}; it is {now}");
    let mut lines = vec![Line::new(Tone::Plain, about)];
    if not_ready.is_empty() {
        lines.push(Line::new(Tone::Good, "Ready."));
    }
    for obstacle in not_ready {
        lines.push(Line::new(Tone::Bad, format!("Not ready: {obstacle}")));
    }
    for note in notes {
        lines.push(Line::new(Tone::Bad, note));
    }
    let read = &config.last_reload_at;
    lines.push(if config.last_reload_successful && !config.restart_pending.is_empty() {
        let but = "Configuration: the file is in force but for what waits for a restart";
        Line::new(Tone::Plain, format!("{but}, read {read}."))
    } else if config.last_reload_successful {
        Line::new(Tone::Good, format!("Configuration: the file is in force, read {read}."))
    } else {
        Line::new(Tone::Plain, format!("Configuration: in force is the one read {read}."))
    });
    lines
}

/// How a cluster stands.
#[must_use]
pub fn cluster_head(cluster: &ClusterStatus) -> Vec<Line> {
    let ClusterStatus { listen, primary, mode, client_connections, in_flight, .. } = cluster;
    let mut lines = vec![Line::new(
        Tone::Plain,
        format!(
            "{listen} → {}, {client_connections} client connections, {in_flight} admitted \
             statements at the server, mode {mode}",
            primary.server
        ),
    )];
    lines.push(Line::new(Tone::Plain, default_gate(cluster)));
    if cluster.waiting_total == 0 {
        lines.push(Line::new(Tone::Plain, "Nobody waits."));
    }
    lines
}

fn default_gate(cluster: &ClusterStatus) -> String {
    let PaceStatus { gate, pacing, per_second, unit, governs } = &cluster.pace;
    let governs =
        governs.as_ref().map(|signal| format!("; `{signal}` governs")).unwrap_or_default();
    let names = gate.join(", ");
    let shut = |signal: &SignalStatus| !signal.open && gate.contains(&signal.signal);
    match per_second {
        _ if gate.is_empty() => "Default gate: none".to_owned(),
        _ if cluster.signals.iter().any(shut) => format!("Default gate ({names}): shut"),
        Some(per_second) => {
            let pace = format!("{per_second:.0} {unit} a second ({pacing})");
            format!("Default gate ({names}): open, pace {pace}{governs}")
        }
        None => format!("Default gate ({names}): open"),
    }
}

/// What is to be known of a cluster; a table with nothing in it is left out.
#[must_use]
pub fn tables(cluster: &ClusterStatus) -> Vec<Table> {
    let all = [
        signals(cluster),
        servers(cluster),
        throttled(cluster),
        waiting(cluster),
        refused(cluster),
        starved(cluster),
        apps(cluster),
        budgets(cluster),
        guards(cluster),
        quarantine(cluster),
        rules(cluster),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn servers(cluster: &ClusterStatus) -> Table {
    let mut rows = vec![primary(&cluster.primary)];
    rows.extend(cluster.replicas.iter().map(replica));
    table(
        "Servers",
        &["server", "role", "state", "lag", "for", "what is wrong, and what to do"],
        rows,
    )
}

fn primary(primary: &PrimaryStatus) -> Row {
    let tone = match &*primary.state {
        "answers" => Tone::Good,
        "silent" => Tone::Bad,
        _ => Tone::Plain,
    };
    let state = match &*primary.state {
        "unknown" => "not heard from yet".to_owned(),
        state => state.replace('_', " "),
    };
    let state = match &primary.error {
        Some(error) => error.clone(),
        None => state,
    };
    let reached = match (&primary.unreached, primary.reached_s) {
        (Some(why), _) => format!("not reached: {why}"),
        (None, Some(age)) if tone == Tone::Bad => format!("reached {} ago", span(age)),
        (None, _) => String::new(),
    };
    let cells = vec![primary.server.clone(), "primary".to_owned(), state, none(), none(), reached];
    Row { tone, cells }
}

fn replica(replica: &ReplicaStatus) -> Row {
    let stopped = replica.state.ends_with("_stopped");
    let tone = match &*replica.state {
        "counted" => Tone::Good,
        "unreachable" | "no_data" => Tone::Bad,
        _ if stopped => Tone::Bad,
        _ => Tone::Plain,
    };
    // Where the state does not say it.
    let counts = match (stopped, replica.counts) {
        (true, true) => ", counts",
        (true, false) => ", left out",
        (false, _) => "",
    };
    let group = replica.group.as_ref().map(|group| format!(", {group}")).unwrap_or_default();
    let own = replica.threshold_s.map(|own| format!(" of {}", span(own))).unwrap_or_default();
    let trouble: Vec<&str> =
        [&replica.error, &replica.advice].into_iter().flatten().map(String::as_str).collect();
    let cells = vec![
        replica.server.clone(),
        format!("replica{group}"),
        format!("{}{counts}", replica.state.replace('_', " ")),
        replica.lag_s.map_or_else(none, span) + &own,
        span(replica.for_s),
        trouble.join("; "),
    ];
    Row { tone, cells }
}

fn throttled(cluster: &ClusterStatus) -> Table {
    let row = |throttled: &ThrottledStatus| {
        let why = match throttled.waiting {
            0 => format!("refused or gave up {} ago", span(throttled.asked_s)),
            _ => why(&throttled.why),
        };
        let cells = vec![
            throttled.app.clone(),
            throttled.rule.clone(),
            throttled.waiting.to_string(),
            throttled.oldest_s.map_or_else(none, span),
            why,
            throttled.for_s.map_or_else(none, span),
        ];
        Row { tone: Tone::Plain, cells }
    };
    Table {
        total: cluster.throttled_total,
        ..table(
            "Who is throttled, and why",
            &["app", "rule", "waiting", "longest", "why", "nothing passed for"],
            cluster.throttled.iter().map(row).collect(),
        )
    }
}

fn waiting(cluster: &ClusterStatus) -> Table {
    let row = |waiting: &WaitingStatus| {
        let cells = vec![
            waiting.connection_id.to_string(),
            waiting.user.clone(),
            waiting.client.clone(),
            waiting.app.clone(),
            waiting.rule.clone(),
            span(waiting.waited_s),
            span(waiting.left_s),
            why(&waiting.why),
        ];
        Row { tone: Tone::Plain, cells }
    };
    Table {
        total: cluster.waiting_total,
        ..table(
            "Connections that wait",
            &["id", "user", "client", "app", "rule", "waited", "left", "why"],
            cluster.waiting.iter().map(row).collect(),
        )
    }
}

/// How it fares now.
fn now_of(starved: &StarvedStatus) -> String {
    let of_share = starved.received_of_share.filter(|_| starved.kind == "below_share");
    match (of_share, starved.blocked) {
        (Some(part), _) => format!("gets {:.0} % of its fair share", part * 100.0),
        (None, true) => "blocked".to_owned(),
        (None, false) => "let through".to_owned(),
    }
}

fn starved(cluster: &ClusterStatus) -> Table {
    let row = |starved: &StarvedStatus| {
        let passed = starved.passed.iter().map(|passed| {
            let rule = passed.rule.as_ref().map(|rule| format!("rule {rule}"));
            let how = match (&*passed.passage, rule) {
                ("exempt", Some(rule)) => format!(" (exempt by {rule})"),
                ("exempt", None) => " (exempt)".to_owned(),
                ("ungated", Some(rule)) => format!(" (not gated by {rule})"),
                ("ungated", None) => " (no rule)".to_owned(),
                (_, Some(rule)) => format!(" ({rule})"),
                (_, None) => String::new(),
            };
            format!("{}{how}: {}", passed.app, passed.count)
        });
        let cause = starved.likely_cause.as_ref();
        let cause = cause.map(|cause| format!("the likely cause is {cause}"));
        let passed: Vec<String> = cause.into_iter().chain(passed).collect();
        let cells = vec![
            starved.app.clone(),
            starved.rule.clone(),
            format!("{} ago", span(starved.for_s)),
            format!("{:.1} %", starved.share * 100.0),
            now_of(starved),
            passed.join(", "),
        ];
        Row { tone: Tone::Bad, cells }
    };
    table(
        "Who is starved, and by whom",
        &["app", "rule", "since", "of the window", "now", "passed meanwhile"],
        cluster.starved.iter().map(row).collect(),
    )
}

fn apps(cluster: &ClusterStatus) -> Table {
    let row = |app: &AppStatus| {
        let observed = app.mode == "observe";
        let number = |counted: bool, count: u64| if counted { count.to_string() } else { none() };
        let cells = vec![
            app.app.clone(),
            app.rule.clone(),
            app.mode.clone(),
            // What observe would have held has passed.
            app.admitted.saturating_add(if observed { app.rejected } else { 0 }).to_string(),
            number(!observed, app.delayed),
            number(!observed, app.rejected),
            number(observed, app.rejected),
        ];
        Row { tone: Tone::Plain, cells }
    };
    Table {
        total: cluster.apps_total,
        ..table(
            "Apps, and what became of their statements since the start",
            &["app", "rule", "mode", "passed", "delayed", "refused", "would have been held"],
            cluster.apps.iter().map(row).collect(),
        )
    }
}

fn rules(cluster: &ClusterStatus) -> Table {
    let row = |rule: &RuleStatus| {
        let expires = match rule.expires_in_s {
            Some(left) if left <= 0 => format!("expired {} ago", whole(left.saturating_neg())),
            Some(left) => format!("in {}", whole(left)),
            None => "never".to_owned(),
        };
        let does = match &*rule.standing {
            "off_schedule" => format!("not in force (schedule): {}", rule.does),
            _ => rule.does.clone(),
        };
        let cells = vec![
            rule.rule.clone(),
            does,
            rule.mode.clone(),
            rule.hits.to_string(),
            expires,
            match &rule.author {
                Some(author) => format!("{author}, at runtime: {}", rule.reason),
                None => rule.reason.clone(),
            },
        ];
        Row { tone: Tone::Plain, cells }
    };
    Table {
        total: cluster.rules_total,
        ..table(
            "Rules, the first that matches decides",
            &["rule", "does", "mode", "statements", "expires", "reason"],
            cluster.rules.iter().map(row).collect(),
        )
    }
}

/// What a rule does.
pub(crate) fn action(rule: &Rule, policy: &ClusterPolicy) -> String {
    let runaway = rule.runaway.map(|runaway| format!(", runaway {}", runaway.in_words()));
    held_back(rule, policy) + &runaway.unwrap_or_default()
}

/// What it does with statements before they run.
fn held_back(rule: &Rule, policy: &ClusterPolicy) -> String {
    match rule.action {
        Action::Exempt => "exempt".to_owned(),
        Action::Deny => "deny".to_owned(),
        Action::Throttle { terms, .. } if terms.hold => match terms.on_refused_check {
            OnRefusedCheck::Delay => format!("hold, refused after {}", Span(terms.max_delay)),
            OnRefusedCheck::Reject => "hold, refused at once".to_owned(),
        },
        Action::Throttle { terms, gate, .. } => {
            let signals: Vec<&str> =
                policy.gate_signals(gate).map(|signal| &*signal.name).collect();
            let gate = if signals.is_empty() { "none".to_owned() } else { signals.join(", ") };
            let speed = rule.speed_to_expect().map(|speed| speed + ", ").unwrap_or_default();
            let limits = rule.limits_to_expect().map(|limits| limits + ", ").unwrap_or_default();
            let ratio = terms.ratio.as_f64();
            let until = match terms.on_refused_check {
                OnRefusedCheck::Delay => format!("up to {}", Span(terms.max_delay)),
                OnRefusedCheck::Reject => "refused at once".to_owned(),
            };
            format!("{speed}ratio {ratio}, gate {gate}, {limits}{until}")
        }
    }
}

fn table(caption: &'static str, columns: &'static [&'static str], rows: Vec<Row>) -> Table {
    let total = u64::try_from(rows.len()).unwrap_or(u64::MAX);
    Table { caption, columns, rows, total }
}

/// The reason, and what is behind it: the rule's own limit, or a signal with its value against its
/// threshold.
#[must_use]
pub fn why(obstacle: &Obstacle) -> String {
    let Obstacle { reason, signal, value, threshold, unit, budget, limit } = obstacle;
    let reason = reason.as_deref().unwrap_or("–");
    let unit = unit.as_deref().unwrap_or_default();
    if let Some(budget) = budget {
        return format!("{reason}: budget {budget}");
    }
    if let Some(limit) = limit {
        return format!("{reason}: {limit} of its rule");
    }
    let (Some(signal), Some(threshold)) = (signal, threshold) else { return reason.to_owned() };
    let value = value.map_or_else(|| "no value".to_owned(), |value| amount(value, unit));
    format!("{reason}: {signal} {value}, threshold {}", amount(*threshold, unit))
}

fn none() -> String {
    "–".to_owned()
}

/// A number to three places, with its unit.
#[must_use]
pub fn amount(value: f64, unit: &str) -> String {
    let number = format!("{value:.3}");
    let number = number.trim_end_matches('0').trim_end_matches('.');
    let space = if unit.is_empty() { "" } else { " " };
    format!("{number}{space}{unit}")
}

/// A time span of so many seconds, to two significant units at most.
#[must_use]
pub fn span(seconds: f64) -> String {
    Span(Duration::try_from_secs_f64(seconds).unwrap_or_default()).to_string()
}

fn whole(seconds: i64) -> Span {
    Span(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// A time span to two significant units at most.
struct Span(Duration);

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.0.as_secs();
        let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
        match seconds {
            0..10 => write!(f, "{:.2} s", self.0.as_secs_f64()),
            10..120 => write!(f, "{seconds} s"),
            120..7_200 => write!(f, "{minutes} min"),
            7_200..172_800 => write!(f, "{hours} h {} min", minutes % 60),
            _ => write!(f, "{days} d {} h", hours % 24),
        }
    }
}

#[cfg(test)]
mod tests;
