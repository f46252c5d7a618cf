//! `GET /api/v1/apps`: what became of the statements of every app. With thousands of apps the answer
//! is long to make, so whoever asks within a moment gets the same.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use parking_lot::Mutex;
use proxy::telemetry::AppCount;
use serde::Serialize;

use crate::AdminState;
use crate::status::AppStatus;

/// For how long an answer is good.
const GOOD_FOR: Duration = Duration::from_secs(2);

/// Rows of one answer: an app has one for each rule that it met.
const ROWS_MAX: usize = 20_000;

/// The last answer, and when it was made.
#[derive(Debug, Default)]
pub(crate) struct Apps(Mutex<Option<(Instant, Bytes)>>);

#[derive(Serialize)]
struct Listed {
    /// Since when is counted, in seconds.
    uptime_s: f64,
    apps: Vec<OfCluster>,
    /// How many there are, in all.
    apps_total: usize,
}

#[derive(Serialize)]
struct OfCluster {
    cluster: String,
    #[serde(flatten)]
    app: AppStatus,
}

impl Apps {
    /// The answer. Whoever comes while it is made waits for it.
    pub(crate) fn json(&self, state: &AdminState) -> Bytes {
        let mut last = self.0.lock();
        if let Some((made, json)) = &*last
            && made.elapsed() < GOOD_FOR
        {
            return json.clone();
        }
        let json = Bytes::from(serde_json::to_vec(&list(state)).unwrap_or_default());
        *last = Some((Instant::now(), json.clone()));
        json
    }
}

fn list(state: &AdminState) -> Listed {
    let counts = state.telemetry.app_counts();
    let apps_total = counts.len();
    let now = state.clusters.first().map(|cluster| cluster.now()).unwrap_or_default();
    let uptime_s = now.saturating_since(admission::MonoTime::ZERO).as_secs_f64();
    let apps = counts.into_iter().take(ROWS_MAX).map(row).collect();
    Listed { uptime_s, apps, apps_total }
}

fn row(count: AppCount) -> OfCluster {
    let AppCount { cluster, app, rule, mode, admitted, rejected, client_gone, delayed } = count;
    let app = AppStatus { app, rule, mode, admitted, delayed, rejected, client_gone };
    OfCluster { cluster, app }
}
