//! What budgets want of a statement, wherever its session stands.

use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use policy::{Likeness, Quarantine, Quarantined, RunawayAction, rule_key};
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
    // Until the COMMIT in it has run, the locks are held.
    let next = asked(&mut driver, "COMMIT; SELECT 1", STATUS_AUTOCOMMIT);
    assert_eq!(next, Some((Question::Count, 2)));
    assert_eq!(asked(&mut driver, "COMMIT; SELECT 1", STATUS_AUTOCOMMIT), read);
    asked(&mut driver, "LOCK TABLES t WRITE", STATUS_AUTOCOMMIT);
    let locked = asked(&mut driver, "SELECT 1", STATUS_AUTOCOMMIT);
    assert_eq!(locked, Some((Question::Count, 2)));
}

/// A rule that is about other classes says nothing of the locks.
#[test]
fn who_holds_locks_by_a_write_that_its_rule_does_not_name_counts_and_does_not_wait() {
    let open = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
    let file = "  - { name: ddl, statements: [ddl], permanent: true }
budgets:
  - { name: all, max_concurrency: 4 }
";
    for (text, question) in [
        ("UPDATE t SET a = 1", Question::Count),
        ("SELECT * FROM t FOR UPDATE", Question::Count),
        ("SELECT * FROM t", Question::Budgets),
    ] {
        let mut driver = Driver::logged_in(file, 0);
        assert_eq!(asked(&mut driver, "BEGIN", open), None);
        assert_eq!(asked(&mut driver, text, open), Some((Question::Budgets, 1)));
        assert_eq!(asked(&mut driver, "SELECT 1", open), Some((question, 1)), "{text}");
    }
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

/// What a text costs is foreseen by all of its length, however little of it has come.
#[test]
fn a_text_that_has_come_in_part_counts_by_all_its_length() {
    let mut keys = Vec::new();
    for (mib, there) in [(3, 3 << 20), (3, 1_100_000), (3, 2_000_000), (6, 1_100_000)] {
        let mut driver = Driver::logged_in(FILE, 0);
        let stop = driver.front_of_query(&long_text(mib, 'a'), there);
        let Stop::Ask(Asked { digest, .. }) = stop else { panic!("{stop:?}") };
        keys.push(digest.unwrap());
    }
    assert!(keys[0] == keys[1] && keys[0] == keys[2]);
    assert_ne!(keys[0], keys[3], "four times the size");
}

/// By text the very same bytes are alike: of a long text nobody knows them all in time, and where it
/// was cut says nothing.
#[test]
fn of_a_text_that_has_come_in_part_nobody_says_what_is_like_it() {
    let rule = "  - { name: slow, gate: none, permanent: true, runaway: { elapsed: 1s, action: kill, \
                watch: { by: text, for: 1m } } }\n";
    let likeness = |text: &str, there: usize, prepared: bool| {
        let mut driver = Driver::logged_in(rule, 0);
        if prepared {
            driver.prepare(text, 7, 0);
            driver.command(b"\x17\x07\0\0\0\0\x01\0\0\0");
        } else {
            driver.front_of_query(text, there);
            driver.rest_of_query(text, there);
        }
        driver.session.likeness().map(|likeness| likeness.hash)
    };
    let short = "SELECT 1";
    assert_eq!(likeness(short, 9, false), likeness(short, 9, true));
    assert!(likeness(short, 9, false).is_some());
    for there in [1_100_000, 2_000_000] {
        assert_eq!(likeness(&long_text(3, 'a'), there, false), None);
    }
    let whole = |last: char| likeness(&long_text(3, last), 3 << 20, false);
    assert!(whole('a').is_some() && whole('a') != whole('b'), "those that are all there differ");
}

/// One that ran away put everybody else's EXECUTE IMMEDIATE in quarantine.
#[test]
fn statements_that_run_a_text_of_elsewhere_are_like_no_other() {
    for by in ["digest", "text"] {
        let rule = format!(
            "  - {{ name: slow, gate: none, permanent: true, runaway: {{ elapsed: 1s, action: \
             kill, watch: {{ by: {by}, for: 1m }} }} }}\n"
        );
        for (text, is_like) in [
            ("SELECT 1", true),
            ("BEGIN NOT ATOMIC DELETE FROM t; END", true),
            ("BEGIN NOT ATOMIC /* executes p */ DELETE FROM t WHERE a = 'execute p'; END", true),
            ("BEGIN NOT ATOMIC DELETE FROM t; EXECUTE p; END", false),
            ("EXECUTE IMMEDIATE 'SELECT 1'", false),
            ("SET STATEMENT max_statement_time = 9 FOR EXECUTE IMMEDIATE @a", false),
            ("EXECUTE p", false),
        ] {
            let mut driver = Driver::logged_in(&rule, 0);
            driver.query(text);
            assert_eq!(driver.session.likeness().is_some(), is_like, "{text} by {by}");
        }
    }
}

/// A SELECT of so many MiB that ends in this letter.
fn long_text(mib: usize, last: char) -> String {
    let head = "SELECT '";
    format!("{head}{}{last}'", "x".repeat((mib << 20) - 64))
}

/// Of eight budgets, there was no place left for the line.
#[test]
fn what_comes_last_does_so_however_many_budgets_it_meets() {
    let budgets: String =
        (0..9).map(|n| format!("  - {{ name: n{n}, max_concurrency: 50 }}\n")).collect();
    let rule = "  - { name: slow, gate: none, permanent: true, runaway: { elapsed: 1s, action: \
                deprioritise, watch: { by: digest, for: 1m } } }\nbudgets:\n";
    let mut driver = Driver::logged_in(&format!("{rule}{budgets}"), 0);
    assert_eq!(asked(&mut driver, "SELECT 1", STATUS_AUTOCOMMIT), Some((Question::Budgets, 8)));
    driver.query("SELECT 1");
    driver.admit();
    driver.run();
    let likeness = driver.session.likeness().unwrap();
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    quarantine(&mut driver, likeness, RunawayAction::Deprioritise);
    assert_eq!(asked(&mut driver, "SELECT 2", STATUS_AUTOCOMMIT), Some((Question::Budgets, 9)));
}

/// Puts what is like this in quarantine for a minute.
fn quarantine(driver: &mut Driver, likeness: Likeness, action: RunawayAction) {
    let entry = Quarantined {
        rule: "slow".into(),
        key: rule_key("slow"),
        likeness,
        action,
        app: Box::default(),
        since: MonoTime::ZERO,
        stood: Duration::ZERO,
        until: MonoTime::ZERO.saturating_add(Duration::from_secs(60)),
    };
    let quarantine = Quarantine::default().with(entry);
    driver.policy = Arc::new(driver.policy.with_quarantine(quarantine));
    driver.session.handle_new_policy();
}

/// A step of the wall clock freed whatever was in quarantine, or kept it there for a day.
#[test]
fn quarantine_goes_by_the_monotonic_clock() {
    let rule = "  - { name: slow, gate: none, permanent: true, runaway: { elapsed: 1s, action: kill, \
                watch: { by: digest, for: 1m } } }\n";
    let mut driver = Driver::logged_in(rule, 0);
    driver.query("SELECT 1");
    let likeness = driver.session.likeness().unwrap();
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    quarantine(&mut driver, likeness, RunawayAction::Kill);
    let wall = driver.now.0;
    let mut is_refused = |step: i64, seconds: u64| {
        let mono = MonoTime::ZERO.saturating_add(Duration::from_secs(seconds));
        driver.now = (wall + step, mono);
        let before = driver.guarded;
        asked(&mut driver, "SELECT 2", STATUS_AUTOCOMMIT);
        driver.guarded > before
    };
    for step in [0, 86_400, -86_400] {
        assert!(is_refused(step, 0) && is_refused(step, 59), "the wall clock is {step} s off");
        assert!(!is_refused(step, 60), "the wall clock is {step} s off");
    }
}
