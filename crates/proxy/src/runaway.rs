//! Statements that take more than their rule lets them (`runaway`): when that is, and the KILL.
//!
//! The clock begins when the last byte of the statement has gone to the server and the first of the
//! answer is waited for; so time in the queue does not count. It is the session's own task that notices,
//! kills and waits for the server's word on it. Nothing of the session goes on meanwhile: no further
//! statement can have begun when the KILL arrives, and the connection is open, so that its id is nobody
//! else's.
//!
//! What is left is a KILL that crosses the statement's own end. A server that has just ended it would
//! end the next one instead, so what may still stand there is cleared away first
//! ([`session::Session::handle_stale_kill`]). If nobody knows whether the KILL has been sent, nothing
//! can be cleared away: then the session is closed when the statement has ended.
//!
//! Before the KILL the server is asked what the session does. What commits is left alone, for as long
//! as it does, and so is DDL that the server does not show. Of a text of several statements, and of a
//! procedure, the server shows the one that runs. A session that does nothing has ended its statement,
//! whose answer is on its way, or not begun it: it is looked at again.

use std::fmt;
use std::time::Duration;

use admission::Mode;
use mysql_async::Row;
use policy::{ClusterPolicy, Rule, Runaway, RunawayAction};
use sql::{Class, LexMode, Scratch, Server, Whole, describe};
use tokio::time::Instant;

use crate::board::ProbeError;
use crate::kill::{KillError, Killer};
use crate::socket::Remote;

/// What commits is looked at again after this.
pub(crate) const COMMIT_POLL: Duration = Duration::from_millis(200);

/// What had ended, and has not been answered, is looked at again after this, and so is what was killed.
const ENDED_POLL: Duration = Duration::from_secs(1);

/// From a KILL that the server has not taken to the next one. It may have had no connection left for it:
/// a busy server is what runaway statements make.
const RETRY: Duration = Duration::from_secs(5);

/// What the statement under way may still take.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// When the server had the statement. None: it has not, or no rule limits it.
    began: Option<Instant>,
    /// When it has run for too long.
    due: Option<Instant>,
    /// What is left of its answer.
    bytes_left: Option<u64>,
    /// Rows that its answer may have.
    rows_most: Option<u64>,
    /// It has been killed, and the server has said so.
    killed: bool,
    /// It may have been killed.
    doubtful: bool,
    /// That it commits has been counted.
    left_alone: bool,
    /// That it was not killed has been counted.
    failed: bool,
    /// What it took too much of.
    excess: Option<Excess>,
}

/// What a statement took too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Excess {
    Elapsed,
    BytesSent,
    RowsSent,
}

impl Excess {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Elapsed => "elapsed",
            Self::BytesSent => "bytes_sent",
            Self::RowsSent => "rows_sent",
        }
    }
}

/// What is left of a KILL when the statement is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    Nothing,
    /// It may stand at the server.
    Stale,
    /// It may still come.
    Doubtful,
}

/// `ER_QUERY_INTERRUPTED`: the KILL has met what it was for.
const ER_QUERY_INTERRUPTED: u16 = 1317;

impl Allowance {
    /// The server has the statement now, unless it had it before.
    pub(crate) fn begin(&mut self, runaway: Option<Runaway>, now: Instant) {
        if self.began.is_some() {
            return;
        }
        self.began = Some(now);
        let Some(Runaway { elapsed, bytes_sent, rows_sent, .. }) = runaway else { return };
        self.due = elapsed.and_then(|elapsed| now.checked_add(elapsed));
        self.bytes_left = bytes_sent;
        self.rows_most = rows_sent;
    }

    /// When it has run for too long.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Bytes of the answer have come, which has so many rows now. What there is too much of.
    pub(crate) fn take(&mut self, len: usize, rows: u64) -> Option<Excess> {
        if self.rows_most.is_some_and(|most| rows > most) {
            return Some(Excess::RowsSent);
        }
        let left = self.bytes_left?;
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        self.bytes_left = left.checked_sub(len);
        self.bytes_left.is_none().then_some(Excess::BytesSent)
    }

    /// It is over its limits: told once. What it took too much of at first.
    pub(crate) fn exceed(&mut self, excess: Excess) -> Excess {
        self.due = None;
        self.bytes_left = None;
        self.rows_most = None;
        *self.excess.get_or_insert(excess)
    }

    /// It had ended, or not begun, when it was to be killed.
    pub(crate) fn look_again(&mut self, now: Instant) {
        self.due = now.checked_add(ENDED_POLL);
    }

    /// It was not killed. Whether this has been said before.
    pub(crate) fn retry(&mut self, now: Instant) -> bool {
        self.due = now.checked_add(RETRY);
        std::mem::replace(&mut self.failed, true)
    }

    /// It commits. Whether this has been said before.
    pub(crate) fn leave_alone(&mut self, now: Instant) -> bool {
        self.due = now.checked_add(COMMIT_POLL);
        std::mem::replace(&mut self.left_alone, true)
    }

