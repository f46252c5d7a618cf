use super::*;
use crate::{Class, LexMode, Scratch, Whole, describe};

const MYSQL: Server = Server::MySql { version: 90_704 };
const MARIADB: Server = Server::MariaDb { version: 101_119 };

fn function<'r>(schema: &'r str, name: &'r str, body: &'r str) -> Routine<'r> {
    Routine {
        kind: RoutineKind::Function,
        schema: schema.as_bytes(),
        name: name.as_bytes(),
        body: Some(body.as_bytes()),
        sql_mode: b"STRICT_TRANS_TABLES",
    }
}

/// As SHOW CREATE FUNCTION has it.
fn created(body: &str) -> String {
    format!(
        "CREATE DEFINER=`a`@`%` FUNCTION `f`(a INT, b CHAR(3)) RETURNS varchar(20) CHARSET \
         utf8mb4\n    DETERMINISTIC\n    COMMENT 'x'\n{body}"
    )
}

fn writes(body: &str) -> bool {
    let body = &created(body);
    [MYSQL, MARIADB].iter().any(|server| {
        let mut rows = vec![function("d", "f", body), function("d", "pure", "RETURN 1")];
        rows.push(function("d", "impure", "BEGIN INSERT INTO t VALUES (1); RETURN 1; END"));
        !Routines::read(*server, rows).has(b"d", b"f")
    })
}

#[test]
fn a_body_that_only_reads_is_harmless() {
    for body in [
        "RETURN 1",
        "RETURN CONCAT(a, (SELECT MAX(b) FROM t), REPLACE(c, 'x', 'y'), INSERT(d, 1, 2, 'e'))",
        "RETURN CASE WHEN a THEN b ELSE c END",
        "BEGIN DECLARE x, y INT DEFAULT 1; SET x = 2, @y = IF(x, 1, (2)), y := 3; RETURN x; END",
        "l1: BEGIN DECLARE x INT; l2: LOOP SET x = x + 1; IF x > 3 THEN LEAVE l2; ELSEIF x THEN \
         ITERATE l2; ELSE SET x = 1; END IF; END LOOP l2; RETURN x; END",
        "BEGIN DECLARE done BOOL; DECLARE v INT; DECLARE c CURSOR FOR SELECT a FROM t; DECLARE \
         CONTINUE HANDLER FOR NOT FOUND SET done = TRUE; OPEN c; REPEAT FETCH c INTO v; UNTIL done \
         END REPEAT; CLOSE c; RETURN v; END",
        "BEGIN DECLARE n INT; SELECT COUNT(*) INTO n FROM t WHERE s = 'DELETE t'; RETURN n; END",
        "BEGIN IF a THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'x'; END IF; RETURN 1; END",
        "BEGIN WHILE a DO RETURN `update`; END WHILE; RETURN t.delete; END",
        "RETURN pure()",
        "RETURN d.PURE(1)",
        "RETURN 1 -- DELETE\n",
    ] {
        assert!(!writes(body), "{body}");
    }
}

#[test]
fn a_body_that_may_write_is_not() {
    for body in [
        "",
        "BEGIN INSERT INTO t VALUES (1); RETURN 1; END",
        "BEGIN IF a THEN DELETE FROM t; END IF; RETURN 1; END",
        "BEGIN DECLARE EXIT HANDLER FOR NOT FOUND UPDATE t SET a = 1; RETURN 1; END",
        "BEGIN REPLACE t VALUES (1); RETURN 1; END",
        "BEGIN CALL p(); RETURN 1; END",
        "BEGIN SELECT a INTO @a FROM t FOR UPDATE; RETURN 1; END",
        "BEGIN SELECT a INTO @a FROM t LOCK IN SHARE MODE; RETURN 1; END",
        "BEGIN CREATE TEMPORARY TABLE x (a INT); RETURN 1; END",
        "RETURN GET_LOCK('a', 1)",
        "RETURN NEXTVAL(s)",
        "RETURN NEXT VALUE FOR s",
        "RETURN impure()",
        "RETURN f()",
        "RETURN nowhere()",
        "RETURN other.pure()",
        "RETURN count (1)",
        "RETURN `now`(1)",
        "RETURN d.now(1)",
        "BEGIN SET sql_log_bin = 0; RETURN 1; END",
        "BEGIN SET @@sql_log_bin = 0; RETURN 1; END",
        "BEGIN SET GLOBAL x = 0; RETURN 1; END",
        "BEGIN SET NAMES gbk; RETURN 1; END",
        "BEGIN SET CHARACTER SET gbk; RETURN 1; END",
        "BEGIN SET @a = 1, sql_mode = ''; RETURN 1; END",
        "BEGIN IF 1 THEN BEGIN DECLARE a INT; DECLARE sql_mode INT; END; END IF; SET sql_mode = 1; \
         RETURN 1; END",
        "IF 1 THEN BEGIN DECLARE sql_mode INT; END; SET sql_mode = 1; END IF",
        "BEGIN DECLARE sql_mode CURSOR FOR SELECT 1; SET sql_mode = 1; RETURN 1; END",
        "BEGIN DECLARE sql_mode CONDITION FOR 1051; SET sql_mode = 1; RETURN 1; END",
        "BEGIN SELECT 1 INTO OUTFILE '/x'; RETURN 1; END",
        "BEGIN WHAT; RETURN 1; END",
        "BEGIN /*!50000 DELETE FROM t; */ RETURN 1; END",
        "RETURN 'x",
        "/*! */ label",
    ] {
        assert!(writes(body), "{body}");
    }
    let hidden = function("d", "f", "RETURN 1");
    for row in [
        Routine { body: None, ..hidden },
        Routine { name: "f\u{e9}".as_bytes(), ..hidden },
        Routine { sql_mode: b"ANSI_QUOTES,ORACLE", ..hidden },
        Routine { kind: RoutineKind::Procedure, ..hidden },
    ] {
        assert!(Routines::read(MYSQL, [row]).is_empty());
    }
}

