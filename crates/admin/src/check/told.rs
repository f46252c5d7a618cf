//! What a check's answer says: a status, and one JSON object that clients of every generation of
//! Vitess' and freno's throttlers read, whatever the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{OnNoData, Reason, Refusal, RuleLimit, SignalKey, SignalState, SignalView};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use policy::{ClusterPolicy, PassReason, Signal, SignalKind};
use proxy::board::Hindrance;
use proxy::cluster::{CheckAnswer, CheckOutcome};
use serde::Serialize;

use super::{Asked, asked::NoRows};
use crate::Shown;

/// Go on.
pub(crate) const OK: u16 = 200;
/// There is no such cluster or signal.
pub(crate) const UNKNOWN: u16 = 404;
/// The app may not, whatever the load.
pub(crate) const DENIED: u16 = 417;
/// Not now.
pub(crate) const TOO_MANY: u16 = 429;
/// It cannot be said.
pub(crate) const ERROR: u16 = 500;

/// The answer to a check.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Told {
    /// As in HTTP: what clients of freno and of Vitess before 21 read.
    #[serde(rename = "StatusCode")]
    pub(crate) status: u16,
    /// What clients of Vitess from 21 on read.
    response_code: u8,
    value: f64,
    threshold: f64,
    message: String,
    pub(crate) recently_checked: bool,
    app_name: String,
    metric_name: String,
    scope: &'static str,
    metrics: BTreeMap<String, Metric>,
    summary: String,
    /// Why, by the names that Sluice's own errors have.
    pub(crate) reason: &'static str,
    /// The rule that decided; empty if none did.
    #[serde(serialize_with = "or_empty")]
    pub(crate) rule: Option<String>,
    /// The signal that decided; empty if none did.
    signal: String,
    /// The replica whose lag was too high for it, if that is why.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// When asking again has a fair chance, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip)]
    pub(crate) would_be_refused: bool,
}

/// One signal.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Metric {
    status_code: u16,
    response_code: u8,
    scope: &'static str,
    value: f64,
    threshold: f64,
    message: &'static str,
    app_name: String,
}

/// A threshold that a client names, in seconds.
#[derive(Debug, Clone)]
pub(crate) struct OwnThreshold {
    pub(crate) threshold: f64,
    /// The replica with the most lag of all that count.
    pub(crate) highest: Option<(Arc<str>, f64)>,
}

/// Why an app is denied without its rules being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// Another check was refused within the last second, and this one gives way.
    LowPriority,
    /// The app is there to be refused.
    Always,
}

impl Told {
    pub(crate) fn is_ok(&self) -> bool {
        self.status == OK
    }

    /// As an answer to somebody for whom what is not there is nothing to wait for.
    pub(crate) fn if_exists(mut self) -> Self {
        if self.status == UNKNOWN {
            self.set_status(OK);
        }
        self
    }

    /// It was held against a threshold of the client's own: so was the replica with the most lag.
    pub(crate) fn compared_with(mut self, own: Option<OwnThreshold>) -> Self {
        let Some(OwnThreshold { threshold, highest }) = own else { return self };
        self.threshold = threshold;
        if let Some((server, lag)) = highest.filter(|(_, lag)| *lag > self.value) {
            (self.value, self.server) = (lag, Some(server.to_string()));
        }
        self
    }

    /// Whose lag it is that was too high.
    pub(crate) fn name_replica(&mut self, policy: &ClusterPolicy, server: Option<&str>) {
        let is_lag = |signal: &Signal| {
            *signal.name == *self.signal && matches!(signal.kind, SignalKind::Lag { .. })
        };
        if self.server.is_some() {
            return;
        }
        if let Some(server) = server.filter(|_| policy.signals.iter().any(is_lag)) {
            self.server = Some(server.to_owned());
        }
    }

    /// What keeps its signal from letting it go on, besides the load: nothing that ends by itself.
    pub(crate) fn name_hindrance(&mut self, of: impl FnOnce(&str) -> Option<Hindrance>) {
        if let Some(Hindrance { why, .. }) = of(&self.signal) {
            self.summary.push_str(&format!(" ({why})"));
        }
    }

    fn set_status(&mut self, status: u16) {
        self.status = status;
        self.response_code = response_code(status);
    }
}

