//! Statements of a link that the server may still be at.
//!
//! A server does not notice that whoever asked has left, and the statement goes on: behind a lock, in
//! a group that has to catch up first, or because it is slow. If each new attempt began another
//! session, Sluice would use up `max_connections` while it finds out that something hangs. So a
//! statement that is given up keeps its connection until the server has answered, and where a few are
//! left so, no further session is begun.
//!
//! What a firewall has forgotten, or a proxy of TCP has lost, is never answered, and looks the same from
//! here. So a new session, one at a time, asks the server what it is at: what is not there, or idle, is
//! no longer waited for.
//!
//! A login that does not end is no session yet, and is given up altogether: where a server is gone,
//! each would take the kernel minutes to end.

use std::pin::Pin;
use std::time::Duration;

use mysql_async::{Conn, Error, Row};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::board::ProbeError;
use crate::probe::answer::{number, text};

/// Sessions of one link that are left at a statement. More than one, for a connection that a firewall
/// has forgotten looks the same for many minutes.
const UNANSWERED_MAX: usize = 2;

/// A statement that is as old is asked after, and no more often.
const ASKED_AFTER: Duration = Duration::from_secs(5);

/// What a server is at. Every account may ask for its own sessions.
pub(super) const SESSIONS: &str = "SHOW PROCESSLIST";

/// What is asked on a connection, and how it is answered.
pub(super) type Question<T> =
    for<'c> fn(&'c mut Conn, String) -> Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'c>>;

/// A connection that was asked, and its answer.
pub(super) type Answered<T> = (Conn, Result<T, Error>);

/// The statements of one link that have no answer yet.
#[derive(Default)]
pub(super) struct Unanswered {
    asking: JoinSet<()>,
    left: Vec<Left>,
    asked_after: Option<Instant>,
}

/// A session that is at a statement.
struct Left {
    connection_id: u32,
    since: Instant,
    asking: AbortHandle,
}

impl Unanswered {
    /// Waits, not for longer than this, until a further session may be begun.
    pub(super) async fn room(&mut self, time_limit: Duration) -> Result<(), ProbeError> {
        self.forget_the_ended();
        let fewer = async {
            while self.asking.len() >= UNANSWERED_MAX {
                self.asking.join_next().await;
            }
        };
        tokio::time::timeout(time_limit, fewer).await.map_err(|_| ProbeError::TimedOut)
    }

    /// Whether the server is to be asked, in one session more, what it is at; it is taken to be.
    /// Not while it leaves that unanswered as well.
    pub(super) fn is_to_be_asked_after(&mut self) -> bool {
        self.forget_the_ended();
        let is_old = |since: Instant| since.elapsed() >= ASKED_AFTER;
        let is_due = self.asking.len() == UNANSWERED_MAX
            && self.left.iter().any(|left| !left.asking.is_finished() && is_old(left.since))
            && self.asked_after.is_none_or(is_old);
        if is_due {
            self.asked_after = Some(Instant::now());
        }
        is_due
    }

    /// Gives up the old ones that the server is not at, by its [`SESSIONS`]. Those of them that it has
    /// as idle sessions of this user.
    pub(super) async fn forget_the_lost(&mut self, sessions: &[Row], user: &str) -> Vec<u32> {
        let mut idle = Vec::new();
        self.left.retain(|left| {
            if left.asking.is_finished() || left.since.elapsed() < ASKED_AFTER {
                return !left.asking.is_finished();
            }
            let is_its = |row: &&Row| row.as_ref(0).and_then(number) == Some(left.connection_id);
            let its = sessions.iter().find(is_its);
            let says = |index| its.and_then(|row| row.as_ref(index)).and_then(text);
            if its.is_some() && says(COMMAND).is_none_or(|command| command != "Sleep") {
                return true;
            }
            if its.is_some() && says(USER).is_some_and(|its| its == user) {
                idle.push(left.connection_id);
            }
            left.asking.abort();
            false
        });
        while self.asking.len() > self.left.len() {
            self.asking.join_next().await;
        }
        idle
    }

    /// Asks on this connection, and has it back with the answer.
    ///
    /// # Cancellation
    /// The connection is closed when the server has answered, as behind the time limit.
    pub(super) async fn ask<T: Send + 'static>(
        &mut self,
        mut conn: Conn,
        sql: &str,
        time_limit: Duration,
        question: Question<T>,
    ) -> Result<Answered<T>, ProbeError> {
        let sql = sql.to_owned();
        let connection_id = conn.id();
        let (answered, answer) = oneshot::channel::<Answered<T>>();
        self.begin(connection_id, async move {
            let answer = question(&mut conn, sql).await;
            if let Err((conn, _)) = answered.send((conn, answer)) {
                conn.disconnect().await.ok();
            }
        });
        let answer = tokio::time::timeout(time_limit, answer).await;
        let answer = answer.map_err(|_| ProbeError::TimedOut)?;
        answer.map_err(|_| ProbeError::Lost("its answer makes no sense".into()))
    }

    /// What is asked goes on also when it is given up.
    fn begin(&mut self, connection_id: u32, asking: impl Future<Output = ()> + Send + 'static) {
        self.forget_the_ended();
        let asking = self.asking.spawn(asking);
        self.left.push(Left { connection_id, since: Instant::now(), asking });
    }

    /// The set keeps each task until somebody asks for its end, and a connection that lasts asks for
    /// nothing else.
    fn forget_the_ended(&mut self) {
        while self.asking.try_join_next().is_some() {}
        self.left.retain(|left| !left.asking.is_finished());
    }
}

/// Columns of [`SESSIONS`].
const USER: usize = 1;
const COMMAND: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each heartbeat, reading and signal left its task behind for as long as its connection lasted.
    #[tokio::test]
    async fn what_is_answered_leaves_nothing_behind_on_a_connection_that_lasts() {
        let mut unanswered = Unanswered::default();
        for _ in 0..100 {
            let (ended, end) = oneshot::channel();
            unanswered.begin(7, async move { ended.send(()).unwrap() });
            end.await.unwrap();
            tokio::task::yield_now().await;
        }
        assert!(unanswered.asking.len() <= 1, "{}", unanswered.asking.len());
        assert!(unanswered.left.len() <= 1, "{}", unanswered.left.len());
    }
}
