//! Tables of the system's schemas, and tables that look as if they were.

use crate::server::Flavour;
use crate::siege::grammar::Maker;

impl Maker {
    /// A write to, from or beside a system schema.
    pub(super) fn system_schema(&mut self) {
        self.named("system");
        if self.one_in(3) {
            let schema = self.pick(&["performance_schema", "information_schema", "sys", "w"]);
            self.query(format!("USE {schema}"));
        }
        let p = self.pick(&[
            "performance_schema",
            "information_schema",
            "sys",
            "`performance_schema`",
            "PERFORMANCE_SCHEMA",
            "mysql",
        ]);
        let t = self.pick(&[
            "threads",
            "schemata",
            "tables",
            "processlist",
            "sys_config",
            "x",
            "host_summary",
        ]);
        let texts = [
            format!("INSERT INTO w.t (n) SELECT 1 FROM {p}.{t}"),
            format!("UPDATE w.t, {p}.{t} SET n = 3"),
            format!("UPDATE {p}.{t}, w.t SET w.t.n = 3"),
            format!("DELETE w.t FROM w.t, {p}.{t}"),
            format!("DELETE FROM a USING {p}.{t} AS x, w.t AS a"),
            format!("UPDATE w.t AS {p} SET n = 3"),
            format!("UPDATE w.t {p} SET {p}.n = 3"),
            format!("DELETE {p} FROM w.t AS {p}"),
            format!("INSERT INTO w.t (n) VALUES ((SELECT COUNT(*) FROM {p}.{t}))"),
            format!("INSERT INTO sys.{t} (n) VALUES (1)"),
            format!("INSERT INTO w.{} (n) VALUES (1)", "performance_schema"),
            "INSERT INTO performance_schema (n) VALUES (1)".into(),
            "UPDATE performance_schema SET n = 2".into(),
            format!("SELECT * FROM {p}.{t}; INSERT INTO w.t (n) VALUES (1)"),
            format!("INSERT INTO w.t (n) VALUES (1); SELECT * FROM {p}.{t}"),
            "INSERT INTO sys.sys_config (variable, value) VALUES ('siege', '1')".into(),
            "UPDATE sys.sys_config SET value = 5".into(),
            "DELETE FROM sys.sys_config".into(),
            "CREATE TABLE sys.siege (a INT)".into(),
            "CREATE VIEW sys.siege AS SELECT 1".into(),
            "CREATE FUNCTION sys.siege() RETURNS INT RETURN 1".into(),
            "DROP VIEW sys.host_summary".into(),
            "CALL sys.table_exists('w', 't', @e)".into(),
            "CALL sys.execute_prepared_stmt('INSERT INTO w.t (n) VALUES (1)')".into(),
            "CALL sys.create_synonym_db('w', 'x_2')".into(),
            format!("CREATE TABLE w.new5 SELECT * FROM {p}.{t}"),
            format!("CREATE TABLE {p}.siege (a INT)"),
            format!("REPLACE INTO w.t (id, n) SELECT 1, 2 FROM {p}.{t} LIMIT 1"),
            format!("SELECT w.f() FROM {p}.{t}"),
            format!("SELECT * FROM {p}.{t} WHERE w.f()"),
            format!(
                "LOAD DATA LOCAL INFILE 'x' INTO TABLE w.t (n) SET n = (SELECT COUNT(*) FROM {p}.{t})"
            ),
            format!("WITH {p} AS (SELECT 1 AS a) DELETE FROM w.t WHERE 1 IN (SELECT a FROM {p})"),
            "INSERT /* gh-ost */ INTO w._t_ghc (n) VALUES (1); DELETE FROM w.t".into(),
            "/* gh-ost */ UPDATE w._t_ghc, w.t SET w.t.n = 1".into(),
            "INSERT /* gh-ost */ INTO w.t (n) VALUES (1) -- _t_ghc".into(),
            format!("DROP TABLE w.t, {p}.{t}"),
            format!("ALTER TABLE w.t RENAME {p}.{t}"),
            format!("TRUNCATE w.t /* {p}.{t} */"),
            format!("CREATE TABLE w.new6 LIKE {p}.{t}"),
        ];
        let text = texts.get(self.chance.index(texts.len())).cloned().unwrap_or_default();
        if self.one_in(2) && self.flavour == Flavour::MySql {
            self.query("USE w");
        }
        self.send(text);
    }
}
