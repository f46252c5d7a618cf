//! What almost all of every response is, without the ceremony of the states: definitions, rows, and
//! an end that reports nothing. Whatever is not as plain as that is left to them.

use super::{Machine, State};
use crate::frame::split_frame;
use crate::packet::{EOF_HEADER, ERR_HEADER};
use crate::response_tracker::captured::{CAPTURE_LEN_MAX, Packet};
use crate::status::{SERVER_SESSION_STATE_CHANGED, StatusFlags};

impl Machine {
    /// Takes the whole packets at the beginning of `rest` that need no more than a look at their
    /// headers and their first bytes: definitions and rows, which are nearly all there is. Gives the
    /// sequence id of the last one.
    #[inline]
    pub(in super::super) fn pass(&mut self, rest: &mut &[u8]) -> Option<u8> {
        let mut last = None;
        if let State::Definitions { left } = self.state
            && !self.value.is_on()
        {
            let mut left = left;
            while left > 0
                && let Some(passed) = plain_packet(rest, ERR_HEADER)
            {
                left = left.saturating_sub(1);
                (*rest, last) = (passed.behind, Some(passed.sequence));
            }
            self.after_definitions(left);
        }
        if self.state == State::Rows {
            let mut rows = 0_u64;
            while let Some(passed) = plain_packet(rest, EOF_HEADER) {
                rows = rows.wrapping_add(1);
                (*rest, last) = (passed.behind, Some(passed.sequence));
            }
            self.ended.rows = self.ended.rows.saturating_add(rows);
        }
        last
    }

    /// The status of an OK in the place of an EOF that reports nothing, as almost all are: counts of
    /// one byte each, and no change of the session.
    #[inline]
    pub(super) fn read_plain_end(&mut self, packet: Packet<'_>) -> Option<StatusFlags> {
        let &[EOF_HEADER, 0..=LENENC_BYTE_MAX, 0..=LENENC_BYTE_MAX, low, high, few, many, ..] =
            packet.start
        else {
            return None;
        };
        let status = StatusFlags(u16::from_le_bytes([low, high]));
        if !self.caps.deprecate_eof()
            || packet.frame_len > CAPTURE_LEN_MAX
            || status.has(SERVER_SESSION_STATE_CHANGED)
        {
            return None;
        }
        let warnings = u16::from_le_bytes([few, many]);
        self.ended.warnings = self.ended.warnings.saturating_add(u32::from(warnings));
        Some(status)
    }
}

/// A packet that was stepped over.
struct Passed<'a> {
    sequence: u8,
    behind: &'a [u8],
}

/// The packet at the beginning of `bytes`, if it is there as a whole in one frame, and its first byte
/// is below `special`.
#[inline(always)]
fn plain_packet(bytes: &[u8], special: u8) -> Option<Passed<'_>> {
    let (header, payload, behind) = split_frame(bytes)?;
    let is_plain = payload.first().is_none_or(|first| *first < special);
    (is_plain && !header.continues()).then_some(Passed { sequence: header.sequence, behind })
}

/// The largest length-encoded integer that is its own first byte.
const LENENC_BYTE_MAX: u8 = 0xfa;
