//! A command on its way to the backend, and the answer on its way back.

use wire::response_tracker::{Expect, Progress, ResponseEnd};
use wire::upload::{FrameSkipper, UploadTracker};

use crate::action::{Action, CloseReason, Input, Reads, Side};
use crate::command::Running;
use crate::outcome::Finished;
use crate::session::{Phase, Session, close};

/// One command under way.
#[derive(Debug)]
pub(crate) struct Forwarding {
    stage: Stage,
    running: Running,
    /// How the answer ended, when it ended before the command was all sent.
    end: Option<ResponseEnd>,
    /// The sequence id of the command's last packet so far.
    last_sequence: u8,
    /// No (more) answer is to come.
    answered: bool,
    /// Bytes of the answer have been forwarded.
    answer_begun: bool,
}

impl Forwarding {
    /// Sends the session's outbox in place of the command's first `drop` bytes.
    pub(crate) fn replace(&mut self, drop: usize, rest: Option<FrameSkipper>) {
        self.stage = Stage::Replace { drop, rest };
    }

    /// Whether the server has asked for a file.
    pub(crate) fn awaits_file(&self) -> bool {
        matches!(self.stage, Stage::Infile(_))
    }

    /// Whether the client would take an error now for part of an answer that has begun.
    pub(crate) fn answer_begun(&self) -> bool {
        self.answer_begun || self.answered
    }

    /// The sequence id that the first packet of the answer has.
    pub(crate) fn answer_sequence(&self) -> u8 {
        self.last_sequence.wrapping_add(1)
    }
}

#[derive(Debug)]
enum Stage {
    /// The head of the command is replaced by the outbox; a rest may follow from the client.
    Replace { drop: usize, rest: Option<FrameSkipper> },
    /// Bytes of the command are still with the client.
    Command(FrameSkipper),
    /// The server answers.
    Answer,
    /// The server asked for a file of the client's (LOCAL INFILE).
    Infile(UploadTracker),
    /// All is said.
    Ended,
}

impl Session {
    /// Sends a command on; `expect` says what the server answers.
    pub(crate) fn forward(&mut self, running: Running, expect: Expect) -> Forwarding {
        self.tracker.begin(expect);
        Forwarding {
            stage: Stage::Command(FrameSkipper::default()),
            running,
            end: None,
            last_sequence: 0,
            answered: expect == Expect::Nothing,
            answer_begun: false,
        }
    }

    pub(crate) fn next_forwarding(
        &mut self,
        mut forwarding: Forwarding,
        input: &Input<'_>,
    ) -> (Phase, Action) {
        let action = match &mut forwarding.stage {
            Stage::Replace { drop, rest } => {
                let drop = *drop;
                forwarding.stage = match rest.take() {
                    Some(rest) => Stage::Command(rest),
                    None => Stage::Answer,
                };
                Action::Replace { from: Side::Client, drop }
            }
            // The server may answer early, with an error: what is left of the command follows it.
            Stage::Command(_) if !input.backend.is_empty() => {
                return self.relay_answer(forwarding, input);
            }
            Stage::Command(_) if input.client.is_empty() => Action::Read(Reads::Either),
            Stage::Command(skipper) => {
                let skipped = skipper.feed(input.client);
                if skipped.done {
                    forwarding.last_sequence = skipper.last_sequence();
                    forwarding.stage = after_command(forwarding.answered);
                }
                Action::Forward { from: Side::Client, len: skipped.consumed }
            }
            Stage::Answer => return self.relay_answer(forwarding, input),
            Stage::Infile(_) if input.client.is_empty() => Action::Read(Reads::Client),
            Stage::Infile(upload) => {
                let skipped = upload.feed(input.client);
                if skipped.done {
                    self.tracker.resume_after_upload();
                    forwarding.stage = Stage::Answer;
                }
                Action::Forward { from: Side::Client, len: skipped.consumed }
            }
            Stage::Ended => return self.finish(forwarding),
        };
        (Phase::Forwarding(forwarding), action)
    }

    fn relay_answer(&mut self, mut forwarding: Forwarding, input: &Input<'_>) -> (Phase, Action) {
        if input.backend.is_empty() {
            return (Phase::Forwarding(forwarding), Action::Read(Reads::Backend));
        }
        if forwarding.answered {
            // The server gives up in the middle of a long command that has no answer, or goes on after
            // its answer: for the client to see.
            let len = input.backend.len();
            return (Phase::Forwarding(forwarding), Action::Forward { from: Side::Backend, len });
        }
        let Ok(fed) = self.tracker.feed(input.backend) else {
            return close(CloseReason::BackendProtocol);
        };
        forwarding.answer_begun = true;
        match fed.progress {
            Progress::More => {}
            Progress::LocalInfile => forwarding.stage = Stage::Infile(UploadTracker::default()),
            Progress::End(end) => {
                forwarding.end = Some(end);
                forwarding.answered = true;
                if matches!(forwarding.stage, Stage::Answer) {
                    forwarding.stage = Stage::Ended;
                }
            }
        }
        (Phase::Forwarding(forwarding), Action::Forward { from: Side::Backend, len: fed.consumed })
    }

    fn finish(&mut self, forwarding: Forwarding) -> (Phase, Action) {
        let Forwarding { running, end, .. } = forwarding;
        let statement = running.statement;
        let kill = self.handle_end(running, end.as_ref());
        let finished = Finished {
            statement,
            response: end,
            admission_over: !self.transaction.is_admitted(),
            kill,
            claims_refused: std::mem::take(&mut self.claims_refused),
        };
        (Phase::Idle, Action::Finished(finished))
    }
}

/// What follows when the command is all sent: its answer, unless there is none, or it came early.
fn after_command(answered: bool) -> Stage {
    if answered { Stage::Ended } else { Stage::Answer }
}
