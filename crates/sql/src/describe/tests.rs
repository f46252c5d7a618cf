use super::{verb::BY_UNLOCK_TABLES, *};
use crate::{
    effects::Locks,
    mode::{Charset, Server, Setting},
};

mod calls;
mod effects;
mod no_verb;
mod other_text;
mod transactions;

const MYSQL: LexMode = LexMode {
    no_backslash_escapes: Setting::Off,
    ansi_quotes: Setting::Off,
    charset: Charset::Plain,
    server: Server::MySql { version: 90_704 },
};
const MARIADB: LexMode = LexMode { server: Server::MariaDb { version: 101_119 }, ..MYSQL };
const UNKNOWN: LexMode = LexMode { server: Server::Unknown, ..MYSQL };

fn class(text: &str, mode: LexMode) -> Class {
    class_of_bytes(text.as_bytes(), mode)
}

fn classes(text: &str, mode: LexMode) -> ClassSet {
    describe(text.as_bytes(), mode, Whole::Yes, &mut Scratch::default()).classes
}

fn class_of_bytes(text: &[u8], mode: LexMode) -> Class {
    describe(text, mode, Whole::Yes, &mut Scratch::default()).class
}

fn tags(text: &str, mode: LexMode) -> Vec<(String, String)> {
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    describe(text.as_bytes(), mode, Whole::Yes, &mut Scratch::default())
        .tags()
        .map(|tag| (string(tag.key), string(tag.value)))
        .collect()
}

