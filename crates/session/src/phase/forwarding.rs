//! A command on its way to the backend, and the answer on its way back.

use policy::Likeness;
use sql::NamedLockUse;
use wire::frame::{FrameHeader, HEADER_LEN};
use wire::response_tracker::{Expect, Progress, ResponseEnd, ResponseTracker};
use wire::upload::{FrameSkipper, UploadTracker};

use super::execution::Replaced;
use crate::action::{Action, CloseReason, Input, Move, Reads, Side};
use crate::command::{Running, Sending, frame_len};
use crate::outcome::{CursorUse, StatementOutcome};

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
    /// The answer is a stream of events, which a replica acknowledges.
    acknowledged: bool,
}

/// What a semi-synchronous replica begins its acknowledgements with (`kPacketMagicNum` of the
/// servers' semi-synchronous plugins). No command has this number.
const ACKNOWLEDGEMENT: u8 = 0xEF;

/// The longest acknowledgement: a position and a file name.
const ACKNOWLEDGEMENT_LEN_MAX: usize = 1024;

impl Forwarding {
    /// Sends a command on, its head replaced by the outbox if that has been repaired.
    #[inline]
    pub(crate) fn begin(
        sending: Sending,
        replaced: Option<Replaced>,
        tracker: &mut ResponseTracker,
    ) -> Self {
        let Sending { running, expect, execution: _ } = sending;
        tracker.begin(expect);
        match running.consequences.plain.named_locks {
            NamedLockUse::SoleGet | NamedLockUse::SoleRelease => tracker.watch_value(),
            NamedLockUse::None | NamedLockUse::Other => {}
        }
        Self {
            stage: match replaced {
                Some(replaced) => Stage::Replace(replaced),
                None => Stage::Command(FrameSkipper::default()),
            },
            running,
            end: None,
            last_sequence: 0,
            answered: expect == Expect::Nothing,
            answer_begun: false,
            acknowledged: expect == Expect::BinlogStream,
        }
    }

    /// The command, and how its response ended.
    pub(crate) fn parts(&mut self) -> (&mut Running, &Option<ResponseEnd>) {
        (&mut self.running, &self.end)
    }

    /// Whether the server may give back a lock of LOCK TABLES for it, or may have.
    pub(crate) fn may_unlock_tables(&self) -> bool {
        self.running.may_unlock_tables()
    }

    /// Whether the rest of the command is to come from the client.
    pub(crate) fn awaits_rest(&self) -> bool {
        matches!(self.stage, Stage::Command(_))
    }

    /// Whether the server has asked for a file.
    pub(crate) fn awaits_file(&self) -> bool {
        matches!(self.stage, Stage::Infile(_))
    }

    /// Whether a stream of events is going to the client.
    pub(crate) fn streams_events(&self) -> bool {
        self.acknowledged && matches!(self.stage, Stage::Answer)
    }

    /// What is counted of the command, if it is a statement.
    pub(crate) fn statement(&self) -> Option<StatementOutcome> {
        self.running.statement
    }

    /// What it does to cursors.
    pub(crate) fn cursor(&self) -> Option<CursorUse> {
        self.running.cursor
    }

    /// What it is like, if its rule puts what it kills in quarantine.
    pub(crate) fn likeness(&self) -> Option<Likeness> {
        self.running.likeness
    }

    /// How the answer ended, whose last bytes are on their way to the client. `None`: more of it is
    /// to come, or it may have opened a cursor.
    pub(crate) fn ended(&self) -> Option<&ResponseEnd> {
        let has_cursor = self.running.cursor.is_some();
        self.end.as_ref().filter(|_| matches!(self.stage, Stage::Ended) && !has_cursor)
    }

    /// Whether the client would take an error now for part of an answer that has begun.
    pub(crate) fn answer_begun(&self) -> bool {
        self.answer_begun
    }

    /// The sequence id that the first packet of the answer has. An error that comes before the rest of
    /// the command has the next one, also where the command has no answer; so it is with MySQL.
    pub(crate) fn answer_sequence(&self) -> u8 {
        let last_sequence = match &self.stage {
            Stage::Command(skipper) => skipper.last_sequence(),
            Stage::Replace(_) | Stage::Answer | Stage::Infile(_) | Stage::Ended => {
                self.last_sequence
            }
        };
        last_sequence.wrapping_add(1)
    }
}

