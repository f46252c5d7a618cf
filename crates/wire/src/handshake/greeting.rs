//! The server's first packet.

use crate::capability::{CLIENT_PLUGIN_AUTH, Capabilities};
use crate::error::ProtocolError;
use crate::lenenc::Reader;
use crate::packet::{ERR_HEADER, ErrPacket};

use super::overwrite;

/// The server's first packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerHello<'a> {
    /// It lets the client try.
    Greeting(Greeting<'a>),
    /// It does not, for example because it is full (1040) or has blocked the host (1129).
    Error(ErrPacket<'a>),
}

/// A protocol 10 greeting, `HandshakeV10` in the manual.
///
/// ```text
/// 0    protocol version 10
/// 1    server version, NUL           v = the index after its NUL
/// v    connection id : u32           v+12 NUL            v+20 length of the scramble : u8
/// v+4  scramble, first 8 bytes       v+13 capabilities, low : u16
///                                    v+15 character set : u8
///                                    v+16 status : u16   v+21 6 zero bytes
///                                    v+18 capabilities, high : u16
/// v+27 MariaDB's capabilities : u32, when bit 0 is clear, else 4 zero bytes
/// v+31 scramble, the rest: max(13, length - 8) bytes
///      plugin name, NUL
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Greeting<'a> {
    /// The version as the server writes it. MariaDB 10 writes `5.5.5-10.…`.
    pub server_version: &'a [u8],
    /// The session's id, the one KILL takes, cut to 32 bits.
    pub connection_id: u32,
    /// What the server offers.
    pub capabilities: Capabilities,
    /// The server's default collation, low byte.
    pub charset: u8,
    /// Status flags.
    pub status: u16,
    /// The first 8 bytes of the scramble, and the rest without its NUL.
    pub scramble: [&'a [u8]; 2],
    /// The plugin the scramble is for; empty when not named.
    pub auth_plugin: &'a [u8],
}

impl Greeting<'_> {
    /// Whether the server is a MariaDB, by its capabilities or by its version.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.capabilities.is_mariadb_server()
            || self.server_version.windows(MARIADB.len()).any(|part| part == MARIADB)
    }

    /// First number of the version, 0 when it has none. MariaDB's prefix `5.5.5-` does not count.
    #[must_use]
    pub fn major_version(&self) -> u32 {
        self.version_part(0)
    }

    /// Second number of the version, 0 when it has none.
    #[must_use]
    pub fn minor_version(&self) -> u32 {
        self.version_part(1)
    }

    fn version_part(&self, index: usize) -> u32 {
        let version = match self.server_version.strip_prefix(MARIADB_VERSION_PREFIX) {
            Some(version) if self.is_mariadb() => version,
            _ => self.server_version,
        };
        let part = version.split(|byte| *byte == b'.').nth(index).unwrap_or_default();
        part.iter().take_while(|byte| byte.is_ascii_digit()).fold(0, |number: u32, byte| {
            number.saturating_mul(10).saturating_add(u32::from(byte.saturating_sub(b'0')))
        })
    }
}

/// Reads the server's first packet.
///
/// # Errors
/// [`ProtocolError::GreetingMalformed`] when it is neither a protocol 10 greeting of the 4.1
/// protocol nor an ERR.
pub fn parse_server_hello(payload: &[u8]) -> Result<ServerHello<'_>, ProtocolError> {
    if payload.first() == Some(&ERR_HEADER) {
        let error = ErrPacket::parse(payload).map_err(|_| ProtocolError::GreetingMalformed)?;
        return Ok(ServerHello::Error(error));
    }
    read_greeting(payload).map(ServerHello::Greeting).ok_or(ProtocolError::GreetingMalformed)
}

/// Makes a greeting offer `offered`, in place. Nothing but the capability words changes; bit 0,
/// which tells MySQL from MariaDB, stays as the server set it.
///
/// # Errors
/// [`ProtocolError::GreetingMalformed`] when `payload` is no greeting.
pub fn patch_greeting(payload: &mut [u8], offered: Capabilities) -> Result<(), ProtocolError> {
    patch(payload, offered).ok_or(ProtocolError::GreetingMalformed)
}

fn patch(payload: &mut [u8], offered: Capabilities) -> Option<()> {
    let was = read_greeting(payload)?;
    let is_mariadb = was.capabilities.is_mariadb_server();
    let bit_0 = Capabilities { base: was.capabilities.base & 1, mariadb: 0 };
    let [a, b, c, d] = (offered.base & !1 | bit_0.base).to_le_bytes();
    let after_version = after_version(payload)?;
    overwrite(payload, after_version.checked_add(CAPS_LOW)?, &[a, b])?;
    overwrite(payload, after_version.checked_add(CAPS_HIGH)?, &[c, d])?;
    let mariadb_at = after_version.checked_add(CAPS_MARIADB)?;
    if is_mariadb {
        // A greeting that ends before this word offers nothing in it.
        overwrite(payload, mariadb_at, &offered.mariadb.to_le_bytes()).unwrap_or_default();
    }
    Some(())
}

fn read_greeting(payload: &[u8]) -> Option<Greeting<'_>> {
    let mut reader = Reader::new(payload);
    if reader.u8()? != PROTOCOL_VERSION {
        return None;
    }
    let server_version = reader.nul_terminated()?;
    let connection_id = reader.u32()?;
    let scramble_start = reader.bytes(8)?;
    reader.u8()?;
    let caps_low = reader.u16()?;
    let charset = reader.u8()?;
    let status = reader.u16()?;
    let caps_high = reader.u16()?;
    let base = u32::from(caps_low) | u32::from(caps_high) << 16;
    let mut capabilities = Capabilities { base, mariadb: 0 };
    let scramble_len = reader.u8().unwrap_or_default();
    reader.bytes(6).unwrap_or_default();
    let mariadb = reader.u32().unwrap_or_default();
    if capabilities.is_mariadb_server() {
        capabilities.mariadb = mariadb;
    }
    let scramble_rest = scramble_len.saturating_sub(8).max(13);
    let mut auth_plugin: &[u8] = &[];
    let rest = reader.bytes(usize::from(scramble_rest));
    if capabilities.has(CLIENT_PLUGIN_AUTH) && rest.is_some() {
        // Some servers leave out the last NUL.
        auth_plugin = reader.nul_terminated().unwrap_or_else(|| reader.rest());
    }
    let rest = rest.unwrap_or_default();
    Some(Greeting {
        server_version,
        connection_id,
        capabilities,
        charset,
        status,
        scramble: [scramble_start, rest.strip_suffix(b"\0").unwrap_or(rest)],
        auth_plugin,
    })
}

/// Index of the connection id, behind the version.
fn after_version(payload: &[u8]) -> Option<usize> {
    let version_len = payload.get(1..)?.iter().position(|byte| *byte == 0)?;
    version_len.checked_add(2)
}

const PROTOCOL_VERSION: u8 = 10;
const CAPS_LOW: usize = 13;
const CAPS_HIGH: usize = 18;
const CAPS_MARIADB: usize = 27;
const MARIADB: &[u8] = b"MariaDB";
const MARIADB_VERSION_PREFIX: &[u8] = b"5.5.5-";
