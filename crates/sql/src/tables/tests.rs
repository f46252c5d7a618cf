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
