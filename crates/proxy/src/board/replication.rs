//! What is known of a replica besides its lag: what its server says of its replication, and why a
//! probe of it fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use admission::lag::{ReplicaKey, ReplicaState, ReplicaView};

use super::stopped::STOPPED_BY_HAND;
use super::{CommitOrder, Observations, ProbeBoard, ProbeError, ReplicaNews, StoppedReplication};
use crate::link::denial::is_denial;

/// A replica as metrics and people see it.
#[derive(Debug, Clone)]
pub struct ReplicaReading {
    /// Its address in the file.
    pub server: Arc<str>,
    /// Its lag and standing.
    pub view: ReplicaView,
    /// Why its last probe failed.
    pub error: Option<ProbeError>,
    /// What its server says of its replication.
    pub replication: ReplicationStatus,
    /// How long ago it was asked for that.
    pub replication_age: Duration,
    /// How far it stays behind on purpose (`SOURCE_DELAY`), if that was told.
    pub delay: Duration,
    /// Whether it commits in the primary's order.
    pub order: CommitOrder,
    /// Why there is no heartbeat that it could show, in words.
    pub unwritten: Option<String>,
}

impl ProbeBoard {
    /// The replicas and how far behind they are.
    pub fn replicas(&self, now: MonoTime) -> Vec<ReplicaReading> {
        let seen = self.seen.lock();
        let unwritten = seen.heartbeat_unwritten(now, &self.standstills);
        let replicas = seen.replicas.iter();
        replicas.filter_map(|(server, key)| seen.replica(now, (server, *key), &unwritten)).collect()
    }

    /// Why a replica's lag does not shrink, or is not known; none where it only lags.
    pub(crate) fn hindrance_of(&self, server: &str, now: MonoTime) -> Option<Hindrance> {
        let seen = self.seen.lock();
        let unwritten = seen.heartbeat_unwritten(now, &self.standstills);
        let (server, key) = seen.replicas.get_key_value(server)?;
        seen.replica(now, (server, *key), &unwritten)?.hindrance()
    }

    /// Why the cluster's lag has no value now, where that is known; none if it has one.
    pub fn why_no_lag(&self, now: MonoTime) -> Option<Hindrance> {
        let has_none = self.lag(now).is_some_and(|reading| reading.value.is_none());
        if has_none { self.lag_hindrance(now) } else { None }
    }

    /// How far a replica stays behind on purpose.
    pub(crate) fn delay_said(&self, server: &Arc<str>, delay: Duration) {
        let mut seen = self.seen.lock();
        if seen.replicas.contains_key(server) {
            seen.news.entry(server.clone()).or_default().delay = delay;
        }
    }

    /// Why the cluster's lag has no data, where that is known. A replica that is delayed on purpose
    /// is as it shall be: others come first.
    pub(crate) fn lag_hindrance(&self, now: MonoTime) -> Option<Hindrance> {
        if let Some(why) = self.heartbeat_unwritten(now) {
            return Some(Hindrance { why, advice: "" });
        }
        let mut left_out = self.replicas(now);
        left_out.retain(|replica| !replica.view.counts || replica.error.is_some());
        left_out.sort_by_key(|replica| replica.view.state == ReplicaState::DelayedOnPurpose);
        let mut hindered =
            left_out.into_iter().filter_map(|replica| Some((replica.hindrance()?, replica.server)));
        let (Hindrance { why, advice }, server) = hindered.next()?;
        let why = match hindered.count() {
            0 => format!("{server}: {why}"),
            more => format!("{server}: {why}, and {more} more"),
        };
        Some(Hindrance { why, advice })
    }
}

