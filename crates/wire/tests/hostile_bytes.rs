//! Any bytes, whole, byte by byte and at random cuts: the same result, and never a panic.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use proptest::collection::vec;
use proptest::prelude::*;

use wire::capability::Capabilities;
use wire::command::{
    Command, Expect, execute_attributes, execute_layout, parse_command, splice_head,
    splice_type_block,
};
use wire::frame::{FrameHeader, split_frame};
use wire::handshake::{
    AuthReply, ClientHello, NO_PLUGIN, ServerHello, auth_reply, parse_change_user,
    parse_client_hello, parse_server_hello, patch_client_hello, patch_greeting,
    put_unanswered_change_user, put_unanswered_response,
};
use wire::packet::{EofPacket, ErrPacket, OkPacket, encode_err, put_without_redirect};
use wire::response_tracker::{Cursor, Progress, ResponseTracker};
use wire::upload::{FrameSkipper, UploadTracker};
use wire::{Peer, ProtocolError};

/// What a tracker reported, with the offset in the stream at which it did.
#[derive(Debug, PartialEq)]
struct Story {
    events: Vec<(usize, Progress)>,
    changes: Vec<Changes>,
    consumed: Option<usize>,
    error: Option<ProtocolError>,
    last_sequence: u8,
}

/// What a response said about the session.
#[derive(Debug, PartialEq)]
struct Changes {
    schema: Option<Vec<u8>>,
    charset_client: Option<Vec<u8>>,
    cut: bool,
}

/// Follows response after response, starting the next one where the last one ended.
fn follow(caps: Capabilities, expect: Expect, chunks: &[&[u8]]) -> Story {
    let mut tracker = ResponseTracker::new(caps);
    let mut story = Story {
        events: Vec::new(),
        changes: Vec::new(),
        consumed: None,
        error: None,
        last_sequence: 0,
    };
    let mut offset = 0_usize;
    tracker.begin(expect);
    tracker.watch_value();
    for chunk in chunks {
        let mut rest = *chunk;
        loop {
            let fed = match tracker.feed(rest) {
                Ok(fed) => fed,
                Err(error) => {
                    assert_eq!(error.peer(), Peer::Backend);
                    assert_eq!(tracker.feed(rest), Err(error));
                    story.error = Some(error);
                    return story;
                }
            };
            offset += fed.consumed;
            rest = rest.get(fed.consumed..).unwrap();
            match fed.progress {
                Progress::More => {
                    assert!(rest.is_empty(), "a tracker that wants more has looked at all");
                    break;
                }
                Progress::LocalInfile => {
                    story.events.push((offset, fed.progress));
                    tracker.resume_after_upload();
                }
                Progress::End(_) => {
                    assert!(tracker.is_idle() && tracker.at_frame_boundary());
                    story.events.push((offset, fed.progress));
                    story.changes.push(Changes {
                        schema: tracker.schema().map(<[u8]>::to_vec),
                        charset_client: tracker.charset_client().map(<[u8]>::to_vec),
                        cut: tracker.session_changes_cut(),
                    });
                    tracker.begin(expect);
                    tracker.watch_value();
                }
            }
        }
    }
    story.consumed = Some(offset);
    story.last_sequence = tracker.last_sequence();
    story
}

fn cut_at<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut chunks = Vec::new();
    let mut rest = bytes;
    for cut in cuts {
        let (chunk, after) = rest.split_at((*cut).min(rest.len()));
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    chunks
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    (any::<u32>(), any::<u32>()).prop_map(|(base, mariadb)| Capabilities { base, mariadb })
}

fn expectation() -> impl Strategy<Value = Expect> {
    prop_oneof![
        Just(Expect::Nothing),
        Just(Expect::OnePacket),
        Just(Expect::ResultSets),
        Just(Expect::Execution(Cursor::NotAsked)),
        Just(Expect::Execution(Cursor::Asked)),
        Just(Expect::ProcessInfo),
        Just(Expect::Prepare),
        Just(Expect::FieldList),
        Just(Expect::Statistics),
        Just(Expect::Fetch),
        Just(Expect::Eof),
        Just(Expect::BinlogStream),
        Just(Expect::Opaque),
        Just(Expect::Auth),
    ]
}

