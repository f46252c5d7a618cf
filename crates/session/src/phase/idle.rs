//! Between commands: a new one is looked at, and it is found out what becomes of it.

use policy::GuardReport;
use sql::Whole;
use wire::ProtocolError;
use wire::capability::Capabilities;
use wire::command::{
    COM_CHANGE_USER, COM_INIT_DB, COM_QUERY, COM_STMT_BULK_EXECUTE, COM_STMT_EXECUTE,
    COM_STMT_PREPARE, Command, Query, parse_command,
};
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::packet::ERR_HEADER;

use super::guarding::of_refused;
use super::refusing::Refusing;
use crate::action::{Action, CloseReason, Input, Move, Reads, Side};
use crate::answer::Answer;
use crate::command::{Arrived, Running, Sending, Then, frame_len};
use crate::judge::Judge;
use crate::judge::guarded::GuardedText;
use crate::outcome::CursorUse;
use crate::plan::{self, Execution, Plan};
use crate::server::ServerSide;

/// How much of a command is read before it is decided. Identity may stand in a comment at the very
/// end, so this is generous; of a longer text the class is at least `unknown`, which is gated as a
/// write.
const INSPECT_LEN_MAX: usize = 1024 * 1024;

/// What is read of commands of which nothing but a fixed head is looked at.
const HEAD_LEN: usize = 32;

/// A command that is cut short.
const ER_MALFORMED_PACKET: u16 = 1835;

/// A command that this relay refuses, whoever sends it.
const ER_UNKNOWN_COM_ERROR: u16 = 1047;

/// What an idle session does next.
#[derive(Debug)]
pub(crate) enum Next {
    /// It stays idle.
    Stay(Action),
    /// A statement, with what is to be done about it.
    Statement(Plan),
    /// Another command is sent on.
    Send(Sending),
    /// Guards have something to say of a command that is not a statement.
    Guard(Box<GuardReport>, Sending),
    /// A command that is not relayed.
    Refuse(Refusing),
    /// COM_CHANGE_USER: a new login on the same connection.
    ChangeUser,
    /// COM_QUIT, of so many bytes.
    Quit(usize),
    Close(CloseReason),
}

/// Looks at the next command.
pub(crate) fn next(
    capabilities: Capabilities,
    server: &mut ServerSide,
    judge: &mut Judge,
    input: &Input<'_>,
) -> Next {
    if !input.backend.is_empty() {
        return said_unasked(input);
    }
    let more = Next::Stay(Action::Read(Reads::Either));
    let Some(arrived) = Arrived::of(input.client) else { return more };
    let command = arrived.payload.first().copied();
    if arrived.payload.len() < arrived.header.payload_len.min(inspected_len(command)) {
        return more;
    }
    match parse_command(arrived.payload, capabilities) {
        Ok(command) => {
            // Ahead of the plan, which forgets what is closed.
            let cursor = cursor_use(&command, server);
            let mut next = plan_command(&command, arrived, capabilities, (server, judge), input);
            if let Next::Send(sending) = &mut next {
                sending.running.cursor = cursor;
            }
            next
        }
        // Servers differ on whether they answer a command that is cut short, so that is done here.
        Err(ProtocolError::CommandTruncated { .. }) => Next::Refuse(malformed()),
        // Text that cannot be found among its attributes is `unknown`.
        Err(_) => Next::Statement(plan::unknown(judge, server, input)),
    }
}

