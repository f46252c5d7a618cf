//! Statements of a link that the server may still be at.
//!
//! A server does not notice that whoever asked has left, and the statement goes on: behind a lock, in
//! a group that has to catch up first, or because it is slow. If each new attempt began another
//! session, Sluice would use up `max_connections` while it finds out that something hangs. So a
//! statement that is given up keeps its connection until the server has answered, and where a few are
//! left so, no further session is begun.
//!
//! A login that does not end is no session yet, and is given up altogether: where a server is gone,
//! each would take the kernel minutes to end.

use std::pin::Pin;
use std::time::Duration;

use mysql_async::{Conn, Error};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::board::ProbeError;

/// Sessions of one link that are left at a statement. More than one, for a connection that a firewall
/// has forgotten looks the same for many minutes.
const UNANSWERED_MAX: usize = 2;

/// What is asked on a connection, and how it is answered.
pub(super) type Question<T> =
    for<'c> fn(&'c mut Conn, String) -> Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'c>>;

/// A connection that was asked, and its answer.
pub(super) type Answered<T> = (Conn, Result<T, Error>);

/// The statements of one link that have no answer yet.
#[derive(Default)]
pub(super) struct Unanswered(JoinSet<()>);

impl Unanswered {
    /// Waits, not for longer than this, until a further session may be begun.
    pub(super) async fn room(&mut self, time_limit: Duration) -> Result<(), ProbeError> {
        while self.0.try_join_next().is_some() {}
        let fewer = async {
            while self.0.len() >= UNANSWERED_MAX {
                self.0.join_next().await;
            }
        };
        tokio::time::timeout(time_limit, fewer).await.map_err(|_| ProbeError::TimedOut)
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
        let (answered, answer) = oneshot::channel::<Answered<T>>();
        self.0.spawn(async move {
            let answer = question(&mut conn, sql).await;
            if let Err((conn, _)) = answered.send((conn, answer)) {
                conn.disconnect().await.ok();
            }
        });
        let answer = tokio::time::timeout(time_limit, answer).await;
        let answer = answer.map_err(|_| ProbeError::TimedOut)?;
        answer.map_err(|_| ProbeError::Lost("its answer makes no sense".into()))
    }
}
