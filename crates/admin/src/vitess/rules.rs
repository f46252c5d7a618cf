//! `throttle-app`, `unthrottle-app`, `throttled-apps`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use fleet::{Lift, LiftError, RuleDraft, StandingRule};
use policy::{RuntimeEffect, UnixTime};
use serde::Serialize;

use super::go_duration;
use crate::check::Dialect;
use crate::check::asked::Parameters;
use crate::check::throttling::{Way, effect, ratio};
use crate::check::told::json_line;
use crate::{Shown, aside};

/// A rule as Vitess shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct AppRule {
    app_name: String,
    expire_at: String,
    ratio: f64,
    exempt: bool,
}

const JSON: [(HeaderName, &str); 2] =
    [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];

pub(crate) async fn change(way: Way, State(shown): State<Shown>, request: Parts) -> Response {
    let author = match shown.state.access.legacy_author(&request) {
        Ok(author) => author.0,
        Err(refusal) => return refusal.into_response(),
    };
    let parameters = Parameters::of(&request.uri);
    let made = match way {
        Way::Throttle => throttle(&shown, &parameters, &author).await,
        Way::Unthrottle => unthrottle(&shown, &parameters, &author).await,
    };
    match made {
        Ok(rule) => (JSON, json_line(&rule)).into_response(),
        Err(why) => {
            let text = [(CONTENT_TYPE, "text/plain; charset=utf-8")];
            (StatusCode::INTERNAL_SERVER_ERROR, text, format!("not ok: {why}\n")).into_response()
        }
    }
}

async fn throttle(shown: &Shown, parameters: &Parameters, author: &str) -> Result<AppRule, String> {
    let (app, cluster) = whom(shown, parameters)?;
    let duration = parameters.text("duration").unwrap_or_default();
    let lasts = go_duration::parse(duration)
        .ok_or_else(|| format!("invalid duration `{}`", duration.escape_debug()))?;
    let ratio = match parameters.text("ratio") {
        None => 1.0,
        Some(text) => ratio(text).ok_or("ratio must be a number from 0 to 1")?,
    };
    let draft = RuleDraft {
        cluster: Some(cluster),
        lasts,
        reason: "throttle-app".to_owned(),
        ..RuleDraft::of_app(app, RuntimeEffect::Throttle { ratio })
    };
    let receipt = shown.state.rules.make(draft, author).await.map_err(|error| error.to_string())?;
    let rule = receipt.rules.first().ok_or("the rule was not made")?;
    Ok(AppRule::of(rule))
}

async fn unthrottle(
    shown: &Shown,
    parameters: &Parameters,
    author: &str,
) -> Result<AppRule, String> {
    let (app, cluster) = whom(shown, parameters)?;
    let lift = Lift::Of { app: Some(app.clone()), user: None, cluster: Some(cluster) };
    let now = shown.state.clusters.first().map_or(0, |cluster| cluster.clock().unix_seconds());
    match shown.state.rules.lift(&lift, author).await {
        Ok(_) | Err(LiftError::NotThere) => Ok(AppRule {
            app_name: app,
            expire_at: UnixTime(now).to_string(),
            ratio: 0.0,
            exempt: false,
        }),
        Err(error) => Err(error.to_string()),
    }
}

/// The app, and the cluster.
fn whom(shown: &Shown, parameters: &Parameters) -> Result<(String, String), String> {
    let app = parameters.text("app").filter(|app| !app.is_empty());
    let app = app.ok_or("app must be given, in UTF-8")?;
    let (_, cluster) =
        shown.cluster(parameters.get("cluster")).ok_or("there is no such cluster")?;
    Ok((app.to_owned(), cluster.name.to_string()))
}

pub(crate) async fn throttled_apps(State(shown): State<Shown>, request: Parts) -> Response {
    let parameters = Parameters::of(&request.uri);
    let Some((_, cluster)) = shown.cluster(parameters.get("cluster")) else {
        return (StatusCode::NOT_FOUND, JSON, b"[]\n".to_vec()).into_response();
    };
    let unix = cluster.clock().unix_seconds();
    let (name, slow) = (Arc::clone(&cluster.name), Arc::clone(&shown.slow));
    // Whoever asks for all of thousands of rules keeps nobody else waiting.
    match aside(slow, move || json_line(&throttled(&shown, &name, unix))).await {
        Ok(rules) => (JSON, rules).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

/// The runtime rules of a cluster that are about an app, and the app that is refused always.
pub(crate) fn throttled(shown: &Shown, cluster: &str, unix: i64) -> Vec<AppRule> {
    let always = AppRule {
        app_name: Dialect::Vitess.always_refused().to_owned(),
        expire_at: UnixTime(unix.saturating_add(TEN_YEARS_S)).to_string(),
        ratio: 1.0,
        exempt: false,
    };
    let standing = shown.state.rules.standing();
    let of_apps = standing
        .iter()
        .filter(|rule| *rule.cluster == *cluster && rule.app.is_some() && rule.user.is_none());
    std::iter::once(always).chain(of_apps.map(AppRule::of)).collect()
}

impl AppRule {
    fn of(rule: &StandingRule) -> Self {
        let (ratio, exempt) = effect(rule);
        Self {
            app_name: rule.app.clone().unwrap_or_default(),
            expire_at: rule.ends_at.to_string(),
            ratio,
            exempt,
        }
    }
}

/// As long as Vitess says that it stands.
const TEN_YEARS_S: i64 = 10 * 365 * 24 * 3_600;
