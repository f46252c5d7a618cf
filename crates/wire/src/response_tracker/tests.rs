//! Responses of both servers, whole and cut everywhere, followed by bytes that are not theirs.

#![expect(clippy::arithmetic_side_effects, reason = "lengths of test data")]

mod asked;
mod script;
mod value;

use super::*;
use crate::capability::{
    CLIENT_DEPRECATE_EOF, CLIENT_OPTIONAL_RESULTSET_METADATA, CLIENT_SESSION_TRACK,
    MARIADB_CLIENT_CACHE_METADATA,
};
use crate::frame::MAX_PAYLOAD_LEN;

use script::{Metadata, Script, check, every_dialect, follow};

const AUTOCOMMIT: u16 = 0x0002;
const IN_TRANS: u16 = 0x0001;
const MORE: u16 = 0x0008;
const CURSOR: u16 = 0x0040;
const LAST_ROW: u16 = 0x0080;
const OUT_PARAMS: u16 = 0x1000;
const CHANGED: u16 = 0x4000;

fn end(status: u16) -> ResponseEnd {
    ResponseEnd { status: Some(StatusFlags(status)), ..ResponseEnd::default() }
}

fn error(code: u16) -> ResponseEnd {
    ResponseEnd { error: Some(code), ..ResponseEnd::default() }
}

#[test]
fn a_command_without_an_answer_is_idle_at_once() {
    let mut tracker = ResponseTracker::new(Capabilities::default());
    tracker.begin(Expect::Nothing);
    assert!(tracker.is_idle());
    let fed = tracker.feed(b"\x07\0\0\x01\0\0\0\x02\0\0\0").unwrap();
    assert_eq!(fed, Fed { consumed: 0, progress: Progress::More });
}

#[test]
fn an_ok_ends_one_packet_answers_and_statements() {
    for (caps, _) in every_dialect() {
        for expect in [Expect::OnePacket, Expect::ResultSets, Expect::Eof, Expect::Auth] {
            let script = Script::new(caps).ok(3, IN_TRANS | AUTOCOMMIT);
            let expected = ResponseEnd { affected_rows: 3, ..end(IN_TRANS | AUTOCOMMIT) };
            check(expect, &script, expected);
        }
    }
}

#[test]
fn an_error_ends_every_response() {
    for (caps, _) in every_dialect() {
        for expect in [
            Expect::OnePacket,
            Expect::ResultSets,
            Expect::Prepare,
            Expect::FieldList,
            Expect::Fetch,
            Expect::Eof,
            Expect::BinlogStream,
            Expect::Opaque,
            Expect::Auth,
        ] {
            check(expect, &Script::new(caps).err(1064), error(1064));
        }
        let bare = Script::new(caps).packet(b"\xff\x10\x04Too many connections");
        check(Expect::OnePacket, &bare, error(1040));
    }
}

#[test]
fn an_eof_ends_one_packet_answers() {
    for (caps, _) in every_dialect() {
        for expect in [Expect::OnePacket, Expect::Eof] {
            check(expect, &Script::new(caps).end_of_rows(AUTOCOMMIT), end(AUTOCOMMIT));
            check(expect, &Script::new(caps).eof(AUTOCOMMIT), end(AUTOCOMMIT));
        }
    }
}

#[test]
fn a_result_set_ends_behind_its_rows() {
    for (caps, metadata) in every_dialect() {
        for rows in
            [&[][..], &[&b"\x011"[..]], &[b"\xfb", b"\x00", b"\x00\x00\x07", b"\xfc\x01\x00a"]]
        {
            let script = Script::new(caps).columns(2, metadata).rows(rows).end_of_rows(AUTOCOMMIT);
            check(Expect::ResultSets, &script, end(AUTOCOMMIT));
        }
    }
}

#[test]
fn warnings_of_all_results_are_counted() {
    for (caps, metadata) in every_dialect() {
        let mut script = Script::new(caps).columns(1, metadata).rows(&[b"\x011"]);
        script = match caps.deprecate_eof() {
            true => script.packet(&[0xfe, 0, 0, 0x0a, 0, 3, 0]),
            false => script.packet(&[0xfe, 3, 0, 0x0a, 0]),
        };
        script = script.packet(&[0x00, 5, 0, 0x02, 0, 0, 1]);
        script.ends = vec![AUTOCOMMIT | MORE, AUTOCOMMIT];
        let expected = ResponseEnd { affected_rows: 5, warnings: 259, ..end(AUTOCOMMIT) };
        check(Expect::ResultSets, &script, expected);
    }
}

#[test]
fn many_columns_are_counted() {
    for (caps, metadata) in every_dialect() {
        let script = Script::new(caps).columns(300, metadata).rows(&[b"\x011"]).end_of_rows(0);
        check(Expect::ResultSets, &script, end(0));
    }
}

