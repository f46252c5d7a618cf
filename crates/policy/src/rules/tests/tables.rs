//! Rules on tables, where a text does not show all of its own.

use super::*;

#[test]
fn what_cannot_be_read_escapes_no_rule_that_holds_back_and_is_let_pass_by_none() {
    let policy = policy(
        "- {name: exempt, permanent: true, essential: true, exempt: true, match: {table: tmp_*}}
- {name: passes, permanent: true, gate: none, match: {table: tmp_*, app: p}}
- {name: denied, permanent: true, deny: true, match: {table: archive}}
- {name: orders, permanent: true, match: {table: shop.orders}}
- {name: rest, permanent: true, gate: none}
",
    );
    for (app, sql, rule) in [
        ("a", "DELETE FROM tmp_1", "exempt"),
        ("a", "INSERT INTO tmp_1 SELECT * FROM users", "rest"),
        ("a", "INSERT INTO tmp_1 SELECT * FROM orders", "orders"),
        ("p", "INSERT INTO tmp_1 SELECT * FROM users", "rest"),
        ("a", "DELETE FROM archive", "denied"),
        ("a", "DELETE FROM other.orders", "rest"),
        ("a", "CALL p()", "denied"),
        ("a", "DELETE FROM users WHERE s = 'x", "denied"),
        ("a", "DROP DATABASE shop", "denied"),
    ] {
        assert_rule(&policy, &Case { sql, ..Case::of(app) }, rule);
    }
    // A read that it does not cover is not its own for being hard to read.
    for (class, sql, rule) in [
        (Class::Read, "SELECT * FROM archive JOIN users", "rest"),
        (Class::Read, "EXPLAIN SELECT * FROM archive", "rest"),
        (Class::Read, "SELECT * FROM archive", "denied"),
        (Class::Ddl, "DROP TABLE archive", "denied"),
        (Class::Ddl, "DROP PROCEDURE p", "denied"),
        (Class::Call, "SELECT f(1) FROM users", "denied"),
    ] {
        assert_rule(&policy, &Case { class, sql, ..Case::of("a") }, rule);
    }
}

#[test]
fn whoever_asks_whether_to_write_is_denied_for_no_table_and_held_back_for_any() {
    let check = |rules: &str| {
        let policy = policy(rules);
        let session = SessionIdentity::default();
        let identity = crate::identity::named(&policy.identity, &session, b"etl").unwrap();
        let facts = Facts {
            identity: &identity,
            session: &session,
            classes: ClassSet::default().with(Class::Write),
            exemption: None,
            shape: Shape::of_check(),
            now: UnixTime(0),
        };
        crate::decide(&policy, &facts).rule().map(|rule| rule.name.to_string()).unwrap()
    };
    let denied = "- {name: denied, permanent: true, deny: true, match: {table: archive}}\n";
    let held = "- {name: held, permanent: true, hold: true, match: {table: orders}}\n";
    let rest = "- {name: rest, permanent: true}\n";
    assert_eq!(check(&format!("{denied}{rest}")), "rest");
    assert_eq!(check(&format!("{denied}{held}{rest}")), "held");
    assert_eq!(check("- {name: etl, permanent: true, deny: true, match: {app: etl}}\n"), "etl");
}
