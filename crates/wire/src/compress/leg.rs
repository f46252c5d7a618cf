//! One compressed leg: bytes as they are on the wire to frames, and back.

use super::codec::{Algorithm, Compressor, Decompressor};
use super::header::{HEADER_LEN, Header};
use super::numbering::{Numbering, renumber};
use super::whole::{Next, Whole, step_over};
use super::{Corrupt, Role};
use crate::frame::FrameWalker;

/// A leg that is compressed, in both directions. It keeps no data of either.
#[derive(Debug)]
pub struct CompressedLeg {
    role: Role,
    algorithm: Algorithm,
    level: u8,
    position: Inbound,
    numbering: Numbering,
    incoming: FrameWalker,
    outgoing: FrameWalker,
    /// Frames on their way to a server, whose ids are being looked at. Empty between calls.
    plain: Vec<u8>,
    /// Frames on their way to a client.
    whole: Whole,
    /// What is left of a long frame on its way to a client, which passes as it is: first of the
    /// compressed packet that has been begun, then of the one behind it.
    passing: (usize, usize),
}

/// Where the incoming bytes stand.
#[derive(Debug)]
enum Inbound {
    Header {
        bytes: [u8; HEADER_LEN],
        have: usize,
    },
    /// A compressed packet is to be begun.
    Begin(Header),
    Stored {
        left: usize,
    },
    Packed(Packed),
}

/// Within compressed data.
#[derive(Debug, Clone, Copy)]
struct Packed {
    /// Bytes that have not come.
    left: usize,
    /// Bytes that have not been decompressed.
    plain_left: usize,
    /// The decompressor may have more to say without hearing more.
    is_full: bool,
}

/// What a step brought.
enum Unpacking {
    /// Something else is next.
    On,
    /// So many bytes of frames.
    Produced(usize),
    /// Nothing: more bytes, or more room, are needed.
    Starved,
}

/// How far [`CompressedLeg::unpack`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpacked {
    /// Bytes of the wire that are done with.
    pub consumed: usize,
    /// Bytes of frames.
    pub produced: usize,
    /// What follows begins another command: it is left until those before it have been read.
    pub held: bool,
}

/// Whether frames of an earlier call have not been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// All have been.
    Nothing,
    /// Some have not.
    Frames,
}

impl CompressedLeg {
    /// A leg behind its login. What is sent is compressed with `level`.
    #[must_use]
    pub fn new(role: Role, algorithm: Algorithm, level: u8) -> Self {
        Self {
            role,
            algorithm,
            level,
            position: Inbound::default(),
            numbering: Numbering::new(role),
            incoming: FrameWalker::default(),
            outgoing: FrameWalker::default(),
            plain: Vec::new(),
            whole: Whole::default(),
            passing: (0, 0),
        }
    }

    /// What the [`Compressor`] and the [`Decompressor`] that it is lent must have.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whether it wants the same [`Decompressor`] again the next time: it is within compressed
    /// data.
    #[must_use]
    pub fn is_within_packet(&self) -> bool {
        matches!(self.position, Inbound::Packed(_))
    }

    /// Whether there is nothing that it could unpack before more bytes of the wire come.
    #[must_use]
    pub fn awaits_bytes(&self) -> bool {
        match self.position {
            Inbound::Header { .. } | Inbound::Stored { .. } => true,
            Inbound::Begin(_) | Inbound::Packed(_) => false,
        }
    }

    /// The client begins to send a file (LOCAL INFILE).
    pub fn begin_upload(&mut self) {
        self.numbering.begin_upload();
    }

    /// A stream of the binary log's events goes to the client. Behind one that it has to
    /// acknowledge servers flush, and count their compressed packets anew, from `restart`; so do
    /// their replicas.
    pub fn begin_stream(&mut self, restart: u8) {
        self.numbering.begin_stream(restart);
    }

    /// The stream is over, or there was none.
    pub fn end_stream(&mut self) {
        self.numbering.end_stream();
    }

    /// No command is under way, and nothing of one has been read. Gives memory back.
    pub fn rest(&mut self) {
        self.numbering.rest();
        if self.plain.capacity() > KEPT_LEN {
            self.plain = Vec::new();
        }
        self.whole.shrink(KEPT_LEN);
    }