#[test]
fn an_error_can_stand_for_any_packet_of_a_result_set() {
    for (caps, metadata) in every_dialect() {
        let script = Script::new(caps).columns(1, metadata).rows(&[b"\x011"]).err(1317);
        check(Expect::ResultSets, &script, error(1317));
        let script = Script::new(caps).columns(1, metadata).err(1028);
        check(Expect::ResultSets, &script, error(1028));
        let script = Script::new(caps).packet(b"\x02").packet(b"\x03def").err(1028);
        if metadata == Metadata::Unflagged {
            check(Expect::ResultSets, &script, error(1028));
        }
    }
}

#[test]
fn results_follow_while_more_are_announced() {
    for (caps, metadata) in every_dialect() {
        let script = Script::new(caps)
            .ok(2, AUTOCOMMIT | MORE)
            .columns(1, metadata)
            .rows(&[b"\x011"])
            .end_of_rows(AUTOCOMMIT | MORE)
            .ok(5, IN_TRANS);
        check(Expect::ResultSets, &script, ResponseEnd { affected_rows: 7, ..end(IN_TRANS) });
        let failed = Script::new(caps).ok(2, AUTOCOMMIT | MORE).err(1062);
        check(Expect::ResultSets, &failed, ResponseEnd { affected_rows: 2, ..error(1062) });
    }
}

#[test]
fn out_parameters_are_followed_by_the_final_ok() {
    for (caps, metadata) in every_dialect() {
        let status = OUT_PARAMS | MORE | AUTOCOMMIT;
        // MySQL without DEPRECATE_EOF says so in front of the row only.
        let behind = if caps.deprecate_eof() { status } else { AUTOCOMMIT };
        let script = Script::new(caps)
            .columns_with_status(1, metadata, status)
            .rows(&[b"\0\0\x07"])
            .end_of_rows(behind)
            .ok(0, AUTOCOMMIT);
        check(Expect::Execution(Cursor::NotAsked), &script, end(AUTOCOMMIT));
    }
}

#[test]
fn rows_are_fetched_until_an_eof() {
    for (caps, _) in every_dialect() {
        let row: &[u8] = b"\0\0\x07";
        let script = Script::new(caps).rows(&[row, row]).end_of_rows(CURSOR);
        check(Expect::Fetch, &script, ResponseEnd { cursor_open: true, ..end(CURSOR) });
        let script = Script::new(caps).rows(&[row]).end_of_rows(LAST_ROW);
        check(Expect::Fetch, &script, end(LAST_ROW));
        let script = Script::new(caps).end_of_rows(CURSOR | LAST_ROW);
        check(Expect::Fetch, &script, end(CURSOR | LAST_ROW));
        check(Expect::Fetch, &Script::new(caps).rows(&[row]).err(1317), error(1317));
    }
}

#[test]
fn columns_are_listed_until_an_eof() {
    for (caps, _) in every_dialect() {
        let script = Script::new(caps).packet(b"\x03def\x01a").packet(b"\x03def\x01b");
        check(Expect::FieldList, &script.clone().end_of_rows(0), end(0));
        check(Expect::FieldList, &script.err(1146), error(1146));
        check(Expect::FieldList, &Script::new(caps).end_of_rows(0), end(0));
    }
}

#[test]
fn statistics_are_one_packet_of_any_kind() {
    for (caps, _) in every_dialect() {
        for bytes in [&b"Uptime: 1"[..], b"\0abcdefghij", b"\xfeabcd", b""] {
            check(Expect::Statistics, &Script::new(caps).packet(bytes), ResponseEnd::default());
        }
    }
}

#[test]
fn a_prepared_statement_is_announced_with_its_definitions() {
    for (caps, metadata) in every_dialect() {
        for (params, columns) in [(0, 0), (2, 0), (0, 3), (300, 2)] {
            let script = Script::new(caps).prepare_ok(7, params, columns, metadata);
            let prepared = Prepared { statement_id: 7, num_params: params, num_columns: columns };
            let expected = ResponseEnd { prepared: Some(prepared), ..ResponseEnd::default() };
            check(Expect::Prepare, &script, expected);
        }
    }
}

#[test]
fn an_old_prepare_ok_without_warnings_is_understood() {
    let script = Script::new(Capabilities::default()).packet(b"\0\x07\0\0\0\0\0\0\0");
    let prepared = Prepared { statement_id: 7, num_params: 0, num_columns: 0 };
    let expected = ResponseEnd { prepared: Some(prepared), ..ResponseEnd::default() };
    check(Expect::Prepare, &script, expected);
}

