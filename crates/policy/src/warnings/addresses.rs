//! Whether two addresses are the same place, however they are spelled. Only what is certain
//! without asking anybody: names are not looked up, but for those of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Component, Path, PathBuf};

use crate::network::{Listen, ServerAddress};

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spot {
    /// A port of one of these addresses: `localhost` has two.
    Addresses(Vec<IpAddr>, u16),
    /// A port of a host whose addresses are not known here; in lower case.
    Name(String, u16),
    /// A Unix socket.
    Socket(PathBuf),
}

/// Names that stand for this machine wherever they are looked up.
const LOCAL_NAMES: [&str; 4] =
    ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];

impl Spot {
    /// What `host:port` or `unix:/path` means.
    pub(super) fn of(server: &str) -> Option<Self> {
        let address = match ServerAddress::of(server) {
            ServerAddress::Unix(path) => return Some(Self::Socket(plain(path))),
            ServerAddress::Network(address) => address,
        };
        let (host, port) = address.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let host = host.trim_end_matches('.');
        if LOCAL_NAMES.contains(&host) {
            let both = vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Some(Self::Addresses(both, port));
        }
        let address = host.parse::<IpAddr>().ok().or_else(|| short_form(host).map(IpAddr::V4));
        Some(match address {
            Some(address) => Self::Addresses(vec![reached(address)], port),
            None => Self::Name(host.to_owned(), port),
        })
    }

    /// Whether it can be nothing but the same place.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Addresses(own, port), Self::Addresses(others, other)) => {
                port == other && own.iter().any(|address| others.contains(address))
            }
            (Self::Name(..), Self::Name(..)) | (Self::Socket(_), Self::Socket(_)) => self == other,
            (
                Self::Addresses(..) | Self::Name(..) | Self::Socket(_),
                Self::Addresses(..) | Self::Name(..) | Self::Socket(_),
            ) => false,
        }
    }

    /// Whether whoever connects there meets this listener.
    pub(super) fn is_listener(&self, listen: &Listen) -> bool {
        match (self, listen) {
            (Self::Socket(path), Listen::Unix(listen)) => *path == plain(listen),
            (Self::Addresses(addresses, port), Listen::Tcp(listen)) => {
                let accepts = |address: &IpAddr| accepts(listen.ip(), *address);
                *port == listen.port() && addresses.iter().any(accepts)
            }
            (
                Self::Addresses(..) | Self::Name(..) | Self::Socket(_),
                Listen::Tcp(_) | Listen::Unix(_),
            ) => false,
        }
    }
}

/// Whether a listener on one address takes connections to another one.
fn accepts(listener: IpAddr, address: IpAddr) -> bool {
    match listener {
        // IPv6's takes both families. Which other addresses this machine has, the file cannot tell.
        IpAddr::V6(v6) if v6.is_unspecified() => address.is_loopback(),
        IpAddr::V4(v4) if v4.is_unspecified() => address.is_ipv4() && address.is_loopback(),
        IpAddr::V4(_) | IpAddr::V6(_) => listener.to_canonical() == address,
    }
}

/// Who connects to no address in particular comes to this machine.
fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        canonical => canonical,
    }
}

/// The forms that inet_aton(3) takes besides the usual one: `127.1`, `0x7f.0.0.1`, `2130706433`.
fn short_form(host: &str) -> Option<Ipv4Addr> {
    let parts: Vec<u32> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, front) = parts.split_last()?;
    if front.len() > 3 {
        return None;
    }
    let mut address = 0_u32;
    let mut shift = 24_u32;
    for part in front {
        let octet = u8::try_from(*part).ok()?;
        address |= u32::from(octet).checked_shl(shift)?;
        shift = shift.checked_sub(8)?;
    }
    let room = u32::MAX.checked_shr(24_u32.saturating_sub(shift)).unwrap_or(0);
    (*last <= room).then(|| Ipv4Addr::from_bits(address | last))
}

fn number(part: &str) -> Option<u32> {
    match part.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if part.len() > 1 && part.starts_with('0') => u32::from_str_radix(part, 8).ok(),
        None if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse().ok(),
        None => None,
    }
}

/// The path without `.`, `..` and doubled slashes; links are not followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                plain.push(component);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_place_however_it_is_spelled() {
        let own = [
            ("127.0.0.1:3307", "127.0.0.1:3307"),
            ("127.0.0.1:3307", "localhost:3307"),
            ("127.0.0.1:3307", "LocalHost.:3307"),
            ("127.0.0.1:3307", "0.0.0.0:3307"),
            ("127.0.0.1:3307", "127.1:3307"),
            ("127.0.0.1:3307", "0x7f.0.0.01:3307"),
            ("127.0.0.1:3307", "2130706433:3307"),
            ("127.0.0.1:3307", "[::ffff:127.0.0.1]:3307"),
            ("0.0.0.0:3307", "127.0.0.5:3307"),
            ("[::]:3307", "127.0.0.1:3307"),
            ("[::1]:3307", "localhost:3307"),
            ("[::1]:3307", "[::]:3307"),
        ];
        for (listen, server) in own {
            let listen = Listen::Tcp(listen.parse().unwrap());
            assert!(Spot::of(server).unwrap().is_listener(&listen), "{listen} {server}");
        }
        let others = [
            ("127.0.0.1:3307", "127.0.0.1:3306"),
            ("127.0.0.1:3307", "127.0.0.2:3307"),
            ("127.0.0.1:3307", "127.2:3307"),
            ("0.0.0.0:3307", "10.0.0.5:3307"),
            ("0.0.0.0:3307", "[::1]:3307"),
            ("10.0.0.5:3307", "localhost:3307"),
            ("127.0.0.1:3307", "db1:3307"),
            ("127.0.0.1:3307", "unix:/run/a.sock"),
            ("127.0.0.1:0", "127.0.0.1:3306"),
        ];
        for (listen, server) in others {
            let listen = Listen::Tcp(listen.parse().unwrap());
            assert!(!Spot::of(server).unwrap().is_listener(&listen), "{listen} {server}");
        }
        let socket = Listen::Unix("/run/sluice/mysql.sock".into());
        for (server, is) in [
            ("unix:/run/sluice//./mysql.sock", true),
            ("unix:/run/x/../sluice/mysql.sock", true),
            ("unix:/run/mysqld/mysql.sock", false),
        ] {
            assert_eq!(Spot::of(server).unwrap().is_listener(&socket), is, "{server}");
        }
    }

    #[test]
    fn two_names_are_the_same_place_when_they_are_the_same_name() {
        let same = |a: &str, b: &str| Spot::of(a).unwrap().is(&Spot::of(b).unwrap());
        assert!(same("DB1.example:3306", "db1.example.:3306"));
        assert!(same("localhost:3306", "127.0.0.1:3306"));
        assert!(!same("db1:3306", "db2:3306"));
        assert!(!same("db1:3306", "db1:3316"));
        assert!(!same("db1:3306", "127.0.0.1:3306"));
    }
}