    /// Turns bytes of the wire into frames with the ids that they would have in the clear, until
    /// one of the slices is used up. A client may send commands ahead; their compressed packets are
    /// begun only when there is nothing `unread`, so that each answer counts on from its own
    /// command.
    ///
    /// # Errors
    /// [`Corrupt`]; nothing more can be read then.
    pub fn unpack(
        &mut self,
        wire: &[u8],
        frames: &mut [u8],
        unread: Unread,
        decompressor: &mut Decompressor,
    ) -> Result<Unpacked, Corrupt> {
        let mut rest = wire;
        let mut produced: usize = 0;
        let mut held = false;
        loop {
            if let Inbound::Begin(header) = self.position {
                held = (unread == Unread::Frames || produced > 0) && self.is_next_command(header);
                if held {
                    break;
                }
                self.begin(header, decompressor)?;
                continue;
            }
            let room = frames.get_mut(produced..).unwrap_or_default();
            match self.step(&mut rest, room, decompressor)? {
                Unpacking::On => {}
                Unpacking::Produced(len) => {
                    self.number_incoming(room.get_mut(..len).unwrap_or_default());
                    produced = produced.saturating_add(len);
                }
                Unpacking::Starved => break,
            }
        }
        Ok(Unpacked { consumed: wire.len().saturating_sub(rest.len()), produced, held })
    }

    /// Appends `frames` to `wire` as compressed packets. To a client, a frame that has not come as
    /// a whole is kept back; to a server, nothing is.
    pub fn pack(&mut self, frames: &[u8], compressor: &mut Compressor, wire: &mut Vec<u8>) {
        match self.role {
            Role::Server => self.pack_whole(frames, compressor, wire),
            Role::Client => self.pack_pieces(frames, compressor, wire),
        }
    }

    fn pack_whole(&mut self, frames: &[u8], compressor: &mut Compressor, wire: &mut Vec<u8>) {
        let mut rest = frames;
        loop {
            if self.passing != (0, 0) {
                if rest.is_empty() {
                    return;
                }
                self.pass(&mut rest, wire);
                continue;
            }
            let streaming = self.numbering.is_streaming();
            let next = self.whole.take(&mut rest, streaming);
            let mut whole = std::mem::take(&mut self.whole);
            let Self { outgoing, numbering, .. } = self;
            step_over(outgoing, whole.complete(), |head| numbering.outgoing(head));
            self.put_packet(whole.complete(), compressor, wire);
            if streaming && whole.is_acknowledged() {
                self.numbering.restart();
            } else if whole.ends_result() {
                self.numbering.end_result();
            }
            whole.sent();
            self.whole = whole;
            match next {
                Next::Starved => return,
                Next::Ripe => {}
                Next::Long(len) => self.begin_long(len, wire),
            }
        }
    }

    /// Begins a frame that passes as it comes, in one compressed packet or two.
    fn begin_long(&mut self, len: usize, wire: &mut Vec<u8>) {
        let mut header = self.whole.take_long_header();
        let Self { outgoing, numbering, .. } = self;
        step_over(outgoing, &mut header, |head| numbering.outgoing(head));
        let packed_len = len.min(PACKED_LEN_MAX);
        let sequence = self.numbering.next_packed();
        wire.extend_from_slice(&Header { packed_len, sequence, plain_len: 0 }.encode());
        wire.extend_from_slice(&header);
        let left = packed_len.saturating_sub(header.len());
        self.passing = (left, len.saturating_sub(packed_len));
    }

    fn pass(&mut self, rest: &mut &[u8], wire: &mut Vec<u8>) {
        if self.passing.0 == 0 {
            let packed_len = self.passing.1;
            let sequence = self.numbering.next_packed();
            wire.extend_from_slice(&Header { packed_len, sequence, plain_len: 0 }.encode());
            self.passing = (packed_len, 0);
        }
        let now = take(rest, self.passing.0.min(rest.len()));
        self.passing.0 = self.passing.0.saturating_sub(now.len());
        let from = wire.len();
        wire.extend_from_slice(now);
        let payload = wire.get_mut(from..).unwrap_or_default();
        let Self { outgoing, numbering, .. } = self;
        step_over(outgoing, payload, |head| numbering.outgoing(head));
    }

