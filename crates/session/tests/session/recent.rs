//! Texts that come again: what is remembered of them must not outlive what it depends on.

use std::collections::HashMap;
use std::rc::Rc;

use session::Reads;

use crate::driver::*;

/// Reads pass, writes are asked for.
const WRITES: &str =
    "  - { name: writes, statements: [write, ddl, call, unknown], permanent: true }
  - { name: rest, gate: none, permanent: true }
";

/// More often than a text has to come before it is remembered.
const OFTEN: usize = 40;

/// Sends a text, admits it if it is asked for, and answers it with OK. Whether it was asked for.
fn is_asked(driver: &mut Driver, text: &str) -> bool {
    let stop = driver.query(text);
    let asks = matches!(stop, Stop::Ask(_));
    if asks {
        driver.admit();
        driver.run();
    } else {
        assert!(matches!(stop, Stop::Reads(Reads::Backend)), "{text}: {stop:?}");
    }
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    asks
}

/// A session that has sent these texts again and again.
fn warm(rules: &str, texts: &[&str]) -> Driver {
    let mut driver = Driver::logged_in(rules, 0);
    for _ in 0..OFTEN {
        for text in texts {
            is_asked(&mut driver, text);
        }
    }
    driver
}

#[test]
fn a_text_that_says_something_else_with_another_value_is_read() {
    for (known, other) in [
        ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 1; DELETE FROM t"),
        ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'x'; DELETE FROM t -- '"),
        ("SELECT a FROM t WHERE b = 'x'", "SELECT a FROM t WHERE b = 'x\\''; DELETE FROM t -- '"),
        ("SELECT a FROM t WHERE b IN (1)", "SELECT a FROM t WHERE b IN (1, f(2))"),
        ("SELECT a FROM t /* 1 */", "SELECT a FROM t /* 1 */; DELETE FROM t /* 1 */"),
        ("SELECT a FROM t /* 1 */", "SELECT a FROM t /*! INTO OUTFILE 'x' */, f(1)"),
        ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = f(1)"),
    ] {
        let mut driver = warm(WRITES, &[known]);
        assert!(!is_asked(&mut driver, known), "{known}");
        assert!(is_asked(&mut driver, other), "{other}");
        assert!(!is_asked(&mut driver, known), "{known}");
    }
    let mut driver = warm(WRITES, &["INSERT INTO t VALUES (1, 'a')", "UPDATE t SET a = 1"]);
    assert!(is_asked(&mut driver, "INSERT INTO t VALUES (2, 'b'), (3, 'c')"));
    assert!(is_asked(&mut driver, "UPDATE t SET a = 22"));
}

#[test]
fn a_text_is_read_anew_where_the_mode_has_changed() {
    let quotes = r#"SELECT "a", 'b' FROM t WHERE c = "; DELETE FROM t; SELECT ""#;
    let escape = r"SELECT '\', a FROM t WHERE b = ' OR 'c'";
    let mut driver = warm(WRITES, &[quotes, escape]);
    assert!(!is_asked(&mut driver, quotes) && !is_asked(&mut driver, escape));
    let no_escapes = 0x200;
    driver.passes("SET sql_mode = 'NO_BACKSLASH_ESCAPES'", STATUS_AUTOCOMMIT | no_escapes);
    let stop = driver.query(escape);
    assert!(matches!(stop, Stop::Ask(_)), "its quotes do not match now: {stop:?}");
    // The mode may be any behind a SET that cannot be read; a literal may be a name.
    let known = r#"SELECT "\"; INSERT INTO t VALUES (1) -- ""#;
    let mut driver = warm(WRITES, &["SELECT \"\\\" OR a\", 'b'"]);
    assert!(!is_asked(&mut driver, "SELECT \"\\\" OR a\", 'b'"));
    driver.passes("SET sql_mode = @x", STATUS_AUTOCOMMIT);
    assert!(is_asked(&mut driver, known));
}

