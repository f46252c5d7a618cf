//! Writes responses as a server would, and follows them at every cut.

use super::super::*;
use crate::capability::{
    CLIENT_DEPRECATE_EOF, CLIENT_OPTIONAL_RESULTSET_METADATA, MARIADB_CLIENT_CACHE_METADATA,
};
use crate::frame::FrameWriter;

/// What the byte behind a column count says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Metadata {
    /// There is no such byte.
    Unflagged,
    /// Definitions follow.
    Full,
    /// Definitions are left out.
    LeftOut,
}

/// Both EOF styles, with no flag and both servers' flags, definitions sent and left out.
pub(super) fn every_dialect() -> Vec<(Capabilities, Metadata)> {
    let mut dialects = Vec::new();
    for eof in [0, CLIENT_DEPRECATE_EOF] {
        let optional = Capabilities { base: eof | CLIENT_OPTIONAL_RESULTSET_METADATA, mariadb: 0 };
        let cached = Capabilities { base: eof, mariadb: MARIADB_CLIENT_CACHE_METADATA };
        dialects.push((Capabilities { base: eof, mariadb: 0 }, Metadata::Unflagged));
        for metadata in [Metadata::Full, Metadata::LeftOut] {
            dialects.push((optional, metadata));
            dialects.push((cached, metadata));
        }
    }
    dialects
}

/// The bytes of one response.
#[derive(Debug, Clone)]
pub(super) struct Script {
    caps: Capabilities,
    bytes: Vec<u8>,
    sequence: u8,
    /// Rows that the response has told.
    row_count: u64,
    /// Flags at the end of each result.
    pub(super) ends: Vec<u16>,
}

