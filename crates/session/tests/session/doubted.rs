//! Behind a CALL the transaction may be the one of before, with its locks, or another.

use session::Question;

use crate::driver::*;

const OPEN: u16 = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
const WRITE: &str = "INSERT INTO t VALUES (1)";

/// What may have ended the transaction, and begun another. The server has answered with OK.
const DOUBTFUL: [&str; 8] = [
    "CALL p()",
    "EXECUTE s",
    "EXECUTE IMMEDIATE 'COMMIT AND CHAIN'",
    "BEGIN NOT ATOMIC COMMIT; END",
    "BEGIN NOT ATOMIC UPDATE t SET a = 1; END",
    "IF 1 THEN COMMIT; END IF",
    "INSERT INTO t VALUES (2); CALL p()",
    "SELECT 1; EXECUTE s",
];

/// Sends it and has it answered. Whether it had to be asked for, by its rule.
fn asked(driver: &mut Driver, text: &str, status: u16) -> bool {
    let stop = driver.query(text);
    assert!(!matches!(stop, Stop::Deny), "{text}");
    let question = if let Stop::Ask(asked) = stop { Some(asked.question) } else { None };
    if question.is_some() {
        driver.admit();
        driver.run();
    }
    driver.answer(&ok(1, status));
    question == Some(Question::Rule)
}

fn admitted(rules: &str) -> Driver {
    let mut driver = Driver::logged_in_to(rules, "11.8.2-MariaDB");
    driver.passes("BEGIN", OPEN);
    assert!(asked(&mut driver, WRITE, OPEN));
    driver
}

/// It waited for a place that was taken by who waited for its row.
#[test]
fn who_may_hold_locks_behind_a_call_is_not_delayed() {
    for text in DOUBTFUL {
        let mut driver = admitted(GATED);
        asked(&mut driver, text, OPEN);
        assert!(!asked(&mut driver, WRITE, OPEN), "{text}");
        assert!(!asked(&mut driver, "DELETE FROM t", OPEN), "{text}");
        driver.passes("COMMIT", STATUS_AUTOCOMMIT);
        assert!(asked(&mut driver, WRITE, STATUS_AUTOCOMMIT), "{text}");
    }
}

#[test]
fn a_transaction_that_begins_with_a_call_is_not_delayed_behind_it() {
    let in_one_text = "BEGIN; INSERT INTO t VALUES (2); CALL p()";
    let mut driver = Driver::logged_in(GATED, 0);
    assert!(asked(&mut driver, in_one_text, OPEN));
    assert!(!asked(&mut driver, WRITE, OPEN));
    for (begin, status) in [("BEGIN", OPEN), ("SET autocommit = 0", 0)] {
        let mut driver = Driver::logged_in(GATED, 0);
        driver.passes(begin, status);
        assert!(asked(&mut driver, "CALL p()", status | STATUS_IN_TRANS), "{begin}");
        assert!(!asked(&mut driver, WRITE, status | STATUS_IN_TRANS), "{begin}");
    }
}

/// A procedure that commits and begins anew at the end of each transaction.
#[test]
fn no_loop_of_calls_goes_on_with_one_admission() {
    for text in DOUBTFUL {
        let mut driver = admitted(GATED);
        asked(&mut driver, text, OPEN);
        for _ in 0..8 {
            assert!(!asked(&mut driver, WRITE, OPEN), "{text}");
            assert!(asked(&mut driver, text, OPEN), "{text}");
        }
    }
}

