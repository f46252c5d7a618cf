//! What a text is about: the digest that a question carries, and rules on digests and tables.

use admission::DigestKey;

use crate::driver::{Driver, GATED, STATUS_AUTOCOMMIT, Stop, frame, ok};

/// The rule and the digest of the question, which is admitted and answered.
#[expect(clippy::panic, reason = "a test's own helper")]
fn asked(driver: &mut Driver, stop: Stop) -> (u32, Option<DigestKey>) {
    let Stop::Ask(ask) = stop else { panic!("expected a question, not {stop:?}") };
    driver.admit();
    driver.run();
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    (ask.rule, ask.digest)
}

fn query(driver: &mut Driver, text: &str) -> (u32, Option<DigestKey>) {
    let stop = driver.query(text);
    asked(driver, stop)
}

#[test]
fn a_question_carries_the_digest_of_its_text_or_of_what_was_prepared() {
    let mut driver = Driver::logged_in(GATED, 0);
    let (_, one) = query(&mut driver, "INSERT INTO t VALUES (1) /* app=x */");
    let (_, two) = query(&mut driver, "insert into t values (2), (3)");
    let (_, other) = query(&mut driver, "INSERT INTO u VALUES (1)");
    assert!(one.is_some() && one == two && one != other, "{one:?} {two:?} {other:?}");
    driver.prepare("INSERT INTO t VALUES (?)", 7, 1);
    let stop = driver.command(b"\x17\x07\0\0\0\0\x01\0\0\0\0\x01\x03\0\x01\0\0\0");
    assert_eq!(asked(&mut driver, stop).1, one);
    driver.passes("PREPARE p FROM 'INSERT INTO t VALUES (9)'", STATUS_AUTOCOMMIT);
    assert_eq!(query(&mut driver, "EXECUTE p").1, one);
    let stop = driver.command(b"\x17\x08\0\0\0\0\x01\0\0\0");
    assert_eq!(asked(&mut driver, stop).1, None, "nobody knows what it was prepared from");
}

/// `EXECUTE IMMEDIATE ?` is the digest of whatever is run so: what one of them costs, or that it ran
/// away, says nothing of the next one.
#[test]
fn what_runs_a_text_of_elsewhere_is_foreseen_by_no_digest() {
    let mut driver = Driver::logged_in(GATED, 0);
    for text in [
        "EXECUTE IMMEDIATE 'DELETE FROM t'",
        "execute immediate @a",
        "EXECUTE p",
        "PREPARE p FROM 'DELETE FROM t'; EXECUTE p",
        "BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'DELETE FROM t'; END",
    ] {
        assert_eq!(query(&mut driver, text).1, None, "{text}");
    }
    assert!(query(&mut driver, "DELETE FROM t WHERE a = 'EXECUTE'").1.is_some());
    for (text, has_digest) in [
        ("BEGIN NOT ATOMIC EXECUTE IMMEDIATE @a; END", false),
        ("BEGIN NOT ATOMIC DELETE FROM t /* execute p */; END", true),
    ] {
        driver.prepare(text, 7, 0);
        let stop = driver.command(b"\x17\x07\0\0\0\0\x01\0\0\0");
        assert_eq!(asked(&mut driver, stop).1.is_some(), has_digest, "{text}");
        driver.passes(&format!("PREPARE q FROM '{text}'"), STATUS_AUTOCOMMIT);
        assert_eq!(query(&mut driver, "EXECUTE q").1.is_some(), has_digest, "{text}");
    }
}

#[test]
fn a_bulk_of_values_is_told_from_few_by_what_its_cost_is_predicted_by() {
    let mut driver = Driver::logged_in(GATED, 0);
    let insert = |rows: usize| format!("INSERT INTO t VALUES (1){}", ", (12345678)".repeat(rows));
    let mut key = |rows| query(&mut driver, &insert(rows)).1;
    let (few, bulk, like, more) = (key(1), key(500), key(600), key(5_000));
    assert!(few.is_some() && bulk.is_some() && few == key(9), "{few:?}");
    assert!(bulk != few && bulk == like && more != bulk, "{few:?} {bulk:?} {like:?} {more:?}");
}

