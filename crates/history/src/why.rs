//! Why one statement was refused, or waits, in the order in which it was decided.

mod words;

use std::time::Duration;

use policy::{Action, app_label};
use proxy::cluster::{Chain, ChainEnd, GateSignal, Stop};
use serde::{Deserialize, Serialize};

use crate::record::At;

/// What is known of a statement, or of an app.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WhyAnswer {
    /// The id, or the app.
    pub asked: String,
    /// When.
    pub now: At,
    /// The chains in words, one behind the other; where nothing is known, that.
    pub sentences: Vec<String>,
    /// One statement, if an id was asked for. Of an app: that which waits longest, the last that
    /// was refused, the longest wait of the last hour, and the last whose client left.
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
    /// `refused`, `admitted`, `left` (its client did, while it waited) or `waiting`.
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
    /// Why that exists.
    pub budget_reason: Option<String>,
    /// The guard that refused it, whatever its rule said.
    pub guard: Option<GuardShown>,
    /// What is in quarantine like it.
    pub quarantine: Option<QuarantineShown>,
    /// The signals of the rule's gate.
    pub signals: Vec<SignalShown>,
    /// The signal that decided.
    pub signal: Option<String>,
    /// The limit of its own rule that decided: `max_rate`, `max_in_flight` or `speed`.
    pub limit: Option<String>,
    /// Its place in line. None: it did not wait.
    pub line: Option<LineShown>,
    /// The chain in words; empty where it is kept, for its words are those of who asks.
    pub sentences: Vec<String>,
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
    /// The part of its own speed at which a session goes, if that is less than all of it.
    pub speed: Option<f64>,
}

/// A guard that refused.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardShown {
    /// Its name.
    pub guard: String,
    /// What it checks, as in the file.
    pub check: String,
    /// Where in the text, in bytes from its beginning.
    pub offset: u64,
    /// What is wrong, and how to write it.
    pub advice: String,
    /// Why the guard exists.
    pub reason: String,
}

/// What is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarantineShown {
    /// Its id, as `/api/v1/quarantine` has it.
    pub id: String,
    /// What makes statements like it: `digest` or `text`.
    pub by: String,
    /// Whose statement ran away.
    pub app: String,
    /// When.
    pub since: At,
    /// From then on it is free.
    pub until: At,
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
    /// What kept its gate shut besides the load, where that was known: a replica whose replication
    /// is stopped, or that refuses its probe.
    pub cause: Option<String>,
    /// What can be done about that.
    pub advice: Option<String>,
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
        let signal_at = |place: Option<usize>| {
            let signal = chain.signals.get(place?)?;
            Some(signal.name.to_string())
        };
        let (end, reason, retry_after, signal, limit) = match chain.end {
            ChainEnd::Refused { reason, signal, limit, retry_after } => {
                let retry_after = Some(retry_after.as_secs_f64());
                ("refused", Some(reason), retry_after, signal_at(signal), limit)
            }
            ChainEnd::Left { reason, signal, limit } => {
                ("left", Some(reason), None, signal_at(signal), limit)
            }
            ChainEnd::Admitted(reason) => ("admitted", reason, None, None, None),
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
            class: chain.class.map(|class| class.as_str().to_owned()),
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
            budget_reason: chain.budget_reason.as_deref().map(str::to_owned),
            guard: GuardShown::of(chain.stop.as_ref()),
            quarantine: QuarantineShown::of(&chain.cluster, chain.stop.as_ref()),
            signals: chain.signals.iter().map(SignalShown::of).collect(),
            signal,
            limit: limit.map(|limit| limit.as_str().to_owned()),
            line,
            sentences: Vec::new(),
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
            speed: (!rule.speed.is_full()).then(|| rule.speed.as_f64()),
        }
    }
}

impl GuardShown {
    fn of(stop: Option<&Stop>) -> Option<Self> {
        let stop = match stop? {
            Stop::Guard(stop) => stop,
            Stop::Quarantine(..) => return None,
        };
        Some(Self {
            guard: stop.guard.to_string(),
            check: stop.check.to_owned(),
            offset: stop.offset,
            advice: stop.advice.clone(),
            reason: stop.reason.clone(),
        })
    }
}

impl QuarantineShown {
    fn of(cluster: &str, stop: Option<&Stop>) -> Option<Self> {
        let (entry, times) = match stop? {
            Stop::Quarantine(entry, times) => (entry, times),
            Stop::Guard(_) => return None,
        };
        Some(Self {
            id: format!("{cluster}:{}", entry.id()),
            by: entry.likeness.by.as_str().to_owned(),
            app: text(&entry.app),
            since: At(times.since.0.saturating_mul(1_000)),
            until: At(times.until.0.saturating_mul(1_000)),
        })
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
            cause: signal.hindrance.as_ref().map(|hindrance| hindrance.why.clone()),
            advice: signal
                .hindrance
                .as_ref()
                .map(|hindrance| hindrance.advice.to_owned())
                .filter(|advice| !advice.is_empty()),
        }
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
