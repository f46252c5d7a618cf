//! How a session's texts are read when it sets its mode, and its prepared texts when it has.

use session::Reads;

use crate::driver::*;

const NO_BACKSLASH_ESCAPES: u16 = 0x200;
/// A read where a backslash escapes, and a write where it does not.
const ESCAPE: &str = r"SELECT '\'; INSERT INTO t VALUES (1) -- '";
/// The other way round.
const PLAIN: &str = r"SELECT '\''; INSERT INTO t VALUES (1) -- '";

fn asks_for(driver: &mut Driver, text: &str) -> bool {
    let asks = matches!(driver.query(text), Stop::Ask(_));
    if asks {
        driver.admit();
        driver.run();
    }
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    asks
}

#[test]
fn the_flags_behind_a_set_that_computes_the_mode_say_which_it_is() {
    for set in [
        "SET sql_mode = @x",
        "/*!40101 SET SQL_MODE=@OLD_SQL_MODE */",
        "SET sql_mode = REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', '')",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes(set, STATUS_AUTOCOMMIT);
        assert!(!asks_for(&mut driver, ESCAPE), "{set}");
        driver.passes(set, STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES);
        assert!(asks_for(&mut driver, ESCAPE), "{set}");
        driver.passes(set, STATUS_AUTOCOMMIT);
        assert!(asks_for(&mut driver, PLAIN), "{set}");
    }
}

#[test]
fn what_is_added_to_the_mode_leaves_the_rest_as_it_was() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("SET sql_mode = CONCAT(@@sql_mode, ',TRADITIONAL')", STATUS_AUTOCOMMIT);
    assert!(!asks_for(&mut driver, ESCAPE));
    let set = "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')";
    driver.passes(set, STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES);
    assert!(asks_for(&mut driver, ESCAPE));
    // ANSI_QUOTES, which MySQL's flags do not show, was off and still is.
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("SET sql_mode = CONCAT(@@sql_mode, ',TRADITIONAL')", STATUS_AUTOCOMMIT);
    let name = r#"SELECT "\"; INSERT INTO t VALUES (1) -- ""#;
    assert!(!asks_for(&mut driver, name));
    driver.passes("SET sql_mode = @x", STATUS_AUTOCOMMIT);
    assert!(asks_for(&mut driver, name), "it may be on now");
}

#[test]
fn flags_are_not_believed_behind_what_can_make_them_lie() {
    for set in [
        "SET sql_mode = f()",
        "SET sql_mode = @x, @y = (SELECT y FROM v)",
        "SET sql_mode = @x; SELECT 1",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        asks_for(&mut driver, set);
        assert!(asks_for(&mut driver, ESCAPE), "{set}");
    }
    let mut driver = Driver::logged_in(GATED, 0);
    driver.query("SET sql_mode = @x");
    driver.answer(&err(1, 1231));
    assert!(asks_for(&mut driver, ESCAPE), "an error carries no flags");
}

/// Executes the prepared statement; whether it is asked for.
fn executes(driver: &mut Driver, id: u32) -> bool {
    let stop = driver.command(&[&[0x17][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat());
    let asks = matches!(stop, Stop::Ask(_));
    if asks {
        driver.admit();
        driver.run();
    } else {
        assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{stop:?}");
    }
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    asks
}

#[test]
fn a_prepared_text_is_read_in_its_own_mode_until_it_is_executed_in_another() {
    // Only one statement can be prepared.
    let text = r"SELECT '\' FOR UPDATE -- '";
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare(text, 1, 0);
    driver.prepare(text, 2, 0);
    assert!(!executes(&mut driver, 1) && !executes(&mut driver, 1));
    let plain = "SET sql_mode = 'NO_BACKSLASH_ESCAPES'";
    driver.passes(plain, STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES);
    driver.prepare(text, 3, 0);
    driver.passes("SET sql_mode = ''", STATUS_AUTOCOMMIT);
    assert!(!executes(&mut driver, 1), "it has not been executed meanwhile");
    driver.passes(plain, STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES);
    assert!(executes(&mut driver, 3), "it was prepared in this mode");
    assert!(executes(&mut driver, 1), "the server may read it again");
    driver.passes("SET sql_mode = ''", STATUS_AUTOCOMMIT);
    assert!(executes(&mut driver, 1), "and keeps what it has read");
    assert!(!executes(&mut driver, 2), "which was not executed in the other mode");
    driver.passes("SET NAMES gbk", STATUS_AUTOCOMMIT);
    assert!(executes(&mut driver, 2), "another character set is another mode");
}

#[test]
fn a_prepared_text_that_reads_alike_in_every_mode_is_not_held_in_another() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.prepare("SELECT 'x' FROM t WHERE a = ?", 1, 0);
    driver
        .passes("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES);
    assert!(!executes(&mut driver, 1));
}
