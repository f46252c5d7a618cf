//! Which statements begin a transaction or end one, and what goes on behind a text.

use super::effects::effects;

#[test]
fn transaction_control_is_told() {
    for (text, begins, ends) in [
        ("BEGIN", true, false),
        ("begin work;", true, false),
        ("START TRANSACTION READ ONLY", true, false),
        ("START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */", true, false),
        ("XA START 'x'", true, false),
        ("XA BEGIN 'x'", true, false),
        ("COMMIT", false, true),
        ("COMMIT AND CHAIN NO RELEASE", true, true),
        ("COMMIT AND NO CHAIN", false, true),
        ("ROLLBACK AND CHAIN", true, true),
        ("ROLLBACK TO SAVEPOINT a", false, false),
        ("ROLLBACK WORK TO `a`", false, false),
        ("XA PREPARE 'x'", false, true),
        ("XA COMMIT 'x' ONE PHASE", false, true),
        ("XA END 'x'", false, false),
        ("SAVEPOINT a", false, false),
        ("BEGIN NOT ATOMIC SELECT 1; END", true, true),
        ("START REPLICA", false, false),
        ("SELECT 'BEGIN'", false, false),
    ] {
        let found = effects(text);
        assert_eq!(
            (found.plain.begins_transaction, found.plain.ends_transaction),
            (begins, ends),
            "{text}"
        );
    }
    assert!(effects("COMMIT; INSERT INTO t VALUES (1)").plain.transaction_control_before_other);
    assert!(!effects("INSERT INTO t VALUES (1); COMMIT").plain.transaction_control_before_other);
    assert!(!effects("BEGIN; COMMIT").plain.transaction_control_before_other);
}

#[test]
fn what_may_end_a_transaction_is_told_wherever_it_stands() {
    for text in [
        "BEGIN",
        "START TRANSACTION",
        "COMMIT",
        "ROLLBACK AND CHAIN",
        "XA PREPARE 'x'",
        "SET autocommit=1",
        "SET @@autocommit=2",
        "SET @@session.autocommit = @x",
        "SET a=1, LOCAL autocommit:=1",
        "SET autocommit=1, autocommit=0",
        "SET GLOBAL a=1, autocommit=1",
        "SET `autocommit `=1",
        "SET PASSWORD = 'x'",
        "SET PASSWORD FOR u = 'x'",
        "SET DEFAULT ROLE a TO b",
        "CREATE TABLE t (a INT)",
        "TRUNCATE t",
        "LOCK TABLES t READ",
        "UNLOCK TABLES",
        "FLUSH TABLES",
        "ANALYZE TABLE t",
        "GRANT ALL ON *.* TO a",
        "RENAME TABLE a TO b",
        "CALL p()",
        "SELECT 1; COMMIT; SELECT 1",
        "SET STATEMENT a=1 FOR COMMIT",
    ] {
        assert!(effects(text).plain.transaction_verbs.any(), "{text}");
    }
    for text in [
        "SELECT 1",
        "DELETE FROM t; INSERT INTO t VALUES ('COMMIT')",
        "ROLLBACK TO SAVEPOINT a",
        "SAVEPOINT a; RELEASE SAVEPOINT a",
        "SET @autocommit = 1, GLOBAL autocommit = 1",
        "SET NAMES utf8mb4",
        "SHOW TABLES",
        "KILL 5",
        "USE d",
        "XA END 'x'",
        "XA RECOVER",
        "SET autocommit=0",
        "SET @@session.autocommit = OFF",
    ] {
        assert!(!effects(text).plain.transaction_verbs.any(), "{text}");
    }
    for (text, ends) in [
        ("SET autocommit=0", false),
        ("SET autocommit=OFF", false),
        ("SET autocommit=1", true),
        ("SET autocommit=ON", true),
        ("SET autocommit=@x", true),
        ("SET autocommit=0 OR 1", true),
        ("SET autocommit=0; SET autocommit=1; SET autocommit=0", true),
        ("CREATE TABLE t (a INT)", false),
        ("CREATE TABLE t (a INT); SELECT 1", true),
        ("SELECT 1; CREATE TABLE t (a INT)", false),
    ] {
        assert_eq!(effects(text).plain.ends_transaction, ends, "{text}");
    }
    for text in [
        "CREATE TABLE x (a INT); INSERT INTO t VALUES (1)",
        "SET autocommit=1; INSERT INTO t VALUES (1)",
        "UNLOCK TABLES; INSERT INTO t VALUES (1)",
    ] {
        assert!(effects(text).plain.transaction_control_before_other, "{text}");
    }
}

