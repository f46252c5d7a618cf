//! The HTTP door: metrics, health, the status as JSON, a page for people; rules that are made at
//! runtime; checks for those who write around Sluice.
//!
//! It runs beside the traffic, on a thread of its own, takes the admission controller's lock for
//! the time of a reading or a check, and whatever goes wrong here ends with a status code.

pub mod insights;
pub mod quarantine;
pub mod rules;
pub mod status;

mod access;
mod api;
mod check;
mod console;
mod freno;
mod history;
mod host;
mod page;
mod places;
mod ready;
mod refusal;
mod request;
mod serving;
mod timed;
mod tokens;
mod vitess;
mod why;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::history::History;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use fleet::RuntimeRules;
use proxy::cluster::Cluster;
use proxy::telemetry::Telemetry;
use tokio::sync::Semaphore;

pub use self::access::{Access, ReadAccess};
use self::check::book::Book;
use self::console::{Apps, Feed};
use self::refusal::{Error, Refusal};
use self::rules::routes;
pub use self::serving::{Door, serve};

/// What the door shows.
#[derive(Clone)]
pub struct AdminState {
    /// The clusters, in the order of the file.
    pub clusters: Arc<[Arc<Cluster>]>,
    /// The metrics.
    pub telemetry: Arc<Telemetry>,
    /// Who may change something.
    pub access: Arc<Access>,
    /// The rules that are made while it runs.
    pub rules: RuntimeRules,
    /// What happened.
    pub history: History,
    /// Set when a drain begins: then it is not ready.
    pub draining: Arc<AtomicBool>,
}

/// What the answers are made of.
#[derive(Clone)]
struct Shown {
    state: AdminState,
    /// Places for answers that are long to make. Others wait, as long as their connection does.
    slow: Arc<Semaphore>,
    /// What is remembered of checks.
    checks: Arc<Book>,
    /// What the console shows.
    feed: Arc<Feed>,
    apps: Arc<Apps>,
}

impl Shown {
    /// The cluster of this name, and its place in the file. Without a name: the first.
    fn cluster(&self, name: Option<&[u8]>) -> Option<(usize, &Arc<Cluster>)> {
        let is_meant =
            |cluster: &Arc<Cluster>| name.is_none_or(|name| name == cluster.name.as_bytes());
        self.state.clusters.iter().enumerate().find(|(_, cluster)| is_meant(cluster))
    }
}

/// One for a scraper and some for people: making an answer takes a core.
const SLOW_MAX: usize = 4;

fn router(state: AdminState, feed: Arc<Feed>) -> Router {
    let named = from_fn_with_state(Arc::clone(&state.access), under_its_name);
    let checks = Arc::new(Book::new(state.clusters.len()));
    let slow = Arc::new(Semaphore::new(SLOW_MAX));
    let shown = Shown { state, slow, checks, feed, apps: Arc::default() };
    looked_at()
        .merge(api().layer(named.clone()))
        .fallback(nothing_there)
        .method_not_allowed_fallback(not_in_this_way)
        .layer(map_response(one_request_a_connection))
        .merge(
            checked()
                .merge(asked_for_names().layer(named))
                .method_not_allowed_fallback(not_in_this_way),
        )
        .with_state(shown)
}

/// What scrapers and balancers look at, by whatever name they know it.
fn looked_at() -> Router<Shown> {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
}

/// What people look at, and programs that act for them.
fn api() -> Router<Shown> {
    Router::new()
        .route("/", get(console::document))
        .route("/console/{name}", get(console::asset))
        .route("/plain", get(page))
        .route("/api/v1/access", console::access())
        .route("/api/v1/apps", console::apps())
        .route("/api/v1/events", console::events())
        .route("/api/v1/status", get(api::status))
        .route("/api/v1/waiting", get(api::waiting))
        .route("/api/v1/history", get(history::answer))
        .route("/api/v1/why/{*id}", get(why::answer))
        .route("/api/v1/quarantine", get(quarantine::list))
        .route("/api/v1/quarantine/{*name}", delete(quarantine::free))
        .route("/api/v1/insights", get(insights::insights))
        .route("/api/v1/rules", get(routes::list).post(routes::make).delete(routes::lift_of))
        .route("/api/v1/rules/{*name}", delete(routes::lift_named))
}

/// What tools ask before each piece of their work. Their connections stay for the next question
/// (by HTTP's own rules: until the client closes, or for as long as [`timed`] says). An answer has
/// to come in one piece, for that is how its end is known there.
fn checked() -> Router<Shown> {
    vitess::routes().merge(freno::routes())
}

/// What tells of those who asked, and of rules that were made for them.
fn asked_for_names() -> Router<Shown> {
    vitess::names().merge(freno::names())
}

/// A connection that waits for a next request would take a place from one that asks.
async fn one_request_a_connection(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Names and addresses of clients are not for pages of other sites: see [`host`].
async fn under_its_name(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    match access.check_name(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn nothing_there() -> Refusal {
    Refusal::new(Error::NotFound, "there is nothing at this path")
        .remedy("docs/ADMIN.md lists what there is")
}

async fn not_in_this_way() -> Refusal {
    Refusal::new(
        Error::MethodNotAllowed,
        "this path has other methods: the header Allow names them",
    )
}

async fn metrics(State(Shown { state, slow, .. }): State<Shown>) -> Response {
    let format = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let gather = move || {
        let mut text = state.telemetry.gather(&state.clusters);
        text.push_str(&state.access.certificate_metrics());
        text.push_str(&state.history.metrics());
        text
    };
    match aside(slow, gather).await {
        Ok(text) => (format, text).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

async fn readyz(State(shown): State<Shown>) -> Response {
    match ready::obstacles(&shown.state) {
        obstacles if obstacles.is_empty() => {
            // For people: what is not well is none of a balancer's business.
            let notes = ready::notes(&shown.state);
            lines(std::iter::once("ready".to_owned()).chain(notes)).into_response()
        }
        obstacles => (StatusCode::SERVICE_UNAVAILABLE, lines(obstacles)).into_response(),
    }
}

fn lines(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().map(|text| format!("{text}\n")).collect()
}

async fn page(State(Shown { state, slow, .. }): State<Shown>) -> Response {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        // Names in it come from clients. They are escaped; this is the second lock on that door.
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
        ),
    ];
    match aside(slow, move || page::render(&state)).await {
        Ok(html) => (headers, html).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// Runs on a thread for slow things: with 10,000 rules the answers are megabytes.
///
/// # Cancellation
/// What has begun goes on, and keeps its place meanwhile.
async fn aside<T: Send + 'static>(
    slow: Arc<Semaphore>,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let place = slow
        .acquire_owned()
        .await
        .map_err(|_| Refusal::new(Error::Unavailable, "the door is being closed"))?;
    let run = move || {
        let made = f();
        drop(place);
        made
    };
    tokio::task::spawn_blocking(run).await.map_err(|error| {
        tracing::error!(%error, "an admin request failed");
        Refusal::new(Error::Internal, "the answer could not be made: the log of Sluice says why")
    })
}
