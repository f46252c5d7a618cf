//! Why no heartbeat is written: its write waits in the server for a lock of somebody's, which is
//! neither lag nor a primary that is gone; or the primary is silent. Lag has no data then.

use std::fmt;
use std::time::Duration;

use admission::MonoTime;

use super::{Observations, PrimaryContact, ProbeBoard, ProbeError};
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

/// A primary is silent that has not answered for longer than a heartbeat is from the next one.
const SILENT_FROM: Duration = Duration::from_millis(1_500);

impl Observations {
    /// Why no heartbeat is written, in words. None: they are, or nobody has tried.
    pub(super) fn heartbeat_unwritten(&self, now: MonoTime) -> Option<String> {
        if self.last_seq == 0 {
            return None;
        }
        if let Some((blocked, _)) = &self.heartbeat_blocked {
            return Some(blocked.to_string());
        }
        let PrimaryContact { answered_at, error } = self.primary.as_ref()?;
        let silent = answered_at.map(|at| now.saturating_since(at));
        if silent.is_some_and(|silent| silent < SILENT_FROM) {
            return None;
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
        self.seen.lock().heartbeat_unwritten(now)
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
