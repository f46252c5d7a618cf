//! Both ends of compressed legs, put together and cut in every way, and packets that lie.

use proptest::prelude::*;
use testkit::{Cut, cuts};

use super::*;
use crate::frame::{FrameHeader, MAX_PAYLOAD_LEN, split_frame};

mod streams;

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Zlib, Algorithm::Zstd];

/// One end of a leg, with its engines.
struct End {
    leg: CompressedLeg,
    compressor: Compressor,
    decompressor: Decompressor,
}

impl End {
    fn new(role: Role, algorithm: Algorithm) -> Self {
        let mut leg = CompressedLeg::new(role, algorithm, 3);
        leg.rest();
        Self {
            leg,
            compressor: Compressor::new(algorithm).unwrap(),
            decompressor: Decompressor::new(algorithm).unwrap(),
        }
    }

    fn pack(&mut self, frames: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        self.leg.pack(frames, &mut self.compressor, &mut wire);
        wire
    }

    /// Everything that can be read of `wire`, when all that was read is looked at by and by.
    fn read(&mut self, wire: &[u8], cut: Cut, room: usize) -> Result<Vec<u8>, Corrupt> {
        let mut frames = Vec::new();
        for piece in cuts(wire, cut) {
            let mut rest = piece;
            loop {
                let mut space = vec![0; room];
                let Self { leg, decompressor, .. } = self;
                let unpacked = leg.unpack(rest, &mut space, Unread::Nothing, decompressor)?;
                frames.extend_from_slice(&space[..unpacked.produced]);
                rest = &rest[unpacked.consumed..];
                if unpacked.produced == 0 && !unpacked.held {
                    assert!(rest.is_empty(), "{} bytes are left for no reason", rest.len());
                    break;
                }
            }
        }
        Ok(frames)
    }

    fn read_whole(&mut self, wire: &[u8]) -> Vec<u8> {
        self.read(wire, Cut::Whole, 64 * 1024).unwrap()
    }
}

fn both(algorithm: Algorithm) -> (End, End) {
    (End::new(Role::Client, algorithm), End::new(Role::Server, algorithm))
}

fn frame(sequence: u8, payload: &[u8]) -> Vec<u8> {
    [&FrameHeader { payload_len: payload.len(), sequence }.encode()[..], payload].concat()
}

/// Sequence ids of whole frames.
fn ids(mut frames: &[u8]) -> Vec<u8> {
    let mut ids = Vec::new();
    while let Some((header, _, rest)) = split_frame(frames) {
        ids.push(header.sequence);
        frames = rest;
    }
    assert!(frames.is_empty());
    ids
}

/// Number, length and announced length of whole compressed packets.
fn packets(mut wire: &[u8]) -> Vec<header::Header> {
    let mut packets = Vec::new();
    while let Some((head, rest)) = wire.split_first_chunk() {
        let head = header::Header::decode(*head);
        wire = &rest[head.packed_len..];
        packets.push(head);
    }
    packets
}

fn numbers(wire: &[u8]) -> Vec<u8> {
    packets(wire).iter().map(|packet| packet.sequence).collect()
}

/// A compressed packet that says what it is told to.
fn packet(sequence: u8, plain_len: usize, data: &[u8]) -> Vec<u8> {
    let head = header::Header { packed_len: data.len(), sequence, plain_len };
    [&head.encode()[..], data].concat()
}

fn packed(algorithm: Algorithm, plain: &[u8]) -> Vec<u8> {
    let mut room = vec![0; plain.len().saturating_add(100)];
    let len = Compressor::new(algorithm).unwrap().compress(3, plain, &mut room).unwrap();
    room[..len].to_vec()
}

#[test]
fn frames_come_out_as_they_went_in_at_every_cut() {
    for algorithm in ALGORITHMS {
        let text = b"select 'abcdefghijklmnopqrstuvwxyz' from t where a = 1 and b = 2 ".repeat(300);
        let long = frame(0, &text);
        let wire = both(algorithm).0.pack(&long);
        for cut in Cut::all(20) {
            for room in [1, 7, 1000, 70_000] {
                let read = both(algorithm).1.read(&wire, cut, room).unwrap();
                assert!(read == long, "{algorithm:?} {cut:?} {room}");
            }
        }
    }
}

