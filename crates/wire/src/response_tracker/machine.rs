//! The states of a response.
//!
//! ```text
//! ResultSets:  First ─ OK ─▶ next        ERR in any state ─▶ End
//!                │── 0xfb ─▶ Upload ─ resume ─▶ First    (only what can ask for a local file)
//!                └─ column count [flag] ─▶ Definitions(n) ─▶ DefinitionsEof ─▶ Rows ─▶ EOF ─▶ next
//!                                          (n = 0 when left out)
//!                                          (no DefinitionsEof, and OK(fe) for EOF, with DEPRECATE_EOF)
//! next:        MORE_RESULTS ? First : End
//! Prepare:     PREPARE_OK ─▶ PrepareDefinitions(n) ─▶ End
//! FieldList, Fetch, BinlogStream:  … ─ EOF/OK(fe) ─▶ End
//! ```
//!
//! Two things servers do that the diagram does not show. When a cursor is opened the EOF behind the
//! definitions has SERVER_STATUS_CURSOR_EXISTS and nothing follows. And MySQL marks the result set
//! of OUT parameters with SERVER_PS_OUT_PARAMS and MORE_RESULTS in the EOF before its row only, so
//! what that one says counts for the EOF behind the row too, as in the client library.
//!
//! What an answer means is decided by what was asked and agreed, never by bytes alone that other
//! answers can have as well: a cursor is opened for an EXECUTE that asked for one, OUT parameters
//! come from an EXECUTE, a local file is asked for where the session has CLIENT_LOCAL_FILES, and
//! progress is reported where it was agreed.

mod plain;

use crate::capability::{
    CLIENT_LOCAL_FILES, CLIENT_OPTIONAL_RESULTSET_METADATA, Capabilities,
    MARIADB_CLIENT_CACHE_METADATA,
};
use crate::error::ProtocolError;
use crate::frame::MAX_PAYLOAD_LEN;
use crate::lenenc::Reader;
use crate::packet::{
    EOF_HEADER, ERR_HEADER, EofPacket, ErrPacket, LOCAL_INFILE_HEADER, OK_HEADER, OkPacket,
    PROGRESS_REPORT_CODE,
};
use crate::status::{SERVER_PS_OUT_PARAMS, StatusFlags};

use super::captured::{CAPTURE_LEN_MAX, Packet};
use super::notes::SessionNotes;
use super::value::{RowFormat, ValueWatch};
use super::{Cursor, Expect, Prepared, ResponseEnd};

/// The state of one response.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    caps: Capabilities,
    expect: Expect,
    state: State,
    /// What the response amounts to, as far as it has come.
    ended: ResponseEnd,
    /// The result set holds OUT parameters, so another result follows whatever its last EOF says.
    out_params: bool,
    notes: SessionNotes,
    value: ValueWatch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    First,
    Definitions {
        left: u64,
    },
    DefinitionsEof,
    Rows,
    /// Rows of which one may hold the only value of the response.
    WatchedRows,
    Upload,
    OnePacket,
    Prepare,
    PrepareDefinitions {
        left: u32,
        prepared: Prepared,
    },
    FieldList,
    Statistics,
    Fetch,
    Auth,
    BinlogStream,
    OpaqueFirst,
    Opaque,
    Broken(ProtocolError),
}

/// What comes behind a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// More of the response.
    More,
    /// The client's upload.
    Upload,
    /// Nothing: it amounts to [`Machine::ended`].
    End,
}

/// A state that takes no bytes of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    Idle,
    Upload,
}

impl Machine {
    pub(super) fn new(caps: Capabilities) -> Self {
        Self {
            caps,
            expect: Expect::Nothing,
            state: State::Idle,
            ended: ResponseEnd::default(),
            out_params: false,
            notes: SessionNotes::default(),
            value: ValueWatch::Off,
        }
    }

    pub(super) fn begin(&mut self, expect: Expect) {
        self.ended = ResponseEnd::default();
        self.out_params = false;
        self.notes.clear();
        self.value = ValueWatch::Off;
        self.expect = expect;
        self.state = match expect {
            Expect::Nothing => State::Idle,
            Expect::OnePacket | Expect::Eof => State::OnePacket,
            Expect::ResultSets | Expect::Execution(_) | Expect::ProcessInfo => State::First,
            Expect::Prepare => State::Prepare,
            Expect::FieldList => State::FieldList,
            Expect::Statistics => State::Statistics,
            Expect::Fetch => State::Fetch,
            Expect::BinlogStream => State::BinlogStream,
            Expect::Opaque => State::OpaqueFirst,
            Expect::Auth => State::Auth,
        };
    }

