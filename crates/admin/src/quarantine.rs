//! `/api/v1/quarantine`: what is refused, or comes last, because a statement like it ran away, and how it
//! is freed.

use std::time::Duration;

use ::history::FreedKept;
use axum::Json;
use axum::extract::{FromRequestParts as _, Path, Request, State};
use axum::http::Uri;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use policy::{QuarantineId, Quarantined, UnixTime};
use proxy::cluster::{Cluster, QuarantineTimes};
use serde::{Deserialize, Serialize};

use crate::refusal::{Error, Refusal};
use crate::request::{NoParameters, query};
use crate::{AdminState, Shown, aside};

/// What is in quarantine, in all clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quarantine {
    /// When this was read.
    pub now: String,
    /// By cluster in the order of the file; within one the oldest first.
    pub quarantine: Vec<QuarantineEntry>,
}

/// Statements that are refused, or come last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuarantineEntry {
    /// Its name in a DELETE.
    pub id: String,
    /// The cluster.
    pub cluster: String,
    /// The rule that one of them ran away from.
    pub rule: String,
    /// `digest` or `text`.
    pub by: String,
    /// The hash of that; of a digest, as `match.digest` takes it.
    pub hash: String,
    /// `kill`: its like is refused; `deprioritise`: one of its like at a time is at the server.
    pub action: String,
    /// Whose statement it was.
    pub app: String,
    /// When it ran away.
    pub since: String,
    /// When the others are free.
    pub until: String,
    /// How long that is.
    pub left_s: i64,
}

impl QuarantineEntry {
    fn of(cluster: &Cluster, entry: &Quarantined) -> Self {
        let QuarantineTimes { since, until, left } = cluster.times_of(entry);
        // The second that has begun counts: what is there has never none left.
        let left = left.saturating_add(Duration::from_nanos(999_999_999));
        Self {
            id: id_of(&cluster.name, entry.id()),
            cluster: cluster.name.to_string(),
            rule: entry.rule.to_string(),
            by: entry.likeness.by.as_str().to_owned(),
            hash: format!("{:016x}", entry.likeness.hash),
            action: entry.action.as_str().to_owned(),
            app: String::from_utf8_lossy(&entry.app).into_owned(),
            since: since.to_string(),
            until: until.to_string(),
            left_s: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        }
    }
}

/// What it is called, over all clusters.
pub(crate) fn id_of(cluster: &str, id: QuarantineId) -> String {
    format!("{cluster}:{id}")
}

/// What is in quarantine in one cluster, the oldest first.
pub(crate) fn of_cluster(cluster: &Cluster) -> Vec<QuarantineEntry> {
    let entries = cluster.quarantined().into_iter();
    entries.map(|entry| QuarantineEntry::of(cluster, &entry)).collect()
}

pub(crate) async fn list(
    State(Shown { state, .. }): State<Shown>,
    asked: Uri,
) -> Result<Response, Refusal> {
    let NoParameters {} = query(&asked)?;
    let now = state.clusters.first().map(|cluster| cluster.clock().unix_seconds());
    let now = UnixTime(now.unwrap_or_default());
    let entries = state.clusters.iter().flat_map(|cluster| of_cluster(cluster));
    let answer = Quarantine { now: now.to_string(), quarantine: entries.collect() };
    Ok(([(CACHE_CONTROL, "no-store")], Json(answer)).into_response())
}

pub(crate) async fn free(
    State(Shown { state, slow, .. }): State<Shown>,
    request: Request,
) -> Result<Response, Refusal> {
    let (mut parts, _) = request.into_parts();
    let author = state.access.author(&parts)?;
    let NoParameters {} = query(&parts.uri)?;
    let id = Path::<String>::from_request_parts(&mut parts, &state).await;
    let Path(id) =
        id.map_err(|_| Refusal::new(Error::BadRequest, "the id in the path is not UTF-8"))?;
    if !is_freed(&state, &id) {
        return Err(Refusal::new(Error::NotFound, "there is nothing of this id in quarantine")
            .remedy("GET /api/v1/quarantine lists what there is"));
    }
    tracing::info!(author = %author.0, id = %id.escape_debug(), "freed from quarantine");
    let history = state.history.clone();
    let FreedKept { file, outlives_restart } =
        aside(slow, move || history.keep_quarantine()).await?;
    let kept = KeptFree { outlives_restart, file: file.is_ok(), file_error: file.err() };
    let answer = Freed { done: "freed".to_owned(), id, kept: Some(kept) };
    Ok(([(CACHE_CONTROL, "no-store")], Json(answer)).into_response())
}

/// What has been freed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Freed {
    /// `freed`.
    pub done: String,
    /// What was its name.
    pub id: String,
    /// Where that is kept; an older Sluice does not say.
    pub kept: Option<KeptFree>,
}

/// Where it is kept that something is free.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptFree {
    /// Whether it is free behind a restart of this Sluice as well.
    pub outlives_restart: bool,
    /// Whether the history's file has it.
    pub file: bool,
    /// Why not.
    pub file_error: Option<String>,
}

fn is_freed(state: &AdminState, id: &str) -> bool {
    let Some((name, id)) = id.rsplit_once(':') else { return false };
    let Ok(id) = id.parse::<QuarantineId>() else { return false };
    let mut clusters = state.clusters.iter();
    clusters.find(|cluster| *cluster.name == *name).is_some_and(|cluster| cluster.free(id))
}
