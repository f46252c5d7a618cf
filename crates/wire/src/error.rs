//! What a peer can do wrong, and who it was.

use std::error::Error;
use std::fmt;

/// A rule of the protocol that a peer broke in a way that cannot be read past. Carries no statement
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProtocolError {
    /// The server's first packet is neither a protocol 10 greeting nor an ERR.
    GreetingMalformed,
    /// The client's handshake response ends within its fixed part of 32 bytes.
    ClientHelloMalformed,
    /// The client does not speak the protocol of MySQL 4.1 and later (no CLIENT_PROTOCOL_41).
    ClientTooOld,
    /// A command ends before the fields it must have. Servers disagree on whether they answer it,
    /// so it should be answered with ER_MALFORMED_PACKET (1835) and not be forwarded.
    CommandTruncated {
        /// The command byte.
        command: u8,
    },
    /// The query attributes in front of a COM_QUERY's text cannot be sized, so the text was not
    /// found. Servers answer exactly one ERR or find a text that we could not: forward it as a
    /// statement of unknown class with
    /// [`Expect::ResultSets`](crate::response_tracker::Expect::ResultSets).
    QueryAttributesMalformed,
    /// A remembered type block does not fit the EXECUTE it was to be put into.
    TypeBlockMismatch,
    /// A packet that must be an OK, EOF or ERR ends within its fixed part.
    PacketTruncated {
        /// The packet's first byte, 0 when it is empty.
        first_byte: u8,
    },
    /// The server sent a packet that cannot stand at this place of its response.
    ResponseUnexpected {
        /// The packet's first byte, 0 when it is empty.
        first_byte: u8,
    },
}

impl ProtocolError {
    /// Who broke the rule.
    #[must_use]
    pub fn peer(self) -> Peer {
        match self {
            Self::ClientHelloMalformed
            | Self::ClientTooOld
            | Self::CommandTruncated { .. }
            | Self::QueryAttributesMalformed
            | Self::TypeBlockMismatch => Peer::Client,
            Self::GreetingMalformed
            | Self::PacketTruncated { .. }
            | Self::ResponseUnexpected { .. } => Peer::Backend,
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GreetingMalformed => {
                f.write_str("backend: first packet is no protocol 10 greeting")
            }
            Self::ClientHelloMalformed => f.write_str("client: handshake response is too short"),
            Self::ClientTooOld => f.write_str("client: CLIENT_PROTOCOL_41 is not set"),
            Self::CommandTruncated { command } => {
                write!(f, "client: command 0x{command:02x} ends within its fixed fields")
            }
            Self::QueryAttributesMalformed => {
                f.write_str("client: query attributes cannot be read")
            }
            Self::TypeBlockMismatch => {
                f.write_str("client: parameter types do not fit the statement")
            }
            Self::PacketTruncated { first_byte } => {
                write!(f, "backend: packet 0x{first_byte:02x} ends within its fixed fields")
            }
            Self::ResponseUnexpected { first_byte } => {
                write!(f, "backend: packet 0x{first_byte:02x} cannot stand here in a response")
            }
        }
    }
}

impl Error for ProtocolError {}

/// One end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// The MySQL client.
    Client,
    /// The MySQL or MariaDB server.
    Backend,
}