impl Script {
    pub(super) fn new(caps: Capabilities) -> Self {
        Self { caps, bytes: Vec::new(), sequence: 0, row_count: 0, ends: Vec::new() }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    pub(super) fn packet(mut self, payload: &[u8]) -> Self {
        self.sequence = self.sequence.wrapping_add(1);
        FrameWriter::new(&mut self.bytes, payload.len(), self.sequence).push(payload);
        self
    }

    pub(super) fn ok(mut self, affected_rows: u8, status: u16) -> Self {
        self.ends.push(status);
        let [low, high] = status.to_le_bytes();
        self.packet(&[0x00, affected_rows, 0, low, high, 0, 0])
    }

    pub(super) fn ok_with_changes(self, affected_rows: u8, status: u16, changes: &[u8]) -> Self {
        let [low, high] = (status | 0x4000).to_le_bytes();
        let [a, b, c, ..] = changes.len().to_le_bytes();
        let head = [0x00, affected_rows, 0, low, high, 0, 0, 0, 0xfd, a, b, c];
        self.packet(&[&head[..], changes].concat())
    }

    pub(super) fn err(self, code: u16) -> Self {
        let [low, high] = code.to_le_bytes();
        self.packet(&[&[0xff, low, high][..], b"#HY000failed"].concat())
    }

    pub(super) fn eof(self, status: u16) -> Self {
        let [low, high] = status.to_le_bytes();
        self.packet(&[0xfe, 0, 0, low, high])
    }

    /// EOF, or an OK in its place.
    pub(super) fn end_of_rows(mut self, status: u16) -> Self {
        self.ends.push(status);
        if !self.caps.deprecate_eof() {
            return self.eof(status);
        }
        let [low, high] = status.to_le_bytes();
        self.packet(&[0xfe, 0, 0, low, high, 0, 0])
    }

    pub(super) fn columns(self, count: u16, metadata: Metadata) -> Self {
        self.columns_with_status(count, metadata, 0)
    }

    /// Count, flag, definitions, and the EOF behind them with `status`.
    pub(super) fn columns_with_status(
        mut self,
        count: u16,
        metadata: Metadata,
        status: u16,
    ) -> Self {
        let [low, high] = count.to_le_bytes();
        let mut head = if high == 0 && low < 0xfb { vec![low] } else { vec![0xfc, low, high] };
        match metadata {
            Metadata::Unflagged => {}
            Metadata::Full => head.push(1),
            Metadata::LeftOut => head.push(0),
        }
        self = self.packet(&head);
        self.definitions(count, metadata, status)
    }

    pub(super) fn rows(mut self, rows: &[&[u8]]) -> Self {
        self.row_count += u64::try_from(rows.len()).unwrap();
        rows.iter().fold(self, |script, row| script.packet(row))
    }

    pub(super) fn prepare_ok(
        self,
        statement_id: u32,
        params: u16,
        columns: u16,
        metadata: Metadata,
    ) -> Self {
        let mut head = vec![0x00];
        head.extend_from_slice(&statement_id.to_le_bytes());
        head.extend_from_slice(&columns.to_le_bytes());
        head.extend_from_slice(&params.to_le_bytes());
        head.extend_from_slice(&[0, 0, 0]);
        // Only MySQL leaves out the definitions of a PREPARE.
        let optional = self.caps.has(CLIENT_OPTIONAL_RESULTSET_METADATA);
        let metadata = if optional { metadata } else { Metadata::Full };
        if optional {
            head.push(u8::from(metadata == Metadata::Full));
        }
        let mut script = self.packet(&head);
        for count in [params, columns] {
            if count > 0 {
                script = script.definitions(count, metadata, 0);
            }
        }
        script
    }

    /// Sends one column of another type than INT.
    pub(super) fn column_of(mut self, metadata: Metadata, kind: u8, flags: u16) -> Self {
        self = self.packet(match metadata {
            Metadata::Unflagged => b"\x01",
            Metadata::Full => b"\x01\x01",
            Metadata::LeftOut => b"\x01\x00",
        });
        if metadata != Metadata::LeftOut {
            self = self.packet(&definition(kind, flags));
        }
        if self.caps.deprecate_eof() { self } else { self.eof(0) }
    }

    fn definitions(mut self, count: u16, metadata: Metadata, status: u16) -> Self {
        if metadata != Metadata::LeftOut {
            for _ in 0..count {
                self = self.packet(&definition(0x03, 0));
            }
        }
        if self.caps.deprecate_eof() { self } else { self.eof(status) }
    }
}

fn definition(kind: u8, flags: u16) -> Vec<u8> {
    let [low, high] = flags.to_le_bytes();
    let fixed = [0x0c, 0x3f, 0, 0x0b, 0, 0, 0, kind, low, high, 0, 0, 0];
    [&b"\x03def\x04shop\x01t\x01t\x01a\x01a"[..], &fixed].concat()
}

/// Feeds a response in chunks of `chunk_len` and returns what it led to.
pub(super) fn follow(tracker: &mut ResponseTracker, bytes: &[u8], chunk_len: usize) -> Progress {
    let mut consumed = 0;
    for chunk in bytes.chunks(chunk_len) {
        let fed = tracker.feed(chunk).unwrap();
        consumed += fed.consumed;
        match fed.progress {
            Progress::More => assert_eq!(fed.consumed, chunk.len()),
            halt @ (Progress::LocalInfile | Progress::End(_)) => {
                assert_eq!(consumed, bytes.len(), "the response ends with its last byte");
                return halt;
            }
        }
    }
    panic!("the response did not end");
}

/// Follows a response whole with other bytes behind it, then at many cuts.
pub(super) fn check(expect: Expect, script: &Script, expected: ResponseEnd) {
    check_begun(script, expected, |tracker| tracker.begin(expect));
}

/// The same, of a response whose value is watched for.
pub(super) fn check_watched(expect: Expect, script: &Script, expected: ResponseEnd) {
    check_begun(script, expected, |tracker| {
        tracker.begin(expect);
        tracker.watch_value();
    });
}

fn check_begun(script: &Script, expected: ResponseEnd, begin: impl Fn(&mut ResponseTracker)) {
    let bytes = script.bytes();
    // The last one is the end itself, unless that was an error.
    let ahead = match script.ends.split_last() {
        Some((_, ahead)) if expected.error.is_none() => ahead,
        Some(_) | None => &script.ends,
    };
    let expected = ResponseEnd {
        rows: script.row_count,
        results_ahead: u32::try_from(ahead.len()).unwrap(),
        status_ahead: ahead.last().copied().map(StatusFlags),
        ..expected
    };
    let mut tracker = ResponseTracker::new(script.caps);
    begin(&mut tracker);
    let followed = [&bytes[..], b"\x01\0\0\x01\xff\xff\xff\xff\xff"].concat();
    let fed = tracker.feed(&followed).unwrap();
    assert_eq!(fed.progress, Progress::End(expected), "{script:?}");
    assert_eq!(fed.consumed, bytes.len());
    assert_eq!(tracker.last_sequence(), script.sequence);
    assert!(tracker.is_idle() && tracker.at_frame_boundary());
    for chunk_len in [1, 2, 3, 4, 5, 7, 11, 64] {
        begin(&mut tracker);
        assert_eq!(follow(&mut tracker, &bytes, chunk_len), Progress::End(expected));
        assert_eq!(tracker.last_sequence(), script.sequence);
    }
    for cut in 1..bytes.len().min(200) {
        begin(&mut tracker);
        let (before, after) = bytes.split_at(cut);
        let fed = tracker.feed(before).unwrap();
        assert_eq!(fed, Fed { consumed: cut, progress: Progress::More });
        assert_eq!(follow(&mut tracker, after, after.len()), Progress::End(expected));
    }
}
