//! A file on its way to the server (LOAD DATA LOCAL).
//!
//! A server works on the rows of a file while that comes, and reads on when it is done with some. So
//! the time for which it takes no more of it is time that it works for its statement; that in which it
//! waits for the client is not. Between it and Sluice lie megabytes, so that one wait may be long.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use super::super::running_away::UnderWay;
use crate::stream::Stream;

/// Writes a part of a file to the server, which has worked for so long on its statement; for how long
/// it has now.
///
/// # Cancellation
/// A part of the bytes may have been written.
pub(super) async fn upload(
    bytes: &[u8],
    backend: &mut Stream,
    worked: Duration,
    under_way: Option<UnderWay<'_>>,
) -> io::Result<Duration> {
    let mut write = pin!(backend.write(bytes));
    let at_once = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx))).await;
    match at_once {
        Poll::Ready(written) => written.map(|()| worked),
        Poll::Pending => {
            let since = Instant::now();
            Box::pin(until_taken(write, (since, worked), under_way)).await?;
            Ok(worked.saturating_add(since.elapsed()))
        }
    }
}

/// Waits for the server, while its statement may work for too long.
async fn until_taken(
    mut write: Pin<&mut impl Future<Output = io::Result<()>>>,
    (since, worked): (Instant, Duration),
    mut under_way: Option<UnderWay<'_>>,
) -> io::Result<()> {
    let limit = under_way.as_ref().and_then(UnderWay::upload_limit);
    let (Some(limit), Some(under_way)) = (limit, &mut under_way) else { return write.await };
    let mut due = if under_way.has_run_away() {
        under_way.due()
    } else {
        since.checked_add(limit.saturating_sub(worked))
    };
    loop {
        let over = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            written = &mut write => return written,
            () = over => {}
        }
        under_way.work_on_file(limit, worked.saturating_add(since.elapsed())).await;
        due = under_way.due();
    }
}
