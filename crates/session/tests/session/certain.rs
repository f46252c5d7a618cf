//! What is not certain about a session is taken as the reading that holds more.

use session::{CloseReason, Denial, Side};

use crate::driver::*;

const OPEN: u16 = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
const WRITE: &str = "INSERT INTO t VALUES (1)";

/// Sends a text, which is admitted if it has to be asked for.
fn sends(driver: &mut Driver, text: &str) {
    if matches!(driver.query(text), Stop::Ask(_)) {
        driver.admit();
        driver.run();
    }
}

fn asks_for(driver: &mut Driver, text: &str) -> bool {
    matches!(driver.query(text), Stop::Ask(_))
}

/// A rule on writes alone: DDL passes without being asked for.
#[test]
fn ddl_that_nobody_was_asked_for_admits_no_transaction() {
    for ddl in ["CREATE TEMPORARY TABLE x (a INT)", "CREATE x", "DROP TABLE IF EXISTS x"] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("BEGIN", OPEN);
        sends(&mut driver, ddl);
        driver.answer(&ok(1, OPEN));
        driver.asks(WRITE, OPEN);
    }
}

/// What had failed was asked for again with the rows locked that it had come to: it waited at a gate
/// behind which others waited for them.
#[test]
fn what_fails_in_a_transaction_that_goes_on_was_admitted_with_it() {
    const AUTOCOMMIT_OFF: u16 = 0;
    for (begin, open) in [("BEGIN", OPEN), ("SET autocommit = 0", AUTOCOMMIT_OFF)] {
        for code in [1062, 1205, 1317] {
            let mut driver = Driver::logged_in(GATED, 0);
            driver.passes(begin, open);
            sends(&mut driver, WRITE);
            assert!(!driver.answer(&err(1, code)).admission_over, "{begin}: {code}");
            driver.passes(WRITE, open | STATUS_IN_TRANS);
            driver.passes("COMMIT", open & !STATUS_IN_TRANS);
            driver.asks(WRITE, open | STATUS_IN_TRANS);
        }
    }
    let mut driver = Driver::logged_in(GATED, 0);
    sends(&mut driver, "SET autocommit = 0; INSERT INTO t VALUES (1)");
    driver.answer(&failed(&[AUTOCOMMIT_OFF], 1062));
    assert!(!asks_for(&mut driver, WRITE));
}

#[test]
fn an_error_admits_nothing_where_no_transaction_goes_on_or_nothing_has_run() {
    for (begin, flags, text, code) in [
        ("SELECT 1", STATUS_AUTOCOMMIT, WRITE, 1062),
        ("BEGIN", OPEN, WRITE, 1213),
        ("SET autocommit = 0", 0, WRITE, 1213),
        ("BEGIN", OPEN, "UPDTE t SET a = 1", 1064),
        ("BEGIN", OPEN, "SELECT a FROM none", 1146),
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes(begin, flags);
        sends(&mut driver, text);
        assert!(driver.answer(&err(1, code)).admission_over, "{text}: {code}");
        assert!(asks_for(&mut driver, WRITE), "{begin}; {text}: {code}");
    }
}

/// Results with these flags, and behind them an error.
fn failed(ahead: &[u16], code: u16) -> Vec<u8> {
    let mut answer = Vec::new();
    let mut sequence = 1;
    for status in ahead {
        answer.extend(ok(sequence, status | STATUS_MORE_RESULTS));
        sequence += 1;
    }
    answer.extend(err(sequence, code));
    answer
}

/// Whether what an admitted transaction goes on with is asked for, behind a text that has failed.
fn asks_behind(text: &str, ahead: &[u16], code: u16) -> bool {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", OPEN);
    driver.asks(WRITE, OPEN);
    sends(&mut driver, text);
    driver.answer(&failed(ahead, code));
    asks_for(&mut driver, WRITE)
}

