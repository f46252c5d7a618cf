//! Networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that share their first bits. IPv4 is kept in its IPv6-mapped form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    /// The bits behind the prefix are zero.
    pub(crate) network: u128,
    /// 0 to 128.
    pub(crate) prefix_len: u32,
}

impl Cidr {
    /// An address, or an address and a prefix length: `10.0.0.0/8`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let (bits, family_bits) = match address {
            IpAddr::V4(address) => (mapped(address), 96),
            IpAddr::V6(address) => (address.to_bits(), 0),
        };
        let prefix_len = match len {
            Some(len) => len.checked_add(family_bits)?,
            None => 128,
        };
        (prefix_len <= 128).then(|| Self { network: bits & mask(prefix_len), prefix_len })
    }

    /// Whether all of its addresses are among those of another network.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.prefix_len >= other.prefix_len && other.contains(self.network)
    }

    /// Whether the address is among them.
    pub(crate) fn contains(self, address: u128) -> bool {
        address & mask(self.prefix_len) == self.network
    }
}

/// The address as [`Cidr`] compares it.
pub(crate) fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => mapped(address),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The first `prefix_len` bits.
pub(crate) fn mask(prefix_len: u32) -> u128 {
    u128::MAX.checked_shl(128_u32.saturating_sub(prefix_len)).unwrap_or(0)
}

fn mapped(address: Ipv4Addr) -> u128 {
    Ipv6Addr::to_bits(address.to_ipv6_mapped())
}
