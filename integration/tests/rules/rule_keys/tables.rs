//! Tables that a rule protects: whatever would change them, in data or definition, never reaches the server.

use integration::raw::capability::{MULTI_STATEMENTS, SESSION_TRACK};
use integration::raw::{Login, RawConn, Shape};
use integration::scenario::{Refused, connect, numbers};
use integration::server::Server;
use integration::sluice::{Config, SluiceProcess};

use super::{both, rule_of};

/// Tests that make the same tables anew.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const RULES: &str = "\
- { name: archive, match: { table: \"k_archive.*\" }, deny: true, permanent: true, reason: ask the data team }
- { name: payroll, match: { table: test.k_payroll, statements: [write, load, ddl] }, deny: true, permanent: true }
- { name: rest, gate: none, permanent: true }";

#[tokio::test]
async fn a_table_that_is_protected_is_changed_by_nothing() {
    let _alone = ONE_AT_A_TIME.lock().await;
    for servers in both().await {
        made(&servers.primary).await;
        let config = Config::new(servers).unwrap().rules(RULES);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let mut conn = connect(&sluice, "admin").await.unwrap();
        let denied = DENIED.iter().map(|sql| (sql, "archive"));
        for (sql, rule) in denied.chain(DENIED_PAYROLL.iter().map(|sql| (sql, "payroll"))) {
            let answer = conn.query(sql).await.unwrap();
            assert_eq!(rule_of(&answer), rule, "{sql}: {answer:?}");
            assert_eq!(Refused::of(&answer).unwrap().errno, 1226, "{sql}");
        }
        let told = Refused::of(&conn.query(DENIED[0]).await.unwrap()).unwrap().message;
        let expected = "User has exceeded the 'sluice' resource: ask the data team [sluice id=";
        assert!(told.starts_with(expected) && told.ends_with(" executed=no]"), "{told}");
        for sql in PASSES {
            assert_eq!(rule_of(&conn.query(sql).await.unwrap()), "", "{sql}");
        }
        assert_untouched(&servers.primary).await;
    }
}

#[tokio::test]
async fn a_protected_table_is_known_by_its_own_schema_and_in_prepared_statements_too() {
    let _alone = ONE_AT_A_TIME.lock().await;
    for servers in both().await {
        made(&servers.primary).await;
        let config = Config::new(servers).unwrap().rules(RULES);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        let login = Login { schema: "k_archive".into(), ..Login::new("admin") };
        let mut inside = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
        for sql in
            ["DELETE FROM t", "TRUNCATE t", "RENAME TABLE t TO test.k_stolen", "DROP TABLE `t`"]
        {
            assert_eq!(rule_of(&inside.query(sql).await.unwrap()), "archive", "{sql}");
        }
        let passes = inside.query("DELETE FROM test.k_shop WHERE n = 77").await.unwrap();
        assert_eq!(Refused::of(&passes), None);

        let mut outside = connect(&sluice, "admin").await.unwrap();
        for sql in ["DELETE FROM k_archive.t", "RENAME TABLE k_archive.t TO test.k_stolen"] {
            let prepared = outside.prepare(sql).await.unwrap();
            assert_eq!(
                rule_of(&outside.execute(&prepared, &[]).await.unwrap()),
                "archive",
                "{sql}"
            );
            let named = outside.query(format!("PREPARE s FROM '{sql}'")).await.unwrap();
            assert_eq!(Refused::of(&named), None, "{sql}");
            assert_eq!(rule_of(&outside.query("EXECUTE s").await.unwrap()), "archive", "{sql}");
        }
        assert_eq!(Refused::of(&outside.query("USE k_archive").await.unwrap()), None);
        assert_eq!(rule_of(&outside.query("UPDATE t SET n = 9").await.unwrap()), "archive");
        assert_untouched(&servers.primary).await;
    }
}

#[tokio::test]
async fn the_default_schema_is_the_one_that_the_server_has() {
    const LATIN1: u8 = 8;
    const UTF8: u8 = 45;
    const INIT_DB: u8 = 2;
    const USE: u8 = 3;
    const RULES: &str = "\
- { name: tables, match: { table: \"k_donn\u{e9}es.*\" }, deny: true, permanent: true }
- { name: schema, match: { schema: K_Upper, statements: [write] }, deny: true, permanent: true }";
    let utf8 = "k_donn\u{e9}es".as_bytes();
    let latin1 = b"k_donn\xe9es";
    let named = |command: u8, name: &[u8]| {
        let (front, end): (&[u8], &[u8]) =
            if command == INIT_DB { (&[INIT_DB], b"") } else { (b"\x03USE `", b"`") };
        [front, name, end].concat()
    };
    for servers in both().await {
        let made = ["k_donn\u{e9}es", "k_upper"].map(|schema| {
            [
                format!("CREATE DATABASE IF NOT EXISTS `{schema}`"),
                format!("CREATE TABLE IF NOT EXISTS `{schema}`.t (n INT)"),
            ]
        });
        let made: Vec<&str> = made.iter().flatten().map(String::as_str).collect();
        servers.primary.run_sql(&made).await.unwrap();
        let config = Config::new(servers).unwrap().rules(RULES);
        let sluice = SluiceProcess::start(&config).await.unwrap();
        for track in [0, SESSION_TRACK] {
            let login = |collation: u8| {
                let login = Login { collation, ..Login::new("admin") };
                login.without(SESSION_TRACK).with(MULTI_STATEMENTS | track)
            };
            for (collation, command, name) in [
                (LATIN1, INIT_DB, &latin1[..]),
                (LATIN1, USE, latin1),
                (UTF8, INIT_DB, utf8),
                (UTF8, USE, utf8),
            ] {
                let login = login(collation);
                let mut conn = RawConn::open(sluice.listen_addr(), &login).await.unwrap();
                conn.command(&named(command, name), Shape::Single).await.unwrap();
                let answer = conn.query("INSERT INTO t VALUES (1)").await.unwrap();
                assert_eq!(rule_of(&answer), "tables", "{track} {collation} {command}");
                conn.query("USE k_upper\0").await.unwrap();
                let answer = conn.query("INSERT INTO t VALUES (1)").await.unwrap();
                assert_eq!(rule_of(&answer), "schema", "{track} {collation} {command}");
            }
            let mut conn = RawConn::open(sluice.listen_addr(), &login(UTF8)).await.unwrap();
            let failed = "USE `k_donn\u{e9}es`; SELECT nobody; USE test";
            conn.query(failed).await.unwrap();
            let answer = conn.query("INSERT INTO t VALUES (1)").await.unwrap();
            assert_eq!(rule_of(&answer), "tables", "{track}");
        }
        let written = "SELECT COUNT(*) FROM `k_donn\u{e9}es`.t";
        assert_eq!(numbers(&servers.primary, written).await.unwrap(), [0]);
    }
}

/// The schema, its table and those around it; again and again the same.
async fn made(server: &Server) {
    let statements = [
        "CREATE DATABASE IF NOT EXISTS k_archive",
        "CREATE TABLE IF NOT EXISTS k_archive.t (n INT)",
        "CREATE TABLE IF NOT EXISTS test.k_payroll (n INT)",
        "CREATE TABLE IF NOT EXISTS test.k_shop (n INT)",
        "DROP PROCEDURE IF EXISTS test.k_deletes",
        "CREATE PROCEDURE test.k_deletes() DELETE FROM k_archive.t",
        "DELETE FROM k_archive.t",
        "INSERT INTO k_archive.t VALUES (1), (2)",
    ];
    server.run_sql(&statements).await.unwrap();
}

async fn assert_untouched(server: &Server) {
    assert_eq!(numbers(server, "SELECT n FROM k_archive.t ORDER BY n").await.unwrap(), [1, 2]);
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'k_archive'";
    assert_eq!(numbers(server, tables).await.unwrap(), [1]);
    let columns =
        "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'k_archive'";
    assert_eq!(numbers(server, columns).await.unwrap(), [1]);
    assert!(numbers(server, "SELECT COUNT(*) FROM test.k_payroll").await.is_ok());
}

const DENIED: [&str; 39] = [
    "DELETE FROM k_archive.t",
    "delete /* x */ from `k_archive` . `t` where n = 1",
    "UPDATE k_archive.t SET n = 3",
    "INSERT INTO k_archive.t VALUES (3)",
    "REPLACE k_archive.t VALUES (3)",
    "INSERT INTO k_archive.t SELECT n FROM k_shop",
    "DELETE a FROM k_shop b JOIN k_archive.t a",
    "DELETE FROM a USING k_archive.t AS a JOIN k_shop",
    "UPDATE k_shop, k_archive.t SET t.n = 3",
    "WITH d AS (SELECT 1) DELETE FROM k_archive.t",
    "SELECT n FROM k_archive.t FOR UPDATE",
    "LOAD DATA LOCAL INFILE 'x' INTO TABLE k_archive.t",
    "SELECT 1; DELETE FROM k_archive.t",
    "TRUNCATE k_archive.t",
    "TRUNCATE TABLE `k_archive`.`t`",
    "DROP TABLE k_archive.t",
    "DROP TABLE IF EXISTS k_none, k_archive.t",
    "ALTER TABLE k_archive.t ADD COLUMN m INT",
    "ALTER TABLE k_archive.t RENAME TO test.k_stolen",
    "ALTER TABLE k_shop RENAME k_archive.k_shop",
    "RENAME TABLE k_archive.t TO test.k_stolen",
    "RENAME TABLE k_shop TO k_shop2, k_archive.t TO k_shop",
    "RENAME TABLE k_shop TO k_archive.k_shop",
    "/*!50000 RENAME TABLE */ k_archive.t TO test.k_stolen",
    "CREATE TABLE k_archive.new (n INT)",
    "CREATE TABLE k_archive.new LIKE k_shop",
    "CREATE TABLE k_archive.new SELECT 1 AS n",
    "CREATE INDEX i ON k_archive.t (n)",
    "OPTIMIZE TABLE k_archive.t",
    "CREATE VIEW k_archive.v AS SELECT 1",
    "CREATE TRIGGER k_archive.x BEFORE INSERT ON k_archive.t FOR EACH ROW SET @a = 1",
    "CREATE TRIGGER k_shop_x BEFORE INSERT ON k_shop FOR EACH ROW DELETE FROM k_archive.t",
    "CREATE PROCEDURE k_new() DELETE FROM k_archive.t",
    "CALL k_deletes()",
    "DROP DATABASE k_archive",
    "DROP SCHEMA IF EXISTS `k_archive`",
    "ALTER DATABASE k_archive CHARACTER SET latin1",
    "EXECUTE nobody",
    "FROBNICATE ALL THE TABLES",
];

/// What the rule matches, it covers, although it has no `statements`.
const DENIED_PAYROLL: [&str; 5] = [
    "DELETE FROM k_payroll",
    "TRUNCATE k_payroll",
    "DROP TABLE k_payroll",
    "ALTER TABLE k_payroll RENAME TO k_stolen",
    "RENAME TABLE k_payroll TO k_stolen",
];

const PASSES: [&str; 13] = [
    "SELECT COUNT(*) FROM k_archive.t",
    "EXPLAIN SELECT * FROM k_archive.t",
    "SHOW CREATE TABLE k_archive.t",
    "INSERT INTO k_shop VALUES (77)",
    "DELETE FROM k_shop WHERE n = 77",
    "RENAME TABLE k_shop TO k_shop_renamed, k_shop_renamed TO k_shop",
    "ALTER TABLE k_shop COMMENT 'k_archive.t'",
    "CREATE TABLE IF NOT EXISTS k_shop (n INT)",
    "DROP TABLE IF EXISTS k_none",
    "DROP VIEW IF EXISTS k_none_v",
    "DROP DATABASE IF EXISTS k_none",
    "ANALYZE TABLE k_archive.t",
    "FLUSH TABLES k_archive.t",
];
