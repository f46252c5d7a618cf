//! Frames on their way to a client, whole.
//!
//! Servers put a frame into one compressed packet, or into two when it does not fit what is left of
//! a buffer, and a client library in use (Connector/Python without its C extension) waits for ever
//! when there are more. So a frame is held until it is complete, up to a length that neither memory
//! nor time are felt of. A longer one is not compressed: its packets say how long they are, and its
//! bytes pass as they come.

use super::numbering::{Head, renumber};
use crate::frame::{FrameWalker, MAX_PAYLOAD_LEN};
use crate::lenenc::Reader;
use crate::packet::{EOF_HEADER, OK_HEADER};
use crate::status::StatusFlags;

/// What is done with the next bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All have been taken.
    Starved,
    /// Frames are complete, and are enough for a compressed packet.
    Ripe,
    /// A long frame begins, of this length with its header: it is taken from here with
    /// [`Whole::take_long_header`].
    Long(usize),
}

/// Frames, of which the last may not be complete.
#[derive(Debug, Default)]
pub(super) struct Whole {
    bytes: Vec<u8>,
    /// Up to here they are complete.
    complete: usize,
    /// Here the last complete one begins.
    last: usize,
    /// It carries on the packet of the one before it.
    last_continues: bool,
    /// The frame behind it does.
    next_continues: bool,
}

impl Whole {
    /// Takes bytes up to what [`Next`] says. Of `events` one that is to be acknowledged is the last
    /// in its compressed packet.
    pub(super) fn take(&mut self, rest: &mut &[u8], events: bool) -> Next {
        loop {
            if self.complete >= RIPE_LEN || (events && self.is_acknowledged()) {
                return Next::Ripe;
            }
            let Some(frame_len) = self.frame_len() else {
                let missing = HEADER_LEN.saturating_sub(self.open().len());
                if !self.append(rest, missing) {
                    return Next::Starved;
                }
                continue;
            };
            if frame_len > WHOLE_LEN_MAX {
                self.next_continues = frame_len == HEADER_LEN.saturating_add(MAX_PAYLOAD_LEN);
                return Next::Long(frame_len);
            }
            let missing = frame_len.saturating_sub(self.open().len());
            if !self.append(rest, missing) {
                return Next::Starved;
            }
            self.last = std::mem::replace(&mut self.complete, self.bytes.len());
            self.last_continues = std::mem::take(&mut self.next_continues);
        }
    }

    /// What is complete.
    pub(super) fn complete(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.complete).unwrap_or_default()
    }

    /// Whether what is complete ends with a result that others follow. Definitions of the old style
    /// end like that too, and a row may look like it.
    pub(super) fn ends_result(&self) -> bool {
        let frame = self.bytes.get(self.last..self.complete).unwrap_or_default();
        frame.get(HEADER_LEN..).and_then(status).is_some_and(StatusFlags::more_results)
    }

    /// Whether what is complete ends with an event that a replica acknowledges.
    pub(super) fn is_acknowledged(&self) -> bool {
        let frame = self.bytes.get(self.last..self.complete).unwrap_or_default();
        let payload = frame.get(HEADER_LEN..).unwrap_or_default();
        !self.last_continues && payload.starts_with(&ACKNOWLEDGED)
    }

    /// What was complete has been sent.
    pub(super) fn sent(&mut self) {
        self.bytes.drain(..self.complete);
        self.complete = 0;
        self.last = 0;
    }

    /// The header of a long frame, which is not held.
    pub(super) fn take_long_header(&mut self) -> [u8; HEADER_LEN] {
        let header = self.open().first_chunk().copied().unwrap_or_default();
        self.bytes.truncate(self.complete);
        header
    }

    /// Gives memory back.
    pub(super) fn shrink(&mut self, kept_len: usize) {
        if self.bytes.is_empty() && self.bytes.capacity() > kept_len {
            self.bytes = Vec::new();
        }
    }

    fn open(&self) -> &[u8] {
        self.bytes.get(self.complete..).unwrap_or_default()
    }

    fn frame_len(&self) -> Option<usize> {
        let [a, b, c, _] = self.open().first_chunk::<HEADER_LEN>()?;
        let len = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
        Some(len.saturating_add(HEADER_LEN))
    }

    /// Whether that many were there.
    fn append(&mut self, rest: &mut &[u8], len: usize) -> bool {
        let (now, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        self.bytes.extend_from_slice(now);
        let all = now.len() == len;
        *rest = after;
        all
    }
}

/// The status of an OK or EOF.
fn status(payload: &[u8]) -> Option<StatusFlags> {
    let mut reader = Reader::new(payload);
    match reader.u8()? {
        EOF_HEADER if payload.len() == EOF_LEN => drop(reader.u16()?),
        OK_HEADER | EOF_HEADER => drop((reader.lenenc_int()?, reader.lenenc_int()?)),
        _ => return None,
    }
    reader.u16().map(StatusFlags)
}

/// Steps over all of `bytes`.
pub(super) fn step_over(
    frames: &mut FrameWalker,
    bytes: &mut [u8],
    mut number: impl FnMut(Head) -> u8,
) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = renumber(frames, rest, &mut number);
        rest = rest.get_mut(len..).unwrap_or_default();
    }
}

const HEADER_LEN: usize = crate::frame::HEADER_LEN;

/// How an event begins that a semi-synchronous replica has to acknowledge: as every event, then the
/// mark of the servers' plugins, then their flag.
const ACKNOWLEDGED: [u8; 3] = [0x00, 0xef, 0x01];

/// An OK in its place is longer.
const EOF_LEN: usize = 5;

/// The longest frame that is held, with its header. To compress one takes a few milliseconds, in
/// which nothing else is done on the thread.
pub(super) const WHOLE_LEN_MAX: usize = 1024 * 1024;

/// What goes into one compressed packet, but for the rest of its last frame.
const RIPE_LEN: usize = 64 * 1024;