impl IntoResponse for Told {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
        let mut response = (status, headers, json_line(&self)).into_response();
        if let Some(ms) = self.retry_after_ms {
            let seconds = Duration::from_millis(ms).as_secs_f64().ceil().max(1.0);
            if let Ok(value) = HeaderValue::from_str(&format!("{seconds:.0}")) {
                response.headers_mut().insert(RETRY_AFTER, value);
            }
        }
        response
    }
}

/// One line of JSON.
pub(crate) fn json_line<T: Serialize>(value: &T) -> Vec<u8> {
    let mut json = serde_json::to_vec(value).unwrap_or_else(|error| {
        tracing::error!(%error, "an answer could not be written");
        b"{}".to_vec()
    });
    json.push(b'\n');
    json
}

/// What the cluster has answered. `named` are the signals that the client named.
pub(crate) fn told(asked: &Asked<'_>, answer: &CheckAnswer, named: &[SignalKey]) -> Told {
    let mut told = seen(asked, answer, named);
    match answer.outcome {
        CheckOutcome::Passed(why) => {
            told.reason = why.as_str();
            let app = &told.app_name;
            told.summary = match (why, &told.rule) {
                (PassReason::NoRule, _) => format!("{app} may go on: no rule matches it"),
                (_, Some(rule)) => format!("{app} may go on: rule {rule} ({})", told.reason),
                (_, None) => format!("{app} may go on ({})", told.reason),
            };
        }
        CheckOutcome::Allowed => {
            told.summary = format!("{} may go on", told.app_name);
        }
        CheckOutcome::Observed(would_be) => {
            told.would_be_refused = would_be.is_some();
            told.reason = would_be.map_or("", Reason::as_str);
            let rule = told.rule.as_deref().unwrap_or_default();
            let would_be = would_be.map(|why| format!("; enforced, it would refuse: {why}"));
            let (app, would_be) = (&told.app_name, would_be.unwrap_or_default());
            told.summary = format!("{app} may go on: rule {rule} only observes{would_be}");
        }
        CheckOutcome::Refused(refusal) => refuse(&mut told, answer, &refusal),
        CheckOutcome::Denied => {
            told.set_status(DENIED);
            APP_DENIED.clone_into(&mut told.message);
            told.reason = Reason::Deny.as_str();
            let rule = told.rule.as_deref().unwrap_or_default();
            told.summary = format!("{} is explicitly denied by rule {rule}", told.app_name);
        }
        CheckOutcome::Nameless => {
            told.set_status(DENIED);
            "no app indicated".clone_into(&mut told.message);
            told.reason = "no_app";
            told.summary = "denied: an app has a name of 1 to 255 bytes without control \
                            characters, of at most 16 levels"
                .to_owned();
        }
    }
    told
}

fn refuse(told: &mut Told, answer: &CheckAnswer, refusal: &Refusal) {
    let (status, message) = match refusal.reason {
        Reason::Ratio
        | Reason::Hold
        | Reason::Deny
        | Reason::Guard
        | Reason::Quarantined
        | Reason::BudgetQuery => (DENIED, APP_DENIED),
        Reason::GateClosed
        | Reason::Paced
        | Reason::BudgetConcurrency
        | Reason::BudgetRate
        | Reason::BudgetShare
        | Reason::QueueFull
        | Reason::Timeout => (TOO_MANY, THRESHOLD_EXCEEDED),
        Reason::NoData => (ERROR, NOT_COLLECTED),
        Reason::Shutdown => (ERROR, "Sluice is shutting down"),
    };
    told.set_status(status);
    message.clone_into(&mut told.message);
    told.reason = refusal.reason.as_str();
    told.retry_after_ms = u64::try_from(refusal.retry_after.as_millis()).ok();
    if let Some(cause) = refusal.cause {
        told.value = cause.value.unwrap_or(0.0);
        told.threshold = cause.threshold;
        if let Some(signal) = answer.policy.signal(cause.signal) {
            told.signal = signal.name.to_string();
            told.name_metric(signal);
        }
    }
    let Told { app_name: app, scope, metric_name: metric, value, threshold, .. } = &*told;
    let rule = told.rule.as_deref().unwrap_or("(none)");
    told.summary = match refusal.reason {
        Reason::Ratio
        | Reason::Hold
        | Reason::Deny
        | Reason::Guard
        | Reason::Quarantined
        | Reason::BudgetQuery => {
            format!("{app} is explicitly denied by rule {rule} ({})", refusal.reason)
        }
        Reason::GateClosed => format!(
            "{app} is denied due to {scope}/{metric} metric value {value} exceeding threshold \
             {threshold}"
        ),
        Reason::Paced if refusal.limit.is_some() => format!(
            "{app} has to come again: {} of rule {rule} is used up",
            refusal.limit.map_or("a limit", RuleLimit::as_str)
        ),
        Reason::BudgetConcurrency
        | Reason::BudgetRate
        | Reason::BudgetShare
        | Reason::Paced
        | Reason::QueueFull
        | Reason::Timeout => format!(
            "{app} has to come again: the pace is taken by others ({scope}/{metric} is {value} of \
             {threshold})"
        ),
        Reason::NoData => {
            format!("{app} is denied due to unknown or uncollected metric {scope}/{metric}")
        }
        Reason::Shutdown => format!("{app} is denied: Sluice is shutting down"),
    };
}

