//! Eager sessions: each sends its next statement as soon as the last is answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::error::{HarnessError, Result};
use crate::raw::{Login, RawConn};

/// Sessions of one account that write until they are stopped. Dropping them drops their connections.
#[derive(Debug)]
pub struct Writers {
    tasks: Vec<JoinHandle<Result<()>>>,
    tally: Arc<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    stop: AtomicBool,
    rows: AtomicU64,
    statements: AtomicU64,
    refused: AtomicU64,
}

/// What writers have done by some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Rows that the server has said to have changed.
    pub rows: u64,
    /// Statements answered with OK.
    pub statements: u64,
    /// Statements answered with an error.
    pub refused: u64,
}

impl Writers {
    /// Logs in so many sessions, and has each send this statement again and again.
    ///
    /// # Errors
    /// When a login fails.
    pub async fn start(addr: SocketAddr, user: &str, sessions: usize, sql: &str) -> Result<Self> {
        let mut writers = Self { tasks: Vec::new(), tally: Arc::default() };
        for _ in 0..sessions {
            let mut conn = RawConn::open(addr, &Login::new(user)).await?;
            conn.set_read_limit(ANSWER_LIMIT);
            writers.tasks.push(tokio::spawn(write(conn, sql.to_owned(), writers.tally.clone())));
        }
        Ok(writers)
    }

    /// What they have done by now.
    #[must_use]
    pub fn written(&self) -> Written {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Tally { rows, statements, refused, .. } = &*self.tally;
        Written { rows: count(rows), statements: count(statements), refused: count(refused) }
    }

    /// Lets each have its answer and leave, and says what they have done in all.
    ///
    /// # Errors
    /// When one of them has lost its connection.
    pub async fn stop(mut self) -> Result<Written> {
        self.tally.stop.store(true, Ordering::Relaxed);
        for task in self.tasks.drain(..) {
            task.await.map_err(|e| HarnessError::Malformed(format!("a writer failed: {e}")))??;
        }
        Ok(self.written())
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn write(mut conn: RawConn, sql: String, tally: Arc<Tally>) -> Result<()> {
    while !tally.stop.load(Ordering::Relaxed) {
        let response = conn.query(&sql).await?;
        match response.affected_rows() {
            Some(rows) => {
                tally.rows.fetch_add(rows, Ordering::Relaxed);
                tally.statements.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                tally.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    conn.quit().await
}

/// Longer than a statement may wait in a queue.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);
