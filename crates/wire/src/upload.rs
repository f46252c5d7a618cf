//! Client bytes that are relayed without being read: the upload of LOAD DATA LOCAL, and the rest of
//! a long command.

use crate::frame::{FrameHeader, FrameWalker, Step, split_frame};

/// How far a tracker of client bytes came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Bytes that belong to what is being followed.
    pub consumed: usize,
    /// Whether its last byte is among them.
    pub done: bool,
}

/// Follows the packets a client sends after
/// [`Progress::LocalInfile`](crate::response_tracker::Progress::LocalInfile), until and including
/// the empty one.
#[derive(Debug, Clone, Default)]
pub struct UploadTracker {
    walker: FrameWalker,
    packet_is_empty: bool,
    done: bool,
}

impl UploadTracker {
    /// A tracker before the first packet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the client's next bytes, wherever they are cut. When it is done it consumes nothing
    /// more.
    pub fn feed(&mut self, bytes: &[u8]) -> Skipped {
        let mut rest = bytes;
        while !self.done {
            match self.walker.step(&mut rest) {
                Step::NeedMore => break,
                Step::PacketHead { frame_len } => self.packet_is_empty = frame_len == 0,
                Step::Payload(_) => {}
                Step::PacketEnd => self.done = self.packet_is_empty,
            }
        }
        Skipped { consumed: bytes.len().saturating_sub(rest.len()), done: self.done }
    }

    /// Sequence id of the last frame whose header was read.
    #[must_use]
    pub fn last_sequence(&self) -> u8 {
        self.walker.sequence()
    }
}

/// Follows one packet to its end, continuing frames included.
#[derive(Debug, Clone, Default)]
pub struct FrameSkipper {
    walker: FrameWalker,
    done: bool,
}

impl FrameSkipper {
    /// Stands before the header of the packet's first frame.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stands within the frame of `header`, `payload_left` bytes before its end.
    #[must_use]
    pub fn within(header: FrameHeader, payload_left: usize) -> Self {
        Self { walker: FrameWalker::within(header, payload_left), done: false }
    }

    /// Looks at the next bytes, wherever they are cut. When it is done it consumes nothing more. To
    /// be called once with what is there, if only with nothing: a packet without a rest is done at
    /// once.
    pub fn feed(&mut self, bytes: &[u8]) -> Skipped {
        if let Some(consumed) = self.skip_whole(bytes) {
            return Skipped { consumed, done: true };
        }
        let mut rest = bytes;
        while !self.done {
            match self.walker.step(&mut rest) {
                Step::NeedMore => break,
                Step::PacketHead { .. } | Step::Payload(_) => {}
                Step::PacketEnd => self.done = true,
            }
        }
        Skipped { consumed: bytes.len().saturating_sub(rest.len()), done: self.done }
    }

    /// The length of the packet if all of it is there in one frame, as it mostly is.
    fn skip_whole(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.done || !self.walker.at_packet_boundary() {
            return None;
        }
        let (header, _, behind) = split_frame(bytes)?;
        if header.continues() {
            return None;
        }
        self.walker.note_whole_packet(header.sequence);
        self.done = true;
        Some(bytes.len().saturating_sub(behind.len()))
    }

    /// Sequence id of the last frame whose header was read.
    #[must_use]
    pub fn last_sequence(&self) -> u8 {
        self.walker.sequence()
    }
}

#[cfg(test)]
mod tests;