    /// It has been killed. It is looked at again, for a procedure may go on behind a SLEEP that was
    /// ended. Whether it had been before.
    pub(crate) fn note_killed(&mut self, now: Instant) -> bool {
        self.due = now.checked_add(if self.killed { RETRY } else { ENDED_POLL });
        std::mem::replace(&mut self.killed, true)
    }

    pub(crate) fn note_doubtful(&mut self) {
        self.doubtful = true;
    }

    /// How long it has been at the server.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.map(|began| began.elapsed()).unwrap_or_default()
    }

    /// The statement is over, with this error of the server's.
    pub(crate) fn end(&mut self, errno: Option<u16>) -> Leftover {
        let Self { killed, doubtful, .. } = std::mem::take(self);
        if doubtful {
            Leftover::Doubtful
        } else if killed && errno != Some(ER_QUERY_INTERRUPTED) {
            Leftover::Stale
        } else {
            Leftover::Nothing
        }
    }
}

/// What is to be done with a statement that is over its rule's limits.
pub(crate) fn action(rule: &Rule, runaway: Runaway) -> RunawayAction {
    match rule.mode {
        Mode::Enforce => runaway.action,
        Mode::Observe => RunawayAction::Log,
    }
}

/// Whether a statement of this class may be killed at all: never what ends a transaction.
pub(crate) fn is_killable(class: Class) -> bool {
    match class {
        Class::Transaction | Class::Session => false,
        Class::Read
        | Class::LockingRead
        | Class::Write
        | Class::Load
        | Class::Call
        | Class::Ddl
        | Class::Admin
        | Class::Unknown => true,
    }
}

/// What the server did about a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killed {
    Yes,
    /// It commits.
    Commits,
    /// It has ended.
    Ended,
}

/// Why a statement was not killed.
#[derive(Debug)]
pub(crate) struct NotKilled {
    error: KillError,
    /// The KILL may have been sent.
    pub(crate) may_come: bool,
}

impl NotKilled {
    /// What helps, where the server's error does not say it.
    pub(crate) fn advice(&self) -> &'static str {
        match &self.error {
            KillError::NoAccount => "give the cluster a `probe`",
            // ER_KILL_DENIED_ERROR
            KillError::Failed(ProbeError::Refused { code: 1095, .. }) => {
                "GRANT CONNECTION_ADMIN ON *.* (MariaDB: CONNECTION ADMIN) to the probe's account, and \
                 in MySQL SYSTEM_USER too where the statement's account has it"
            }
            KillError::TimedOut | KillError::Failed(_) => "it is tried again every 5 s",
        }
    }
}

impl fmt::Display for NotKilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Killer {
    /// Ends the statement of this class that the connection `connection_id` of the server at `remote`
    /// runs, unless it commits. The caller lets nothing follow it meanwhile.
    ///
    /// # Errors
    /// When the server has not said that it did.
    ///
    /// # Cancellation
    /// The KILL may or may not have been sent.
    pub(crate) async fn kill_runaway(
        &self,
        policy: &ClusterPolicy,
        remote: Option<Remote>,
        connection_id: u32,
        class: Class,
    ) -> Result<Killed, NotKilled> {
        let mut sent = false;
        let killed = self.killing(policy, remote, async |link| {
            let look = format!(
                "SELECT COMMAND, STATE, LEFT(INFO, {INFO_LEN}) FROM \
                 information_schema.PROCESSLIST WHERE ID = {connection_id}"
            );
            let row = link.first(&look).await.map_err(KillError::Failed)?;
            match look_at(row.as_ref(), class) {
                Killed::Yes => {}
                other => return Ok(other),
            }
            sent = true;
            let kill = format!("KILL QUERY {connection_id}");
            link.run(&kill).await.map_err(KillError::Failed)?;
            Ok(Killed::Yes)
        });
        let killed = killed.await;
        killed.map_err(|error| {
            let refused = matches!(error, KillError::Failed(ProbeError::Refused { .. }));
            NotKilled { may_come: sent && !refused, error }
        })
    }
}

/// What the server shows of a session, and what that means for a KILL.
fn look_at(row: Option<&Row>, class: Class) -> Killed {
    let shown = |at: usize| row.and_then(|row| row.get::<Option<Vec<u8>>, _>(at)).flatten();
    let (command, state, info) = (shown(0), shown(1), shown(2));
    if command.as_deref() == Some(b"Sleep") {
        return Killed::Ended;
    }
    let commits = state.is_some_and(|state| {
        state.to_ascii_lowercase().windows(COMMIT.len()).any(|part| part == COMMIT)
    }) || info.is_some_and(|info| ends_transaction(&info));
    // An account without PROCESS is shown nothing.
    let may_commit = command.is_none() && may_commit_unseen(class);
    if commits || may_commit { Killed::Commits } else { Killed::Yes }
}

