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
        let texts = [
            format!("SELECT {f}"),
            format!("DO {f}"),
            format!("SET @a = {f}"),
            format!("SET @a = 1, @b := {f}"),
            format!("SET SESSION sort_buffer_size = 100000 + {f}"),
            format!("SET @@wait_timeout = 100 + {f}"),
            format!("SHOW TABLES WHERE {f}"),
            format!("SHOW VARIABLES WHERE {f}"),
            format!("SHOW STATUS WHERE {f}"),
            format!("SHOW COLUMNS FROM w.t WHERE {f}"),
            format!("SHOW WARNINGS LIMIT {f}"),
            format!("SHOW DATABASES WHERE {f} = 1"),
            format!("SHOW COLLATION WHERE {f}"),
            format!("SHOW CHARACTER SET WHERE {f}"),
            format!("SHOW INDEX FROM w.t WHERE {f}"),
            format!("SHOW PROCEDURE STATUS WHERE {f}"),
            format!("HANDLER w.t OPEN; HANDLER w.t READ FIRST WHERE {f}"),
            format!("KILL {f} + 900000000"),
            format!("KILL QUERY 900000000 + {f}"),
            format!("EXPLAIN ANALYZE SELECT {f}"),
            format!("ANALYZE SELECT {f}"),
            format!("EXPLAIN SELECT {f}"),
            format!("EXPLAIN SELECT * FROM (SELECT {f} AS a) b"),
            format!("VALUES ROW({f})"),
            format!("VALUES ({f})"),
            format!("SELECT 1 INTO @a FROM w.t WHERE {f}"),
            format!("SELECT * FROM w.t ORDER BY {f}"),
            format!("SELECT * FROM w.t GROUP BY {f}"),
            format!("SELECT 1 LIMIT {f}"),
            format!("WITH x AS (SELECT {f}) SELECT * FROM x"),
            format!("SELECT * FROM information_schema.schemata WHERE {f}"),
            format!("SELECT {f} FROM performance_schema.threads"),
            format!("SELECT @@version, {f}"),
            format!("PREPARE s FROM 'SELECT {}'; EXECUTE s", f.replace('\'', "''")),
            format!("EXECUTE s USING {f}"),
            format!("PREPARE s FROM 'SELECT ?'; EXECUTE s USING {f}"),
            format!("EXECUTE IMMEDIATE {f}"),
            format!("PREPARE s FROM {f}"),
            format!("EXECUTE IMMEDIATE 'SELECT ?' USING {f}"),
            format!("SET STATEMENT max_statement_time = 5 + {f} FOR SELECT 1"),
            format!("GET DIAGNOSTICS @a = NUMBER; DO {f}"),
            format!("GET DIAGNOSTICS CONDITION {f} @a = MESSAGE_TEXT"),
            format!("SIGNAL SQLSTATE '01000' SET MYSQL_ERRNO = {f}"),
            format!("PURGE BINARY LOGS BEFORE {f}"),
            format!("SELECT GET_LOCK('a', {f})"),
            format!("SELECT NEXTVAL(w.sq)"),
            "SELECT NEXT VALUE FOR w.sq".into(),
            "SELECT SETVAL(w.sq, 100)".into(),
            "SELECT w.sq.nextval".into(),
            "SET @a = NEXT VALUE FOR w.sq".into(),
            "DO NEXTVAL(w.sq)".into(),
            format!("SELECT JSON_VALUE('{{}}', '$.a' DEFAULT {f} ON EMPTY)"),
            format!("SELECT * FROM JSON_TABLE({f}, '$' COLUMNS (a INT PATH '$')) j"),
            format!("SELECT {f} OVER ()"),
            format!("SET @a = CASE WHEN 1 THEN {f} END"),
            format!("SHOW EXPLAIN FOR {f}"),
            format!("CHECK TABLE w.t; DO {f}"),
            format!("SELECT {{fn {f}}}"),
            format!("SET TRANSACTION READ WRITE, ISOLATION LEVEL SERIALIZABLE; DO {f}"),
            format!("SET PASSWORD = {f}"),
            format!("SET CHARACTER SET {f}"),
            format!("SET sql_mode = {f}"),
            format!("SET NAMES {f}"),
            format!("SHOW CREATE TABLE w.t; SELECT {f}"),
            format!("DESCRIBE SELECT {f}"),
            format!("SELECT * FROM w.v WHERE {f} = n"),
            format!("RETURN {f}"),
            format!("CHANGE MASTER TO MASTER_PORT = {f}"),
            format!("USE w; SELECT {f}"),
            format!("HELP {f}"),
            format!("CACHE INDEX w.m IN default; DO {f}"),
            format!("XA START {f}"),
            format!("SELECT SLEEP(0 * {f})"),
            format!("SELECT 1 INTO OUTFILE '/dev/null' FROM w.t WHERE {f}"),
            format!("TABLE w.t INTO @a, @b, @c; DO {f}"),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        self.send(text);
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
