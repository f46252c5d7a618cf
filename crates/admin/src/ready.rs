//! Whether Sluice is ready for clients, and what is not well without being in their way.
//!
//! Ready means: it lets clients in, and there is a primary to serve them with. Whoever asks is a
//! balancer that may have nowhere else to send them, so only what is known to be in their way
//! counts: a drain, or that lately nobody reached any primary although somebody tried. A broken edit
//! of the file, a probe that cannot log in, or a key that waits for a restart is not in the way of
//! anybody.

use std::sync::atomic::Ordering;

use admission::lag::ReplicaState;
use policy::FixedKey;
use proxy::board::{LATELY, PrimaryState, Reachability, ReplicaReading};
use proxy::cluster::Cluster;
use proxy::telemetry::Reload;

use crate::AdminState;

/// Users that write past Sluice, in notes about one cluster.
const BYPASS_MAX: usize = 10;

/// What keeps it from being ready, each with its reason.
pub(crate) fn obstacles(state: &AdminState) -> Vec<String> {
    if state.draining.load(Ordering::Relaxed) {
        return vec!["draining".to_owned()];
    }
    let unreached: Vec<String> =
        state.clusters.iter().filter_map(|cluster| no_primary(cluster)).collect();
    if unreached.len() < state.clusters.len() { Vec::new() } else { unreached }
}

/// What is not well with the configuration file.
fn reloaded(last: Reload) -> Option<&'static str> {
    match last {
        Reload::Applied => None,
        Reload::Failed => {
            Some("the configuration file has faults; the one before it is in force (see the log)")
        }
        Reload::Waiting => Some(
            "the configuration file waits for files that it names, and is tried again by itself; the \
             one before it is in force (see the log)",
        ),
        Reload::Torn => Some(
            "putting the configuration file in force met a fault of Sluice's own: it may be in force in \
             part until the next edit (see the log)",
        ),
    }
}

/// What is not well and keeps nobody away.
pub(crate) fn notes(state: &AdminState) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(state.telemetry.last_reload().and_then(reloaded).map(str::to_owned));
    if let Some(trouble) = state.history.trouble() {
        notes.push(format!("the history is not kept on disk: {trouble}"));
    }
    if let Some(trouble) = state.rules.trouble() {
        notes.push(format!("runtime rules are not kept on disk: {trouble}"));
    }
    let pending = state.telemetry.pending_keys();
    notes.extend(pending.iter().map(|key: &FixedKey| format!("waits for a restart: {key}")));
    let draining = state.draining.load(Ordering::Relaxed);
    let unreached: Vec<_> = state.clusters.iter().map(|cluster| no_primary(cluster)).collect();
    let is_ready = !draining && unreached.iter().any(Option::is_none);
    for (cluster, unreached) in state.clusters.iter().zip(unreached) {
        let name = &cluster.name;
        let blocked = cluster.probes.heartbeat_blocked();
        if let Some((blocked, since)) = &blocked {
            let for_s = cluster.now().saturating_since(*since).as_secs();
            notes.push(format!("cluster {name}: {blocked}, for {for_s} s"));
        }
        match (unreached, primary(cluster)) {
            // Otherwise it is an obstacle already.
            (Some(unreached), _) if is_ready || draining => notes.push(unreached),
            // It is said above why.
            (None, PrimaryState::Silent(_)) if blocked.is_some() => {}
            (None, PrimaryState::Silent(error)) => notes.push(format!(
                "cluster {name}: the primary {}; signals have no data",
                error.sentence()
            )),
            (None, PrimaryState::Answers(_)) => {
                let why = cluster.probes.why_no_lag(cluster.now());
                notes.extend(why.map(|why| format!("cluster {name}: lag has no data: {why}")));
            }
            (Some(_), _) | (None, PrimaryState::NotProbed | PrimaryState::Unknown) => {}
        }
    }
    for cluster in state.clusters.iter() {
        let name = &cluster.name;
        let replicas = cluster.probes.replicas(cluster.now());
        notes
            .extend(replicas.iter().filter_map(|it| Some(format!("cluster {name}: {}", ill(it)?))));
        let bypass = cluster.probes.bypass().unwrap_or_default();
        notes.extend(
            bypass
                .users
                .iter()
                .take(BYPASS_MAX)
                .map(|user| format!("cluster {name}: past Sluice writes {}", user.in_words())),
        );
        notes.extend(bypass.trouble.iter().map(|trouble| {
            format!("cluster {name}: who writes past Sluice is not known for all: {trouble}")
        }));
        notes.extend(cluster.cut_overs().iter().map(|pending| {
            let for_s = pending.age.as_secs();
            format!("cluster {name}: {pending}, for {for_s} s")
        }));
    }
    notes
}

/// What is not well with a replica, besides what an open or shut gate tells.
fn ill(replica: &ReplicaReading) -> Option<String> {
    let server = &replica.server;
    if replica.view.state == ReplicaState::Unreachable {
        let why = replica.trouble().map(|why| format!(": {why}")).unwrap_or_default();
        return Some(format!("replica {server} is unreachable, and its lag does not count{why}"));
    }
    let is_ill =
        replica.is_stopped() || replica.refuses() || replica.is_held() || replica.is_passed_by();
    let trouble = replica.trouble().filter(|_| is_ill)?;
    Some(format!("replica {server}: {trouble}"))
}

/// Why a cluster has no primary that is known to be there; none if it has, or if nobody knows.
fn no_primary(cluster: &Cluster) -> Option<String> {
    let name = &cluster.name;
    match cluster.probes.reachability(cluster.now()) {
        Reachability::Reached(_) | Reachability::Unknown => None,
        Reachability::Awaited => Some(format!("cluster {name}: the primary has not answered yet")),
        Reachability::Unreached(why) => {
            Some(format!("cluster {name}: the primary does not answer: {why}"))
        }
    }
}

/// Whether a cluster's primary answers its probe.
pub(crate) fn primary(cluster: &Cluster) -> PrimaryState {
    cluster.probes.primary(cluster.now(), LATELY)
}