#[test]
fn an_error_at_or_behind_what_ends_the_transaction_ends_its_admission() {
    for (text, ahead, code) in [
        ("INSERT INTO t VALUES (2); COMMIT AND CHAIN; nonsense", &[OPEN, OPEN][..], 1064),
        ("SET autocommit = 1, autocommit = 0, nonsense = 3", &[], 1193),
        ("SET autocommit = 0; SET autocommit = 1", &[STATUS_IN_TRANS], 1180),
        ("SELECT 1; ROLLBACK; SELECT 1 FROM none", &[OPEN, STATUS_AUTOCOMMIT], 1146),
        ("SELECT 1; ROLLBACK; SELECT 1 FROM none", &[OPEN], 1180),
        ("COMMIT; INSERT INTO t VALUES (2)", &[STATUS_AUTOCOMMIT], 1062),
        ("COMMIT", &[], 1180),
        ("BEGIN; SELECT 1 FROM none", &[OPEN], 1146),
        ("BEGIN; INSERT INTO t VALUES (2); COMMIT; SELECT 1", &[OPEN, OPEN], 1180),
        ("BEGIN; INSERT INTO t VALUES (2)", &[OPEN], 1213),
        ("DROP TABLE none", &[], 1051),
        // A SIGNAL of the function, behind the commit.
        ("CREATE TABLE x SELECT f()", &[], 1399),
        ("XA PREPARE 'x'", &[], 1402),
        ("CALL p()", &[], 1399),
        ("CALL p(); SELECT 1 FROM none", &[OPEN, OPEN, OPEN], 1146),
    ] {
        assert!(asks_behind(text, ahead, code), "{text}");
    }
}

#[test]
fn what_an_error_has_not_reached_stands() {
    for (text, ahead, code) in [
        ("INSERT INTO t VALUES (2); COMMIT", &[][..], 1062),
        ("SELECT 1; INSERT INTO t VALUES (2); COMMIT", &[OPEN], 1062),
        ("SELECT 1 FROM none; CALL p()", &[], 1146),
        ("XA START 'x'", &[], 1400),
        ("XA COMMIT 'x'", &[], 1397),
        ("XA RECOVER", &[], 1401),
        ("COMMIT AND CHAIN", &[], 1399),
        ("SELECT 1; BEGIN", &[OPEN], 1399),
        ("COMMIT WRK", &[], 1064),
        ("SET autocommit = nonsense", &[], 1231),
        ("SELECT 1; SET autocommit = nonsense", &[OPEN], 1231),
        // What the text has begun was asked for with it, and goes on.
        ("BEGIN; INSERT INTO t VALUES (2)", &[OPEN], 1062),
        (
            "COMMIT; BEGIN; UPDATE t SET a = 1; INSERT INTO t VALUES (2)",
            &[STATUS_AUTOCOMMIT, OPEN, OPEN],
            1062,
        ),
    ] {
        assert!(!asks_behind(text, ahead, code), "{text}");
    }
}

#[test]
fn what_leaves_the_transaction_as_it_is_leaves_its_admission() {
    for (text, flags) in [
        ("XA RECOVER", OPEN),
        ("SET autocommit = 0", STATUS_IN_TRANS),
        ("SET autocommit = 1", OPEN),
        ("SET ROLE NONE", OPEN),
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("BEGIN", OPEN);
        driver.asks(WRITE, OPEN);
        driver.passes(text, flags);
        assert!(!asks_for(&mut driver, WRITE), "{text}");
    }
}

#[test]
fn a_text_that_gives_its_locks_back_before_it_works_is_not_covered_by_them() {
    let deny = "  - { name: no, match: { app: x }, deny: true, permanent: true }\n";
    for text in [
        "UNLOCK TABLES; INSERT INTO t VALUES (1); LOCK TABLES u READ",
        "BEGIN; INSERT INTO t VALUES (1); COMMIT; LOCK TABLES u READ",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("LOCK TABLES u READ", STATUS_AUTOCOMMIT);
        assert!(!asks_for(&mut driver, WRITE), "it holds them");
        driver.answer(&err(1, 1099));
        for _ in 0..3 {
            driver.asks(text, STATUS_AUTOCOMMIT);
        }
        let mut driver = Driver::logged_in(deny, 0);
        driver.passes("LOCK TABLES u READ", STATUS_AUTOCOMMIT);
        assert!(matches!(driver.query(&format!("{text} /* app=x */")), Stop::Deny), "{text}");
    }
}

/// One that the text begins at its end, in which it has only read.
#[test]
fn a_read_admits_no_transaction() {
    for text in [
        "BEGIN; INSERT INTO t VALUES (1); COMMIT AND CHAIN; SELECT 1",
        "BEGIN; INSERT INTO t VALUES (1); BEGIN; SELECT 1",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.asks(text, OPEN);
        assert!(asks_for(&mut driver, WRITE), "{text}");
    }
}

