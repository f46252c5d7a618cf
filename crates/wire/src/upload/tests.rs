//! Uploads and skipped commands, at every cut.

use super::*;
use crate::frame::MAX_PAYLOAD_LEN;

#[test]
fn an_upload_ends_with_its_empty_packet() {
    let bytes = b"\x03\0\0\x02abc\x01\0\0\x03d\0\0\0\x04\x01\0\0\0\x0e";
    for chunk_len in 1..=bytes.len() {
        let mut upload = UploadTracker::new();
        let mut consumed: usize = 0;
        let mut done = false;
        for chunk in bytes.chunks(chunk_len) {
            let skipped = upload.feed(chunk);
            consumed = consumed.saturating_add(skipped.consumed);
            assert!(!done || skipped.consumed == 0, "nothing behind the end belongs to it");
            done = skipped.done;
        }
        assert!(done);
        assert_eq!((consumed, upload.last_sequence()), (16, 4));
    }
}

#[test]
fn an_upload_of_nothing_is_over_at_once() {
    let mut upload = UploadTracker::default();
    assert_eq!(upload.feed(b"\0\0\0\x02"), Skipped { consumed: 4, done: true });
}

#[test]
fn the_empty_frame_behind_a_full_one_does_not_end_an_upload() {
    let mut bytes = b"\xff\xff\xff\x02".to_vec();
    bytes.resize(MAX_PAYLOAD_LEN + 4, 0);
    bytes.extend_from_slice(b"\0\0\0\x03");
    let mut upload = UploadTracker::new();
    assert_eq!(upload.feed(&bytes), Skipped { consumed: bytes.len(), done: false });
    assert_eq!(upload.feed(b"\0\0\0\x04"), Skipped { consumed: 4, done: true });
}

#[test]
fn a_packet_is_skipped_with_its_continuing_frames() {
    let mut bytes = b"\xff\xff\xff\xff".to_vec();
    bytes.resize(MAX_PAYLOAD_LEN + 4, 0);
    bytes.extend_from_slice(b"\x02\0\0\0xy\x01\0\0\0\x0e");
    let packet_len = MAX_PAYLOAD_LEN + 10;
    for chunk_len in [5, 4096, 65_537, bytes.len()] {
        let mut skipper = FrameSkipper::new();
        let consumed: usize =
            bytes.chunks(chunk_len).map(|chunk| skipper.feed(chunk).consumed).sum();
        assert_eq!(consumed, packet_len);
        assert_eq!(skipper.last_sequence(), 0, "sequence ids wrap");
        assert_eq!(skipper.feed(b"more"), Skipped { consumed: 0, done: true });
    }
}

#[test]
fn skipping_can_start_within_a_frame() {
    let header = FrameHeader { payload_len: 10, sequence: 7 };
    let mut skipper = FrameSkipper::within(header, 3);
    assert_eq!(skipper.feed(b"ab"), Skipped { consumed: 2, done: false });
    assert_eq!(skipper.feed(b"cd"), Skipped { consumed: 1, done: true });
    assert_eq!(skipper.last_sequence(), 7);
    let mut nothing_left = FrameSkipper::within(header, 0);
    assert_eq!(nothing_left.feed(b""), Skipped { consumed: 0, done: true });
    let full = FrameHeader { payload_len: MAX_PAYLOAD_LEN, sequence: 0 };
    let mut continued = FrameSkipper::within(full, 1);
    assert_eq!(continued.feed(b"a\x01\0\0\x01bc"), Skipped { consumed: 6, done: true });
    assert_eq!(continued.last_sequence(), 1);
}