#[test]
fn who_asks_is_found_out_for_each_statement() {
    const APPS: &str = "  - { name: etl, match: { app: etl }, permanent: true }
  - { name: shop, match: { schema: shop }, permanent: true }
  - { name: rest, gate: none, permanent: true }
";
    let known = "UPDATE t SET a = 1 WHERE b = 2 /* app=web */";
    let mut driver = warm(APPS, &[known]);
    assert!(!is_asked(&mut driver, known));
    assert!(is_asked(&mut driver, "UPDATE t SET a = 1 WHERE b = 2 /* app=etl */"));
    assert_eq!(driver.session.app(), b"etl");
    assert!(!is_asked(&mut driver, "UPDATE t SET a = 7 WHERE b = 8 /* app=web */"));
    assert_eq!(driver.session.app(), b"web");
    // The session says it now.
    let plain = "UPDATE t SET a = 1 WHERE b = 2";
    let mut driver = warm(APPS, &[plain]);
    driver.passes("SET @sluice_app = 'etl'", STATUS_AUTOCOMMIT);
    assert!(is_asked(&mut driver, plain));
    driver.passes("SET @sluice_app = 'web'", STATUS_AUTOCOMMIT);
    assert!(!is_asked(&mut driver, plain), "a SET with another value is read");
    driver.command(b"\x02shop");
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(is_asked(&mut driver, plain), "the schema is another");
}

/// Those who count look at names only when this has changed.
#[test]
fn what_a_session_is_named_is_never_another_under_one_number() {
    const APPS: &str = "  - { name: etl, match: { app: etl }, permanent: true }
  - { name: rest, gate: none, permanent: true }
";
    let texts =
        ["UPDATE t SET a = 1", "SELECT 1", "SELECT 1 /* app=web */", "SELECT 1 /*app=etl*/"];
    let steps =
        [0, 0, 1, 2, 1, 3, 2, 0, 3, 9, 2, 4, 0, 9, 1, 5, 3, 9, 6, 0, 1, 7, 2, 8, 3, 3, 0, 9];
    let mut driver = Driver::logged_in(APPS, 0);
    driver.prepare("SELECT ? /* app=web */", 7, 0);
    let mut known = HashMap::new();
    let mut repeats = 0;
    let mut last = 0;
    for step in steps.repeat(20) {
        let plain = STATUS_AUTOCOMMIT;
        match step {
            0..=3 => drop(is_asked(&mut driver, texts[step])),
            4 => drop(driver.passes("SET @sluice_app = 'etl'", plain)),
            5 => drop(driver.passes("SET @sluice_app = NULL", plain)),
            6 => driver.session.handle_new_policy(),
            7 | 8 => {
                driver.command(if step == 7 { b"\x02shop" } else { b"\x02main" });
                driver.answer(&ok(1, plain));
            }
            _ => {
                driver.command(b"\x17\x07\0\0\0\0\x01\0\0\0");
                driver.answer(&ok(1, plain));
            }
        }
        let Driver { session, .. } = &driver;
        let named = (session.app().to_vec(), session.user().to_vec());
        let naming = session.naming();
        repeats += usize::from(naming == last);
        last = naming;
        assert_eq!(*known.entry(naming).or_insert_with(|| named.clone()), named);
    }
    assert!(repeats > 20, "and mostly nothing has to be looked at: {repeats}");
}

#[test]
fn statements_of_transactions_do_what_they_say_however_often_they_come() {
    let in_transaction = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
    let mut driver = Driver::logged_in(GATED, 0);
    for round in 0..OFTEN {
        driver.passes("BEGIN", in_transaction);
        for write in 0..3 {
            let asks = matches!(driver.query("UPDATE t SET a = 1"), Stop::Ask(_));
            assert_eq!(asks, write == 0, "round {round}, write {write}");
            if asks {
                driver.admit();
                driver.run();
            }
            driver.answer(&ok(1, in_transaction));
        }
        driver.passes("COMMIT", STATUS_AUTOCOMMIT);
    }
    // `SET autocommit = 0` begins nothing, 1 ends what is there: a value that counts.
    for _ in 0..OFTEN {
        driver.passes("SET autocommit = 0", 0);
    }
    assert!(is_asked(&mut driver, "UPDATE t SET a = 1"));
}

#[test]
fn rules_and_guards_of_another_file_hold_at_once() {
    let text = "DELETE FROM t WHERE a = 1";
    let mut driver = warm(UNGATED, &[text]);
    assert!(!is_asked(&mut driver, text));
    driver.policy = policy(GATED);
    driver.session.handle_new_policy();
    assert!(is_asked(&mut driver, text));
}