impl Observations {
    fn replica(
        &self,
        now: MonoTime,
        (server, key): (&Arc<str>, ReplicaKey),
        unwritten: &Option<String>,
    ) -> Option<ReplicaReading> {
        let news = self.news.get(server).cloned().unwrap_or_default();
        let ReplicaNews { error, replication, replication_asked_at, delay, order, .. } = news;
        Some(ReplicaReading {
            server: server.clone(),
            view: self.lag.as_ref()?.replica(now, key)?,
            error,
            replication,
            replication_age: now.saturating_since(replication_asked_at),
            delay,
            order,
            unwritten: unwritten.clone(),
        })
    }
}

/// What keeps a lag from shrinking, or from being known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hindrance {
    /// In words.
    pub why: String,
    /// What can be done about it; empty where that says it all.
    pub advice: &'static str,
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { why, advice } = self;
        f.write_str(why)?;
        if advice.is_empty() { Ok(()) } else { write!(f, "; {advice}") }
    }
}

/// What a server says of its replication.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReplicationStatus {
    /// It has not been asked yet.
    #[default]
    Unasked,
    /// Nothing is stopped.
    Runs,
    /// Nothing is stopped, and it has applied what it has received.
    AllApplied,
    /// Nothing is stopped, it says that it is not behind, and has not executed all of before the heartbeats
    /// that it shows.
    Overtaken,
    /// Nothing is stopped, and this filter of it leaves out the heartbeats.
    LeavesOut(&'static str),
    /// Nothing is stopped, and a thread of it is in this state: something of its server holds it.
    Held(&'static str),
    /// Part of it is stopped.
    Stopped(StoppedReplication),
    /// It does not say: the account may not ask, or it is no replica.
    Untold(ProbeError),
}

impl ReplicationStatus {
    /// The error that stopped it; 0 when somebody did.
    pub(crate) fn code(&self) -> Option<u32> {
        self.stopped().map(|stopped| stopped.code)
    }

    fn filter(&self) -> Option<&'static str> {
        match self {
            Self::LeavesOut(filter) => Some(filter),
            Self::Unasked
            | Self::Runs
            | Self::AllApplied
            | Self::Overtaken
            | Self::Held(_)
            | Self::Stopped(_)
            | Self::Untold(_) => None,
        }
    }

    /// What of it is stopped, and how.
    pub(super) fn stopped(&self) -> Option<&StoppedReplication> {
        match self {
            Self::Stopped(stopped) => Some(stopped),
            Self::Unasked
            | Self::Runs
            | Self::AllApplied
            | Self::Overtaken
            | Self::LeavesOut(_)
            | Self::Held(_)
            | Self::Untold(_) => None,
        }
    }
}

impl ReplicaReading {
    /// What is wrong with it, in words; nothing while all is well.
    pub fn trouble(&self) -> Option<String> {
        match (self.view.state, &self.replication, &self.error) {
            (ReplicaState::Unreachable, _, Some(error)) => Some(error.to_string()),
            (ReplicaState::NoData, _, None) if self.unwritten.is_some() => self.unwritten.clone(),
            (_, ReplicationStatus::Stopped(stopped), _) => Some(stopped.to_string()),
            (_, _, Some(error)) if self.refuses() => Some(format!("it {}", error.sentence())),
            (_, ReplicationStatus::Untold(error), _) => {
                Some(format!("it does not tell its replication: {error}"))
            }
            (_, ReplicationStatus::Held(state), _) => Some(format!("{HELD_IN}{state}")),
            (
                _,
                ReplicationStatus::Unasked
                | ReplicationStatus::Runs
                | ReplicationStatus::AllApplied
                | ReplicationStatus::Overtaken
                | ReplicationStatus::LeavesOut(_),
                error,
            ) => match error {
                Some(error) => Some(error.to_string()),
                None => self
                    .left_out()
                    .or_else(|| self.passed_by())
                    .or_else(|| self.overtaken())
                    .or_else(|| (self.order == CommitOrder::Unseen).then(|| OVERTAKES.to_owned())),
            },
        }
    }

