//! What budgets want of a statement, wherever its session stands.

use session::Question;

use crate::driver::{Asked, Driver, STATUS_AUTOCOMMIT, STATUS_IN_TRANS, Stop, ok};

const FILE: &str =
    "  - { name: exempt, match: { app: vip }, exempt: true, essential: true, permanent: true }
  - { name: gated, match: { app: etl }, permanent: true }
  - { name: denied, match: { app: bad }, deny: true, mode: observe, permanent: true }
  - { name: rest, gate: none, permanent: true }
budgets:
  - { name: all, max_concurrency: 4 }
  - { name: reads, match: { statements: read }, max_concurrency: 2 }
  - { name: digests, match: { app: per }, per: digest, rate: 1 }
";

/// What is asked for a statement, and how many budgets it meets; it is admitted and answered.
fn asked(driver: &mut Driver, sql: &str, status: u16) -> Option<(Question, usize)> {
    let stop = driver.query(sql);
    let asked = match stop {
        Stop::Ask(Asked { question, .. }) => {
            Some((question, driver.session.budgets().iter().count()))
        }
        Stop::Deny => Some((driver.asked.as_ref().map(|ask| ask.question)?, 0)),
        _ => None,
    };
    if asked.is_some() {
        driver.admit();
        driver.run();
    }
    driver.answer(&ok(1, status));
    asked
}

#[test]
fn whatever_can_be_held_is_asked_for_and_what_cannot_is_not() {
    let mut driver = Driver::logged_in(FILE, 0);
    for _ in 0..2 {
        for (sql, expected) in [
            ("SELECT 1", Some((Question::Budgets, 2))),
            ("UPDATE t SET a = 1", Some((Question::Budgets, 1))),
            ("UPDATE t SET a = 1 /* app=etl */", Some((Question::Rule, 1))),
            ("SELECT 1 /* app=etl */", Some((Question::Budgets, 2))),
            ("UPDATE t SET a = 1 /* app=vip */", Some((Question::Count, 1))),
            ("UPDATE t SET a = 1 /* app=bad */", Some((Question::Budgets, 0))),
            ("SHOW TABLES", None),
            ("SELECT * FROM information_schema.tables", None),
            ("COMMIT", None),
        ] {
            assert_eq!(asked(&mut driver, sql, STATUS_AUTOCOMMIT), expected, "{sql}");
        }
    }
}

#[test]
fn who_holds_locks_counts_and_does_not_wait() {
    let open = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
    let mut driver = Driver::logged_in(FILE, 0);
    assert_eq!(asked(&mut driver, "BEGIN", open), None);
    let read = Some((Question::Budgets, 2));
    assert_eq!(asked(&mut driver, "SELECT 1", open), read, "nothing is locked yet");
    let write = asked(&mut driver, "UPDATE t SET a = 1", open);
    assert_eq!(write, Some((Question::Budgets, 1)));
    assert_eq!(asked(&mut driver, "SELECT 1", open), Some((Question::Count, 2)));
    assert_eq!(asked(&mut driver, "DELETE FROM t", open), Some((Question::Count, 1)));
    assert_eq!(asked(&mut driver, "COMMIT", STATUS_AUTOCOMMIT), None);
    assert_eq!(asked(&mut driver, "SELECT 1", STATUS_AUTOCOMMIT), read);
    asked(&mut driver, "LOCK TABLES t WRITE", STATUS_AUTOCOMMIT);
    let locked = asked(&mut driver, "SELECT 1", STATUS_AUTOCOMMIT);
    assert_eq!(locked, Some((Question::Count, 2)));
}

#[test]
fn a_prepared_statement_meets_what_its_text_does_each_time() {
    let mut driver = Driver::logged_in(FILE, 0);
    driver.prepare("SELECT 1 /* app=per */", 7, 0);
    let mut buckets = Vec::new();
    for _ in 0..3 {
        let stop = driver.command(b"\x17\x07\0\0\0\0\x01\0\0\0");
        assert!(matches!(stop, Stop::Ask(Asked { question: Question::Budgets, .. })), "{stop:?}");
        buckets.push(*driver.session.budgets());
        driver.admit();
        driver.run();
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    }
    assert_eq!(buckets[0].iter().count(), 3);
    assert!(buckets.iter().all(|met| *met == buckets[0]));
    asked(&mut driver, "SELECT a FROM u /* app=per */", STATUS_AUTOCOMMIT);
    assert_ne!(*driver.session.budgets(), buckets[0], "another digest, another bucket");
}