#[test]
fn what_began_in_a_text_and_worked_there_goes_on_behind_it() {
    use crate::TransactionAfter::{OfText, OfTextOrOther, Other, Same, Unknown};
    for (text, after) in [
        ("UPDATE t SET a = 1", Same),
        ("BEGIN", Other),
        ("COMMIT", Other),
        ("BEGIN; UPDATE t SET a = 1", OfText),
        ("START TRANSACTION; UPDATE t SET a = 1; UPDATE t SET a = 2", OfText),
        ("SET autocommit = 0; UPDATE t SET a = 1", Same),
        ("COMMIT; BEGIN; INSERT INTO t VALUES (1)", OfText),
        ("XA START 'q'; INSERT INTO t VALUES (1)", OfText),
        ("BEGIN; UPDATE t SET a = 1; SAVEPOINT s; SELECT 1", OfText),
        ("CREATE TABLE x (a INT); INSERT INTO t VALUES (1)", OfText),
        ("BEGIN; UPDATE t SET a = 1; COMMIT", Other),
        ("BEGIN; UPDATE t SET a = 1; COMMIT; BEGIN", Other),
        ("BEGIN; UPDATE t SET a = 1; CALL p()", OfTextOrOther),
        ("BEGIN; CALL p(); SELECT 1", OfTextOrOther),
        ("CALL p(); CALL q()", OfTextOrOther),
        ("BEGIN; CALL p(); COMMIT", Other),
        ("BEGIN; CALL p(); UPDATE t SET a = 1", OfText),
        ("BEGIN; SELECT 1", Other),
        ("BEGIN; UPDATE t SET a = 1; COMMIT AND CHAIN; SELECT 1", Other),
        ("BEGIN; UPDATE t SET a = 1; BEGIN; SELECT 1", Other),
        ("COMMIT; SELECT 1 FOR UPDATE", OfText),
        ("UPDATE t SET a = 1; BEGIN", Other),
        ("UPDATE t SET a = 1; COMMIT AND CHAIN", Other),
        ("LOCK TABLES t WRITE", Other),
        ("CALL p()", Unknown),
        ("CALL p(); SELECT 1", Unknown),
        // The flags show whether it has committed, if nothing could have begun another since.
        ("SET autocommit = 1", Same),
        ("SET @a = 1, LOCAL autocommit = DEFAULT", Same),
        ("SET @@session.autocommit = @@autocommit", Same),
        ("BEGIN; UPDATE t SET a = 1; SET autocommit = 1", OfText),
        ("COMMIT; SET autocommit = 1", Other),
        ("SET autocommit = 1; SELECT 1", Other),
        ("SET autocommit = 0, autocommit = 1", Other),
        ("SET autocommit = 1, autocommit = 0", Other),
        ("SET autocommit = 1, `śql_mode` = ''", Other),
        ("SET autocommit = (SELECT a FROM t)", Other),
        ("SET ROLE NONE", Same),
        ("SET ROLE NONE; SELECT 1", Same),
    ] {
        assert_eq!(effects(text).plain.transaction_after, after, "{text}");
    }
}

#[test]
fn how_far_a_text_came_is_told_by_the_results_ahead_of_its_error() {
    use crate::VerbsRun::{All, None, PlainFailed, Some, SwitchFailed};
    for (text, results, run) in [
        ("SELECT 1; SELECT 2", 1, None),
        ("UPDATE t SET a = 1; COMMIT", 0, None),
        ("UPDATE t SET a = 1; COMMIT", 1, PlainFailed),
        ("XA START 'x'", 0, PlainFailed),
        ("SELECT 1; XA COMMIT 'x'; COMMIT", 1, PlainFailed),
        ("COMMIT; XA START 'x'", 1, Some),
        ("SET autocommit = 1", 0, SwitchFailed),
        ("SELECT 1; SET autocommit = DEFAULT; SELECT 2", 1, SwitchFailed),
        ("SET autocommit = 1; SELECT 2", 1, All),
        ("SET autocommit = 1; COMMIT", 1, Some),
        ("SET autocommit = 1, @a = 1", 0, Some),
        ("SET autocommit = (SELECT 1 FOR UPDATE)", 0, Some),
        ("CREATE TABLE x SELECT f()", 0, Some),
        ("BEGIN; UPDATE t SET a = 1; SELECT 2", 0, PlainFailed),
        ("BEGIN; UPDATE t SET a = 1; SELECT 2", 1, All),
        ("BEGIN; UPDATE t SET a = 1; SELECT 2", 2, All),
        ("BEGIN; UPDATE t SET a = 1; COMMIT", 1, Some),
        ("BEGIN; UPDATE t SET a = 1; COMMIT", 2, Some),
        // One statement, and any number of results.
        ("CALL p()", 0, Some),
        ("SELECT 1; CALL p(); SELECT 2", 0, None),
        ("SELECT 1; CALL p(); SELECT 2", 5, Some),
        ("BEGIN; CALL p(); UPDATE t SET a = 1", 2, Some),
        ("BEGIN; EXECUTE IMMEDIATE 'x'", 1, Some),
    ] {
        assert_eq!(effects(text).plain.transaction_verbs.run(results), run, "{text} {results}");
    }
    let many = format!("{}BEGIN; {}", "SELECT 1; ".repeat(300), "SELECT 2; ".repeat(300));
    let verbs = effects(many.leak()).plain.transaction_verbs;
    assert_eq!([verbs.run(5), verbs.run(299), verbs.run(400)], [None, Some, Some]);
}

#[test]
fn what_works_behind_locks_that_were_given_back_is_told() {
    for (text, told) in [
        ("UNLOCK TABLES; INSERT INTO t VALUES (1); LOCK TABLES u READ", true),
        ("BEGIN; INSERT INTO t VALUES (1); COMMIT; LOCK TABLES u READ", true),
        ("LOCK TABLES u READ; INSERT INTO t VALUES (1)", true),
        ("UNLOCK INSTANCE; SELECT 1", true),
        ("UNLOCK TABLES; SET @a = 1", false),
        ("INSERT INTO t VALUES (1); UNLOCK TABLES", false),
        ("INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2)", false),
        ("CALL p()", false),
        ("CALL p(); SELECT 1", true),
    ] {
        assert_eq!(effects(text).plain.unlocks_before_other, told, "{text}");
    }
}
