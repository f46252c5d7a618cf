//! What carries bytes: a socket, or TLS over one.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsStream;

use super::buffer::Buffer;
use super::rewound::Rewound;
use crate::socket::Socket;

/// A match costs nothing beside the system call behind it.
#[derive(Debug)]
pub(super) enum Carrier {
    Plain(Socket),
    Tls(Box<TlsStream<Rewound>>),
}

impl Carrier {
    /// Reads once into what room `buffer` has. `Ok(0)` is the peer's end. What TLS has decrypted
    /// already comes first, so whoever reads until it is pending has read everything that has come.
    pub(super) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_stirred(cx))?;
            match self.poll_take(cx, buffer) {
                Poll::Ready(Err(error)) if is_in_vain(&error) => {}
                read => return read,
            }
        }
    }

    /// Whether there may be something to read. TLS may have decrypted it already.
    pub(super) fn poll_stirred(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(socket) => socket.poll_read_ready(cx),
            Self::Tls(_) => Poll::Ready(Ok(())),
        }
    }

    /// Reads once, where there may be something. An error that [`is_in_vain`] is none.
    pub(super) fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        let read = match self {
            Self::Plain(socket) => socket.try_read(buffer.free())?,
            Self::Tls(tls) => {
                let mut free = ReadBuf::new(buffer.free());
                ready!(Pin::new(tls).poll_read(cx, &mut free))?;
                free.filled().len()
            }
        };
        buffer.fill(read);
        Poll::Ready(Ok(read))
    }

    /// Writes all of `bytes`.
    ///
    /// # Cancellation
    /// Some of them may have been written.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut left = bytes;
        poll_fn(|cx| self.poll_write(cx, &mut left)).await
    }

    /// Without the futures of tokio, for which every idle connection would have room.
    fn poll_write(&mut self, cx: &mut Context<'_>, left: &mut &[u8]) -> Poll<io::Result<()>> {
        while !left.is_empty() {
            let written = match self {
                Self::Plain(socket) => Pin::new(socket).poll_write(cx, left),
                Self::Tls(tls) => Pin::new(tls).poll_write(cx, left),
            };
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => *left = left.get(written..).unwrap_or_default(),
            }
        }
        match self {
            Self::Plain(_) => Poll::Ready(Ok(())),
            // What is encrypted may still be in TLS's own buffer.
            Self::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    /// Bytes that have come over the socket below TLS, in all; wraps. `None` without TLS: what was
    /// read is what has come.
    pub(super) fn received(&self) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => Some(tls.get_ref().0.received()),
        }
    }

    /// The socket below everything.
    pub(super) fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => tls.get_ref().0.socket(),
        }
    }

    /// See [`Carrier::socket`].
    pub(super) fn socket_mut(&mut self) -> &mut Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => tls.get_mut().0.socket_mut(),
        }
    }

    /// Closes the sending half; errors do not matter any more.
    pub(super) async fn shutdown(&mut self) {
        match self {
            Self::Plain(socket) => drop(socket.shutdown().await),
            Self::Tls(tls) => drop(tls.shutdown().await),
        }
    }
}

/// Nothing was there after all, or a signal came: wait on.
pub(super) fn is_in_vain(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