#[test]
fn an_admission_ends_with_its_transaction_wherever_that_ends() {
    for text in [
        "COMMIT AND CHAIN",
        "COMMIT",
        "SET autocommit = 0, autocommit = 1",
        "INSERT INTO t VALUES (2); BEGIN",
        "BEGIN; INSERT INTO t VALUES (2); COMMIT AND CHAIN",
        "CREATE TABLE x (a INT); SET @a = (SELECT COUNT(*) FROM t)",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("BEGIN", OPEN);
        driver.asks(WRITE, OPEN);
        sends(&mut driver, text);
        driver.answer(&ok(1, OPEN));
        assert!(asks_for(&mut driver, WRITE), "{text}");
    }
}

#[test]
fn a_user_level_lock_is_believed_when_the_server_says_so() {
    for (take, value, holds) in [
        ("SELECT GET_LOCK('a', 0)", "1", true),
        ("SELECT GET_LOCK('a', 0) AS l", "1", true),
        ("SELECT GET_LOCK('a', 0)", "0", false),
        ("SELECT IF(0, GET_LOCK('a', 0), 1)", "1", false),
        ("SELECT GET_LOCK('a', 0) + 1", "1", false),
        ("SELECT GET_LOCK('a', 0) FROM t", "1", false),
        ("SELECT 1 /* GET_LOCK('a', 0) */", "1", false),
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.query(take);
        driver.answer(&one_value(value, STATUS_AUTOCOMMIT));
        assert_eq!(!asks_for(&mut driver, WRITE), holds, "{take}");
    }
}

#[test]
fn a_user_level_lock_opens_no_rule_that_denies_or_holds() {
    for does in ["deny", "hold"] {
        let rules = format!("  - {{ name: no, {does}: true, permanent: true }}\n");
        let mut driver = Driver::logged_in(&rules, 0);
        driver.query("SELECT GET_LOCK('a', 0)");
        driver.answer(&one_value("1", STATUS_AUTOCOMMIT));
        assert!(matches!(driver.query(WRITE), Stop::Ask(_) | Stop::Deny), "{does}");
    }
}

#[test]
fn what_passed_unasked_opens_no_rule_that_denies() {
    let rules = "  - { name: payroll, match: { table: payroll }, deny: true, permanent: true }\n  \
                 - { name: all, gate: none, permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.passes("BEGIN", OPEN);
    driver.passes(WRITE, OPEN);
    assert!(matches!(driver.query("DELETE FROM payroll"), Stop::Deny));
}

#[test]
fn what_passed_unasked_and_may_hold_locks_is_not_delayed() {
    let rules = "  - { name: gated, match: { app: batch }, permanent: true }\n  \
                 - { name: all, gate: none, permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.passes("BEGIN", OPEN);
    driver.passes(WRITE, OPEN);
    driver.passes("/*app='batch'*/ DELETE FROM t", OPEN);
    driver.passes("COMMIT", STATUS_AUTOCOMMIT);
    assert!(asks_for(&mut driver, "/*app='batch'*/ DELETE FROM t"));
}

#[test]
fn a_lock_that_is_released_behind_the_sessions_back_covers_nothing() {
    for text in ["SELECT RELEASE_ALL_LOCKS()", "SET @a = RELEASE_LOCK('a')", "CALL p()"] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.query("SELECT GET_LOCK('a', 0)");
        driver.answer(&one_value("1", STATUS_AUTOCOMMIT));
        sends(&mut driver, text);
        driver.answer(&err(1, 1305));
        driver.asks(WRITE, STATUS_AUTOCOMMIT);
    }
}

#[test]
fn an_execution_is_who_its_own_comment_says_first() {
    let rules = "  - { name: bad, match: { app: bad }, deny: true, permanent: true }\n  \
                 - { name: all, gate: none, permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.passes("PREPARE s FROM '/*app=''good''*/ INSERT INTO t VALUES (1)'", STATUS_AUTOCOMMIT);
    driver.passes("EXECUTE s", STATUS_AUTOCOMMIT);
    assert!(matches!(driver.query("/*app='bad'*/ EXECUTE s"), Stop::Deny));
}

