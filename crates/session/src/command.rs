//! A new command: what it is, whether it stands at an admission point, and what it will change if the server
//! accepts it.

mod consequences;
mod execute;
mod query;

use sql::Class;
use wire::ProtocolError;
use wire::command::{
    COM_CHANGE_USER, COM_INIT_DB, COM_QUERY, COM_STMT_BULK_EXECUTE, COM_STMT_EXECUTE,
    COM_STMT_PREPARE, Command, parse_command,
};
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::handshake::parse_change_user;
use wire::packet::ERR_HEADER;
use wire::response_tracker::Expect;

pub(crate) use consequences::Consequences;
pub(crate) use execute::Bulk;

use crate::action::{Action, Ask, CloseReason, Input, Reads, Side};
use crate::outcome::StatementOutcome;
use crate::refusal::Answer;
use crate::session::{Phase, Session, close, frame_len};
use crate::transaction::Ran;

/// How much of a command is read before it is decided. Identity may stand in a comment at the very end, so
/// this is generous; of a longer text the class is at least `unknown`, which is gated as a write.
const INSPECT_LEN_MAX: usize = 1024 * 1024;

/// What is read of commands of which nothing but a fixed head is looked at.
const HEAD_LEN: usize = 32;

/// A command that is cut short.
const ER_MALFORMED_PACKET: u16 = 1835;

/// A command that this relay refuses, whoever sends it.
const ER_UNKNOWN_COM_ERROR: u16 = 1047;

/// The bytes of one command as far as they have been read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
    /// The payload is all there is of the command.
    pub(crate) whole: bool,
}

impl<'a> Seen<'a> {
    /// The first command of the buffer, as far as it is there. None: not even its header is.
    pub(crate) fn of(client: &'a [u8]) -> Option<Self> {
        let header = FrameHeader::parse(client)?;
        let there = client.get(HEADER_LEN..).unwrap_or_default();
        let payload = there.get(..header.payload_len).unwrap_or(there);
        let whole = payload.len() == header.payload_len && !header.continues();
        Some(Self { header, payload, whole })
    }
}

/// A command under way, until its answer ends.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(crate) statement: Option<StatementOutcome>,
    pub(crate) ran: Ran,
    pub(crate) consequences: Consequences,
    pub(crate) then: Then,
}

/// What else has to be done when its answer ends.
#[derive(Debug, Default)]
pub(crate) enum Then {
    #[default]
    Nothing,
    /// COM_STMT_PREPARE.
    Prepare(Box<crate::prepared::Description>),
    /// COM_STMT_RESET.
    ResetStatement(u32),
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_INIT_DB.
    Schema(Vec<u8>),
    /// COM_PROCESS_KILL.
    Kill(u32),
}

/// A statement at its admission point, until the shell has an answer.
#[derive(Debug)]
pub(crate) struct Asking {
    ask: Ask,
    denied: bool,
    running: Running,
    execution: Option<u32>,
}

impl Asking {
    pub(crate) fn action(&self) -> Action {
        if self.denied { Action::Deny(self.ask) } else { Action::Ask(self.ask) }
    }

    /// The command, and the prepared statement if this is an execution.
    pub(crate) fn into_parts(self) -> (Running, Option<u32>) {
        (self.running, self.execution)
    }
}

impl Session {
    /// Between commands.
    pub(crate) fn next_idle(&mut self, input: &Input<'_>) -> (Phase, Action) {
        if !input.backend.is_empty() {
            return said_unasked(input);
        }
        let more = (Phase::Idle, Action::Read(Reads::Either));
        let Some(seen) = Seen::of(input.client) else { return more };
        let command = seen.payload.first().copied();
        if seen.payload.len() < seen.header.payload_len.min(inspected_len(command)) {
            return more;
        }
        self.plan(seen, input)
    }

