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

use super::super::running_away::{UnderWay, upload_limit};
use super::super::{Connection, Ended};
use crate::stream::Stream;

impl Connection {
    /// Writes a part of a file to the server, and notes for how long that works on it. What it did while
    /// this process did not run nobody has seen.
    ///
    /// # Cancellation
    /// A part of the bytes may have been written.
    pub(super) async fn upload(&mut self, len: usize) -> Result<(), Ended> {
        let Self { session, client, backend, shared, policy, allowance, .. } = self;
        let Self { upload_twin, peer, birth, timing, .. } = self;
        let worked = timing.backend;
        let is_limited = upload_limit(policy, session, allowance).is_some();
        let twin = is_limited.then(|| twin(upload_twin, backend)).flatten();
        let cluster = &shared.cluster;
        let under_way = twin.map(|backend| UnderWay {
            shared,
            policy,
            session,
            allowance,
            peer,
            backend,
            birth,
            worked,
        });
        {
            let mut write = pin!(backend.write(client.bytes().get(..len).unwrap_or_default()));
            let at_once = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx))).await;
            let written = if let Poll::Ready(written) = at_once {
                written
            } else {
                let since = cluster.now();
                let waited = || cluster.probes.standstills.waited(since, cluster.now());
                let worked = || worked.saturating_add(waited());
                let written = until_taken(write, worked, under_way).await;
                timing.backend = worked();
                written
            };
            written.map_err(|_| Ended::ByBackend)?;
        }
        client.consume(len);
        self.note_used_so_far();
        Ok(())
    }
}

/// Waits for the server, while its statement may work for too long.
async fn until_taken(
    mut write: Pin<&mut impl Future<Output = io::Result<()>>>,
    worked: impl Fn() -> Duration,
    mut under_way: Option<UnderWay<'_>>,
) -> io::Result<()> {
    let Some(under_way) = &mut under_way else { return write.await };
    let mut edits = under_way.edits().await;
    let mut due = due_of(under_way, worked());
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
            () = over => {
                let limit = under_way.upload_limit().unwrap_or(Duration::MAX);
                under_way.work_on_file(limit, worked()).await;
                due = due_of(under_way, worked());
            }
            Ok(()) = edits.changed() => {
                under_way.follow_edit().await;
                due = due_of(under_way, worked());
            }
        }
    }
}

/// When something is to be done with a statement whose file the server has worked on for so long by
/// now.
fn due_of(under_way: &UnderWay<'_>, worked: Duration) -> Option<Instant> {
    if under_way.has_run_away() {
        return under_way.due();
    }
    Instant::now().checked_add(under_way.upload_limit()?.saturating_sub(worked))
}

/// The backend's socket once more: whoever kills looks at it while a write holds the other. Made for
/// the first part of a file, and kept for the others.
fn twin<'t>(kept: &'t mut Option<Box<Stream>>, backend: &Stream) -> Option<&'t Stream> {
    if kept.is_none() {
        *kept = backend.register_anew().ok().map(|socket| Box::new(Stream::new(socket)));
    }
    kept.as_deref()
}