    /// Why its lag does not count although it answers and nothing is stopped.
    fn left_out(&self) -> Option<String> {
        match self.view.state {
            ReplicaState::DelayedOnPurpose => Some(format!(
                "it stays {} s behind on purpose (SOURCE_DELAY)",
                self.delay.as_secs()
            )),
            ReplicaState::NeverCaughtUp if self.view.shows_none => {
                let filter = self.replication.filter().map(left_out_by);
                Some(
                    filter
                        .map_or(SHOWS_NONE.to_owned(), |filter| format!("{SHOWS_NONE}: {filter}")),
                )
            }
            ReplicaState::NeverCaughtUp => {
                let threshold = self.view.threshold.as_secs_f64();
                Some(format!(
                    "it is catching up: its lag has not been below {threshold} s since it appeared"
                ))
            }
            ReplicaState::Counted
            | ReplicaState::Unreachable
            | ReplicaState::IgnoredSlowest
            | ReplicaState::NoData
            | ReplicaState::ApplierStopped
            | ReplicaState::ReceiverStopped => None,
        }
    }

    /// Why it shows no heartbeat although it answers and nothing of it is stopped or held: they pass it
    /// by.
    fn passed_by(&self) -> Option<String> {
        let lag = self.view.lag.filter(|lag| *lag >= self.view.threshold)?;
        match &self.replication {
            ReplicationStatus::LeavesOut(filter) => Some(left_out_by(filter)),
            ReplicationStatus::AllApplied if self.lagged_when_asked(lag) => {
                Some(ALL_APPLIED.to_owned())
            }
            ReplicationStatus::AllApplied
            | ReplicationStatus::Overtaken
            | ReplicationStatus::Unasked
            | ReplicationStatus::Runs
            | ReplicationStatus::Held(_)
            | ReplicationStatus::Stopped(_)
            | ReplicationStatus::Untold(_) => None,
        }
    }

    /// Whether it was behind for long enough when its server was asked: an answer of before a pause of
    /// Sluice says nothing of the lag behind that.
    fn lagged_when_asked(&self, lag: Duration) -> bool {
        lag.saturating_sub(self.replication_age) >= ALL_APPLIED_AFTER
    }

    /// Why the heartbeats that it shows do not count.
    fn overtaken(&self) -> Option<String> {
        let lag = self.view.lag.filter(|lag| *lag >= self.view.threshold)?;
        let told = self.replication == ReplicationStatus::Overtaken && self.lagged_when_asked(lag);
        told.then(|| OVERTAKEN.to_owned())
    }

    /// Whether it counts and answers, and heartbeats pass it by: its lag grows without work.
    pub fn is_passed_by(&self) -> bool {
        self.view.counts && self.error.is_none() && self.passed_by().is_some()
    }

