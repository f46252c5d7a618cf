//! A connected socket of either family: everything above it does not care which.

use std::fmt;
use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use session::Leg;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A peer of which nothing has come for so long is asked whether it is there. The kernel counts in
/// seconds.
const PEER_SILENT: Duration = Duration::from_secs(1);

/// A connected socket. A match costs nothing beside the system call behind it, so there is no
/// dynamic call per read.
#[derive(Debug)]
pub(crate) enum Socket {
    /// Over the network.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

impl Socket {
    /// Resolves when the peer has closed, or has closed its sending half, also while there are
    /// unread bytes; never for ordinary data.
    ///
    /// # Cancellation
    /// Safe.
    pub(crate) async fn hung_up(&self) {
        // EPOLLRDHUP is reported with any interest; PRIORITY alone does not wake for data. An error
        // means that the socket is gone as well.
        match self {
            Self::Tcp(socket) => drop(socket.ready(Interest::PRIORITY).await),
            Self::Unix(socket) => drop(socket.ready(Interest::PRIORITY).await),
        }
    }

    /// Whether it is known by now that the peer takes nothing any more: it has reset the connection, or
    /// has closed a Unix socket. One of the network that has closed looks as if it had closed its
    /// sending half, until something is written to it.
    pub(crate) async fn is_reset(&self) -> bool {
        let ready = async {
            match self {
                Self::Tcp(socket) => socket.ready(Interest::WRITABLE).await,
                Self::Unix(socket) => socket.ready(Interest::WRITABLE).await,
            }
        };
        tokio::select! {
            biased;
            ready = ready => ready.map_or(true, |ready| ready.is_write_closed()),
            () = std::future::ready(()) => false,
        }
    }

    /// Whether something has come that nobody has read, data or the end, as far as the runtime knows. An
    /// error is an end as well.
    ///
    /// # Errors
    /// When the runtime shuts down.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(socket) => socket.poll_read_ready(cx),
            Self::Unix(socket) => socket.poll_read_ready(cx),
        }
    }

    /// Reads once, what fits into `memory`. `Ok(0)` is the peer's end.
    ///
    /// # Errors
    /// The socket's; `WouldBlock` when nothing is there, after which [`Socket::poll_read_ready`] waits for
    /// more to come.
    pub(crate) fn try_read(&self, memory: &mut [u8]) -> io::Result<usize> {
        let mut read = None;
        let mut receive = |mut socket: &socket2::Socket| {
            let len = socket.read(memory)?;
            read = Some(len);
            // Less than there was room for: the kernel has no more, and says so when there is. So the next
            // look need not ask it in vain. (epoll's manual, on edge-triggered events; tokio's own reads do
            // the same.)
            if (1..memory.len()).contains(&len) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(())
        };
        let outcome = match self {
            Self::Tcp(socket) => {
                socket.try_io(Interest::READABLE, || receive(&SockRef::from(socket)))
            }
            Self::Unix(socket) => {
                socket.try_io(Interest::READABLE, || receive(&SockRef::from(socket)))
            }
        };
        match read {
            Some(read) => Ok(read),
            None => outcome.map(|()| 0),
        }
    }

    /// Writes what fits without waiting.
    ///
    /// # Errors
    /// `WouldBlock` when nothing does.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.try_write(bytes),
            Self::Unix(socket) => socket.try_write(bytes),
        }
    }

    /// The same socket once more, for the runtime that this is called within: whoever has both drops one.
    ///
    /// # Errors
    /// When there are no file descriptors left, or that runtime has ended.
    pub(crate) fn register_anew(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => {
                TcpStream::from_std(SockRef::from(socket).try_clone()?.into()).map(Self::Tcp)
            }
            Self::Unix(socket) => {
                UnixStream::from_std(SockRef::from(socket).try_clone()?.into()).map(Self::Unix)
            }
        }
    }

    /// Its address here; none for a Unix socket.
    pub(crate) fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(socket) => socket.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Where the peer is, for another connection to the same one.
    pub(crate) fn remote(&self) -> Option<Remote> {
        match self {
            Self::Tcp(socket) => socket.peer_addr().ok().map(Remote::Network),
            Self::Unix(socket) => {
                let address = socket.peer_addr().ok()?;
                let path = address.as_pathname()?.to_str()?;
                Some(Remote::Unix(format!("unix:{path}")))
            }
        }
    }

    /// Whether the process at the other end of a Unix socket is the one that listens at its path by now.
    /// False where the kernel does not say, as of a process of another PID namespace. (unix(7),
    /// SO_PEERCRED)
    pub(crate) async fn is_at_its_path(&self) -> bool {
        let Self::Unix(socket) = self else { return false };
        let process = |socket: &UnixStream| socket.peer_cred().ok()?.pid().filter(|pid| *pid != 0);
        let Some(ours) = process(socket) else { return false };
        let path = socket.peer_addr().ok();
        let Some(path) = path.as_ref().and_then(|address| address.as_pathname()) else {
            return false;
        };
        UnixStream::connect(path).await.is_ok_and(|anew| process(&anew) == Some(ours))
    }

    /// Has this kernel ask the peer's whether the connection is there, if nothing has come for a second:
    /// a machine that was started anew, or has taken over the address of another one, answers with a
    /// reset, a round trip later. It asks again every second until what this gives is dropped; then it
    /// is as patient as before. (tcp(7), TCP_KEEPIDLE)
    pub(crate) fn look_for_peer(&self) -> Option<PeerLook<'_>> {
        let Self::Tcp(socket) = self else { return None };
        let socket = SockRef::from(socket);
        let look = || -> io::Result<PeerLook<'_>> {
            let before = socket.tcp_keepalive_time()?;
            socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(PEER_SILENT))?;
            Ok(PeerLook { socket, before })
        };
        match look() {
            Ok(look) => Some(look),
            Err(error) => {
                tracing::debug!(%error, "a peer is not looked for");
                None
            }
        }
    }

    /// Whether bytes have come that nobody has read. Asks the kernel: the runtime knows of them only
    /// when it has looked for events again.
    pub(crate) fn has_unread(&self) -> bool {
        let mut byte = [MaybeUninit::uninit()];
        let peeked = match self {
            Self::Tcp(socket) => SockRef::from(socket).peek(&mut byte),
            Self::Unix(socket) => SockRef::from(socket).peek(&mut byte),
        };
        matches!(peeked, Ok(1..))
    }

    /// Closes the sending half, whatever runs over it: the peer sees the end, and may still answer.
    pub(crate) fn end_sending(&self) {
        // It is gone as well when this fails.
        match self {
            Self::Tcp(socket) => drop(SockRef::from(socket).shutdown(Shutdown::Write)),
            Self::Unix(socket) => drop(SockRef::from(socket).shutdown(Shutdown::Write)),
        }
    }

    /// How safe it is from listeners.
    pub(crate) fn leg(&self) -> Leg {
        match self {
            Self::Tcp(_) => Leg::Network,
            Self::Unix(_) => Leg::Unix,
        }
    }
}

