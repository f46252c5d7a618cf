//! Compressed legs: any bytes at any cuts, frames that come out as they went in, and what is sound
//! spoiled.

#![expect(clippy::expect_used, reason = "a check fails by panicking")]

use std::cell::RefCell;

use testkit::{Cut, Input, cuts};
use wire::compress::{Algorithm, CompressedLeg, Compressor, Decompressor, Role, Unread};
use wire::frame::FrameHeader;

/// Unpacks any bytes, or packs frames, unpacks them again, and once more when something of them was
/// changed.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, seed, room) = (input.u8(), u64::from(input.u8()), input.u8());
    let way = Way { seed, room: 1 + 16 * usize::from(room) };
    ENGINES.with_borrow_mut(|[zlib, zstd]| {
        let engines = if kind & 1 == 0 { zlib } else { zstd };
        let reader = match (kind & 4, kind & 10) {
            (0, _) => Reader::Server,
            (_, 8) => Reader::SilentClient,
            (_, _) => Reader::Client,
        };
        if kind & 2 == 0 {
            engines.same_at_every_cut(reader, input.rest(), way);
        } else if kind & 8 == 0 {
            engines.sound(reader, &mut input, way);
        } else {
            engines.spoiled(reader, &mut input, way);
        }
    });
}

/// Whose end reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Commands.
    Server,
    /// The answer to a command that it has sent.
    Client,
    /// What it has not asked for.
    SilentClient,
}

/// How bytes are cut besides whole and one by one, and how much room there is for what comes of
/// them.
#[derive(Clone, Copy)]
struct Way {
    seed: u64,
    room: usize,
}

/// Lent from one input to the next, in whatever state it left them, as connections lend them to
/// each other.
struct Engines {
    compressor: Compressor,
    decompressor: Decompressor,
}

thread_local! {
    static ENGINES: RefCell<[Engines; 2]> =
        RefCell::new([Algorithm::Zlib, Algorithm::Zstd].map(Engines::new));
}

/// How reading has ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// There was no more.
    All,
    Corrupt,
    /// There may have been more than was to be read.
    TooMuch,
}

/// How much is read at most of bytes that may say that they are very many.
#[derive(Clone, Copy)]
struct Most {
    steps: usize,
    bytes: usize,
}

/// Enough for each byte of an input by itself.
const SOME: Most = Most { steps: 4096, bytes: 2 * LARGE };
const ALL: Most = Most { steps: usize::MAX, bytes: usize::MAX };

impl Engines {
    fn new(algorithm: Algorithm) -> Self {
        Self {
            compressor: Compressor::new(algorithm).expect("there is memory"),
            decompressor: Decompressor::new(algorithm).expect("there is memory"),
        }
    }

    /// What can be read, and whether all can, does not depend on cuts and room.
    fn same_at_every_cut(&mut self, reader: Reader, wire: &[u8], way: Way) -> End {
        let (frames, end) = self.unpack(reader, &cuts(wire, Cut::Whole), LARGE, SOME);
        for (cut, room) in [(Cut::EveryByte, LARGE), (Cut::Random(way.seed), way.room)] {
            let (other, other_end) = self.unpack(reader, &cuts(wire, cut), room, SOME);
            // What comes before an error may come with it or not.
            assert!(other.iter().zip(&frames).all(|(a, b)| a == b), "{cut:?} {room}");
            if end != End::TooMuch && other_end != End::TooMuch {
                assert_eq!(other_end, end, "{cut:?} {room}");
                assert!(end == End::Corrupt || other.len() == frames.len(), "{cut:?} {room}");
            }
        }
        end
    }

    /// Frames come out as they went in.
    fn sound(&mut self, reader: Reader, input: &mut Input<'_>, way: Way) {
        let is_long = input.u8() == LONG_STREAM;
        let frames = written(reader, input, if is_long { LONG } else { LARGE });
        let ways = if is_long {
            // Takes a while, and is about what is put into one packet.
            vec![(Cut::Random(way.seed), Cut::Whole, LARGE)]
        } else {
            let room = way.room.max(frames.len() / ROOMS_MAX);
            let random = Cut::Random(way.seed);
            vec![(Cut::Whole, random, room), (random, Cut::Whole, LARGE), (random, random, room)]
        };
        for (packing, reading, room) in ways {
            let wire = self.pack(reader, &cuts(&frames, packing));
            let (read, end) = self.unpack(reader, &cuts(&wire, reading), room, ALL);
            assert!(
                end == End::All && read == frames,
                "{reader:?} packed {packing:?}, read {reading:?} {room}: {end:?}"
            );
        }
    }

