//! Locks that no status flag shows are held until the server has given them back.

use crate::driver::*;

const WRITE: &str = "INSERT INTO t VALUES (1)";

/// Whether the session is not delayed, for it holds a lock.
fn holds(driver: &mut Driver) -> bool {
    let asks = matches!(driver.query(WRITE), Stop::Ask(_));
    if asks {
        driver.admit();
        driver.run();
    }
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    !asks
}

#[test]
fn a_user_level_lock_is_held_until_the_server_says_that_it_was_released() {
    let [not_mine, released] = ["0", "1"].map(|value| one_value(value, STATUS_AUTOCOMMIT));
    let mut nobodys = one_value("0", STATUS_AUTOCOMMIT);
    let row = nobodys.windows(2).position(|bytes| bytes == b"\x010").unwrap();
    // NULL, in a frame that is one byte shorter.
    nobodys.splice(row - 4..row + 2, [1, 0, 0, 3, 0xfb]);
    let mut driver = Driver::logged_in(GATED, 0);
    driver.query("SELECT GET_LOCK('a', 0)");
    driver.answer(&one_value("1", STATUS_AUTOCOMMIT));
    for (answer, is_held) in [(nobodys, true), (not_mine, true), (released, false)] {
        driver.query("SELECT RELEASE_LOCK('b')");
        driver.answer(&answer);
        assert_eq!(holds(&mut driver), is_held);
    }
}

#[test]
fn a_begin_that_the_server_does_not_take_leaves_locked_tables_as_they_are() {
    for (text, code, is_held) in [
        ("XA START 'x'", 1400, true),
        ("START TRANSACTION x", 1064, true),
        ("BEGIN; UNLOCK TABLES", 1064, true),
        ("BEGIN", 1180, false),
        ("UNLOCK TABLES; BEGIN", 1064, false),
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("LOCK TABLES u READ", STATUS_AUTOCOMMIT);
        driver.query(text);
        driver.answer(&err(1, code));
        assert_eq!(holds(&mut driver), is_held, "{text}");
    }
}
