//! Frames against a reader that has all bytes at once.

#![expect(clippy::indexing_slicing, reason = "a check fails by panicking")]

use testkit::{Cut, Input, cuts};
use wire::frame::{FrameHeader, MAX_PAYLOAD_LEN, split_frame};
use wire::upload::{FrameSkipper, Skipped, UploadTracker};

/// Walks over any stream in every way, from the start of a packet or from within a full frame.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let (seed, within, left) = (u64::from(input.u8()), input.u8(), usize::from(input.u8()));
    let stream = input.rest();
    headers(stream);
    // Full frames are too long for an input: one that began earlier stands for them.
    let full = FrameHeader { payload_len: MAX_PAYLOAD_LEN, sequence: within };
    let short = FrameHeader { payload_len: left, sequence: within };
    let starts = [None, Some((full, left)), Some((short, left))];
    for start in starts {
        let expected = packet(stream, start);
        for cut in [Cut::Whole, Cut::EveryByte, Cut::Random(seed)] {
            let mut skipper = match start {
                None => FrameSkipper::new(),
                Some((header, left)) => FrameSkipper::within(header, left),
            };
            let found = fed(stream, cut, |piece| skipper.feed(piece));
            assert_eq!(found, expected, "{start:?} {cut:?}");
        }
    }
    let expected = upload(stream);
    for cut in [Cut::Whole, Cut::EveryByte, Cut::Random(seed)] {
        let mut tracker = UploadTracker::new();
        assert_eq!(fed(stream, cut, |piece| tracker.feed(piece)), expected, "{cut:?}");
    }
}

fn headers(stream: &[u8]) {
    let Some(header) = FrameHeader::parse(stream) else {
        assert!(stream.len() < 4 && split_frame(stream).is_none());
        return;
    };
    assert_eq!(header.encode()[..], stream[..4]);
    match split_frame(stream) {
        Some((again, payload, rest)) => {
            assert_eq!((again, payload.len()), (header, header.payload_len));
            assert_eq!([&stream[..4], payload, rest].concat(), stream);
        }
        None => assert!(stream.len() < 4 + header.payload_len),
    }
}

/// How much is consumed in all, and whether that is the whole packet.
fn fed(stream: &[u8], cut: Cut, mut feed: impl FnMut(&[u8]) -> Skipped) -> (usize, bool) {
    // A packet without a rest is done at once, with nothing.
    let mut last = feed(&[]);
    let mut consumed = last.consumed;
    for piece in cuts(stream, cut) {
        last = feed(piece);
        consumed += last.consumed;
        assert!(last.done || last.consumed == piece.len(), "what is not over takes everything");
    }
    (consumed, last.done)
}

/// The same of one packet, read in one go.
fn packet(stream: &[u8], start: Option<(FrameHeader, usize)>) -> (usize, bool) {
    let (mut at, mut goes_on) = match start {
        None => (0, true),
        Some((header, left)) => (left, header.continues()),
    };
    while goes_on {
        let Some(header) = stream.get(at..).and_then(FrameHeader::parse) else {
            return (stream.len(), false);
        };
        at += 4 + header.payload_len;
        goes_on = header.continues();
    }
    (at.min(stream.len()), at <= stream.len())
}

/// The same of packets until the first empty one.
fn upload(stream: &[u8]) -> (usize, bool) {
    let mut at = 0;
    loop {
        let rest = stream.get(at..).unwrap_or_default();
        let is_empty = FrameHeader::parse(rest).is_some_and(|header| header.payload_len == 0);
        let (len, done) = packet(rest, None);
        at += len;
        if !done || is_empty {
            return (at, done);
        }
    }
}
