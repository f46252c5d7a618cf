//! One side of a connection: a socket and the bytes read from it that nobody has taken yet.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::socket::Socket;

/// What a buffer has while little is going on. With both sides, the session and the task this stays under
/// the memory promised per idle connection.
const BUFFER_LEN: usize = 2 * 1024;

/// What a buffer grows to while a read fills it: large results and uploads then cost fewer system calls.
/// More than this brought nothing in measurements of loopback transfers.
const BUFFER_LEN_MAX: usize = 64 * 1024;

/// The socket of one side and its unread bytes.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: Socket,
    buffer: BytesMut,
    /// How much the next read may take.
    read_len: usize,
}

impl Stream {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, buffer: BytesMut::with_capacity(BUFFER_LEN), read_len: BUFFER_LEN }
    }

    /// Bytes read and not yet taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    /// Drops the first `len` bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.buffer.advance(len.min(self.buffer.len()));
    }

    /// Reads once. `Ok(0)` is the peer's end.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.buffer.capacity().saturating_sub(self.buffer.len()) < self.read_len / 2 {
            self.buffer.reserve(self.read_len);
        }
        let Self { socket, buffer, .. } = self;
        let read = pin!(socket.read_buf(buffer));
        let Poll::Ready(result) = read.poll(cx) else { return Poll::Pending };
        if result.is_ok() && buffer.len() == buffer.capacity() {
            self.read_len = self.read_len.saturating_mul(4).min(BUFFER_LEN_MAX);
        }
        Poll::Ready(result)
    }

    /// Writes bytes of the other side, or made by the session.
    ///
    /// # Cancellation
    /// Dropping it in the middle leaves a torn packet: the connection can only be closed then.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes).await
    }

    /// Resolves when the peer has closed, or has closed its sending half, also while there are unread
    /// bytes; never for ordinary data.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn hung_up(&self) {
        self.socket.hung_up().await;
    }

    /// Gives memory back that a large statement has grown.
    pub(crate) fn shrink(&mut self) {
        if self.buffer.is_empty() && self.read_len > BUFFER_LEN {
            self.buffer = BytesMut::with_capacity(BUFFER_LEN);
            self.read_len = BUFFER_LEN;
        }
    }

    /// Closes the sending half; errors do not matter any more.
    pub(crate) async fn shutdown(&mut self) {
        drop(self.socket.shutdown().await);
    }
}
