//! Statements that write, statements that read, and what stands between words.

use crate::server::Flavour;
use crate::siege::grammar::Maker;

impl Maker {
    /// A statement that writes.
    pub(super) fn write(&mut self) -> String {
        if self.one_in(3) {
            return self
                .pick(&[
                    "INSERT INTO w.t (n) VALUES (1)",
                    "DELETE FROM w.t",
                    "UPDATE w.t SET n = 5",
                ])
                .into();
        }
        if self.flavour == Flavour::MariaDb && self.one_in(5) {
            return self.pick(&MARIADB_WRITES).into();
        }
        if self.flavour == Flavour::MySql && self.one_in(8) {
            return self.pick(&MYSQL_WRITES).into();
        }
        self.pick(&WRITES).into()
    }

    /// A statement that changes nothing.
    pub(super) fn read(&mut self) -> &'static str {
        self.pick(&READS)
    }

    /// What separates words.
    pub(super) fn blank(&mut self) -> &'static [u8] {
        self.pick(&BLANKS)
    }
}

const WRITES: [&str; 34] = [
    "INSERT INTO w.t (n) VALUES (1)",
    "INSERT w.t SET n = 2",
    "REPLACE INTO w.t (id, n) VALUES (1, 9)",
    "UPDATE w.t SET n = 3",
    "UPDATE w.t a, w.u b SET a.n = 4 WHERE b.id = 1",
    "DELETE FROM w.t",
    "DELETE a FROM w.t a JOIN w.u b ON a.id = b.id",
    "DELETE FROM a USING w.t a",
    "WITH x AS (SELECT 1 AS id) UPDATE w.t JOIN x USING (id) SET n = 8",
    "WITH x AS (SELECT 1 AS id) DELETE FROM w.t WHERE id IN (SELECT id FROM x)",
    "TRUNCATE w.t",
    "TRUNCATE TABLE w.u",
    "CREATE TABLE w.new1 (a INT)",
    "CREATE TABLE w.new2 SELECT 1 AS a",
    "CREATE TABLE w.new3 LIKE w.t",
    "CREATE TEMPORARY TABLE w.tmp SELECT 1 AS a",
    "CREATE VIEW w.v2 AS SELECT 1",
    "CREATE INDEX i ON w.t (n)",
    "CREATE DATABASE x_1",
    "CREATE PROCEDURE w.p2() SELECT 1",
    "CREATE EVENT w.e2 ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
    "ALTER TABLE w.t ADD COLUMN z INT",
    "ALTER TABLE w.t ENGINE = InnoDB",
    "ALTER EVENT w.e COMMENT 'x'",
    "DROP TABLE w.t",
    "DROP VIEW w.v",
    "DROP PROCEDURE w.p",
    "OPTIMIZE TABLE w.t",
    "REPAIR TABLE w.m",
    "CALL w.p()",
    "CALL w.p",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE w.t (n)",
    "INSERT INTO w.v (n) VALUES (2)",
    "INSERT INTO w.m (n) VALUES (2)",
];

const MARIADB_WRITES: [&str; 10] = [
    "INSERT INTO w.t (n) VALUES (1) RETURNING n",
    "DELETE FROM w.t RETURNING id",
    "SET STATEMENT max_statement_time = 9 FOR INSERT INTO w.t (n) VALUES (1)",
    "ANALYZE UPDATE w.t SET n = 2",
    "ANALYZE FORMAT=JSON INSERT INTO w.t (n) VALUES (6)",
    "EXECUTE IMMEDIATE 'INSERT INTO w.t (n) VALUES (1)'",
    "BEGIN NOT ATOMIC INSERT INTO w.t (n) VALUES (1); END",
    "CREATE OR REPLACE TABLE w.new4 (a INT)",
    "CREATE SEQUENCE w.sq2",
    "DELETE HISTORY FROM w.hist",
];

const MYSQL_WRITES: [&str; 4] = [
    "EXPLAIN ANALYZE DELETE FROM w.t",
    "INSERT INTO w.t (n) TABLE w.u",
    "INSERT INTO w.t (n) VALUES ROW(4)",
    "IMPORT TABLE FROM 'x.sdi'",
];

const READS: [&str; 22] = [
    "SELECT 1",
    "SELECT * FROM w.t",
    "SELECT @@version",
    "SELECT w.rf(1)",
    "SELECT * FROM (SELECT w.cf() x) y",
    "SET @a = 1",
    "SHOW TABLES",
    "SHOW VARIABLES LIKE 'sql_mode'",
    "USE w",
    "DO 0",
    "EXPLAIN SELECT * FROM w.t",
    "DESCRIBE w.t",
    "SELECT * FROM information_schema.schemata",
    "SELECT NULL",
    "COMMIT",
    "ROLLBACK",
    "SELECT nonsense",
    "SAVEPOINT s",
    "SELECT 1 INTO @b",
    "SHOW WARNINGS",
    "SET SESSION wait_timeout = 100",
    "SELECT * FROM w.t WHERE id = 3",
];

const BLANKS: [&[u8]; 16] = [
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\x0b",
    b"\x0c",
    b"/**/",
    b"/* x */",
    b"-- \n",
    b"#\n",
    b"\x00",
    b"\xa0",
    b"  ",
    b"/*!*/",
    b"--\t x\n",
    b"\xe3\x80\x80",
];
