//! What begins with no verb of any server.

use super::effects::effects;
use super::*;

/// What no server can have run any of.
#[test]
fn what_begins_with_no_verb_is_told_from_what_may_be_a_statement() {
    let is_none = |text: &'static str| effects(text).plain.no_statement;
    for text in ["SELEC 1", "UPDTE t SET a = 1;", "/* x */ WHAT 'x'", "FROM t", "SELEKT * FROM t"] {
        assert!(is_none(text) && effects(text).plain.unread, "{text}");
    }
    for text in [
        "SELECT 1",
        "WHAT",
        "WHAT; SELECT 1",
        "SELEC 1; SET NAMES gbk",
        "SET NAMES gbk; SELEC 1",
        "x: BEGIN NOT ATOMIC EXECUTE s; END",
        "x := 1",
        "p(1)",
        "schema.p",
        "p `x`",
        "IF 1 THEN SET NAMES gbk; END IF",
        "BINLOG 'x'",
        "EXECUTE s",
        "BEGIN NOT ATOMIC EXECUTE s; END",
        "/*!50700 SET */ NAMES gbk",
        "SELEC 'x",
    ] {
        assert!(!is_none(text), "{text}");
    }
    let text = b"SELEC 1";
    let mut scratch = Scratch::default();
    assert!(!describe(text, MYSQL, Whole::Truncated, &mut scratch).effects.plain.no_statement);
}

/// On MySQL the guard that asks the server about tables was off behind a text that had not run.
#[test]
fn what_only_mariadb_has_is_no_statement_of_mysql() {
    let is_none = |text: &str, server| {
        let mode = LexMode { server, ..MYSQL };
        let mut scratch = Scratch::default();
        describe(text.as_bytes(), mode, Whole::Yes, &mut scratch).effects.plain.no_statement
    };
    let later = Server::MySql { version: 100_000 };
    for text in ["EXECUTE IMMEDIATE 'SELECT 1'", "BEGIN NOT ATOMIC SELECT 1; END"] {
        let found =
            [MYSQL.server, later, MARIADB.server, Server::Unknown].map(|s| is_none(text, s));
        assert!(!found[1] && !found[2] && !found[3], "{text}: {found:?}");
    }
    assert!(is_none("EXECUTE IMMEDIATE 'SELECT 1'", MYSQL.server));
    for text in ["EXECUTE immediate", "EXECUTE immediate USING @a", "COMMIT; EXECUTE IMMEDIATE 'x'"]
    {
        assert!(!is_none(text, MYSQL.server), "{text}");
    }
}