/// The rules have let a reader go on, and the lag does not.
pub(crate) fn too_much_lag(
    asked: &Asked<'_>,
    answer: &CheckAnswer,
    named: &[SignalKey],
    (reason, own): (Reason, Option<OwnThreshold>),
) -> Told {
    let mut told = seen(asked, answer, named).compared_with(own);
    let (status, message) = if reason == Reason::NoData {
        (ERROR, NOT_COLLECTED)
    } else {
        (TOO_MANY, THRESHOLD_EXCEEDED)
    };
    told.set_status(status);
    message.clone_into(&mut told.message);
    told.reason = reason.as_str();
    told.signal.clone_from(&told.metric_name);
    let Told { app_name: app, scope, metric_name: metric, value, threshold, .. } = &told;
    told.summary = format!(
        "{app} should not read from replicas: {scope}/{metric} is {value}, its threshold {threshold}"
    );
    told
}

/// Denied, without the rules being asked.
pub(crate) fn denied(asked: &Asked<'_>, answer: &CheckAnswer, why: Denied) -> Told {
    let mut told = seen(asked, answer, &[]);
    told.set_status(DENIED);
    APP_DENIED.clone_into(&mut told.message);
    told.reason = match why {
        Denied::LowPriority => "low_priority",
        Denied::Always => "always",
    };
    told.summary = match why {
        Denied::LowPriority => {
            told.retry_after_ms = Some(1_000);
            format!("{} gives way: a check without p=low was refused just now", told.app_name)
        }
        Denied::Always => format!("{} is explicitly denied: it is there for trials", told.app_name),
    };
    told
}

/// A signal that is asked for by name is not there.
pub(crate) fn no_metric(asked: &Asked<'_>, answer: &CheckAnswer, name: &[u8]) -> Told {
    let mut told = seen(asked, answer, &[]);
    told.set_status(UNKNOWN);
    NO_SUCH_METRIC.clone_into(&mut told.message);
    told.reason = "unknown_metric";
    (told.value, told.threshold) = (0.0, 0.0);
    told.metric_name = shown(name);
    let names = answer.policy.signals.iter().map(|signal| &*signal.name);
    told.summary =
        format!("there is no signal `{}`: there are {}", told.metric_name, listed(names));
    told
}

/// The cluster is not there.
pub(crate) fn no_cluster(state: &Shown, asked: &Asked<'_>) -> Told {
    let mut told = empty(asked);
    told.set_status(UNKNOWN);
    NO_SUCH_METRIC.clone_into(&mut told.message);
    told.reason = "unknown_cluster";
    let names = state.state.clusters.iter().map(|cluster| &*cluster.name);
    let wanted = shown(asked.cluster.unwrap_or_default());
    told.summary = if wanted.is_empty() {
        // freno's other types of stores.
        format!("the only type of store here is `mysql`, of which there are {}", listed(names))
    } else {
        format!("there is no cluster `{wanted}`: there are {}", listed(names))
    };
    told
}

/// What is asked cannot be read.
pub(crate) fn unreadable(asked: &Asked<'_>, _: &NoRows) -> Told {
    let mut told = empty(asked);
    told.set_status(ERROR);
    NoRows::MESSAGE.clone_into(&mut told.message);
    NoRows::MESSAGE.clone_into(&mut told.summary);
    told.reason = "bad_request";
    told
}