/// Whether a statement of which the server shows nothing may have got to a commit of its own.
fn may_commit_unseen(class: Class) -> bool {
    match class {
        Class::Ddl | Class::Call | Class::Unknown => true,
        Class::Read
        | Class::LockingRead
        | Class::Write
        | Class::Load
        | Class::Transaction
        | Class::Session
        | Class::Admin => false,
    }
}

/// Whether what a session runs may be what ends a transaction: COMMIT, XA COMMIT, and what commits
/// ahead of itself, in whatever comments.
fn ends_transaction(info: &[u8]) -> bool {
    let mode = LexMode::unknown(Server::Unknown);
    let whole = if info.len() < INFO_LEN { Whole::Yes } else { Whole::Truncated };
    let mut scratch = Scratch::default();
    let statement = describe(info, mode, whole, &mut scratch);
    !is_killable(statement.class) || statement.classes.contains(Class::Transaction)
}

/// In the `State` of what commits, in lower case.
const COMMIT: &[u8] = b"commit";

/// Of what a session runs: what it is stands at the beginning, behind comments.
const INFO_LEN: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn runaway() -> Runaway {
        Runaway {
            elapsed: Some(Duration::from_secs(2)),
            bytes_sent: Some(100),
            rows_sent: Some(10),
            action: RunawayAction::Kill,
            watch: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_begins_once_when_the_server_has_the_statement() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.due(), None);
        let began = Instant::now();
        allowance.begin(Some(runaway()), began);
        tokio::time::advance(Duration::from_secs(1)).await;
        allowance.begin(Some(runaway()), Instant::now());
        assert_eq!(allowance.due(), Some(began + Duration::from_secs(2)));
        assert_eq!(allowance.take(100, 10), None);
        assert_eq!(allowance.take(1, 10), Some(Excess::BytesSent));
        assert_eq!(allowance.take(1, 10), None);
        assert_eq!(allowance.take(1, 11), Some(Excess::RowsSent));
        assert_eq!(allowance.exceed(Excess::BytesSent), Excess::BytesSent);
        assert_eq!(allowance.take(1, 12), None);
        assert_eq!(allowance.due(), None);
        assert!(!allowance.leave_alone(Instant::now()) && allowance.leave_alone(Instant::now()));
        assert_eq!(allowance.exceed(Excess::Elapsed), Excess::BytesSent, "what it was at first");
        assert!(!allowance.retry(Instant::now()) && allowance.retry(Instant::now()));
        assert_eq!(allowance.due(), Some(Instant::now() + RETRY));
        allowance.look_again(Instant::now());
        assert_eq!(allowance.due(), Some(Instant::now() + ENDED_POLL));
        assert!(!allowance.note_killed(Instant::now()));
        assert_eq!(allowance.due(), Some(Instant::now() + ENDED_POLL));
        assert!(allowance.note_killed(Instant::now()), "and again, if it goes on");
        assert_eq!(allowance.due(), Some(Instant::now() + RETRY));
        assert_eq!(allowance.end(Some(1317)), Leftover::Nothing);
        assert_eq!(allowance.due(), None);
    }

    #[test]
    fn what_ends_a_transaction_is_known_behind_comments_and_as_xa() {
        for ends in [
            "COMMIT",
            "commit and chain",
            "/* trace='x' */ COMMIT",
            "-- c\n COMMIT",
            "/*!50000 COMMIT */",
            "XA COMMIT 'x'",
            "ROLLBACK",
            "BEGIN",
            "SET autocommit = 1",
        ] {
            assert!(ends_transaction(ends.as_bytes()), "{ends}");
        }
        let long = format!("SELECT '{}", "COMMIT".repeat(1_000));
        let long = long.get(..INFO_LEN).unwrap();
        for works in ["SELECT 1", "UPDATE t SET a = 'COMMIT'", "ALTER TABLE t ADD b INT", "", long]
        {
            assert!(!ends_transaction(works.as_bytes()), "{works}");
        }
    }

    #[test]
    fn what_is_not_shown_and_may_commit_is_left_alone() {
        for class in [Class::Ddl, Class::Call, Class::Unknown] {
            assert_eq!(look_at(None, class), Killed::Commits);
        }
        assert_eq!(look_at(None, Class::Read), Killed::Yes);
    }

    #[test]
    fn a_kill_that_did_not_end_the_statement_is_left_over() {
        let killed = || Allowance { killed: true, ..Allowance::default() };
        assert_eq!(killed().end(Some(1317)), Leftover::Nothing);
        assert_eq!(killed().end(None), Leftover::Stale);
        assert_eq!(killed().end(Some(1062)), Leftover::Stale);
        let mut doubtful = Allowance { doubtful: true, ..killed() };
        assert_eq!(doubtful.end(Some(1317)), Leftover::Doubtful);
    }
}
