//! A statement that has been sent and may be waiting.

use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::error::{HarnessError, Result};
use crate::raw::{RawConn, Response, Shape};

/// A command under way on a connection of its own. Dropping it drops the connection: the client vanishes.
#[derive(Debug)]
pub struct Pending {
    sent: Instant,
    task: JoinHandle<Result<Answered>>,
}

/// What came of a [`Pending`].
#[derive(Debug)]
pub struct Answered {
    /// The connection, ready for the next command.
    pub conn: RawConn,
    /// The answer.
    pub response: Response,
    /// From the first byte sent to the last byte read.
    pub after: Duration,
}

impl Pending {
    /// Sends a text statement.
    #[must_use]
    pub fn query(conn: RawConn, sql: impl AsRef<[u8]>) -> Self {
        let payload = conn.query_payload(sql.as_ref(), &[]);
        Self::command(conn, payload)
    }

    /// Sends a command that is answered as a statement is.
    #[must_use]
    pub fn command(mut conn: RawConn, payload: Vec<u8>) -> Self {
        let sent = Instant::now();
        let task = tokio::spawn(async move {
            conn.set_read_limit(ANSWER_LIMIT);
            let response = conn.command(&payload, Shape::Query).await?;
            Ok(Answered { conn, response, after: sent.elapsed() })
        });
        Self { sent, task }
    }

    /// Whether the answer has come.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.task.is_finished()
    }

    /// Since when it is under way.
    #[must_use]
    pub fn sent(&self) -> Instant {
        self.sent
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// When it does not come within `limit` from now, or the connection fails.
    pub async fn answered(mut self, limit: Duration) -> Result<Answered> {
        match tokio::time::timeout(limit, &mut self.task).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(failed)) => Err(HarnessError::Protocol(format!("a task failed: {failed}"))),
            Err(_) => Err(HarnessError::TimedOut { what: "an answer".into(), after: limit }),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Longer than any wait of a test: what a test waits for has limits of its own.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
