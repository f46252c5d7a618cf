//! `GET /api/v1/why/ID`: why a statement was refused or had to wait, or what keeps an app.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::refusal::{Error, Refusal};
use crate::request::{Parameter, Parameters, query};
use crate::{Shown, aside};

/// What may be asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    /// The zone in which times are said.
    tz: Option<String>,
}

impl Parameters for Asked {
    const KNOWN: &'static [Parameter] = &[Parameter::text("tz")];
}

pub(crate) async fn answer(
    State(Shown { state, slow, .. }): State<Shown>,
    Path(asked): Path<String>,
    uri: Uri,
) -> Result<Response, Refusal> {
    let Asked { tz } = query(&uri)?;
    // It may read the disk.
    let made = move || {
        let answer = state.history.why(&asked, tz.as_deref());
        answer.map(|answer| Json(answer).into_response())
    };
    let answer = aside(slow, made).await?;
    let answer = answer.map_err(|why| Refusal::new(Error::BadRequest, why))?;
    Ok(([(CACHE_CONTROL, "no-store")], answer).into_response())
}
