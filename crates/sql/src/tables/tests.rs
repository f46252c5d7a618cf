use super::*;
use crate::mode::Server;

fn found(text: &str) -> (Vec<String>, Completeness) {
    let mode = LexMode { server: Server::MySql { version: 90_704 }, ..LexMode::default() };
    let mut out = Vec::new();
    let completeness = tables(text.as_bytes(), mode, |table| out.push(table));
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let names = out.iter().map(|table| match table.schema {
        Some(schema) => format!("{}.{}", string(schema), string(table.name)),
        None => string(table.name),
    });
    (names.collect(), completeness)
}

#[test]
fn tables_are_found_wherever_a_statement_names_them() {
    for (text, expected) in [
        ("SELECT 1", vec![]),
        ("SELECT 1 FROM dual", vec![]),
        ("SELECT * FROM a, b AS x, `c d` y WHERE a.i IN (1, 2)", vec!["a", "b", "c d"]),
        (
            "SELECT * FROM db . a JOIN `d`.`b` USING (i, j) LEFT JOIN c ON 1",
            vec!["db.a", "d.b", "c"],
        ),
        ("SELECT * FROM (a, b) JOIN (c CROSS JOIN d)", vec!["a", "b", "c", "d"]),
        ("SELECT * FROM (SELECT 1, 2 FROM a, b GROUP BY 1, 2) x, c", vec!["a", "b", "c"]),
        ("SELECT (SELECT MAX(i) FROM a), b FROM c ORDER BY 1, 2", vec!["a", "c"]),
        ("SELECT TRIM(LEADING 'x' FROM y), EXTRACT(DAY FROM z) FROM a", vec!["a"]),
        ("SELECT * FROM a USE INDEX FOR ORDER BY (i, j), b", vec!["a", "b"]),
        ("SELECT * FROM a FORCE INDEX FOR JOIN (i), b", vec!["a", "b"]),
        ("SELECT * FROM a PARTITION (p0, p1), b", vec!["a", "b"]),
        ("SELECT * FROM {oj a LEFT OUTER JOIN b ON 1}", vec!["a", "b"]),
        ("SELECT * FROM a, LATERAL (SELECT * FROM b) x", vec!["a", "b"]),
        ("SELECT * FROM JSON_TABLE('[1]', '$' COLUMNS (a INT PATH '$')) j, b", vec!["b"]),
        ("SELECT STRAIGHT_JOIN * FROM a STRAIGHT_JOIN b", vec!["a", "b"]),
        ("(SELECT 1 FROM a) UNION (SELECT 2 FROM b) ORDER BY 1, 2", vec!["a", "b"]),
        ("WITH x AS (SELECT 1 FROM a) SELECT * FROM x", vec!["a", "x"]),
        ("TABLE a", vec!["a"]),
        ("INSERT LOW_PRIORITY IGNORE INTO d.a (i, j) VALUES (1, 2), (3, 4)", vec!["d.a"]),
        ("INSERT a SELECT * FROM b, c ON DUPLICATE KEY UPDATE i=1, j=2", vec!["a", "b", "c"]),
        ("REPLACE INTO a TABLE b", vec!["a", "b"]),
        ("UPDATE LOW_PRIORITY IGNORE a, b SET a.i=1, b.j=2", vec!["a", "b"]),
        ("UPDATE a JOIN b ON 1 SET a.i=(SELECT 1 FROM c)", vec!["a", "b", "c"]),
        ("DELETE LOW_PRIORITY QUICK FROM a WHERE i IN (SELECT 1 FROM b)", vec!["a", "b"]),
        ("DELETE a, b.* FROM a JOIN b ON 1", vec!["a", "b"]),
        ("DELETE FROM a, b USING a JOIN b USING (i)", vec!["a", "b", "a", "b"]),
        ("TRUNCATE TABLE d.a", vec!["d.a"]),
        ("SELECT * FROM a FOR UPDATE; DELETE FROM b", vec!["a", "b"]),
        ("SELECT NEXTVAL(d.s), NEXT VALUE FOR r, LASTVAL(q) FROM a", vec!["d.s", "r", "a"]),
    ] {
        assert_eq!(
            found(text),
            (expected.into_iter().map(str::to_owned).collect(), Completeness::Complete),
            "{text}"
        );
    }
}

