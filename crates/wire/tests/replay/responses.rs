//! Responses: any bytes at any cuts, and responses that were written as the manual says.

#![expect(clippy::expect_used, reason = "a check fails by panicking")]

use testkit::{Cut, Input, cuts};
use wire::capability::{
    CLIENT_DEPRECATE_EOF, CLIENT_LOCAL_FILES, CLIENT_OPTIONAL_RESULTSET_METADATA, Capabilities,
    MARIADB_CLIENT_CACHE_METADATA,
};
use wire::command::{Cursor, Expect};
use wire::frame::FrameHeader;
use wire::response_tracker::{Progress, ResponseTracker};
use wire::{Peer, ProtocolError};

/// Follows what is there.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, seed) = (input.u8(), u64::from(input.u8()));
    let caps = Capabilities { base: input.u32(), mariadb: input.u32() };
    match kind % 3 {
        0 => {
            let expect = input.choose(&EXPECTATIONS);
            same_at_every_cut(caps, expect, input.rest(), seed);
        }
        1 => {
            let expect = input.choose(&EXPECTATIONS);
            let mut stream = Vec::new();
            while !input.is_empty() {
                put_frame(&mut stream, input.chunk());
            }
            same_at_every_cut(caps, expect, &stream, seed);
        }
        _ => ends_where_it_should(&mut input, caps, seed),
    }
}

/// What a tracker reported, with the offset in the stream at which it did.
#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<(usize, Progress)>,
    changes: Vec<Changes>,
    end: Result<(usize, u8), ProtocolError>,
}

/// Schema, character set, and whether more was said than is kept.
type Changes = (Option<Vec<u8>>, Option<Vec<u8>>, bool);

fn same_at_every_cut(caps: Capabilities, expect: Expect, stream: &[u8], seed: u64) {
    let whole = follow(caps, expect, stream, Cut::Whole);
    for cut in [Cut::EveryByte, Cut::Random(seed)] {
        assert_eq!(follow(caps, expect, stream, cut), whole, "{cut:?}");
    }
}

/// Follows response after response, starting the next one where the last one ended.
fn follow(caps: Capabilities, expect: Expect, stream: &[u8], cut: Cut) -> Story {
    let mut tracker = ResponseTracker::new(caps);
    tracker.begin(expect);
    tracker.watch_value();
    let mut story = Story { events: Vec::new(), changes: Vec::new(), end: Ok((0, 0)) };
    let mut offset = 0;
    for piece in cuts(stream, cut) {
        let mut rest = piece;
        loop {
            let fed = match tracker.feed(rest) {
                Ok(fed) => fed,
                Err(error) => {
                    assert_eq!(error.peer(), Peer::Backend);
                    assert_eq!(tracker.feed(rest), Err(error), "it stays broken");
                    story.end = Err(error);
                    return story;
                }
            };
            offset += fed.consumed;
            rest = rest.get(fed.consumed..).expect("what it consumed was there");
            match fed.progress {
                Progress::More => {
                    assert!(rest.is_empty(), "a tracker that wants more has looked at all");
                    break;
                }
                Progress::LocalInfile => tracker.resume_after_upload(),
                Progress::End(_) => {
                    assert!(tracker.is_idle() && tracker.at_frame_boundary());
                    story.changes.push((
                        tracker.schema().map(<[u8]>::to_vec),
                        tracker.charset_client().map(<[u8]>::to_vec),
                        tracker.session_changes_cut(),
                    ));
                    tracker.begin(expect);
                    tracker.watch_value();
                }
            }
            story.events.push((offset, fed.progress));
        }
    }
    story.end = Ok((offset, tracker.last_sequence()));
    story
}

