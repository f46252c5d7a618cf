//! `/api/v1`: what Sluice is doing now, for programs.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::status::{self, WAITING_MAX};
use crate::{AdminState, Shown, aside};

/// Waiting statements listed for each cluster unless the query says how many.
const WAITING_LEN: usize = 100;

/// What may be asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    /// Most waiting statements of each cluster; more than [`WAITING_MAX`] are not listed.
    limit: Option<usize>,
}

pub(crate) async fn status(State(shown): State<Shown>, Query(limits): Query<Limits>) -> Response {
    answer(shown, limits, status::gather).await
}

pub(crate) async fn waiting(State(shown): State<Shown>, Query(limits): Query<Limits>) -> Response {
    answer(shown, limits, status::waiting).await
}

async fn answer<T: Serialize + 'static>(
    Shown { state, slow, .. }: Shown,
    limits: Limits,
    read: fn(&AdminState, usize) -> T,
) -> Response {
    let limit = limits.limit.unwrap_or(WAITING_LEN).min(WAITING_MAX);
    // Megabytes are written on the slow thread too.
    let made = move || Json(read(&state, limit)).into_response();
    match aside(slow, made).await {
        Ok(answer) => ([(CACHE_CONTROL, "no-store")], answer).into_response(),
        Err(status) => status.into_response(),
    }
}
