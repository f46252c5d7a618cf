//! The console: one page for people at `/`, and what keeps it live.
//!
//! ```text
//! Feed::run ── once a second ──▶ Reading of each cluster ──▶ Past (an hour)
//!                                       │ while somebody looks
//!                                       ▼
//!                              one frame, built once ──▶ every viewer's channel ──▶ its connection
//! ```
//!
//! The page is in the binary and asks no other host for anything. A viewer that does not read misses
//! frames and delays nobody.

mod apps;
mod assets;
mod changes;
mod feed;
mod frame;
mod past;
mod reading;
mod viewer;

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Uri;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde::{Deserialize, Serialize};

pub(crate) use self::apps::Apps;
pub(crate) use self::assets::{asset, document};
pub(crate) use self::feed::Feed;
use crate::refusal::Refusal;
use crate::request::{NoParameters, Parameter, Parameters, query};
use crate::{Shown, aside};

/// `GET /api/v1/events`.
pub(crate) fn events() -> MethodRouter<Shown> {
    get(stream)
}

/// `GET /api/v1/apps`.
pub(crate) fn apps() -> MethodRouter<Shown> {
    get(list_apps)
}

/// `GET /api/v1/access`.
pub(crate) fn access() -> MethodRouter<Shown> {
    get(whose)
}

#[derive(Debug, Deserialize)]
struct Streamed {
    /// Frames after which the stream ends; none: it does not.
    frames: Option<u64>,
}

impl Parameters for Streamed {
    const KNOWN: &'static [Parameter] = &[Parameter::number("frames")];
}

async fn stream(State(shown): State<Shown>, asked: Uri) -> Result<Response, Refusal> {
    let Streamed { frames } = query(&asked)?;
    let receiver = shown.feed.subscribe()?;
    let feed = Arc::clone(&shown.feed);
    let past = aside(shown.slow, move || feed.past()).await?;
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, viewer::body(past, receiver, frames)).into_response())
}

async fn list_apps(State(shown): State<Shown>, asked: Uri) -> Result<Response, Refusal> {
    let NoParameters {} = query(&asked)?;
    let (state, apps) = (shown.state, shown.apps);
    let json = aside(shown.slow, move || apps.json(&state)).await?;
    Ok(([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], json).into_response())
}

/// Who may change something.
#[derive(Serialize)]
struct Whose<'a> {
    /// The author that changes of this request would have.
    author: &'a str,
}

async fn whose(State(shown): State<Shown>, request: Request) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let NoParameters {} = query(&parts.uri)?;
    let author = shown.state.access.whose(&parts)?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(Whose { author: &author.0 })).into_response())
}