#[test]
fn what_may_hide_a_table_is_partial() {
    for text in [
        "CALL p()",
        "CREATE TRIGGER x BEFORE INSERT ON a FOR EACH ROW SET @i = 1",
        "CREATE PROCEDURE p() DELETE FROM a",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a",
        "DROP TRIGGER t",
        "DROP PROCEDURE p",
        "ALTER DATABASE d READ ONLY = 1",
        "ALTER SCHEMA CHARACTER SET utf8mb4",
        "DROP DATABASE",
        "IMPORT TABLE FROM 'a.sdi'",
        "CREATE TABLE a (i INT) ENGINE=MERGE UNION=(b, c)",
        "ALTER TABLE a UNION (b)",
        "SELECT s.nextval",
        "ALTER USER u IDENTIFIED BY 'x'",
        "CREATE",
        "LOAD INDEX INTO CACHE a",
        "SET STATEMENT max_statement_time=1 FOR UPDATE a SET i=1",
        "EXPLAIN SELECT 1",
        "SHOW TABLES FROM a",
        "SELECT * FROM f(1)",
        "SELECT d.f(1) FROM a",
        "SELECT * FROM a,",
        "SELECT * FROM (a",
        "SELECT * FROM a)",
        "SELECT * FROM 'a'",
        "SELECT * FROM @a",
        "SELECT * FROM a WHERE 'x",
    ] {
        assert_eq!(found(text).1, Completeness::Partial, "{text}");
    }
    assert_eq!(found(&format!("SELECT {}1", "(".repeat(100))).1, Completeness::Partial);
}

