//! The requests of `/api/v1/rules`.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use fleet::{Lift, LiftError, MakeError, Receipt};
use policy::RUNTIME_PREFIX;
use serde::Deserialize;

use super::draft::{self, KeyFault};
use super::{Changed, LIFTED, MADE, Source, Wanted, changed, gather};
use crate::access::Author;
use crate::refusal::{Error, Refusal};
use crate::request::{Parameter, Parameters, query, read_json};
use crate::{AdminState, Shown, aside};

/// Which rules are listed.
#[derive(Debug, Deserialize)]
struct Listed {
    cluster: Option<String>,
    source: Option<Source>,
}

impl Parameters for Listed {
    const KNOWN: &'static [Parameter] =
        &[Parameter::text("cluster"), Parameter::word("source", &Source::WORDS)];
}

/// Whose rules are lifted, where a name does not say.
#[derive(Debug, Deserialize)]
struct Whose {
    app: Option<String>,
    user: Option<String>,
    cluster: Option<String>,
}

impl Parameters for Whose {
    const KNOWN: &'static [Parameter] =
        &[Parameter::text("app"), Parameter::text("user"), Parameter::text("cluster")];
}

/// Where the rule of a name is lifted.
#[derive(Debug, Deserialize)]
struct Where {
    cluster: Option<String>,
}

impl Parameters for Where {
    const KNOWN: &'static [Parameter] = &[Parameter::text("cluster")];
}

pub(crate) async fn list(
    State(Shown { state, slow, .. }): State<Shown>,
    asked: Uri,
) -> Result<Response, Refusal> {
    let Listed { cluster, source } = query(&asked)?;
    check_cluster(&state, cluster.as_deref())?;
    let wanted = Wanted { cluster, source };
    // With thousands of rules the answer is megabytes.
    let answer = aside(slow, move || Json(gather(&state, &wanted)).into_response()).await?;
    Ok(([(CACHE_CONTROL, "no-store")], answer).into_response())
}

pub(crate) async fn make(
    State(Shown { state, .. }): State<Shown>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let author = state.access.author(&parts)?;
    no_query(&parts)?;
    let body = read_json(&parts.headers, body).await?;
    let clusters: Vec<&str> = state.clusters.iter().map(|cluster| &*cluster.name).collect();
    let draft = draft::read(&body, &clusters).map_err(|faults| faulty(&faults))?;
    let (rules, by) = (state.rules.clone(), Arc::clone(&author.0));
    // Whoever hangs up leaves a rule that is made, or none: never one that is half kept.
    let made = tokio::spawn(async move { rules.make(draft, &by).await });
    let receipt = made.await.map_err(broken)?.map_err(not_made)?;
    Ok(answer(&state, MADE, &author, &receipt))
}

pub(crate) async fn lift_named(
    State(Shown { state, .. }): State<Shown>,
    request: Request,
) -> Result<Response, Refusal> {
    let (mut parts, _) = split(request);
    let author = state.access.author(&parts)?;
    let name = named(&mut parts, &state).await?;
    let Where { cluster } = query(&parts.uri)?;
    lift(&state, &author, Lift::Named { name, cluster }).await
}

pub(crate) async fn lift_of(
    State(Shown { state, .. }): State<Shown>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = split(request);
    let author = state.access.author(&parts)?;
    let Whose { app, user, cluster } = query(&parts.uri)?;
    if app.is_none() && user.is_none() {
        return Err(Refusal::new(
            Error::BadRequest,
            "it does not say which rules are to be lifted",
        )
        .remedy("DELETE /api/v1/rules/NAME, or /api/v1/rules?app=APP, or ?user=USER"));
    }
    lift(&state, &author, Lift::Of { app, user, cluster }).await
}

async fn lift(state: &AdminState, author: &Author, what: Lift) -> Result<Response, Refusal> {
    let cluster = match &what {
        Lift::Named { cluster, .. } | Lift::Of { cluster, .. } => cluster.as_deref(),
    };
    check_cluster(state, cluster)?;
    let (rules, by) = (state.rules.clone(), Arc::clone(&author.0));
    let asked = what.clone();
    let lifted = tokio::spawn(async move { rules.lift(&what, &by).await });
    let receipt =
        lifted.await.map_err(broken)?.map_err(|error| not_lifted(state, &asked, &error))?;
    Ok(answer(state, LIFTED, author, &receipt))
}

