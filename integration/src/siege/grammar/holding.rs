//! What would exempt a session: an admitted transaction, a lock.

use crate::server::Flavour;
use crate::siege::grammar::Maker;
use crate::siege::sequence::Entry;

impl Maker {
    /// A transaction begun in some way, something in it that may count as its admission, and a write.
    pub(super) fn transaction(&mut self) {
        self.named("transaction");
        if self.one_in(3) {
            self.entry.user = "ddlfree".into();
        }
        let begin = self.pick(&[
            "BEGIN",
            "BEGIN WORK",
            "START TRANSACTION",
            "START TRANSACTION READ WRITE",
            "SET autocommit = 0",
            "XA START 'x'",
            "XA BEGIN 'x','y',7",
            "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            "COMMIT AND CHAIN",
            "BEGIN; SELECT 1",
            "SET autocommit = 0; SELECT * FROM w.t",
            "/*!40100 BEGIN */",
            "START TRANSACTION READ ONLY",
        ]);
        self.send(begin);
        for _ in 0..self.pick(&[0, 1, 1, 2]) {
            let inside = self.pick(&[
                "CREATE TABLE w.t (a INT)",
                "CREATE nonsense",
                "CREATE TEMPORARY TABLE w.tmp (a INT)",
                "CREATE TEMPORARY TABLE tmp2 SELECT 1 AS a",
                "DROP TEMPORARY TABLE IF EXISTS w.tmp",
                "ALTER TABLE w.none ADD a INT",
                "DROP TABLE IF EXISTS w.none",
                "SELECT * FROM w.t FOR UPDATE",
                "SELECT * FROM w.none FOR UPDATE",
                "SELECT * FROM w.t LOCK IN SHARE MODE",
                "INSERT INTO w.none VALUES (1)",
                "CALL w.none()",
                "OPTIMIZE TABLE w.none",
                "TRUNCATE w.none",
                "SAVEPOINT s",
                "ROLLBACK TO s",
                "SELECT GET_LOCK('x', 0)",
                "SET @a = (SELECT n FROM w.t WHERE id = 1 FOR UPDATE)",
                "COMMIT",
                "COMMIT AND CHAIN",
                "ROLLBACK AND CHAIN",
                "BEGIN",
                "SELECT 1; COMMIT; BEGIN",
                "HANDLER w.t OPEN",
                "HANDLER w.t READ FIRST",
                "ANALYZE TABLE w.t",
                "XA END 'x'",
                "SELECT * FROM performance_schema.threads FOR UPDATE",
            ]);
            self.send(inside);
        }
        let write = self.write();
        self.send(write);
        let end = self.pick(&[
            "COMMIT",
            "COMMIT",
            "ROLLBACK",
            "XA END 'x'",
            "SET autocommit = 1",
            "COMMIT RELEASE",
        ]);
        self.query(end);
        if end == "XA END 'x'" {
            self.query("XA COMMIT 'x' ONE PHASE");
        }
    }

    /// A transaction that is admitted by a tag, ends out of sight, and a write that is tagged otherwise. To
    /// be played as it is: what is damaged may leave the transaction open, and then the write is admitted.
    pub(super) fn ended(&mut self) {
        self.named("ended");
        self.as_it_is = true;
        self.steps.clear();
        // What this is about wants texts of several statements, read as they are written.
        self.entry = Entry { user: "tagged".into(), leg: self.entry.leg, ..Entry::default() };
        let implicit = self.one_in(3);
        self.query(if implicit { "SET autocommit = 0" } else { "BEGIN" });
        self.query("/*app='ok'*/ SELECT id FROM w.t WHERE id = 1 FOR UPDATE");
        let ends: &[&str] = &[
            "COMMIT",
            "COMMIT; SELECT nonsense",
            "ROLLBACK; SELECT nonsense; SELECT 1",
            "SELECT 1; COMMIT; SELECT nonsense",
            "COMMIT AND CHAIN",
            "COMMIT AND CHAIN; SELECT nonsense",
            "ROLLBACK AND CHAIN",
            "COMMIT; BEGIN",
            "COMMIT; BEGIN; SELECT nonsense",
            "BEGIN",
            "BEGIN; SELECT nonsense",
            "START TRANSACTION",
            "/*!40101 COMMIT */",
            "/*!40101 COMMIT AND CHAIN */",
            "SET @v = 'COMMIT AND CHAIN'; PREPARE e FROM @v; EXECUTE e",
            "SET @v = CONCAT('COM', 'MIT'); PREPARE e FROM @v; EXECUTE e; BEGIN",
            "PREPARE e FROM 'COMMIT AND CHAIN'; EXECUTE e",
            "PREPARE e FROM 'COMMIT AND CHAIN'; EXECUTE e; SELECT nonsense",
            "ANALYZE TABLE w.t; BEGIN",
            "CACHE INDEX w.m IN default; BEGIN",
            "SET autocommit = 1; SET autocommit = 0; BEGIN",
            "SET autocommit = 0; SET autocommit = 1; BEGIN",
            "SELECT /*+ it's */ 1; COMMIT; BEGIN",
            "SELECT 1 /*!99999 ' */; COMMIT; BEGIN -- '",
            "COMMIT /*+ ' */; BEGIN",
            "COMMIT -- '\n; BEGIN",
            "COMMIT # '\n; BEGIN; SELECT nonsense",
            "ROLLBACK WORK AND CHAIN NO RELEASE",
        ];
        let end = self.pick(ends);
        self.query(end);
        if self.one_in(3) {
            self.query("SELECT * FROM w.t");
        }
        // Definitions end what is open, so they would be held as well.
        let write = self.pick(&[
            "INSERT INTO w.t (n) VALUES (1)",
            "UPDATE w.t SET n = 3",
            "DELETE FROM w.t",
            "CREATE TABLE w.new1 (a INT)",
        ]);
        self.query(format!("/*app='bad'*/ {write}"));
        self.query("COMMIT");
    }

