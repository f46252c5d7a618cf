//! Bytes on their way, also when somebody does not keep up or has gone: answers, last words, the
//! end.

mod uploading;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use session::{Move, Side};
use tokio::time::Instant;

use super::errors::LAST_WORDS_TIMEOUT;
use super::running_away::UnderWay;
use super::{Connection, Ended};
use crate::runaway::Excess;
use crate::stream::Stream;

/// Writes to the client, unless it has gone already; since when is noted when this finds out. It may
/// take its time.
async fn deliver(
    bytes: &[u8],
    client: &mut Stream,
    client_gone: &mut Option<Instant>,
    under_way: UnderWay<'_>,
) {
    if client_gone.is_some() {
        return;
    }
    let mut write = pin!(client.write(bytes));
    let at_once = poll_fn(|cx| Poll::Ready(write.as_mut().poll(cx))).await;
    let written = match at_once {
        Poll::Ready(written) => written,
        // Boxed, and made only when the client's socket is full: an idle connection does not pay for
        // it.
        Poll::Pending => Box::pin(until_taken(write, under_way)).await,
    };
    if written.is_err() {
        *client_gone = Some(Instant::now());
    }
}

/// Waits for a client that does not keep up, while its statement may run for too long: nobody reads
/// what the server says meanwhile, and it waits as well. When the server has ended its side, as it
/// does with clients that do not read, the client has a minute for what is under way. Behind a KILL,
/// which the server heeds only when it goes on, it has some seconds.
async fn until_taken(
    mut write: Pin<&mut impl Future<Output = io::Result<()>>>,
    mut under_way: UnderWay<'_>,
) -> io::Result<()> {
    let backend = under_way.backend;
    let mut edits = under_way.edits().await;
    let mut given_up = pin!(async {
        backend.hung_up().await;
        tokio::time::sleep(STALLED_CLIENT).await;
    });
    loop {
        let stalled_at = Instant::now().checked_add(STALLED_KILLED);
        let until = if under_way.is_killed() { stalled_at } else { under_way.due() };
        let due = async {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            written = &mut write => return written,
            () = &mut given_up => return Err(io::ErrorKind::TimedOut.into()),
            () = due => {}
            Ok(()) = edits.changed(), if !under_way.is_killed() => {
                under_way.follow_edit().await;
                continue;
            }
        }
        if under_way.is_killed() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        under_way.run_away(Excess::Elapsed).await;
    }
}

/// What a client that takes nothing gets for the bytes under way when its statement has been killed.
/// Then it is gone: what the server still says is read, and with that the statement ends.
const STALLED_KILLED: Duration = Duration::from_secs(5);

/// What a client that does not read gets for the bytes under way (at most a buffer of them) when
/// the server has closed: MySQL's default of `net_write_timeout`.
const STALLED_CLIENT: Duration = Duration::from_secs(60);

/// How long the server may go on answering an admitted statement whose client has gone. Then its
/// connection is closed, and the server ends the statement when it notices.
pub(super) const ABANDONED_ANSWER: Duration = Duration::from_secs(30);

impl Connection {
    /// Moves bytes as the session said.
    pub(super) async fn move_bytes(&mut self, moved: Move) -> Result<(), Ended> {
        self.note_moved(moved);
        if self.session.awaits_file() {
            if self.allowance.is_edited() {
                Box::pin(self.follow_edit()).await;
            }
            match moved {
                Move::Forward { from: Side::Client, len } => {
                    return Box::pin(self.upload(len)).await;
                }
                Move::Forward { from: Side::Backend, .. } => self.allowance.await_file(),
                Move::Replace { .. } | Move::Drop { .. } => {}
            }
        }
        let Self {
            session,
            client,
            client_gone,
            backend,
            shared,
            policy,
            allowance,
            peer,
            birth,
            timing,
            ..
        } = self;
        let worked = timing.backend;
        match moved {
            Move::Forward { from: Side::Client, len } => {
                let bytes = client.bytes().get(..len).unwrap_or_default();
                backend.write(bytes).await.map_err(|_| Ended::ByBackend)?;
                client.consume(len);
            }
            Move::Forward { from: Side::Backend, len } => {
                let bytes = backend.bytes().get(..len).unwrap_or_default();
                let under_way =
                    UnderWay { shared, policy, session, allowance, peer, backend, birth, worked };
                deliver(bytes, client, client_gone, under_way).await;
                backend.consume(len);
            }
            Move::Replace { from: Side::Client, drop } => {
                client.consume(drop);
                backend.write(session.outbox()).await.map_err(|_| Ended::ByBackend)?;
            }
            Move::Replace { from: Side::Backend, drop } => {
                backend.consume(drop);
                let under_way =
                    UnderWay { shared, policy, session, allowance, peer, backend, birth, worked };
                deliver(session.outbox(), client, client_gone, under_way).await;
            }
            Move::Drop { from: Side::Client, len } => client.consume(len),
            Move::Drop { from: Side::Backend, len } => backend.consume(len),
        }
        Ok(())
    }

    /// The backend's socket failed while being written to: what it still said is for the client.
    pub(super) async fn flush_backend(&mut self) {
        let flush = async {
            for _ in 0..FLUSH_READS_MAX {
                let bytes = self.backend.bytes();
                if !bytes.is_empty() && self.client.write(bytes).await.is_err() {
                    return;
                }
                self.backend.consume(usize::MAX);
                if !matches!(poll_fn(|cx| self.backend.poll_fill(cx)).await, Ok(1..)) {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(FLUSH_TIMEOUT, flush).await);
    }

    /// Closes both sides. TLS has a last word, for which a peer may leave no room.
    pub(super) async fn close(&mut self) {
        if !self.session.is_idle() {
            // A server that works takes TLS's last word for a command that waits, and itself for
            // one that is listened to.
            self.backend.end_sending();
        }
        drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, self.backend.shutdown()).await);
        drop(tokio::time::timeout(LAST_WORDS_TIMEOUT, self.client.shutdown()).await);
    }
}

/// What a failing backend may still have to say: an error packet, at most a few reads of it.
const FLUSH_READS_MAX: usize = 16;

/// How long a failing backend is listened to.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
