//! Compressed legs: any bytes at any cuts, and frames that come out as they went in.

#![expect(clippy::expect_used, reason = "a check fails by panicking")]

use testkit::{Cut, Input, cuts};
use wire::compress::{Algorithm, CompressedLeg, Compressor, Decompressor, Role, Unread};
use wire::frame::FrameHeader;

/// Unpacks any bytes, or packs frames and unpacks them again.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, seed, room) = (input.u8(), u64::from(input.u8()), input.u8());
    let algorithm = if kind & 1 == 0 { Algorithm::Zlib } else { Algorithm::Zstd };
    let mut decompressor = Decompressor::new(algorithm).expect("there is memory");
    let room = 1 + 16 * usize::from(room);
    let all = [(Cut::Whole, LARGE), (Cut::EveryByte, LARGE), (Cut::Random(seed), room)];
    if kind & 2 == 0 {
        let role = if kind & 4 == 0 { Role::Server } else { Role::Client };
        let wire = input.rest();
        let mut read = |(cut, room)| unpack(role, &mut decompressor, &cuts(wire, cut), room);
        let (frames, sound) = read(all[0]);
        for way in &all[1..] {
            let (other, also_sound) = read(*way);
            // Whoever has stopped early has not seen the end.
            let all_seen = frames.len().max(other.len()) < UNPACKED_MAX - LARGE;
            assert!(!all_seen || also_sound == sound, "{way:?}");
            // What comes before an error may come with it or not.
            let same = other.iter().zip(&frames).all(|(a, b)| a == b);
            assert!(same && (!sound || !all_seen || other.len() == frames.len()), "{way:?}");
        }
        return;
    }
    let mut frames = Vec::new();
    while !input.is_empty() && frames.len() < LARGE {
        // Long commands out of short inputs, some of which can be compressed.
        let payload = input.chunk().repeat(1 + usize::from(input.u8()));
        let header = FrameHeader { payload_len: payload.len(), sequence: 0 };
        frames.extend_from_slice(&header.encode());
        frames.extend_from_slice(&payload);
    }
    let mut compressor = Compressor::new(algorithm).expect("there is memory");
    for packing in [Cut::Whole, Cut::Random(seed)] {
        let mut leg = CompressedLeg::new(Role::Client, algorithm, 3);
        let mut wire = Vec::new();
        for piece in cuts(&frames, packing) {
            leg.pack(piece, &mut compressor, &mut wire);
        }
        for (cut, room) in [all[0], all[2]] {
            let (read, sound) = unpack(Role::Server, &mut decompressor, &cuts(&wire, cut), room);
            assert!(sound && read == frames, "packed {packing:?}, read {cut:?} {room}");
        }
    }
}

/// The frames of what can be read, and whether all could be.
fn unpack(
    role: Role,
    decompressor: &mut Decompressor,
    pieces: &[&[u8]],
    room: usize,
) -> (Vec<u8>, bool) {
    let mut leg = CompressedLeg::new(role, decompressor.algorithm(), 3);
    let (mut frames, mut space) = (Vec::new(), vec![0; room]);
    for piece in pieces {
        let mut rest = *piece;
        loop {
            let Ok(unpacked) = leg.unpack(rest, &mut space, Unread::Nothing, decompressor) else {
                return (frames, false);
            };
            frames.extend_from_slice(space.get(..unpacked.produced).expect("within the room"));
            rest = rest.get(unpacked.consumed..).expect("of what was there");
            if frames.len() >= UNPACKED_MAX {
                // A few bytes may say that they are very many.
                frames.truncate(UNPACKED_MAX);
                return (frames, true);
            }
            if unpacked.produced == 0 && !unpacked.held {
                assert!(rest.is_empty(), "{} bytes are left for no reason", rest.len());
                break;
            }
        }
    }
    (frames, true)
}

const LARGE: usize = 8 * 1024;
const UNPACKED_MAX: usize = 8 * LARGE;
