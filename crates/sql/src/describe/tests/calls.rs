use super::*;

fn set(text: &str, mode: LexMode) -> Vec<Class> {
    let classes = classes(text, mode);
    Class::ALL.into_iter().filter(|class| classes.contains(*class)).collect()
}

/// Each of these ran a function that writes, on both servers or on MySQL alone, or could not be
/// told from one that does.
const CALLS: [(&str, Class); 67] = [
    ("SET @a=wf()", Class::Session),
    ("SET @a = 1, @b = (SELECT d.wf())", Class::Session),
    ("SET GLOBAL max_connections=150+wf()", Class::Session),
    ("SET SESSION sql_mode=wf()", Class::Session),
    ("SHOW TABLES WHERE wf()", Class::Admin),
    ("DO wf()", Class::Read),
    ("EXPLAIN SELECT * FROM t WHERE a=wf()", Class::Read),
    ("EXPLAIN UPDATE t SET b=1 WHERE a=wf()", Class::Read),
    ("DESC SELECT * FROM (SELECT wn(1) x) y", Class::Read),
    ("EXPLAIN ANALYZE SELECT wf()", Class::Read),
    ("ANALYZE SELECT wf()", Class::Read),
    ("VALUES ROW(wf())", Class::Read),
    ("HANDLER t READ FIRST WHERE wf()", Class::Read),
    ("KILL wf()", Class::Admin),
    ("PURGE BINARY LOGS BEFORE wf()", Class::Admin),
    ("PREPARE s FROM CONCAT('SELECT ', wf())", Class::Session),
    ("SELECT wf()", Class::Read),
    ("SELECT wf ()", Class::Read),
    ("SELECT wf\n()", Class::Read),
    ("SELECT wf/**/()", Class::Read),
    ("SELECT wf# x\n()", Class::Read),
    ("SELECT wf-- x\n()", Class::Read),
    ("SELECT wf/*!50000 ()*/", Class::Read),
    ("SELECT /*!50000 wf */()", Class::Read),
    ("SELECT `wf`()", Class::Read),
    ("SELECT `count`(1)", Class::Read),
    ("SELECT `now` (1)", Class::Read),
    ("SELECT `if`(1)", Class::Read),
    ("SELECT count (1)", Class::Read),
    ("SELECT now (1)", Class::Read),
    ("SELECT count/**/(1)", Class::Read),
    ("SELECT count/*!50000 (1)*/", Class::Read),
    ("SELECT count\t(1)", Class::Read),
    ("SELECT d.count(1)", Class::Read),
    ("SELECT d.now(1)", Class::Read),
    ("SELECT d.if(1)", Class::Read),
    ("SELECT d./**/wf(1)", Class::Read),
    ("SELECT d/* . */./* x */wf(1)", Class::Read),
    ("SELECT d. # x\nconcat(1)", Class::Read),
    ("SELECT /*!50000 d.*/concat(1)", Class::Read),
    ("SELECT /*!50000 d*/.concat(1)", Class::Read),
    ("SELECT def.d.wf()", Class::Read),
    ("SELECT {fn wf()}", Class::Read),
    ("SELECT {`fn` wf()}", Class::Read),
    ("SELECT INTERVAL wf() DAY + NOW()", Class::Read),
    ("SELECT (wf()), -wf(), 1*wf(), a.b = wf()", Class::Read),
    ("SELECT DISTINCT wf() FROM t", Class::Read),
    ("SELECT HIGH_PRIORITY wf() FROM t", Class::Read),
    ("SELECT 1, f(a, b) AS x", Class::Read),
    ("SELECT (a), f(a, b) AS `x`", Class::Read),
    ("WITH x (a) AS (SELECT wf()) SELECT * FROM x", Class::Read),
    ("WITH x AS (SELECT 1), y (a) AS (SELECT wf()) SELECT * FROM x", Class::Read),
    ("SELECT * FROM JSON_TABLE(CONCAT('[', wf()), '$' COLUMNS (a INT PATH '$')) j", Class::Read),
    ("SELECT 1; SELECT wf()", Class::Read),
    ("SELECT wf() INTO @x", Class::Read),
    ("SELECT @a := wf()", Class::Read),
    ("SELECT CASE WHEN wf() THEN 1 END", Class::Read),
    ("SELECT 1 FROM t HAVING wf() ORDER BY wn(1)", Class::Read),
    ("SELECT asynchronous_connection_failover_reset()", Class::Read),
    ("INSERT INTO t VALUES (wf())", Class::Write),
    ("INSERT INTO t (a) SELECT wf()", Class::Write),
    ("REPLACE t (a) VALUES (d.wf())", Class::Write),
    ("UPDATE t SET a = wf()", Class::Write),
    ("DELETE FROM t WHERE a = wf()", Class::Write),
    ("LOAD DATA INFILE 'x' INTO TABLE t (a) SET a = wf()", Class::Load),
    ("CREATE TABLE t SELECT wf()", Class::Ddl),
    ("SELECT (wf() FOR UPDATE", Class::LockingRead),
];