    fn pack_pieces(&mut self, frames: &[u8], compressor: &mut Compressor, wire: &mut Vec<u8>) {
        for piece in frames.chunks(PIECE_LEN_MAX) {
            let mut plain = std::mem::take(&mut self.plain);
            plain.clear();
            plain.extend_from_slice(piece);
            self.pack_piece(&mut plain, compressor, wire);
            self.plain = plain;
        }
    }

    fn pack_piece(&mut self, plain: &mut [u8], compressor: &mut Compressor, wire: &mut Vec<u8>) {
        let mut start: usize = 0;
        let mut at: usize = 0;
        while let Some(rest) = plain.get_mut(at..).filter(|rest| !rest.is_empty()) {
            if self.begins_command(rest) {
                self.put_packet(plain.get(start..at).unwrap_or_default(), compressor, wire);
                self.numbering.begin_command();
                start = at;
            }
            let Self { outgoing, numbering, .. } = self;
            let rest = plain.get_mut(at..).unwrap_or_default();
            at = at.saturating_add(renumber(outgoing, rest, |head| numbering.outgoing(head)));
        }
        self.put_packet(plain.get(start..).unwrap_or_default(), compressor, wire);
    }

    /// Whether a command to a server begins here, with which the numbers begin anew.
    fn begins_command(&self, frames: &[u8]) -> bool {
        self.role == Role::Client
            && self.outgoing.at_packet_boundary()
            && !self.numbering.is_uploading()
            && frames.get(SEQUENCE_AT).is_none_or(|sequence| *sequence == 0)
    }

    fn put_packet(&mut self, plain: &[u8], compressor: &mut Compressor, wire: &mut Vec<u8>) {
        if plain.is_empty() {
            return;
        }
        let sequence = self.numbering.next_packed();
        let from = wire.len();
        let data_from = from.saturating_add(HEADER_LEN);
        let mut packed_len = None;
        if plain.len() >= PACKED_LEN_MIN {
            // What does not become shorter does not fit.
            wire.resize(data_from.saturating_add(plain.len()).saturating_sub(1), 0);
            let room = wire.get_mut(data_from..).unwrap_or_default();
            packed_len = compressor.compress(self.level, plain, room);
        }
        let header = match packed_len {
            Some(packed_len) => {
                wire.truncate(data_from.saturating_add(packed_len));
                Header { packed_len, sequence, plain_len: plain.len() }
            }
            None => {
                wire.truncate(from);
                wire.resize(data_from, 0);
                wire.extend_from_slice(plain);
                Header { packed_len: plain.len(), sequence, plain_len: 0 }
            }
        };
        if let Some(place) = wire.get_mut(from..).and_then(|packet| packet.first_chunk_mut()) {
            *place = header.encode();
        }
    }

    /// Whether this is a command that a client has sent ahead.
    fn is_next_command(&self, header: Header) -> bool {
        self.role == Role::Server
            && header.sequence == 0
            && self.incoming.at_packet_boundary()
            && !self.numbering.is_uploading()
    }

    fn begin(&mut self, header: Header, decompressor: &mut Decompressor) -> Result<(), Corrupt> {
        self.numbering.received(header.sequence, self.incoming.at_packet_boundary());
        self.position = if header.plain_len == 0 {
            Inbound::Stored { left: header.packed_len }
        } else {
            decompressor.begin()?;
            Inbound::Packed(Packed {
                left: header.packed_len,
                plain_left: header.plain_len,
                is_full: false,
            })
        };
        Ok(())
    }