#[test]
fn names_of_prepared_statements_are_known_for_certain_or_not_at_all() {
    for text in [
        "PREPARE s FROM 'SELECT 1'; PREPARE s FROM 'INSERT INTO t VALUES (1)'",
        "PREPARE s FROM @text",
        "CALL p()",
        "PREPARE `s` FROM 'INSERT INTO t VALUES (1)'",
        "PREPARE `S` FROM 'INSERT INTO t VALUES (1)'",
        "PREPARE \u{17f} FROM 'INSERT INTO t VALUES (1)'",
        "PREPARE `s ` FROM 'INSERT INTO t VALUES (1)'",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("PREPARE s FROM 'SELECT 1'", STATUS_AUTOCOMMIT);
        driver.passes("EXECUTE s", STATUS_AUTOCOMMIT);
        sends(&mut driver, text);
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        assert!(asks_for(&mut driver, "EXECUTE s"), "{text}");
    }
}

/// One literal to whoever reads gbk, and two statements to others.
const HIDES_IN_GBK: &[u8] = b"\x03SELECT '\xe5\\'; INSERT INTO t VALUES (1); -- '";

#[test]
fn a_charset_that_is_not_known_hides_nothing() {
    for set in [
        "SET NAMES DEFAULT",
        "SET character_set_client = 28",
        "SET @@session.character_set_client = @x",
        "EXECUTE IMMEDIATE 'SET NAMES gbk'",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        sends(&mut driver, set);
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        assert!(matches!(driver.command(HIDES_IN_GBK), Stop::Ask(_)), "{set}");
    }
    // An error behind it leaves it in force.
    let mut driver = Driver::logged_in(GATED, 0);
    sends(&mut driver, "SET NAMES gbk; nonsense");
    driver.answer(&err(1, 1064));
    assert!(matches!(driver.command(HIDES_IN_GBK), Stop::Ask(_)));
}

#[test]
fn what_a_session_was_reset_to_is_not_known_of_mysql() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.command(&[0x1f]);
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(matches!(driver.command(HIDES_IN_GBK), Stop::Ask(_)));
}

#[test]
fn the_flags_of_a_logins_ok_count() {
    const NO_BACKSLASH_ESCAPES: u16 = 0x200;
    let mut driver = Driver::new(GATED);
    driver.backend.extend(greeting(0x0108_8280));
    driver.run();
    driver.client.extend(response(0x0108_8280));
    driver.run();
    driver.backend.extend(ok(2, STATUS_AUTOCOMMIT | NO_BACKSLASH_ESCAPES));
    driver.run();
    assert!(asks_for(&mut driver, "SELECT '\\'; INSERT INTO t VALUES (1)"));
}

#[test]
fn a_kill_that_did_not_run_kills_nobody() {
    for text in [
        "BEGIN NOT ATOMIC IF 0 THEN KILL 5; END IF; END",
        "CREATE PROCEDURE p() KILL 5",
        "KILL 5; SELECT 1",
        "SELECT 1; KILL QUERY 5",
    ] {
        let mut driver = Driver::logged_in(GATED, 0);
        sends(&mut driver, text);
        assert_eq!(driver.answer(&ok(1, STATUS_AUTOCOMMIT)).kill, None, "{text}");
    }
}

#[test]
fn a_quoted_user_is_the_one_that_the_server_reads() {
    let rules = "  - { name: no, match: { user: gate }, deny: true, permanent: true }\n";
    let mut driver = Driver::new(rules);
    driver.backend.extend(greeting(0x0108_8280));
    driver.run();
    driver.client.extend(response_of(0x0108_8280, b"'gate'"));
    driver.run();
    driver.backend.extend(ok(2, STATUS_AUTOCOMMIT));
    driver.run();
    assert_eq!(driver.session.user(), b"gate");
    assert!(matches!(driver.query(WRITE), Stop::Deny));
}

#[test]
fn a_user_whom_nobody_can_read_for_certain_does_not_log_in() {
    let mut driver = Driver::new(GATED);
    driver.backend.extend(greeting(0x0108_8280));
    driver.run();
    driver.client.extend(response_of(0x0108_8280, b"gate\xff"));
    let stop = driver.run();
    let denied = CloseReason::LoginDenied(Denial::UserUnreadable);
    assert!(matches!(stop, Stop::Close(reason) if reason == denied), "{stop:?}");
    assert!(driver.to_backend.is_empty());
}

