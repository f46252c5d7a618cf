//! The only value of a response, in both formats, in every dialect, at every cut.

use super::super::*;
use super::script::{Metadata, Script, check, check_watched, every_dialect};
use super::{AUTOCOMMIT, CURSOR, MORE, OUT_PARAMS, end, error};

const EXECUTION: Expect = Expect::Execution(Cursor::NotAsked);
const TINY: u8 = 0x01;
const SHORT: u8 = 0x02;
const LONG: u8 = 0x03;
const DOUBLE: u8 = 0x05;
const LONGLONG: u8 = 0x08;
const YEAR: u8 = 0x0d;
const VAR_STRING: u8 = 0xfd;
const UNSIGNED: u16 = 0x20;

fn holding(value: Option<i64>) -> ResponseEnd {
    ResponseEnd { only_value: value.map(OnlyValue::Integer), ..end(AUTOCOMMIT) }
}

#[test]
fn the_only_value_of_a_text_row_is_read() {
    let rows: [(&[u8], Option<i64>); 11] = [
        (b"\x011", Some(1)),
        (b"\x010", Some(0)),
        (b"\x02-7", Some(-7)),
        (b"\x139223372036854775807", Some(i64::MAX)),
        (b"\x139223372036854775808", None),
        (b"\x00", None),
        (b"\x031.0", None),
        (b"\x02+1", None),
        (b"\x02 1", None),
        (b"\x021", None),
        (b"\x011\x011", None),
    ];
    for (caps, metadata) in every_dialect() {
        for (row, value) in rows {
            let script = Script::new(caps).columns(1, metadata).rows(&[row]);
            let script = script.end_of_rows(AUTOCOMMIT);
            check_watched(Expect::ResultSets, &script, holding(value));
            check(Expect::ResultSets, &script, holding(None));
        }
    }
}