    fn step(
        &mut self,
        rest: &mut &[u8],
        room: &mut [u8],
        decompressor: &mut Decompressor,
    ) -> Result<Unpacking, Corrupt> {
        let (position, step) = match &mut self.position {
            Inbound::Header { bytes, have } => {
                let missing = bytes.get_mut(*have..).unwrap_or_default();
                let len = missing.len().min(rest.len());
                copy(take(rest, len), missing);
                *have = have.saturating_add(len);
                if *have < HEADER_LEN {
                    return Ok(Unpacking::Starved);
                }
                (Inbound::Begin(Header::decode(*bytes)), Unpacking::On)
            }
            // The caller begins it.
            Inbound::Begin(header) => (Inbound::Begin(*header), Unpacking::On),
            Inbound::Stored { left: 0 } => (Inbound::default(), Unpacking::On),
            Inbound::Stored { left } => {
                let len = rest.len().min(room.len()).min(*left);
                if len == 0 {
                    return Ok(Unpacking::Starved);
                }
                copy(take(rest, len), room);
                (Inbound::Stored { left: left.saturating_sub(len) }, Unpacking::Produced(len))
            }
            Inbound::Packed(packed) => packed.step(rest, room, decompressor)?,
        };
        self.position = position;
        Ok(step)
    }

    fn number_incoming(&mut self, frames: &mut [u8]) {
        let Self { incoming, numbering, .. } = self;
        step_over(incoming, frames, |head| numbering.incoming(head));
    }
}

impl Packed {
    fn step(
        mut self,
        rest: &mut &[u8],
        room: &mut [u8],
        decompressor: &mut Decompressor,
    ) -> Result<(Inbound, Unpacking), Corrupt> {
        let packed = rest.get(..self.left.min(rest.len())).unwrap_or_default();
        let room_len = room.len().min(self.plain_left);
        let lacks_room = room_len == 0 && self.plain_left > 0;
        let lacks_data = packed.is_empty() && self.left > 0 && !self.is_full;
        if lacks_room || lacks_data {
            return Ok((Inbound::Packed(self), Unpacking::Starved));
        }
        // Room for what was not announced, so that it shows as soon as it is there, however it was
        // cut.
        let mut excess = [0; 1];
        let is_complete = self.plain_left == 0;
        let room = if is_complete { Some(&mut excess[..]) } else { room.get_mut(..room_len) };
        let fed = decompressor.feed(packed, room.unwrap_or_default())?;
        if is_complete && fed.produced > 0 {
            return Err(Corrupt::Length);
        }
        take(rest, fed.consumed);
        self.left = self.left.saturating_sub(fed.consumed);
        self.plain_left = self.plain_left.saturating_sub(fed.produced);
        self.is_full = fed.produced > 0 && fed.produced == room_len;
        let step = if fed.produced > 0 { Unpacking::Produced(fed.produced) } else { Unpacking::On };
        if fed.ended {
            let is_whole = self.left == 0 && self.plain_left == 0;
            return if is_whole { Ok((Inbound::default(), step)) } else { Err(Corrupt::Length) };
        }
        if fed.consumed == 0 && fed.produced == 0 {
            // It has said all that it could of what it was given.
            return match (self.left, packed) {
                (1.., []) => Ok((Inbound::Packed(self), Unpacking::Starved)),
                (_, _) => Err(Corrupt::Length),
            };
        }
        Ok((Inbound::Packed(self), step))
    }
}

impl Default for Inbound {
    fn default() -> Self {
        Self::Header { bytes: [0; HEADER_LEN], have: 0 }
    }
}

/// Takes `len` bytes off the front.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at_checked(len).unwrap_or((rest, &[]));
    *rest = after;
    taken
}

fn copy(from: &[u8], to: &mut [u8]) {
    if let Some(to) = to.get_mut(..from.len()) {
        to.copy_from_slice(from);
    }
}

/// Where the sequence id stands in a frame's header.
const SEQUENCE_AT: usize = 3;

/// The servers' and client libraries' MIN_COMPRESS_LENGTH: less is stored as it is.
const PACKED_LEN_MIN: usize = 50;

/// What is kept of the memory for frames on their way out.
const KEPT_LEN: usize = 4 * 1024;

/// What a compressed packet can hold.
const PACKED_LEN_MAX: usize = 0xff_ffff;

/// What goes into one compressed packet to a server at most. More brings little, and both ends hold
/// all of it at once.
const PIECE_LEN_MAX: usize = 64 * 1024;
