//! One side of a connection: a transport and the bytes read from it that nobody has taken yet.

mod buffer;
mod carrier;
mod codecs;
mod packed;
mod rewound;
mod spare;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use session::Compression;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use wire::compress::Role;

use self::buffer::Buffer;
use self::carrier::Carrier;
pub(crate) use self::codecs::Codecs;
use self::packed::Packed;
use self::rewound::Rewound;
use crate::socket::{PeerLook, Remote, Socket};

/// What a buffer has while little is going on. Only a stream with unread bytes has one.
const BUFFER_LEN: usize = 2 * 1024;

/// What a buffer grows to while a read fills it: large results and uploads then cost fewer system
/// calls. More than this brought nothing in measurements of loopback transfers.
const BUFFER_LEN_MAX: usize = 64 * 1024;

/// The transport of one side and its unread bytes.
///
/// ```text
/// socket ─▶ TLS, if it was started ─▶ decompression, if it was agreed on ─▶ buffer ─▶ session
/// ```
#[derive(Debug)]
pub(crate) struct Stream {
    transport: Transport,
    /// Without room while there is nothing to read: what is small is lent (`spare`).
    buffer: Buffer,
    /// How much the next read may take.
    read_len: usize,
}

/// What bytes come through.
#[derive(Debug)]
enum Transport {
    Bare(Carrier),
    Packed(Box<Packed>),
    /// A TLS handshake has failed, or was given up.
    Closed,
}

impl Stream {
    pub(crate) fn new(socket: Socket) -> Self {
        Self {
            transport: Transport::Bare(Carrier::Plain(socket)),
            buffer: Buffer::default(),
            read_len: BUFFER_LEN,
        }
    }

    /// Bytes read and not yet taken.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }

