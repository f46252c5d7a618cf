//! Statements of harmless classes that have a stored function run.

use crate::siege::grammar::Maker;

impl Maker {
    /// A function that writes, wherever an expression may stand.
    pub(super) fn routine(&mut self) {
        self.named("routine");
        let f = self.pick(&[
            "w.f()",
            "f()",
            "`w`.`f`()",
            "w . f ( )",
            "w.fs()",
            "w/**/.f()",
            "w.F()",
            "f ()",
            "`f`()",
            "IF(1, w.f(), 0)",
            "(SELECT w.f())",
        ]);
        let place = self.pick(&PLACES);
        self.send(place.replace("{f}", f));
    }

    /// A function with a cursor: the server's flags speak of a cursor that no client has opened.
    pub(super) fn cursor(&mut self, f: &str) {
        self.named("cursor");
        if self.one_in(2) {
            self.entry.without |= crate::raw::capability::DEPRECATE_EOF;
        }
        let reads = [
            "SELECT * FROM (SELECT w.cf() x) y".to_owned(),
            "SELECT w.cf()".to_owned(),
            "SELECT * FROM (SELECT w.cf() x) y; SELECT 1".to_owned(),
            "CALL w.pc()".to_owned(),
            "SET @a = w.cf()".to_owned(),
            format!("SELECT w.cf(), {f}"),
        ];
        let from = self.steps.len();
        for _ in 0..self.pick(&[1, 1, 2]) {
            let read = reads.get(self.chance.index(reads.len())).cloned().unwrap_or_default();
            self.send(read);
        }
        if self.one_in(2) {
            let read = self.read();
            self.query(read);
        }
        let write = self.write();
        self.query(write);
        if self.one_in(2) {
            let together = self.steps.len().saturating_sub(from);
            let steps = self.steps.iter_mut().skip(from).take(together.saturating_sub(1));
            steps.for_each(|step| step.joined = true);
        }
    }
}

/// Where an expression may stand.
const PLACES: [&str; 75] = [
    "SELECT {f}",
    "DO {f}",
    "SET @a = {f}",
    "SET @a = 1, @b := {f}",
    "SET SESSION sort_buffer_size = 100000 + {f}",
    "SET @@wait_timeout = 100 + {f}",
    "SHOW TABLES WHERE {f}",
    "SHOW VARIABLES WHERE {f}",
    "SHOW STATUS WHERE {f}",
    "SHOW COLUMNS FROM w.t WHERE {f}",
    "SHOW WARNINGS LIMIT {f}",
    "SHOW DATABASES WHERE {f} = 1",
    "SHOW COLLATION WHERE {f}",
    "SHOW CHARACTER SET WHERE {f}",
    "SHOW INDEX FROM w.t WHERE {f}",
    "SHOW PROCEDURE STATUS WHERE {f}",
    "HANDLER w.t OPEN; HANDLER w.t READ FIRST WHERE {f}",
    "KILL {f} + 900000000",
    "KILL QUERY 900000000 + {f}",
    "EXPLAIN ANALYZE SELECT {f}",
    "ANALYZE SELECT {f}",
    "EXPLAIN SELECT {f}",
    "EXPLAIN SELECT * FROM (SELECT {f} AS a) b",
    "VALUES ROW({f})",
    "VALUES ({f})",
    "SELECT 1 INTO @a FROM w.t WHERE {f}",
    "SELECT * FROM w.t ORDER BY {f}",
    "SELECT * FROM w.t GROUP BY {f}",
    "SELECT 1 LIMIT {f}",
    "WITH x AS (SELECT {f}) SELECT * FROM x",
    "SELECT * FROM information_schema.schemata WHERE {f}",
    "SELECT {f} FROM performance_schema.threads",
    "SELECT @@version, {f}",
    "PREPARE s FROM 'SELECT {f}'; EXECUTE s",
    "EXECUTE s USING {f}",
    "PREPARE s FROM 'SELECT ?'; EXECUTE s USING {f}",
    "EXECUTE IMMEDIATE {f}",
    "PREPARE s FROM {f}",
    "EXECUTE IMMEDIATE 'SELECT ?' USING {f}",
    "SET STATEMENT max_statement_time = 5 + {f} FOR SELECT 1",
    "GET DIAGNOSTICS @a = NUMBER; DO {f}",
    "GET DIAGNOSTICS CONDITION {f} @a = MESSAGE_TEXT",
    "SIGNAL SQLSTATE '01000' SET MYSQL_ERRNO = {f}",
    "PURGE BINARY LOGS BEFORE {f}",
    "SELECT GET_LOCK('a', {f})",
    "SELECT NEXTVAL(w.sq)",
    "SELECT NEXT VALUE FOR w.sq",
    "SELECT SETVAL(w.sq, 100)",
    "SELECT w.sq.nextval",
    "SET @a = NEXT VALUE FOR w.sq",
    "DO NEXTVAL(w.sq)",
    "SELECT JSON_VALUE('{}', '$.a' DEFAULT {f} ON EMPTY)",
    "SELECT * FROM JSON_TABLE({f}, '$' COLUMNS (a INT PATH '$')) j",
    "SELECT {f} OVER ()",
    "SET @a = CASE WHEN 1 THEN {f} END",
    "SHOW EXPLAIN FOR {f}",
    "CHECK TABLE w.t; DO {f}",
    "SELECT {fn {f}}",
    "SET TRANSACTION READ WRITE, ISOLATION LEVEL SERIALIZABLE; DO {f}",
    "SET PASSWORD = {f}",
    "SET CHARACTER SET {f}",
    "SET sql_mode = {f}",
    "SET NAMES {f}",
    "SHOW CREATE TABLE w.t; SELECT {f}",
    "DESCRIBE SELECT {f}",
    "SELECT * FROM w.v WHERE {f} = n",
    "RETURN {f}",
    "CHANGE MASTER TO MASTER_PORT = {f}",
    "USE w; SELECT {f}",
    "HELP {f}",
    "CACHE INDEX w.m IN default; DO {f}",
    "XA START {f}",
    "SELECT SLEEP(0 * {f})",
    "SELECT 1 INTO OUTFILE '/dev/null' FROM w.t WHERE {f}",
    "TABLE w.t INTO @a, @b, @c; DO {f}",
];
