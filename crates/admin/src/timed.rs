//! A connection to the door that ends when its time is up, or another one needs its place.
//!
//! ```text
//! New ──(an answer begins)──▶ Answering ──(it is written)──▶ Kept ──(bytes)──▶ AskingAgain
//!                                 ▲                                                │
//!                                 └──────────────(an answer begins)────────────────┘
//! ```

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::places::{Place, Stage};

/// From the accept, or the first byte of a later request, to the first byte of the answer: time for
/// a request from far away, and for the metrics of 10,000 rules.
pub(crate) const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// From the first byte of an answer to its last: megabytes of metrics on a slow line.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// From an answer to the first byte of the next request, where the connection stays.
const NEXT_WITHIN: Duration = Duration::from_secs(30);

/// The stream of a connection, and its time.
pub(crate) struct Timed<S> {
    stream: S,
    place: Place,
    deadline: Pin<Box<Sleep>>,
    ended: Ended,
}

/// Whether the connection has to end. It is asked again after it was told so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    NotYet,
    Yes,
}

impl<S> Timed<S> {
    pub(crate) fn new(stream: S, place: Place) -> Self {
        let deadline = Box::pin(sleep(REQUEST_WITHIN));
        Self { stream, place, deadline, ended: Ended::NotYet }
    }

    fn enter(&mut self, stage: Stage) {
        let within = match stage {
            Stage::New | Stage::AskingAgain => REQUEST_WITHIN,
            Stage::Answering => ANSWER_WITHIN,
            Stage::Kept => NEXT_WITHIN,
        };
        self.place.enter(stage);
        self.deadline.as_mut().reset(Instant::now() + within);
    }

    /// An error once the connection has to end; else the task is woken when it has to.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        // Who has said that the place is needed must not be asked again.
        let ends = self.ended == Ended::Yes
            || Pin::new(&mut self.place.needed).poll(cx).is_ready()
            || self.deadline.as_mut().poll(cx).is_ready();
        if ends {
            self.ended = Ended::Yes;
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if self.place.stage() == Stage::Kept && buf.filled().len() > before {
            self.enter(Stage::AskingAgain);
            self.check(cx)?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.place.stage() != Stage::Answering {
            self.enter(Stage::Answering);
        }
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    /// Answers come in one piece, so whatever was to be written is one, as a whole.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if self.place.stage() == Stage::Answering {
            self.enter(Stage::Kept);
            self.check(cx)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
