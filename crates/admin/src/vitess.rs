//! The dialect of Vitess' tablet throttler: `/throttler/…`.
//!
//! `check` and `check-self` are one here: rules, not tablets, say what an app waits for. What its
//! clients send and read, by generation, is in docs/CHECKS.md.

mod go_duration;
pub(crate) mod rules;
pub(crate) mod status;

use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::Shown;
use crate::check::asked::Parameters;
use crate::check::throttling::{Way, methods};
use crate::check::{Asked, Dialect, Question, Urgency, ask, told};

/// The app of a client that names none, as in Vitess from 21 on.
const DEFAULT_APP: &[u8] = b"vitess";

pub(crate) fn routes() -> Router<Shown> {
    let change =
        |way| methods(way, move |state, request: Parts| rules::change(way, state, request));
    Router::new()
        .route("/throttler/check", get(check).post(check))
        .route("/throttler/check-self", get(check).post(check))
        .route("/throttler/throttle-app", change(Way::Throttle))
        .route("/throttler/unthrottle-app", change(Way::Unthrottle))
}

/// What names apps and clients.
pub(crate) fn names() -> Router<Shown> {
    Router::new()
        .route("/throttler/status", get(status::status))
        .route("/throttler/throttled-apps", get(rules::throttled_apps))
}

/// `app`, `p=low`, `m` (again and again), `cluster`, `rows`.
async fn check(State(shown): State<Shown>, request: Parts) -> Response {
    let parameters = Parameters::of(&request.uri);
    let metrics = parameters.list("m");
    let rows = parameters.rows();
    let asked = Asked {
        dialect: Dialect::Vitess,
        cluster: parameters.get("cluster"),
        app: parameters.get("app").unwrap_or(DEFAULT_APP),
        urgency: urgency(&parameters),
        question: Question::Write { rows: *rows.as_ref().unwrap_or(&None), metrics: &metrics },
    };
    match rows {
        Ok(_) => ask(&shown, &asked, &request).await.into_response(),
        Err(no_rows) => told::unreadable(&asked, &no_rows).into_response(),
    }
}

pub(crate) fn urgency(parameters: &Parameters) -> Urgency {
    match parameters.get("p") {
        Some(b"low") => Urgency::Low,
        Some(_) | None => Urgency::Normal,
    }
}