    pub(super) fn watch_value(&mut self) {
        let format = match self.expect {
            Expect::ResultSets => RowFormat::Text,
            Expect::Execution(_) => RowFormat::Binary,
            Expect::Nothing
            | Expect::OnePacket
            | Expect::ProcessInfo
            | Expect::Prepare
            | Expect::FieldList
            | Expect::Statistics
            | Expect::Fetch
            | Expect::Eof
            | Expect::BinlogStream
            | Expect::Opaque
            | Expect::Auth => return,
        };
        self.value = ValueWatch::start(format);
    }

    pub(super) fn resume_after_upload(&mut self) {
        if self.state == State::Upload {
            self.state = State::First;
        }
    }

    /// What the response amounts to, once it has ended.
    pub(super) fn ended(&self) -> ResponseEnd {
        self.ended
    }

    /// Rows so far, of the response that was begun last.
    pub(super) fn rows_so_far(&self) -> u64 {
        self.ended.rows
    }

    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    pub(super) fn notes(&self) -> &SessionNotes {
        &self.notes
    }

    /// What to report without looking at any bytes, in the states that take none.
    pub(super) fn halted(&self) -> Result<Option<Halt>, ProtocolError> {
        match self.state {
            State::Idle => Ok(Some(Halt::Idle)),
            State::Upload => Ok(Some(Halt::Upload)),
            State::Broken(error) => Err(error),
            State::First
            | State::Definitions { .. }
            | State::DefinitionsEof
            | State::Rows
            | State::WatchedRows
            | State::OnePacket
            | State::Prepare
            | State::PrepareDefinitions { .. }
            | State::FieldList
            | State::Statistics
            | State::Fetch
            | State::Auth
            | State::BinlogStream
            | State::OpaqueFirst
            | State::Opaque => Ok(None),
        }
    }

    /// How much of a packet that begins with `first_byte` will be looked at: of rows and
    /// definitions that byte.
    pub(super) fn wanted_len(&self, first_byte: u8) -> usize {
        let decoded = match self.state {
            State::First
            | State::DefinitionsEof
            | State::OnePacket
            | State::Prepare
            | State::Auth
            | State::WatchedRows => true,
            State::Definitions { .. } => first_byte >= EOF_HEADER || self.value.is_on(),
            State::Rows
            | State::PrepareDefinitions { .. }
            | State::FieldList
            | State::Statistics
            | State::Fetch
            | State::BinlogStream
            | State::OpaqueFirst => first_byte >= EOF_HEADER,
            State::Idle | State::Upload | State::Opaque | State::Broken(_) => false,
        };
        if decoded { CAPTURE_LEN_MAX } else { 1 }
    }

    /// Takes one whole packet.
    pub(super) fn on_packet(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let outcome = self.dispatch(packet);
        match outcome {
            Err(error) => self.state = State::Broken(error),
            Ok(Next::End) => self.state = State::Idle,
            Ok(Next::More | Next::Upload) => {}
        }
        outcome
    }

    fn dispatch(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let first_byte = packet.first_byte();
        if first_byte == ERR_HEADER && !matches!(self.state, State::Opaque) {
            return self.on_err(packet);
        }
        match self.state {
            State::First => self.on_first(packet),
            State::Definitions { left } => {
                self.value.definition(packet);
                self.after_definitions(left.saturating_sub(1));
                Ok(Next::More)
            }
            State::DefinitionsEof => self.on_definitions_eof(packet),
            State::Rows | State::WatchedRows if self.ends_rows(packet) => {
                self.on_terminator(packet)
            }
            State::Rows | State::WatchedRows => {
                self.ended.rows = self.ended.rows.saturating_add(1);
                if self.state == State::WatchedRows {
                    self.value.row(packet);
                }
                Ok(Next::More)
            }
            State::Prepare => self.on_prepare_ok(packet),
            State::PrepareDefinitions { left, prepared } => {
                Ok(self.after_prepare_definitions(left.saturating_sub(1), prepared))
            }
            State::FieldList | State::BinlogStream if first_byte == EOF_HEADER => {
                self.on_last_packet(packet)
            }
            State::Fetch if self.ends_rows(packet) => self.on_last_packet(packet),
            State::Auth if first_byte == OK_HEADER => self.on_last_packet(packet),
            State::Fetch => {
                self.ended.rows = self.ended.rows.saturating_add(1);
                Ok(Next::More)
            }
            State::OnePacket => self.on_last_packet(packet),
            State::Statistics => Ok(Next::End),
            State::OpaqueFirst => {
                self.state = State::Opaque;
                Ok(Next::More)
            }
            State::FieldList
            | State::BinlogStream
            | State::Auth
            | State::Opaque
            | State::Idle
            | State::Upload => Ok(Next::More),
            State::Broken(error) => Err(error),
        }
    }