    /// What can be done about it; empty where the trouble says it all.
    pub fn advice(&self) -> &'static str {
        match self.view.state {
            ReplicaState::ApplierStopped | ReplicaState::ReceiverStopped => {
                self.replication.stopped().map_or(STOPPED_BY_HAND, StoppedReplication::advice)
            }
            ReplicaState::Counted
            | ReplicaState::Unreachable
            | ReplicaState::NeverCaughtUp
            | ReplicaState::DelayedOnPurpose
            | ReplicaState::IgnoredSlowest
            | ReplicaState::NoData => match &self.replication {
                ReplicationStatus::Untold(error) if error.code().is_some_and(is_denial) => {
                    MAY_NOT_ASK
                }
                ReplicationStatus::Held(_) if self.is_there() && !self.refuses() => HELD,
                ReplicationStatus::Stopped(stopped)
                    if self.view.state == ReplicaState::NeverCaughtUp =>
                {
                    stopped.advice()
                }
                ReplicationStatus::LeavesOut(_) if self.is_passed_by() => LIFT_THE_FILTER,
                ReplicationStatus::AllApplied if self.is_passed_by() => LOOK_ON_THE_WAY,
                ReplicationStatus::Overtaken if self.overtaken().is_some() => FIND_THE_GTIDS,
                ReplicationStatus::Unasked
                | ReplicationStatus::Runs
                | ReplicationStatus::AllApplied
                | ReplicationStatus::Overtaken
                | ReplicationStatus::LeavesOut(_)
                | ReplicationStatus::Held(_)
                | ReplicationStatus::Stopped(_)
                | ReplicationStatus::Untold(_) => {
                    let account = self.error.as_ref().and_then(ProbeError::login_advice);
                    account.unwrap_or_else(|| self.advice_of_state())
                }
            },
        }
    }

    fn advice_of_state(&self) -> &'static str {
        match self.view.state {
            ReplicaState::DelayedOnPurpose => DELAYED,
            ReplicaState::NeverCaughtUp if self.view.shows_none => LET_HEARTBEATS_THROUGH,
            ReplicaState::NeverCaughtUp
            | ReplicaState::Counted
            | ReplicaState::Unreachable
            | ReplicaState::IgnoredSlowest
            | ReplicaState::NoData
            | ReplicaState::ApplierStopped
            | ReplicaState::ReceiverStopped => self.order.advice(),
        }
    }

    fn hindrance(&self) -> Option<Hindrance> {
        let why = match (self.view.state, &self.replication, &self.error) {
            (
                ReplicaState::ApplierStopped
                | ReplicaState::ReceiverStopped
                | ReplicaState::NeverCaughtUp,
                ReplicationStatus::Stopped(stopped),
                _,
            ) => stopped.to_string(),
            (ReplicaState::Unreachable, _, Some(error)) => error.to_string(),
            (_, _, Some(error)) if self.refuses() => format!("it {}", error.sentence()),
            (_, ReplicationStatus::Held(state), Some(_)) => format!("{HELD_IN}{state}"),
            (_, _, Some(error)) => error.to_string(),
            (ReplicaState::NoData, _, None) => self.unwritten.clone()?,
            (_, ReplicationStatus::Held(state), None) => format!("{HELD_IN}{state}"),
            // It is nobody's replica.
            (_, ReplicationStatus::Untold(error @ ProbeError::Unusable(_)), None) => {
                error.to_string()
            }
            (_, _, None) => {
                self.left_out().or_else(|| self.passed_by()).or_else(|| self.overtaken())?
            }
        };
        Some(Hindrance { why, advice: self.advice() })
    }

    /// Whether it answers its probe with errors, or cannot be asked.
    pub fn refuses(&self) -> bool {
        self.error.as_ref().is_some_and(ProbeError::is_refusal)
    }

    /// Whether its lag is over its threshold while something of its server holds its replication, or
    /// keeps the probe waiting.
    pub fn is_held(&self) -> bool {
        let holds = matches!(self.replication, ReplicationStatus::Held(_)) || self.error.is_some();
        holds && self.is_there() && self.view.lag.is_some_and(|lag| lag >= self.view.threshold)
    }

    fn is_there(&self) -> bool {
        self.view.state != ReplicaState::Unreachable
    }

    /// Whether its state is that its replication is stopped.
    pub fn is_stopped(&self) -> bool {
        match self.view.state {
            ReplicaState::ApplierStopped | ReplicaState::ReceiverStopped => true,
            ReplicaState::Counted
            | ReplicaState::Unreachable
            | ReplicaState::NeverCaughtUp
            | ReplicaState::DelayedOnPurpose
            | ReplicaState::IgnoredSlowest
            | ReplicaState::NoData => false,
        }
    }
}

fn left_out_by(filter: &str) -> String {
    format!("a filter there leaves out the heartbeats ({filter})")
}

/// `Seconds_Behind_Source` is told in whole seconds, and asked for once a second.
const ALL_APPLIED_AFTER: Duration = Duration::from_secs(3);

const ALL_APPLIED: &str = "it has applied all that it has received (Seconds_Behind_Source is 0), and \
    the heartbeats are not among that";

const OVERTAKEN: &str = "it shows heartbeats, and has not executed all GTIDs of before them, although \
    Seconds_Behind_Source is 0";

