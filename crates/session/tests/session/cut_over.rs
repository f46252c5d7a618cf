//! gh-ost's cut-over: which lock counts, for how long, and which statements of others belong to it.

use session::CutOver;

use crate::driver::*;

const LOCK: &str = "lock /* gh-ost */ tables `shop`.`t` write, `shop`.`_t_del` write";

/// Before the answers of the server to a statement that is asked for.
const HOLD: &str = "  - { name: all, hold: true, permanent: true }\n";

fn locked(text: &str) -> (Driver, Option<CutOver>) {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes(text, STATUS_AUTOCOMMIT);
    let cut_over = driver.session.cut_over().cloned();
    (driver, cut_over)
}

/// Whether a statement of a session that is gh-ost belongs to the cut-over of `t` in `shop`.
fn belongs(text: &str) -> bool {
    let (_, cut_over) = locked(LOCK);
    let mut driver = Driver::logged_in(HOLD, 0);
    driver.passes("SELECT /* gh-ost */ 1", STATUS_AUTOCOMMIT);
    assert!(matches!(driver.query(text), Stop::Ask(_)), "{text}");
    let work = driver.session.migration_work();
    work.zip(cut_over).is_some_and(|(work, cut_over)| cut_over.covers(work))
}

#[test]
fn the_lock_of_a_cut_over_is_known_once_the_server_has_given_it() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.query(LOCK);
    assert_eq!(driver.session.cut_over(), None);
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    let expected = CutOver {
        user: (*b"app").into(),
        schema: (*b"shop").into(),
        table: (*b"t").into(),
        named_after: (*b"t").into(),
    };
    assert_eq!(driver.session.cut_over(), Some(&expected));
    let mut refused = Driver::logged_in(GATED, 0);
    refused.query(LOCK);
    refused.answer(&err(1, 1146));
    assert_eq!(refused.session.cut_over(), None);
}

#[test]
fn no_other_lock_is_one() {
    for text in [
        "LOCK TABLES `shop`.`t` WRITE, `shop`.`_t_del` WRITE",
        "lock /* gh-ost */ tables `shop`.`t` write",
        "lock /* gh-ost */ tables `shop`.`t` write, `shop`.`u_del` write",
        "lock /* gh-ost */ tables `shop`.`t` write, `shop`.`__del` write",
        "lock /* gh-ost */ tables `shop`.`t` write, `shop`.`_u_gho` write",
        "lock /* gh-ost */ tables `shop`.`t` write, `mall`.`_t_del` write",
        "lock /* gh-ost */ tables `shop`.`t` write, `shop`.`_t_del` write, `shop`.`u` write",
        "lock /* gh-ost */ tables `shop`.`_t_del` write, `shop`.`t` write",
        // No schema is known that they would be in.
        "lock /* gh-ost */ tables t write, _t_del write",
        "SELECT 1; lock /* gh-ost */ tables `shop`.`t` write, `shop`.`_t_del` write",
    ] {
        assert_eq!(locked(text).1, None, "{text}");
    }
    let stamped = "lock /* gh-ost */ tables `shop`.`t` write, `shop`.`_t_20260131120000_del` write";
    assert!(locked(stamped).1.is_some());
    let (long, cut) = ("a".repeat(64), "a".repeat(59));
    let text = format!("lock /* gh-ost */ tables shop.{long} write, shop._{cut}_del write");
    assert!(locked(&text).1.is_some());
}

#[test]
fn a_migration_whose_names_are_forced_is_told_by_what_is_locked_beside_the_table() {
    for (sentry, copy) in [
        ("_u_del", "_u_gho"),
        ("_u_20260131120000_del", "_u_gho"),
        ("_t_2026_del", "_t_2026_gho"),
        ("_t_del", "_t_gho"),
    ] {
        let text = format!("lock /* gh-ost */ tables shop.t write, shop.{sentry} write");
        let cut_over = locked(&text).1.unwrap();
        assert_eq!(cut_over.table[..], *b"t");
        assert_eq!(cut_over.copy_name(), copy.as_bytes());
        let mut driver = Driver::logged_in(HOLD, 0);
        driver.passes("SELECT /* gh-ost */ 1", STATUS_AUTOCOMMIT);
        for (table, own) in [(copy, true), ("_v_gho", false), ("t", false)] {
            let text = format!("delete /* gh-ost */ from shop.{table}");
            assert!(matches!(driver.query(&text), Stop::Ask(_)), "{text}");
            let work = driver.session.migration_work();
            assert_eq!(work.is_some_and(|work| cut_over.covers(work)), own, "{text}");
            drop(driver);
            driver = Driver::logged_in(HOLD, 0);
            driver.passes("SELECT /* gh-ost */ 1", STATUS_AUTOCOMMIT);
        }
    }
}