/// Payloads that look like what servers send, so that the tracker gets somewhere.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let status = any::<u16>().prop_map(u16::to_le_bytes);
    prop_oneof![
        3 => (status.clone(), vec(any::<u8>(), 0..40)).prop_map(|([low, high], tail)| {
            [&[0x00, 1, 0, low, high, 0, 0][..], &tail].concat()
        }),
        2 => status.clone().prop_map(|[low, high]| vec![0xfe, 0, 0, low, high]),
        2 => status.prop_map(|[low, high]| vec![0xfe, 0, 0, low, high, 0, 0]),
        2 => (0_u8..4, vec(0_u8..2, 0..2)).prop_map(|(count, tail)| [&[count][..], &tail].concat()),
        2 => Just(b"\x03def\x01a".to_vec()),
        1 => Just(b"\xff\x28\x04#42000no".to_vec()),
        1 => Just(b"\xff\xff\xff\x01\x01\x02\0\0\0".to_vec()),
        1 => Just(b"\xfbfile".to_vec()),
        1 => Just(b"\0\x01\0\0\0\x01\0\x02\0\0\0\0\0".to_vec()),
        2 => vec(any::<u8>(), 0..30),
        1 => vec(any::<u8>(), 4000..6000),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let frames = vec((payload(), any::<u8>()), 0..12).prop_map(|packets| {
        let mut bytes = Vec::new();
        for (payload, sequence) in packets {
            let header = FrameHeader { payload_len: payload.len(), sequence };
            bytes.extend_from_slice(&header.encode());
            bytes.extend_from_slice(&payload);
        }
        bytes
    });
    prop_oneof![8 => frames, 1 => vec(any::<u8>(), 0..400)]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1024,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_response_reads_the_same_at_every_cut(
        caps in capabilities(),
        expect in expectation(),
        bytes in stream(),
        cuts in vec(0_usize..40, 0..20),
    ) {
        prop_assume!(expect != Expect::Nothing);
        let whole = follow(caps, expect, &[&bytes]);
        let single: Vec<_> = bytes.chunks(1).collect();
        prop_assert_eq!(&whole, &follow(caps, expect, &single));
        prop_assert_eq!(&whole, &follow(caps, expect, &cut_at(&bytes, &cuts)));
    }

    #[test]
    fn uploads_and_skipped_packets_end_alike_at_every_cut(
        bytes in stream(),
        cuts in vec(0_usize..40, 0..20),
    ) {
        let run_upload = |chunks: &[&[u8]]| {
            let mut upload = UploadTracker::new();
            let fed: Vec<_> = chunks.iter().map(|chunk| upload.feed(chunk)).collect();
            let consumed: usize = fed.iter().map(|fed| fed.consumed).sum();
            (consumed, fed.last().is_some_and(|fed| fed.done), upload.last_sequence())
        };
        let run_skip = |chunks: &[&[u8]]| {
            let mut skipper = FrameSkipper::new();
            let fed: Vec<_> = chunks.iter().map(|chunk| skipper.feed(chunk)).collect();
            let consumed: usize = fed.iter().map(|fed| fed.consumed).sum();
            (consumed, fed.last().is_some_and(|fed| fed.done), skipper.last_sequence())
        };
        let single: Vec<_> = bytes.chunks(1).collect();
        let random = cut_at(&bytes, &cuts);
        let whole = [&bytes[..]];
        prop_assert_eq!(run_upload(&whole), run_upload(&random));
        prop_assert_eq!(run_skip(&whole), run_skip(&random));
        if !bytes.is_empty() {
            prop_assert_eq!(run_upload(&whole), run_upload(&single));
            prop_assert_eq!(run_skip(&whole), run_skip(&single));
        }
        if let Some((header, _, rest)) = split_frame(&bytes) {
            prop_assert_eq!(run_skip(&whole).0, bytes.len() - rest.len());
            prop_assert_eq!(run_skip(&whole).2, header.sequence);
        }
    }

    #[test]
    fn any_bytes_can_be_read_as_a_handshake(
        bytes in vec(any::<u8>(), 0..200),
        as_greeting: bool,
        caps in capabilities(),
    ) {
        let mut bytes = bytes;
        if as_greeting && let Some(first) = bytes.first_mut() {
            *first = 10;
        }
        if let Ok(ServerHello::Greeting(greeting)) = parse_server_hello(&bytes) {
            let before = greeting.capabilities;
            let (major, mariadb) = (greeting.major_version(), greeting.is_mariadb());
            let mut patched = bytes.clone();
            patch_greeting(&mut patched, before).unwrap();
            prop_assert_eq!(&patched, &bytes, "patching with what is there changes nothing");
            prop_assert!(mariadb || before.mariadb == 0);
            prop_assert!(major == 0 || greeting.server_version.iter().any(u8::is_ascii_digit));
        }
        if let Ok(ClientHello::Response(response)) = parse_client_hello(&bytes, caps) {
            prop_assert!(response.attributes.iter().count() <= bytes.len());
        }
        let mut patched = bytes.clone();
        if patch_client_hello(&mut patched, caps).is_ok() {
            prop_assert_eq!(patched.get(32..), bytes.get(32..));
        } else {
            prop_assert_eq!(&patched, &bytes);
        }
        if let Ok(change) = parse_change_user(&bytes, caps) {
            prop_assert!(change.attributes.iter().count() <= bytes.len());
        }
        let reply = auth_reply(&bytes, caps);
        prop_assert_eq!(reply == AuthReply::Ok, bytes.first() == Some(&0x00));
        prop_assert_eq!(reply == AuthReply::Err, bytes.first() == Some(&0xff));
        let mut out = Vec::new();
        if put_unanswered_response(&bytes, caps, &mut out) {
            prop_assert_eq!(out.get(..32), bytes.get(..32));
        }
        out.clear();
        if put_unanswered_change_user(&bytes, caps, &mut out) {
            let change = parse_change_user(&out, caps).expect("what was written can be read");
            prop_assert_eq!(change.auth_plugin, Some(NO_PLUGIN));
        }
        out.clear();
        prop_assert!(put_without_redirect(&bytes, caps, &mut out) || out.is_empty());
    }

    #[test]
    fn any_bytes_can_be_read_as_a_packet(
        bytes in vec(any::<u8>(), 0..200),
        caps in capabilities(),
    ) {
        if let Ok(ok) = OkPacket::parse(&bytes, caps) {
            prop_assert!(ok.session_changes.iter().count() <= bytes.len());
        }
        if let Ok(error) = ErrPacket::parse(&bytes) {
            let mut out = Vec::new();
            encode_err(&mut out, 1, error.code, b"HY000", error.message);
            let (_, payload, rest) = split_frame(&out).unwrap();
            prop_assert!(rest.is_empty());
            let again = ErrPacket::parse(payload).unwrap();
            prop_assert_eq!((again.code, again.message), (error.code, error.message));
        }
        EofPacket::parse(&bytes).ok();
    }

    #[test]
    fn any_bytes_can_be_read_as_a_command(
        code: u8,
        body in vec(prop_oneof![Just(0_u8), Just(1), Just(3), Just(0xfe), any::<u8>()], 0..60),
        num_params in 0_u16..6,
        caps in capabilities(),
        block in vec(any::<u8>(), 0..14),
    ) {
        for code in [code, 0x03, 0x17] {
            let payload = [&[code][..], &body].concat();
            if let Ok(Command::Query(query)) = parse_command(&payload, caps) {
                prop_assert!(payload.ends_with(query.text));
                prop_assert!(query.attributes.iter().count() <= payload.len());
            }
            let Some(layout) = execute_layout(&payload, num_params, caps) else { continue };
            let attributes = execute_attributes(&payload, &layout, num_params);
            prop_assert!(attributes.iter().count() <= payload.len());
            let header = FrameHeader { payload_len: payload.len(), sequence: 0 };
            let (mut whole, mut head) = (Vec::new(), Vec::new());
            let spliced = splice_type_block(&payload, &layout, &block, 0, &mut whole);
            let spliced_head = splice_head(header, &payload, &layout, &block, &mut head);
            prop_assert_eq!(spliced.is_ok(), spliced_head.is_ok());
            if spliced.is_ok() {
                head.extend_from_slice(payload.get(layout.bind_flag_offset + 1..).unwrap());
                prop_assert_eq!(&head, &whole);
                let (_, again, _) = split_frame(&whole).unwrap();
                let layout = execute_layout(again, num_params, caps).unwrap();
                prop_assert_eq!(again.get(layout.type_block), Some(&block[..]));
            }
        }
    }
}

#[test]
fn a_command_without_an_answer_consumes_nothing() {
    let mut tracker = ResponseTracker::new(Capabilities::default());
    tracker.begin(Expect::Nothing);
    let fed = tracker.feed(b"\x01\0\0\0\0").unwrap();
    assert_eq!((fed.consumed, fed.progress), (0, Progress::More));
}
