//! A panic of one probe, or of one look at the file, ends that and not whoever starts the next.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// What a panic leaves.
pub(crate) type Panic = Box<dyn Any + Send>;

/// Goes on to its end, or to its panic. Whoever goes on then answers for what it has left halfway.
///
/// # Cancellation
/// As the future's own.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panic> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// What it said.
pub(crate) fn words(panic: &Panic) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it said nothing")
}