    /// First packet of a result.
    fn on_first(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        match packet.first_byte() {
            _ if packet.start.is_empty() => Err(unexpected(packet)),
            OK_HEADER => {
                self.value.other_result();
                self.on_terminator(packet)
            }
            EOF_HEADER if packet.frame_len < EOF_LEN_LIMIT => {
                self.value.other_result();
                self.on_terminator(packet)
            }
            LOCAL_INFILE_HEADER if self.can_ask_for_a_file() => {
                self.state = State::Upload;
                Ok(Next::Upload)
            }
            _ => {
                let mut reader = Reader::new(packet.start);
                let count = reader.lenenc_int().ok_or(unexpected(packet))?;
                self.value.result_set(count);
                let flagged = self.caps.has(CLIENT_OPTIONAL_RESULTSET_METADATA)
                    || self.caps.has_mariadb(MARIADB_CLIENT_CACHE_METADATA);
                let left_out = flagged && reader.u8() == Some(RESULTSET_METADATA_NONE);
                self.after_definitions(if left_out { 0 } else { count });
                Ok(Next::More)
            }
        }
    }

    /// Whether the server may ask for a local file here. A text may; a session without
    /// CLIENT_LOCAL_FILES may not.
    fn can_ask_for_a_file(&self) -> bool {
        let runs = matches!(self.expect, Expect::ResultSets | Expect::Execution(_));
        runs && self.caps.has(CLIENT_LOCAL_FILES)
    }

    fn after_definitions(&mut self, left: u64) {
        self.state = match left {
            0 if self.caps.deprecate_eof() => self.rows(),
            0 => State::DefinitionsEof,
            left => State::Definitions { left },
        };
    }

    fn rows(&self) -> State {
        if self.value.is_on() { State::WatchedRows } else { State::Rows }
    }

    fn on_definitions_eof(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let executed = matches!(self.expect, Expect::Execution(_));
        match packet.first_byte() {
            EOF_HEADER => {}
            // All that MySQL says to an execution without a cursor behind one that had one. With
            // DEPRECATE_EOF it cannot be told from a row, and clients wait for more as this does.
            OK_HEADER if executed => return self.on_terminator(packet),
            _ => return Err(unexpected(packet)),
        }
        let status = StatusFlags(EofPacket::parse(packet.start)?.status);
        // A procedure's result sets can show the cursor of the procedure itself; they have rows all
        // the same, and more follows them. A cursor of the client's is the whole answer.
        let asked = self.expect == Expect::Execution(Cursor::Asked);
        if asked && status.cursor_exists() && !status.more_results() {
            self.value.other_result();
            return Ok(self.next_result(status));
        }
        self.out_params = executed && status.has(SERVER_PS_OUT_PARAMS) && status.more_results();
        self.state = self.rows();
        Ok(Next::More)
    }

    /// Whether a packet among rows is their end. A row can begin with 0xfe only when its first
    /// value is as long as 16 MiB, so that its first frame is full.
    fn ends_rows(&self, packet: Packet<'_>) -> bool {
        let limit = if self.caps.deprecate_eof() { MAX_PAYLOAD_LEN } else { EOF_LEN_LIMIT };
        packet.first_byte() == EOF_HEADER && packet.frame_len < limit
    }

    /// An OK or EOF that ends one result.
    fn on_terminator(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let status = self.read_status(packet)?;
        Ok(self.next_result(status))
    }

    /// An OK or EOF that ends the response.
    fn on_last_packet(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let status = self.read_status(packet)?;
        Ok(self.end(status))
    }

    fn next_result(&mut self, status: StatusFlags) -> Next {
        if std::mem::take(&mut self.out_params) || status.more_results() {
            self.state = State::First;
            self.ended.count_result(status);
            return Next::More;
        }
        self.end(status)
    }

    fn end(&mut self, status: StatusFlags) -> Next {
        let may_be_open = matches!(self.expect, Expect::Execution(Cursor::Asked) | Expect::Fetch);
        self.ended.status = Some(status);
        self.ended.cursor_open = may_be_open && status.cursor_exists() && !status.last_row_sent();
        self.ended.only_value = self.value.only();
        Next::End
    }

