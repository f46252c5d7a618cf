//! Bytes on their way, also when somebody does not keep up or has gone: answers, last words, the
//! end.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use session::{Move, Side};
use tokio::time::Instant;

use super::errors::LAST_WORDS_TIMEOUT;
use super::{Connection, Ended};
use crate::stream::Stream;

/// Writes to the client, unless it has gone already; since when is noted when this finds out.
pub(super) async fn deliver(
    bytes: &[u8],
    client: &mut Stream,
    client_gone: &mut Option<Instant>,
    backend: &Stream,
) {
    if client_gone.is_none() && write(bytes, client, backend).await.is_err() {
        *client_gone = Some(Instant::now());
    }
}

/// Writes to the client. It may take its time; but when the server has ended its side meanwhile, as
/// it does with clients that do not read, it has a minute for what is under way.
async fn write(bytes: &[u8], client: &mut Stream, backend: &Stream) -> io::Result<()> {
    let mut write = pin!(client.write(bytes));
    // Boxed, and made only when the client's socket is full: an idle connection does not pay for
    // it.
    let mut given_up: Option<Pin<Box<_>>> = None;
    poll_fn(|cx| {
        if let Poll::Ready(written) = write.as_mut().poll(cx) {
            return Poll::Ready(written);
        }
        let given_up = given_up.get_or_insert_with(|| {
            Box::pin(async {
                backend.hung_up().await;
                tokio::time::sleep(STALLED_CLIENT).await;
            })
        });
        given_up.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    })
    .await
}

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
        let Self { session, client, client_gone, backend, .. } = self;
        match moved {
            Move::Forward { from: Side::Client, len } => {
                let bytes = client.bytes().get(..len).unwrap_or_default();
                backend.write(bytes).await.map_err(|_| Ended::ByBackend)?;
                client.consume(len);
            }
            Move::Forward { from: Side::Backend, len } => {
                let bytes = backend.bytes().get(..len).unwrap_or_default();
                deliver(bytes, client, client_gone, backend).await;
                backend.consume(len);
            }
            Move::Replace { from: Side::Client, drop } => {
                client.consume(drop);
                backend.write(session.outbox()).await.map_err(|_| Ended::ByBackend)?;
            }
            Move::Replace { from: Side::Backend, drop } => {
                backend.consume(drop);
                deliver(session.outbox(), client, client_gone, backend).await;
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