    /// Drops the first `len` bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.buffer.consume(len);
    }

    /// Reads once. `Ok(0)` is the peer's end. Whoever reads until it is pending has read everything
    /// that has come, but for commands that wait for those before them to be looked at.
    pub(crate) fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { transport, buffer, read_len } = self;
        // One that has grown is its own, also when what filled it to the end has been taken.
        let is_lent = *read_len == BUFFER_LEN;
        let read = loop {
            // Nothing is lent to who only looks, and more than half of the looks find nothing.
            if let Transport::Bare(carrier) = transport
                && carrier.poll_stirred(cx)?.is_pending()
            {
                break Poll::Pending;
            }
            if buffer.memory_len() == 0 && is_lent {
                *buffer = spare::take();
            }
            buffer.make_room(*read_len);
            break match transport {
                Transport::Bare(carrier) => match carrier.poll_take(cx, buffer) {
                    Poll::Ready(Err(error)) if carrier::is_in_vain(&error) => continue,
                    read => read,
                },
                Transport::Packed(packed) => packed.poll_fill(cx, buffer, *read_len),
                Transport::Closed => Poll::Ready(Ok(0)),
            };
        };
        let Poll::Ready(result) = read else {
            if buffer.is_empty() && is_lent {
                spare::give_back(std::mem::take(buffer));
            }
            return Poll::Pending;
        };
        if result.is_ok() && buffer.is_full() {
            self.read_len = self.read_len.saturating_mul(4).min(BUFFER_LEN_MAX);
        }
        Poll::Ready(result)
    }

    /// Bytes that have come over the socket, in all; wraps. It grows also where nothing can be read
    /// before a record of TLS, or a block of what is compressed, is whole. Where there is neither it
    /// says nothing: what was read is what has come.
    pub(crate) fn received(&self) -> u64 {
        match &self.transport {
            Transport::Bare(carrier) => carrier.received().unwrap_or_default(),
            Transport::Packed(packed) => packed.received(),
            Transport::Closed => 0,
        }
    }

    /// Writes bytes of the other side, or made by the session. What a plain socket takes at once,
    /// which is nearly everything, is written without a future.
    ///
    /// # Cancellation
    /// Dropping it in the middle leaves a torn packet: the connection can only be closed then.
    #[inline]
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut bytes = bytes;
        if bytes.is_empty() {
            return Ok(());
        }
        if let Transport::Bare(Carrier::Plain(socket)) = &self.transport {
            match socket.try_write(bytes) {
                Ok(written) if written == bytes.len() => return Ok(()),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        self.write_rest(bytes).await
    }

    async fn write_rest(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.transport {
            Transport::Bare(carrier) => carrier.write(bytes).await,
            Transport::Packed(packed) => packed.write(bytes).await,
            Transport::Closed => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Goes on compressed, in both directions. What has been read ahead is compressed as well.
    pub(crate) fn compress(&mut self, role: Role, compression: Compression, codecs: &Arc<Codecs>) {
        self.transport = match std::mem::replace(&mut self.transport, Transport::Closed) {
            Transport::Bare(carrier) => {
                let ahead = std::mem::take(&mut self.buffer);
                let codecs = codecs.clone();
                let packed = Packed::new(carrier, ahead, role, compression, codecs);
                Transport::Packed(Box::new(packed))
            }
            other @ (Transport::Packed(_) | Transport::Closed) => other,
        };
    }

    /// A file is sent over this side next (LOCAL INFILE), not a command.
    pub(crate) fn begin_upload(&mut self) {
        match &mut self.transport {
            Transport::Packed(packed) => packed.begin_upload(),
            Transport::Bare(_) | Transport::Closed => {}
        }
    }

    /// A stream of events goes to this side, whose compressed packets count from `restart` behind
    /// one that is to be acknowledged.
    pub(crate) fn begin_stream(&mut self, restart: u8) {
        match &mut self.transport {
            Transport::Packed(packed) => packed.begin_stream(restart),
            Transport::Bare(_) | Transport::Closed => {}
        }
    }

    /// The stream is over, or there was none.
    pub(crate) fn end_stream(&mut self) {
        match &mut self.transport {
            Transport::Packed(packed) => packed.end_stream(),
            Transport::Bare(_) | Transport::Closed => {}
        }
    }

    /// Goes on in TLS, as the server. Bytes that came behind what was taken belong to the
    /// handshake; they are never looked at as anything else.
    ///
    /// # Cancellation
    /// The stream is closed.
    pub(crate) async fn accept_tls(&mut self, config: Arc<ServerConfig>) -> io::Result<()> {
        let raw = self.take_raw()?;
        let tls = TlsAcceptor::from(config).accept(raw).await?;
        self.transport = Transport::Bare(Carrier::Tls(Box::new(tls.into())));
        Ok(())
    }

    /// Goes on in TLS, as the client. The server has nothing to say before the handshake: bytes
    /// that are there already are not the server's.
    ///
    /// # Cancellation
    /// The stream is closed.
    pub(crate) async fn connect_tls(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<()> {
        if !self.buffer.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "bytes ahead of the handshake"));
        }
        let raw = self.take_raw()?;
        let tls = TlsConnector::from(config).connect(name, raw).await?;
        self.transport = Transport::Bare(Carrier::Tls(Box::new(tls.into())));
        Ok(())
    }

    /// The socket with its unread bytes, for a handshake. The stream is closed until that has
    /// succeeded.
    fn take_raw(&mut self) -> io::Result<Rewound> {
        match std::mem::replace(&mut self.transport, Transport::Closed) {
            Transport::Bare(Carrier::Plain(socket)) => {
                let ahead = std::mem::take(&mut self.buffer);
                Ok(Rewound::new(ahead, socket))
            }
            Transport::Bare(Carrier::Tls(_)) | Transport::Packed(_) | Transport::Closed => {
                Err(io::ErrorKind::NotConnected.into())
            }
        }
    }

    /// Resolves when the peer has closed, or has closed its sending half, also while there are
    /// unread bytes; never for ordinary data.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn hung_up(&self) {
        if let Some(socket) = self.socket() {
            socket.hung_up().await;
        }
    }

    /// See [`Socket::is_reset`]; also where there is no socket any more.
    pub(crate) async fn is_reset(&self) -> bool {
        match self.socket() {
            Some(socket) => socket.is_reset().await,
            None => true,
        }
    }

    /// Whether it is worth to ask whether the peer has hung up: something has come that nobody has read,
    /// be it data or the end. It costs a fraction of [`Stream::hung_up`], and wakes for data too.
    pub(crate) fn poll_stirred(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket().map_or(Poll::Ready(()), |socket| socket.poll_read_ready(cx).map(drop))
    }

    /// See [`Socket::end_sending`]. TLS says nothing of it: a server does not look for its last
    /// word while it works, but sees that the socket has ended.
    pub(crate) fn end_sending(&self) {
        if let Some(socket) = self.socket() {
            socket.end_sending();
        }
    }

    /// See [`Socket::has_unread`]. In TLS it may be no data.
    pub(crate) fn has_unread(&self) -> bool {
        self.socket().is_some_and(Socket::has_unread)
    }

    /// See [`Socket::look_for_peer`].
    pub(crate) fn look_for_peer(&self) -> Option<PeerLook<'_>> {
        self.socket()?.look_for_peer()
    }

    /// Whether it is known by now that [`Stream::hung_up`] has come, or there is no socket any more.
    pub(crate) async fn is_over(&self) -> bool {
        let Some(socket) = self.socket() else { return true };
        tokio::select! {
            biased;
            () = socket.hung_up() => true,
            () = std::future::ready(()) => false,
        }
    }

    /// The port that it has here; none if it is a Unix socket.
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.socket()?.local_address().map(|address| address.port())
    }

    /// See [`Socket::is_at_its_path`].
    pub(crate) async fn is_at_its_path(&self) -> bool {
        match self.socket() {
            Some(socket) => socket.is_at_its_path().await,
            None => false,
        }
    }

    /// See [`Socket::remote`].
    pub(crate) fn remote(&self) -> Option<Remote> {
        self.socket()?.remote()
    }

    /// See [`Socket::register_anew`]; an error also where it is closed.
    pub(crate) fn register_anew(&self) -> io::Result<Socket> {
        self.socket().ok_or(io::ErrorKind::NotConnected)?.register_anew()
    }

    /// Goes on over this one, which is the same socket.
    pub(crate) fn go_on_over(&mut self, socket: Socket) {
        let ours = match &mut self.transport {
            Transport::Bare(carrier) => carrier.socket_mut(),
            Transport::Packed(packed) => packed.carrier_mut().socket_mut(),
            Transport::Closed => return,
        };
        *ours = socket;
    }

    fn socket(&self) -> Option<&Socket> {
        match &self.transport {
            Transport::Bare(carrier) => Some(carrier.socket()),
            Transport::Packed(packed) => Some(packed.carrier().socket()),
            Transport::Closed => None,
        }
    }

    /// Nothing is under way. Gives memory back that a large statement has grown.
    pub(crate) fn rest(&mut self) {
        if let Transport::Packed(packed) = &mut self.transport {
            packed.rest();
        }
        if self.buffer.is_empty() && self.read_len > BUFFER_LEN {
            self.buffer = Buffer::default();
            self.read_len = BUFFER_LEN;
        }
    }

    /// Closes the sending half; errors do not matter any more.
    pub(crate) async fn shutdown(&mut self) {
        match &mut self.transport {
            Transport::Bare(carrier) => carrier.shutdown().await,
            Transport::Packed(packed) => packed.carrier_mut().shutdown().await,
            Transport::Closed => {}
        }
    }
}

#[cfg(test)]
mod tests;
