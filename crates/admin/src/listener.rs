//! A listener that has only so many connections open: a client of the admin port must not use up the file
//! descriptors that the proxy needs.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Scrapers, health checks and a few browsers.
const CONNECTIONS_MAX: usize = 128;

/// After an accept that failed: time for a file descriptor to come back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Accepts while there are fewer than the most connections.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

/// A connection and its place.
pub(crate) struct Connection {
    socket: TcpStream,
    _place: Option<OwnedSemaphorePermit>,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)) }
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        // Only a closed semaphore has no place to give, and this one is never closed.
        let place = self.places.clone().acquire_owned().await.ok();
        loop {
            match self.listener.accept().await {
                Ok((socket, peer)) => return (Connection { socket, _place: place }, peer),
                Err(error) => {
                    tracing::warn!(%error, "accept failed on the admin port");
                    tokio::time::sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
