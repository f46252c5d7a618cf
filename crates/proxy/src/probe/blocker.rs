//! Who keeps the heartbeat from being written.
//!
//! A heartbeat that does not return may wait for a lock: mydumper, `mysqldump --lock-all-tables` and
//! others take the global read lock, and nobody can write then. That is neither lag nor a primary
//! that is gone, though both look alike from here; so another connection asks the server what the
//! heartbeat's waits for (the state in the process list, which an account sees of its own sessions),
//! and whose that is (`performance_schema.metadata_locks`, or MariaDB's METADATA_LOCK_INFO). Or for
//! the row itself, which somebody has read FOR UPDATE (`performance_schema.data_lock_waits`).
//!
//! Or it waits for its own commit: for the acknowledgement of a semi-synchronous replica, or in a
//! group that has no majority (`performance_schema.replication_group_members`). The primary answers
//! reads then as ever.
//!
//! While a heartbeat that was given up is in the server no further one is begun, whether or not its
//! cause is known: each would wait on there.

mod holder;
mod session;

use std::pin::pin;
use std::time::Duration;

use self::holder::{holder_in, in_mariadb, in_performance_schema};
use self::session::Session;
use super::answer::number;
use super::{PROBE_TIMEOUT, ProbeTarget};
use crate::board::{BlockingLock, CommitWait, HeartbeatBlocked, LockHolder, ProbeError};
use crate::link::{ConnectionId, Link};

/// A heartbeat that has not returned by then is asked after. Slow disks take as long now and then,
/// and the lag has its last data for longer.
const PATIENCE: Duration = Duration::from_millis(700);

/// How often the server is asked while the heartbeat waits.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What has no cause that the server names waits for one after this long only: disks are slow now and
/// then. Seconds, as the process list has them.
const SLOW_FROM_S: u64 = 2;

/// Asks what heartbeats wait for.
pub(super) struct Lookout {
    link: Link,
    /// The connection that writes them.
    writer: ConnectionId,
    /// What was told last.
    told: Option<HeartbeatBlocked>,
}

impl Lookout {
    /// For the heartbeats that `writer` writes.
    pub(super) fn new(target: &ProbeTarget, writer: ConnectionId) -> Self {
        Self { link: target.link(PROBE_TIMEOUT), writer, told: None }
    }

    /// The heartbeat's answer; what it waits for meanwhile is told.
    pub(super) async fn during<T>(
        &mut self,
        target: &ProbeTarget,
        written: impl Future<Output = Result<T, ProbeError>>,
    ) -> Result<T, ProbeError> {
        let mut written = pin!(written);
        let mut rest = PATIENCE;
        loop {
            let looking = async {
                tokio::time::sleep(rest).await;
                self.look().await
            };
            // The answer may come while this is asked.
            let found = tokio::select! {
                biased;
                answer = &mut written => {
                    if answer.as_ref().map_or_else(ended_by, |_| true) {
                        self.tell(target, None);
                    }
                    return answer;
                }
                found = looking => found,
            };
            // Whoever cannot be asked has not given its lock back.
            if let Ok(found) = found {
                self.tell(target, found);
                self.note_primary(target);
            }
            rest = LOOK_INTERVAL;
        }
    }

    /// No heartbeat was begun, for another reason than what the last one waited for.
    pub(super) fn is_not_begun(&mut self, target: &ProbeTarget) {
        self.tell(target, None);
    }

