//! Work on a thread of its own, with a runtime of its own: what one load does between its answers does
//! not delay another's clock.

use std::future::Future;
use std::thread::JoinHandle;

use crate::Result;

/// What work may fail of, when another thread is to hear of it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs this to its end on a new thread.
///
/// # Errors
/// When no thread can be started.
pub fn beside<F, W, T>(name: &str, work: W) -> Result<JoinHandle<std::result::Result<T, Failure>>>
where
    W: FnOnce() -> F + Send + 'static,
    F: Future<Output = std::result::Result<T, Failure>>,
    T: Send + 'static,
{
    let thread = std::thread::Builder::new().name(name.to_owned());
    Ok(thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(work())
    })?)
}

/// What came of it. Waits for its end without holding up the caller's other tasks.
///
/// # Errors
/// What the work failed of.
pub async fn ended<T: Send + 'static>(
    thread: JoinHandle<std::result::Result<T, Failure>>,
) -> Result<T> {
    match tokio::task::spawn_blocking(|| thread.join()).await? {
        Ok(done) => Ok(done.map_err(|failure| failure.to_string())?),
        Err(_) => Err("the thread of a load has panicked".into()),
    }
}
