//! Where a response ends, and what it said about the session.
//!
//! The tracker looks at the bytes a server sends, wherever they are cut, and tells how many of them
//! belong to the response of the current command. Per packet it costs the header and the first
//! byte. Column definitions and rows are stepped over unseen; only OK, EOF, ERR, column counts and
//! PREPARE_OK are decoded, from at most [`CAPTURE_LEN_MAX`] bytes each, so memory stays bounded
//! whatever a server sends.
//!
//! Sequence ids are reported, never checked. The rules are those of the manual's "Text Resultset"
//! and its neighbours, with both servers' deviations; they stand with the states, in module
//! `machine`.

mod captured;
mod expect;
mod machine;
mod notes;
mod value;

pub use captured::CAPTURE_LEN_MAX;
pub use expect::{Cursor, Expect};
pub use value::OnlyValue;

use crate::capability::Capabilities;
use crate::error::ProtocolError;
use crate::frame::{FrameWalker, Step, split_frame};
use crate::status::StatusFlags;

use captured::{CutPacket, Packet};
use machine::{Halt, Machine, Next};

/// Follows one session's responses, one after the other.
///
/// ```text
/// begin(expect) ─▶ feed(bytes) ─▶ More ──┐       feed again with what comes next
///                    ▲   │  ▲────────────┘
///                    │   ├────▶ LocalInfile ─▶ (client uploads) ─▶ resume_after_upload() ─▶ feed
///                    │   └────▶ End(ResponseEnd) ─▶ idle, until the next begin
/// ```
#[derive(Debug, Clone)]
pub struct ResponseTracker {
    machine: Machine,
    walker: FrameWalker,
    /// The packet that is cut by the end of what was fed.
    cut: CutPacket,
}

impl ResponseTracker {
    /// A tracker of a session that agreed on `caps`, idle.
    #[must_use]
    pub fn new(caps: Capabilities) -> Self {
        Self {
            machine: Machine::new(caps),
            walker: FrameWalker::default(),
            cut: CutPacket::default(),
        }
    }

    /// Starts to follow the response of a command that was just sent. Only between responses.
    pub fn begin(&mut self, expect: Expect) {
        self.machine.begin(expect);
    }

    /// Reads the value as well, if the response that was just begun turns out to hold no more than
    /// one. To be called between `begin` and the first `feed`; without it
    /// [`ResponseEnd::only_value`] is `None`.
    pub fn watch_value(&mut self) {
        self.machine.watch_value();
    }

    /// Looks at the server's next bytes, wherever they are cut. What is consumed belongs to this
    /// response and is to be forwarded unchanged; the rest was not looked at. While idle, and while
    /// the client is uploading, nothing is consumed.
    ///
    /// # Errors
    /// [`ProtocolError`] when a packet cannot stand where it does. Where the response ends is not
    /// known from then on: every later call fails alike, until the next `begin`.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Fed, ProtocolError> {
        let mut rest = bytes;
        let progress = self.advance(&mut rest)?;
        Ok(Fed { consumed: bytes.len().saturating_sub(rest.len()), progress })
    }

    /// The client's upload is over, its empty packet was forwarded: the server's answer follows.
    pub fn resume_after_upload(&mut self) {
        self.machine.resume_after_upload();
    }

    /// Sequence id of the last frame whose header was read.
    #[must_use]
    pub fn last_sequence(&self) -> u8 {
        self.walker.sequence()
    }

    /// Rows so far, of all results of the response that was begun last.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.machine.rows_so_far()
    }

    /// Whether no response is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.machine.is_idle()
    }

    /// Whether what was consumed so far ends with a whole frame.
    #[must_use]
    pub fn at_frame_boundary(&self) -> bool {
        self.walker.at_frame_boundary()
    }

    /// The default schema, if this response reported a change of it; empty for none. Valid until
    /// the next `begin`. Cut at 256 bytes; a schema's name has at most 64 characters.
    #[must_use]
    pub fn schema(&self) -> Option<&[u8]> {
        self.machine.notes().schema()
    }

    /// `character_set_client`, if this response reported a change of it. Valid until the next
    /// `begin`.
    #[must_use]
    pub fn charset_client(&self) -> Option<&[u8]> {
        self.machine.notes().charset_client()
    }

    /// Whether an OK of this response was longer than [`CAPTURE_LEN_MAX`], so that changes it
    /// reported may have been missed.
    #[must_use]
    pub fn session_changes_cut(&self) -> bool {
        self.machine.notes().cut()
    }

    fn advance(&mut self, rest: &mut &[u8]) -> Result<Progress, ProtocolError> {
        loop {
            match self.machine.halted()? {
                Some(Halt::Idle) => return Ok(Progress::More),
                Some(Halt::Upload) => return Ok(Progress::LocalInfile),
                None => {}
            }
            if self.walker.at_packet_boundary() {
                if let Some(sequence) = self.machine.pass(rest) {
                    self.walker.note_whole_packet(sequence);
                }
                if let Some((header, payload, after)) = split_frame(rest)
                    && !header.continues()
                {
                    *rest = after;
                    self.walker.note_whole_packet(header.sequence);
                    let packet = Packet::of_frame(payload);
                    match self.machine.on_packet(packet)? {
                        Next::More => continue,
                        Next::Upload => return Ok(Progress::LocalInfile),
                        Next::End => return Ok(Progress::End(self.machine.ended())),
                    }
                }
            }
            match self.walker.step(rest) {
                Step::NeedMore => return Ok(Progress::More),
                Step::PacketHead { frame_len } => self.cut.begin(frame_len),
                Step::Payload(bytes) => {
                    self.cut.push(bytes, |first_byte| self.machine.wanted_len(first_byte));
                }
                Step::PacketEnd => match self.machine.on_packet(self.cut.packet())? {
                    Next::More => {}
                    Next::Upload => return Ok(Progress::LocalInfile),
                    Next::End => return Ok(Progress::End(self.machine.ended())),
                },
            }
        }
    }
}

