//! The probes of one replica: how far behind it is, and whether it is meant to be.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use admission::MonoTime;
use policy::LagSource;

use super::answer::number;
use super::health::Purpose;
use super::heartbeat::Heartbeat;
use super::order::Acknowledgements;
use super::replication::{Dialect, Replication, Upstream, what_holds};
use super::{PROBE_TIMEOUT, ProbeTarget, Site};
use crate::board::{ProbeError, ReplicationStatus};
use crate::link::Link;

/// How often at least a replica is asked whether its replication runs and whether it is delayed on
/// purpose.
/// The question can wait behind a STOP REPLICA; so it has a task and a connection of its own.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// Part of the threshold that a slow probe may add to the lag: while nobody asks, what is not seen
/// yet counts as missing.
const NOISE_PARTS: u32 = 4;

/// Measures one replica's lag until it is dropped.
pub(super) async fn watch(target: ProbeTarget) {
    let limits = &target.site.lag.limits;
    let slow = (limits.stale_after / 3).min(limits.caught_up_below / NOISE_PARTS);
    let mut rhythm = target.site.rhythm(target.probe.probe_interval, slow);
    let mut health = target.health(match target.probe.source {
        LagSource::Heartbeat => Purpose::ReplicaHeartbeat,
        LagSource::ReplicaStatus => Purpose::ReplicaStatus,
        LagSource::Query(_) => Purpose::Query,
    });
    let mut question = LagQuestion::of(&target);
    let (mut link, mut threads) = (target.link(PROBE_TIMEOUT), target.link(PROBE_TIMEOUT));
    if let LagQuestion::Status(_) = question {
        until_primary_is_known(&target).await;
    }
    loop {
        rhythm.beat().await;
        note_asked(&target);
        let mut answer = publishing_meanwhile(&target, question.ask(&target, &mut link)).await;
        let listed = &target.site.policy.replicas;
        if answer.is_ok()
            && let Some(why) = target.site.cluster.probes.is_no_replica(&target.server, listed)
        {
            answer = Err(ProbeError::Unusable(why));
            note_no_replica(&target.site, &target.server);
        }
        health.note(&answer);
        take_in(&target, &answer);
        if let (LagQuestion::Status(_), Err(ProbeError::TimedOut)) = (&question, &answer) {
            publishing_meanwhile(&target, ask_threads(&target, &mut threads)).await;
        }
        target.site.publish_lag();
    }
}

/// Keeps track of whether one replica's replication runs, and whether it is delayed on purpose,
/// until it is dropped.
pub(super) async fn watch_status(target: ProbeTarget) {
    // Its answers keep a replica counted whose heartbeats cannot be read: they must come in time.
    let interval = (target.site.lag.limits.stale_after / 3).min(STATUS_INTERVAL);
    let mut rhythm = target.site.rhythm(interval, interval);
    let mut health = target.health(Purpose::ReplicaStatus);
    let mut dialect = Dialect::default();
    let (mut link, mut threads) = (target.link(PROBE_TIMEOUT), target.link(PROBE_TIMEOUT));
    loop {
        rhythm.beat().await;
        let asked_at = target.site.cluster.now();
        let mut answer = dialect.ask(&mut link, &target.site.cluster.probes).await;
        if let Ok(told) = &mut answer
            && (told.is_behind() || target.site.cluster.probes.is_overtaken(&target.server))
        {
            told.ask_what_it_waits_for(&mut link).await;
        }
        health.note(&answer);
        target.note_heard(&answer);
        note_replication(&target, &answer, asked_at);
        if matches!(answer, Err(ProbeError::TimedOut)) {
            ask_threads(&target, &mut threads).await;
        }
        target.site.publish_lag();
    }
}

/// How this replica's lag is asked for.
enum LagQuestion {
    Heartbeat(Acknowledgements),
    Status(Dialect),
    Query(String),
}

/// What a replica answered.
pub(super) enum LagAnswer {
    /// Its newest heartbeat of ours.
    Shows(Option<u64>),
    /// Its own idea of its lag, or what the operator's query gave.
    Gives(Option<Duration>),
}

