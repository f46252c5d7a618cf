//! Why one statement was refused, or waits, in the order in which it was decided.

use std::time::Duration;

use jiff::tz::TimeZone;
use policy::{Action, app_label};
use proxy::cluster::{Chain, ChainEnd, GateSignal};
use serde::{Deserialize, Serialize};

use crate::record::At;
use crate::words::{counted, quantity, span};

/// What is known of a statement, or of an app.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WhyAnswer {
    /// The id, or the app.
    pub asked: String,
    /// When.
    pub now: At,
    /// The chain in words: of an app, of each statement that is told of.
    pub sentences: Vec<String>,
    /// One statement, if an id was asked for. Of an app: that which waits longest, the last that
    /// was refused, and the longest wait of the last hour.
    pub statements: Vec<Why>,
}

/// The chain of one statement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Why {
    /// As in the client's error. None: it waits.
    pub id: Option<String>,
    /// When its wait ended.
    pub at: At,
    /// The cluster.
    pub cluster: String,
    /// The app as the client named it.
    pub app: String,
    /// Where that comes from; none where that is not known any more.
    pub source: Option<String>,
    /// The MySQL user.
    pub user: String,
    /// The client's address.
    pub client: String,
    /// The server's id of its connection.
    pub connection_id: u32,
    /// Its class.
    pub class: Option<String>,
    /// `refused`, `admitted` or `waiting`.
    pub end: String,
    /// Why it was refused, or waits.
    pub reason: Option<String>,
    /// How long it waited.
    pub waited_s: f64,
    /// What the client was advised.
    pub retry_after_s: Option<f64>,
    /// The rule.
    pub rule: RuleShown,
    /// The budget that decided, if one did.
    pub budget: Option<String>,
    /// The signals of the rule's gate.
    pub signals: Vec<SignalShown>,
    /// The signal that decided.
    pub signal: Option<String>,
    /// Its place in line. None: it did not wait.
    pub line: Option<LineShown>,
}

/// The rule as it stood.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleShown {
    /// Its name.
    pub rule: String,
    /// `throttle`, `hold`, `exempt` or `deny`.
    pub effect: String,
    /// Who made it, if it was made at runtime.
    pub author: Option<String>,
    /// Why it exists.
    pub reason: String,
    /// The probability that one check is lost.
    pub ratio: f64,
    /// How soon a lost check is repeated.
    pub check_interval_s: f64,
    /// The longest wait.
    pub max_delay_s: Option<f64>,
    /// When it ends.
    pub expires_at: Option<String>,
}

/// A signal of the gate.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SignalShown {
    /// Its name.
    pub signal: String,
    /// Its value; none without data.
    pub value: Option<f64>,
    /// What that is held against.
    pub threshold: f64,
    /// `s`, or nothing.
    pub unit: String,
    /// Whether it let statements through.
    pub open: bool,
    /// Where it was highest.
    pub server: Option<String>,
}

/// A place in line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LineShown {
    /// How many waited when it came.
    pub ahead_at_first: u64,
    /// How many wait in the cluster when it leaves.
    pub waiting: u64,
    /// Of those, who came before it. None: nobody looked, for too many were refused in that second.
    pub ahead: Option<u64>,
    /// The apps of those, with how many each has.
    pub ahead_by_app: Vec<AheadShown>,
}

/// An app that was ahead.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AheadShown {
    /// The app.
    pub app: String,
    /// How many of its statements.
    pub count: u64,
}

impl Why {
    /// Of what was noted.
    #[must_use]
    pub fn of(chain: &Chain) -> Self {
        let (end, reason, retry_after, signal) = match chain.end {
            ChainEnd::Refused { reason, signal, retry_after } => {
                let signal = signal.and_then(|place| chain.signals.get(place));
                let signal = signal.map(|signal| signal.name.to_string());
                ("refused", Some(reason), Some(retry_after.as_secs_f64()), signal)
            }
            ChainEnd::Admitted(reason) => ("admitted", reason, None, None),
        };
        let line = chain.line.as_ref().map(|line| LineShown {
            ahead_at_first: length(line.ahead_at_first),
            waiting: length(line.waiting),
            ahead: line.ahead.as_ref().map(|_| length(line.ahead_total)),
            ahead_by_app: line
                .ahead
                .iter()
                .flatten()
                .map(|(app, count)| AheadShown { app: text(app), count: length(*count) })
                .collect(),
        });
        Self {
            id: Some(format!("{:08x}", chain.id)),
            at: At(chain.at_unix.0.saturating_mul(1_000)),
            cluster: chain.cluster.to_string(),
            app: text(&chain.app),
            source: chain.source.map(|source| source.as_str().to_owned()),
            user: text(&chain.client.user),
            client: chain.client.address.to_string(),
            connection_id: chain.client.connection_id,
            class: Some(chain.class.as_str().to_owned()),
            end: end.to_owned(),
            reason: reason.map(|reason| reason.as_str().to_owned()),
            waited_s: chain.waited.as_secs_f64(),
            retry_after_s: retry_after,
            rule: chain
                .rule
                .as_ref()
                .map(|rule| RuleShown::of(rule, chain.ratio, chain.check_interval))
                .unwrap_or_default(),
            budget: chain.budget.as_deref().map(str::to_owned),
            signals: chain.signals.iter().map(SignalShown::of).collect(),
            signal,
            line,
        }
    }

