use crate::{Charset, Class, Exemption, LexMode, Scratch, Server, Whole, describe};

fn exemption(text: &str) -> Option<Exemption> {
    exemption_on(text, Server::MySql { version: 90_704 })
}

fn exemption_on(text: &str, server: Server) -> Option<Exemption> {
    let mode = LexMode { server, charset: Charset::Plain, ..LexMode::default() };
    describe(text.as_bytes(), mode, Whole::Yes, &mut Scratch::default()).exemption
}

#[test]
fn statements_on_system_schemas_only_are_exempt() {
    for text in [
        "SELECT * FROM performance_schema.threads",
        "SELECT * FROM `information_schema`.`tables` t JOIN sys.session s",
        "SELECT * FROM performance_schema.threads FOR UPDATE",
        "INSERT INTO performance_schema.setup_actors VALUES ('a', 'b', 'c', 'YES', 'YES')",
        "UPDATE performance_schema.setup_consumers SET enabled='YES'",
        "TRUNCATE TABLE performance_schema.accounts",
        "SELECT * FROM INFORMATION_SCHEMA.TABLES WHERE table_schema IN ('a', 'b')",
        "SELECT * FROM (SELECT * FROM sys.session) x",
    ] {
        assert_eq!(exemption(text), Some(Exemption::SystemSchema), "{text}");
    }
}

#[test]
fn one_other_table_and_the_exemption_is_gone() {
    for text in [
        "INSERT INTO test.t SELECT * FROM performance_schema.x",
        "INSERT INTO performance_schema.x SELECT * FROM t",
        "INSERT INTO performance_schema.x TABLE t",
        "DELETE FROM performance_schema.x, t USING performance_schema.x JOIN t",
        "DELETE t FROM performance_schema.x JOIN t",
        "UPDATE performance_schema.x, t SET t.a=1",
        "UPDATE performance_schema.x JOIN t ON 1 SET t.a=1",
        "UPDATE performance_schema.x SET a=(SELECT MAX(b) FROM t)",
        "UPDATE performance_schema.x SET a=d.f(1)",
        "SELECT * FROM performance_schema.x; DELETE FROM t",
        "DELETE FROM t; SELECT * FROM performance_schema.x",
        "SELECT * FROM performance_schema.x window, t FOR UPDATE",
        "SELECT * FROM performance_schema.x USE INDEX FOR GROUP BY (a), t FOR UPDATE",
        "SELECT * FROM performance_schema.x WHERE a IN (SELECT 1 FROM t) FOR UPDATE",
        "DELETE FROM `performance_schema.x`",
        "DELETE FROM t WHERE a = 'performance_schema.x'",
        "DELETE FROM t /* performance_schema.x */",
        "DELETE FROM performance_schema",
        "DELETE FROM SYS.x",
        "CALL sys.execute_prepared_stmt('DELETE FROM t')",
        "WITH x AS (SELECT * FROM performance_schema.x) DELETE FROM t",
        "CREATE TABLE sys.x (a INT)",
        "LOAD DATA INFILE 'x' INTO TABLE sys.x",
        "INSERT INTO performance_schema.x VALUES (1) /*!99999 */ , ('",
    ] {
        assert_eq!(exemption(text), None, "{text}");
    }
}

#[test]
fn what_is_written_to_sys_or_called_is_not_exempt() {
    for text in [
        "INSERT INTO sys.sys_config VALUES (1)",
        "UPDATE sys.sys_config SET value = 1",
        "DELETE FROM sys.sys_config",
        "TRUNCATE sys.sys_config",
        "UPDATE performance_schema.setup_consumers c JOIN sys.sys_config s SET s.value = 1",
        "SELECT * FROM sys.sys_config FOR UPDATE",
        "SELECT sys.ps_thread_account(1) FROM performance_schema.threads",
        "SELECT f() FROM performance_schema.threads",
        "SELECT * FROM sys.session WHERE d.f()",
        "UPDATE performance_schema.setup_consumers SET enabled = f()",
        "CALL sys.ps_setup_save(1)",
        "UPDATE PERFORMANCE_SCHEMA.setup_consumers SET enabled = 1",
        "SELECT * FROM Performance_Schema.threads",
    ] {
        for server in [
            Server::MySql { version: 90_704 },
            Server::MariaDb { version: 101_119 },
            Server::Unknown,
        ] {
            assert_eq!(exemption_on(text, server), None, "{text}");
        }
    }
}