#[test]
fn short_and_random_data_is_stored_as_it_is() {
    for algorithm in ALGORITHMS {
        let (mut client, mut server) = both(algorithm);
        let short = frame(0, &[7; 45]);
        let wire = client.pack(&short);
        assert_eq!(packets(&wire)[0], header::Header { packed_len: 49, sequence: 0, plain_len: 0 });
        assert_eq!(server.read_whole(&wire), short);

        let just = frame(0, &[7; 46]);
        let wire = client.pack(&just);
        assert_eq!(packets(&wire)[0].plain_len, 50);
        assert_eq!(server.read_whole(&wire), just);

        let mut state: u32 = 1;
        let noise: Vec<u8> = (0..5000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect();
        let noise = frame(0, &noise);
        let wire = client.pack(&noise);
        assert_eq!(packets(&wire)[0].plain_len, 0, "{algorithm:?}");
        assert_eq!(server.read_whole(&wire), noise);
    }
}

#[test]
fn each_command_counts_from_zero_and_its_answer_counts_on() {
    let (mut client, mut server) = both(Algorithm::Zlib);
    for _ in 0..3 {
        let wire = client.pack(&frame(0, b"\x03select 1"));
        assert_eq!(numbers(&wire), [0]);
        server.read_whole(&wire);
        let answer = [frame(1, b"\x01"), frame(2, b"column"), frame(3, b"\xfe")].concat();
        let wire = server.pack(&answer);
        assert_eq!(numbers(&wire), [1]);
        assert_eq!(client.read_whole(&wire), answer);
        let wire = server.pack(&frame(4, b"row"));
        assert_eq!(numbers(&wire), [2]);
        assert_eq!(client.read_whole(&wire), frame(4, b"row"));
    }
}

#[test]
fn a_command_in_many_packets_is_answered_with_the_next_number_inside_and_out() {
    let (mut client, mut server) = both(Algorithm::Zlib);
    let long = frame(0, &vec![7; 200_000]);
    let wire = client.pack(&long);
    assert_eq!(numbers(&wire), [0, 1, 2, 3]);
    assert_eq!(server.read_whole(&wire), long);
    // What a server would say: its ids follow the numbers of the packets.
    let wire = server.pack(&[frame(1, b"\x01"), frame(2, b"column")].concat());
    assert_eq!(numbers(&wire), [4]);
    assert_eq!(ids(&wire[7..]), [4, 5]);
    // What is seen of it, wherever it is seen: the ids of a leg in the clear.
    assert_eq!(ids(&client.read_whole(&wire)), [1, 2]);
}

#[test]
fn a_result_behind_another_begins_with_the_number_of_its_packet_where_it_begins_one() {
    let command = frame(0, b"\x03select 1; select 2");
    for (ending, follows) in [
        (&b"\xfe\0\0\x0a\0\0\0"[..], true),
        (b"\xfe\0\0\x0a\0", true),
        (b"\0\x01\0\x0a\0\0\0", true),
        (b"\xfe\0\0\x02\0\0\0", false),
        (b"\xff\x0a\0\x0a\0\0\0", false),
        (b"\x0a\0\0\x0a\0\0\0", false),
    ] {
        let first = [frame(1, b"\x01"), frame(2, b"column"), frame(3, ending)].concat();
        let second = frame(4, b"\x01");
        let (mut client, mut server) = both(Algorithm::Zlib);
        server.read_whole(&client.pack(&command));
        assert_eq!(ids(&server.pack(&first)[7..]), [1, 2, 3]);
        let apart = server.pack(&second);
        let expected = if follows { 2 } else { 4 };
        assert_eq!((numbers(&apart), ids(&apart[7..])), (vec![2], vec![expected]), "{ending:?}");

        let (mut client, mut server) = both(Algorithm::Zlib);
        server.read_whole(&client.pack(&command));
        let together = server.pack(&[first, second].concat());
        assert_eq!(ids(&together[7..]), [1, 2, 3, 4], "{ending:?}");
    }
}

#[test]
fn client_libraries_send_the_header_of_a_long_command_by_itself() {
    let mut server = End::new(Role::Server, Algorithm::Zlib);
    let command = frame(0, &[3; 100]);
    let wire = [packet(0, 0, &command[..5]), packet(1, 0, &command[5..])].concat();
    assert_eq!(server.read_whole(&wire), command);
    assert_eq!(numbers(&server.pack(&frame(1, b"\0ok"))), [2]);
}

#[test]
fn a_file_keeps_counting_beyond_the_wrap_on_both_legs() {
    let (mut client, mut server) = both(Algorithm::Zstd);
    let load = client.pack(&frame(0, b"\x03load data local"));
    server.read_whole(&load);
    let request = server.pack(&frame(1, b"\xfbfile"));
    client.read_whole(&request);
    client.leg.begin_upload();
    server.leg.begin_upload();
    let mut sequence: u8 = 2;
    for _ in 0..600 {
        let part = frame(sequence, b"1,2,3\n");
        let wire = client.pack(&part);
        assert_eq!(numbers(&wire), [sequence]);
        assert_eq!(server.read_whole(&wire), part);
        sequence = sequence.wrapping_add(1);
    }
    let end = frame(sequence, b"");
    assert_eq!(server.read_whole(&client.pack(&end)), end);
    let ok = frame(sequence.wrapping_add(1), b"\0ok");
    assert_eq!(client.read_whole(&server.pack(&ok)), ok);
    // The next one is a command again.
    assert_eq!(numbers(&client.pack(&frame(0, b"\x0e"))), [0]);
}

#[test]
fn ids_of_a_file_follow_the_leg_in_the_clear_and_not_the_client() {
    let mut server = End::new(Role::Server, Algorithm::Zlib);
    // Three compressed packets of one command: the client goes on counting from them.
    let load = frame(0, b"\x03load data local infile");
    let wire = [packet(0, 0, &load[..4]), packet(1, 0, &load[4..6]), packet(2, 0, &load[6..])];
    server.read_whole(&wire.concat());
    assert_eq!(ids(&server.pack(&frame(1, b"\xfbf"))[7..]), [3]);
    server.leg.begin_upload();
    let file = [frame(4, b"a"), frame(5, b"b"), frame(6, b"")].concat();
    assert_eq!(ids(&server.read_whole(&packet(4, 0, &file))), [2, 3, 4]);
}

#[test]
fn commands_in_one_packet_are_commands_each_and_their_answers_count_on() {
    let mut server = End::new(Role::Server, Algorithm::Zlib);
    let commands = [frame(0, b"\x03select 1"), frame(0, b"\x03select 2")].concat();
    assert_eq!(ids(&server.read_whole(&packet(0, 0, &commands))), [0, 0]);
    assert_eq!(numbers(&server.pack(&frame(1, b"\0"))), [1]);
    assert_eq!(numbers(&server.pack(&frame(1, b"\0"))), [2]);
}

#[test]
fn a_command_sent_ahead_is_not_begun_before_the_one_before_it_is_read() {
    let End { mut leg, mut decompressor, mut compressor } = End::new(Role::Server, Algorithm::Zlib);
    let first = frame(0, b"\x03select 1");
    let second = frame(0, b"\x03select 2");
    let wire = [packet(0, 0, &first), packet(0, 0, &second)].concat();
    let mut space = [0; 100];
    let one = leg.unpack(&wire, &mut space, Unread::Nothing, &mut decompressor).unwrap();
    assert_eq!((one.produced, one.held), (first.len(), true));
    let rest = &wire[one.consumed..];
    let held = leg.unpack(rest, &mut space, Unread::Frames, &mut decompressor).unwrap();
    assert_eq!(held, Unpacked { consumed: 0, produced: 0, held: true });
    let mut answer = Vec::new();
    for sequence in 1..=3 {
        leg.pack(&frame(sequence, b"answer"), &mut compressor, &mut answer);
    }
    assert_eq!(numbers(&answer), [1, 2, 3]);
    let two = leg.unpack(rest, &mut space, Unread::Nothing, &mut decompressor).unwrap();
    assert_eq!(space[..two.produced], second);
    let mut answer = Vec::new();
    leg.pack(&frame(1, b"answer"), &mut compressor, &mut answer);
    assert_eq!(numbers(&answer), [1]);
}

#[test]
fn commands_to_a_server_do_not_share_a_compressed_packet() {
    let mut client = End::new(Role::Client, Algorithm::Zlib);
    let commands = [frame(0, b"\x1a\x01\0\0\0"), frame(0, b"\x17\x01\0\0\0")].concat();
    assert_eq!(numbers(&client.pack(&commands)), [0, 0]);
}

#[test]
fn packets_of_sixteen_megabytes_pass() {
    for algorithm in ALGORITHMS {
        let (mut client, mut server) = both(algorithm);
        let full = vec![b'x'; MAX_PAYLOAD_LEN];
        let command = [frame(0, &full), frame(1, &full), frame(2, b"tail")].concat();
        let mut wire = Vec::new();
        for piece in command.chunks(50_000) {
            wire.extend_from_slice(&client.pack(piece));
        }
        assert!(wire.len() < command.len() / 100);
        let read = server.read_whole(&wire);
        assert!(read == command, "{algorithm:?}");
        // The other end may make compressed packets as long as they can be, and put both headers
        // inside.
        let whole = &command[..MAX_PAYLOAD_LEN];
        let wire = packet(0, whole.len(), &packed(algorithm, whole));
        let read = End::new(Role::Server, algorithm).read(&wire, Cut::Random(1), 1000).unwrap();
        assert!(read == whole, "{algorithm:?}");
    }
}

#[test]
fn a_client_gets_each_frame_in_two_packets_at_most_and_never_a_torn_header() {
    for algorithm in ALGORITHMS {
        let (mut client, mut server) = both(algorithm);
        let mut answer = Vec::new();
        let lens = [1, 100_000, 1_000_000, 1_048_572, 1_048_573, 5_000_000, MAX_PAYLOAD_LEN, 7, 0];
        for (sequence, len) in (1..).zip(lens) {
            answer.extend_from_slice(&frame(sequence, &vec![b'y'; len]));
        }
        for cut in [Cut::Whole, Cut::Random(3)] {
            server.read_whole(&client.pack(&frame(0, b"\x03select 1")));
            let mut wire = Vec::new();
            for piece in cuts(&answer, cut) {
                wire.extend_from_slice(&server.pack(piece));
            }
            let lens: Vec<usize> = packets(&wire)
                .iter()
                .map(|packet| packet.plain_len.max(packet.packed_len))
                .collect();
            let shown = [1, 100_000, 1_000_000, 1_048_572].map(|len| len + 4);
            let compressed = lens.iter().take_while(|len| **len != 1_048_577).sum::<usize>();
            assert_eq!(compressed, shown.iter().sum::<usize>(), "{lens:?}");
            let long: Vec<usize> =
                lens.iter().copied().skip_while(|len| *len != 1_048_577).collect();
            assert_eq!(long, [1_048_577, 5_000_004, MAX_PAYLOAD_LEN, 4, 15], "{algorithm:?}");
            assert!(client.read_whole(&wire) == answer, "{algorithm:?} {cut:?}");
        }
    }
}

#[test]
fn an_error_out_of_turn_keeps_its_id_and_is_numbered_as_the_next_answer() {
    let (mut client, mut server) = both(Algorithm::Zlib);
    let command = frame(0, b"\x03select 1");
    let wire = client.pack(&command);
    server.read_whole(&wire);
    client.read_whole(&server.pack(&[frame(1, b"a"), frame(2, b"b")].concat()));
    client.leg.rest();
    server.leg.rest();
    let timeout = frame(0, b"\xff\xbf\x0fgone");
    assert_eq!(client.read_whole(&packet(3, 0, &timeout)), timeout);
    assert_eq!(numbers(&server.pack(&frame(1, b"\xff\xbf\x0fgone"))), [1]);
}

#[test]
fn a_packet_that_is_longer_or_shorter_than_it_says_is_corrupt() {
    for algorithm in ALGORITHMS {
        let plain = frame(0, &[b'x'; 1000]);
        let data = packed(algorithm, &plain);
        let trailing = [&data[..], b"more"].concat();
        for (announced, data) in [
            (plain.len() - 1, &data[..]),
            (plain.len() + 1, &data[..]),
            (1, &data[..]),
            (MAX_PAYLOAD_LEN, &data[..]),
            (plain.len(), &trailing[..]),
            (plain.len(), &data[..data.len() - 1]),
            (plain.len(), b""),
            (plain.len(), b"this is no compressed data at all"),
        ] {
            for cut in [Cut::Whole, Cut::EveryByte] {
                for room in [1, 100, 5000] {
                    let wire = [packet(0, announced, data), packet(1, 0, b"behind it")].concat();
                    let read = End::new(Role::Server, algorithm).read(&wire, cut, room);
                    assert!(read.is_err(), "{algorithm:?} {announced} {cut:?} {room}: {read:?}");
                }
            }
        }
    }
}

#[test]
fn a_bomb_is_decompressed_only_as_far_as_there_is_room() {
    for algorithm in ALGORITHMS {
        let wire = packet(0, MAX_PAYLOAD_LEN, &packed(algorithm, &vec![0; MAX_PAYLOAD_LEN]));
        assert!(wire.len() < 20_000);
        let End { mut leg, mut decompressor, .. } = End::new(Role::Server, algorithm);
        let mut space = vec![0; 4096];
        let unpacked = leg.unpack(&wire, &mut space, Unread::Nothing, &mut decompressor).unwrap();
        assert_eq!(unpacked.produced, space.len());
        assert!(leg.is_within_packet());
    }
}

#[test]
fn an_engine_is_as_good_as_new_after_a_packet_that_was_not_finished() {
    for algorithm in ALGORITHMS {
        let mut end = End::new(Role::Server, algorithm);
        let plain = frame(0, &[b'x'; 1000]);
        let wire = packet(0, plain.len(), &packed(algorithm, &plain));
        end.read_whole(&wire[..20]);
        end.leg = CompressedLeg::new(Role::Server, algorithm, 3);
        assert_eq!(end.read_whole(&wire), plain);
    }
}

#[test]
fn levels_differ_and_can_be_changed_between_packets() {
    for (algorithm, highest) in [(Algorithm::Zlib, 9), (Algorithm::Zstd, 22)] {
        // Skewed, and without a period.
        let mut state: u32 = 1;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        let text: Vec<u8> = (0..6000)
            .flat_map(|_| format!("{} ", next() % 97 * (next() % 13)).into_bytes())
            .collect();
        let mut compressor = Compressor::new(algorithm).unwrap();
        let mut len_at = |level| {
            let mut wire = Vec::new();
            CompressedLeg::new(Role::Client, algorithm, level).pack(
                &text,
                &mut compressor,
                &mut wire,
            );
            wire.len()
        };
        let (fast, small, again) = (len_at(1), len_at(highest), len_at(1));
        assert!(small < fast, "{algorithm:?} {small} {fast}");
        assert_eq!(fast, again);
    }
}

proptest! {
    #[test]
    fn any_commands_and_answers_pass_at_any_cut(
        payloads in prop::collection::vec((any::<u8>(), 1_usize..3000, 0_usize..3000), 1..8),
        seed in any::<u64>(),
        room in 1_usize..5000,
        zstd in any::<bool>(),
    ) {
        let algorithm = if zstd { Algorithm::Zstd } else { Algorithm::Zlib };
        let (mut client, mut server) = both(algorithm);
        for (byte, asked, answered) in payloads {
            let command = frame(0, &vec![byte; asked]);
            let wire = client.pack(&command);
            prop_assert_eq!(server.read(&wire, Cut::Random(seed), room).unwrap(), command);
            let answer = [frame(1, &vec![byte; answered]), frame(2, b"end")].concat();
            let mut wire = Vec::new();
            for piece in cuts(&answer, Cut::Random(seed)) {
                wire.extend_from_slice(&server.pack(piece));
            }
            prop_assert_eq!(client.read(&wire, Cut::Random(seed), room).unwrap(), answer);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        seed in any::<u64>(),
        zstd in any::<bool>(),
    ) {
        let algorithm = if zstd { Algorithm::Zstd } else { Algorithm::Zlib };
        let read = both(algorithm).1.read(&bytes, Cut::Random(seed), 64);
        prop_assert!(read.is_err() || read.unwrap().len() <= bytes.len().saturating_mul(1100));
    }
}