impl LagQuestion {
    fn of(target: &ProbeTarget) -> Self {
        match &target.probe.source {
            LagSource::Heartbeat => {
                let instance = target.site.cluster.probes.instance();
                let heartbeat = Heartbeat::new(&target.probe.heartbeat_table, instance);
                Self::Heartbeat(Acknowledgements::of(heartbeat))
            }
            LagSource::ReplicaStatus => Self::Status(Dialect::default()),
            LagSource::Query(query) => Self::Query(query.clone()),
        }
    }

    async fn ask(
        &mut self,
        target: &ProbeTarget,
        replica: &mut Link,
    ) -> Result<LagAnswer, ProbeError> {
        match self {
            Self::Heartbeat(heartbeats) => heartbeats.ask(target, replica).await,
            Self::Status(dialect) => {
                let asked_at = target.site.cluster.now();
                let told = dialect.ask(replica, &target.site.cluster.probes).await;
                note_replication(target, &told, asked_at);
                match told {
                    Ok(Replication { is_member: true, .. }) => Err(ProbeError::Unusable(
                        "a member of a group does not tell Seconds_Behind_Source; take `probe: \
                         { source: heartbeat }`"
                            .into(),
                    )),
                    Ok(Replication { stopped: Some(how), .. }) if how.detached => {
                        Err(ProbeError::Unusable(how.to_string()))
                    }
                    told => lag_of(target, told?, "take `probe: { source: heartbeat }`"),
                }
            }
            Self::Query(query) => seconds(replica, query).await.map(LagAnswer::Gives),
        }
    }
}

/// How far a replica is behind the primary, as it tells it. One that tells how far it is behind another
/// replica does not count.
pub(super) fn lag_of(
    target: &ProbeTarget,
    told: Replication,
    instead: &str,
) -> Result<LagAnswer, ProbeError> {
    if matches!(told.upstream, Upstream::Others(_)) {
        note_no_replica(&target.site, &target.server);
    }
    told.lag(instead)
}

/// The lag that a query gives in seconds; `None` for NULL or no row.
async fn seconds(replica: &mut Link, query: &str) -> Result<Option<Duration>, ProbeError> {
    let row = replica.first(query).await?;
    let Some(value) = row.as_ref().and_then(|row| row.as_ref(0)) else { return Ok(None) };
    if *value == mysql_async::Value::NULL {
        return Ok(None);
    }
    let lag = number::<f64>(value).and_then(|lag| Duration::try_from_secs_f64(lag.max(0.0)).ok());
    lag.map(Some).ok_or_else(|| ProbeError::Unusable("the query did not give seconds".into()))
}

fn note_asked(target: &ProbeTarget) {
    let cluster = &target.site.cluster;
    let now = cluster.now();
    cluster
        .probes
        .on_replica(&target.server, |tracker, key| tracker.handle_replica_asked(now, key));
}

/// Does not count the replicas of the file that are none: the primary would be behind with what is
/// written to itself.
pub(super) fn note_no_replicas(site: &Site) {
    let listed = &site.policy.replicas;
    for replica in listed {
        if site.cluster.probes.is_no_replica(replica, listed).is_some() {
            note_no_replica(site, replica);
        }
    }
}

fn note_no_replica(site: &Site, replica: &str) {
    let now = site.cluster.now();
    site.cluster.probes.on_replica(replica, |tracker, key| tracker.handle_no_replica(now, key));
}

fn take_in(target: &ProbeTarget, answer: &Result<LagAnswer, ProbeError>) {
    let board = &target.site.cluster.probes;
    let now = target.site.cluster.now();
    board.on_replica(&target.server, |tracker, key| match answer {
        Ok(LagAnswer::Shows(seq)) => tracker.handle_replica_shows(now, key, *seq),
        Ok(LagAnswer::Gives(lag)) => tracker.handle_replica_reports(now, key, *lag),
        Err(error) if error.is_refusal() => tracker.handle_replica_refuses(now, key),
        Err(_) => tracker.handle_replica_unreachable(now, key),
    });
    board.replica_said(&target.server, answer.as_ref().err());
}

