//! How connections of a cluster are made, and what they may be.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cidr::{Cidr, address_bits};

/// What stands before the path of a Unix socket.
pub(crate) const UNIX_PREFIX: &str = "unix:";

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// Over the network.
    Tcp(SocketAddr),
    /// By a Unix socket of this absolute path.
    Unix(PathBuf),
}

impl Listen {
    /// Whether both cannot listen at once. Port 0 is any free one.
    pub(crate) fn collides_with(&self, other: &Self) -> bool {
        match self {
            Self::Tcp(address) => address.port() != 0 && self == other,
            Self::Unix(_) => self == other,
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX_PREFIX}{}", path.display()),
        }
    }
}

/// Where a server is, read from the text that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAddress<'a> {
    /// `host:port`.
    Network(&'a str),
    /// The path of a Unix socket.
    Unix(&'a Path),
}

impl<'a> ServerAddress<'a> {
    /// What the name of a server says: `host:port`, or `unix:/path`.
    #[must_use]
    pub fn of(server: &'a str) -> Self {
        match server.strip_prefix(UNIX_PREFIX) {
            Some(path) => Self::Unix(Path::new(path)),
            None => Self::Network(server),
        }
    }
}

/// Limits and options of a cluster's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The permission bits of a Unix socket that is listened on.
    pub listen_mode: u32,
    /// Most client connections at once.
    pub connections_max: u32,
    /// How long a client may be silent when it is its turn during the login.
    pub login_timeout: Duration,
    /// How peers that vanished are found.
    pub keepalive: Keepalive,
    /// Which proxies are in front of and behind Sluice.
    pub proxy_protocol: ProxyProtocol,
}

/// TCP's own watch over a connection, on both legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Silence before the first probe. (TCP_KEEPIDLE)
    pub idle: Duration,
    /// Time between two probes. (TCP_KEEPINTVL)
    pub interval: Duration,
    /// Unanswered probes before the connection is given up. (TCP_KEEPCNT)
    pub count: u32,
    /// How long sent data may be unacknowledged, or a peer may have no room for it. `None`: the
    /// kernel's own limit for the first, none for the second. (TCP_USER_TIMEOUT)
    pub user_timeout: Option<Duration>,
}

/// Which peers tell the address of the real client, and whether the server is told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyProtocol {
    pub(crate) from: Vec<Cidr>,
    /// How long a peer in `from` may take for its header.
    pub timeout: Duration,
    /// What the server gets ahead of everything else.
    pub send: SendProxy,
}

impl ProxyProtocol {
    /// Whether this peer must begin with a header.
    #[must_use]
    pub fn is_from(&self, peer: IpAddr) -> bool {
        let peer = address_bits(peer);
        self.from.iter().any(|network| network.contains(peer))
    }
}

/// What the server gets ahead of everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendProxy {
    /// Nothing.
    None,
    /// A header of version 2 with the client's address.
    V2,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_by_host_and_port_or_by_the_path_of_its_socket() {
        assert_eq!(ServerAddress::of("db:3306"), ServerAddress::Network("db:3306"));
        let path = Path::new("/run/mysqld/mysqld.sock");
        assert_eq!(ServerAddress::of("unix:/run/mysqld/mysqld.sock"), ServerAddress::Unix(path));
    }

    #[test]
    fn an_ipv4_peer_of_an_ipv6_listener_is_in_an_ipv4_network() {
        let from = vec![Cidr::parse("10.0.0.0/8").expect("a network")];
        let trusted =
            ProxyProtocol { from, timeout: Duration::from_secs(5), send: SendProxy::None };
        for (peer, is_from) in
            [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("11.0.0.1", false), ("::1", false)]
        {
            assert_eq!(trusted.is_from(peer.parse().expect("an address")), is_from, "{peer}");
        }
    }
}
