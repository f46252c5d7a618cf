//! What goes on beside the writing.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::session::Session;
use super::stream::now_ms;
use super::writer::changelog;
use super::{Migration, TRIES};
use crate::error::{HarnessError, Result};

/// A task that ends with its owner.
#[derive(Debug)]
pub(super) struct Task(JoinHandle<Result<()>>);

impl Task {
    pub(super) fn spawn(work: impl Future<Output = Result<()>> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Waits until one of them has failed. One that ended well has nothing more to do.
///
/// # Cancellation
/// Nothing is lost: the tasks go on.
pub(super) async fn first_failure(tasks: &mut Vec<Task>) -> HarnessError {
    loop {
        if let Some(at) = tasks.iter().position(Task::is_finished) {
            let mut task = tasks.swap_remove(at);
            match (&mut task.0).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return error,
                Err(error) => return HarnessError::Malformed(format!("a task failed: {error}")),
            }
        }
        tokio::time::sleep(LOOK_EACH).await;
    }
}

/// Keeps the session that holds the migration's lock: lost is lost.
pub(super) async fn keep_alive(mut lock: Session) -> Result<()> {
    loop {
        tokio::time::sleep(PING_EACH).await;
        match tokio::time::timeout(PING_LIMIT, lock.ping()).await {
            Ok(answered) => answered?,
            Err(_) => return Err(HarnessError::Protocol("the migration's lock is lost".into())),
        }
    }
}

/// Writes the time into the changelog.
pub(super) async fn beat(migration: Migration) -> Result<()> {
    let mut session = Session::open(migration.applier, &migration.user).await?;
    let mut failed = 0;
    loop {
        match session.run(&changelog("heartbeat", &now_ms().to_string(), 1)).await {
            Ok(()) => failed = 0,
            Err(error) if failed >= TRIES => return Err(error),
            Err(_) => failed += 1,
        }
        tokio::time::sleep(BEAT_EACH).await;
    }
}

const LOOK_EACH: Duration = Duration::from_millis(50);
const PING_EACH: Duration = Duration::from_secs(30);
const PING_LIMIT: Duration = Duration::from_secs(10);
/// `--heartbeat-interval-millis`.
const BEAT_EACH: Duration = Duration::from_millis(100);
