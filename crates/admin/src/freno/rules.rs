//! `throttle-app`, `unthrottle-app`, `throttled-apps`.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use fleet::{LASTS_DEFAULT, Lift, LiftError, RuleDraft, StandingRule};
use policy::{RuntimeEffect, UnixTime};
use serde::Serialize;

use crate::check::Dialect;
use crate::check::asked::{Parameters, path};
use crate::check::throttling::{MINUTE, Way, effect, ratio};
use crate::check::told::{self, json_line};
use crate::{Shown, aside};

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct General<'m> {
    status_code: u16,
    message: &'m str,
}

/// freno's answer to what has no answer of its own.
pub(crate) fn general(status: u16, message: &str) -> Response {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (code, headers, json_line(&General { status_code: status, message })).into_response()
}

pub(crate) async fn change(way: Way, State(shown): State<Shown>, request: Parts) -> Response {
    let author = match shown.state.access.legacy_author(&request) {
        Ok(author) => author.0,
        Err(refusal) => return refusal.into_response(),
    };
    let parts = path(&request.uri);
    let parameters = Parameters::of(&request.uri);
    let changed = match (way, parts.split_first()) {
        (Way::Throttle, Some((_, rest))) => throttle(&shown, rest, &parameters, &author).await,
        (Way::Unthrottle, Some((_, rest))) => unthrottle(&shown, rest, &parameters, &author).await,
        (Way::Throttle | Way::Unthrottle, None) => Err("no app indicated".to_owned()),
    };
    match changed {
        Ok(()) => general(told::OK, "OK"),
        Err(why) => general(told::ERROR, &why),
    }
}

/// What the path says beside the app.
#[derive(Debug, Default)]
struct Terms {
    lasts: Option<Duration>,
    ratio: Option<f64>,
}

async fn throttle(
    shown: &Shown,
    path: &[Vec<u8>],
    parameters: &Parameters,
    author: &str,
) -> Result<(), String> {
    let (app, rest) = named(path)?;
    let said = terms(rest)?;
    let cluster = parameters.text("store_name").map(str::to_owned);
    // What is left out stays as it is, or is what it usually is.
    let standing = shown.state.rules.standing();
    let same = |rule: &&StandingRule| {
        let here = cluster.as_deref().is_none_or(|cluster| *rule.cluster == *cluster);
        rule.app.as_deref() == Some(app) && rule.user.is_none() && here
    };
    let before = standing.iter().find(same);
    let ratio = said.ratio.or_else(|| before.map(|rule| effect(rule).0)).unwrap_or(1.0);
    let left = before.map(|rule| rule.left.max(Duration::from_secs(1)));
    let lasts = said.lasts.or(left.filter(|_| said.ratio.is_some())).unwrap_or(LASTS_DEFAULT);
    let draft = RuleDraft {
        cluster,
        lasts,
        reason: "throttle-app".to_owned(),
        ..RuleDraft::of_app(app, RuntimeEffect::Throttle { ratio })
    };
    let made = shown.state.rules.make(draft, author).await;
    made.map(drop).map_err(|error| error.to_string())
}