#[derive(Debug)]
enum Stage {
    /// The head of the command is replaced by the outbox; a rest may follow from the client.
    Replace(Replaced),
    /// Bytes of the command are still with the client.
    Command(FrameSkipper),
    /// The server answers.
    Answer,
    /// The server asked for a file of the client's (LOCAL INFILE).
    Infile(UploadTracker),
    /// All is said.
    Ended,
}

impl Forwarding {
    /// What to do next, where it stands: it is large, and most of what a session does is this.
    /// `None` when all is said.
    pub(crate) fn advance(
        &mut self,
        tracker: &mut ResponseTracker,
        input: &Input<'_>,
    ) -> Option<Action> {
        let action = match &mut self.stage {
            Stage::Replace(Replaced { drop, rest }) => {
                let drop = *drop;
                self.stage = match rest.take() {
                    Some(rest) => Stage::Command(rest),
                    None => Stage::Answer,
                };
                Move::Replace { from: Side::Client, drop }.into()
            }
            // The server may answer early, with an error: what is left of the command follows it.
            Stage::Command(_) if !input.backend.is_empty() => self.relay_answer(tracker, input),
            Stage::Command(_) if input.client.is_empty() => Action::Read(Reads::Either),
            Stage::Command(skipper) => {
                let skipped = skipper.feed(input.client);
                if skipped.done {
                    self.last_sequence = skipper.last_sequence();
                    self.stage = after_command(self.answered);
                }
                Move::Forward { from: Side::Client, len: skipped.consumed }.into()
            }
            Stage::Answer if self.acknowledged => match acknowledgement(input.client) {
                Client::Acknowledges { len } => Move::Forward { from: Side::Client, len }.into(),
                Client::MayAcknowledge if input.backend.is_empty() => Action::Read(Reads::Either),
                Client::MayAcknowledge | Client::SaysMore => self.relay_answer(tracker, input),
            },
            Stage::Answer => self.relay_answer(tracker, input),
            Stage::Infile(_) if input.client.is_empty() => Action::Read(Reads::Client),
            Stage::Infile(upload) => {
                let skipped = upload.feed(input.client);
                if skipped.done {
                    tracker.resume_after_upload();
                    self.stage = Stage::Answer;
                }
                Move::Forward { from: Side::Client, len: skipped.consumed }.into()
            }
            Stage::Ended => return None,
        };
        Some(action)
    }

    fn relay_answer(&mut self, tracker: &mut ResponseTracker, input: &Input<'_>) -> Action {
        if input.backend.is_empty() {
            return Action::Read(Reads::Backend);
        }
        self.answer_begun = true;
        if self.answered {
            // The server gives up in the middle of a long command that has no answer, or goes on
            // after its answer: for the client to see.
            return Move::Forward { from: Side::Backend, len: input.backend.len() }.into();
        }
        let Ok(fed) = tracker.feed(input.backend) else {
            return Action::Close(CloseReason::BackendProtocol);
        };
        match fed.progress {
            Progress::More => {}
            Progress::LocalInfile => self.stage = Stage::Infile(UploadTracker::default()),
            Progress::End(end) => {
                self.end = Some(end);
                self.answered = true;
                if matches!(self.stage, Stage::Answer) {
                    self.stage = Stage::Ended;
                }
            }
        }
        Move::Forward { from: Side::Backend, len: fed.consumed }.into()
    }
}

/// What a client says during a stream of events.
enum Client {
    Acknowledges {
        len: usize,
    },
    /// Nothing that is all there.
    MayAcknowledge,
    /// A command that has not had its turn: it waits for the stream's end, and is looked at then.
    SaysMore,
}

fn acknowledgement(client: &[u8]) -> Client {
    let Some(header) = FrameHeader::parse(client) else { return Client::MayAcknowledge };
    match client.get(HEADER_LEN) {
        None if header.payload_len > 0 => Client::MayAcknowledge,
        Some(&ACKNOWLEDGEMENT) if header.payload_len <= ACKNOWLEDGEMENT_LEN_MAX => {
            let len = frame_len(header);
            if client.len() >= len { Client::Acknowledges { len } } else { Client::MayAcknowledge }
        }
        None | Some(_) => Client::SaysMore,
    }
}

/// What follows when the command is all sent: its answer, unless there is none, or it came early.
fn after_command(answered: bool) -> Stage {
    if answered { Stage::Ended } else { Stage::Answer }
}
