//! Frames: what the manual calls MySQL packets on the wire.
//!
//! A frame is `length:u24 sequence:u8 payload`. A payload of 0xffffff bytes or more is spread over
//! several frames: each full frame is continued by the next one, until a frame that is not full,
//! which may be empty. The first byte of a continuing frame means nothing. Here, as in the rest of
//! the crate, a *packet* is the whole logical payload and a *frame* a piece of it.
//!
//! Manual: "MySQL Packets", `page_protocol_basic_packets`.

mod walker;
mod writer;

pub(crate) use walker::{FrameStep, FrameWalker, Step};
pub(crate) use writer::FrameWriter;

/// Length of a frame's header in bytes.
pub const HEADER_LEN: usize = 4;

/// Length in bytes of a full frame's payload. A full frame is always continued.
pub const MAX_PAYLOAD_LEN: usize = 0xff_ffff;

/// What a frame says in front of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of payload in this frame, at most [`MAX_PAYLOAD_LEN`].
    pub payload_len: usize,
    /// Position of the frame within its command, wrapping at 255. Reported, never checked.
    pub sequence: u8,
}

impl FrameHeader {
    /// Reads a header from the front of `bytes`; `None` when fewer than 4 bytes are there.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER_LEN>()?;
        Some(Self::from_bytes(*header))
    }

    /// The header's bytes. Only the low 24 bits of `payload_len` can be said.
    #[must_use]
    pub fn encode(self) -> [u8; HEADER_LEN] {
        let [a, b, c, ..] = self.payload_len.to_le_bytes();
        [a, b, c, self.sequence]
    }

    /// Whether the next frame carries on this one's payload.
    #[must_use]
    pub fn continues(self) -> bool {
        self.payload_len == MAX_PAYLOAD_LEN
    }

    fn from_bytes([a, b, c, sequence]: [u8; HEADER_LEN]) -> Self {
        let payload_len = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        Self { payload_len, sequence }
    }
}

/// Splits the first frame off `bytes`: its header, its payload and what follows. `None` when the
/// frame has not arrived as a whole.
#[must_use]
pub fn split_frame(bytes: &[u8]) -> Option<(FrameHeader, &[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
    let header = FrameHeader::from_bytes(*header);
    let (payload, rest) = rest.split_at_checked(header.payload_len)?;
    Some((header, payload, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_as_written() {
        let bytes = [0x01, 0x02, 0x03, 0xff];
        let header = FrameHeader::parse(&bytes).unwrap();
        assert_eq!(header, FrameHeader { payload_len: 0x03_0201, sequence: 0xff });
        assert_eq!(header.encode(), bytes);
        assert!(!header.continues());
        assert_eq!(FrameHeader::parse(&[1, 2, 3]), None);
    }

    #[test]
    fn only_a_full_frame_is_continued() {
        assert!(FrameHeader::parse(&[0xff, 0xff, 0xff, 0]).unwrap().continues());
        assert!(!FrameHeader::parse(&[0xfe, 0xff, 0xff, 0]).unwrap().continues());
    }

    #[test]
    fn a_frame_is_split_off_once_it_is_whole() {
        let bytes = b"\x02\0\0\x07ab\x01\0\0";
        let (header, payload, rest) = split_frame(bytes).unwrap();
        assert_eq!((header.payload_len, header.sequence), (2, 7));
        assert_eq!(payload, b"ab");
        assert_eq!(rest, b"\x01\0\0");
        assert_eq!(split_frame(rest), None);
        assert_eq!(split_frame(b"\x02\0\0\0a"), None);
        assert!(split_frame(b"\0\0\0\0").is_some());
    }
}
