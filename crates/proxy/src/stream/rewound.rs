//! A socket some of whose bytes have been read already.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::buffer::Buffer;
use crate::socket::Socket;

/// Reads the bytes ahead first, then the socket. TLS runs over it: a client sends the first bytes
/// of its handshake right behind its request for it, so they may have been read together.
#[derive(Debug)]
pub(super) struct Rewound {
    ahead: Buffer,
    socket: Socket,
    /// Bytes that the socket has given. Wraps.
    received: u64,
}

impl Rewound {
    pub(super) fn new(ahead: Buffer, socket: Socket) -> Self {
        Self { ahead, socket, received: 0 }
    }

    /// Bytes that have come over the socket, in all; wraps.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }
}

impl AsyncRead for Rewound {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { ahead, socket, received } = self.get_mut();
        if ahead.is_empty() {
            let before = buf.filled().len();
            let read = Pin::new(socket).poll_read(cx, buf);
            let len = buf.filled().len().saturating_sub(before);
            *received = received.wrapping_add(u64::try_from(len).unwrap_or_default());
            return read;
        }
        let len = ahead.bytes().len().min(buf.remaining());
        buf.put_slice(ahead.bytes().get(..len).unwrap_or_default());
        ahead.consume(len);
        if ahead.is_empty() {
            *ahead = Buffer::default();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewound {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
