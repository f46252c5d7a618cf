//! The dialect of Vitess' tablet throttler: `/throttler/…`.
//!
//! `check` and `check-self` are one here: rules, not tablets, say what an app waits for. What its
//! clients send and read, by generation, is in docs/CHECKS.md.

mod go_duration;
mod rules;
mod status;

use axum::Router;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::Shown;
use crate::check::asked::Parameters;
use crate::check::{Asked, Dialect, Question, Urgency, ask, told};

/// The app of a client that names none, as in Vitess from 21 on.
const DEFAULT_APP: &[u8] = b"vitess";

pub(crate) fn routes() -> Router<Shown> {
    let changes = |path: &str, router: Router<Shown>, lifts: rules::Way| {
        let answer = move |state, request| rules::change(lifts, state, request);
        router.route(path, post(answer).get(answer).delete(answer))
    };
    let router = Router::new()
        .route("/throttler/check", get(check).post(check))
        .route("/throttler/check-self", get(check).post(check))
        .route("/throttler/status", get(status::status))
        .route("/throttler/throttled-apps", get(rules::throttled_apps));
    let router = changes("/throttler/throttle-app", router, rules::Way::Throttle);
    changes("/throttler/unthrottle-app", router, rules::Way::Unthrottle)
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
        Ok(_) => ask(&shown, &asked, &request).into_response(),
        Err(no_rows) => told::unreadable(&asked, &no_rows).into_response(),
    }
}

pub(crate) fn urgency(parameters: &Parameters) -> Urgency {
    match parameters.get("p") {
        Some(b"low") => Urgency::Low,
        Some(_) | None => Urgency::Normal,
    }
}