    fn plan(&mut self, seen: Seen<'_>, input: &Input<'_>) -> (Phase, Action) {
        let command = match parse_command(seen.payload, self.capabilities) {
            Ok(command) => command,
            Err(error) => return self.plan_unreadable(error, input),
        };
        let expect = command.expect();
        match command {
            Command::Query(query) => self.plan_query(query, seen, input),
            Command::Prepare(text) => {
                let description = self.describe_prepared(text, seen.whole);
                self.pass(Then::Prepare(Box::new(description)), expect, input)
            }
            Command::Execute(execute) => self.plan_execute(execute.statement_id, seen, input),
            Command::BulkExecute { statement_id } => self.plan_execute(statement_id, seen, input),
            Command::SendLongData { statement_id } => {
                if let Some(statement) = self.prepared.get_mut(statement_id) {
                    statement.long_data = true;
                }
                self.pass(Then::Nothing, expect, input)
            }
            Command::CloseStatement { statement_id } => {
                self.prepared.remove(statement_id);
                self.pass(Then::Nothing, expect, input)
            }
            Command::ResetStatement { statement_id } => {
                self.pass(Then::ResetStatement(statement_id), expect, input)
            }
            Command::ResetConnection => self.pass(Then::ResetConnection, expect, input),
            Command::InitDb(schema) => self.pass(Then::Schema(schema.to_vec()), expect, input),
            Command::ProcessKill { connection_id } => {
                self.pass(Then::Kill(connection_id), expect, input)
            }
            Command::ChangeUser => self.plan_change_user(seen),
            Command::Quit => {
                // A quit has no body; what a strange one has may not be there yet, and is not waited for.
                let len = frame_len(seen.header).min(input.client.len());
                (Phase::Closing(CloseReason::Quit), Action::Forward { from: Side::Client, len })
            }
            // Their answers turn the connection into something that cannot be followed.
            Command::Clone | Command::SubscribeGroupReplication => {
                let refusing = self.refuse_command(Answer {
                    errno: ER_UNKNOWN_COM_ERROR,
                    sqlstate: *b"08S01",
                    message: b"Unknown command [sluice: not relayed; connect to the server itself]"
                        .to_vec(),
                });
                self.next_refusing(refusing, input)
            }
            Command::Fetch { .. }
            | Command::Ping
            | Command::Statistics
            | Command::FieldList
            | Command::SetOption(_)
            | Command::ProcessInfo
            | Command::Debug
            | Command::Refresh
            | Command::Shutdown
            | Command::BinlogDump
            | Command::BinlogDumpGtid
            | Command::TableDump
            | Command::RegisterReplica
            | Command::Other(_)
            | Command::Empty => self.pass(Then::Nothing, expect, input),
        }
    }

    /// A command whose head does not follow the protocol. Servers differ on whether they answer one that is
    /// cut short, so it is answered here; text that cannot be found among its attributes is `unknown`.
    fn plan_unreadable(&mut self, error: ProtocolError, input: &Input<'_>) -> (Phase, Action) {
        if let ProtocolError::CommandTruncated { .. } = error {
            let refusing = self.refuse_command(Answer {
                errno: ER_MALFORMED_PACKET,
                sqlstate: *b"HY000",
                message: b"Malformed communication packet [sluice executed=no]".to_vec(),
            });
            return self.next_refusing(refusing, input);
        }
        self.plan_unknown(input)
    }

    /// A command that is never held back.
    fn pass(&mut self, then: Then, expect: Expect, input: &Input<'_>) -> (Phase, Action) {
        let running = Running { then, ..Running::default() };
        let forwarding = self.forward(running, expect);
        self.start_forwarding(forwarding, input)
    }

    /// A new login on the same connection. Everything that was learned is forgotten when it succeeds.
    fn plan_change_user(&mut self, seen: Seen<'_>) -> (Phase, Action) {
        if !seen.whole {
            return close(CloseReason::ClientProtocol);
        }
        match parse_change_user(seen.payload, self.capabilities) {
            Ok(change) => self.respond_again(&change, seen.payload, seen.header.sequence),
            Err(_) => close(CloseReason::ClientProtocol),
        }
    }
}

/// The server says something of itself: the session has timed out, or it shuts down. That is an ERR; anything else
/// would be taken for the answer of the next command, which may be a login.
fn said_unasked(input: &Input<'_>) -> (Phase, Action) {
    // Not all of it is there. A client that has said nothing may leave meanwhile.
    let reads = if input.client.is_empty() { Reads::Either } else { Reads::Backend };
    let more = (Phase::Idle, Action::Read(reads));
    let Some(header) = FrameHeader::parse(input.backend) else { return more };
    if header.payload_len == 0 || header.payload_len > LAST_WORD_LEN_MAX {
        return close(CloseReason::BackendProtocol);
    }
    match input.backend.get(HEADER_LEN) {
        Some(&ERR_HEADER) if input.backend.len() >= frame_len(header) => {
            let len = frame_len(header);
            (Phase::Idle, Action::Forward { from: Side::Backend, len })
        }
        Some(&ERR_HEADER) | None => more,
        Some(_) => close(CloseReason::BackendProtocol),
    }
}

/// The longest ERR that a server ends a session with; theirs have 512 bytes of text.
const LAST_WORD_LEN_MAX: usize = 4 * 1024;

/// How much of a command must be there before it is looked at.
fn inspected_len(command: Option<u8>) -> usize {
    match command {
        Some(
            COM_QUERY
            | COM_STMT_PREPARE
            | COM_STMT_EXECUTE
            | COM_STMT_BULK_EXECUTE
            | COM_CHANGE_USER
            | COM_INIT_DB,
        ) => INSPECT_LEN_MAX,
        Some(_) => HEAD_LEN,
        None => 1,
    }
}

/// Whether a statement of this class makes its transaction an admitted one.
pub(crate) fn works(class: Class) -> Ran {
    match class {
        Class::LockingRead
        | Class::Write
        | Class::Load
        | Class::Call
        | Class::Ddl
        | Class::Unknown => Ran::Work,
        Class::Read | Class::Transaction | Class::Session | Class::Admin => Ran::Rest,
    }
}
