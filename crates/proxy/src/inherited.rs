//! Listening sockets that this process did not bind itself: from systemd (socket activation), or
//! from the process that it takes over from.
//!
//! A listening socket that two processes share has one accept queue: whoever accepts next serves
//! the next client, and closing it in one of them loses nobody. So the one that leaves only stops
//! accepting.

use std::io;
use std::net::{SocketAddr, TcpListener as StdTcpListener};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use listenfd::ListenFd;
use policy::Listen;
use socket2::Socket;

/// Listening sockets, each to be taken by whoever is configured to listen there.
#[derive(Debug, Default)]
pub struct Inherited {
    sockets: Vec<Socket>,
    origin: Origin,
}

/// Who else has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody, once the other process has left.
    #[default]
    Predecessor,
    /// The service manager, also after the end of this process.
    ServiceManager,
}

impl Inherited {
    /// The sockets that the service manager passed on (`LISTEN_FDS`, `LISTEN_PID`); usually none.
    ///
    /// # Errors
    /// A descriptor that is no socket.
    pub fn from_service_manager() -> io::Result<Self> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            // It looks at the family itself; both are the same to us.
            let socket = match passed.take_tcp_listener(index) {
                Ok(Some(listener)) => Socket::from(listener),
                Ok(None) => continue,
                Err(_) => match passed.take_unix_listener(index)? {
                    Some(listener) => Socket::from(listener),
                    None => continue,
                },
            };
            sockets.push(socket);
        }
        Ok(Self { sockets, origin: Origin::ServiceManager })
    }

    /// The sockets of another process.
    pub(crate) fn from_predecessor(descriptors: Vec<OwnedFd>) -> Self {
        let sockets = descriptors.into_iter().map(Socket::from).collect();
        Self { sockets, origin: Origin::Predecessor }
    }

    /// The socket that listens there.
    pub(crate) fn take(&mut self, listen: &Listen) -> Option<(Socket, Origin)> {
        let index = self.sockets.iter().position(|socket| listens_on(socket, listen))?;
        Some((self.sockets.swap_remove(index), self.origin))
    }

    /// The socket that listens on this address, for the admin port.
    pub fn take_tcp(&mut self, address: SocketAddr) -> Option<StdTcpListener> {
        self.take(&Listen::Tcp(address)).map(|(socket, _)| socket.into())
    }

    /// Where the sockets listen that nobody has taken.
    pub fn left(&self) -> Vec<String> {
        self.sockets.iter().map(|socket| format!("{:?}", socket.local_addr())).collect()
    }
}

fn listens_on(socket: &Socket, listen: &Listen) -> bool {
    let Ok(address) = socket.local_addr() else { return false };
    match listen {
        Listen::Tcp(listen) => address.as_socket() == Some(*listen),
        Listen::Unix(path) => address.as_pathname() == Some(path),
    }
}

/// The path of a socket as a place to listen.
pub(crate) fn unix(path: &Path) -> Listen {
    Listen::Unix(PathBuf::from(path))
}
