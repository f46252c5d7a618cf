//! The PROXY protocol: what a proxy writes ahead of everything else, to tell who its client is.
//!
//! Version 1 is a line of text, version 2 a binary header with a length. Source: "The PROXY
//! protocol", versions 1 and 2, haproxy.org. MySQL servers speak first, so the header is read
//! before anything is answered, and not one byte further: [`decode`] says how many more bytes
//! certainly belong to it. Extensions (TLVs) are skipped.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proxied {
    /// The proxy speaks for itself (a health check), or does not know: the socket's own addresses
    /// hold.
    Unknown,
    /// A client on the network.
    Network {
        /// The client.
        source: SocketAddr,
        /// Where it connected.
        destination: SocketAddr,
    },
    /// A client that came by a Unix socket of the proxy's machine.
    Unix,
}

/// How far a header has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// At least so many more bytes belong to it; never 0.
    Needs(usize),
    /// It is complete.
    Done(Proxied),
}

/// Why bytes are no header that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// They begin differently.
    NoHeader,
    /// The line of version 1 is not one of its specification.
    Malformed,
    /// A binary header of a version that is not 2.
    UnknownVersion,
    /// Neither LOCAL nor PROXY.
    UnknownCommand,
    /// It is about datagrams, or about a family that is not known.
    NoStream,
    /// Its length is less than its addresses need.
    TooShort,
    /// Longer than [`V2_LEN_MAX`].
    TooLong,
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoHeader => "the connection does not begin with a PROXY header",
            Self::Malformed => "the PROXY line is malformed",
            Self::UnknownVersion => "the PROXY header is of a version that is not known",
            Self::UnknownCommand => "the PROXY header has a command that is not known",
            Self::NoStream => "the PROXY header is not about a stream of a known family",
            Self::TooShort => "the PROXY header is too short for its addresses",
            Self::TooLong => "the PROXY header is too long",
        })
    }
}

impl Error for HeaderError {}

/// The first bytes of version 2, which no other protocol begins with.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The first bytes of version 1.
const V1_START: &[u8; 6] = b"PROXY ";

/// Signature, version and command, family and protocol, length.
const V2_HEAD_LEN: usize = 16;

/// The longest line of version 1 with its end, by its specification.
const V1_LEN_MAX: usize = 107;

/// The shortest line of version 1 with its end: `PROXY UNKNOWN\r\n`.
const V1_LEN_MIN: usize = 15;

/// The longest header of version 2 that is read: as much as HAProxy writes.
pub const V2_LEN_MAX: usize = 16 * 1024;

/// Reads a header from its first bytes.
///
/// # Errors
/// Bytes that are no header, or one of a kind that cannot be (a datagram, an unknown command, too
/// long).
pub fn decode(bytes: &[u8]) -> Result<Decoded, HeaderError> {
    match bytes.first() {
        None => Ok(Decoded::Needs(V2_HEAD_LEN.min(V1_LEN_MIN))),
        Some(b'P') => decode_v1(bytes),
        Some(_) => decode_v2(bytes),
    }
}

/// Whether a client that should not have sent a header has begun with one.
#[must_use]
pub fn is_header(bytes: &[u8]) -> bool {
    bytes.starts_with(V1_START) || bytes.starts_with(SIGNATURE)
}

