//! `/api/v1`: what Sluice is doing now, for programs.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::request::{Parameter, Parameters, query};
use crate::status::{self, WAITING_MAX};
use crate::{AdminState, Shown, aside};

/// Waiting statements listed for each cluster unless the query says how many.
const WAITING_LEN: usize = 100;

/// What may be asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Limits {
    /// Most waiting statements of each cluster; more than [`WAITING_MAX`] are not listed.
    limit: Option<usize>,
}

impl Parameters for Limits {
    const KNOWN: &'static [Parameter] = &[Parameter::number("limit")];
}

pub(crate) async fn status(State(shown): State<Shown>, asked: Uri) -> Result<Response, Refusal> {
    answer(shown, &asked, status::gather).await
}

pub(crate) async fn waiting(State(shown): State<Shown>, asked: Uri) -> Result<Response, Refusal> {
    answer(shown, &asked, status::waiting).await
}

async fn answer<T: Serialize + 'static>(
    Shown { state, slow, .. }: Shown,
    asked: &Uri,
    read: fn(&AdminState, usize) -> T,
) -> Result<Response, Refusal> {
    let Limits { limit } = query(asked)?;
    let limit = limit.unwrap_or(WAITING_LEN).min(WAITING_MAX);
    // Megabytes are written on the slow thread too.
    let made = move || Json(read(&state, limit)).into_response();
    let answer = aside(slow, made).await?;
    Ok(([(CACHE_CONTROL, "no-store")], answer).into_response())
}
