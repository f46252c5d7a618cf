//! What viewers are sent.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use serde::Serialize;

use super::assets::BUILD;
use super::changes::Mark;
use super::reading::{Columns, round};
use super::viewer::event;
use crate::status::Status;

/// The first event of a stream: what was, for the plots.
#[derive(Serialize)]
pub(super) struct PastEvent {
    /// Which page this Sluice has.
    pub(super) build: &'static str,
    #[serde(flatten)]
    pub(super) when: When,
    pub(super) clusters: Vec<ClusterTrail>,
}

/// Every event after it: what is.
#[derive(Serialize)]
pub(super) struct FrameEvent {
    #[serde(flatten)]
    pub(super) when: When,
    /// Without apps and rules, which may be many: pages fetch those.
    pub(super) status: Status,
    pub(super) clusters: Vec<ClusterTrail>,
    /// Statements that rules have decided about, of the rules for which that has changed.
    pub(super) hits: BTreeMap<String, u64>,
}

/// Points on the time line of one cluster.
#[derive(Serialize)]
pub(super) struct ClusterTrail {
    pub(super) cluster: String,
    /// Of the rules: another one when they have changed.
    pub(super) revision: u64,
    /// The replica that is furthest behind.
    pub(super) slowest: Option<String>,
    pub(super) columns: Columns,
    pub(super) marks: Vec<Mark>,
}

/// The time, by both clocks.
#[derive(Serialize)]
pub(super) struct When {
    /// Seconds since the process started, as points have it.
    at_s: f64,
    /// Unix time of that.
    unix_s: f64,
}

impl When {
    pub(super) fn now(at_s: f64) -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at_s: round(at_s), unix_s: round(unix.as_secs_f64()) }
    }
}

impl PastEvent {
    pub(super) fn new(when: When, clusters: Vec<ClusterTrail>) -> Self {
        Self { build: &BUILD, when, clusters }
    }

    pub(super) fn bytes(&self) -> Bytes {
        event("past", &json(self))
    }
}

impl FrameEvent {
    pub(super) fn bytes(&self) -> Bytes {
        event("frame", &json(self))
    }
}

/// Numbers and strings always are JSON.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