/// No guard lets pass what another value, another length or another text makes of it.
#[test]
fn guards_look_at_what_a_text_says_this_time() {
    const GUARDS: &str = "  - { name: all, gate: none, permanent: true }
guards:
  - { name: w, where_required: deny, no_cross_join: deny, max_in_list: 3, max_statement_bytes: 60 }
";
    let update = "UPDATE t SET a = 1 WHERE b = 2";
    let known =
        [update, "SELECT a FROM t WHERE b IN (1)", "INSERT INTO t VALUES (1)", "SELECT 1 FROM t"];
    let mut driver = warm(GUARDS, &known);
    let objects = |driver: &mut Driver, text: &str| {
        let before = driver.guarded;
        is_asked(driver, text);
        driver.guarded - before
    };
    for text in known {
        assert_eq!(objects(&mut driver, text), 0, "{text}");
    }
    let long = "INSERT INTO t VALUES (1), (22), (333), (4444), (55555), (666666)";
    for text in [
        "UPDATE t SET a = 1",
        "UPDATE t SET a = 1 WHERE 2 = 2",
        "SELECT a FROM t WHERE b IN (1, 2, 3, 4)",
        "SELECT 1 FROM t, u",
        long,
    ] {
        for _ in 0..OFTEN {
            assert_eq!(objects(&mut driver, text), 1, "{text}");
        }
        assert_eq!(objects(&mut driver, update), 0, "{text}");
    }
    // What is prepared is not what was sent before it.
    let before = driver.guarded;
    driver.prepare("DELETE FROM t", 1, 0);
    assert_eq!(driver.guarded - before, 1);
    // Other guards, and the same text.
    driver.policy = policy(&GUARDS.replace("max_statement_bytes: 60", "require_tag: [controller]"));
    driver.session.handle_new_policy();
    assert_eq!(objects(&mut driver, update), 1);
    assert_eq!(objects(&mut driver, long), 1);
    driver.policy = policy(UNGATED);
    driver.session.handle_new_policy();
    assert_eq!(objects(&mut driver, "DELETE FROM t"), 0);
}

/// A PREPARE passed for what it prepared as soon as its own digest had been told, and then all others
/// of that name did, in all sessions of the thread: one that was in quarantine had those refused.
#[test]
fn a_prepare_is_not_like_what_it_prepares() {
    const WATCHED: &str = "  - { name: slow, gate: none, permanent: true, runaway: { elapsed: 1s, \
                           action: kill, watch: { by: digest, for: 1m } } }\n";
    let mut driver = Driver::logged_in(WATCHED, 0);
    driver.digests = Some(Rc::default());
    let mut is_like = |text: &str| {
        let like = driver.passes(text, STATUS_AUTOCOMMIT).likeness.unwrap().hash;
        let digest = driver.session.about().digest.unwrap();
        driver.digests.as_ref().unwrap().note_told(digest);
        assert_eq!(like, digest, "{text}");
        like
    };
    let inner = is_like("DELETE FROM t");
    for _ in 0..OFTEN {
        assert_ne!(is_like("PREPARE p FROM 'DELETE FROM t'"), inner);
        assert_ne!(is_like("PREPARE p FROM 'SELECT 1'"), inner);
    }
}

#[test]
fn the_front_of_a_text_is_not_taken_for_the_text() {
    // All but the last bytes of a text of two frames, which look like one that passes.
    let known = "SELECT a FROM t WHERE b = 'x'";
    let mut driver = warm(WRITES, &[known]);
    let mut long = known.as_bytes().to_vec();
    long.resize((1 << 24) - 2, b' ');
    driver.client.extend([0xff, 0xff, 0xff, 0, 3]);
    driver.client.extend(&long);
    driver.client.extend([0, 0, 0, 1]);
    let stop = driver.run();
    assert!(matches!(stop, Stop::Ask(_)), "it goes on: {stop:?}");
}

#[test]
fn answers_end_alike_however_the_text_before_them_was_read() {
    let result = [
        frame(1, &[1]),
        frame(2, b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x08\x81\0\0\0\0"),
        frame(3, b"\x011"),
        frame(4, b"\xfe\0\0\x02\0\0\0"),
    ]
    .concat();
    let mut driver = Driver::logged_in(UNGATED, 0);
    for cut in 1..result.len() {
        driver.query(&format!("SELECT a FROM t WHERE b = {cut}"));
        let (head, tail) = result.split_at(cut);
        driver.to_client.clear();
        driver.backend.extend(head);
        assert!(matches!(driver.run(), Stop::Reads(Reads::Backend)), "{cut}");
        driver.backend.extend(tail);
        let stop = driver.run();
        assert!(matches!(stop, Stop::Finished(_)), "{cut}: {stop:?}");
        assert_eq!(driver.to_client, result);
    }
}
