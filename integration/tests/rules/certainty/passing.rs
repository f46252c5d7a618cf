//! The other side: what changes nothing passes a rule that denies writes, whatever stands before it,
//! and what applications and tools do as ever is not taken for more than it is.

use integration::raw::Param;

use super::{RESET, both, is_refused, mysql};

/// Reads with everything in them that a reader in doubt would look at twice.
const READS: [&str; 9] = [
    "SELECT 'naïve café – 東京 😀'",
    r"SELECT 'it''s', 'back\\slash', 'a\'b', 'C:\\dir\\'",
    "SELECT \"O'Reilly\", 'say \"hi\"'",
    r#"SELECT "a b", 'x\n', '%\_%'"#,
    "SELECT COUNT(*) FROM `called` WHERE n = -1 AND id LIKE 'é%' -- käse's \"end",
    "SELECT /* it's a comment \\ */ id FROM called # what's left",
    "SHOW TABLES LIKE 'cal\\_%'",
    "SELECT JSON_EXTRACT('{\"a\": \"b\\\\u00e9\"}', '$.a')",
    "SELECT REGEXP_REPLACE('a.b', '\\\\.', 'ü'), LOWER('ÄÖ'), CONCAT_WS(',', 'a', \"b\")",
];

#[tokio::test]
async fn ordinary_reads_pass_behind_all_that_leaves_the_mode_in_doubt() {
    for world in both().await {
        for before in [
            &b""[..],
            b"SELECT test.mode()|SET sql_mode = ''|SET NAMES utf8mb4",
            RESET,
            b"SET NAMES DEFAULT",
            b"SET NAMES utf8mb4 COLLATE utf8mb4_general_ci",
            b"SET sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
            b"SET sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')",
            b"SET autocommit = 1, @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',TRADITIONAL'), ',NO_AUTO_VALUE_ON_ZERO')",
            b"SET @@SESSION.sql_mode = (SELECT REPLACE(@@sql_mode, 'ONLY_FULL_GROUP_BY', ''))",
            b"SET @old = @@sql_mode, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'|/*!40101 SET SQL_MODE=@old */",
            b"SELECT nonsense",
        ] {
            let mut conn = world.login("ddlfree").await;
            for text in before.split(|byte| *byte == b'|') {
                super::send(&mut conn, text).await;
            }
            for read in READS {
                let answer = conn.query(read).await.unwrap();
                let shown = format!("{} then {read}", before.escape_ascii());
                assert!(answer.err().is_none(), "{shown}: {:?}", answer.err());
            }
        }
    }
}

/// Where it is in doubt what a backslash does, only what has one before a quote is held.
#[tokio::test]
async fn reads_without_escaped_quotes_pass_behind_a_mode_that_is_computed() {
    for world in both().await {
        for before in [
            &b"SET sql_mode = @@sql_mode, @x = (SELECT n FROM called LIMIT 1)"[..],
            b"SELECT test.mode()",
        ] {
            let mut conn = world.login("ddlfree").await;
            super::send(&mut conn, before).await;
            for read in READS.into_iter().filter(|read| !read.contains('\\')) {
                let answer = conn.query(read).await.unwrap();
                let shown = format!("{} then {read}", before.escape_ascii());
                assert!(answer.err().is_none(), "{shown}: {:?}", answer.err());
            }
        }
    }
}

#[tokio::test]
async fn reads_pass_behind_a_call_of_a_procedure() {
    for world in both().await {
        // Whom no rule holds may call; a rule that denies writes then holds what is tagged.
        let mut conn = world.login("tagged").await;
        let call = conn.query("/* app=ok */ CALL test.reads()").await.unwrap();
        assert!(call.err().is_none());
        for read in READS {
            let answer = conn.query(read).await.unwrap();
            assert!(answer.err().is_none(), "{read}: {:?}", answer.err());
        }
    }
}

#[tokio::test]
async fn hints_with_odd_quotes_are_no_writes() {
    let hints: [&[u8]; 4] = [
        b"SELECT /*+ MAX_EXECUTION_TIME(1000) it's */ 1",
        b"SELECT /*+ \" */ 1",
        b"SELECT /*+ ` */ 1 /* it's */",
        b"SELECT /*+ NO_MERGE(t) */ * FROM test.called t WHERE n <> '\xc3\xa4'",
    ];
    for world in both().await {
        world.all_pass("held", &hints).await;
    }
    // What stands behind the first end of a hint is outside of it.
    let world = mysql().await;
    world.table("hint").await;
    let behind: &[&[u8]] = &[b"SELECT /*+ it's */ 1; UPDATE test.hint SET n = 1; -- ' */"];
    world.none_gets_past("held", "hint", &[behind]).await;
}

