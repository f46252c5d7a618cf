//! A command that is not forwarded: what is left of it is read and dropped, the state that the server would
//! have kept is repaired, and the client gets one ERR with the sequence id it expects.
//!
//! Two repairs are needed when an execution of a prepared statement is refused, because the server never
//! saw it. Long data sent ahead of it would be appended to by the client's retry: COM_STMT_RESET drops it.
//! Parameter types are sent once and then assumed known: those of a refused execution are kept, and put
//! into the next one that comes without (see the planning of executions).

use wire::command::{COM_STMT_RESET, execute_layout};
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::packet::encode_err;
use wire::response_tracker::{Expect, Progress};
use wire::upload::FrameSkipper;

use crate::action::{Action, CloseReason, Input, Reads, Side};
use crate::command::{Asking, Bulk};
use crate::outcome::{Finished, StatementOutcome};
use crate::session::{Phase, Session, close, frame_len};

/// The ERR packet a client is given in place of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Error code.
    pub errno: u16,
    /// SQLSTATE.
    pub sqlstate: [u8; 5],
    /// The text, one line.
    pub message: Vec<u8>,
}

/// A refusal under way.
#[derive(Debug)]
pub(crate) struct Refusing {
    stage: Stage,
    answer: Answer,
    statement: Option<StatementOutcome>,
    /// The prepared statement whose execution is refused.
    execution: Option<u32>,
    /// The sequence id of the last packet the client sent.
    sequence: u8,
}

#[derive(Debug)]
enum Stage {
    /// The command is still whole in the client's buffer.
    Start,
    /// The rest of the command is read and dropped.
    Discard(FrameSkipper),
    /// COM_STMT_RESET goes to the server, if the execution had long data.
    Repair,
    /// Its answer comes back and is dropped.
    Repairing,
    /// The ERR goes to the client.
    Answer,
    /// All is said.
    Done,
}

impl Session {
    /// Turns a statement that was asked for into its refusal.
    pub(crate) fn refuse(&mut self, asking: Asking, answer: Answer) -> Refusing {
        let (running, execution) = asking.into_parts();
        let statement = running.statement;
        Refusing { stage: Stage::Start, answer, statement, execution, sequence: 0 }
    }

    /// Answers a command that Sluice does not relay.
    pub(crate) fn refuse_command(&mut self, answer: Answer) -> Refusing {
        Refusing { stage: Stage::Start, answer, statement: None, execution: None, sequence: 0 }
    }

    pub(crate) fn next_refusing(
        &mut self,
        mut refusing: Refusing,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        if let Stage::Start = refusing.stage {
            if let Some(id) = refusing.execution {
                self.keep_types(id, input.client);
            }
            refusing.stage = Stage::Discard(FrameSkipper::default());
        }
        let action = match &mut refusing.stage {
            Stage::Start | Stage::Discard(_) if input.client.is_empty() => {
                Action::Read(Reads::Client)
            }
            Stage::Discard(skipper) => {
                let skipped = skipper.feed(input.client);
                if skipped.done {
                    refusing.sequence = skipper.last_sequence();
                    refusing.stage = Stage::Repair;
                }
                Action::Drop { from: Side::Client, len: skipped.consumed }
            }
            Stage::Start | Stage::Repair => {
                if self.begin_repair(refusing.execution) {
                    refusing.stage = Stage::Repairing;
                    Action::Replace { from: Side::Client, drop: 0 }
                } else {
                    refusing.stage = Stage::Answer;
                    return self.next_refusing(refusing, input);
                }
            }
            Stage::Repairing if input.backend.is_empty() => Action::Read(Reads::Backend),
            Stage::Repairing => match self.tracker.feed(input.backend) {
                Ok(fed) => {
                    if matches!(fed.progress, Progress::End(_)) {
                        refusing.stage = Stage::Answer;
                    }
                    Action::Drop { from: Side::Backend, len: fed.consumed }
                }
                Err(_) => return close(CloseReason::BackendProtocol),
            },
            Stage::Answer => {
                let Answer { errno, sqlstate, message } = &refusing.answer;
                let sequence = refusing.sequence.wrapping_add(1);
                self.outbox.clear();
                encode_err(&mut self.outbox, sequence, *errno, sqlstate, message);
                refusing.stage = Stage::Done;
                Action::Replace { from: Side::Backend, drop: 0 }
            }
            Stage::Done => {
                let finished = Finished {
                    statement: refusing.statement,
                    response: None,
                    admission_over: !self.transaction.is_admitted(),
                    kill: None,
                    claims_refused: std::mem::take(&mut self.claims_refused),
                };
                return (Phase::Idle, Action::Finished(finished));
            }
        };
        (Phase::Refusing(refusing), action)
    }

    /// Keeps the parameter types of the execution at the start of the client's buffer.
    fn keep_types(&mut self, statement_id: u32, client: &[u8]) {
        let capabilities = self.capabilities;
        let Some(statement) = self.prepared.get_mut(statement_id) else { return };
        let Some(header) = FrameHeader::parse(client) else { return };
        let payload = client.get(HEADER_LEN..frame_len(header).min(client.len()));
        let payload = payload.unwrap_or_default();
        if let Some(bulk) = Bulk::of(payload, statement.num_params) {
            if let Some(types) = bulk.types {
                statement.lost_bulk_types = Some(types.into());
            }
            return;
        }
        let layout = execute_layout(payload, statement.num_params, capabilities);
        if let Some(layout) = layout
            && layout.types_sent
            && let Some(types) = payload.get(layout.type_block)
        {
            statement.lost_types = Some(types.into());
        }
    }

    /// Writes COM_STMT_RESET to the outbox if the refused execution leaves long data on the server.
    fn begin_repair(&mut self, execution: Option<u32>) -> bool {
        let Some(id) = execution else { return false };
        let id = self.prepared.resolve(id);
        let Some(statement) = self.prepared.get_mut(id) else { return false };
        if !std::mem::take(&mut statement.long_data) {
            return false;
        }
        self.outbox.clear();
        let header = FrameHeader { payload_len: 5, sequence: 0 };
        self.outbox.extend_from_slice(&header.encode());
        self.outbox.push(COM_STMT_RESET);
        self.outbox.extend_from_slice(&id.to_le_bytes());
        self.tracker.begin(Expect::OnePacket);
        true
    }
}