fn plan_command(
    command: &Command<'_>,
    arrived: Arrived<'_>,
    capabilities: Capabilities,
    (server, judge): (&mut ServerSide, &mut Judge),
    input: &Input<'_>,
) -> Next {
    if let Some(refusing) = of_refused(command, &server.prepared) {
        return Next::Refuse(refusing);
    }
    if let Command::Fetch { statement_id } = *command
        && let Some(statement) = server.prepared.get_mut(statement_id)
        && let Some(answer) = &statement.ended_cursor
    {
        return Next::Refuse(Refusing::command(Answer::clone(answer)));
    }
    let then = match *command {
        Command::Query(ref query) => {
            return Next::Statement(plan_query(query, arrived, (server, judge), input));
        }
        Command::Execute(execute) => {
            let statement_id = execute.statement_id;
            let (payload, len) = (arrived.payload, arrived.header.payload_len);
            let execution = Execution { statement_id, payload, len, execute: Some(execute) };
            return Next::Statement(plan::execution(execution, capabilities, judge, server, input));
        }
        Command::BulkExecute { statement_id } => {
            let (payload, len) = (arrived.payload, arrived.header.payload_len);
            let execution = Execution { statement_id, payload, len, execute: None };
            return Next::Statement(plan::execution(execution, capabilities, judge, server, input));
        }
        Command::Prepare(text) => {
            let (then, report) = plan_preparation(text, arrived, (server, judge), input);
            match report {
                Some(report) => return Next::Guard(report, sending(then, command)),
                None => then,
            }
        }
        Command::SendLongData { statement_id } => {
            if let Some(statement) = server.prepared.get_mut(statement_id) {
                statement.note_long_data(arrived.header.payload_len);
            }
            Then::Nothing
        }
        Command::CloseStatement { statement_id } => {
            server.prepared.remove(statement_id);
            Then::Nothing
        }
        Command::ResetStatement { statement_id } => Then::ResetStatement(statement_id),
        Command::ResetConnection => Then::ResetConnection,
        Command::InitDb(schema) => Then::Schema(schema.to_vec()),
        Command::ProcessKill { connection_id } => Then::Kill(connection_id),
        Command::ChangeUser if arrived.whole => return Next::ChangeUser,
        Command::ChangeUser => return Next::Refuse(malformed()),
        Command::Quit => {
            // A quit has no body; what a strange one has may not be there yet, and is not waited
            // for.
            return Next::Quit(frame_len(arrived.header).min(input.client.len()));
        }
        // What follows turns the connection into something that cannot be followed.
        Command::Clone | Command::SubscribeGroupReplication => {
            return Next::Refuse(not_relayed());
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
        | Command::Empty => Then::Nothing,
    };
    Next::Send(sending(then, command))
}

/// A text, with what guards have to say of it.
fn plan_query(
    query: &Query<'_>,
    arrived: Arrived<'_>,
    (server, judge): (&mut ServerSide, &mut Judge),
    input: &Input<'_>,
) -> Plan {
    let mut plan = plan::query(query, arrived, judge, server, input);
    if !input.policy.guards.is_empty() {
        let guarded = judge.guard_text(GuardedText::query(query, arrived), server, input);
        plan.guarded = guarded.or(plan.guarded.take());
    }
    // Other sessions of the thread look for theirs before this one is asked again.
    judge.bench.recent.pass();
    plan
}

/// What is prepared, with what guards have to say of it.
fn plan_preparation(
    text: &[u8],
    arrived: Arrived<'_>,
    (server, judge): (&mut ServerSide, &mut Judge),
    input: &Input<'_>,
) -> (Then, Option<Box<GuardReport>>) {
    let whole = if arrived.whole { Whole::Yes } else { Whole::Truncated };
    let description = Box::new(plan::preparation(text, whole, judge, server));
    let report = judge.guard_text(GuardedText::preparation(text, arrived), server, input);
    if report.is_some() {
        // A preparation is counted as a statement if a guard refuses it.
        judge.bench.begin_statement(input);
        judge.bench.note_description(&description, input);
    }
    (Then::Prepare(description), report)
}

/// What a command that is no statement does to cursors.
fn cursor_use(command: &Command<'_>, server: &ServerSide) -> Option<CursorUse> {
    match *command {
        Command::Fetch { statement_id } => {
            Some(CursorUse::Fetch(server.prepared.resolve(statement_id)))
        }
        Command::CloseStatement { statement_id } | Command::ResetStatement { statement_id } => {
            Some(CursorUse::Close(server.prepared.resolve(statement_id)))
        }
        Command::ResetConnection => Some(CursorUse::CloseAll),
        Command::Query(_)
        | Command::Execute(_)
        | Command::BulkExecute { .. }
        | Command::Prepare(_)
        | Command::SendLongData { .. }
        | Command::InitDb(_)
        | Command::ProcessKill { .. }
        | Command::ChangeUser
        | Command::Quit
        | Command::Clone
        | Command::SubscribeGroupReplication
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
        | Command::Empty => None,
    }
}

/// The answer to a command whose head cannot be read.
pub(crate) fn malformed() -> Refusing {
    Refusing::command(Answer {
        errno: ER_MALFORMED_PACKET,
        sqlstate: *b"HY000",
        message: b"Malformed communication packet [sluice executed=no]".to_vec(),
    })
}

fn not_relayed() -> Refusing {
    Refusing::command(Answer {
        errno: ER_UNKNOWN_COM_ERROR,
        sqlstate: *b"08S01",
        message: b"Unknown command [sluice: not relayed; connect to the server itself]".to_vec(),
    })
}

fn sending(then: Then, command: &Command<'_>) -> Sending {
    let running = Running { then, ..Running::default() };
    Sending { running, expect: command.expect(), execution: None }
}

/// The server says something of itself: the session has timed out, or it shuts down. That is an
/// ERR; anything else would be taken for the response to the next command, which may be a login.
fn said_unasked(input: &Input<'_>) -> Next {
    // Not all of it is there. A client that has said nothing may leave meanwhile.
    let reads = if input.client.is_empty() { Reads::Either } else { Reads::Backend };
    let more = Next::Stay(Action::Read(reads));
    let Some(header) = FrameHeader::parse(input.backend) else { return more };
    if header.payload_len == 0 || header.payload_len > LAST_WORD_LEN_MAX {
        return Next::Close(CloseReason::BackendProtocol);
    }
    match input.backend.get(HEADER_LEN) {
        Some(&ERR_HEADER) if input.backend.len() >= frame_len(header) => {
            Next::Stay(Move::Forward { from: Side::Backend, len: frame_len(header) }.into())
        }
        Some(&ERR_HEADER) | None => more,
        Some(_) => Next::Close(CloseReason::BackendProtocol),
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
