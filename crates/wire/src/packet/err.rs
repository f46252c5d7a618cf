//! ERR packets: reading those of a server, writing our own.

use crate::error::ProtocolError;
use crate::frame::{FrameHeader, HEADER_LEN};
use crate::lenenc::Reader;

use super::ERR_HEADER;

/// An ERR packet. The one before the handshake has no SQLSTATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// The error number.
    pub code: u16,
    /// Five characters, if the packet has them.
    pub sqlstate: Option<&'a [u8]>,
    /// The message, which may quote a statement.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// Reads an ERR packet, with or without SQLSTATE.
    ///
    /// # Errors
    /// [`ProtocolError::PacketTruncated`] when the error number is not there, or the packet is
    /// none.
    pub fn parse(payload: &'a [u8]) -> Result<Self, ProtocolError> {
        let mut reader = Reader::new(payload);
        let first_byte = reader.u8().unwrap_or_default();
        let truncated = ProtocolError::PacketTruncated { first_byte };
        if first_byte != ERR_HEADER {
            return Err(truncated);
        }
        let code = reader.u16().ok_or(truncated)?;
        let mut ahead = reader;
        let marked = ahead.u8() == Some(SQLSTATE_MARKER);
        let sqlstate = if marked { ahead.bytes(SQLSTATE_LEN) } else { None };
        let message = if sqlstate.is_some() { ahead.rest() } else { reader.rest() };
        Ok(Self { code, sqlstate, message })
    }
}

/// Appends a whole frame with an ERR packet. A message above [`ERR_MESSAGE_LEN_MAX`] bytes is cut
/// between two characters of UTF-8.
pub fn encode_err(
    out: &mut Vec<u8>,
    sequence: u8,
    code: u16,
    sqlstate: &[u8; SQLSTATE_LEN],
    message: &[u8],
) {
    let [a, b, c, d, e] = *sqlstate;
    encode(out, sequence, code, &[SQLSTATE_MARKER, a, b, c, d, e], message);
}

/// The same for the time before the handshake, when an ERR has no SQLSTATE yet.
pub fn encode_err_no_sqlstate(out: &mut Vec<u8>, sequence: u8, code: u16, message: &[u8]) {
    encode(out, sequence, code, &[], message);
}

/// Longest message of an ERR in bytes: MYSQL_ERRMSG_SIZE of the clients.
pub const ERR_MESSAGE_LEN_MAX: usize = 512;

fn encode(out: &mut Vec<u8>, sequence: u8, code: u16, sqlstate: &[u8], message: &[u8]) {
    let message = cut_at_character(message, ERR_MESSAGE_LEN_MAX);
    let fixed_len: usize = 3;
    let payload_len = fixed_len.saturating_add(sqlstate.len()).saturating_add(message.len());
    out.reserve(payload_len.saturating_add(HEADER_LEN));
    out.extend_from_slice(&FrameHeader { payload_len, sequence }.encode());
    out.push(ERR_HEADER);
    out.extend_from_slice(&code.to_le_bytes());
    out.extend_from_slice(sqlstate);
    out.extend_from_slice(message);
}

fn cut_at_character(message: &[u8], len_max: usize) -> &[u8] {
    if message.len() <= len_max {
        return message;
    }
    let mut len = len_max;
    // At most three continuation bytes belong to a character; more are no UTF-8 and cut anywhere.
    for _ in 0..3 {
        match message.get(len) {
            Some(byte) if byte & 0xc0 == 0x80 => len = len.saturating_sub(1),
            _ => break,
        }
    }
    message.get(..len).unwrap_or(message)
}

const SQLSTATE_MARKER: u8 = b'#';
const SQLSTATE_LEN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_with_and_without_sqlstate() {
        let with = ErrPacket::parse(b"\xff\x15\x04#28000Access denied").unwrap();
        assert_eq!(
            with,
            ErrPacket { code: 1045, sqlstate: Some(b"28000"), message: b"Access denied" }
        );
        let without = ErrPacket::parse(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!(
            without,
            ErrPacket { code: 1040, sqlstate: None, message: b"Too many connections" }
        );
        let odd = ErrPacket::parse(b"\xff\x10\x04#28").unwrap();
        assert_eq!((odd.sqlstate, odd.message), (None, &b"#28"[..]));
    }

    #[test]
    fn an_error_without_its_number_is_none() {
        for bytes in [&b""[..], b"\xff", b"\xff\x10", b"\x00\x10\x04"] {
            assert!(ErrPacket::parse(bytes).is_err());
        }
    }

    #[test]
    fn an_error_is_written_as_a_whole_frame() {
        let mut out = Vec::new();
        encode_err(&mut out, 1, 1205, b"HY000", b"no");
        assert_eq!(out, b"\x0b\0\0\x01\xff\xb5\x04#HY000no");
        out.clear();
        encode_err_no_sqlstate(&mut out, 0, 1040, b"full");
        assert_eq!(out, b"\x07\0\0\0\xff\x10\x04full");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        for (lead, expected) in [(511, 511), (512, 512), (510, 512), (509, 511)] {
            let mut message = vec![b'a'; lead];
            message.extend_from_slice("éééé".as_bytes());
            let mut out = Vec::new();
            encode_err(&mut out, 1, 1205, b"HY000", &message);
            let message = out.get(13..).unwrap();
            assert_eq!(message.len(), expected, "{lead}");
            assert!(std::str::from_utf8(message).is_ok());
        }
    }

    #[test]
    fn a_message_that_is_no_text_is_cut_all_the_same() {
        let mut out = Vec::new();
        encode_err(&mut out, 1, 1205, b"HY000", &[0x80; 600]);
        assert_eq!(out.len(), 13 + 509);
    }
}
