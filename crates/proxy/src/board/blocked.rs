//! Why no heartbeat is written: its write waits in the server for a lock of somebody's, or for its
//! own commit, which is neither lag nor a primary that is gone; or the primary is silent. Lag has no
//! data then.

use std::fmt;
use std::time::Duration;

use admission::MonoTime;

use super::{Observations, PrimaryContact, ProbeBoard, ProbeError};
use crate::printable::Printable;
use crate::standstill::Standstills;

/// What the heartbeat waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatBlocked {
    /// A lock of another session.
    Lock {
        /// Which kind.
        lock: BlockingLock,
        /// Who holds it; none: the server does not say.
        holder: Option<LockHolder>,
    },
    /// The end of its commit.
    Commit(CommitWait),
    /// The server does not say what.
    Unnamed,
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitWait {
    /// The acknowledgement of a semi-synchronous replica.
    Acknowledgement,
    /// A majority of the group, which those that are reachable are not.
    Majority {
        /// So many members cannot be reached.
        unreachable: u64,
        /// Of so many.
        members: u64,
    },
    /// The server does not say what: its disk, or members that have to apply it first
    /// (`group_replication_consistency`).
    Unnamed,
}

/// A lock that writes wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockingLock {
    /// FLUSH TABLES WITH READ LOCK, or MariaDB's BACKUP STAGE: nobody can write.
    GlobalRead,
    /// A lock on the heartbeat's table: LOCK TABLES, FLUSH TABLES …, a schema change of it.
    Table,
    /// A lock on the heartbeat's row: a transaction that has read it FOR UPDATE, or written it.
    Row,
}

/// A session that holds a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The server's id of the connection.
    pub connection_id: u64,
    /// Its MySQL user.
    pub user: String,
    /// `program_name` of its connection attributes, where the server shows them.
    pub program: Option<String>,
}

impl HeartbeatBlocked {
    /// The value of the label `lock`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Lock { lock: BlockingLock::GlobalRead, .. } => "global_read",
            Self::Lock { lock: BlockingLock::Table, .. } => "table",
            Self::Lock { lock: BlockingLock::Row, .. } => "row",
            Self::Commit(CommitWait::Acknowledgement) => "semi_sync",
            Self::Commit(CommitWait::Majority { .. }) => "group",
            Self::Commit(CommitWait::Unnamed) => "commit",
            Self::Unnamed => "unknown",
        }
    }

    /// What it means, and what ends it.
    pub(crate) const fn advice(&self) -> &'static str {
        match self {
            Self::Lock { lock: BlockingLock::Row, .. } => {
                "the lag has no data meanwhile, and gates do what on_no_data says: end that \
                 transaction; nobody but Sluice has to lock rows of the heartbeat's table"
            }
            Self::Unnamed => {
                "the lag has no data meanwhile, and no further heartbeat is begun while this one is \
                 in the server: look at what it does (SHOW PROCESSLIST, the user of the probe)"
            }
            Self::Lock { lock: BlockingLock::GlobalRead | BlockingLock::Table, .. } => {
                "the lag has no data meanwhile, and gates do what on_no_data says; \
                 writes that pass wait in the server for the same lock"
            }
            Self::Commit(CommitWait::Acknowledgement) => {
                "the lag has no data meanwhile, and every commit waits in the server like that, at \
                 most for rpl_semi_sync_source_timeout (MariaDB: rpl_semi_sync_master_timeout): \
                 bring a semi-synchronous replica back, or go on without: SET GLOBAL \
                 rpl_semi_sync_source_enabled = OFF (MariaDB: rpl_semi_sync_master_enabled)"
            }
            Self::Commit(CommitWait::Majority { .. }) => {
                "the lag has no data meanwhile, and every commit waits in the server like that: \
                 bring the other members back, or make a group of those that are left \
                 (group_replication_force_members)"
            }
            Self::Commit(CommitWait::Unnamed) => {
                "the lag has no data meanwhile, and other commits may wait in the server like that: \
                 look at its disk and, where it is a member of a group with \
                 group_replication_consistency=AFTER, at the members that are behind"
            }
        }
    }
}

impl BlockingLock {
    const fn in_words(self) -> &'static str {
        match self {
            Self::GlobalRead => "a global read lock",
            Self::Table => "a lock on its table",
            Self::Row => "a lock on its row",
        }
    }
}

