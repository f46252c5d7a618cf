//! The listener of the admin port. A client of it must not use up the file descriptors that the
//! proxy needs, and must not keep a health check from being answered.
//!
//! Each connection carries one request. Of those that are open at most [`CONNECTIONS_MAX`], one
//! makes room for the next: the oldest whose answer has not begun, or else the oldest. So one that
//! asks at once is answered at once, however many others ask in parts, not at all, or do not read
//! their answer; they end by the deadlines anyway.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

/// Scrapers, health checks and a few browsers.
const CONNECTIONS_MAX: usize = 128;

/// From the accept to the first byte of the answer: time for a request from far away, and for the
/// metrics of 10,000 rules.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// From the first byte of an answer to its last: megabytes of metrics on a slow line.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// After an accept that failed: time for a file descriptor to come back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Accepts always, and closes connections when there are too many.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    /// Oldest first. Those that have ended are found when room is needed.
    open: VecDeque<Open>,
}

/// What the listener keeps of a connection.
struct Open {
    /// Closes the connection when it is dropped.
    close: oneshot::Sender<()>,
    answering: Arc<AtomicBool>,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, open: VecDeque::new() }
    }

    /// Whether a connection had to be closed for the next one.
    fn make_room(&mut self) -> bool {
        if self.open.len() < CONNECTIONS_MAX {
            return false;
        }
        self.open.retain(|open| !open.close.is_closed());
        if self.open.len() < CONNECTIONS_MAX {
            return false;
        }
        let asking = self.open.iter().position(|open| !open.answering.load(Ordering::Relaxed));
        self.open.remove(asking.unwrap_or_default());
        true
    }

    fn admit(&mut self, socket: TcpStream) -> Connection {
        let (close, closed) = oneshot::channel();
        let answering = Arc::new(AtomicBool::new(false));
        self.open.push_back(Open { close, answering: Arc::clone(&answering) });
        Connection { socket, closed, answering, deadline: Box::pin(sleep(REQUEST_WITHIN)) }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((socket, peer)) => {
                    if self.make_room() {
                        // So that what was closed is gone before the next one comes.
                        tokio::task::yield_now().await;
                    }
                    return (self.admit(socket), peer);
                }
                Err(error) => {
                    tracing::warn!(%error, "accept failed on the admin port");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when its time is up, or another one needs its place.
pub(crate) struct Connection {
    socket: TcpStream,
    closed: oneshot::Receiver<()>,
    answering: Arc<AtomicBool>,
    deadline: Pin<Box<Sleep>>,
}

impl Connection {
    /// An error once the connection has to end; else the task is woken when it has to.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let over = Pin::new(&mut self.closed).poll(cx).is_ready();
        if over || self.deadline.as_mut().poll(cx).is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.answering.swap(true, Ordering::Relaxed) {
            self.deadline.as_mut().reset(Instant::now() + ANSWER_WITHIN);
        }
        self.check(cx)?;
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