    /// The chain in words.
    #[must_use]
    pub fn sentences(&self, now: At, zone: &TimeZone) -> Vec<String> {
        let mut said = vec![self.what(now, zone), self.who(), self.by_rule()];
        said.extend(self.dice());
        said.extend(self.gate());
        said.extend(self.in_line());
        said.push(self.remedy());
        said
    }

    fn what(&self, now: At, zone: &TimeZone) -> String {
        let waited = span(seconds(self.waited_s));
        let reason = self.reason.as_deref().unwrap_or("paced");
        let at = crate::words::at(self.at, now, zone);
        let app = &self.app;
        match (&*self.end, &self.id) {
            ("waiting", _) => format!("a statement of {app} has waited for {waited}: {reason}"),
            ("admitted", Some(id)) => {
                format!("statement {id} of {app} was admitted at {at} after it had waited {waited}")
            }
            (_, Some(id)) if self.waited_s > 0.0 => {
                format!("statement {id} of {app} was refused at {at} after {waited}: {reason}")
            }
            (_, Some(id)) => {
                format!("statement {id} of {app} was refused at once at {at}: {reason}")
            }
            (end, None) => format!("a statement of {app} was {end} at {at}"),
        }
    }

    fn who(&self) -> String {
        let Self { app, user, client, connection_id, .. } = self;
        let source = match self.source.as_deref() {
            Some("query_attribute") => ", named by a query attribute",
            Some("comment") => ", named by a comment in the statement",
            Some("tool") => ", a tool known by its comment in the statement",
            Some("session_variable") => ", named by SET @sluice_app",
            Some("sticky_tool") => ", the tool last seen on the connection",
            Some("connection_attribute") => ", named by a connection attribute",
            Some("user") => ", which is its MySQL user",
            Some(_) | None => "",
        };
        let class = self.class.as_deref().map(|class| format!(", class {class}"));
        let class = class.unwrap_or_default();
        format!(
            "identity: {app}{source}; user {user} at {client}, connection {connection_id}{class}"
        )
    }

    fn by_rule(&self) -> String {
        let RuleShown { rule, effect, author, reason, expires_at, .. } = &self.rule;
        let author = author.as_deref().map(|author| format!(", made by {author} at runtime"));
        let ends = expires_at.as_deref().map(|at| format!(", ends {at}"));
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let (author, ends) = (author.unwrap_or_default(), ends.unwrap_or_default());
        let budget = self.budget.as_deref().map(|budget| format!("; budget {budget} decided"));
        let budget = budget.unwrap_or_default();
        if rule.is_empty() {
            return format!("rule: none matched{budget}");
        }
        format!("rule: {rule} ({effect}{author}{ends}){because}{budget}")
    }

    fn dice(&self) -> Option<String> {
        let RuleShown { ratio, check_interval_s, effect, .. } = &self.rule;
        if effect != "throttle" {
            return None;
        }
        if *ratio <= 0.0 {
            return Some("dice: none (ratio 0)".to_owned());
        }
        let again = quantity(*check_interval_s, "s");
        Some(format!(
            "dice: a check is lost with a probability of {ratio} and repeated after {again}"
        ))
    }

    fn gate(&self) -> Option<String> {
        if self.rule.effect == "deny" || self.signals.is_empty() {
            return None;
        }
        let signals: Vec<String> = self.signals.iter().map(SignalShown::in_words).collect();
        Some(format!("gate: {}", signals.join("; ")))
    }

    fn in_line(&self) -> Option<String> {
        let LineShown { ahead_at_first, waiting, ahead, ahead_by_app } = self.line.as_ref()?;
        let first = counted(*ahead_at_first, "statement");
        let then = if self.end == "waiting" { "now" } else { "when it left" };
        let others = match ahead {
            None => String::new(),
            Some(0) => ", none of which had come before it".to_owned(),
            Some(ahead) => {
                let apps: Vec<String> =
                    ahead_by_app.iter().map(|it| format!("{} {}", it.app, it.count)).collect();
                format!(", {ahead} of which had come before it ({})", apps.join(", "))
            }
        };
        Some(format!("line: {first} waited when it came; {then} {waiting} wait{others}"))
    }