#[test]
fn a_changelog_is_exempt_if_nothing_else_is_written_or_read() {
    for text in [
        "insert /* gh-ost */ into `db`.`_t_ghc` (id, hint, value) values (NULLIF(1, 0), 'x', 'y') \
         on duplicate key update last_update=NOW(), value=VALUES(value)",
        "UPDATE _a_ghc SET value=1",
        "DELETE FROM d._a_ghc",
    ] {
        assert_eq!(exemption(text), Some(Exemption::GhostChangelog), "{text}");
    }
    for text in [
        "INSERT INTO _t_ghc SELECT * FROM t",
        "UPDATE _t_ghc, t SET t.a=1",
        "INSERT INTO t_ghc VALUES (1)",
        "INSERT INTO _ghc VALUES (1)",
        "INSERT INTO t (_x_ghc) VALUES (1)",
        "INSERT INTO t VALUES ('_x_ghc')",
        "CREATE TABLE _t_ghc (a INT)",
        "SELECT * FROM _t_ghc FOR UPDATE",
    ] {
        assert_eq!(exemption(text), None, "{text}");
    }
}

#[test]
fn advisory_locks_and_renames_are_exempt() {
    for text in ["SELECT GET_LOCK('x', 1)", "DO RELEASE_ALL_LOCKS()", "SELECT IS_USED_LOCK('x')"] {
        assert_eq!(exemption(text), Some(Exemption::AdvisoryLock), "{text}");
    }
    for text in [
        "SELECT GET_LOCK('x', 1) FROM t",
        "SELECT GET_LOCK('x', 1), (SELECT MAX(a) FROM t)",
        "SELECT IF(0, GET_LOCK('x', 1), f())",
        "SELECT GET_LOCK(f(), 1)",
        "SELECT GET_LOCK('x', 1), f()",
        "SELECT GET_LOCK('x', 1), GET_LOCK('y', 1)",
        "SELECT GET_LOCK('x', 1); SELECT GET_LOCK('y', 1)",
        "INSERT INTO t VALUES (GET_LOCK('x', 1))",
        "SELECT GET_LOCK('x', 1) FOR UPDATE",
        "SELECT d.GET_LOCK('x', 1)",
        "SELECT GET_LOCK('x', 1); DELETE FROM t",
    ] {
        assert_eq!(exemption(text), None, "{text}");
    }
    assert_eq!(exemption("RENAME TABLE a TO b"), Some(Exemption::RenameTable));
    assert_eq!(exemption("RENAME TABLE a TO b; DROP TABLE c"), None);
}

#[test]
fn an_exemption_that_only_one_reading_gives_is_none() {
    let text = "DELETE FROM /*!99999 t WHERE 0; DELETE FROM */ performance_schema.x";
    assert_eq!(exemption(text), Some(Exemption::SystemSchema));
    assert_eq!(exemption_on(text, Server::Unknown), None);
    let text = "DELETE FROM performance_schema.x /*!80000 */";
    assert_eq!(exemption_on(text, Server::Unknown), Some(Exemption::SystemSchema));
}

#[test]
fn what_a_rule_that_denies_ddl_refuses_beside_ddl() {
    let mut scratch = Scratch::default();
    let mut is = |text: &str| {
        let statement = describe(text.as_bytes(), LexMode::default(), Whole::Yes, &mut scratch);
        (statement.class, statement.classes.is_denied_as_ddl())
    };
    assert_eq!(is("RENAME TABLE a TO b"), (Class::Admin, true));
    assert_eq!(is("rename /*!50000 tables */ a TO b"), (Class::Admin, true));
    assert_eq!(
        is("SHOW TABLES; RENAME TABLE a TO b; INSERT INTO c VALUES (1)"),
        (Class::Write, true)
    );
    assert_eq!(is("CLONE INSTANCE FROM u@h:3306 IDENTIFIED BY 'x'"), (Class::Admin, true));
    for text in ["RENAME USER a TO b", "CLONE LOCAL DATA DIRECTORY = '/x'", "FLUSH TABLES"] {
        assert_eq!(is(text), (Class::Admin, false), "{text}");
    }
    assert_eq!(is("SELECT 'RENAME TABLE a TO b'"), (Class::Read, false));
    assert_eq!(exemption("RENAME USER a TO b"), None);
}
