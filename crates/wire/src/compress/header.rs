//! The seven bytes in front of a compressed packet.

/// Length of the header in bytes.
pub(super) const HEADER_LEN: usize = 7;

/// What a compressed packet says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes that follow.
    pub(super) packed_len: usize,
    /// Its number within the command, wrapping at 255.
    pub(super) sequence: u8,
    /// Bytes that they are decompressed to, at most 16 MiB − 1; 0 when they are not compressed.
    pub(super) plain_len: usize,
}

impl Header {
    pub(super) fn decode([a, b, c, sequence, d, e, f]: [u8; HEADER_LEN]) -> Self {
        Self { packed_len: u24([a, b, c]), sequence, plain_len: u24([d, e, f]) }
    }

    /// Only the low 24 bits of the lengths can be said.
    pub(super) fn encode(self) -> [u8; HEADER_LEN] {
        let [a, b, c, ..] = self.packed_len.to_le_bytes();
        let [d, e, f, ..] = self.plain_len.to_le_bytes();
        [a, b, c, self.sequence, d, e, f]
    }
}

fn u24([a, b, c]: [u8; 3]) -> usize {
    usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16
}