/// How far [`ResponseTracker::feed`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Bytes that belong to this response.
    pub consumed: usize,
    /// What comes next.
    pub progress: Progress,
}

/// What comes next in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes of the server.
    More,
    /// The client's turn: it sends the file's packets, the last one empty.
    LocalInfile,
    /// Nothing, the response is over.
    End(ResponseEnd),
}

/// What a whole response amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResponseEnd {
    /// Status flags of the last OK or EOF; none after an ERR, a PREPARE_OK or a bare string.
    pub status: Option<StatusFlags>,
    /// The error's number, when the response ended with an ERR.
    pub error: Option<u16>,
    /// Results that were whole ahead of the last one. A statement has one, but a CALL and a block
    /// may have any number.
    pub results_ahead: u32,
    /// Status flags of the last of these.
    pub status_ahead: Option<StatusFlags>,
    /// Summed over the OK packets of all results.
    pub affected_rows: u64,
    /// Rows among them that were only found, as far as the OK packets say so.
    pub unchanged_rows: u64,
    /// Rows of all results, and of a COM_STMT_FETCH.
    pub rows: u64,
    /// Warnings that the server counted, summed over all results.
    pub warnings: u32,
    /// The statement, after a COM_STMT_PREPARE that succeeded.
    pub prepared: Option<Prepared>,
    /// The statement has a cursor open with rows to fetch. Only after an EXECUTE that asked for
    /// one, and a FETCH.
    pub cursor_open: bool,
    /// The only column of the only row of the only result, if it was watched for
    /// ([`ResponseTracker::watch_value`]). `None` for what is no integer or does not fit, for an integer
    /// in a binary row whose definition was left out, and when there was more than that one value.
    pub only_value: Option<OnlyValue>,
}

impl ResponseEnd {
    /// Rows that replicas have work with: what was only found is none.
    #[must_use]
    pub fn changed_rows(&self) -> u64 {
        self.affected_rows.saturating_sub(self.unchanged_rows)
    }

    fn count_rows(&mut self, affected: u64, unchanged: u64) {
        self.affected_rows = self.affected_rows.saturating_add(affected);
        self.unchanged_rows = self.unchanged_rows.saturating_add(unchanged);
    }

    /// Another follows that one.
    fn count_result(&mut self, status: StatusFlags) {
        self.results_ahead = self.results_ahead.saturating_add(1);
        self.status_ahead = Some(status);
    }
}

/// A prepared statement, as the server announces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// Its id in later commands.
    pub statement_id: u32,
    /// Parameters that each COM_STMT_EXECUTE binds.
    pub num_params: u16,
    /// Columns of its result set, 0 when it has none.
    pub num_columns: u16,
}

#[cfg(test)]
mod tests;
