//! Where clients come in: a TCP port or a Unix socket, bound here or taken over from another
//! process.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use policy::Listen;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, Type};
use tokio::net::{TcpListener, UnixListener};

use crate::socket::{Peer, Unregistered};

/// Connections the kernel completes before they are accepted.
const LISTEN_BACKLOG: i32 = 4096;

/// A listening socket of either family.
#[derive(Debug)]
pub(crate) enum Listener {
    /// Over the network.
    Tcp(TcpListener),
    /// On this machine, with the file that clients find it by.
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Binds and listens. A Unix socket gets these permission bits before anybody can connect.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub(crate) fn bind(listen: &Listen, mode: u32) -> io::Result<Self> {
        match listen {
            Listen::Tcp(address) => {
                let domain = Domain::for_address(*address);
                let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
                socket.set_reuse_address(true)?;
                socket.bind(&(*address).into())?;
                socket.listen(LISTEN_BACKLOG)?;
                Self::of_socket(listen, socket)
            }
            Listen::Unix(path) => {
                remove_if_stale(path)?;
                let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                socket.bind(&SockAddr::unix(path)?)?;
                fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
                socket.listen(LISTEN_BACKLOG)?;
                Self::of_socket(listen, socket)
            }
        }
    }

    /// A socket that listens there already.
    ///
    /// # Errors
    /// When the runtime cannot watch it.
    pub(crate) fn of_socket(listen: &Listen, socket: Socket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        match listen {
            Listen::Tcp(_) => TcpListener::from_std(socket.into()).map(Self::Tcp),
            Listen::Unix(path) => {
                let listener = UnixListener::from_std(socket.into())?;
                Ok(Self::Unix(listener, SocketFile::of(path)?))
            }
        }
    }

    /// Where it listens: the port too, where the file says 0.
    pub(crate) fn listens_on(&self) -> io::Result<Listen> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Listen::Tcp),
            Self::Unix(_, file) => Ok(Listen::Unix(file.path.clone())),
        }
    }

    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<AcceptedSocket>> {
        match self {
            Self::Tcp(listener) => listener.poll_accept(cx).map(|accepted| {
                let (socket, peer) = accepted?;
                Ok((Unregistered::Tcp(socket.into_std()?), Peer::at(peer)))
            }),
            Self::Unix(listener, _) => listener.poll_accept(cx).map(|accepted| {
                let (socket, _) = accepted?;
                Ok((Unregistered::Unix(socket.into_std()?), Peer::Local))
            }),
        }
    }

    /// Accepts whoever is connected already, whether the runtime has heard of it or not.
    ///
    /// # Errors
    /// `WouldBlock` when there is nobody.
    pub(crate) fn accept_now(&self) -> io::Result<AcceptedSocket> {
        let (socket, peer) = SockRef::from(self).accept()?;
        socket.set_nonblocking(true)?;
        match self {
            Self::Tcp(_) => {
                let peer = peer.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
                Ok((Unregistered::Tcp(socket.into()), Peer::at(peer)))
            }
            Self::Unix(..) => Ok((Unregistered::Unix(socket.into()), Peer::Local)),
        }
    }

    /// Another process goes on listening: the file is its from now on.
    pub(crate) fn leave_to_successor(&self) {
        match self {
            Self::Tcp(_) => {}
            Self::Unix(_, file) => file.left.store(true, Ordering::Relaxed),
        }
    }

    /// Another process has the socket too, and may go on listening: the file stays meanwhile.
    pub(crate) fn lend(&self, is_lent: bool) {
        match self {
            Self::Tcp(_) => {}
            Self::Unix(_, file) => file.lent.store(is_lent, Ordering::Relaxed),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener, _) => listener.as_fd(),
        }
    }
}

/// A client's socket, and who it is.
pub(crate) type AcceptedSocket = (Unregistered, Peer);

/// The file of a Unix socket; removed with the listener, unless somebody else has put another
/// there.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    left: AtomicBool,
    lent: AtomicBool,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        let identity = identity(path)?;
        let (left, lent) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { path: path.to_owned(), identity, left, lent })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = identity(&self.path).is_ok_and(|identity| identity == self.identity);
        let is_others = self.left.load(Ordering::Relaxed) || self.lent.load(Ordering::Relaxed);
        if is_ours && !is_others {
            // A folder that has become read-only keeps the file; the next start finds it stale.
            fs::remove_file(&self.path).ok();
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes the socket of a process that is gone. One that is answered on, and a file that is no
/// socket, stay where they are.
fn remove_if_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket is there"))
        }
        Ok(_) => match StdUnixStream::connect(path) {
            Ok(_) => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process answers there")),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            Err(error) => Err(error),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