#[test]
fn definitions_and_lists_name_their_tables_too() {
    for (text, expected) in [
        ("DROP TABLE IF EXISTS a, d.b", vec!["a", "d.b"]),
        ("LOCK TABLES a READ, b AS x WRITE", vec!["a", "b"]),
        ("RENAME TABLE a TO b, c TO d", vec!["a", "b", "c", "d"]),
        ("CREATE TABLE a LIKE b", vec!["a", "b"]),
        ("ALTER TABLE a EXCHANGE PARTITION p WITH TABLE b", vec!["a", "b"]),
        ("LOAD DATA INFILE 'x' INTO TABLE a FIELDS TERMINATED BY ','", vec!["a"]),
        ("LOAD XML LOCAL INFILE 'x' REPLACE INTO TABLE d.a (i, @j) SET k = @j + 1", vec!["d.a"]),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS a (i INT, PRIMARY KEY (i))", vec!["a"]),
        ("CREATE OR REPLACE TABLE a AS SELECT * FROM b, c", vec!["a", "b", "c"]),
        (
            "CREATE TABLE a (i INT, FOREIGN KEY (i) REFERENCES b (j) ON DELETE CASCADE)",
            vec!["a", "b"],
        ),
        ("CREATE UNIQUE INDEX x ON a (i, j)", vec!["a"]),
        ("DROP INDEX x ON d.a", vec!["d.a"]),
        ("ALTER TABLE a ADD COLUMN j INT DEFAULT 1, ALGORITHM=INPLACE", vec!["a"]),
        ("OPTIMIZE LOCAL TABLE a, b", vec!["a", "b"]),
        ("ALTER TABLE a RENAME TO d.b", vec!["a", "d.b"]),
        ("ALTER TABLE a RENAME b, ADD COLUMN c INT", vec!["a", "b"]),
        ("ALTER TABLE a RENAME AS `d`.`b`", vec!["a", "d.b"]),
        ("ALTER TABLE a RENAME COLUMN b TO c, RENAME INDEX d TO e, RENAME KEY f TO g", vec!["a"]),
        ("CREATE VIEW v (i, j) AS SELECT i, j FROM a, b", vec!["v", "a", "b"]),
        (
            "CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`u`@`%` SQL SECURITY INVOKER VIEW v AS TABLE a",
            vec!["v", "a"],
        ),
        ("DROP VIEW IF EXISTS v, d.w", vec!["v", "d.w"]),
        ("DROP SEQUENCE s", vec!["s"]),
        ("DROP DATABASE IF EXISTS d", vec!["d."]),
        ("CREATE SCHEMA `d` CHARACTER SET utf8mb4", vec!["d."]),
        ("DROP TABLE a; DROP DATABASE d", vec!["a", "d."]),
    ] {
        let expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(found(text), (expected, Completeness::Definition), "{text}");
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_word_that_may_be_a_name_hides_no_table() {
    for (text, expected) in [
        ("UPDATE other.a tables JOIN p.t ON 1 SET p.t.s='x'", vec!["other.a", "p.t"]),
        ("DELETE tables FROM p.t AS tables WHERE 1", vec!["p.t"]),
        ("SELECT t.* FROM other.a tables JOIN p.t FOR UPDATE", vec!["other.a", "p.t"]),
        ("INSERT INTO other.log (tables) VALUES (1)", vec!["other.log"]),
        ("UPDATE other.log SET tables=1", vec!["other.log"]),
        ("INSERT INTO quick VALUES (1)", vec!["quick"]),
        ("DELETE FROM quick USING p.t AS quick", vec!["quick", "p.t"]),
        ("UPDATE quick JOIN p.t SET t.s='x'", vec!["quick", "p.t"]),
        ("DELETE FROM lateral USING p.t AS lateral", vec!["lateral", "p.t"]),
        ("INSERT INTO lateral (i) VALUES (1)", vec!["lateral"]),
        ("INSERT INTO json_table (i) VALUES (1)", vec!["json_table"]),
        ("UPDATE json_table, p.t SET i=1", vec!["json_table", "p.t"]),
        ("UPDATE {x p.t} SET s='x'", vec!["p.t"]),
        ("UPDATE {`oj` p.t} SET s='x'", vec!["p.t"]),
        ("UPDATE {x p.t LEFT JOIN other.a ON 1} SET s='x'", vec!["p.t", "other.a"]),
        (
            "WITH c AS (SELECT 1 FROM o.a p JOIN o.a q) DELETE FROM t USING p.t AS t",
            vec!["o.a", "o.a", "t", "p.t"],
        ),
        ("DELETE FROM t USING p.t AS t JOIN o.a USING (i)", vec!["t", "p.t", "o.a"]),
    ] {
        assert_eq!(found(text), (strings(&expected), Completeness::Complete), "{text}");
    }
    for (text, expected) in [
        ("RENAME TABLE quick TO p.y", vec!["quick", "p.y"]),
        ("ALTER TABLE quick RENAME TO p.y", vec!["quick", "p.y"]),
        ("LOCK TABLES tables READ, p.t WRITE", vec!["tables", "p.t"]),
        ("DROP TEMPORARY TABLES a, b", vec!["a", "b"]),
        ("CREATE VIEW o.v AS SELECT * FROM {x p.t}", vec!["o.v", "p.t"]),
        ("CREATE DEFINER=view VIEW v AS SELECT * FROM a", vec!["v", "a"]),
        ("CREATE DEFINER=CURRENT_USER() VIEW v AS SELECT * FROM a", vec!["v", "a"]),
        ("CREATE DEFINER = 'tables'@'%' SQL SECURITY DEFINER VIEW v AS TABLE a", vec!["v", "a"]),
        ("CREATE DEFINER=u@localhost VIEW v AS TABLE a", vec!["v", "a"]),
        ("CREATE TABLE o.x AS SELECT * FROM o.a WHERE b LIKE 'x%'", vec!["o.x", "o.a"]),
        ("CREATE TABLE o.x (a varchar(9) CHECK (a LIKE 'x%'))", vec!["o.x"]),
        ("CREATE VIEW v AS SELECT * FROM o.a WHERE b LIKE 'x%'", vec!["v", "o.a"]),
        ("CREATE TABLE a (LIKE p.t)", vec!["a", "p.t"]),
        ("CREATE TABLE `o`.`a` LIKE `p`.`t`", vec!["o.a", "p.t"]),
        ("CREATE VIEW v AS (SELECT * FROM a) UNION (SELECT * FROM b)", vec!["v", "a", "b"]),
        ("CREATE TABLE a (engine INT, connection INT) ENGINE=InnoDB", vec!["a"]),
        ("ALTER TABLE a ENGINE 'innodb'", vec!["a"]),
        ("BEGIN; DROP TABLE a", vec!["a"]),
    ] {
        assert_eq!(found(text), (strings(&expected), Completeness::Definition), "{text}");
    }
}

#[test]
fn what_is_no_table_for_certain_makes_a_text_partial() {
    for text in [
        "CREATE DEFINER=view EVENT o.e ON SCHEDULE AT NOW() DO DELETE FROM p.t",
        "CREATE DEFINER=view@'%' TRIGGER p.r BEFORE INSERT ON p.t FOR EACH ROW SET @i=1",
        "CREATE DEFINER='a'@ view EVENT o.e ON SCHEDULE AT NOW() DO DELETE FROM p.t",
        "CREATE TABLES a (i INT)",
        "CREATE TABLE o.f (i INT) ENGINE=FEDERATED CONNECTION='mysql://h/p/t'",
        "CREATE TABLE o.f (i INT) CONNECTION='mysql://h/p/t'",
        "CREATE TABLE o.f (i INT) CONNECTION 'mysql://h/p/t'",
        "CREATE TABLE o.f (i INT) ENGINE 'FEDER\\ATED'",
        "CREATE TABLE o.f (i INT) ENGINE=`SPIDER`",
        "CREATE TABLE o.f ENGINE=CONNECT TABLE_TYPE=PROXY TABNAME='t'",
        "CREATE TABLE o.f TABLE_TYPE=PROXY TABNAME='t'",
        "ALTER TABLE o.f ADD i INT, ENGINE=FEDERATED",
        "CREATE TABLE m (i INT) UNION (b, c)",
        "CREATE TABLE m (i INT) UNION=(b, c)",
        "UPDATE FROM p.t SET i=1",
        "SELECT * FROM a JOIN TO b",
        "INSERT INTO SET i=1",
    ] {
        assert_eq!(found(text).1, Completeness::Partial, "{text}");
    }
}

#[test]
fn transaction_control_and_settings_name_no_table() {
    for text in [
        "BEGIN; INSERT INTO o.a VALUES (1); COMMIT",
        "BEGIN WORK; INSERT INTO o.a VALUES (1); ROLLBACK",
        "START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT; INSERT INTO o.a VALUES (1)",
        "SAVEPOINT x; INSERT INTO o.a VALUES (1); ROLLBACK TO x; RELEASE SAVEPOINT x",
        "SET NAMES utf8mb4; INSERT INTO o.a VALUES ('\u{e9}')",
        "SET NAMES 'utf8mb4' COLLATE utf8mb4_bin; INSERT INTO o.a VALUES ('e')",
        "SET autocommit=0, @a='x'; INSERT INTO o.a VALUES (1)",
    ] {
        assert_eq!(found(text), (strings(&["o.a"]), Completeness::Complete), "{text}");
    }
    for text in [
        "BEGIN NOT ATOMIC DELETE FROM p.t; END",
        "BEGIN DELETE FROM p.t; END",
        "START REPLICA",
        "USE o; INSERT INTO a VALUES (1)",
        "SET @a = (SELECT 1 FROM p.t)",
        "SET @a = f()",
        "SET STATEMENT max_statement_time=1 FOR DELETE FROM p.t",
        "SET sql_mode=ORACLE; INSERT INTO o.a VALUES (1)",
        "SET @@session.sql_mode=''; INSERT INTO o.a VALUES (1)",
        "SET `sql_mode`=''; INSERT INTO o.a VALUES (1)",
        "SET NAMES swe7; INSERT INTO o.`a@` VALUES (1)",
        "SET NAMES utf8mb4, character_set_client=gbk; INSERT INTO o.a VALUES (1)",
        "SET NAMES gbk; INSERT INTO o.a VALUES ('\u{e9}')",
        "SET character_set_client=gbk; INSERT INTO o.a VALUES ('\u{e9}')",
    ] {
        assert_eq!(found(text).1, Completeness::Partial, "{text}");
    }
}

#[test]
fn names_beyond_ascii_are_known_in_utf8_alone() {
    let read = |text: &[u8], charset| {
        let mode = LexMode { charset, ..LexMode::default() };
        tables(text, mode, |_table| {})
    };
    let utf8 = "DELETE FROM p.\u{e9} WHERE i='\u{e9}'".as_bytes();
    assert_eq!(read(utf8, Charset::Plain), Completeness::Complete);
    assert_eq!(read(utf8, Charset::Euc), Completeness::Partial);
    assert_eq!(read(b"DELETE FROM p.\xE9", Charset::Plain), Completeness::Partial);
    for charset in [Charset::Latin, Charset::SingleByte, Charset::Gbk, Charset::Unknown] {
        assert_eq!(read(utf8, charset), Completeness::Partial, "{charset:?}");
        let text = "DELETE FROM p.t WHERE i='\u{e9}'".as_bytes();
        assert_eq!(read(text, charset), Completeness::Complete, "{charset:?}");
    }
    assert_eq!(read(b"DROP DATABASE `\xE9`", Charset::Latin), Completeness::Partial);
    assert_eq!(read(b"DELETE FROM p.a[", Charset::Swe7), Completeness::Partial);
}