async fn unthrottle(
    shown: &Shown,
    path: &[Vec<u8>],
    parameters: &Parameters,
    author: &str,
) -> Result<(), String> {
    let (app, _) = named(path)?;
    let cluster = parameters.text("store_name").map(str::to_owned);
    let lift = Lift::Of { app: Some(app.to_owned()), user: None, cluster };
    match shown.state.rules.lift(&lift, author).await {
        Ok(_) | Err(LiftError::NotThere) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The app, and what follows it.
fn named(path: &[Vec<u8>]) -> Result<(&str, &[Vec<u8>]), String> {
    let (app, rest) = path.split_first().ok_or("no app indicated")?;
    let app = std::str::from_utf8(app).map_err(|_| "the app is not UTF-8")?;
    Ok((app, rest))
}

/// `ttl/MINUTES`, `ratio/RATIO`.
fn terms(path: &[Vec<u8>]) -> Result<Terms, String> {
    let mut terms = Terms::default();
    for pair in path.chunks(2) {
        let [key, value] = pair else { return Err("a value is missing".to_owned()) };
        let value = std::str::from_utf8(value).unwrap_or_default();
        match &key[..] {
            b"ttl" => {
                let minutes = value.parse::<u32>().ok().filter(|minutes| *minutes > 0);
                let minutes = minutes.ok_or("the ttl is not a number of minutes from 1 on")?;
                terms.lasts = Some(MINUTE.saturating_mul(minutes));
            }
            b"ratio" => {
                let ratio = ratio(value).ok_or("the ratio is not a number from 0 to 1")?;
                terms.ratio = Some(ratio);
            }
            _ => return Err("neither a ttl nor a ratio".to_owned()),
        }
    }
    Ok(terms)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Throttled {
    expire_at: String,
    ratio: f64,
}

/// By app; a rule of one of several clusters by app and cluster.
pub(crate) async fn throttled_apps(State(Shown { state, slow, .. }): State<Shown>) -> Response {
    // Whoever asks for all of thousands of rules keeps nobody else waiting.
    let json = aside(slow, move || {
        let standing = state.rules.standing();
        json_line(&by_app(&standing, state.clusters.len()))
    });
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    match json.await {
        Ok(json) => (headers, json).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn by_app(standing: &[StandingRule], clusters: usize) -> BTreeMap<String, Throttled> {
    let mut apps = BTreeMap::new();
    // Without an end, as freno writes it.
    let never = "0001-01-01T00:00:00Z".to_owned();
    let always = Dialect::Freno.always_refused().to_owned();
    apps.insert(always, Throttled { expire_at: never, ratio: 1.0 });
    let mut places: HashMap<(&str, i64), usize> = HashMap::new();
    for StandingRule { name, ends_at: UnixTime(ends_at), .. } in standing {
        let place = places.entry((name, *ends_at)).or_default();
        *place = place.saturating_add(1);
    }
    for rule in standing.iter().filter(|rule| rule.user.is_none()) {
        let Some(app) = &rule.app else { continue };
        let (ratio, exempts) = effect(rule);
        if exempts {
            continue;
        }
        let everywhere = places.get(&(&*rule.name, rule.ends_at.0)) == Some(&clusters);
        let name = if everywhere { app.clone() } else { format!("{app}/{}", rule.cluster) };
        let expire_at = UnixTime::to_string(&rule.ends_at);
        apps.insert(name, Throttled { expire_at, ratio });
    }
    apps
}

#[cfg(test)]
mod tests {
    use admission::Mode;

    use super::*;

    #[test]
    fn all_the_rules_that_may_stand_are_listed_by_app() {
        let clusters = 3;
        let standing: Vec<StandingRule> = (0..clusters)
            .flat_map(|cluster| (0..fleet::RULES_MAX).map(move |app| rule(cluster, app)))
            .collect();
        // Comparing each with each takes minutes.
        let apps = by_app(&standing, clusters);
        assert!(apps.contains_key("app7") && apps.contains_key("abusing-app"));
        // One ends earlier in one cluster than in the others.
        assert!(apps.contains_key("app0/c0") && apps.contains_key("app0/c1"));
        assert!(!apps.contains_key("app0"));
    }

    fn rule(cluster: usize, app: usize) -> StandingRule {
        let ends = if (cluster, app) == (0, 0) { 50 } else { 100 };
        StandingRule {
            name: format!("runtime:app{app}").into(),
            cluster: format!("c{cluster}").into(),
            app: Some(format!("app{app}")),
            user: None,
            classes: Vec::new(),
            effect: RuntimeEffect::Hold,
            mode: Mode::Enforce,
            author: String::new(),
            reason: String::new(),
            made_at: UnixTime(0),
            ends_at: UnixTime(ends),
            left: Duration::from_secs(60),
            version: None,
        }
    }
}