    /// Reads the status of an OK or EOF and keeps what else an OK says. 0xfe is an OK only where
    /// EOF is deprecated, and even there an EOF of 5 bytes is understood.
    fn read_status(&mut self, packet: Packet<'_>) -> Result<StatusFlags, ProtocolError> {
        if let Some(status) = self.read_plain_end(packet) {
            return Ok(status);
        }
        let first_byte = packet.first_byte();
        let as_eof = !self.caps.deprecate_eof() || packet.frame_len < OK_LEN_MIN;
        match first_byte {
            _ if packet.start.is_empty() => Err(unexpected(packet)),
            EOF_HEADER if as_eof => {
                let eof = EofPacket::parse(packet.start)?;
                self.ended.warnings = self.ended.warnings.saturating_add(u32::from(eof.warnings));
                Ok(StatusFlags(eof.status))
            }
            OK_HEADER | EOF_HEADER => {
                let ok = OkPacket::parse(packet.start, self.caps)?;
                self.ended.warnings = self.ended.warnings.saturating_add(u32::from(ok.warnings));
                if !ok.session_changes.is_empty() {
                    self.notes.note(ok.session_changes);
                }
                if packet.frame_len > CAPTURE_LEN_MAX {
                    self.notes.note_cut();
                }
                if first_byte == OK_HEADER {
                    self.ended.count_rows(ok.affected_rows, ok.unchanged_rows());
                }
                Ok(StatusFlags(ok.status))
            }
            _ => Err(unexpected(packet)),
        }
    }

    fn on_err(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let code = ErrPacket::parse(packet.start)?.code;
        if code == PROGRESS_REPORT_CODE && self.can_report_progress(packet) {
            return Ok(Next::More);
        }
        self.ended.error = Some(code);
        Ok(Next::End)
    }

    /// Whether what has the code of a progress report is one. SIGNAL can give an error this number
    /// as well, but an error has a SQLSTATE behind its code, and a report a small number.
    fn can_report_progress(&self, packet: Packet<'_>) -> bool {
        let runs = matches!(self.expect, Expect::ResultSets | Expect::Execution(_));
        let has_sqlstate = packet.start.get(SQLSTATE_MARKER_OFFSET) == Some(&b'#');
        runs && !has_sqlstate && self.caps.progress_reports()
    }

    /// PREPARE_OK: `00 id:u32 columns:u16 params:u16 00 warnings:u16 [metadata_follows:u8]`.
    /// Definitions may be left out, but the EOFs behind them are not.
    fn on_prepare_ok(&mut self, packet: Packet<'_>) -> Result<Next, ProtocolError> {
        let mut reader = Reader::new(packet.start);
        if reader.u8() != Some(OK_HEADER) {
            return Err(unexpected(packet));
        }
        let truncated = ProtocolError::PacketTruncated { first_byte: OK_HEADER };
        let statement_id = reader.u32().ok_or(truncated)?;
        let num_columns = reader.u16().ok_or(truncated)?;
        let num_params = reader.u16().ok_or(truncated)?;
        reader.bytes(3).unwrap_or_default();
        let left_out = self.caps.has(CLIENT_OPTIONAL_RESULTSET_METADATA)
            && reader.u8() == Some(RESULTSET_METADATA_NONE);
        let packets = |count: u16| {
            let definitions = if left_out { 0 } else { u32::from(count) };
            let eof = u32::from(count > 0 && !self.caps.deprecate_eof());
            definitions.saturating_add(eof)
        };
        let left = packets(num_params).saturating_add(packets(num_columns));
        let prepared = Prepared { statement_id, num_params, num_columns };
        Ok(self.after_prepare_definitions(left, prepared))
    }

    fn after_prepare_definitions(&mut self, left: u32, prepared: Prepared) -> Next {
        if left > 0 {
            self.state = State::PrepareDefinitions { left, prepared };
            return Next::More;
        }
        self.ended.prepared = Some(prepared);
        Next::End
    }
}

fn unexpected(packet: Packet<'_>) -> ProtocolError {
    ProtocolError::ResponseUnexpected { first_byte: packet.first_byte() }
}

/// An EOF packet is shorter than this; a longer packet that begins with 0xfe is something else.
const EOF_LEN_LIMIT: usize = 9;
/// Where an ERR has the `#` in front of its SQLSTATE.
const SQLSTATE_MARKER_OFFSET: usize = 3;
/// Header, two lenenc integers, status, warnings.
const OK_LEN_MIN: usize = 7;
/// The flag byte that says that definitions are left out, of both servers.
const RESULTSET_METADATA_NONE: u8 = 0;
