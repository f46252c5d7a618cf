//! Steps over frames in a byte stream that is cut anywhere.

use super::{FrameHeader, HEADER_LEN};

/// Where a byte stream stands between and within its frames.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FrameWalker {
    position: Position,
    /// The frame at or after the position carries on the packet before it.
    continued: bool,
    sequence: u8,
}

impl FrameWalker {
    /// Stands inside a frame, `payload_left` bytes before its end.
    pub(crate) fn within(header: FrameHeader, payload_left: usize) -> Self {
        let continues = header.continues();
        Self {
            position: Position::Payload { left: payload_left, continues },
            continued: false,
            sequence: header.sequence,
        }
    }

    /// Whether the next byte is the first of a frame.
    pub(crate) fn at_frame_boundary(&self) -> bool {
        matches!(self.position, Position::Header { have: 0, .. })
    }

    /// Whether the next byte is the first of a packet.
    pub(crate) fn at_packet_boundary(&self) -> bool {
        !self.continued && self.at_frame_boundary()
    }

    /// Sequence id of the last header that was read.
    pub(crate) fn sequence(&self) -> u8 {
        self.sequence
    }

    /// Takes note of a whole frame that the caller stepped over by itself at a packet boundary.
    pub(crate) fn note_whole_packet(&mut self, sequence: u8) {
        self.sequence = sequence;
    }

    /// Takes the next piece of a packet off the front of `rest`. To be called until it says
    /// [`Step::NeedMore`], also with nothing left: a packet's end is a step of its own.
    pub(crate) fn step<'a>(&mut self, rest: &mut &'a [u8]) -> Step<'a> {
        loop {
            return match self.step_frame(rest) {
                FrameStep::NeedMore => Step::NeedMore,
                FrameStep::Head { begins: false, .. } => continue,
                FrameStep::Head { header, begins: true } => {
                    Step::PacketHead { frame_len: header.payload_len }
                }
                FrameStep::Payload(payload) => Step::Payload(payload),
                FrameStep::PacketEnd => Step::PacketEnd,
            };
        }
    }

    /// The same, with the header of each frame as a step. The last byte that a header took is its
    /// sequence id.
    pub(crate) fn step_frame<'a>(&mut self, rest: &mut &'a [u8]) -> FrameStep<'a> {
        loop {
            match self.position {
                Position::Header { bytes, have } => {
                    return match self.read_header(bytes, have, rest) {
                        Some(header) => FrameStep::Head { header, begins: !self.continued },
                        None => FrameStep::NeedMore,
                    };
                }
                Position::Payload { left: 0, continues } => {
                    self.position = Position::default();
                    self.continued = continues;
                    if !continues {
                        return FrameStep::PacketEnd;
                    }
                }
                Position::Payload { left, continues } => {
                    let Some((payload, after)) = rest.split_at_checked(left.min(rest.len())) else {
                        return FrameStep::NeedMore;
                    };
                    if payload.is_empty() {
                        return FrameStep::NeedMore;
                    }
                    *rest = after;
                    let left = left.saturating_sub(payload.len());
                    self.position = Position::Payload { left, continues };
                    return FrameStep::Payload(payload);
                }
            }
        }
    }

    fn read_header(
        &mut self,
        mut bytes: [u8; HEADER_LEN],
        have: usize,
        rest: &mut &[u8],
    ) -> Option<FrameHeader> {
        let mut have = have;
        while let Some(slot) = bytes.get_mut(have) {
            let Some((first, after)) = rest.split_first() else {
                self.position = Position::Header { bytes, have };
                return None;
            };
            *slot = *first;
            *rest = after;
            have = have.saturating_add(1);
        }
        let header = FrameHeader::from_bytes(bytes);
        self.sequence = header.sequence;
        self.position =
            Position::Payload { left: header.payload_len, continues: header.continues() };
        Some(header)
    }
}

/// What came next in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// All bytes are used up.
    NeedMore,
    /// A packet begins; its first frame has this many bytes of payload.
    PacketHead { frame_len: usize },
    /// Some of the packet's payload, never empty.
    Payload(&'a [u8]),
    /// The packet has ended, continuing frames included.
    PacketEnd,
}

/// What came next in the stream, frame by frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameStep<'a> {
    /// All bytes are used up.
    NeedMore,
    /// A frame's header is whole. It begins a packet, or carries one on.
    Head { header: FrameHeader, begins: bool },
    /// Some of the frame's payload, never empty.
    Payload(&'a [u8]),
    /// The packet has ended, continuing frames included.
    PacketEnd,
}

#[derive(Debug, Clone, Copy)]
enum Position {
    Header { bytes: [u8; HEADER_LEN], have: usize },
    Payload { left: usize, continues: bool },
}

impl Default for Position {
    fn default() -> Self {
        Self::Header { bytes: [0; HEADER_LEN], have: 0 }
    }
}
