//! The two numberings of a leg, and how frames get theirs.

use crate::frame::{FrameStep, FrameWalker};

use super::Role;

/// A frame's header, as it is met.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// It begins a packet.
    pub(super) begins: bool,
    /// It has no payload.
    pub(super) is_empty: bool,
    pub(super) sequence: u8,
}

/// Steps to the end of the packet or of `bytes`, and says how far that was. Each frame gets the
/// sequence id that `number` has for it.
pub(super) fn renumber(
    frames: &mut FrameWalker,
    bytes: &mut [u8],
    mut number: impl FnMut(Head) -> u8,
) -> usize {
    let mut at: usize = 0;
    loop {
        let mut rest = bytes.get(at..).unwrap_or_default();
        let before = rest.len();
        let step = frames.step_frame(&mut rest);
        at = at.saturating_add(before.saturating_sub(rest.len()));
        match step {
            FrameStep::Head { header, begins } => {
                let is_empty = header.payload_len == 0;
                let head = Head { begins, is_empty, sequence: header.sequence };
                if let Some(sequence) = at.checked_sub(1).and_then(|last| bytes.get_mut(last)) {
                    *sequence = number(head);
                }
            }
            FrameStep::Payload(_) => {}
            FrameStep::PacketEnd | FrameStep::NeedMore => return at,
        }
    }
}

/// Where a leg's numberings stand.
#[derive(Debug)]
pub(super) struct Numbering {
    role: Role,
    /// The number of the next compressed packet that is sent.
    packed: u8,
    /// What the last frame of either direction would have as its id in the clear.
    clear: u8,
    /// The id inside the last frame that was sent.
    inner: u8,
    /// The other end has spoken since, or a result has ended: what is sent next is the begin of an
    /// answer, of a result or of a command.
    turned: bool,
    /// A compressed packet that begins a command has come, and no frame of it yet.
    command_due: bool,
    /// The client sends a file: an id of 0 is no sign of a command then.
    uploading: bool,
    /// A stream of events goes to the client, and behind an event that it acknowledges its
    /// compressed packets count from this. What the client says meanwhile does not change the
    /// numbers.
    stream: Option<u8>,
    /// Nothing is under way.
    resting: bool,
}

impl Numbering {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            packed: 0,
            clear: 0,
            inner: 0,
            turned: true,
            command_due: false,
            uploading: false,
            stream: None,
            resting: true,
        }
    }

    /// Nothing is under way: what comes or goes unasked does not carry on what was before.
    pub(super) fn rest(&mut self) {
        self.resting = true;
        self.turned = true;
        self.uploading = false;
        // A client takes what it is sent for the answer to a command that it is about to send.
        self.packed = 1;
    }

    pub(super) fn begin_upload(&mut self) {
        self.uploading = true;
    }

    pub(super) fn is_uploading(&self) -> bool {
        self.uploading
    }

    pub(super) fn begin_stream(&mut self, restart: u8) {
        self.stream = Some(restart);
    }

    /// What the client has sent during the stream is its next command, which is answered now.
    pub(super) fn end_stream(&mut self) {
        if self.stream.take().is_some() {
            self.packed = 1;
            self.turned = true;
        }
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.stream.is_some()
    }

    /// An event has been sent that the client acknowledges.
    pub(super) fn restart(&mut self) {
        if let Some(restart) = self.stream {
            self.packed = restart;
            self.turned = true;
        }
    }

    /// A compressed packet with this number has come; `at_boundary` between two packets of frames.
    pub(super) fn received(&mut self, sequence: u8, at_boundary: bool) {
        if self.stream.is_none() {
            self.packed = sequence.wrapping_add(1);
        }
        self.command_due = sequence == 0 && at_boundary && !self.uploading;
    }

    /// The number of a compressed packet to be sent.
    pub(super) fn next_packed(&mut self) -> u8 {
        let sequence = self.packed;
        self.packed = sequence.wrapping_add(1);
        sequence
    }

    /// The compressed packets of a command count from 0.
    pub(super) fn begin_command(&mut self) {
        self.packed = 0;
    }

    /// A result of several has ended together with a compressed packet. Servers flush between two,
    /// so the next one begins with the number of its compressed packet inside; a client library in
    /// use (mysql_async) wants that of a result that begins a compressed packet.
    pub(super) fn end_result(&mut self) {
        self.turned = true;
    }

    /// The id that a frame which has come would have in the clear.
    pub(super) fn incoming(&mut self, head: Head) -> u8 {
        self.turned |= self.stream.is_none();
        let carries_on = match self.role {
            // A server that speaks unasked numbers that as it likes.
            Role::Client => !self.resting,
            Role::Server => {
                let command = std::mem::take(&mut self.command_due) || head.sequence == 0;
                !head.begins || self.uploading || !command
            }
        };
        self.clear = match (carries_on, self.role) {
            (true, Role::Client | Role::Server) => self.clear.wrapping_add(1),
            (false, Role::Server) => 0,
            (false, Role::Client) => head.sequence,
        };
        self.end_upload_at(head);
        self.clear
    }

    /// The id to be sent in a frame that has this one in the clear.
    pub(super) fn outgoing(&mut self, head: Head) -> u8 {
        self.clear = head.sequence;
        self.resting = false;
        self.end_upload_at(head);
        let turned = std::mem::take(&mut self.turned);
        self.inner = match (self.role, turned) {
            (Role::Client, _) => head.sequence,
            (Role::Server, true) => self.packed,
            (Role::Server, false) => self.inner.wrapping_add(1),
        };
        self.inner
    }

    /// An empty packet ends the file. It is the client's: what it is sent meanwhile never is empty.
    fn end_upload_at(&mut self, head: Head) {
        if head.begins && head.is_empty {
            self.uploading = false;
        }
    }
}