/// Takes in what a replica says of its replication.
fn note_replication(
    target: &ProbeTarget,
    answer: &Result<Replication, ProbeError>,
    asked_at: MonoTime,
) {
    let cluster = &target.site.cluster;
    let now = cluster.now();
    let status = match answer {
        Ok(told @ Replication { delay, stopped, waits, .. }) => {
            let delayed = *delay > Duration::ZERO;
            cluster.probes.on_replica(&target.server, |tracker, key| {
                tracker.handle_replica_delayed_on_purpose(now, key, delayed);
            });
            cluster.probes.delay_said(&target.server, *delay);
            match (stopped, waits) {
                (Some(stopped), _) => ReplicationStatus::Stopped(stopped.clone()),
                (None, Some(state)) => ReplicationStatus::Held(state),
                (None, None) => runs(target, told),
            }
        }
        // Nothing new: the question may wait behind a STOP REPLICA.
        Err(ProbeError::TimedOut | ProbeError::Lost(_) | ProbeError::NoPassword(_)) => {
            return cluster.probes.replication_unsaid(&target.server);
        }
        Err(
            error @ (ProbeError::Refused { .. }
            | ProbeError::Unencrypted(_)
            | ProbeError::Unusable(_)),
        ) => ReplicationStatus::Untold(error.clone()),
    };
    cluster.probes.replication_said(&target.server, status, asked_at, now);
}

/// What there is to say of heartbeats, where lag comes from them, while replication runs.
fn runs(target: &ProbeTarget, told: &Replication) -> ReplicationStatus {
    let board = &target.site.cluster.probes;
    let left_out = told.leaves_out(&target.probe.heartbeat_table, board.primary_logging());
    match (&target.probe.source, left_out) {
        (LagSource::Heartbeat, Some(filter)) => ReplicationStatus::LeavesOut(filter),
        (LagSource::Heartbeat, None) if told.behind == Some(Duration::ZERO) => {
            if board.is_overtaken(&target.server) {
                ReplicationStatus::Overtaken
            } else {
                ReplicationStatus::AllApplied
            }
        }
        (LagSource::Heartbeat | LagSource::ReplicaStatus | LagSource::Query(_), _) => {
            ReplicationStatus::Runs
        }
    }
}

/// Waits until it is known who the primary is: not for longer than it takes to ask, for it may be gone.
pub(super) async fn until_primary_is_known(target: &ProbeTarget) {
    let known = async {
        while target.site.cluster.probes.primary_as_source().is_none() {
            tokio::time::sleep(target.probe.probe_interval).await;
        }
    };
    tokio::time::timeout(PROBE_TIMEOUT, known).await.ok();
}

/// Asks on another connection what holds the replication of a server that does not tell its status
/// in time: that waits for STOP REPLICA, and on MariaDB for a receiver whose disk is full.
async fn ask_threads(target: &ProbeTarget, threads: &mut Link) {
    let held = what_holds(threads).await;
    target.note_heard(&held);
    if let Ok(Some(state)) = held {
        let cluster = &target.site.cluster;
        let status = ReplicationStatus::Held(state);
        let now = cluster.now();
        cluster.probes.replication_said(&target.server, status, now, now);
    }
}

/// Publishes the lag at the probes' interval until the answer is there: it grows meanwhile.
async fn publishing_meanwhile<T>(target: &ProbeTarget, answer: impl Future<Output = T>) -> T {
    let mut answer = pin!(answer);
    loop {
        tokio::select! {
            biased;
            answer = &mut answer => return answer,
            () = tokio::time::sleep(target.probe.probe_interval) => target.site.publish_lag(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WITH_REPLICA, cluster, target};
    use super::*;
    use crate::board::{CommitOrder, PrimaryProbing};

    /// It was said to have applied all but the heartbeats.
    #[test]
    fn a_replica_that_is_not_behind_may_be_overtaken() {
        let target = target(&cluster(WITH_REPLICA));
        let board = &target.site.cluster.probes;
        let (policy, limits) = (&target.site.policy, &target.site.lag.limits);
        let replicas = (&*policy.replicas, &policy.replica_terms);
        board.configure(replicas, limits, PrimaryProbing::Probed, target.site.cluster.now());
        board.order_said(&target.server, CommitOrder::ByGtid);
        let told = Replication { behind: Some(Duration::ZERO), ..Replication::default() };
        assert_eq!(runs(&target, &told), ReplicationStatus::AllApplied);
        board.overtaken_said(&target.server, true);
        assert_eq!(runs(&target, &told), ReplicationStatus::Overtaken);
    }
}