/// A response of several results, and what follows it: the one is consumed, the other is not.
fn ends_where_it_should(input: &mut Input<'_>, caps: Capabilities, seed: u64) {
    let results = 1 + input.u8() % 4;
    let mut stream = Vec::new();
    let mut expected = Expected::default();
    for result in 0..results {
        let more = if result + 1 < results { SERVER_MORE_RESULTS_EXISTS } else { 0 };
        put_result(&mut stream, &mut expected, input, caps, more);
        if expected.error.is_some() {
            break;
        }
    }
    let response_len = stream.len();
    stream.extend_from_slice(input.rest());
    for cut in [Cut::Whole, Cut::EveryByte, Cut::Random(seed)] {
        let mut tracker = ResponseTracker::new(caps);
        tracker.begin(Expect::ResultSets);
        tracker.watch_value();
        let mut consumed = 0;
        let mut end = None;
        for piece in cuts(&stream, cut) {
            let mut rest = piece;
            while end.is_none() {
                let fed = tracker.feed(rest).expect("the response is sound");
                consumed += fed.consumed;
                rest = rest.get(fed.consumed..).expect("what it consumed was there");
                match fed.progress {
                    Progress::More => break,
                    Progress::LocalInfile => tracker.resume_after_upload(),
                    Progress::End(found) => end = Some(found),
                }
            }
        }
        let end = end.expect("the response is whole");
        assert_eq!((consumed, end.error), (response_len, expected.error), "{cut:?}");
        assert_eq!(end.affected_rows, expected.affected_rows);
    }
}

#[derive(Default)]
struct Expected {
    affected_rows: u64,
    error: Option<u16>,
}

fn put_result(
    out: &mut Vec<u8>,
    expected: &mut Expected,
    input: &mut Input<'_>,
    caps: Capabilities,
    more: u16,
) {
    let [more_low, more_high] = more.to_le_bytes();
    match input.u8() % 8 {
        0 => {
            let rows = input.u8() % 0xfb;
            expected.affected_rows += u64::from(rows);
            let ok = [0, rows, 0, more_low, more_high, 0, 0];
            put_frame(out, &[&ok, input.chunk()].concat());
        }
        1 => {
            // 65535 is MariaDB's progress report, which is no error.
            let code = input.u16() % 0xffff;
            expected.error = Some(code);
            put_frame(out, &[&[0xff], &code.to_le_bytes()[..], input.chunk()].concat());
        }
        2 if caps.has(CLIENT_LOCAL_FILES) => {
            put_frame(out, &[b"\xfb", input.chunk()].concat());
            put_frame(out, &[0, 0, 0, more_low, more_high, 0, 0]);
        }
        _ => put_result_set(out, input, caps, more),
    }
}

fn put_result_set(out: &mut Vec<u8>, input: &mut Input<'_>, caps: Capabilities, more: u16) {
    let [more_low, more_high] = more.to_le_bytes();
    let flagged = caps.has(CLIENT_OPTIONAL_RESULTSET_METADATA)
        || caps.has_mariadb(MARIADB_CLIENT_CACHE_METADATA);
    let (columns, rows) = (1 + input.u8() % 8, input.u8() % 16);
    let left_out = flagged && input.u8() % 2 == 1;
    match flagged {
        true => put_frame(out, &[columns, u8::from(!left_out)]),
        false => put_frame(out, &[columns]),
    }
    for _ in 0..if left_out { 0 } else { columns } {
        put_frame(out, &[b"\x03def", input.chunk()].concat());
    }
    let eof = [0xfe, 0, 0, more_low, more_high];
    if !caps.has(CLIENT_DEPRECATE_EOF) {
        put_frame(out, &eof);
    }
    for _ in 0..rows {
        let row = input.chunk();
        // 0xff begins an error; 0xfe begins a row only of what cannot be an end.
        let ends = matches!(row.first(), Some(0xfe | 0xff));
        put_frame(out, if ends { b"\xfb" } else { row });
    }
    match caps.has(CLIENT_DEPRECATE_EOF) {
        true => {
            let ok = [0xfe, 0, 0, more_low, more_high, 0, 0];
            put_frame(out, &[&ok, input.chunk()].concat());
        }
        false => put_frame(out, &eof),
    }
}

fn put_frame(out: &mut Vec<u8>, payload: &[u8]) {
    out.extend_from_slice(&FrameHeader { payload_len: payload.len(), sequence: 1 }.encode());
    out.extend_from_slice(payload);
}

const EXPECTATIONS: [Expect; 13] = [
    Expect::ResultSets,
    Expect::OnePacket,
    Expect::Prepare,
    Expect::FieldList,
    Expect::Statistics,
    Expect::Fetch,
    Expect::Eof,
    Expect::BinlogStream,
    Expect::Opaque,
    Expect::Auth,
    Expect::Execution(Cursor::NotAsked),
    Expect::Execution(Cursor::Asked),
    Expect::ProcessInfo,
];
const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;