#[test]
fn binlog_events_flow_until_an_eof() {
    for (caps, _) in every_dialect() {
        let events = Script::new(caps).packet(b"\0event").packet(b"\0\xefevent");
        check(Expect::BinlogStream, &events.clone().end_of_rows(0), end(0));
        check(Expect::BinlogStream, &events.clone().eof(0), end(0));
        check(Expect::BinlogStream, &events.err(1236), error(1236));
    }
}

#[test]
fn an_opaque_protocol_does_not_end() {
    let bytes = Script::new(Capabilities::default()).ok(0, 0).err(1064).eof(0).bytes();
    for chunk_len in 1..=bytes.len() {
        let mut tracker = ResponseTracker::new(Capabilities::default());
        tracker.begin(Expect::Opaque);
        for chunk in bytes.chunks(chunk_len) {
            let fed = tracker.feed(chunk).unwrap();
            assert_eq!(fed, Fed { consumed: chunk.len(), progress: Progress::More });
        }
        assert!(!tracker.is_idle());
    }
}

#[test]
fn authentication_goes_on_until_ok_or_err() {
    for (caps, _) in every_dialect() {
        let script = Script::new(caps)
            .packet(b"\xfecaching_sha2_password\0abcdefghijklmnopqrst\0")
            .packet(b"\x01\x04")
            .packet(b"\x02");
        check(Expect::Auth, &script.clone().ok(0, AUTOCOMMIT), end(AUTOCOMMIT));
        check(Expect::Auth, &script.err(1045), error(1045));
    }
}

#[test]
fn rows_of_16_mib_are_no_terminators() {
    for (caps, metadata) in every_dialect() {
        let mut row = b"\xfe\xfa\xff\xff\x01\0\0\0\0".to_vec();
        row.resize(MAX_PAYLOAD_LEN + 5, b'x');
        // The continuing frame begins like an EOF or an OK would.
        row[MAX_PAYLOAD_LEN] = 0xfe;
        let script = Script::new(caps).columns(1, metadata).rows(&[&row]).end_of_rows(AUTOCOMMIT);
        let bytes = script.bytes();
        for chunk_len in [bytes.len(), 4 * 1024 * 1024, 65_521] {
            let mut tracker = ResponseTracker::new(caps);
            tracker.begin(Expect::ResultSets);
            let progress = follow(&mut tracker, &bytes, chunk_len);
            assert_eq!(progress, Progress::End(ResponseEnd { rows: 1, ..end(AUTOCOMMIT) }));
        }
    }
}

#[test]
fn a_row_of_exactly_one_full_frame_is_one_row() {
    let caps = Capabilities { base: CLIENT_DEPRECATE_EOF, mariadb: 0 };
    let row = vec![b'x'; MAX_PAYLOAD_LEN];
    let script = Script::new(caps).rows(&[&row]).rows(&[b"\xfb"]).end_of_rows(0);
    let bytes = script.bytes();
    for chunk_len in [bytes.len(), 65_521] {
        let mut tracker = ResponseTracker::new(caps);
        tracker.begin(Expect::Fetch);
        let expected = ResponseEnd { rows: 2, ..end(0) };
        assert_eq!(follow(&mut tracker, &bytes, chunk_len), Progress::End(expected));
    }
}

#[test]
fn session_changes_are_kept_until_the_next_response() {
    let caps = Capabilities { base: CLIENT_SESSION_TRACK | CLIENT_DEPRECATE_EOF, mariadb: 0 };
    let changes: &[u8] = b"\x01\x05\x04shop\x00\x19\x14character_set_client\x03gbk";
    let script = Script::new(caps).ok_with_changes(0, AUTOCOMMIT | MORE, changes);
    let script = script.ok_with_changes(0, AUTOCOMMIT, b"\x01\x03\x02db");
    for chunk_len in 1..script.bytes().len() {
        let mut tracker = ResponseTracker::new(caps);
        tracker.begin(Expect::ResultSets);
        follow(&mut tracker, &script.bytes(), chunk_len);
        assert_eq!(tracker.schema(), Some(&b"db"[..]), "the last one counts");
        assert_eq!(tracker.charset_client(), Some(&b"gbk"[..]));
        assert!(!tracker.session_changes_cut());
        tracker.begin(Expect::OnePacket);
        assert_eq!((tracker.schema(), tracker.charset_client()), (None, None));
    }
}

#[test]
fn an_ok_longer_than_what_is_decoded_says_so() {
    let caps = Capabilities { base: CLIENT_SESSION_TRACK, mariadb: 0 };
    let mut changes = b"\x01\x05\x04shop\x03\xfd\0\0\x01".to_vec();
    changes.resize(changes.len() + 0x01_0000, b'g');
    changes.extend_from_slice(b"\x01\x03\x02db");
    let bytes = Script::new(caps).ok_with_changes(1, AUTOCOMMIT, &changes).bytes();
    for chunk_len in [1, 7, 4099, bytes.len()] {
        let mut tracker = ResponseTracker::new(caps);
        tracker.begin(Expect::ResultSets);
        let progress = follow(&mut tracker, &bytes, chunk_len);
        let expected = ResponseEnd { affected_rows: 1, ..end(AUTOCOMMIT | CHANGED) };
        assert_eq!(progress, Progress::End(expected));
        assert_eq!(tracker.schema(), Some(&b"shop"[..]));
        assert!(tracker.session_changes_cut());
    }
}