    /// Waits while the heartbeat that failed like this is at work in the server all the same. It is told
    /// to be over when the next one ends, or is not begun: servers end sessions that were left, waits
    /// and all.
    pub(super) async fn until_free(&mut self, target: &ProbeTarget, error: &ProbeError) {
        while self.told.is_some() || *error == ProbeError::TimedOut {
            tokio::time::sleep(LOOK_INTERVAL).await;
            match self.look().await {
                Ok(found @ Some(_)) => {
                    self.tell(target, found);
                    self.note_primary(target);
                }
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Whether it is known what the heartbeat waits for: that it takes too long says nothing of the primary.
    pub(super) fn knows_why(&self) -> bool {
        self.told.is_some()
    }

    /// The primary answers all the same, here.
    fn note_primary(&self, target: &ProbeTarget) {
        if self.knows_why() {
            let cluster = &target.site.cluster;
            cluster.probes.primary_said(Ok(()), cluster.now());
            target.note_contact(&Ok(()));
        }
    }

    fn tell(&mut self, target: &ProbeTarget, found: Option<HeartbeatBlocked>) {
        let site = &target.site;
        let (cluster, board) = (&site.cluster.name, &site.cluster.probes);
        let now = site.cluster.now();
        match (&self.told, &found) {
            (before, Some(blocked)) if before.as_ref() != Some(blocked) => tracing::warn!(
                %cluster, server = %target.server, lock = blocked.as_str(),
                advice = blocked.advice(), "{blocked}"
            ),
            (Some(before), None) => {
                let since = board.heartbeat_blocked().map_or(now, |(_, since)| since);
                let waited_ms = now.saturating_since(since).as_millis();
                let over = match before {
                    HeartbeatBlocked::Lock { .. } => "nobody's lock",
                    HeartbeatBlocked::Commit(_) => "no commit",
                    HeartbeatBlocked::Unnamed => "nothing",
                };
                tracing::info!(
                    %cluster, server = %target.server, waited_ms,
                    "the heartbeat waits for {over} any more"
                );
            }
            (None, None) | (_, Some(_)) => {}
        }
        board.note_heartbeat_blocked(found.clone(), now);
        self.told = found;
    }

    /// What the heartbeat's connection waits for now.
    async fn look(&mut self) -> Result<Option<HeartbeatBlocked>, ProbeError> {
        let Some(writer) = self.writer.get() else { return Ok(None) };
        let Some(Session { state, time_s }) = Session::ask(&mut self.link, writer).await? else {
            return Ok(None);
        };
        if let Some(lock) = lock_of(&state) {
            let holder = self.holder(writer, lock).await?;
            return Ok(Some(HeartbeatBlocked::Lock { lock, holder }));
        }
        let is_slow = time_s >= SLOW_FROM_S;
        let wait = match commit_of(&state) {
            Some(CommitState::Acknowledged) => Some(CommitWait::Acknowledgement),
            Some(CommitState::Committing) => match self.lacks_majority().await? {
                None if is_slow => Some(self.of_its_group().await?),
                lacks => lacks,
            },
            None => {
                let row = self.waits_for_row(writer).await?;
                return Ok(row.or(is_slow.then_some(HeartbeatBlocked::Unnamed)));
            }
        };
        Ok(wait.map(HeartbeatBlocked::Commit))
    }

    /// What a commit waits for that is committed with others: only the first of them says it.
    async fn of_its_group(&mut self) -> Result<CommitWait, ProbeError> {
        let row = match self.link.first(ACKNOWLEDGED_NEXT).await {
            Err(error) if !error.is_silence() => None,
            row => row?,
        };
        let sessions = row.as_ref().and_then(|row| row.as_ref(1)).and_then(number::<u64>);
        Ok(match sessions {
            Some(1..) => CommitWait::Acknowledgement,
            Some(0) | None => CommitWait::Unnamed,
        })
    }

    /// The lock on a row that the session waits for, if it does.
    async fn waits_for_row(&mut self, writer: u32) -> Result<Option<HeartbeatBlocked>, ProbeError> {
        let lock = BlockingLock::Row;
        let holder = self.holder(writer, lock).await?;
        let waits = holder.is_some() || {
            let question = format!(
                "SELECT 1 FROM information_schema.INNODB_TRX \
                 WHERE trx_mysql_thread_id = {writer} AND trx_state = 'LOCK WAIT'"
            );
            match self.link.first(&question).await {
                Err(error) if !error.is_silence() => false,
                row => row?.is_some(),
            }
        };
        Ok(waits.then_some(HeartbeatBlocked::Lock { lock, holder }))
    }

    /// The group that the server is a member of, if too few of it can be reached to commit.
    async fn lacks_majority(&mut self) -> Result<Option<CommitWait>, ProbeError> {
        let row = match self.link.first(GROUP).await {
            // A server without groups has no such table, and an account may not be allowed to read it.
            Err(error) if !error.is_silence() => return Ok(None),
            row => row?,
        };
        let count = |index| row.as_ref().and_then(|row| row.as_ref(index)).and_then(number::<u64>);
        Ok(majority_lost(count(0).unwrap_or(0), count(1).unwrap_or(0)))
    }

    async fn holder(
        &mut self,
        writer: u32,
        lock: BlockingLock,
    ) -> Result<Option<LockHolder>, ProbeError> {
        for question in [in_performance_schema(writer, lock), in_mariadb(writer, lock)] {
            // A table that is not there, or may not be read, tells nothing.
            let holder = match self.link.first(&question).await {
                Ok(row) => row.as_ref().and_then(holder_in),
                Err(error) if error.is_silence() => return Err(error),
                Err(_) => None,
            };
            if holder.is_some() {
                return Ok(holder);
            }
        }
        Ok(None)
    }
}

/// Whether a heartbeat that failed waits for nobody's lock any more. One that was given up, or whose
/// session was ended, says nothing of the lock.
fn ended_by(error: &ProbeError) -> bool {
    match error {
        ProbeError::Refused { code, .. } => *code != ER_LOCK_WAIT_TIMEOUT,
        ProbeError::NoPassword(_) | ProbeError::Unencrypted(_) | ProbeError::Unusable(_) => true,
        ProbeError::TimedOut | ProbeError::Lost(_) => false,
    }
}

/// `ER_LOCK_WAIT_TIMEOUT`
const ER_LOCK_WAIT_TIMEOUT: u16 = 1205;

/// The lock behind a state of the process list, if the session waits for one of somebody else's.
fn lock_of(state: &str) -> Option<BlockingLock> {
    const GLOBAL: [&str; 4] = ["global read lock", "commit lock", "backup lock", "backup"];
    const TABLE: [&str; 3] = ["table metadata lock", "table level lock", "table flush"];
    let waits_for = state.strip_prefix("Waiting for ")?;
    if GLOBAL.contains(&waits_for) {
        Some(BlockingLock::GlobalRead)
    } else if TABLE.contains(&waits_for) {
        Some(BlockingLock::Table)
    } else {
        None
    }
}

/// How far a session's commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitState {
    /// It is written, and a replica has to acknowledge it.
    Acknowledged,
    /// It is being written, or certified by the group.
    Committing,
}

/// What a state of the process list says of the session's commit, if it says anything.
fn commit_of(state: &str) -> Option<CommitState> {
    // `... from replica`; before MySQL 8.0.26 and in MariaDB `from slave`.
    if state.starts_with("Waiting for semi-sync ACK from ") {
        return Some(CommitState::Acknowledged);
    }
    let committing = ["waiting for handler commit", "Commit"].contains(&state);
    committing.then_some(CommitState::Committing)
}

/// How many sessions wait for the acknowledgement of a semi-synchronous replica: MySQL's name of it,
/// and that of MariaDB and of MySQL before 8.0.26.
const ACKNOWLEDGED_NEXT: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
    ('Rpl_semi_sync_source_wait_sessions', 'Rpl_semi_sync_master_wait_sessions')";

/// Members that cannot be reached, and all.
const GROUP: &str = "SELECT COUNT(CASE WHEN MEMBER_STATE = 'UNREACHABLE' THEN 1 END), COUNT(*) \
                     FROM performance_schema.replication_group_members";

fn majority_lost(unreachable: u64, members: u64) -> Option<CommitWait> {
    let lost = unreachable > 0 && unreachable.saturating_mul(2) >= members;
    lost.then_some(CommitWait::Majority { unreachable, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_that_is_refused_waits_for_no_lock_unless_it_has_waited_too_long_for_it() {
        let refused = |code| ProbeError::Refused { code, message: String::new() };
        let lost = ProbeError::Lost("the connection was killed".to_owned());
        for (error, is_over) in [
            (refused(1290), true),
            (refused(1205), false),
            (ProbeError::TimedOut, false),
            (lost, false),
        ] {
            assert_eq!(ended_by(&error), is_over, "{error:?}");
        }
    }

    #[test]
    fn only_waits_for_what_others_hold_are_a_cause() {
        for (state, lock) in [
            ("Waiting for global read lock", Some(BlockingLock::GlobalRead)),
            ("Waiting for backup lock", Some(BlockingLock::GlobalRead)),
            ("Waiting for table metadata lock", Some(BlockingLock::Table)),
            ("Waiting for semi-sync ACK from replica", None),
            ("updating", None),
            ("", None),
        ] {
            assert_eq!(lock_of(state), lock, "{state}");
        }
    }

    /// A primary that waited for an acknowledgement was said not to answer.
    #[test]
    fn a_commit_that_waits_is_told_from_other_work() {
        for (state, commit) in [
            ("Waiting for semi-sync ACK from replica", Some(CommitState::Acknowledged)),
            ("Waiting for semi-sync ACK from slave", Some(CommitState::Acknowledged)),
            ("waiting for handler commit", Some(CommitState::Committing)),
            ("Waiting for global read lock", None),
            ("updating", None),
            ("", None),
        ] {
            assert_eq!(commit_of(state), commit, "{state}");
        }
    }

    #[test]
    fn a_group_commits_with_more_than_half_of_its_members() {
        for (unreachable, members, lost) in
            [(0, 0, false), (0, 3, false), (1, 3, false), (2, 3, true), (1, 2, true), (2, 4, true)]
        {
            let found = majority_lost(unreachable, members);
            let wanted = lost.then_some(CommitWait::Majority { unreachable, members });
            assert_eq!(found, wanted, "{unreachable} of {members}");
        }
    }
}
