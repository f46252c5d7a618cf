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