#[test]
fn the_only_value_of_a_binary_row_is_read_by_its_type() {
    let rows: [(u8, u16, &[u8], Option<i64>); 14] = [
        (LONGLONG, 0, b"\0\0\x01\0\0\0\0\0\0\0", Some(1)),
        (LONGLONG, 0, b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
        (LONGLONG, UNSIGNED, b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff", None),
        (LONGLONG, 0, b"\0\0\x01\0\0\0", None),
        (LONG, 0, b"\0\0\xff\xff\xff\xff", Some(-1)),
        (LONG, UNSIGNED, b"\0\0\xff\xff\xff\xff", Some(0xffff_ffff)),
        (LONG, 0, b"\x01\0\xff\xff\xff\xff", None),
        (SHORT, 0, b"\0\0\xfe\xff", Some(-2)),
        (YEAR, UNSIGNED, b"\0\0\xfe\xff", Some(0xfffe)),
        (TINY, 0, b"\0\0\x80", Some(-128)),
        (TINY, UNSIGNED, b"\0\0\x80", Some(128)),
        // Denormal, it would be a 1 if it were an integer.
        (DOUBLE, 0, b"\0\0\x01\0\0\0\0\0\0\0", None),
        (VAR_STRING, 0, b"\0\0\x011", None),
        (LONGLONG, 0, b"\0", None),
    ];
    for (caps, metadata) in every_dialect() {
        for (kind, flags, row, value) in rows {
            let script = Script::new(caps).column_of(metadata, kind, flags).rows(&[row]);
            let script = script.end_of_rows(AUTOCOMMIT);
            // A row whose type was not sent could be anything.
            let known = value.filter(|_| metadata != Metadata::LeftOut);
            check_watched(EXECUTION, &script, holding(known));
            check(EXECUTION, &script, holding(None));
        }
    }
}

#[test]
fn a_value_among_others_is_none() {
    for (caps, metadata) in every_dialect() {
        let one = |script: Script, status| {
            script.columns(1, metadata).rows(&[b"\x011"]).end_of_rows(status)
        };
        let script = || Script::new(caps);
        let none = [
            script().columns(1, metadata).end_of_rows(AUTOCOMMIT),
            script().columns(1, metadata).rows(&[b"\x011", b"\x011"]).end_of_rows(AUTOCOMMIT),
            script().columns(1, metadata).rows(&[b"\xfb", b"\x011"]).end_of_rows(AUTOCOMMIT),
            script().columns(2, metadata).rows(&[b"\x011\x011"]).end_of_rows(AUTOCOMMIT),
            script().columns(2, metadata).rows(&[b"\x011"]).end_of_rows(AUTOCOMMIT),
            one(one(script(), MORE), AUTOCOMMIT),
            one(script(), MORE).ok(0, AUTOCOMMIT),
            one(script().ok(0, MORE), AUTOCOMMIT),
            one(script().columns(1, metadata).end_of_rows(MORE), AUTOCOMMIT),
            script().ok(0, AUTOCOMMIT),
        ];
        for script in none {
            check_watched(Expect::ResultSets, &script, holding(None));
        }
        let failed = script().columns(1, metadata).rows(&[b"\x011"]).err(1317);
        check_watched(Expect::ResultSets, &failed, error(1317));
    }
}

#[test]
fn null_is_a_value() {
    let null = ResponseEnd { only_value: Some(OnlyValue::Null), ..end(AUTOCOMMIT) };
    for (caps, metadata) in every_dialect() {
        for (expect, row) in [(Expect::ResultSets, &b"\xfb"[..]), (EXECUTION, b"\0\x04")] {
            let script = Script::new(caps).columns(1, metadata).rows(&[row]);
            check_watched(expect, &script.end_of_rows(AUTOCOMMIT), null);
        }
    }
}

#[test]
fn a_value_longer_than_what_is_kept_is_none() {
    for (caps, metadata) in every_dialect() {
        let mut row = b"\xfc\x00\x20".to_vec();
        row.resize(0x2003, b'1');
        let script = Script::new(caps).columns(1, metadata).rows(&[&row]);
        check_watched(Expect::ResultSets, &script.end_of_rows(AUTOCOMMIT), holding(None));
    }
}

#[test]
fn an_execution_whose_rows_come_later_or_are_parameters_has_no_only_value() {
    for (caps, metadata) in every_dialect() {
        let cursor = match caps.deprecate_eof() {
            true => Script::new(caps).columns(1, metadata).end_of_rows(CURSOR),
            false => Script::new(caps).columns_with_status(1, metadata, CURSOR),
        };
        let expected = ResponseEnd { cursor_open: true, ..end(CURSOR) };
        check_watched(Expect::Execution(Cursor::Asked), &cursor, expected);
        let parameters = Script::new(caps)
            .columns_with_status(1, metadata, OUT_PARAMS | MORE)
            .rows(&[b"\0\0\x01\0\0\0"])
            .end_of_rows(OUT_PARAMS | MORE)
            .ok(0, AUTOCOMMIT);
        check_watched(EXECUTION, &parameters, holding(None));
    }
}

#[test]
fn the_next_response_is_not_watched() {
    let caps = Capabilities::default();
    let script = Script::new(caps).columns(1, Metadata::Unflagged).rows(&[b"\x011"]);
    let bytes = script.end_of_rows(AUTOCOMMIT).bytes();
    let one_row = |value| ResponseEnd { rows: 1, ..holding(value) };
    let mut tracker = ResponseTracker::new(caps);
    tracker.begin(Expect::ResultSets);
    tracker.watch_value();
    assert_eq!(tracker.feed(&bytes).unwrap().progress, Progress::End(one_row(Some(1))));
    tracker.begin(Expect::ResultSets);
    assert_eq!(tracker.feed(&bytes).unwrap().progress, Progress::End(one_row(None)));
}

#[test]
fn a_value_is_watched_for_only_where_there_are_results() {
    let caps = Capabilities::default();
    for expect in [Expect::OnePacket, Expect::Eof, Expect::Auth] {
        check_watched(expect, &Script::new(caps).ok(0, AUTOCOMMIT), end(AUTOCOMMIT));
    }
    let rows = Script::new(caps).rows(&[b"\0\0\x01\0\0\0"]).end_of_rows(AUTOCOMMIT);
    check_watched(Expect::Fetch, &rows, end(AUTOCOMMIT));
}
