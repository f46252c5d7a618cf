//! Free ports on the loopback.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::error::{HarnessError, Result};

/// A port that nobody listens on at the moment.
///
/// Taken from below the range that the kernel gives to outgoing connections, so that a client's
/// connection cannot take it before the server that is being started does. Two harnesses may still
/// pick the same one: who starts a server tries again with another.
///
/// # Errors
/// When no port can be bound.
pub fn free_port() -> Result<u16> {
    let mut last = None;
    for _ in 0..TRIES {
        let port = FIRST.saturating_add(random_below(COUNT));
        match TcpListener::bind(loopback(port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = Some(error),
        }
    }
    let source = last.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(HarnessError::Io { what: "no free port".into(), source })
}

/// The address of a port on 127.0.0.1.
#[must_use]
pub fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

const TRIES: usize = 100;
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// Every `RandomState` has other keys: enough chance to keep parallel tests apart.
fn random_below(limit: u16) -> u16 {
    let value = RandomState::new().hash_one(0_u8) % u64::from(limit);
    u16::try_from(value).unwrap_or(0)
}
