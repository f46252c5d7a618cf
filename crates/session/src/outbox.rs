//! Bytes that the session made itself, until the shell has written them.

use wire::frame::{FrameHeader, HEADER_LEN};
use wire::packet::{encode_err, encode_err_no_sqlstate};
use zeroize::Zeroize as _;

use crate::answer::Answer;

/// Carries greetings, errors and repaired commands, one at a time: each begins by emptying it.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
}

/// A spliced EXECUTE can make it large, and that is given back.
const KEPT_LEN: usize = 1024;

impl Outbox {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Empties it without a trace: a password may stand in it.
    pub(crate) fn wipe(&mut self) {
        self.bytes.zeroize();
    }

    /// Empties it to be written to. Not for what follows a password.
    pub(crate) fn clear(&mut self) -> &mut Vec<u8> {
        self.bytes.clear();
        &mut self.bytes
    }

    /// Begins a frame whose payload is written to what this returns: see [`Self::seal`].
    pub(crate) fn begin_frame(&mut self) -> &mut Vec<u8> {
        self.wipe();
        self.bytes.extend_from_slice(&[0; HEADER_LEN]);
        &mut self.bytes
    }

    /// Writes the header of the frame that was begun.
    pub(crate) fn seal(&mut self, sequence: u8) {
        let payload_len = self.bytes.len().saturating_sub(HEADER_LEN);
        if let Some(header) = self.bytes.first_chunk_mut() {
            *header = FrameHeader { payload_len, sequence }.encode();
        }
    }

    /// The frame's payload.
    pub(crate) fn payload_mut(&mut self) -> Option<&mut [u8]> {
        self.bytes.get_mut(HEADER_LEN..)
    }

    /// One whole frame.
    pub(crate) fn put_frame(&mut self, sequence: u8, payload: &[u8]) {
        self.wipe();
        let header = FrameHeader { payload_len: payload.len(), sequence };
        self.bytes.extend_from_slice(&header.encode());
        self.bytes.extend_from_slice(payload);
    }

    /// One ERR packet.
    pub(crate) fn put_err(&mut self, sequence: u8, answer: &Answer) {
        let Answer { errno, sqlstate, message } = answer;
        self.wipe();
        encode_err(&mut self.bytes, sequence, *errno, sqlstate, message);
    }

    /// One ERR packet in the form that a server's own first packet has: without a SQLSTATE.
    pub(crate) fn put_first_err(&mut self, answer: &Answer) {
        let Answer { errno, sqlstate: _, message } = answer;
        self.wipe();
        encode_err_no_sqlstate(&mut self.bytes, 0, *errno, message);
    }

    /// Empties it without a trace, and gives all of its memory back.
    pub(crate) fn give_back(&mut self) {
        self.wipe();
        self.bytes = Vec::new();
    }

    /// Gives memory back.
    pub(crate) fn shrink(&mut self) {
        if self.bytes.capacity() > KEPT_LEN {
            self.bytes = Vec::new();
        }
    }
}