/// Go on, with what is known of the signals.
fn seen(asked: &Asked<'_>, answer: &CheckAnswer, named: &[SignalKey]) -> Told {
    let CheckAnswer { policy, .. } = answer;
    let mut told = empty(asked);
    let gate = answer.rule().and_then(|rule| match rule.action {
        policy::Action::Throttle { gate, .. } => Some(policy.gate_of(rule, gate, asked.app)),
        policy::Action::Exempt | policy::Action::Deny => None,
    });
    let of_gate: Vec<SignalKey> =
        policy.gate_signals(gate.unwrap_or(policy.default_gate)).map(|signal| signal.key).collect();
    let keys = if named.is_empty() { &of_gate[..] } else { named };
    for signal in keys.iter().filter_map(|key| policy.signal(*key)) {
        if let Some(view) = answer.signal(signal.key) {
            told.metrics.insert(signal.name.to_string(), metric(signal, view, &told.app_name));
        }
    }
    let lag = lag_of(policy);
    let first = keys.iter().find(|key| Some(**key) == lag).or(keys.first()).copied().or(lag);
    if let Some(signal) = first.and_then(|key| policy.signal(key)) {
        told.name_metric(signal);
        if let Some(view) = answer.signal(signal.key) {
            told.value = value_of(view);
            told.threshold = view.threshold;
        }
    }
    told.rule = answer.rule().map(|rule| rule.name.to_string());
    told
}

impl Told {
    fn name_metric(&mut self, signal: &Signal) {
        self.metric_name = signal.name.to_string();
        self.scope = signal.scope.as_str();
    }
}

fn empty(asked: &Asked<'_>) -> Told {
    Told {
        status: OK,
        response_code: response_code(OK),
        value: 0.0,
        threshold: 0.0,
        message: String::new(),
        recently_checked: false,
        app_name: shown(asked.app),
        metric_name: "lag".to_owned(),
        scope: "shard",
        metrics: BTreeMap::new(),
        summary: String::new(),
        reason: "",
        rule: None,
        signal: String::new(),
        server: None,
        retry_after_ms: None,
        would_be_refused: false,
    }
}

/// One signal by itself.
pub(crate) fn metric(signal: &Signal, view: &SignalView, app: &str) -> Metric {
    let (status, message) = match (view.lets_through, view.state) {
        (true, _) => (OK, ""),
        (false, SignalState::NoData { .. }) => (ERROR, NOT_COLLECTED),
        (false, SignalState::Open | SignalState::Closed) => (TOO_MANY, THRESHOLD_EXCEEDED),
    };
    Metric {
        status_code: status,
        response_code: response_code(status),
        scope: signal.scope.as_str(),
        value: value_of(view),
        threshold: view.threshold,
        message,
        app_name: app.to_owned(),
    }
}

/// Clients hold it against the threshold themselves, and the last value of a signal that is open
/// without one may be over that.
fn value_of(view: &SignalView) -> f64 {
    match view.state {
        SignalState::NoData { policy: OnNoData::Open } => 0.0,
        _ => view.value.unwrap_or(0.0),
    }
}

/// The signal that is the replication lag.
pub(crate) fn lag_of(policy: &ClusterPolicy) -> Option<SignalKey> {
    let lag = policy.signals.iter().find(|signal| matches!(signal.kind, SignalKind::Lag { .. }));
    lag.map(|signal| signal.key)
}

/// Vitess' enumeration.
const fn response_code(status: u16) -> u8 {
    match status {
        OK => 1,
        TOO_MANY => 2,
        DENIED => 3,
        UNKNOWN => 4,
        _ => 5,
    }
}

/// Bytes of a client as text.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let bytes = bytes.get(..SHOWN_LEN_MAX).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.take(LISTED_MAX).collect::<Vec<_>>().join(", ")
}

#[expect(clippy::ref_option, reason = "serde asks for a reference")]
fn or_empty<S: serde::Serializer>(name: &Option<String>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(name.as_deref().unwrap_or_default())
}

/// Longest name of a client's that an answer repeats.
const SHOWN_LEN_MAX: usize = 255;

/// Names of clusters or signals in one message.
const LISTED_MAX: usize = 20;

/// As the clients' own texts are.
const APP_DENIED: &str = "App denied";
const THRESHOLD_EXCEEDED: &str = "Threshold exceeded";
pub(crate) const NOT_COLLECTED: &str = "Metric not collected yet";
const NO_SUCH_METRIC: &str = "No such metric";