const FIND_THE_GTIDS: &str = "see there what an applier waits for (SHOW PROCESSLIST), or which GTIDs \
    of the primary never come (gtid_executed; MariaDB: gtid_slave_pos, IGNORE_DOMAIN_IDS)";

const LOOK_ON_THE_WAY: &str = "they are filtered on their way (binlog-do-db, binlog-ignore-db, \
    log_replica_updates=OFF of a replica between; with binlog_format=STATEMENT replicate-do-db there), \
    its source is behind, or nothing has come from that for a while: mend that, or take it out of the \
    cluster's replicas in the file";

const LIFT_THE_FILTER: &str = "on that server let the schema of the heartbeat through, with its \
    applier stopped (CHANGE REPLICATION FILTER; MariaDB: SET GLOBAL replicate_…; where the primary logs \
    statements by replicate-wild-do-table, not by replicate-do-db); or take `probe: { source: \
    replica_status }`, or take it out of the cluster's replicas in the file";

const HELD_IN: &str = "its replication is held: ";

const HELD: &str = "on that server end the session that holds the lock (a backup, FLUSH TABLES WITH \
    READ LOCK, a transaction in front of a DDL), or free space on its disk";

const SHOWS_NONE: &str = "it has shown no heartbeat since Sluice looks";

const LET_HEARTBEATS_THROUGH: &str = "where Seconds_Behind_Source is 0 there, a filter \
    (replicate-do-db, replicate-ignore-db, binlog-do-db) there or on its way leaves out the schema \
    of the heartbeat: with its applier stopped copy that schema to it and let it through, or take \
    `probe: { source: replica_status }`";

const DELAYED: &str = "it is left out: lag needs another replica, one without a delay";

/// What is wrong with a replica whose heartbeats say nothing.
const OVERTAKES: &str = "its appliers may overtake one another \
    (replica_preserve_commit_order=OFF) and there are no GTIDs to see it by: its lag is \
    Seconds_Behind_Source, in whole seconds and by its clock";

const KEEP_THE_ORDER: &str = "on that server: STOP REPLICA SQL_THREAD; SET PERSIST \
    replica_preserve_commit_order=ON; START REPLICA SQL_THREAD (before MySQL 8.0.26: \
    slave_preserve_commit_order). Or give the servers GTIDs (gtid_mode=ON)";

impl CommitOrder {
    fn advice(self) -> &'static str {
        match self {
            Self::Unseen => KEEP_THE_ORDER,
            Self::Unasked | Self::Kept | Self::ByGtid => "",
        }
    }
}

const MAY_NOT_ASK: &str = "GRANT REPLICATION CLIENT ON *.* (MariaDB: SLAVE MONITOR): without it \
    nobody sees that its replication is stopped, or delayed on purpose";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_log_in_is_not_advised_to_be_granted_anything() {
        let error = |code| ProbeError::Refused { code, message: "no".to_owned() };
        let reading = |code| ReplicaReading {
            server: "db2:3306".into(),
            view: ReplicaView {
                lag: None,
                threshold: Duration::from_secs(1),
                age: Duration::ZERO,
                state: ReplicaState::Unreachable,
                counts: false,
                since: MonoTime::ZERO,
                shows_none: false,
            },
            error: Some(error(code)),
            replication: ReplicationStatus::Untold(error(code)),
            replication_age: Duration::ZERO,
            delay: Duration::ZERO,
            order: CommitOrder::Unasked,
            unwritten: None,
        };
        assert!(reading(1045).advice().contains("password"));
        assert!(reading(1698).advice().contains("anonymous"), "MariaDB's, where it takes none");
        assert!(reading(3118).advice().contains("UNLOCK"));
        assert!(reading(1227).advice().contains("GRANT REPLICATION CLIENT"));
        assert!(reading(1040).advice().contains("max_connections"));
        assert_eq!(reading(1049).advice(), "");
    }
}