/// A value of megabytes went ahead in pieces, and what its row costs was foreseen as of a small
/// one's.
#[test]
fn long_data_counts_for_the_next_execution_of_its_statement_until_it_is_reset() {
    let mut driver = Driver::logged_in(GATED, 0);
    for id in [7, 8] {
        driver.prepare("INSERT INTO t VALUES (?)", id, 1);
    }
    // The class of an execution of 7 or 8, behind so much long data of 7 and perhaps its reset.
    let mut key = |pieces: usize, is_reset: bool, id: u8| {
        for _ in 0..pieces {
            let piece = [&b"\x18\x07\0\0\0\0\0"[..], &[b'x'; 4_000]].concat();
            driver.client.extend(frame(0, &piece));
            assert!(matches!(driver.run(), Stop::Finished(_)));
        }
        if is_reset {
            driver.command(b"\x1a\x07\0\0\0");
            driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        }
        let stop = driver.command(&[0x17, id, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0xfc, 0]);
        asked(&mut driver, stop).1
    };
    let (small, other, bulk) = (key(0, false, 7), key(2, false, 8), key(0, false, 7));
    assert!(small.is_some() && bulk.is_some() && small != bulk, "{small:?} {bulk:?}");
    assert_eq!(other, small, "another statement's");
    assert_eq!(key(0, false, 7), small, "the next execution");
    assert_eq!(key(3, false, 7), bulk, "of the same class");
    assert_eq!(key(2, true, 7), small, "COM_STMT_RESET");
}

const RULES: &str =
    "  - { name: digest, match: { digest: DELETE FROM t WHERE i = ? }, permanent: true }
  - { name: orders, match: { table: shop.orders }, permanent: true }
  - { name: rest, permanent: true }
";

#[test]
fn statements_with_the_same_comments_are_told_apart_by_digest_and_tables() {
    let mut driver = Driver::logged_in(RULES, 0);
    for _ in 0..2 {
        let rules = [
            "DELETE FROM t WHERE i = 5 /* app=x */",
            "DELETE FROM t WHERE j = 5 /* app=x */",
            "DELETE FROM shop.Orders /* app=x */",
            "DELETE FROM orders /* app=x */",
            "CALL p() /* app=x */",
            "DELETE FROM t /*!99999 WHERE i = 1 */ /* app=x */",
        ]
        .map(|text| query(&mut driver, text).0);
        assert_eq!(rules, [0, 2, 1, 2, 1, 2]);
    }
}

#[test]
fn names_without_a_schema_are_those_of_the_schema_at_the_time() {
    let mut driver = Driver::logged_in(RULES, 0);
    driver.prepare("DELETE FROM orders", 7, 0);
    assert_eq!(query(&mut driver, "DELETE FROM orders").0, 2);
    driver.command(b"\x02shop");
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert_eq!(query(&mut driver, "DELETE FROM orders").0, 1);
    // The server resolved it when it was prepared.
    let stop = driver.command(b"\x17\x07\0\0\0\0\x01\0\0\0");
    assert_eq!(asked(&mut driver, stop).0, 2);
    driver.prepare("DELETE FROM orders", 8, 0);
    let stop = driver.command(b"\x17\x08\0\0\0\0\x01\0\0\0");
    assert_eq!(asked(&mut driver, stop).0, 1);
    assert_eq!(query(&mut driver, "USE test; DELETE FROM orders").0, 1, "it cannot be told");
}

#[test]
fn a_priority_counts_for_rules_that_honour_it_only() {
    let rules = "  - { name: honours, match: { app: a }, ratio: 0.5, honour_priority: true, permanent: true }
  - { name: ignores, ratio: 0.5, permanent: true }
";
    let mut driver = Driver::logged_in(rules, 0);
    for _ in 0..2 {
        for (text, rule, percent) in [
            ("DELETE /*vt+ PRIORITY=20 */ FROM t /* app=a */", 0, 20),
            ("DELETE /*vt+ PRIORITY=0 */ FROM t /* app=a */", 0, 0),
            ("DELETE /*vt+ PRIORITY=200 */ FROM t /* app=a */", 0, 100),
            ("DELETE FROM t /* app=a */", 0, 100),
            ("DELETE /*vt+ PRIORITY=0 */ FROM t", 1, 100),
        ] {
            let stop = driver.query(text);
            let Stop::Ask(ask) = stop else { panic!("expected a question, not {stop:?}") };
            assert_eq!((ask.rule, ask.priority.percent()), (rule, percent), "{text}");
            asked(&mut driver, Stop::Ask(ask));
        }
    }
}
