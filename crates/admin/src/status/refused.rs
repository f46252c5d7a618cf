//! Whose statements are refused, and by what, for people.

use policy::UnixTime;
use proxy::cluster::{Cluster, Refused, RefusedBy};
use serde::{Deserialize, Serialize};

use super::gather::{before, length, seconds, text};
use crate::quarantine::id_of;

/// Most rows that are shown.
const REFUSED_MAX: usize = 200;

/// Statements of one app and user that were refused by one thing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedStatus {
    /// The app as the client named it.
    pub app: String,
    /// The MySQL user.
    pub user: String,
    /// The rule; `none` where no rule matched, or a guard decided before them.
    pub rule: String,
    /// One of the reasons.
    pub reason: String,
    /// The budget that had no room.
    pub budget: Option<String>,
    /// The guard that objected.
    pub guard: Option<String>,
    /// What that guard checks.
    pub check: Option<String>,
    /// The id of what is in quarantine like them.
    pub quarantine: Option<String>,
    /// How many were refused since then.
    pub count: u64,
    /// When the first of them was: for ten minutes before, there was none.
    pub since: String,
    /// How long ago that is.
    pub for_s: f64,
    /// How long ago the last one was refused.
    pub last_s: f64,
    /// The id in the error of the last one: `sluice why ID` tells the whole of it.
    pub last_id: String,
}

/// Those of the last ten minutes, and how many rows there are.
pub(super) fn gather(cluster: &Cluster, unix: UnixTime) -> (Vec<RefusedStatus>, u64) {
    let now = cluster.now();
    let rows = cluster.chains.refused(now);
    let status = |row: &Refused| {
        let ago = now.saturating_since(row.since);
        let (budget, guard, quarantine) = match &row.by {
            RefusedBy::Rule => (None, None, None),
            RefusedBy::Budget(budget) => (Some(budget.to_string()), None, None),
            RefusedBy::Guard(guard, check) => (None, Some((guard.to_string(), *check)), None),
            RefusedBy::Quarantine(id) => (None, None, Some(id_of(&cluster.name, *id))),
        };
        let (guard, check) = guard.map(|(guard, check)| (guard, check.to_owned())).unzip();
        RefusedStatus {
            app: text(&row.app),
            user: text(&row.user),
            rule: row.rule.as_deref().unwrap_or("none").to_owned(),
            reason: row.reason.as_str().to_owned(),
            budget,
            guard,
            check,
            quarantine,
            count: row.count,
            since: before(unix, ago),
            for_s: seconds(ago),
            last_s: seconds(now.saturating_since(row.last)),
            last_id: format!("{:08x}", row.last_id),
        }
    };
    (rows.iter().take(REFUSED_MAX).map(status).collect(), length(rows.len()))
}
