//! Streams of events, and what a server says that nobody has asked for.

use session::{CloseReason, Reads};

use crate::driver::*;

/// COM_BINLOG_DUMP_GTID with nothing behind it that a relay looks at.
const DUMP: &[u8] = &[0x1e, 0, 0, 1, 0, 0, 0];
const ACKNOWLEDGEMENT: &[u8] = b"\xef\x04\x01\0\0\0\0\0\0binlog.000001";
const EVENT: &[u8] = b"\0an event";
const END: &[u8] = &[0xfe, 0, 0, 2, 0];

fn dumping(rules: &str) -> Driver {
    let mut driver = Driver::logged_in(rules, 0);
    let stop = driver.command(DUMP);
    assert!(matches!(stop, Stop::Reads(Reads::Either)), "{stop:?}");
    driver.to_backend.clear();
    driver
}

#[test]
fn acknowledgements_pass_during_a_dump_wherever_they_are_cut() {
    let bytes = frame(0, ACKNOWLEDGEMENT);
    for cut in 0..bytes.len() {
        let mut driver = dumping(GATED);
        let (first, second) = bytes.split_at(cut);
        driver.client.extend(first);
        driver.backend.extend(frame(1, EVENT));
        let stop = driver.run();
        assert!(matches!(stop, Stop::Reads(Reads::Either)), "{stop:?}");
        assert!(driver.to_backend.is_empty());
        assert_eq!(driver.to_client, frame(1, EVENT));
        driver.client.extend(second);
        driver.run();
        assert_eq!(driver.to_backend, bytes);
    }
}

#[test]
fn a_statement_sent_during_a_dump_is_asked_for_when_the_dump_has_ended() {
    let mut driver = dumping(GATED);
    let stop = driver.query("DELETE FROM t");
    assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{stop:?}");
    driver.backend.extend(frame(1, EVENT));
    let stop = driver.run();
    assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{stop:?}");
    assert!(driver.to_backend.is_empty());
    driver.answer(&frame(2, END));
    assert!(matches!(driver.run(), Stop::Ask(_)));
    assert!(driver.to_backend.is_empty());
}

#[test]
fn what_only_begins_like_an_acknowledgement_waits_as_well() {
    let mut driver = dumping(GATED);
    let long = [ACKNOWLEDGEMENT, &[0; 4096]].concat();
    let stop = driver.command(&long);
    assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{stop:?}");
    assert!(driver.to_backend.is_empty());
}

#[test]
fn nothing_but_an_error_passes_that_the_server_says_unasked() {
    let error = frame(0, b"\xff\xbf\x0f#HY000The client was disconnected");
    for (at, unasked) in [(1, ok(1, 2)), (4, frame(0, b"\xfemysql_clear_password\0"))] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.backend.extend(&unasked[..at]);
        driver.run();
        driver.backend.extend(&unasked[at..]);
        let stop = driver.run();
        assert!(matches!(stop, Stop::Close(CloseReason::BackendProtocol)), "{stop:?}");
        assert!(driver.to_client.is_empty());
    }
    let mut driver = Driver::logged_in(GATED, 0);
    driver.backend.extend(frame(1, &[]));
    assert!(matches!(driver.run(), Stop::Close(CloseReason::BackendProtocol)));
    for cut in 0..=error.len() {
        let mut driver = Driver::logged_in(GATED, 0);
        let (first, second) = error.split_at(cut);
        driver.backend.extend(first);
        // A client that has said nothing may leave meanwhile.
        assert!(matches!(driver.run(), Stop::Reads(Reads::Either)));
        driver.backend.extend(second);
        assert!(matches!(driver.run(), Stop::Reads(Reads::Either)));
        assert_eq!(driver.to_client, error);
    }
}

#[test]
fn nothing_passes_behind_the_error_of_a_server_that_ends() {
    let error = frame(0, b"\xff\xbf\x0f#HY000The client was disconnected");
    let mut driver = Driver::logged_in(GATED, 0);
    driver.backend.extend(&error);
    driver.backend.extend(frame(1, b"\xfemysql_clear_password\0"));
    let stop = driver.run();
    assert!(matches!(stop, Stop::Close(CloseReason::BackendProtocol)), "{stop:?}");
    assert_eq!(driver.to_client, error);
}

#[test]
fn a_statement_is_under_way_until_its_answer_has_ended() {
    let mut driver = Driver::logged_in(UNGATED, 0);
    assert_eq!(driver.session.under_way(), None);
    driver.query("SELECT 1");
    assert!(driver.session.under_way().is_some());
    let finished = driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(finished.statement.is_some());
    assert_eq!(driver.session.under_way(), None);
}