#[test]
fn a_text_that_names_a_function_that_is_not_built_in_calls_it() {
    for (text, class) in CALLS {
        let called = classes(text, MYSQL);
        assert!(called.contains(Class::Call) && called.contains(class), "{text}: {called:?}");
        assert!(classes(text, UNKNOWN).contains(Class::Call), "{text}");
        assert!(classes(text, MARIADB).contains(Class::Call), "{text}");
    }
    for text in
        ["SELECT {member of(1)}", "SELECT 1, json_table(1)", "SELECT POINT(1)", "SELECT POLYGON()"]
    {
        assert_eq!(class(text, MARIADB), Class::Call, "{text}");
    }
    let latin1 = LexMode { charset: Charset::SingleByte, ..MYSQL };
    for text in [&b"SELECT count\xA0(1)"[..], b"SELECT d.\xA0concat(1)", b"SELECT wf\xA0(1)"] {
        assert_eq!(class_of_bytes(text, latin1), Class::Call);
    }
    let ansi = LexMode { ansi_quotes: Setting::On, ..MYSQL };
    assert_eq!(class("SELECT \"wf\"()", ansi), Class::Call);
}

/// Words before brackets that call nothing that is not built in.
const NO_CALLS: [&str; 68] = [
    "INSERT INTO t (a, b) VALUES (1, 2), (3, DEFAULT(a))",
    "INSERT INTO d.t(a) VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a)",
    "INSERT `t`(`a`) VALUE (1)",
    "INSERT IGNORE t (a) VALUES (1)",
    "INSERT LOW_PRIORITY t (a) VALUES (1)",
    "INSERT HIGH_PRIORITY t (a) VALUES (1)",
    "INSERT INTO /* x */ t /* y */ (a) VALUES (1)",
    "INSERT INTO t (a) VALUES (1) AS new (m) ON DUPLICATE KEY UPDATE a = m",
    "INSERT INTO t PARTITION (p0) (a) VALUES (1)",
    "INSERT INTO t () VALUES ()",
    "INSERT INTO t (a) VALUES (1.5, NOW()), (.5, NOW()), (1e3, UUID())",
    "REPLACE t (a) VALUES (1)",
    "REPLACE DELAYED d.t (a) VALUES (1)",
    "WITH x (a, b) AS (SELECT 1, 2), y(c) AS (SELECT 3), z (d) AS (TABLE t) SELECT * FROM x",
    "SELECT * FROM (WITH x AS (SELECT 1), y (a) AS (SELECT 2) SELECT * FROM y) q",
    "WITH RECURSIVE x(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT * FROM x",
    "SELECT * FROM (SELECT 1) x (a), (SELECT 2) AS y (b), LATERAL (SELECT 3) z(c)",
    "SELECT * FROM (VALUES ROW(1, 2)) AS v (a, b)",
    "SELECT t.a, t.b, COUNT(*), d.t.c, MAX(t.a) FROM d.t",
    "SELECT concat (a, b), ifnull (a, b), coalesce(a, b), left (a, 1) FROM t",
    "SELECT a FROM t WHERE a IN (1) AND b NOT IN (SELECT 1) AND EXISTS (SELECT 1) OR (a) XOR (b)",
    "SELECT a FROM t USE INDEX (i) FORCE INDEX FOR ORDER BY (j) JOIN u USING (a)",
    "SELECT SUM(a) OVER (PARTITION BY b), RANK() OVER w FROM t WINDOW w AS (ORDER BY a)",
    "SELECT CAST(a AS DECIMAL(4, 2)), CAST(a AS CHAR(3)), CONVERT(a, DATETIME(6)) FROM t",
    "SELECT CAST(a AS NCHAR(3)), CAST(a AS TIME(3)), CAST(b AS BINARY(4)), BINARY (a) FROM t",
    "SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a INT PATH '$', b VARCHAR(10) PATH '$', \
         NESTED PATH '$' COLUMNS (c DECIMAL(3,1) PATH '$'))) AS j",
    "SELECT * FROM t, JSON_TABLE(t.a, '$' COLUMNS (a INT PATH '$')) j",
    "SELECT * FROM t JOIN JSON_TABLE(t.a, '$' COLUMNS (a INT PATH '$')) j ON 1",
    "SELECT INTERVAL(1, 2), CHAR(65 USING utf8mb4), IF(a, b, c), REPEAT('a', 3) FROM t",
    "SELECT GROUP_CONCAT(DISTINCT a ORDER BY b SEPARATOR ','), JSON_ARRAYAGG(a) FROM t",
    "SELECT MATCH (a, b) AGAINST ('x' IN BOOLEAN MODE) FROM t",
    "SELECT TRIM(BOTH ' ' FROM a), SUBSTRING(a, 1), EXTRACT(DAY FROM b), POSITION('a' IN b)",
    "SELECT {fn NOW()}, {d '2020-01-01'} FROM {oj a LEFT JOIN b ON (a.x = b.x)}",
    "SELECT 1 FROM a LEFT JOIN (b, c) ON (a.x = b.x) WHERE (1) GROUP BY (a) HAVING (1)",
    "SELECT a FROM t WHERE a LIKE ('x') AND b BETWEEN (1) AND (2) LIMIT 1",
    "SELECT /* a.b */ NOW(), /* x. */ COUNT(*), 'a.b' FROM t",
    "SELECT * FROM t PARTITION (p0, p1) WHERE ROW(a, b) = (SELECT 1, 2)",
    "SELECT UUID(), DATABASE(), USER(), LAST_INSERT_ID(), CONNECTION_ID(), VERSION()",
    "SELECT ST_AsText(ST_GeomFromText('POINT(1 1)')), POINT(1, 2), ST_Distance(a, b)",
    "SELECT '2' */* c */3, 2 */**/(3), NOW() -- f()",
    "SELECT 'f()', `f(` FROM t # f()",
    "SELECT (SELECT 1) UNION (SELECT 2) INTERSECT (SELECT 3) EXCEPT (SELECT 4)",
    "SELECT a FROM t WHERE a > ALL (SELECT 1) OR a = ANY (SELECT 2) OR a = SOME (SELECT 3)",
    "SELECT a DIV (b) MOD (c), NOT (a), - (b), a COLLATE utf8mb4_bin IN ('x') FROM t",
    "SELECT CASE (a) WHEN (1) THEN (2) ELSE (3) END, DISTINCT (a) FROM t",
    "DO SLEEP(1)",
    "SELECT COUNT (*), COUNT (DISTINCT a) FROM t",
    "SET @a = CONCAT('x', (SELECT COUNT(*) FROM t)), @@sql_mode = REPLACE(@@sql_mode, 'a', 'b')",
    "SET autocommit = (1)",
    "SHOW TABLES WHERE Tables_in_d IN ('a') AND LENGTH(Tables_in_d) > 1",
    "SHOW CREATE FUNCTION f",
    "SHOW INDEX FROM t",
    "LOAD DATA INFILE 'x' INTO TABLE d.t CHARACTER SET utf8mb4 (a, @b) SET b = UPPER(@b)",
    "LOAD DATA INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' IGNORE 1 LINES (a, b)",
    "GRANT SELECT (a), INSERT (b) ON d.t TO u",
    "CREATE TABLE t (a INT, KEY k (a), CHECK (f(a)))",
    "CREATE TABLE t (a INT, FULLTEXT KEY k (a) WITH PARSER ngram, KEY l (a))",
    "CREATE PROCEDURE p() BEGIN SELECT f(1); END",
    "CREATE VIEW v (a) AS SELECT f(1)",
    "CREATE FUNCTION f(a INT) RETURNS INT RETURN g(a)",
    "ALTER TABLE t ADD INDEX i (a)",
    "DROP FUNCTION f",
    "ANALYZE TABLE t PERSISTENT FOR COLUMNS (a) INDEXES (b)",
    "CHANGE REPLICATION FILTER REPLICATE_DO_DB = (d)",
    "UPDATE t SET a = VALUES(a), b = (SELECT 1), c = IF(a, b, c)",
    "EXPLAIN INSERT INTO t (a) VALUES (1)",
    "USE d",
    "BEGIN; INSERT INTO t (a) VALUES (1); COMMIT",
];