/// Writes a header of version 2 without extensions. Without addresses it says that the proxy speaks
/// for itself; addresses of different families are written as those of IPv6.
pub fn encode_v2(out: &mut Vec<u8>, proxied: Option<(SocketAddr, SocketAddr)>) {
    out.extend_from_slice(SIGNATURE);
    let Some((source, destination)) = proxied else {
        out.extend_from_slice(&[VERSION_2 | LOCAL, UNSPEC, 0, 0]);
        return;
    };
    out.push(VERSION_2 | PROXY);
    match (source.ip().to_canonical(), destination.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend_from_slice(&[INET | STREAM, 0, 12]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        (from, to) => {
            out.extend_from_slice(&[INET6 | STREAM, 0, 36]);
            out.extend_from_slice(&v6(from).octets());
            out.extend_from_slice(&v6(to).octets());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// High half of the byte behind the signature.
const VERSION_2: u8 = 0x20;
/// Low half of it: the proxy's own connection.
const LOCAL: u8 = 0x0;
/// Low half of it: a client's connection.
const PROXY: u8 = 0x1;
/// The byte of family and protocol: neither is known.
const UNSPEC: u8 = 0x00;
/// High half: IPv4.
const INET: u8 = 0x10;
/// High half: IPv6.
const INET6: u8 = 0x20;
/// High half: a Unix socket.
const UNIX: u8 = 0x30;
/// Low half: a stream.
const STREAM: u8 = 0x1;

fn decode_v2(bytes: &[u8]) -> Result<Decoded, HeaderError> {
    let start = bytes.get(..SIGNATURE.len().min(bytes.len())).unwrap_or_default();
    if !SIGNATURE.starts_with(start) {
        return Err(HeaderError::NoHeader);
    }
    let Some((head, rest)) = bytes.split_at_checked(V2_HEAD_LEN) else {
        return Ok(Decoded::Needs(V2_HEAD_LEN.saturating_sub(bytes.len())));
    };
    let &[.., command, family, len_high, len_low] = head else {
        return Err(HeaderError::NoHeader);
    };
    let len = usize::from(u16::from_be_bytes([len_high, len_low]));
    if len > V2_LEN_MAX {
        return Err(HeaderError::TooLong);
    }
    if command & 0xf0 != VERSION_2 {
        return Err(HeaderError::UnknownVersion);
    }
    // What is behind it is no address, however short it is.
    let Some(body) = rest.get(..len) else {
        return Ok(Decoded::Needs(len.saturating_sub(rest.len())));
    };
    match command & 0x0f {
        LOCAL => Ok(Decoded::Done(Proxied::Unknown)),
        PROXY => v2_addresses(family, body).map(Decoded::Done),
        _ => Err(HeaderError::UnknownCommand),
    }
}

fn v2_addresses(family: u8, body: &[u8]) -> Result<Proxied, HeaderError> {
    match family {
        // The receiver must ignore what is unspecified.
        UNSPEC => Ok(Proxied::Unknown),
        family if family == INET | STREAM => {
            let body: &[u8; 12] = body.first_chunk().ok_or(HeaderError::TooShort)?;
            let &[a, b, c, d, e, f, g, h, source_port @ .., p, q] = body;
            let [source_high, source_low] = source_port;
            let source = Ipv4Addr::new(a, b, c, d);
            let destination = Ipv4Addr::new(e, f, g, h);
            Ok(Proxied::Network {
                source: (source, u16::from_be_bytes([source_high, source_low])).into(),
                destination: (destination, u16::from_be_bytes([p, q])).into(),
            })
        }
        family if family == INET6 | STREAM => {
            let (source, rest) = body.split_first_chunk::<16>().ok_or(HeaderError::TooShort)?;
            let (destination, rest) =
                rest.split_first_chunk::<16>().ok_or(HeaderError::TooShort)?;
            let &[a, b, c, d] = rest.first_chunk::<4>().ok_or(HeaderError::TooShort)?;
            Ok(Proxied::Network {
                source: address(*source, u16::from_be_bytes([a, b])),
                destination: address(*destination, u16::from_be_bytes([c, d])),
            })
        }
        family if family == UNIX | STREAM => {
            // Two paths of 108 bytes, which say nothing about who came.
            body.get(..216).ok_or(HeaderError::TooShort)?;
            Ok(Proxied::Unix)
        }
        _ => Err(HeaderError::NoStream),
    }
}

fn address(octets: [u8; 16], port: u16) -> SocketAddr {
    (Ipv6Addr::from(octets).to_canonical(), port).into()
}

fn decode_v1(bytes: &[u8]) -> Result<Decoded, HeaderError> {
    let start = bytes.get(..V1_START.len().min(bytes.len())).unwrap_or_default();
    if !V1_START.starts_with(start) {
        return Err(HeaderError::NoHeader);
    }
    let line = match bytes.iter().take(V1_LEN_MAX).position(|byte| *byte == b'\n') {
        Some(end) => bytes.get(..end).and_then(|line| line.strip_suffix(b"\r")),
        None if bytes.len() < V1_LEN_MIN => {
            return Ok(Decoded::Needs(V1_LEN_MIN.saturating_sub(bytes.len())));
        }
        None if bytes.len() < V1_LEN_MAX => {
            // Behind a carriage return comes the line feed; without one at least both are missing.
            let ends = bytes.last() == Some(&b'\r');
            return Ok(Decoded::Needs(if ends { 1 } else { 2 }));
        }
        None => None,
    };
    let line =
        line.and_then(|line| std::str::from_utf8(line).ok()).ok_or(HeaderError::Malformed)?;
    v1_addresses(line).map(Decoded::Done).ok_or(HeaderError::Malformed)
}

fn v1_addresses(line: &str) -> Option<Proxied> {
    let mut words = line.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(Proxied::Unknown);
    }
    let (source, destination) = (words.next()?, words.next()?);
    let (source_port, destination_port) = (words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let of_family = |text: &str| -> Option<IpAddr> {
        match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(|address| address.to_canonical()),
            _ => None,
        }
    };
    Some(Proxied::Network {
        source: (of_family(source)?, port(source_port)?).into(),
        destination: (of_family(destination)?, port(destination_port)?).into(),
    })
}

fn port(text: &str) -> Option<u16> {
    // No sign and no leading zeros, as the specification says.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests;
