//! A cursor from which more was fetched than may be.

use session::Answer;

use crate::driver::*;

const EXECUTE: &[u8] = b"\x17\x07\0\0\0\x01\x01\0\0\0";
const FETCH: &[u8] = b"\x1c\x07\0\0\0\x01\0\0\0";
const FETCH_LAST: &[u8] = b"\x1c\xff\xff\xff\xff\x01\0\0\0";
const RESET: &[u8] = b"\x1a\x07\0\0\0";
const INTERRUPTED: u16 = 1317;
const NO_CURSOR: u16 = 1421;

/// A statement that has been executed, and its cursor ended.
fn ended() -> Driver {
    let mut driver = Driver::logged_in(UNGATED, 0);
    driver.prepare("SELECT a FROM t", 7, 0);
    driver.command(EXECUTE);
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    let (sqlstate, message) = (*b"70100", b"interrupted".to_vec());
    let answer = Answer { errno: INTERRUPTED, sqlstate, message };
    driver.session.handle_cursor_ended(7, answer);
    driver
}

/// Whether the server gets to see what the client sends.
fn reaches_the_server(driver: &mut Driver, command: &[u8]) -> bool {
    driver.to_client.clear();
    driver.to_backend.clear();
    driver.command(command);
    if driver.to_backend.is_empty() {
        let [low, high] = INTERRUPTED.to_le_bytes();
        assert_eq!(driver.to_client.get(3..7), Some(&[1, 0xff, low, high][..]));
        return false;
    }
    assert_eq!(driver.to_backend, frame(0, command));
    // Any end of an answer will do.
    driver.answer(&err(1, NO_CURSOR));
    true
}

#[test]
fn nothing_more_is_fetched_until_the_statement_begins_anew() {
    let mut driver = ended();
    for fetch in [FETCH, FETCH_LAST, FETCH] {
        assert!(!reaches_the_server(&mut driver, fetch));
    }
    driver.passes("SELECT 1", STATUS_AUTOCOMMIT);
    assert!(
        !reaches_the_server(&mut driver, FETCH),
        "the session goes on, and the cursor does not"
    );
    assert!(reaches_the_server(&mut driver, EXECUTE));
    assert!(reaches_the_server(&mut driver, FETCH), "of another execution");
    let mut driver = ended();
    driver.command(RESET);
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(reaches_the_server(&mut driver, FETCH), "the server says that there is no cursor");
}