#[test]
fn a_word_before_a_bracket_that_is_no_function_calls_nothing() {
    for text in NO_CALLS {
        for mode in [MYSQL, MARIADB, UNKNOWN] {
            // Not in both grammars.
            let foreign = ["RANK", "COLUMNS (a)"];
            if mode == UNKNOWN && foreign.iter().any(|word| text.contains(word)) {
                continue;
            }
            assert!(!classes(text, mode).contains(Class::Call), "{text} {mode:?}");
        }
    }
}

#[test]
fn a_table_that_is_created_from_a_query_is_written() {
    for text in [
        "CREATE TABLE c AS SELECT 1 a",
        "CREATE TABLE c SELECT 1 a",
        "CREATE TABLE d.c (a INT) SELECT 1 a",
        "CREATE TABLE c (a INT) IGNORE SELECT 1 a",
        "CREATE TABLE c (a INT) REPLACE AS SELECT 1 a",
        "CREATE TABLE c AS TABLE t",
        "CREATE TABLE c TABLE t",
        "CREATE TABLE c AS VALUES ROW(1)",
        "CREATE TABLE c VALUES (1)",
        "CREATE TABLE c AS WITH x AS (SELECT 1 a) SELECT * FROM x",
        "CREATE TABLE c WITH x AS (VALUES ROW(1)) TABLE x",
        "CREATE TABLE c (SELECT 1 a)",
        "CREATE TABLE c AS (SELECT 1 a)",
        "CREATE TABLE c ((SELECT 1 a))",
        "CREATE TABLE c (a INT) AS (TABLE t)",
        "CREATE TABLE c (VALUES ROW(1))",
        "CREATE TABLE c ENGINE=MyISAM SELECT 1 a",
        "CREATE TABLE c (a INT) PARTITION BY HASH(a) PARTITIONS 2 SELECT 1 a",
        "CREATE TABLE IF NOT EXISTS c SELECT 1 a",
        "CREATE TEMPORARY TABLE c AS SELECT 1 a",
        "CREATE OR REPLACE TABLE c AS SELECT 1 a",
        "CREATE TABLE c /*!50000 SELECT 1 */",
        "CREATE TABLE c (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (1)) SELECT 1",
    ] {
        for mode in [MYSQL, MARIADB, UNKNOWN] {
            assert_eq!(set(text, mode), [Class::Write, Class::Ddl], "{text}");
        }
    }
    for text in [
        "CREATE TABLE c LIKE t",
        "CREATE TABLE c (LIKE t)",
        "CREATE TABLE `select` (a INT)",
        "CREATE TABLE d.select (a INT) COMMENT='select'",
        "CREATE TABLE c (a INT, b INT AS (a + 1)) PARTITION BY RANGE (a) (PARTITION p VALUES LESS \
         THAN (10))",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE c (a INT) WITH SYSTEM VERSIONING",
        "OPTIMIZE TABLE t",
        "REPAIR TABLE t",
    ] {
        assert_eq!(set(text, MYSQL), [Class::Ddl], "{text}");
    }
}

#[test]
fn a_sequence_that_moves_on_is_written() {
    for text in [
        "SELECT NEXT VALUE FOR s",
        "SELECT NEXT/**/VALUE FOR d.s",
        "SELECT NEXTVAL(s)",
        "SELECT nextval (s)",
        "SELECT SETVAL(s, 5)",
        "SELECT s.nextval",
        "SELECT d . s . `nextval`",
        "EXPLAIN SELECT NEXTVAL(s)",
    ] {
        assert!(set(text, MARIADB).contains(&Class::Write), "{text}");
        assert!(set(text, UNKNOWN).contains(&Class::Write), "{text}");
    }
    assert_eq!(set("SET @a = NEXTVAL(s)", MARIADB), [Class::Write, Class::Session]);
    for text in ["SELECT LASTVAL(s)", "SELECT PREVIOUS VALUE FOR s", "SELECT nextval FROM t"] {
        assert_eq!(set(text, MARIADB), [Class::Read], "{text}");
    }
    assert_eq!(set("SELECT s.nextval", MYSQL), [Class::Read]);
}