/// As long as it is there, this kernel asks the peer's whether the connection is there.
#[must_use]
pub(crate) struct PeerLook<'s> {
    socket: SockRef<'s>,
    /// How long nothing had to come before it asked.
    before: Duration,
}

impl Drop for PeerLook<'_> {
    fn drop(&mut self) {
        let options = TcpKeepalive::new().with_time(self.before);
        if let Err(error) = self.socket.set_tcp_keepalive(&options) {
            tracing::debug!(%error, "a peer is looked for every second from now on");
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_read(cx, buf),
            Self::Unix(socket) => Pin::new(socket).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write(cx, buf),
            Self::Unix(socket) => Pin::new(socket).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
            Self::Unix(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(socket) => socket.is_write_vectored(),
            Self::Unix(socket) => socket.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_flush(cx),
            Self::Unix(socket) => Pin::new(socket).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Unix(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}

/// The server's end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remote {
    /// Over the network.
    Network(SocketAddr),
    /// On this machine, as a configuration names it: `unix:/path`.
    Unix(String),
}

/// A socket that no runtime knows yet: it was accepted on one thread and will be served on another.
#[derive(Debug)]
pub(crate) enum Unregistered {
    /// Over the network.
    Tcp(std::net::TcpStream),
    /// On this machine.
    Unix(std::os::unix::net::UnixStream),
}

impl Unregistered {
    /// Makes it a socket of the runtime that this is called on.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub(crate) fn register(self) -> io::Result<Socket> {
        match self {
            Self::Tcp(socket) => TcpStream::from_std(socket).map(Socket::Tcp),
            Self::Unix(socket) => UnixStream::from_std(socket).map(Socket::Unix),
        }
    }
}

/// Who is at the other end of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Somebody on the network: the socket's address, or the one that a trusted proxy told.
    Network(SocketAddr),
    /// Somebody on this machine, by a Unix socket. Has no address: rules on addresses do not match.
    Local,
}

impl Peer {
    /// Who has connected from an address of the network. An IPv4 client of an IPv6 listener has its
    /// IPv4 address, so that the log names it as rules do.
    pub(crate) fn at(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            ip @ IpAddr::V4(_) => Self::Network((ip, address.port()).into()),
            // As it is, with its scope.
            IpAddr::V6(_) => Self::Network(address),
        }
    }

    /// The address that rules and claims look at.
    pub(crate) fn ip(self) -> Option<IpAddr> {
        match self {
            Self::Network(address) => Some(address.ip()),
            Self::Local => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Local => f.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_peer_is_looked_for_only_as_long_as_somebody_wants_to_know() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let configured = TcpKeepalive::new().with_time(Duration::from_secs(77));
        SockRef::from(&near).set_tcp_keepalive(&configured).unwrap();
        let near = Socket::Tcp(near);
        let patience = || {
            let Socket::Tcp(near) = &near else { panic!("it is one") };
            SockRef::from(near).tcp_keepalive_time().unwrap()
        };
        let look = near.look_for_peer().unwrap();
        assert_eq!(patience(), PEER_SILENT);
        drop(look);
        assert_eq!(patience(), Duration::from_secs(77));
    }
}