#[test]
fn names_without_a_schema_are_in_the_default_one() {
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("USE shop", STATUS_AUTOCOMMIT);
    driver.passes("lock /* gh-ost */ tables t write, _t_del write", STATUS_AUTOCOMMIT);
    assert_eq!(driver.session.cut_over().unwrap().schema[..], *b"shop");
}

#[test]
fn the_lock_counts_no_more_when_what_may_give_it_back_is_sent() {
    for text in [
        "unlock /* gh-ost */ tables",
        "BEGIN",
        "LOCK TABLES u READ",
        "UNLOCK TABLES; SELECT SLEEP(60)",
        "CALL p()",
        "EXECUTE s",
        "drop /* gh-ost */ table if exists `shop`.`_t_del`",
    ] {
        let (mut driver, cut_over) = locked(LOCK);
        assert!(cut_over.is_some());
        driver.query(text);
        assert_eq!(driver.session.cut_over(), None, "{text}");
        driver.answer(&ok(1, STATUS_AUTOCOMMIT));
        assert_eq!(driver.session.cut_over(), None, "{text}");
    }
    for command in [&b"\x1f"[..], b"\x11etl\0\0\0\x2d\0mysql_native_password\0", b"\x01"] {
        let (mut driver, _) = locked(LOCK);
        driver.command(command);
        assert_eq!(driver.session.cut_over(), None, "{command:?}");
    }
    let (mut driver, _) = locked(LOCK);
    driver.passes("alter /* gh-ost */ table `shop`.`_t_del` comment 'x'", STATUS_AUTOCOMMIT);
    driver.command(b"\x0e");
    driver.answer(&ok(1, STATUS_AUTOCOMMIT));
    assert!(driver.session.cut_over().is_some(), "it is still held");
}

#[test]
fn what_gh_ost_does_to_its_own_tables_belongs_to_the_cut_over() {
    for text in [
        "replace /* gh-ost `shop`.`_t_gho` */ into `shop`.`_t_gho` (`id`) values (7)",
        "insert /* gh-ost */ ignore into `shop`.`_t_ghk` (`id`) values (1)",
        "delete /* gh-ost */ from `shop`.`_t_gho` where ((`id` = 7)); \
         update /* gh-ost */ `shop`.`_t_gho` set `n`=1 where ((`id` = 8))",
        "INSERT INTO shop._t_gho SELECT * FROM shop._t_ghk",
    ] {
        assert!(belongs(text), "{text}");
    }
}

#[test]
fn nothing_else_of_gh_ost_belongs_to_it() {
    for text in [
        "insert /* gh-ost */ ignore into `shop`.`_t_gho` (select * from `shop`.`t`)",
        "insert /* gh-ost */ into `shop`.`t` values (1)",
        "insert /* gh-ost */ into `mall`.`_t_gho` values (1)",
        "insert /* gh-ost */ into `shop`.`_u_gho` values (1)",
        "insert /* gh-ost */ into `shop`.`_T_gho` values (1)",
        "insert /* gh-ost */ into _t_gho values (1)",
        "insert /* gh-ost */ into `shop`.`_t_gho` values (f(1))",
        "insert /* gh-ost */ into `shop`.`_t_gho` values ((SELECT MAX(id) FROM shop.u))",
        "delete /* gh-ost */ from `shop`.`_t_gho`; delete from `shop`.`u`",
        "use shop; delete /* gh-ost */ from `shop`.`_t_gho`",
        "LOAD /* gh-ost */ DATA INFILE 'x' INTO TABLE shop._t_gho",
        "CALL /* gh-ost */ shop._t_gho()",
        "delete /* gh-ost */ from `shop`.`_t_gho` where a = '",
    ] {
        assert!(!belongs(text), "{text}");
    }
}

#[test]
fn who_is_not_gh_ost_has_no_migration() {
    let mut driver = Driver::logged_in(HOLD, 0);
    assert!(matches!(driver.query("DELETE FROM `shop`.`_t_gho`"), Stop::Ask(_)));
    assert_eq!(driver.session.migration_work(), None);
}

#[test]
fn what_passed_for_a_cut_over_carries_nothing_else_of_its_transaction_past() {
    const BEGUN: u16 = STATUS_AUTOCOMMIT | STATUS_IN_TRANS;
    let mut driver = Driver::logged_in(GATED, 0);
    driver.passes("BEGIN", BEGUN);
    let own = "delete /* gh-ost */ from `shop`.`_t_gho` where id = 1";
    assert!(matches!(driver.query(own), Stop::Ask(_)));
    let ask = driver.asked.take().unwrap();
    driver.session.handle_passed(ask);
    driver.run();
    driver.answer(&ok(1, BEGUN));
    driver.asks("DELETE FROM `shop`.`u`", BEGUN);
}