/// The change as an answer, and in the log.
fn answer(
    state: &AdminState,
    change: &'static str,
    author: &Author,
    receipt: &Receipt,
) -> Response {
    let changed: Changed = changed(state, change, &author.0, receipt);
    let reason = changed.rules.first().map(|rule| rule.reason.clone()).unwrap_or_default();
    let (author, done) = (author.0.escape_debug(), &changed.done);
    // Quoted: names and reasons are whatever somebody wrote.
    tracing::info!(%author, ?done, ?reason, "a runtime rule was {change}");
    ([(CACHE_CONTROL, "no-store")], Json(changed)).into_response()
}

fn split(request: Request) -> (Parts, Body) {
    request.into_parts()
}

/// The name of a rule in the path, its percent signs resolved.
async fn named(parts: &mut Parts, state: &AdminState) -> Result<String, Refusal> {
    use axum::extract::FromRequestParts as _;
    let path = Path::<String>::from_request_parts(parts, state).await;
    path.map(|Path(name)| name)
        .map_err(|_| Refusal::new(Error::BadRequest, "the name in the path is not UTF-8"))
}

/// What a rule is stands in the body; in the address it would be in logs, and ignored.
fn no_query(parts: &Parts) -> Result<(), Refusal> {
    match parts.uri.query() {
        None | Some("") => Ok(()),
        Some(_) => {
            let message = "a rule is described by the body alone";
            Err(Refusal::new(Error::BadRequest, message))
        }
    }
}

fn check_cluster(state: &AdminState, name: Option<&str>) -> Result<(), Refusal> {
    let Some(name) = name else { return Ok(()) };
    if state.clusters.iter().any(|cluster| *cluster.name == *name) {
        return Ok(());
    }
    let known: Vec<&str> = state.clusters.iter().map(|cluster| &*cluster.name).collect();
    let message = format!("there is no cluster `{}`", name.escape_debug());
    Err(Refusal::new(Error::NotFound, message)
        .remedy(format!("the clusters are {}", known.join(", "))))
}

fn faulty(faults: &[KeyFault]) -> Refusal {
    let said: Vec<String> = faults
        .iter()
        .map(|KeyFault { key, message }| match key.as_str() {
            "" => format!("it {message}"),
            key => format!("`{}` {message}", key.escape_debug()),
        })
        .collect();
    Refusal::new(Error::BadRequest, said.join("; ")).faults(faults.to_vec())
}

fn not_made(error: MakeError) -> Refusal {
    let message = error.to_string();
    match error {
        MakeError::Faults(faults) => {
            let faults = faults.into_iter();
            let faults = faults.map(|fault| KeyFault { key: fault.path, message: fault.message });
            Refusal::new(Error::BadRequest, message).faults(faults.collect())
        }
        MakeError::NoCluster(_) => Refusal::new(Error::BadRequest, message),
        MakeError::Lasts(_) => {
            let fault = KeyFault { key: "for".to_owned(), message: message.clone() };
            Refusal::new(Error::BadRequest, message).faults(vec![fault])
        }
        MakeError::TooMany(_) => Refusal::new(Error::Full, message),
        MakeError::TakenOver => Refusal::new(Error::Unavailable, message),
    }
}

fn not_lifted(state: &AdminState, what: &Lift, error: &LiftError) -> Refusal {
    let message = error.to_string();
    match error {
        LiftError::NotThere => {
            let refusal = Refusal::new(Error::NotFound, message);
            match what {
                Lift::Named { name, .. } if is_of_file(state, name) => {
                    refusal.remedy("the rule of this name is the file's: edit the file to end it")
                }
                Lift::Named { .. } | Lift::Of { .. } => {
                    refusal.remedy("GET /api/v1/rules?source=runtime lists those that stand")
                }
            }
        }
        LiftError::NamesNobody => Refusal::new(Error::BadRequest, message),
        LiftError::NoCluster(_) => Refusal::new(Error::NotFound, message),
        LiftError::TakenOver => Refusal::new(Error::Unavailable, message),
    }
}

fn is_of_file(state: &AdminState, name: &str) -> bool {
    !name.starts_with(RUNTIME_PREFIX)
        && state
            .clusters
            .iter()
            .any(|cluster| cluster.policy().rules.iter().any(|rule| *rule.name == *name))
}

fn broken(error: tokio::task::JoinError) -> Refusal {
    tracing::error!(%error, "a change of runtime rules has broken off");
    Refusal::new(Error::Internal, "the change broke off: the log of Sluice says why")
}
