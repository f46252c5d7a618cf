//! The dialect of freno: `/check/APP/mysql/CLUSTER` and its family. A store is a cluster.
//!
//! Differences from freno, endpoint by endpoint, are in docs/CHECKS.md.

mod looks;
mod rules;

use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::Shown;
use crate::check::asked::{Parameters, path};
use crate::check::throttling::{Way, methods};
use crate::check::told::{self, Told};
use crate::check::{Asked, Dialect, Question, ask};
use crate::vitess::urgency;

/// The one type of store that there is.
const MYSQL: &[u8] = b"mysql";

const INCOMPLETE: &str = "a part of the path is missing";

/// What is listed by `/help`.
const PATHS: [&str; 31] = [
    "/check/:app/:storeType/:storeName",
    "/check-if-exists/:app/:storeType/:storeName",
    "/check-read/:app/:storeType/:storeName/:threshold",
    "/check-read-if-exists/:app/:storeType/:storeName/:threshold",
    "/throttle-app/:app",
    "/throttle-app/:app/ratio/:ratio",
    "/throttle-app/:app/ttl/:ttlMinutes",
    "/throttle-app/:app/ttl/:ttlMinutes/ratio/:ratio",
    "/unthrottle-app/:app",
    "/throttled-apps",
    "/recent-apps",
    "/recent-apps/:lastMinutes",
    "/aggregated-metrics",
    "/metrics-health",
    "/skip-host/:hostName",
    "/skip-host/:hostName/ttl/:ttlMinutes",
    "/recover-host/:hostName",
    "/skipped-hosts",
    "/lb-check",
    "/_ping",
    "/status",
    "/leader-check",
    "/raft/leader",
    "/raft/state",
    "/consensus/leader",
    "/consensus/state",
    "/consensus/status",
    "/hostname",
    "/config/memcache",
    "/help",
    "/throttler/check (Vitess' dialect)",
];

pub(crate) fn routes() -> Router<Shown> {
    let change =
        |way| methods(way, move |state, request: Parts| rules::change(way, state, request));
    Router::new()
        .route("/check/{app}/{kind}/{store}", get(check))
        .route("/check-if-exists/{app}/{kind}/{store}", get(check))
        .route("/check-read/{app}/{kind}/{store}/{threshold}", get(check_read))
        .route("/check-read-if-exists/{app}/{kind}/{store}/{threshold}", get(check_read))
        .route("/throttle-app/{app}", change(Way::Throttle))
        .route("/throttle-app/{app}/ratio/{ratio}", change(Way::Throttle))
        .route("/throttle-app/{app}/ttl/{ttl}", change(Way::Throttle))
        .route("/throttle-app/{app}/ttl/{ttl}/ratio/{ratio}", change(Way::Throttle))
        .route("/unthrottle-app/{app}", change(Way::Unthrottle))
        .merge(looks::routes())
}

/// What names apps and clients.
pub(crate) fn names() -> Router<Shown> {
    looks::names().route("/throttled-apps", get(rules::throttled_apps))
}

async fn check(State(shown): State<Shown>, request: Parts) -> Response {
    let parts = path(&request.uri);
    let [family, app, kind, store] = &parts[..] else {
        return rules::general(told::ERROR, INCOMPLETE);
    };
    let parameters = Parameters::of(&request.uri);
    let rows = parameters.rows();
    let metrics = parameters.list("m");
    let mut asked = asked((app, kind, store), &parameters);
    asked.question = Question::Write { rows: *rows.as_ref().unwrap_or(&None), metrics: &metrics };
    let told = match rows {
        Ok(_) => ask(&shown, &asked, &request).await,
        Err(no_rows) => told::unreadable(&asked, &no_rows),
    };
    if_wanted(told, family).into_response()
}

async fn check_read(State(shown): State<Shown>, request: Parts) -> Response {
    let parts = path(&request.uri);
    let [family, app, kind, store, threshold] = &parts[..] else {
        return rules::general(told::ERROR, INCOMPLETE);
    };
    let threshold = std::str::from_utf8(threshold).ok();
    let threshold = threshold.and_then(|text| text.parse::<f64>().ok()).filter(|t| t.is_finite());
    let Some(threshold) = threshold else {
        return rules::general(told::ERROR, "the threshold is not a number");
    };
    let parameters = Parameters::of(&request.uri);
    let mut asked = asked((app, kind, store), &parameters);
    // Zero and less stand for the configured one.
    let threshold = Some(threshold).filter(|threshold| *threshold > 0.0);
    asked.question = Question::Read { threshold };
    if_wanted(ask(&shown, &asked, &request).await, family).into_response()
}

fn asked<'q>(
    (app, kind, store): (&'q [u8], &[u8], &'q [u8]),
    parameters: &Parameters,
) -> Asked<'q> {
    // No other type of store has any: an empty name is nobody's.
    let store = if kind == MYSQL { store } else { b"" };
    Asked {
        dialect: Dialect::Freno,
        cluster: Some(store),
        app,
        urgency: urgency(parameters),
        question: Question::Read { threshold: None },
    }
}

/// `…-if-exists` takes what is not there for nothing to wait for.
fn if_wanted(told: Told, family: &[u8]) -> Told {
    if family.ends_with(b"-if-exists") { told.if_exists() } else { told }
}
