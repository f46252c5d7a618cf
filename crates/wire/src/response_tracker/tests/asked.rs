//! What an answer means by what was asked and agreed: cursors, local files, progress.

use super::super::*;
use super::script::{Metadata, Script, check, every_dialect, follow};
use super::{AUTOCOMMIT, CURSOR, MORE, end, error};
use crate::capability::{CLIENT_LOCAL_FILES, CLIENT_PROGRESS_OBSOLETE, MARIADB_CLIENT_PROGRESS};

#[test]
fn an_open_cursor_sends_no_rows() {
    for (caps, metadata) in every_dialect() {
        let script = Script::new(caps);
        let script = if caps.deprecate_eof() {
            script.columns(2, metadata).end_of_rows(CURSOR | AUTOCOMMIT)
        } else {
            script.columns_with_status(2, metadata, CURSOR | AUTOCOMMIT)
        };
        let expected = ResponseEnd { cursor_open: true, ..end(CURSOR | AUTOCOMMIT) };
        check(Expect::Execution(Cursor::Asked), &script, expected);
    }
}

#[test]
fn rows_follow_a_cursor_flag_that_nobody_asked_for() {
    for (caps, metadata) in every_dialect() {
        // As of a stored function that had a cursor of its own.
        let status = CURSOR | AUTOCOMMIT;
        for expect in [Expect::ResultSets, Expect::Execution(Cursor::NotAsked)] {
            let script = Script::new(caps)
                .columns_with_status(2, metadata, status)
                .rows(&[b"\xfb\xfb", b"\xfb\x011"])
                .end_of_rows(status);
            check(expect, &script, end(status));
        }
    }
}

#[test]
fn a_statement_for_which_no_cursor_was_opened_sends_its_rows() {
    for (caps, metadata) in every_dialect() {
        let script = Script::new(caps).columns(1, metadata).rows(&[b"\0\0\x07"]);
        let script = script.end_of_rows(AUTOCOMMIT);
        check(Expect::Execution(Cursor::Asked), &script, end(AUTOCOMMIT));
        check(Expect::Execution(Cursor::Asked), &Script::new(caps).ok(0, 0), end(0));
    }
}

#[test]
fn an_ok_in_the_place_of_the_eof_behind_definitions_ends_an_execution() {
    let caps = Capabilities::default();
    let columns = [&b"\x01"[..], b"\x03def"];
    let script = columns.iter().fold(Script::new(caps), |script, packet| script.packet(packet));
    let script = script.ok(0, AUTOCOMMIT);
    for expect in [Expect::Execution(Cursor::NotAsked), Expect::Execution(Cursor::Asked)] {
        check(expect, &script, end(AUTOCOMMIT));
    }
    let mut tracker = ResponseTracker::new(caps);
    tracker.begin(Expect::ResultSets);
    assert!(tracker.feed(&script.bytes()).is_err(), "of a text it is no answer");
}

#[test]
fn a_procedure_whose_cursor_is_open_sends_its_rows_also_when_a_cursor_was_asked_for() {
    for (caps, metadata) in every_dialect() {
        let status = CURSOR | MORE;
        let script = Script::new(caps)
            .columns_with_status(1, metadata, status)
            .rows(&[b"\0\0\x07"])
            .end_of_rows(status)
            .ok(0, AUTOCOMMIT);
        check(Expect::Execution(Cursor::Asked), &script, end(AUTOCOMMIT));
    }
}

#[test]
fn a_local_file_is_asked_for_only_where_that_was_agreed() {
    let caps = Capabilities { base: CLIENT_LOCAL_FILES, mariadb: 0 };
    let cases = [
        (Capabilities::default(), Expect::ResultSets),
        (Capabilities::default(), Expect::Execution(Cursor::NotAsked)),
        (caps, Expect::ProcessInfo),
        (caps, Expect::OnePacket),
        (caps, Expect::Prepare),
        (caps, Expect::Eof),
    ];
    for (caps, expect) in cases {
        let mut tracker = ResponseTracker::new(caps);
        tracker.begin(expect);
        let request = Script::new(caps).packet(b"\xfb/etc/passwd").bytes();
        assert!(tracker.feed(&request).is_err(), "{expect:?}");
    }
}

#[test]
fn a_local_file_is_asked_for_and_then_answered() {
    for (mut caps, _) in every_dialect() {
        caps.base |= CLIENT_LOCAL_FILES;
        let request = Script::new(caps).packet(b"\xfb/tmp/rows.csv");
        let answer = Script::new(caps).ok(4, AUTOCOMMIT | MORE).packet(b"\xfb/tmp/b");
        let last = Script::new(caps).ok(1, AUTOCOMMIT);
        let mut tracker = ResponseTracker::new(caps);
        tracker.begin(Expect::ResultSets);
        assert_eq!(follow(&mut tracker, &request.bytes(), 1), Progress::LocalInfile);
        let waiting = tracker.feed(&answer.bytes()).unwrap();
        assert_eq!(waiting, Fed { consumed: 0, progress: Progress::LocalInfile });
        tracker.resume_after_upload();
        assert_eq!(follow(&mut tracker, &answer.bytes(), 3), Progress::LocalInfile);
        tracker.resume_after_upload();
        let expected = ResponseEnd {
            affected_rows: 5,
            results_ahead: 1,
            status_ahead: Some(StatusFlags(AUTOCOMMIT | MORE)),
            ..end(AUTOCOMMIT)
        };
        assert_eq!(follow(&mut tracker, &last.bytes(), 2), Progress::End(expected));
    }
}

#[test]
fn progress_reports_are_no_errors_to_who_asked_for_them() {
    let report: &[u8] = b"\xff\xff\xff\x01\x01\x02\x10\x27\x00\x05stage";
    for (base, mariadb) in [(CLIENT_PROGRESS_OBSOLETE, 0), (0, MARIADB_CLIENT_PROGRESS)] {
        let caps = Capabilities { base, mariadb };
        let script = Script::new(caps)
            .packet(report)
            .packet(report)
            .columns(1, Metadata::Unflagged)
            .rows(&[b"\x011"])
            .packet(report)
            .rows(&[b"\x011"])
            .end_of_rows(AUTOCOMMIT);
        check(Expect::ResultSets, &script, end(AUTOCOMMIT));
    }
    let script = Script::new(Capabilities::default()).packet(report);
    check(Expect::ResultSets, &script, error(0xffff));
}

#[test]
fn an_error_with_the_number_of_a_progress_report_is_an_error() {
    let caps = Capabilities { base: CLIENT_PROGRESS_OBSOLETE, mariadb: 0 };
    for expect in [Expect::ResultSets, Expect::Execution(Cursor::NotAsked)] {
        check(expect, &Script::new(caps).err(0xffff), error(0xffff));
    }
    let report: &[u8] = b"\xff\xff\xff\x01\x01\x02\x10\x27\x00\x05stage";
    for expect in [Expect::OnePacket, Expect::Prepare, Expect::Fetch] {
        check(expect, &Script::new(caps).packet(report), error(0xffff));
    }
}
