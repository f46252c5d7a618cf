//! The guards of a cluster, for people.

use policy::{ClusterPolicy, Guard};
use proxy::telemetry::Telemetry;
use serde::{Deserialize, Serialize};

use super::gather::length;

/// Most checks that are shown.
const GUARDS_MAX: usize = 200;

/// A check of a guard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuardStatus {
    /// The guard's name.
    pub guard: String,
    /// What it checks, as in the file.
    pub check: String,
    /// The limit of that, as in the file; empty where it has none.
    pub limit: String,
    /// `deny` or `warn`.
    pub mode: String,
    /// Statements of this cluster to which it has objected since the process started.
    pub hits: u64,
    /// Those that it could not judge, and let pass.
    pub unjudged: u64,
    /// Why it exists.
    pub reason: String,
}

/// Those that are in the file, and how many there are.
pub(super) fn gather(policy: &ClusterPolicy, telemetry: &Telemetry) -> (Vec<GuardStatus>, u64) {
    let total = policy.guards.iter().map(|guard| guard.checks().count()).sum();
    let of = |guard| of_guard(&policy.name, guard, telemetry);
    (policy.guards.iter().flat_map(of).take(GUARDS_MAX).collect(), length(total))
}

fn of_guard(
    cluster: &str,
    guard: &Guard,
    telemetry: &Telemetry,
) -> impl Iterator<Item = GuardStatus> {
    guard.checks().zip(guard.limits()).map(move |((check, mode), limit)| {
        let (hits, unjudged) = telemetry.guard_counts(cluster, &guard.name, (check, mode));
        GuardStatus {
            guard: guard.name.to_string(),
            check: check.to_owned(),
            limit,
            mode: mode.as_str().to_owned(),
            hits,
            unjudged,
            reason: guard.reason.clone(),
        }
    })
}
