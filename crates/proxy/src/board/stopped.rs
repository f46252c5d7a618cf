//! Replication that is stopped, as its server tells it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use admission::lag::StoppedThread;

use super::{Observations, ProbeBoard, ReplicationStatus};

/// Replication that is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedReplication {
    /// Which part.
    pub thread: StoppedThread,
    /// Whether it goes on trying by itself: a receiver that cannot connect.
    pub retries: bool,
    /// Its channel, if it has a name.
    pub channel: String,
    /// `Last_SQL_Errno` or `Last_IO_Errno`; 0 when somebody stopped it.
    pub code: u32,
    /// `Last_SQL_Error` or `Last_IO_Error`, in one line of bounded length, without the text of a
    /// statement.
    pub message: String,
    /// `MEMBER_STATE` of a member of a group that is not online.
    pub member: Option<MemberState>,
    /// There is no replication at all: it was promoted, or RESET REPLICA ALL.
    pub detached: bool,
}

/// What a member of a group is while it is not online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It has left, or not joined.
    Offline,
    /// It joins, and catches up.
    Recovering,
    /// It has failed, or another state that does not replicate.
    Error,
}

/// Longest text of a server's error that is kept, in characters.
const MESSAGE_LEN_MAX: usize = 300;

/// What stands before a statement's text in the error of a statement that could not be applied.
const STATEMENT: &str = " Query: '";

impl StoppedReplication {
    /// The server's words, as they may be shown.
    pub(crate) fn new(thread: StoppedThread, channel: String, code: u32, message: &str) -> Self {
        let (message, cut) = match message.split_once(STATEMENT) {
            Some((before, _)) => (before, " (its statement is not shown)"),
            None => (message, ""),
        };
        let shown = message.chars().take(MESSAGE_LEN_MAX);
        let mut shown: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        if message.chars().nth(MESSAGE_LEN_MAX).is_some() {
            shown.push('…');
        }
        Self {
            thread,
            retries: false,
            channel,
            code,
            message: shown + cut,
            member: None,
            detached: false,
        }
    }

    /// A member of a group in a state other than ONLINE, with the error of its applier.
    pub(crate) fn of_member(state: &str, code: u32, message: &str) -> Self {
        let (member, thread) = match state {
            "OFFLINE" => (MemberState::Offline, StoppedThread::Receiver),
            "RECOVERING" => (MemberState::Recovering, StoppedThread::Receiver),
            _ => (MemberState::Error, StoppedThread::Applier),
        };
        Self { member: Some(member), ..Self::new(thread, String::new(), code, message) }
    }

    /// A server that replicates from nobody.
    pub(crate) fn detached() -> Self {
        Self { detached: true, ..Self::new(StoppedThread::Receiver, String::new(), 0, "") }
    }

    /// What ends it.
    pub(crate) fn advice(&self) -> &'static str {
        match self.member {
            Some(MemberState::Offline) => MEMBER_OFFLINE,
            Some(MemberState::Recovering) => MEMBER_RECOVERING,
            Some(MemberState::Error) => MEMBER_ERROR,
            None if self.detached => DETACHED,
            None if self.retries => CANNOT_CONNECT,
            None if self.code != 0 => STOPPED_BY_ERROR,
            None => STOPPED_BY_HAND,
        }
    }

    /// The same of one that goes on trying.
    pub(crate) fn retrying(self, retries: bool) -> Self {
        Self { retries, ..self }
    }
}

impl fmt::Display for StoppedReplication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, retries, channel, code, message, member, detached } = self;
        if *detached {
            return f.write_str("it is not a replica: SHOW REPLICA STATUS is empty");
        }
        if let Some(member) = member {
            let state = match member {
                MemberState::Offline => "OFFLINE",
                MemberState::Recovering => "RECOVERING",
                MemberState::Error => "in ERROR",
            };
            write!(f, "it is {state} in its group (Group Replication)")?;
            return if *code == 0 { Ok(()) } else { write!(f, ": error {code}: {message}") };
        }
        let thread = match thread {
            StoppedThread::Applier => "the applier (SQL thread)",
            StoppedThread::Receiver => "the receiver (I/O thread)",
        };
        write!(f, "{thread}")?;
        if !channel.is_empty() {
            write!(f, " of channel {channel}")?;
        }
        match (code, message.as_str()) {
            (0, "") => f.write_str(" is stopped, without an error: somebody stopped it"),
            (code, message) if *retries => write!(f, " cannot connect: error {code}: {message}"),
            (code, message) => write!(f, " is stopped: error {code}: {message}"),
        }
    }
}

/// Replication that is or was stopped.
#[derive(Debug, Clone)]
pub(super) struct StoppedOnce {
    how: StoppedReplication,
    since: MonoTime,
    /// None: it still is.
    until: Option<MonoTime>,
    /// The replica counted meanwhile, so that its lag kept others waiting.
    counted: bool,
}

