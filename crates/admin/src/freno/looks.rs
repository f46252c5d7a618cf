//! What freno shows of itself and of its stores.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use admission::SignalState;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::PATHS;
use super::rules::general;
use crate::Shown;
use crate::check::asked::{Parameters, path};
use crate::check::throttling::MINUTE;
use crate::check::told::{self, json_line, lag_of};
use crate::vitess::status::health;

pub(crate) fn routes() -> Router<Shown> {
    Router::new()
        .route("/aggregated-metrics", get(aggregated_metrics))
        .route("/metrics-health", get(metrics_health))
        .route("/skip-host/{host}", get(skip_host).post(skip_host))
        .route("/skip-host/{host}/ttl/{minutes}", get(skip_host).post(skip_host))
        .route("/recover-host/{host}", post(ok).get(ok))
        .route("/skipped-hosts", get(|| async { json(&BTreeMap::<String, String>::new()) }))
        .route("/lb-check", get(ok))
        .route("/_ping", get(ok))
        .route("/status", get(ok))
        .route("/leader-check", get(leader_check))
        .route("/raft/leader", get(hostname))
        .route("/consensus/leader", get(hostname))
        .route("/hostname", get(hostname))
        .route("/raft/state", get(|| async { json(&"Leader") }))
        .route("/consensus/state", get(|| async { json(&"Leader") }))
        .route("/consensus/status", get(consensus_status))
        .route("/config/memcache", get(memcache))
        .route("/help", get(|| async { json(&PATHS) }))
}

pub(crate) fn names() -> Router<Shown> {
    Router::new()
        .route("/recent-apps", get(recent_apps))
        .route("/recent-apps/{minutes}", get(recent_apps))
}

fn json<T: Serialize>(value: &T) -> Response {
    ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], json_line(value))
        .into_response()
}

async fn ok() -> Response {
    general(told::OK, "OK")
}

async fn skip_host() -> Response {
    general(
        told::ERROR,
        "Sluice leaves no host out by request: see `ignore_slowest` and `replicas` in its file",
    )
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Recent {
    checked_at_epoch: i64,
    minutes_since_checked: u64,
}

/// Of the minutes that the path names, or of a day.
async fn recent_apps(State(shown): State<Shown>, request: Parts) -> Response {
    let minutes = path(&request.uri)
        .get(1)
        .map(|text| std::str::from_utf8(text).ok().and_then(|text| text.parse::<u32>().ok()));
    let within = match minutes {
        None => MINUTE.saturating_mul(24 * 60),
        Some(Some(minutes)) => MINUTE.saturating_mul(minutes),
        Some(None) => return general(told::ERROR, "not a number of minutes"),
    };
    let Some(cluster) = shown.state.clusters.first() else { return ok().await };
    let (now, unix) = (cluster.now(), cluster.clock().unix_seconds());
    let recent = shown.checks.recent.within(now, within).into_iter().map(|recent| {
        let ago = i64::try_from(recent.ago.as_secs()).unwrap_or(i64::MAX);
        let entry = Recent {
            checked_at_epoch: unix.saturating_sub(ago),
            minutes_since_checked: recent.ago.as_secs() / MINUTE.as_secs(),
        };
        (format!("{}/{}", recent.app, recent.address), entry)
    });
    json(&recent.collect::<BTreeMap<_, _>>())
}

/// The lag of every cluster, as text; `brief=true`: with three decimals.
async fn aggregated_metrics(State(shown): State<Shown>, request: Parts) -> Response {
    let brief = Parameters::of(&request.uri).get("brief") == Some(b"true");
    let decimals = if brief { 3 } else { 6 };
    let metrics = shown.state.clusters.iter().map(|cluster| {
        let answer = cluster.look();
        let view = lag_of(&answer.policy).and_then(|key| answer.signal(key));
        let usable = view.filter(|view| !matches!(view.state, SignalState::NoData { .. }));
        let text = match usable.and_then(|view| view.value) {
            Some(value) => format!("{value:.decimals$}"),
            None => format!("error: {}", told::NOT_COLLECTED),
        };
        (format!("mysql/{}", cluster.name), text)
    });
    json(&metrics.collect::<BTreeMap<_, _>>())
}

async fn metrics_health(State(shown): State<Shown>) -> Response {
    let metrics = shown.state.clusters.iter().filter_map(|cluster| {
        let answer = cluster.look();
        let key = lag_of(&answer.policy)?;
        let health = health(&answer, key, cluster.now(), cluster.clock().unix_seconds());
        Some((format!("mysql/{}", cluster.name), health))
    });
    json(&metrics.collect::<BTreeMap<_, _>>())
}

/// Every Sluice answers for itself, until it drains.
async fn leader_check(State(shown): State<Shown>) -> Response {
    if shown.state.draining.load(Ordering::Relaxed) {
        let mut response = json(&"HTTP 404");
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    } else {
        json(&"HTTP 200")
    }
}

async fn hostname(State(shown): State<Shown>) -> Response {
    match shown.checks.host() {
        Some(name) => json(&name),
        None => general(told::ERROR, "the name of this host is not known"),
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Consensus<'h> {
    #[serde(rename = "ServiceID")]
    service_id: &'h str,
    healthy: bool,
    is_leader: bool,
    leader: &'h str,
    state: &'static str,
    domain: &'static str,
    share_domain: &'static str,
}

async fn consensus_status(State(shown): State<Shown>) -> Response {
    let leads = !shown.state.draining.load(Ordering::Relaxed);
    let name = shown.checks.host().unwrap_or_default();
    json(&Consensus {
        service_id: name,
        healthy: leads,
        is_leader: leads,
        leader: name,
        state: "Leader",
        domain: "",
        share_domain: "",
    })
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Memcache {
    memcache_servers: [&'static str; 0],
    memcache_path: &'static str,
}

async fn memcache() -> Response {
    json(&Memcache { memcache_servers: [], memcache_path: "" })
}