/// What nobody was asked for has no rule let its doubtful successor past, and does not make the next
/// CALL pass.
#[test]
fn what_nobody_was_asked_for_covers_nothing_in_doubt() {
    let rules = "  - { name: gated, match: { app: etl }, permanent: true }\n  \
                 - { name: rest, gate: none, permanent: true }\n";
    let mut driver = Driver::logged_in(rules, 0);
    driver.passes("BEGIN", OPEN);
    driver.passes(WRITE, OPEN);
    driver.passes("CALL p()", OPEN);
    driver.passes(WRITE, OPEN);
    assert!(asked(&mut driver, "CALL p() /* app=etl */", OPEN));
    assert!(!asked(&mut driver, "DELETE FROM t /* app=etl */", OPEN), "the CALL was admitted");
    driver.passes(WRITE, OPEN);
    assert!(asked(&mut driver, "CALL p() /* app=etl */", OPEN));
    driver.passes("ROLLBACK", STATUS_AUTOCOMMIT);
    driver.passes("BEGIN", OPEN);
    driver.passes(WRITE, OPEN);
    driver.passes("CALL p()", OPEN);
    assert!(
        asked(&mut driver, "DELETE FROM t /* app=etl */", OPEN),
        "it may be another transaction"
    );
    assert!(!asked(&mut driver, "DELETE FROM t /* app=etl */", OPEN), "in which this was admitted");
}

#[test]
fn what_denies_or_holds_reaches_who_may_be_in_another_transaction() {
    for (rule, denies) in [("deny: true", true), ("hold: true", false)] {
        let rules =
            format!("  - {{ name: no, match: {{ app: etl }}, {rule}, permanent: true }}\n{GATED}");
        for text in DOUBTFUL {
            let mut driver = admitted(&rules);
            asked(&mut driver, text, OPEN);
            asked(&mut driver, WRITE, OPEN);
            let stop = driver.query("DELETE FROM t /* app=etl */");
            assert_eq!(
                (matches!(stop, Stop::Deny), matches!(stop, Stop::Ask(_))),
                (denies, !denies)
            );
        }
    }
}

#[test]
fn doubt_ends_where_no_transaction_is_open_or_another_is_for_certain() {
    for end in ["COMMIT AND CHAIN", "ROLLBACK", "BEGIN", "XA COMMIT 'a'"] {
        let mut driver = admitted(GATED);
        asked(&mut driver, "CALL p()", OPEN);
        driver.passes(end, OPEN);
        assert!(asked(&mut driver, WRITE, OPEN), "{end}");
    }
    let mut driver = admitted(GATED);
    asked(&mut driver, "CALL p()", STATUS_AUTOCOMMIT);
    assert!(asked(&mut driver, WRITE, STATUS_AUTOCOMMIT), "the server's flags say that it is over");
    let mut driver = admitted(GATED);
    asked(&mut driver, "CALL p()", OPEN);
    driver.query("CREATE TABLE x (a INT); CALL nonsense()");
    driver.admit();
    driver.run();
    driver.answer(&err(1, 1305));
    assert!(asked(&mut driver, WRITE, OPEN), "after an error nobody knows");
}

/// Its permit is still in use: what it does in doubt is counted with it.
#[test]
fn the_admission_is_over_when_the_doubt_is() {
    let mut driver = admitted(GATED);
    driver.query("CALL p()");
    assert!(!driver.answer(&ok(1, OPEN)).admission_over);
    assert!(!driver.session.is_admitted(), "another admission does not wait for it");
    driver.query("COMMIT");
    assert!(driver.answer(&ok(1, STATUS_AUTOCOMMIT)).admission_over);
}

#[test]
fn budgets_count_who_may_hold_locks_and_have_the_next_call_wait() {
    let file = format!("{UNGATED}budgets:\n  - {{ name: all, max_concurrency: 4 }}\n");
    let mut driver = Driver::logged_in(&file, 0);
    let mut question = |text: &str| {
        let stop = driver.query(text);
        let Stop::Ask(asked) = stop else { panic!("{stop:?}") };
        driver.admit();
        driver.run();
        driver.answer(&ok(1, OPEN));
        asked.question
    };
    assert_eq!(question(WRITE), Question::Budgets);
    assert_eq!(question("CALL p()"), Question::Count);
    for _ in 0..3 {
        assert_eq!(question("SELECT 1"), Question::Count);
        assert_eq!(question(WRITE), Question::Count);
        assert_eq!(question("CALL p()"), Question::Budgets);
    }
}