#[test]
fn a_packet_that_cannot_stand_where_it_does_stops_the_tracker() {
    let eof_style = Capabilities::default();
    let cases: &[(Expect, &[&[u8]])] = &[
        (Expect::ResultSets, &[b""]),
        (Expect::ResultSets, &[b"\0\0\0"]),
        (Expect::ResultSets, &[b"\xfe"]),
        (Expect::ResultSets, &[b"\xfc\x01"]),
        (Expect::ResultSets, &[b"\x01", b"\x03def", b"\x011"]),
        (Expect::ResultSets, &[b"\x01", b"\x03def", b"\xfe\0"]),
        (Expect::Prepare, &[b"\x01"]),
        (Expect::Prepare, &[b"\0\x01\0\0"]),
        (Expect::OnePacket, &[b""]),
        (Expect::OnePacket, &[b"\x07"]),
        (Expect::OnePacket, &[b"\xff\x01"]),
    ];
    for (expect, packets) in cases {
        let bytes =
            packets.iter().fold(Script::new(eof_style), |script, p| script.packet(p)).bytes();
        let mut whole = ResponseTracker::new(eof_style);
        whole.begin(*expect);
        let error = whole.feed(&bytes).unwrap_err();
        assert_eq!(error.peer(), crate::Peer::Backend);
        assert_eq!(whole.feed(b"\x07"), Err(error), "it stays stopped");
        let mut cut = ResponseTracker::new(eof_style);
        cut.begin(*expect);
        let (last, before) = bytes.split_last().unwrap();
        for byte in before {
            assert!(cut.feed(&[*byte]).is_ok());
        }
        assert_eq!(cut.feed(&[*last]), Err(error));
    }
}

#[test]
fn metadata_flags_are_read_only_when_agreed() {
    // Without the flag a second byte of the count packet means nothing.
    let script = Script::new(Capabilities::default()).packet(b"\x01\0");
    let script = script.packet(b"\x03def").eof(0).end_of_rows(0);
    check(Expect::ResultSets, &script, end(0));
    for (base, mariadb) in
        [(CLIENT_OPTIONAL_RESULTSET_METADATA, 0), (0, MARIADB_CLIENT_CACHE_METADATA)]
    {
        // Agreed, but not there: definitions follow.
        let caps = Capabilities { base, mariadb };
        let script = Script::new(caps).packet(b"\x01").packet(b"\x03def").eof(0);
        check(Expect::ResultSets, &script.end_of_rows(0), end(0));
    }
}

#[test]
fn a_tracker_follows_one_response_after_the_other_in_one_read() {
    let caps = Capabilities { base: CLIENT_DEPRECATE_EOF, mariadb: 0 };
    let first = Script::new(caps).columns(1, Metadata::Unflagged).rows(&[b"\x011"]);
    let first = first.end_of_rows(AUTOCOMMIT).bytes();
    let second = Script::new(caps).err(1064).bytes();
    let both = [&first[..], &second].concat();
    let mut tracker = ResponseTracker::new(caps);
    tracker.begin(Expect::ResultSets);
    let fed = tracker.feed(&both).unwrap();
    let expected = ResponseEnd { rows: 1, ..end(AUTOCOMMIT) };
    assert_eq!(fed, Fed { consumed: first.len(), progress: Progress::End(expected) });
    assert!(tracker.is_idle() && tracker.at_frame_boundary());
    assert_eq!(tracker.last_sequence(), 4);
    tracker.begin(Expect::ResultSets);
    assert!(!tracker.is_idle());
    let fed = tracker.feed(&both[fed.consumed..]).unwrap();
    assert_eq!(fed, Fed { consumed: second.len(), progress: Progress::End(error(1064)) });
    assert_eq!(tracker.last_sequence(), 1);
}

#[test]
fn a_cut_frame_is_not_a_boundary() {
    let mut tracker = ResponseTracker::new(Capabilities::default());
    tracker.begin(Expect::OnePacket);
    let bytes = Script::new(Capabilities::default()).ok(0, 0).bytes();
    assert!(tracker.at_frame_boundary());
    for byte in &bytes[..bytes.len() - 1] {
        assert_eq!(tracker.feed(&[*byte]).unwrap().progress, Progress::More);
        assert!(!tracker.at_frame_boundary());
    }
}