fn assert_classes(table: &[(&str, Class)]) {
    for (text, expected) in table {
        assert_eq!(class(text, MYSQL), *expected, "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_unknown() {
    for text in [
        "",
        ";",
        " ;; ",
        "-- only a comment",
        "/* x */",
        "42",
        "'x'",
        "`select`",
        "SELEC 1",
        "SELECTS 1",
        "\u{feff}SELECT 1",
        "SELECT 'x",
        "SELECT 1 /* x",
        "SELECT `x",
        "SELECT \"x",
        "/*!50000 SELECT 1",
        "DELIMITER //",
        "IF 1 THEN SELECT 1; END IF",
        "<<l>> BEGIN END",
    ] {
        for mode in [MYSQL, MARIADB, UNKNOWN] {
            assert_eq!(class(text, mode), Class::Unknown, "{text}");
        }
    }
}

#[test]
fn explain_runs_nothing_unless_it_analyzes() {
    assert_classes(&[
        ("EXPLAIN DELETE FROM t", Class::Read),
        ("EXPLAIN SELECT * FROM t FOR UPDATE", Class::Read),
        ("EXPLAIN ANALYZE DELETE FROM t", Class::Write),
        ("EXPLAIN ANALYZE FORMAT=TREE SELECT * FROM t FOR UPDATE", Class::LockingRead),
        ("DESC ANALYZE UPDATE t SET a=1", Class::Write),
        ("ANALYZE UPDATE t SET a=1", Class::Write),
        ("ANALYZE FORMAT=JSON SELECT 1", Class::Read),
        ("ANALYZE NO_WRITE_TO_BINLOG TABLE t", Class::Admin),
        ("EXPLAIN ANALYZE", Class::Unknown),
        ("EXPLAIN ANALYZE WITH x AS (SELECT 1) DELETE FROM t", Class::Write),
        ("SET STATEMENT a=1, b=SUBSTRING('x' FROM 1 FOR 2) FOR DELETE FROM t", Class::Write),
        ("SET STATEMENT a=1 FOR SELECT * FROM t FOR UPDATE", Class::LockingRead),
        ("SET STATEMENT a=1 FOR (SELECT 1)", Class::Read),
        ("SET STATEMENT a=1", Class::Unknown),
        ("SET STATEMENT sql_mode='' FOR SELECT 1", Class::Unknown),
    ]);
}

#[test]
fn a_lock_is_found_at_any_depth_and_nowhere_else() {
    assert_classes(&[
        ("SELECT * FROM (SELECT * FROM (SELECT 1 FOR UPDATE) a) b", Class::LockingRead),
        ("WITH x AS (SELECT 1 FROM t FOR SHARE) SELECT * FROM x", Class::LockingRead),
        ("WITH x AS (SELECT 1) (SELECT * FROM x FOR UPDATE)", Class::LockingRead),
        ("WITH x AS (SELECT 1) (SELECT * FROM x)", Class::Read),
        ("((SELECT 1) FOR UPDATE)", Class::LockingRead),
        ("SELECT 1 FOR/**/UPDATE", Class::LockingRead),
        ("SELECT 1 FOR -- x\n UPDATE", Class::LockingRead),
        ("SELECT 1 LOCK/**/IN/**/SHARE/**/MODE", Class::LockingRead),
        ("SELECT a FROM t WHERE b=1e5FOR UPDATE", Class::LockingRead),
        ("SELECT .5FOR UPDATE", Class::LockingRead),
        ("SELECT 'x'FOR UPDATE", Class::LockingRead),
        ("DO (SELECT 1 FOR UPDATE)", Class::LockingRead),
        ("TABLE t FOR UPDATE", Class::LockingRead),
        ("SELECT FOR FOR UPDATE", Class::LockingRead),
        ("SET @a = (SELECT 1 FROM t FOR UPDATE)", Class::LockingRead),
        ("SET @a = (SELECT 1 FROM t)", Class::Session),
        ("SELECT 'FOR UPDATE', \"FOR UPDATE\" /* FOR UPDATE */ -- FOR UPDATE", Class::Read),
        ("SELECT 0x4DFOR", Class::Read),
        ("SELECT `for` FROM t `update`", Class::Read),
        ("SELECT @for, t.lock FROM t", Class::Read),
        ("HANDLER t READ NEXT", Class::Read),
        ("HANDLER d.t OPEN AS x", Class::Read),
        ("HANDLER close READ FIRST", Class::Read),
        ("HANDLER `read` CLOSE", Class::Admin),
    ]);
}

#[test]
fn the_strictest_statement_of_a_text_counts() {
    assert_classes(&[
        ("SELECT 1; DELETE FROM t", Class::Write),
        ("BEGIN; UPDATE t SET a=1; COMMIT", Class::Write),
        ("CREATE TABLE t (a INT); INSERT INTO t VALUES (1)", Class::Write),
        ("SET autocommit=0; SELECT 1;", Class::Read),
        ("SELECT 1; SHOW TABLES", Class::Read),
        ("SELECT ';'; CALL p()", Class::Call),
        ("SELECT 1;;;", Class::Read),
        ("; DELETE FROM t", Class::Write),
        ("SELECT 1; WHAT", Class::Unknown),
    ]);
    let mut scratch = Scratch::default();
    let text = b"DROP TABLE x; SELECT 1; INSERT INTO t VALUES (1);;";
    let statement = describe(text, MYSQL, Whole::Yes, &mut scratch);
    assert_eq!(statement.statement_count, 3);
    assert!([Class::Ddl, Class::Read, Class::Write].iter().all(|c| statement.classes.contains(*c)));
}

#[test]
fn a_statement_that_changes_how_the_next_is_read_makes_the_next_unknown() {
    assert_classes(&[
        ("SET sql_mode='NO_BACKSLASH_ESCAPES'; SELECT '\\'; DELETE FROM t -- '", Class::Unknown),
        ("SET NAMES gbk; SELECT 1", Class::Read),
        ("SET NAMES gbk; SELECT 'x'", Class::Read),
        ("SET NAMES gbk; SELECT '\u{e9}'", Class::Unknown),
        ("SET NAMES swe7; SELECT '{}'", Class::Unknown),
        ("SET sql_mode='ANSI_QUOTES'; SELECT \"x\"", Class::Unknown),
        ("SET \u{15b}ql_mode='ANSI_QUOTES'; SELECT \"x\"", Class::Unknown),
        ("SET character_set_client=@x; SELECT '\u{e9}'", Class::Unknown),
        ("SET character_set_client=@x; SELECT 1; DELETE FROM t", Class::Write),
        ("SET NAMES utf8mb4; SELECT 1", Class::Read),
        ("SET sql_mode='ANSI';", Class::Session),
        ("SET @@GLOBAL.sql_mode='ANSI'; SELECT 1", Class::Read),
    ]);
}

#[test]
fn a_stored_program_is_one_statement_and_hides_nothing_behind_it() {
    const BODIES: [&str; 9] = [
        "CREATE PROCEDURE p() BEGIN INSERT INTO t VALUES (1); DELETE FROM u; END",
        "CREATE DEFINER=`a`@`%` PROCEDURE `d`.`p`(IN a DECIMAL(1,2)) COMMENT 'x' SQL SECURITY \
         INVOKER BEGIN IF a THEN UPDATE t SET a=1; ELSEIF b THEN SET c=1; ELSE DELETE FROM t; END \
         IF; END",
        "CREATE FUNCTION f(a INT) RETURNS VARCHAR(20) CHARACTER SET utf8mb4 DETERMINISTIC READS \
         SQL DATA BEGIN DECLARE x INT; l1: LOOP SET x=IF(a,1,2); IF x THEN LEAVE l1; END IF; END \
         LOOP l1; RETURN x; END",
        "CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW FOLLOWS v BEGIN CASE NEW.a WHEN 1 THEN \
         SET NEW.b=CASE WHEN 1 THEN 2 ELSE 3 END; ELSE SET NEW.b=4; END CASE; END",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN WHILE a DO SET a=a-1; END WHILE; REPEAT \
         SET a=1; UNTIL a END REPEAT; END",
        "CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR SQLSTATE VALUE '23000', NOT FOUND \
         BEGIN ROLLBACK; END; DECLARE CONTINUE HANDLER FOR 1051 SET @a=1; START TRANSACTION; \
         COMMIT; END",
        "CREATE PROCEDURE p() l: BEGIN BEGIN END; BEGIN SELECT 1; END; END l",
        "CREATE PROCEDURE p() IF 1 THEN SELECT 1; SELECT 2; END IF",
        "ALTER EVENT e DO BEGIN SELECT 1; SELECT 2; END",
    ];
    for body in BODIES {
        assert_eq!(class(body, MYSQL), Class::Ddl, "{body}");
        let dumped = format!("/*!50003 {body} */");
        assert_eq!(class(&dumped, MYSQL), Class::Ddl, "{dumped}");
        assert_eq!(class(&format!("{body}; SELECT 1"), MYSQL), Class::Ddl, "{body}");
        let hidden = format!("{body}; DELETE FROM t");
        assert_eq!(class(&hidden, MYSQL), Class::Write, "{hidden}");
    }
}

#[test]
fn a_word_that_only_looks_like_a_block_hides_nothing() {
    for text in [
        "CREATE PROCEDURE begin() SELECT 1; DELETE FROM t",
        "CREATE PROCEDURE p(begin INT) SELECT 1; DELETE FROM t",
        "CREATE PROCEDURE p() SELECT 1 AS begin; DELETE FROM t",
        "CREATE PROCEDURE p() SELECT begin FROM t; DELETE FROM t",
        "CREATE PROCEDURE p() OPTIMIZE TABLE begin; DELETE FROM t",
        "CREATE PROCEDURE p() BEGIN SELECT CASE 1 WHEN 1 THEN begin ELSE begin END; END; \
         DELETE FROM t",
        "CREATE PROCEDURE p() BEGIN SELECT do begin FROM t; END; DELETE FROM t",
        "CREATE PROCEDURE p() BEGIN SELECT t.begin, `begin`, 'begin'; END; DELETE FROM t",
        "CREATE PROCEDURE p() BEGIN DECLARE begin CONDITION FOR 1051; DECLARE EXIT HANDLER FOR \
         begin SET @x=1; END; DELETE FROM t",
        "CREATE TRIGGER begin BEFORE INSERT ON t FOR EACH ROW SET NEW.a=1; DELETE FROM t",
        "CREATE EVENT begin ON SCHEDULE EVERY 1 DAY DO SELECT 1; DELETE FROM t",
        "CREATE TABLE begin (begin INT); DELETE FROM t",
        "CREATE VIEW v AS SELECT 1 AS begin; DELETE FROM t",
    ] {
        assert!(class(text, MYSQL).is_covered_by_write(), "{text}");
    }
    let deep = format!("CREATE PROCEDURE p() {} ", "BEGIN ".repeat(100_000));
    assert_eq!(class(&deep, MYSQL), Class::Unknown);
}

/// Each creates its program on both servers or on the one named, and ends at its last word.
#[test]
fn a_name_that_could_be_a_keyword_of_a_block_hides_nothing() {
    for (body, modes) in [
        ("CREATE TRIGGER x BEFORE INSERT ON w.row FOR EACH ROW SET NEW.a=1", &[MYSQL, MARIADB][..]),
        ("CREATE TRIGGER row BEFORE INSERT ON t FOR EACH ROW SET NEW.a=1", &[MARIADB]),
        ("CREATE TRIGGER x BEFORE INSERT ON w.for FOR EACH ROW SET NEW.a=1", &[MYSQL, MARIADB]),
        (
            "CREATE PROCEDURE p() BEGIN DECLARE end, begin INT; IF CASE WHEN 1 THEN end WHEN 2 \
             THEN begin ELSE 1 END THEN SELECT 1; END IF; END",
            &[MYSQL, MARIADB],
        ),
        (
            "CREATE PROCEDURE p() BEGIN DECLARE do INT; WHILE (SELECT do begin) DO SET do=1; END \
             WHILE; END",
            &[MYSQL, MARIADB],
        ),
        (
            "CREATE PROCEDURE p() BEGIN DECLARE do INT; WHILE do DO SELECT do begin; END WHILE; \
             END",
            &[MYSQL, MARIADB],
        ),
        ("CREATE PROCEDURE p() BEGIN WHILE 1 LOOP SELECT do begin; END LOOP; END", &[MARIADB]),
        ("CREATE PROCEDURE p() BEGIN SELECT CASE WHEN @@end THEN 1 END; END", &[MYSQL]),
        ("CREATE EVENT do ON SCHEDULE EVERY 1 DAY DO SELECT 1", &[MYSQL, MARIADB]),
        ("CREATE EVENT d.do ON SCHEDULE EVERY 1 DAY DO BEGIN END", &[MYSQL, MARIADB]),
        (
            "CREATE PROCEDURE p() BEGIN DECLARE end INT; CASE WHEN 1 THEN SELECT CASE WHEN 1 THEN \
             end END; ELSE SELECT 2; END CASE; END",
            &[MYSQL, MARIADB],
        ),
        (
            "CREATE PROCEDURE p() BEGIN DECLARE end INT; IF CASE 1 WHEN end - end THEN 1 WHEN 2 \
             THEN end END THEN BEGIN END; END IF; END",
            &[MYSQL, MARIADB],
        ),
    ] {
        for mode in modes {
            for balance in ["END", "END IF", "END WHILE", "END CASE", "END; END"] {
                let hidden = format!("{body}; DELETE FROM t; {balance}");
                let classes = classes(&hidden, *mode);
                assert!(classes.contains(Class::Write), "{hidden}: {classes:?}");
            }
        }
    }
}

#[test]
fn for_begins_a_loop_with_mariadb_alone() {
    let body = "CREATE PROCEDURE p() BEGIN FOR i IN 1..3 DO SELECT i; END FOR; END";
    assert_eq!(class(body, MARIADB), Class::Ddl);
    assert_eq!(class(&format!("{body}; DELETE FROM t"), MARIADB), Class::Write);
    let text =
        "CREATE TRIGGER x BEFORE INSERT ON w.row FOR EACH ROW SET @a=1; DELETE FROM t; END FOR";
    for mode in [MYSQL, MARIADB, UNKNOWN] {
        assert!(class(text, mode).is_covered_by_write(), "{mode:?}");
    }
}

#[test]
fn every_word_before_which_an_operand_stands_is_known_as_one() {
    for operator in [
        "AND", "OR", "XOR", "NOT", "DIV", "MOD", "LIKE", "RLIKE", "REGEXP", "BINARY", "COLLATE",
        "IS", "IN", "BETWEEN", "INTERVAL", "THEN", "ELSE", "WHEN", "CASE", "DISTINCT", "SELECT",
        "USING", "ESCAPE", "OVER", "FOR",
    ] {
        let text = format!(
            "CREATE PROCEDURE p() BEGIN IF CASE WHEN 1 {operator} end THEN 1 WHEN 2 THEN begin \
             END THEN SELECT 1; END IF; END; DELETE FROM t"
        );
        assert!(class(&text, MYSQL).is_covered_by_write(), "{text}");
    }
}

#[test]
fn an_ordinary_program_stays_one_statement() {
    for body in [
        "CREATE FUNCTION f() RETURNS INT RETURN CASE WHEN a THEN b.status ELSE NULL END",
        "CREATE PROCEDURE p() BEGIN SELECT CASE WHEN (SELECT 1 end) THEN 1 END; SELECT 2; END",
        "CREATE PROCEDURE p() BEGIN CASE x WHEN 1 THEN SELECT 1; ELSE BEGIN END; END CASE; END",
        "CREATE PROCEDURE p() BEGIN REPEAT SELECT 1; UNTIL CASE WHEN 1 THEN 2 END END REPEAT; END",
        "CREATE PROCEDURE p() BEGIN SET @a = NOW() - INTERVAL CASE 1 WHEN 1 THEN 2 END DAY; END",
        "CREATE TRIGGER t BEFORE INSERT ON u FOR EACH ROW BEGIN IF NEW.end THEN SET NEW.a=1; END \
         IF; END",
        "CREATE DEFINER=CURRENT_USER EVENT e ON SCHEDULE EVERY 1 DAY COMMENT 'do' DO BEGIN END",
        "CREATE PROCEDURE p() BEGIN DECLARE x INT DEFAULT CASE 1 WHEN 1 THEN 'a' END; END",
    ] {
        assert_eq!(class(body, MYSQL), Class::Ddl, "{body}");
        assert_eq!(class(&format!("{body}; DELETE FROM t"), MYSQL), Class::Write, "{body}");
    }
}

#[test]
fn executable_comments_count_as_the_server_runs_them() {
    for (text, mysql, mariadb, unknown) in [
        ("SELECT 1 /*! FOR UPDATE */", true, true, true),
        ("SELECT 1 /*!50000 FOR UPDATE */", true, true, true),
        ("SELECT 1 /*!80000 FOR UPDATE */", true, false, true),
        ("SELECT 1 /*!50701 FOR UPDATE */", true, false, true),
        ("SELECT 1 /*!100100 FOR UPDATE */", false, true, true),
        ("SELECT 1 /*!99999 FOR UPDATE */", false, false, true),
        ("SELECT 1 /*M! FOR UPDATE */", false, true, true),
        ("SELECT 1 /*M!100100 FOR UPDATE */", false, true, true),
        ("SELECT 1 /*!50000 /* x */ FOR UPDATE */", true, true, true),
        ("SELECT 1 /*!99999 /* x */ FOR UPDATE */", false, false, true),
        ("SELECT 1 /* /* x */ FOR UPDATE", true, true, true),
        ("SELECT 1 --1 FOR UPDATE", true, true, true),
        ("SELECT 1 -- 1 FOR UPDATE", false, false, false),
        ("SELECT 1 --\tFOR UPDATE", false, false, false),
        ("SELECT 1 # FOR UPDATE", false, false, false),
        ("SELECT 1 --", false, false, false),
        ("SELECT\x0b1\x0bFOR\x0bUPDATE", true, true, true),
        ("SELECT 1 FOR UPDATE\0", true, true, true),
    ] {
        for (mode, locks) in [(MYSQL, mysql), (MARIADB, mariadb), (UNKNOWN, unknown)] {
            let expected = if locks { Class::LockingRead } else { Class::Read };
            assert_eq!(class(text, mode), expected, "{text:?} {mode:?}");
        }
    }
}

#[test]
fn what_an_executable_comment_hides_from_one_server_counts_for_an_unknown_one() {
    for text in [
        "SELECT 1 /*!99999 ' */ ; DELETE FROM t -- '",
        "SELECT 1 /*!99999 */; DELETE FROM t /* */",
        "/*M! SELECT */ DELETE FROM t",
        "SELECT 1 /*M! ; DELETE FROM t */",
        "SELECT $$ ; DELETE FROM t; SELECT $$",
        "SELECT 1 AS $a$ ; DELETE FROM t; SELECT 1 AS $b$",
    ] {
        assert!(class(text, UNKNOWN).is_covered_by_write(), "{text}");
    }
}

#[test]
fn a_dollar_quote_is_a_literal_to_mysql_9_only() {
    let text = "SELECT $$ ; DELETE FROM t -- $$";
    assert_eq!(class(text, MYSQL), Class::Read);
    assert_eq!(class(text, MARIADB), Class::Write);
    let text = "SELECT $a$ $b$ ' $a$ FOR UPDATE";
    assert_eq!(class(text, MYSQL), Class::LockingRead);
    assert!(class("SELECT 1 AS $a$; DELETE FROM t", MYSQL).is_covered_by_write());
    let many = "SELECT $a$ ".to_owned() + &"$b$ $c$ ".repeat(100_000);
    assert!(class(&many, MYSQL).is_covered_by_write());
}

#[test]
fn a_trail_byte_that_looks_like_a_backslash_escapes_nothing() {
    let gbk = LexMode { charset: Charset::Gbk, ..MYSQL };
    let text = b"SELECT '\x81\\'; DELETE FROM t -- '";
    assert_eq!(class_of_bytes(text, gbk), Class::Write);
    assert_eq!(class_of_bytes(text, MYSQL), Class::Read);
    let name = b"SELECT `\x81`; DELETE FROM t; SELECT `x` FROM t";
    assert_eq!(class_of_bytes(name, gbk), Class::Unknown, "the name goes on, then nothing ends it");
    // In latin1 0xA0 is white space.
    let latin1 = LexMode { charset: Charset::Latin, ..MYSQL };
    assert_eq!(class_of_bytes(b"SELECT 1 FOR\xA0UPDATE", latin1), Class::LockingRead);
    assert_eq!(class_of_bytes(b"\xA0DELETE FROM t", latin1), Class::Write);
    assert_eq!(class_of_bytes(b"SELECT 1 --\xA0'\n; DELETE FROM t -- '", latin1), Class::Unknown);
}

#[test]
fn modes_change_where_a_literal_ends() {
    let plain = LexMode { no_backslash_escapes: Setting::On, ..MYSQL };
    assert_eq!(class("SELECT '\\'; DELETE FROM t -- '", plain), Class::Write);
    let ansi = LexMode { ansi_quotes: Setting::On, ..MYSQL };
    assert_eq!(class("SELECT \"a\\\"; DELETE FROM t -- \"", ansi), Class::Write);
    assert_eq!(class("SELECT \"a\\\"; DELETE FROM t -- \"", MYSQL), Class::Read);
}

#[test]
fn a_hint_with_an_open_quote_may_hide_its_end() {
    let older = LexMode { server: Server::MySql { version: 80_036 }, ..MYSQL };
    for mode in [older, UNKNOWN] {
        let text = "SELECT /*+ QB_NAME(`*/'`) */ 1; DELETE FROM t -- '";
        assert_eq!(class(text, mode), Class::Unknown);
        assert_eq!(class("SELECT /*+ SET_VAR(sql_mode='x') */ 1", mode), Class::Read);
    }
}

#[test]
fn a_hint_ends_at_the_first_end_of_a_comment_since_mysql_9_7() {
    for mode in [MYSQL, MARIADB] {
        assert_eq!(class("SELECT /*+ it's */ 1", mode), Class::Read);
        assert_eq!(class("SELECT /*+ QB_NAME(`*/ 1", mode), Class::Read);
        assert_eq!(class("SELECT /*+ '*/ 1; DELETE FROM t -- '", mode), Class::Write);
        assert_eq!(class("SELECT /*+ QB_NAME(`*/'`) */ 1; DELETE FROM t -- '", mode), Class::Read);
    }
}

#[test]
fn only_plain_comments_outside_executable_ones_carry_tags() {
    let one = vec![("app".to_owned(), "x".to_owned())];
    for text in [
        "/* app=x */ SELECT 1",
        "SELECT /* app=x */ 1",
        "SELECT 1 /* app=x */",
        "SELECT 1 -- app=x",
        "SELECT 1 # app=x\n",
        "/*!50000 SELECT 1 */ /* app=x */",
        "SELECT 1; /* app=x */ SELECT 2",
    ] {
        for mode in [MYSQL, MARIADB, UNKNOWN] {
            assert_eq!(tags(text, mode), one, "{text} {mode:?}");
        }
    }
    for text in [
        "SELECT '/* app=x */'",
        "SELECT \"/* app=x */\" `/* app=x */`",
        "SELECT '\\'/* app=x */'",
        "SELECT /*! app=x */ 1",
        "SELECT /*!99999 app=x */ 1",
        "SELECT /*!99999 /* app=x */ */ 1",
        "SELECT /*!50000 /* app=x */ */ 1",
        "SELECT /*!50000 1 -- app=x\n */",
        "SELECT /*M! app=x */ 1",
        "SELECT /*M! /* app=x */ 1",
        "SELECT /*+ app=x */ 1",
        "SELECT 1 --app=x",
        "SELECT 1 /* app=x ",
    ] {
        for mode in [MYSQL, MARIADB, UNKNOWN] {
            assert!(tags(text, mode).is_empty(), "{text} {mode:?}");
        }
    }
    assert!(tags("SELECT $$ /* app=x */ $$", MYSQL).is_empty());
    assert!(tags("SELECT $$ /* app=x */ $$", UNKNOWN).is_empty());
}

#[test]
fn a_comment_that_only_one_reading_sees_is_no_identity() {
    let text = "SELECT 1 /*!99999 ' */, '/* app=x */ '";
    assert!(tags(text, UNKNOWN).is_empty());
}

#[test]
fn comments_are_read_again_only_when_they_differ() {
    let mut scratch = Scratch::default();
    let generation = |text: &[u8], scratch: &mut Scratch| {
        describe(text, MYSQL, Whole::Yes, scratch).comment_generation()
    };
    let first = generation(b"SELECT 1 /* app=x */", &mut scratch);
    assert_eq!(generation(b"/* app=x */ DELETE FROM t", &mut scratch), first);
    assert_ne!(generation(b"SELECT 1 /* app=xy */", &mut scratch), first);
    let none = generation(b"SELECT 1", &mut scratch);
    assert!(describe(b"SELECT 1", MYSQL, Whole::Yes, &mut scratch).tags().next().is_none());
    scratch.shrink();
    assert_eq!(generation(b"SELECT 2", &mut scratch), none);
}

#[test]
fn a_cut_text_keeps_its_whole_comments_and_loses_the_cut_one() {
    let mut scratch = Scratch::default();
    let text = b"/* app=x */ INSERT INTO t VALUES (1) -- db=y";
    let statement = describe(text, MYSQL, Whole::Truncated, &mut scratch);
    assert_eq!(statement.class, Class::Write);
    assert_eq!(statement.tags().map(|tag| tag.key).collect::<Vec<_>>(), [b"app"]);
    let statement = describe(b"BEGIN", MYSQL, Whole::Truncated, &mut scratch);
    assert_eq!(statement.class, Class::Unknown);
    assert!(statement.effects.plain.unread);
}

#[test]
fn a_text_is_certain_when_it_was_read_whole_and_in_one_way() {
    let certain = |text: &str, mode: LexMode, whole: Whole| {
        describe(text.as_bytes(), mode, whole, &mut Scratch::default()).is_certain()
    };
    assert!(certain("DELETE FROM t /* app=x */", UNKNOWN, Whole::Yes));
    assert!(certain("DELETE /*!50000 IGNORE */ FROM t", MYSQL, Whole::Yes));
    assert!(!certain("DELETE /*!50000 IGNORE */ FROM t", UNKNOWN, Whole::Yes));
    assert!(!certain("DELETE FROM t WHERE s = 'x", MYSQL, Whole::Yes));
    assert!(!certain("DELETE FROM t", MYSQL, Whole::Truncated));
}
