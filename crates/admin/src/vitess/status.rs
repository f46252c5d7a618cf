//! `status`: one object with what every generation of Vitess shows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::SignalState;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use policy::UnixTime;
use proxy::cluster::{CheckAnswer, Cluster};
use serde::Serialize;

use super::rules::{AppRule, throttled};
use crate::check::asked::Parameters;
use crate::check::told::{json_line, lag_of};
use crate::{Shown, aside};

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Status {
    keyspace: String,
    shard: &'static str,
    is_leader: bool,
    is_open: bool,
    is_enabled: bool,
    is_dormant: bool,
    recently_checked: bool,
    query: &'static str,
    custom_query: &'static str,
    threshold: f64,
    metric_name_used_as_default: String,
    aggregated_metrics: BTreeMap<String, Aggregated>,
    metrics_thresholds: BTreeMap<String, f64>,
    metrics_health: BTreeMap<String, Health>,
    throttled_apps: Vec<AppRule>,
    app_checked_metrics: BTreeMap<String, String>,
    recent_apps: BTreeMap<String, Recent>,
}

/// A metric in error is an object without a value.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Aggregated {
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
}

/// When a signal was last healthy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Health {
    last_healthy_at: String,
    seconds_since_last_healthy: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Recent {
    app_name: String,
    checked_at: String,
    status_code: u16,
}

pub(crate) async fn status(State(shown): State<Shown>, request: Parts) -> Response {
    let parameters = Parameters::of(&request.uri);
    let json = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    match shown.cluster(parameters.get("cluster")) {
        Some((index, cluster)) => {
            let (cluster, slow) = (Arc::clone(cluster), Arc::clone(&shown.slow));
            // It lists the rules that stand: there may be thousands.
            match aside(slow, move || json_line(&status_of(&shown, index, &cluster))).await {
                Ok(status) => (json, status).into_response(),
                Err(refusal) => refusal.into_response(),
            }
        }
        None => (StatusCode::NOT_FOUND, json, b"{}\n".to_vec()).into_response(),
    }
}

fn status_of(shown: &Shown, index: usize, cluster: &Arc<Cluster>) -> Status {
    let answer = cluster.look();
    let (now, unix) = (cluster.now(), cluster.clock().unix_seconds());
    let CheckAnswer { policy, signals, .. } = &answer;
    let lag = lag_of(policy);
    let mut status = Status {
        keyspace: cluster.name.to_string(),
        shard: "0",
        is_leader: true,
        is_open: true,
        is_enabled: true,
        is_dormant: false,
        recently_checked: shown.checks.of(index).is_recently_checked(now),
        query: "",
        custom_query: "",
        threshold: lag.and_then(|key| answer.signal(key)).map_or(0.0, |view| view.threshold),
        metric_name_used_as_default: "lag".to_owned(),
        aggregated_metrics: BTreeMap::new(),
        metrics_thresholds: BTreeMap::new(),
        metrics_health: BTreeMap::new(),
        throttled_apps: throttled(shown, &cluster.name, unix),
        app_checked_metrics: BTreeMap::new(),
        recent_apps: BTreeMap::new(),
    };
    for signal in &policy.signals {
        let Some(view) = signals.iter().find(|view| view.key == signal.key) else { continue };
        let usable = !matches!(view.state, SignalState::NoData { .. });
        let scope = signal.scope.as_str();
        let name = format!("{scope}/{}", signal.name);
        let value = view.value.filter(|_| usable);
        if lag == Some(signal.key) {
            status.aggregated_metrics.insert(format!("mysql/{scope}"), Aggregated { value });
        }
        status.aggregated_metrics.insert(name.clone(), Aggregated { value });
        status.metrics_thresholds.insert(signal.name.to_string(), view.threshold);
        status.metrics_health.insert(name, health(&answer, signal.key, now, unix));
    }
    for recent in shown.checks.recent.within(now, Duration::from_secs(3_600)) {
        let checked_at = ago(unix, recent.ago);
        let app_name = recent.app.clone();
        let entry = Recent { app_name, checked_at, status_code: recent.status };
        status.recent_apps.insert(recent.app, entry);
    }
    status
}

/// When a signal was last healthy: now, if it is.
pub(crate) fn health(
    answer: &CheckAnswer,
    key: admission::SignalKey,
    now: admission::MonoTime,
    unix: i64,
) -> Health {
    let since = answer.signal(key).map_or(Duration::ZERO, |view| match view.state {
        SignalState::Open => Duration::ZERO,
        SignalState::Closed => now.saturating_since(view.since),
        SignalState::NoData { .. } => view.age.unwrap_or_else(|| now.saturating_since(view.since)),
    });
    Health { last_healthy_at: ago(unix, since), seconds_since_last_healthy: since.as_secs() }
}

/// A time so long before `unix`, as RFC 3339 writes it.
pub(crate) fn ago(unix: i64, ago: Duration) -> String {
    let seconds = i64::try_from(ago.as_secs()).unwrap_or(i64::MAX);
    UnixTime(unix.saturating_sub(seconds)).to_string()
}
