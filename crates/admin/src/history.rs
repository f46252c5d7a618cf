//! `GET /api/v1/history`: what happened, in sentences, intervals and minutes.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use history::Query;
use serde::Deserialize;

use crate::refusal::{Error, Refusal};
use crate::request::{Parameter, Parameters, query};
use crate::{Shown, aside};

/// What may be asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    app: Option<String>,
    cluster: Option<String>,
    since: Option<String>,
    until: Option<String>,
    /// The zone in which times are read and said.
    tz: Option<String>,
}

impl Parameters for Asked {
    const KNOWN: &'static [Parameter] = &[
        Parameter::text("app"),
        Parameter::text("cluster"),
        Parameter::text("since"),
        Parameter::text("until"),
        Parameter::text("tz"),
    ];
}

pub(crate) async fn answer(State(shown): State<Shown>, asked: Uri) -> Result<Response, Refusal> {
    let Asked { app, cluster, since, until, tz: zone } = query(&asked)?;
    let wanted = Query { app, cluster, since, until, zone };
    let Shown { state, slow, .. } = shown;
    if let Some(name) = &wanted.cluster
        && !state.clusters.iter().any(|cluster| *cluster.name == **name)
    {
        return Err(Refusal::new(Error::NotFound, format!("there is no cluster `{name}`")));
    }
    // It reads the disk, and may have much to put together.
    let made = move || state.history.answer(&wanted).map(|answer| Json(answer).into_response());
    let answer = aside(slow, made).await?;
    let answer = answer.map_err(|why| Refusal::new(Error::BadRequest, why))?;
    Ok(([(CACHE_CONTROL, "no-store")], answer).into_response())
}