    /// A prepared text with one tag, and an EXECUTE with another, which counts.
    pub(super) fn tagged(&mut self) {
        self.named("tagged");
        self.as_it_is = true;
        self.steps.clear();
        // What this is about wants texts of several statements, read as they are written.
        self.entry = Entry { user: "tagged".into(), leg: self.entry.leg, ..Entry::default() };
        let write = self.pick(&[
            "INSERT INTO w.t (n) VALUES (1)",
            "UPDATE w.t SET n = 3",
            "DELETE FROM w.t",
        ]);
        let from = self.pick(&["'/*app=ok*/ ", "'/*app=\\'ok\\'*/ "]);
        self.query(format!("PREPARE s FROM {from}{write}'"));
        if self.one_in(2) {
            self.query("/*app='ok'*/ SELECT 1");
        }
        let execute = self.pick(&[
            "/*app='bad'*/ EXECUTE s",
            "EXECUTE /*app='bad'*/ s",
            "EXECUTE s /*app='bad'*/",
            "EXECUTE s -- app=bad",
            "/*app='bad'*/ /*!40101 EXECUTE s */",
        ]);
        self.query(execute);
    }

    /// A lock, or what looks like one, and a write.
    pub(super) fn lock(&mut self) {
        self.named("lock");
        let lock = self.pick(&[
            "SELECT GET_LOCK('a', 0)",
            "SELECT GET_LOCK('a', 0), GET_LOCK('b', 0)",
            "SELECT IF(0, GET_LOCK('a', 0), 1)",
            "DO GET_LOCK('a', 0)",
            "SET @l = GET_LOCK('a', 0)",
            "SELECT GET_LOCK(NULL, 0)",
            "SELECT GET_LOCK('', 0)",
            "SELECT 1 FROM w.t WHERE GET_LOCK('a', 0)",
            "SELECT 1 FROM w.t WHERE 0 AND GET_LOCK('a', 0)",
            "SELECT 'GET_LOCK(1,0)'",
            "SELECT GET_LOCK ('a', 0)",
            "SELECT `GET_LOCK`('a', 0)",
            "SELECT 1 AS get_lock",
            "SELECT IS_FREE_LOCK('a')",
            "SELECT RELEASE_LOCK('a')",
            "DO RELEASE_ALL_LOCKS()",
            "LOCK TABLES w.t WRITE",
            "LOCK TABLES w.none READ",
            "LOCK TABLES w.t READ, w.none WRITE",
            "LOCK TABLES",
            "LOCK INSTANCE FOR BACKUP",
            "FLUSH TABLES WITH READ LOCK",
            "FLUSH TABLES w.t WITH READ LOCK",
            "FLUSH TABLES w.t FOR EXPORT",
            "BACKUP STAGE START",
            "BACKUP LOCK w.t",
            "/*!99999 LOCK TABLES w.t WRITE */",
            "SELECT 1; LOCK TABLES w.none WRITE",
            "SELECT nonsense; LOCK TABLES w.t WRITE",
            "LOCK TABLES w.t WRITE; SELECT 1",
            "PREPARE s FROM 'LOCK TABLES w.t WRITE'",
            "HANDLER w.t OPEN",
        ]);
        self.send(lock);
        if self.one_in(3) {
            let then = self.pick(&[
                "UNLOCK TABLES",
                "BEGIN",
                "DO RELEASE_ALL_LOCKS()",
                "COMMIT",
                "UNLOCK INSTANCE",
                "SELECT 1",
            ]);
            self.send(then);
        }
        let write = self.write();
        let ways = [
            write.clone(),
            write.clone(),
            format!("SELECT GET_LOCK('a', 0); {write}"),
            format!("{write}; DO GET_LOCK('z', 0)"),
            format!("DO GET_LOCK('a', 0); {write}"),
            format!("SELECT IF(0, GET_LOCK('a', 0), 1); {write}"),
            format!("/* GET_LOCK( */ {write}"),
            "INSERT INTO w.t (n) VALUES (GET_LOCK('a', 0))".into(),
            "UPDATE w.t SET n = GET_LOCK('a', 0)".into(),
            "UPDATE w.t SET n = RELEASE_LOCK('a')".into(),
            "DELETE FROM w.t WHERE IS_FREE_LOCK('q')".into(),
            "INSERT INTO w.t (s) VALUES ('GET_LOCK(1, 1)')".into(),
        ];
        let text = ways.get(self.chance.index(ways.len())).cloned().unwrap_or_default();
        self.send(text);
        if self.flavour == Flavour::MariaDb && self.one_in(6) {
            self.query("BACKUP STAGE END");
        }
    }
}
