//! Free ports on the loopback.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{HarnessError, Result};

/// A port that nobody listens on at the moment.
///
/// Taken from below the range that the kernel gives to outgoing connections, so that a client's
/// connection cannot take it before the server that is being started does. One harness gives each
/// once before it begins anew; two may still pick the same one: who starts a server tries again
/// with another.
///
/// # Errors
/// When no port can be bound.
pub fn free_port() -> Result<u16> {
    let mut last = None;
    for _ in 0..TRIES {
        let port = FIRST.saturating_add(next_below(COUNT));
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

/// In turn, from anywhere: every `RandomState` has other keys, which keeps parallel tests apart.
fn next_below(limit: u16) -> u16 {
    static NEXT: LazyLock<AtomicU64> =
        LazyLock::new(|| AtomicU64::new(RandomState::new().hash_one(0_u8) >> 1));
    let value = NEXT.fetch_add(1, Ordering::Relaxed) % u64::from(limit);
    u16::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_one_test_is_given_is_not_given_again_beside_it() {
        let ports: BTreeSet<u16> = (0..COUNT / 2).map(|_| next_below(COUNT)).collect();
        assert_eq!(ports.len(), usize::from(COUNT / 2));
    }
}