#[tokio::test]
async fn transactions_of_an_orm_read_and_write_as_ever() {
    for world in both().await {
        world.table("orm").await;
        let script: [&[u8]; 15] = [
            b"SET NAMES utf8mb4",
            b"SET autocommit = 0",
            b"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            b"SELECT @@transaction_isolation, @@version_comment",
            b"BEGIN",
            b"SELECT * FROM test.orm WHERE id = 1",
            b"SAVEPOINT `sp_1`",
            b"SELECT * FROM test.orm WHERE n IN (1, 2, 3) ORDER BY id LIMIT 10",
            b"ROLLBACK TO SAVEPOINT `sp_1`",
            b"SAVEPOINT sp_2",
            b"RELEASE SAVEPOINT sp_2",
            b"COMMIT",
            b"START TRANSACTION READ ONLY",
            b"SELECT COUNT(*) FROM test.orm",
            b"ROLLBACK",
        ];
        // A session that only reads, held in everything that writes.
        let reads: Vec<&[u8]> = script.iter().copied().filter(|text| !is_isolation(text)).collect();
        world.all_pass("held", &reads).await;
        // One that names itself in each statement, as its rule wants.
        world
            .all_pass(
                "tagged",
                &[
                    b"BEGIN",
                    b"/* app=ok */ INSERT INTO test.orm (n) VALUES (1)",
                    b"SAVEPOINT a",
                    b"/* app=ok */ UPDATE test.orm SET n = 2 WHERE n = 1",
                    b"ROLLBACK TO a",
                    b"/* app=ok */ DELETE FROM test.orm WHERE n = 1",
                    b"COMMIT",
                ],
            )
            .await;
        let mut conn = world.login("tagged").await;
        assert!(is_refused(&conn.query("UPDATE test.orm SET n = 2").await.unwrap()));
        assert!(!world.has_changed("orm").await);
    }
}

/// Variables that the two servers name differently.
fn is_isolation(text: &[u8]) -> bool {
    text.windows(b"@@transaction".len()).any(|window| window == b"@@transaction")
}

#[tokio::test]
async fn prepared_reads_pass_with_any_values() {
    for world in both().await {
        let mut conn = world.login("held").await;
        let read = conn.prepare("SELECT ?, n FROM called WHERE id = ? AND 'it''s' <> 'ü'").await;
        let read = read.unwrap();
        for value in ["it's", "\\", "\"; DELETE FROM called; -- ", "😀"] {
            let answer = conn.execute(&read, &[Param::text(value), Param::int(1)]).await.unwrap();
            assert!(answer.err().is_none(), "{value}: {:?}", answer.err());
        }
        for read in READS {
            let prepared = conn.prepare(read).await.unwrap();
            for _ in 0..2 {
                let answer = conn.execute(&prepared, &[]).await.unwrap();
                assert!(answer.err().is_none(), "{read}: {:?}", answer.err());
            }
        }
        world
            .all_pass(
                "held",
                &[
                    b"PREPARE r FROM 'SELECT ?'",
                    b"SET @a = 1",
                    b"EXECUTE r USING @a",
                    b"DEALLOCATE PREPARE r",
                ],
            )
            .await;
    }
}

#[tokio::test]
async fn an_application_may_take_and_ask_for_named_locks() {
    for world in both().await {
        world
            .all_pass(
                "held",
                &[
                    b"SELECT GET_LOCK('app:migrate', 1)",
                    b"SELECT IS_FREE_LOCK('app:migrate'), IS_USED_LOCK('app:migrate')",
                    b"SELECT COUNT(*) FROM test.called",
                    b"SELECT RELEASE_LOCK('app:migrate')",
                    b"DO GET_LOCK('app:other', 0)",
                    b"DO RELEASE_LOCK('app:other')",
                    b"SELECT RELEASE_ALL_LOCKS()",
                ],
            )
            .await;
    }
}

#[tokio::test]
async fn what_online_schema_changes_ask_and_set_passes() {
    let world = mysql().await;
    world
        .all_pass(
            "held",
            &[
                b"SELECT /* gh-ost */ @@global.version, @@global.port",
                b"SHOW /* gh-ost */ GRANTS FOR CURRENT_USER()",
                b"SELECT /* gh-ost */ @@global.log_bin, @@global.binlog_format",
                b"SHOW /* gh-ost */ TABLE STATUS FROM `test` LIKE 'called'",
                b"SHOW COLUMNS FROM `test`.`called`",
                b"SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = 'test' AND table_name = 'called'",
                b"SET /* gh-ost */ @@session.lock_wait_timeout := 6",
                b"SELECT /* gh-ost */ GET_LOCK('gh-ost.42.lock', 0)",
                b"SELECT /* gh-ost */ RELEASE_LOCK('gh-ost.42.lock')",
                b"SET SESSION innodb_lock_wait_timeout = 1",
                b"SET @@SQL_QUOTE_SHOW_CREATE = 1/*!40101, @@SQL_MODE='NO_AUTO_VALUE_ON_ZERO'*/",
                b"/*!40101 SET @OLD_SQL_MODE := @@SQL_MODE, @@SQL_MODE := REPLACE(REPLACE(@@SQL_MODE, 'ANSI_QUOTES', ''), ',,', ',') */",
                b"SHOW CREATE TABLE `test`.`called`",
                b"SHOW VARIABLES LIKE 'innodb\\_lock_wait_timeout'",
                b"EXPLAIN SELECT /*!40001 SQL_NO_CACHE */ `id` FROM `test`.`called` FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '1')) ORDER BY `id` LIMIT 999, 2",
                b"SHOW WARNINGS",
                b"SELECT 'pt-osc', 'na\xc3\xafve'",
            ],
        )
        .await;
}