    /// Changes bytes of what is sound: whatever that makes of it, it is the same at every cut, and
    /// never sound when only a length was changed that a packet announces.
    fn spoiled(&mut self, reader: Reader, input: &mut Input<'_>, way: Way) {
        let (lie, changes) = (input.u8(), input.u8() % 4);
        let changes: Vec<(u16, u8)> = (0..changes).map(|_| (input.u16(), input.u8())).collect();
        let frames = written(reader, input, SHORT);
        let mut wire = self.pack(reader, &[&frames]);
        let announced = wire.get_mut(4..7).and_then(|lens| lens.first_mut());
        let lies = match announced {
            // The low byte of a length that is none would make stored bytes compressed ones.
            Some(low) if *low != 0 && lie != 0 && *low != lie => {
                *low ^= lie;
                true
            }
            Some(_) | None => false,
        };
        for (at, mask) in &changes {
            let at = usize::from(*at).checked_rem(wire.len()).unwrap_or_default();
            if let Some(byte) = wire.get_mut(at) {
                *byte ^= mask;
            }
        }
        let end = self.same_at_every_cut(reader, &wire, way);
        assert!(!lies || !changes.is_empty() || end != End::All, "{:?}", wire.escape_ascii());
    }

    fn leg(&self, role: Role) -> CompressedLeg {
        CompressedLeg::new(role, self.compressor.algorithm(), 3)
    }

    fn pack(&mut self, reader: Reader, pieces: &[&[u8]]) -> Vec<u8> {
        let mut leg = match reader {
            Reader::Server => self.leg(Role::Client),
            Reader::Client | Reader::SilentClient => self.leg(Role::Server),
        };
        if reader == Reader::Client {
            let mut space = [0; STATISTICS.len()];
            let command =
                leg.unpack(STATISTICS, &mut space, Unread::Nothing, &mut self.decompressor);
            assert_eq!(command.expect("it is sound").consumed, STATISTICS.len());
        }
        let mut wire = Vec::new();
        for piece in pieces {
            leg.pack(piece, &mut self.compressor, &mut wire);
        }
        wire
    }

    /// The frames of what can be read.
    fn unpack(
        &mut self,
        reader: Reader,
        pieces: &[&[u8]],
        room: usize,
        most: Most,
    ) -> (Vec<u8>, End) {
        let mut leg = match reader {
            Reader::Server => self.leg(Role::Server),
            Reader::Client | Reader::SilentClient => self.leg(Role::Client),
        };
        if reader == Reader::Client {
            let mut sent = Vec::new();
            leg.pack(COMMAND, &mut self.compressor, &mut sent);
            assert_eq!(sent, STATISTICS);
        }
        let (mut frames, mut space, mut steps) = (Vec::new(), vec![0; room], 0);
        for piece in pieces {
            let mut rest = *piece;
            loop {
                let unpacked =
                    leg.unpack(rest, &mut space, Unread::Nothing, &mut self.decompressor);
                let Ok(unpacked) = unpacked else { return (frames, End::Corrupt) };
                frames.extend_from_slice(space.get(..unpacked.produced).expect("within the room"));
                rest = rest.get(unpacked.consumed..).expect("of what was there");
                steps += 1;
                if steps >= most.steps || frames.len() >= most.bytes {
                    return (frames, End::TooMuch);
                }
                if unpacked.produced == 0 && !unpacked.held {
                    assert!(rest.is_empty(), "{} bytes are left for no reason", rest.len());
                    break;
                }
            }
        }
        (frames, End::All)
    }
}

/// Frames out of a short input, some of which can be compressed: commands, or an answer.
fn written(reader: Reader, input: &mut Input<'_>, longest: usize) -> Vec<u8> {
    let mut frames = Vec::new();
    let mut answered: u8 = 0;
    while !input.is_empty() && frames.len() < longest {
        let (chunk, times) = (input.chunk(), 1 + usize::from(input.u8()));
        let left = longest.saturating_sub(frames.len());
        let payload: Vec<u8> = chunk.repeat(times).into_iter().take(left).collect();
        let sequence = match reader {
            Reader::Server => 0,
            Reader::Client | Reader::SilentClient => {
                answered = answered.wrapping_add(1);
                answered
            }
        };
        let header = FrameHeader { payload_len: payload.len(), sequence };
        frames.extend_from_slice(&header.encode());
        frames.extend_from_slice(&payload);
    }
    frames
}

/// COM_STATISTICS, and on the wire: too short to be compressed.
const COMMAND: &[u8] = b"\x01\0\0\0\x09";
const STATISTICS: &[u8] = b"\x05\0\0\0\0\0\0\x01\0\0\0\x09";

/// Frames are not read in more portions than this.
const ROOMS_MAX: usize = 1024;
const SHORT: usize = 1024;
const LARGE: usize = 8 * 1024;
/// More than either end puts into one compressed packet.
const LONG: usize = 72 * 1024;
/// Few inputs are long: what begins with this.
const LONG_STREAM: u8 = 0x4c;