/// The server's leg is in TLS and the client's is not, so the server counts one packet more.
#[test]
fn no_packet_of_a_login_becomes_a_command() {
    let mut driver = Driver::with_cluster("backend_tls: { mode: required }");
    driver.backend.extend(greeting(0x0108_8a80));
    driver.run();
    driver.client.extend(response(0x0108_8280));
    assert!(matches!(driver.run(), Stop::StartTls(Side::Backend)));
    driver.session.handle_encrypted(Side::Backend);
    driver.run();
    driver.to_backend.clear();
    // Behind the response, and nobody has asked for it: number 255 would be 0 at the server.
    driver.client.extend(frame(255, b"\x03INSERT INTO t VALUES (1)"));
    driver.run();
    assert!(driver.to_backend.is_empty(), "{:?}", driver.to_backend);
    // Nor when the server has asked for something.
    driver.backend.extend(frame(3, b"\xfemysql_native_password\0saltsaltsaltsaltsalt\0"));
    driver.run();
    assert!(driver.to_backend.is_empty(), "{:?}", driver.to_backend);
}

#[test]
fn what_prepared_statements_keep_has_a_bound() {
    let mut driver = Driver::logged_in(GATED, 0);
    let (long, value) = ("y".repeat(40_000), "x".repeat(50_000));
    let huge = format!("/*a='{long}'*/ SET @sluice_app = '{value}'");
    let tags = (0..60).map(|n| format!("/*k{n}='{}'*/", "v".repeat(200))).collect::<String>();
    let many = format!("{tags} SELECT 1");
    for id in 0..1000 {
        driver.prepare(if id % 100 == 0 { &huge } else { &many }, id, 0);
    }
    // Early ones are known, and late ones are unknown: held back, and not remembered.
    let execute = |id: u32| [&[0x17][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0]].concat();
    assert!(!matches!(driver.command(&execute(1)), Stop::Ask(_)));
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(matches!(driver.command(&execute(999)), Stop::Ask(_)));
}

#[test]
fn an_execution_within_a_text_may_have_ended_the_transaction() {
    let text = "PREPARE e FROM 'COMMIT AND CHAIN'; EXECUTE e; SELECT nonsense";
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", OPEN);
    driver.asks(WRITE, OPEN);
    sends(&mut driver, text);
    driver.answer(&err(1, 1054));
    assert!(asks_for(&mut driver, WRITE), "{text}");
}

/// `\xc3\xa9` is a character of gbk and of euckr, and happens to be one of UTF-8.
#[test]
fn what_is_prepared_of_characters_that_the_server_converts_is_not_known() {
    // Of armscii8 \xff is another quote.
    for names in ["gbk", "euckr", "ujis", "gb2312", "eucjpms", "armscii8"] {
        for literal in [b"\xbf\x40".as_slice(), b"\xc3\xa9", b"\xff"] {
            let mut driver = Driver::logged_in(GATED, 0);
            driver.passes(&format!("SET NAMES {names}"), STATUS_AUTOCOMMIT);
            driver.passes("PREPARE s FROM 'SELECT 1'", STATUS_AUTOCOMMIT);
            driver.passes("EXECUTE s", STATUS_AUTOCOMMIT);
            let prepare = [b"\x03PREPARE s FROM 'SELECT \"".as_slice(), literal, b"\"'"].concat();
            assert!(!matches!(driver.command(&prepare), Stop::Ask(_)));
            driver.answer(&ok(1, STATUS_AUTOCOMMIT));
            assert!(asks_for(&mut driver, "EXECUTE s"), "{names}");
        }
    }
}

/// A word that was mistyped within a transaction had its next write wait, with its locks held; and
/// nobody knew any more how the session's texts are read.
#[test]
fn what_the_server_cannot_parse_has_changed_nothing() {
    const PARSE_ERROR: u16 = 1064;
    let after = |text: &str, error: u16| {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes("BEGIN", OPEN);
        driver.asks(WRITE, OPEN);
        sends(&mut driver, text);
        driver.answer(&err(1, error));
        !asks_for(&mut driver, WRITE)
    };
    assert!(after("UPDTE t SET a = 1", PARSE_ERROR));
    assert!(!after("UPDTE t SET a = 1", 1146), "it was a statement after all");
    for text in ["COMMIT; UPDTE t SET a = 1", "x: BEGIN COMMIT; EXECUTE s; END", "EXECUTE s"] {
        assert!(!after(text, PARSE_ERROR), "{text}");
    }
}
