//! Writes one packet, given in parts, as frames.

use super::{FrameHeader, MAX_PAYLOAD_LEN};

/// Appends the frames of one packet to a buffer. The parts pushed must add up to the length given
/// at the start.
pub(crate) struct FrameWriter<'o> {
    out: &'o mut Vec<u8>,
    sequence: u8,
    packet_left: usize,
    frame_left: usize,
    /// The frame being written is full, so another must follow, if only an empty one.
    continues: bool,
}

impl<'o> FrameWriter<'o> {
    /// Starts a packet of `packet_len` bytes with the frame number `sequence`.
    pub(crate) fn new(out: &'o mut Vec<u8>, packet_len: usize, sequence: u8) -> Self {
        let mut writer =
            Self { out, sequence, packet_left: packet_len, frame_left: 0, continues: false };
        writer.open_frame();
        writer
    }

    /// Writes the next bytes of the payload.
    pub(crate) fn push(&mut self, part: &[u8]) {
        let mut part = part;
        while !part.is_empty() {
            let (now, later) = part.split_at_checked(self.frame_left).unwrap_or((part, &[]));
            self.out.extend_from_slice(now);
            self.frame_left = self.frame_left.saturating_sub(now.len());
            part = later;
            if self.frame_left == 0 {
                if !self.continues {
                    return;
                }
                self.sequence = self.sequence.wrapping_add(1);
                self.open_frame();
            }
        }
    }

    fn open_frame(&mut self) {
        let payload_len = self.packet_left.min(MAX_PAYLOAD_LEN);
        let header = FrameHeader { payload_len, sequence: self.sequence };
        self.out.extend_from_slice(&header.encode());
        self.packet_left = self.packet_left.saturating_sub(payload_len);
        self.frame_left = payload_len;
        self.continues = header.continues();
    }
}