#[test]
fn a_body_is_read_in_its_own_mode() {
    let body = &created("RETURN '\\'; DELETE FROM t; '");
    let row = function("d", "f", body);
    assert_eq!(Routines::read(MYSQL, [row]).len(), 1);
    let row = Routine { sql_mode: b"NO_BACKSLASH_ESCAPES", ..row };
    assert!(Routines::read(MYSQL, [row]).is_empty());
    let body = &created("RETURN \"impure\"(1)");
    let row = function("d", "f", body);
    assert!(Routines::read(MYSQL, [Routine { sql_mode: b"ANSI_QUOTES", ..row }]).is_empty());
}

/// MySQL shows an escaped quote without its escape, so what is code may look like a literal.
#[test]
fn a_literal_that_information_schema_shows_is_not_believed() {
    for body in [
        "BEGIN SET @a = '''; INSERT INTO t VALUES (1); SET @b = '''; RETURN 1; END",
        "BEGIN SET @a = \"x\"; RETURN 1; END",
        "RETURN `a`",
        "RETURN $$a$$",
        "RETURN \u{e9}",
    ] {
        assert!(Routines::read(MYSQL, [function("d", "f", body)]).is_empty(), "{body}");
    }
    let shown = [function("d", "f", "RETURN 1"), function("d", "g", "BEGIN RETURN f(); END")];
    assert_eq!(Routines::read(MYSQL, shown).len(), 2);
}

#[test]
fn functions_that_call_harmless_ones_are_harmless_and_the_rest_are_not() {
    let names: Vec<String> = (0..40).map(|n| format!("f{n}")).collect();
    let bodies: Vec<String> = (0..40).map(|n| format!("RETURN f{}()", n + 1)).collect();
    let mut rows: Vec<Routine<'_>> =
        names.iter().zip(&bodies).map(|(name, body)| function("d", name, body)).collect();
    assert!(Routines::read(MYSQL, rows.clone()).is_empty(), "f40 is nowhere");
    rows.reverse();
    rows.insert(0, function("d", "f40", "RETURN 1"));
    let routines = Routines::read(MYSQL, rows);
    assert!(routines.has(b"d", b"f0") && routines.len() == 41);
    let circle = [function("d", "a", "RETURN b()"), function("d", "b", "RETURN a()")];
    assert!(Routines::read(MYSQL, circle).is_empty());
}

fn with(text: &str, schema: &str, routines: &Routines) -> bool {
    let mode = LexMode { server: MARIADB, ..LexMode::default() };
    let mut scratch = Scratch::default();
    let statement = describe(text.as_bytes(), mode, Whole::Yes, &mut scratch);
    assert!(statement.classes.contains(Class::Call), "{text}");
    statement.classes_with(routines, schema.as_bytes()).contains(Class::Call)
}

#[test]
fn a_text_that_calls_only_harmless_functions_is_no_call() {
    let rows = [function("d", "Pure", "RETURN 1"), function("d", "bad", "RETURN nowhere()")];
    let routines = Routines::read(MARIADB, rows);
    for text in [
        "SELECT pure()",
        "SELECT PURE(1), pure(2), `Pure`(3)",
        "SELECT d.pure(1) FROM t",
        "SELECT `d`.`pure` (1)",
        "SET @a = pure()",
        "INSERT INTO t (a) VALUES (pure())",
    ] {
        assert!(!with(text, "d", &routines), "{text}");
    }
    assert!(!with("SELECT d.pure()", "", &routines));
    for (text, schema) in [
        ("SELECT pure()", "e"),
        ("SELECT pure()", ""),
        ("SELECT pure()", "D"),
        ("SELECT D.pure()", "d"),
        ("SELECT e.pure()", "d"),
        ("SELECT pure(), bad()", "d"),
        ("SELECT pure(); USE e", "d"),
        ("USE e; SELECT pure()", "d"),
        ("CALL pure()", "d"),
        ("CALL pure(pure())", "d"),
        ("SELECT pure(); CALL p()", "d"),
        ("SELECT x.d.pure()", "d"),
        ("SELECT d./**/pure()", "d"),
        ("SELECT p\u{fc}re()", "d"),
    ] {
        assert!(with(text, schema, &routines), "{text}");
    }
    let loadable = Routine { kind: RoutineKind::Loadable, schema: b"", ..rows[0] };
    let routines = Routines::read(MARIADB, rows.into_iter().chain([loadable]));
    assert!(with("SELECT pure()", "d", &routines) && !with("SELECT d.pure()", "d", &routines));
    let package = Routine { kind: RoutineKind::Other, ..rows[0] };
    let routines = Routines::read(MARIADB, rows.into_iter().chain([package]));
    assert!(with("SELECT d.pure()", "d", &routines) && !with("SELECT pure()", "d", &routines));
}

#[test]
fn with_more_routines_than_are_looked_at_none_is_harmless() {
    let names: Vec<String> = (0..=ROUTINES_MAX).map(|n| format!("f{n}")).collect();
    let rows = || names.iter().map(|name| function("d", name, "RETURN 1"));
    assert_eq!(Routines::read(MYSQL, rows().skip(1)).len(), ROUTINES_MAX);
    assert!(Routines::read(MYSQL, rows()).is_empty());
    let long = format!("RETURN {}", "x".repeat(BYTES_MAX));
    assert!(Routines::read(MYSQL, [function("d", "f", &long)]).is_empty());
}
