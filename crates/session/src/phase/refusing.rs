//! A command that is not forwarded: what is left of it is read and dropped, the state that the
//! server would have kept is repaired, and the client gets one ERR with the sequence id it expects.

use wire::capability::Capabilities;
use wire::response_tracker::{Expect, Progress, ResponseTracker};
use wire::upload::FrameSkipper;

use super::execution;
use crate::action::{Action, CloseReason, Input, Move, Reads, Side};
use crate::answer::Answer;
use crate::command::Sending;
use crate::outbox::Outbox;
use crate::outcome::StatementOutcome;
use crate::server::prepared::PreparedStatements;

/// A refusal under way.
#[derive(Debug)]
pub(crate) struct Refusing {
    stage: Stage,
    /// None: the command has no answer.
    answer: Option<Answer>,
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
    /// Its response comes back and is dropped.
    Repairing,
    /// The ERR goes to the client.
    Answer,
    /// It has gone.
    Done,
}

/// What a refusal does next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is taken apart where it is returned")]
pub(crate) enum Next {
    /// It goes on.
    Stay(Refusing, Action),
    /// The client has its answer. This is counted.
    Done(Option<StatementOutcome>),
    Close(CloseReason),
}

impl Refusing {
    /// The refusal of a statement.
    pub(crate) fn statement(sending: Sending, answer: Answer) -> Self {
        let Sending { running, execution, .. } = sending;
        let statement = running.statement;
        let answer = Some(answer);
        Self { stage: Stage::Start, answer, statement, execution, sequence: 0 }
    }

    /// The answer to a command that Sluice does not relay.
    pub(crate) fn command(answer: Answer) -> Self {
        Self { answer: Some(answer), ..Self::silent() }
    }

    /// The end of a command that has no answer, and that Sluice does not relay.
    pub(crate) fn silent() -> Self {
        Self { stage: Stage::Start, answer: None, statement: None, execution: None, sequence: 0 }
    }

    /// What to do next.
    pub(crate) fn next(
        mut self,
        capabilities: Capabilities,
        tracker: &mut ResponseTracker,
        (prepared, out): (&mut PreparedStatements, &mut Outbox),
        input: &Input<'_>,
    ) -> Next {
        loop {
            let action = match self.stage {
                Stage::Start => {
                    if let Some(id) = self.execution {
                        execution::keep_types(id, input.client, capabilities, prepared);
                    }
                    self.stage = Stage::Discard(FrameSkipper::default());
                    continue;
                }
                Stage::Discard(_) if input.client.is_empty() => Action::Read(Reads::Client),
                Stage::Discard(ref mut skipper) => {
                    let skipped = skipper.feed(input.client);
                    if skipped.done {
                        self.sequence = skipper.last_sequence();
                        self.stage = Stage::Repair;
                    }
                    Move::Drop { from: Side::Client, len: skipped.consumed }.into()
                }
                Stage::Repair => {
                    let resets =
                        self.execution.is_some_and(|id| execution::put_reset(id, prepared, out));
                    if !resets {
                        self.stage = Stage::Answer;
                        continue;
                    }
                    tracker.begin(Expect::OnePacket);
                    self.stage = Stage::Repairing;
                    Move::outbox_to(Side::Backend).into()
                }
                Stage::Repairing if input.backend.is_empty() => Action::Read(Reads::Backend),
                Stage::Repairing => match tracker.feed(input.backend) {
                    Ok(fed) => {
                        if matches!(fed.progress, Progress::End(_)) {
                            self.stage = Stage::Answer;
                        }
                        Move::Drop { from: Side::Backend, len: fed.consumed }.into()
                    }
                    Err(_) => return Next::Close(CloseReason::BackendProtocol),
                },
                Stage::Answer => {
                    self.stage = Stage::Done;
                    let Some(answer) = &self.answer else { continue };
                    out.put_err(self.sequence.wrapping_add(1), answer);
                    Move::outbox_to(Side::Client).into()
                }
                Stage::Done => return Next::Done(self.statement),
            };
            return Next::Stay(self, action);
        }
    }
}