impl fmt::Display for HeartbeatBlocked {
    /// `the heartbeat waits for a global read lock of connection 4711 (mydumper, user backup)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the heartbeat waits for ")?;
        let (lock, holder) = match self {
            Self::Lock { lock, holder } => (lock, holder),
            Self::Commit(wait) => return write!(f, "{wait}"),
            Self::Unnamed => return f.write_str("something that the server does not name"),
        };
        f.write_str(lock.in_words())?;
        match holder {
            Some(LockHolder { connection_id, user, program }) => {
                write!(f, " of connection {connection_id} (")?;
                if let Some(program) = program {
                    write!(f, "{}, ", Printable(program.as_bytes()))?;
                }
                write!(f, "user {})", Printable(user.as_bytes()))
            }
            None => f.write_str(" (whose, the server does not say)"),
        }
    }
}

impl fmt::Display for CommitWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acknowledgement => {
                f.write_str("the acknowledgement of a semi-synchronous replica")
            }
            Self::Majority { unreachable, members } => write!(
                f,
                "a majority of its group ({unreachable} of {members} members cannot be reached)"
            ),
            Self::Unnamed => f.write_str("its own commit (for what, the server does not say)"),
        }
    }
}

/// A primary is silent that has not answered for longer than a heartbeat is from the next one.
const SILENT_FROM: Duration = Duration::from_millis(1_500);

impl Observations {
    /// Why no heartbeat is written, in words. None: they are, or nobody has tried.
    pub(super) fn heartbeat_unwritten(
        &self,
        now: MonoTime,
        standstills: &Standstills,
    ) -> Option<String> {
        if self.last_seq == 0 {
            return None;
        }
        if let Some((blocked, _)) = &self.heartbeat_blocked {
            return Some(blocked.to_string());
        }
        let PrimaryContact { answered_at, error } = self.primary.as_ref()?;
        // Who does not run asks nobody, and hears no answer.
        let silent = answered_at.map(|at| standstills.waited(at, now));
        if silent.is_some_and(|silent| silent < SILENT_FROM) {
            let stood = standstills.lately(SILENT_FROM, now)?.as_secs_f64();
            return Some(format!(
                "no heartbeat was written while this process did not run, for {stood:.1} s"
            ));
        }
        let not_answered =
            |silent: Duration| format!("the primary has not answered for {} s", silent.as_secs());
        let why = match (silent, error) {
            (Some(silent), None | Some(ProbeError::TimedOut)) => not_answered(silent),
            (Some(silent), Some(ProbeError::Lost(why))) => {
                format!("{} ({why})", not_answered(silent))
            }
            (Some(_) | None, Some(error)) => format!("the primary {}", error.sentence()),
            (None, None) => return None,
        };
        Some(format!("no heartbeat is written: {why}"))
    }
}

impl ProbeBoard {
    /// Why no heartbeat is written, in words.
    pub(crate) fn heartbeat_unwritten(&self, now: MonoTime) -> Option<String> {
        self.seen.lock().heartbeat_unwritten(now, &self.standstills)
    }

    /// What the heartbeat waits for, and since when that has been seen.
    pub fn heartbeat_blocked(&self) -> Option<(HeartbeatBlocked, MonoTime)> {
        self.seen.lock().heartbeat_blocked.clone()
    }

    /// The heartbeat waits for this, or for nobody. Since when: for as long as it waits at all.
    pub(crate) fn note_heartbeat_blocked(&self, blocked: Option<HeartbeatBlocked>, now: MonoTime) {
        let mut seen = self.seen.lock();
        let since = seen.heartbeat_blocked.take().map_or(now, |(_, since)| since);
        seen.heartbeat_blocked = blocked.map(|blocked| (blocked, since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_a_sentence() {
        let holder = LockHolder {
            connection_id: 4711,
            user: "backup".into(),
            program: Some("mydumper".into()),
        };
        let blocked =
            HeartbeatBlocked::Lock { lock: BlockingLock::GlobalRead, holder: Some(holder.clone()) };
        assert_eq!(
            blocked.to_string(),
            "the heartbeat waits for a global read lock of connection 4711 (mydumper, user backup)"
        );
        let unnamed = LockHolder { program: None, ..holder };
        let blocked = HeartbeatBlocked::Lock { lock: BlockingLock::Table, holder: Some(unnamed) };
        assert!(
            blocked.to_string().ends_with("a lock on its table of connection 4711 (user backup)")
        );
        let blocked = HeartbeatBlocked::Lock { lock: BlockingLock::GlobalRead, holder: None };
        assert!(blocked.to_string().ends_with("(whose, the server does not say)"));
        let blocked = HeartbeatBlocked::Commit(CommitWait::Majority { unreachable: 2, members: 3 });
        assert_eq!(
            blocked.to_string(),
            "the heartbeat waits for a majority of its group (2 of 3 members cannot be reached)"
        );
    }
}