impl ProbeBoard {
    /// In words: the replica that counted while its replication was stopped, for at least this long
    /// after `since`. The one with the most lag, if there are several; one that still is stopped
    /// comes first.
    pub fn stopped_since(
        &self,
        now: MonoTime,
        since: MonoTime,
        at_least: Duration,
    ) -> Option<String> {
        let replicas = self.replicas(now);
        let seen = self.seen.lock();
        let stopped = replicas.iter().filter_map(|replica| {
            let stopped = seen.news.get(&replica.server)?.stopped.as_ref()?;
            let StoppedOnce { how, until, .. } = stopped;
            let lasted = until.unwrap_or(now).saturating_since(stopped.since.max(since));
            if !stopped.counted || lasted < at_least {
                return None;
            }
            let server = &replica.server;
            let text = match until {
                None => format!("replica {server}: {how}"),
                Some(until) => {
                    let ago = now.saturating_since(*until).as_secs();
                    format!("replica {server}, until {ago} s ago: {how}")
                }
            };
            Some((until.is_none(), replica.view.lag, text))
        });
        stopped.max_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1))).map(|(_, _, text)| text)
    }

    /// A replica's server does not say. That it was not behind was so when it said it.
    pub(crate) fn replication_unsaid(&self, server: &Arc<str>) {
        if let Some(news) = self.seen.lock().news.get_mut(server)
            && let ReplicationStatus::AllApplied | ReplicationStatus::Overtaken = news.replication
        {
            news.replication = ReplicationStatus::Runs;
        }
    }

    /// What a replica's server says of its replication, and when it was asked for that.
    pub(crate) fn replication_said(
        &self,
        server: &Arc<str>,
        status: ReplicationStatus,
        asked_at: MonoTime,
        now: MonoTime,
    ) {
        let mut seen = self.seen.lock();
        let Observations { lag, replicas, news, .. } = &mut *seen;
        let (Some(tracker), Some(key)) = (lag, replicas.get(server)) else { return };
        let news = news.entry(server.clone()).or_default();
        let view = tracker.replica(now, *key);
        // What has no channels may get the primary's writes in another way (Galera, Aurora).
        let lags = view.is_some_and(|view| view.lag.is_some_and(|lag| lag >= view.threshold));
        let thread = match status.stopped().filter(|how| lags || !how.detached) {
            Some(how) => {
                let before = news.stopped.take().filter(|stopped| stopped.until.is_none());
                let counts = view.is_some_and(|view| view.counts);
                news.stopped = Some(StoppedOnce {
                    how: how.clone(),
                    since: before.as_ref().map_or(now, |before| before.since),
                    until: None,
                    counted: counts || before.is_some_and(|before| before.counted),
                });
                Some(how.thread)
            }
            None => {
                if let Some(StoppedOnce { until: until @ None, .. }) = &mut news.stopped {
                    *until = Some(now);
                }
                None
            }
        };
        news.replication = status;
        news.replication_asked_at = asked_at;
        tracker.handle_replica_stopped(now, *key, thread);
    }
}

pub(super) const STOPPED_BY_HAND: &str = "on that server: START REPLICA (before MySQL 8.0.22 and MariaDB \
    10.5: START SLAVE). To go on without it, take it out of the cluster's replicas in the file";

const DETACHED: &str = "take it out of the cluster's replicas in the file: it was promoted, or \
    detached (RESET REPLICA ALL). Or make it a replica again on that server: CHANGE REPLICATION SOURCE \
    TO …; START REPLICA (MariaDB: CHANGE MASTER TO …; START SLAVE)";

const STOPPED_BY_ERROR: &str = "mend what the error says on that server, then START REPLICA (before \
    MySQL 8.0.22 and MariaDB 10.5: START SLAVE). To go on without it, take it out of the cluster's \
    replicas in the file";

const CANNOT_CONNECT: &str = "it goes on trying; mend what the error says: its source, the \
    network, or the account it replicates as. To go on without it, take it out of the cluster's \
    replicas in the file";

const MEMBER_OFFLINE: &str = "it has left its group: on that server START GROUP_REPLICATION; its error log \
    says why it left. To go on without it, take it out of the cluster's replicas in the file";

const MEMBER_ERROR: &str = "mend what the error, or its error log, says on that server, then STOP \
    GROUP_REPLICATION; START GROUP_REPLICATION. To go on without it, take it out of the cluster's replicas \
    in the file";

const MEMBER_RECOVERING: &str = "it joins its group and catches up by itself; its lag counts meanwhile. To \
    go on without it, take it out of the cluster's replicas in the file";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_stopped_applier_is_one_bounded_line_without_a_statement() {
        let of = |message: &str| {
            StoppedReplication::new(StoppedThread::Applier, String::new(), 1062, message)
                .to_string()
        };
        let text = of("Error 'Duplicate entry '1' for key 'PRIMARY'' on query. Default database: \
                       'shop'. Query: 'INSERT INTO t VALUES (1, 'secret')'");
        assert!(text.contains("error 1062: Error 'Duplicate entry"), "{text}");
        assert!(!text.contains("INSERT") && !text.contains("secret"), "{text}");
        let hostile = of(&format!("a\nINFO all is well\u{1b}[2J{}", "x".repeat(10_000)));
        assert!(!hostile.contains(char::is_control) && hostile.chars().count() < 400, "{hostile}");
        let by_hand = StoppedReplication::new(StoppedThread::Receiver, "c2".to_owned(), 0, "");
        assert_eq!(
            by_hand.to_string(),
            "the receiver (I/O thread) of channel c2 is stopped, without an error: somebody stopped \
             it"
        );
    }
}