    /// What would have let it through.
    fn remedy(&self) -> String {
        let RuleShown { rule, author, max_delay_s, ratio, .. } = &self.rule;
        let app = &self.app;
        let delay = max_delay_s.map(|delay| quantity(delay, "s")).unwrap_or_default();
        let lift = if author.is_some() {
            format!("`sluice unthrottle {app}`")
        } else {
            format!("an edit of rule {rule} in the file")
        };
        let exempt = format!("`sluice exempt {app} --for 10m`");
        let would = match self.reason.as_deref() {
            Some("gate_closed") => {
                let shut = self.signals.iter().filter(|signal| !signal.open);
                let shut: Vec<String> = shut
                    .map(|signal| {
                        let limit = quantity(signal.threshold, &signal.unit);
                        format!("{} below {limit}", signal.signal)
                    })
                    .collect();
                let below =
                    if shut.is_empty() { "the gate open".to_owned() } else { shut.join(" and ") };
                format!("{below} within its max_delay of {delay}; a longer max_delay; or {exempt}")
            }
            Some("no_data") => format!(
                "a value for the gate's signals (`sluice status` says what keeps the probe); \
                 on_no_data: open; or {exempt}"
            ),
            Some("hold") => format!("the end of the hold, by {lift}"),
            Some("deny") => format!("nothing but {lift}"),
            Some("ratio") => format!(
                "luckier dice: one check in {} wins; a lower ratio, by {lift}; or {exempt}",
                quantity(1.0 / (1.0 - ratio).max(0.001), "")
            ),
            Some("queue_full") => {
                format!("fewer who wait already, or a larger max_queue of rule {rule}")
            }
            Some(reason) if reason.starts_with("budget_") => format!(
                "more of budget {}, or less that uses it",
                self.budget.as_deref().unwrap_or("(one that is gone)")
            ),
            Some("shutdown") => "nothing: Sluice was ending; the next one answers".to_owned(),
            Some(_) | None => format!(
                "fewer ahead of it, or a longer max_delay than {delay}; a larger weight of rule {rule}; \
                 or {exempt}"
            ),
        };
        match &*self.end {
            "waiting" => format!("what lets it through: {would}"),
            "admitted" => format!("what would have let it through sooner: {would}"),
            _ => format!("what would have let it through: {would}"),
        }
    }
}

impl RuleShown {
    /// As it stands.
    #[must_use]
    pub fn of(rule: &policy::Rule, ratio: f64, check_interval: Duration) -> Self {
        let max_delay = match rule.action {
            Action::Throttle { terms, .. } => Some(terms.max_delay.as_secs_f64()),
            Action::Exempt | Action::Deny => None,
        };
        Self {
            rule: rule.name.to_string(),
            effect: effect(&rule.action).to_owned(),
            author: rule.author.as_deref().map(str::to_owned),
            reason: rule.reason.clone(),
            ratio,
            check_interval_s: check_interval.as_secs_f64(),
            max_delay_s: max_delay,
            expires_at: rule.expires_at.map(|at| at.to_string()),
        }
    }
}

impl SignalShown {
    /// As it was.
    #[must_use]
    pub fn of(signal: &GateSignal) -> Self {
        Self {
            signal: signal.name.to_string(),
            value: signal.value,
            threshold: signal.threshold,
            unit: if signal.is_time { "s" } else { "" }.to_owned(),
            open: signal.lets_through,
            server: signal.server.as_deref().map(str::to_owned),
        }
    }

    fn in_words(&self) -> String {
        let Self { signal, value, threshold, unit, open, server } = self;
        let value = value.map_or_else(|| "no value".to_owned(), |value| quantity(value, unit));
        let server = server.as_deref().map(|server| format!(" at {server}")).unwrap_or_default();
        let state = if *open { "open" } else { "shut" };
        format!("{signal} {value}{server}, threshold {}: {state}", quantity(*threshold, unit))
    }
}

/// The effect of a rule, by the name that the API has.
#[must_use]
pub fn effect(action: &Action) -> &'static str {
    match action {
        Action::Exempt => "exempt",
        Action::Deny => "deny",
        Action::Throttle { terms, .. } if terms.hold => "hold",
        Action::Throttle { .. } => "throttle",
    }
}

/// The label of an app as metrics show it.
#[must_use]
pub fn label(app: &[u8]) -> String {
    let mut out = String::new();
    app_label(app, &mut out);
    out
}

pub(crate) fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn length(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

fn seconds(length: f64) -> Duration {
    Duration::try_from_secs_f64(length).unwrap_or_default()
}
