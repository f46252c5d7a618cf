//! A command, from its first bytes to the end of its response.

use std::sync::Arc;

use policy::Likeness;
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::response_tracker::Expect;

use crate::consequences::Consequences;
use crate::outcome::{CursorUse, StatementOutcome};
use crate::server::prepared::Description;
use crate::server::transaction::Admitted;

/// The bytes of one command as far as they have arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
    /// The payload is all there is of the command.
    pub(crate) whole: bool,
}

impl<'a> Arrived<'a> {
    /// The first command of the buffer, as far as it is there. None: not even its header is.
    pub(crate) fn of(client: &'a [u8]) -> Option<Self> {
        let header = FrameHeader::parse(client)?;
        let there = client.get(HEADER_LEN..).unwrap_or_default();
        let payload = there.get(..header.payload_len).unwrap_or(there);
        let whole = payload.len() == header.payload_len && !header.continues();
        Some(Self { header, payload, whole })
    }

    /// Bytes of its first frame that are not there yet.
    pub(crate) fn unseen(&self) -> usize {
        self.header.payload_len.saturating_sub(self.payload.len())
    }
}

/// A command under way, until its response ends.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(crate) statement: Option<StatementOutcome>,
    pub(crate) admits: Admitted,
    pub(crate) consequences: Consequences,
    pub(crate) then: Then,
    /// It may change routines, and the shell has not been told so yet.
    pub(crate) changes_routines: bool,
    /// What it is like, if its rule puts what it kills in quarantine.
    pub(crate) likeness: Option<Likeness>,
    pub(crate) cursor: Option<CursorUse>,
}

impl Running {
    /// Whether the server may give back a lock of LOCK TABLES as soon as it reads the command.
    pub(crate) fn may_unlock_tables(&self) -> bool {
        match self.then {
            Then::ResetConnection => true,
            Then::Nothing
            | Then::Prepare(_)
            | Then::PrepareName(..)
            | Then::ResetStatement(_)
            | Then::Schema(_)
            | Then::Kill(_) => self.consequences.may_unlock_tables(),
        }
    }
}

/// What else has to be done when its response ends.
#[derive(Debug, Default)]
pub(crate) enum Then {
    #[default]
    Nothing,
    /// COM_STMT_PREPARE.
    Prepare(Box<Description>),
    /// SQL `PREPARE name FROM …`.
    PrepareName(Box<[u8]>, Arc<Description>),
    /// COM_STMT_RESET.
    ResetStatement(u32),
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_INIT_DB.
    Schema(Vec<u8>),
    /// COM_PROCESS_KILL.
    Kill(u32),
}

/// A command that is to be sent on.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) running: Running,
    /// What the server answers it with.
    pub(crate) expect: Expect,
    /// The prepared statement, if this is an execution of one.
    pub(crate) execution: Option<u32>,
}

/// The length of a frame with its header.
pub(crate) fn frame_len(header: FrameHeader) -> usize {
    header.payload_len.saturating_add(HEADER_LEN)
}
