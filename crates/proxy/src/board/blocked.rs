//! A heartbeat whose write waits in the server for a lock of somebody's: lag has no data then, and
//! it is neither lag nor a primary that is gone.

use std::fmt;

use admission::MonoTime;

use super::ProbeBoard;
use crate::printable::Printable;

/// What the heartbeat waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatBlocked {
    /// For which kind of lock.
    pub lock: BlockingLock,
    /// Who holds it; none: the server does not say.
    pub holder: Option<LockHolder>,
}

/// A lock that writes wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockingLock {
    /// FLUSH TABLES WITH READ LOCK, or MariaDB's BACKUP STAGE: nobody can write.
    GlobalRead,
    /// A lock on the heartbeat's table: LOCK TABLES, FLUSH TABLES …, a schema change of it.
    Table,
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

impl BlockingLock {
    /// The value of the label `lock`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GlobalRead => "global_read",
            Self::Table => "table",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::GlobalRead => "a global read lock",
            Self::Table => "a lock on its table",
        }
    }
}

impl fmt::Display for HeartbeatBlocked {
    /// `the heartbeat waits for a global read lock of connection 4711 (mydumper, user backup)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lock, holder } = self;
        write!(f, "the heartbeat waits for {}", lock.in_words())?;
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

impl ProbeBoard {
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
            HeartbeatBlocked { lock: BlockingLock::GlobalRead, holder: Some(holder.clone()) };
        assert_eq!(
            blocked.to_string(),
            "the heartbeat waits for a global read lock of connection 4711 (mydumper, user backup)"
        );
        let unnamed = LockHolder { program: None, ..holder };
        let blocked = HeartbeatBlocked { lock: BlockingLock::Table, holder: Some(unnamed) };
        assert!(
            blocked.to_string().ends_with("a lock on its table of connection 4711 (user backup)")
        );
        let blocked = HeartbeatBlocked { lock: BlockingLock::GlobalRead, holder: None };
        assert!(blocked.to_string().ends_with("(whose, the server does not say)"));
    }
}
