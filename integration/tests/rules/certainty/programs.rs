//! Functions that write where only reads are expected, and schemas that only seem to be the server's own.

use super::{both, mariadb};

#[tokio::test]
async fn a_function_that_writes_is_held_wherever_it_stands() {
    for world in both().await {
        world.table("fired").await;
        for text in CALLS {
            world.none_gets_past("held", "called", &[&[text]]).await;
        }
        for prepared in ["SELECT test.f()", "DO test.f()", "SET @a = test.f()"] {
            let prepare = format!("PREPARE c FROM '{prepared}'");
            let attack: &[&[u8]] = &[prepare.as_bytes(), b"EXECUTE c"];
            world.none_gets_past("held", "called", &[attack]).await;
        }
    }
}

#[tokio::test]
async fn an_execution_of_a_function_that_writes_is_held() {
    for world in both().await {
        world.table("executed").await;
        let mut conn = world.login("held").await;
        for text in ["SELECT test.f()", "SELECT test.f() + ?", "DO test.fs()"] {
            let prepared = conn.prepare(text).await.unwrap();
            let params = vec![integration::raw::Param::int(1); usize::from(prepared.params)];
            let answer = conn.execute(&prepared, &params).await.unwrap();
            assert!(super::is_refused(&answer), "{text}");
        }
        assert!(!world.has_changed("called").await);
    }
}

#[tokio::test]
async fn a_table_made_from_a_select_is_a_write_and_a_definition() {
    for world in both().await {
        world.table("source").await;
        for text in [
            &b"CREATE TABLE test.made SELECT * FROM test.source"[..],
            b"CREATE TABLE test.made (id INT) AS SELECT id FROM test.source",
            b"CREATE TABLE test.made AS (SELECT id FROM test.source)",
            b"CREATE TABLE test.made AS WITH c AS (SELECT 1 AS id) SELECT * FROM c",
        ] {
            world.none_gets_past("ddlfree", "source", &[&[text]]).await;
        }
        let made: Vec<String> =
            world.servers.primary.query("SHOW TABLES IN test LIKE 'made'").await.unwrap();
        assert!(made.is_empty());
        for text in [&b"OPTIMIZE TABLE test.source"[..], b"REPAIR TABLE test.source"] {
            world.none_gets_past("held", "source", &[&[text]]).await;
        }
    }
}

#[tokio::test]
async fn the_schema_sys_is_written_by_nobody_whom_a_rule_denies() {
    for world in both().await {
        world.table("system").await;
        for user in ["held", "ddlfree"] {
            for text in SYS {
                world.none_gets_past(user, "system", &[&[text]]).await;
            }
        }
        let rows: Option<i64> = world
            .servers
            .primary
            .query_first("SELECT COUNT(*) FROM sys.sys_config WHERE set_by = 'attacker' OR variable = 'attack'")
            .await
            .unwrap();
        assert_eq!(rows, Some(0));
    }
}

#[tokio::test]
async fn a_sequence_is_not_moved_by_whom_a_rule_denies() {
    let world = mariadb().await;
    world
        .servers
        .primary
        .run_sql(&["CREATE SEQUENCE test.sq", "SELECT NEXTVAL(test.sq)"])
        .await
        .unwrap();
    world.table("moved").await;
    for text in [
        &b"SELECT SETVAL(test.sq, 500000)"[..],
        b"SELECT NEXTVAL(test.sq)",
        b"SELECT NEXT VALUE FOR test.sq",
        b"DO NEXTVAL(test.sq)",
        b"SET @a = NEXT VALUE FOR test.sq",
        b"SELECT NEXTVAL (test.sq)",
        b"SELECT NEXTVAL/**/(test.sq)",
    ] {
        world.none_gets_past("held", "moved", &[&[text]]).await;
    }
    let next: Option<i64> =
        world.servers.primary.query_first("SELECT NEXTVAL(test.sq)").await.unwrap();
    assert_eq!(next, Some(2));
}

const CALLS: [&[u8]; 25] = [
    b"SELECT test.f()",
    b"SELECT f()",
    b"SELECT TEST . F ( )",
    b"SELECT `test`.`f`()",
    b"SELECT * FROM (SELECT test.f()) b",
    b"WITH c AS (SELECT test.f()) SELECT * FROM c",
    b"SELECT 1 INTO @a FROM test.called WHERE test.f()",
    b"SET @a = test.f()",
    b"SET @a = @b := test.f()",
    b"SET sql_mode = test.fs()",
    b"SET @@SESSION.sql_mode = test.fs()",
    b"SHOW TABLES WHERE test.f()",
    b"SHOW VARIABLES WHERE test.f()",
    b"SHOW COLLATION WHERE test.f()",
    b"SHOW CHARACTER SET WHERE test.f()",
    b"SHOW COLUMNS FROM test.called WHERE test.f()",
    b"SHOW CREATE TABLE test.called; SELECT test.f()",
    b"DO test.f()",
    b"DO SLEEP(0), test.fs()",
    b"SELECT GET_LOCK('', test.f())",
    b"SELECT 1, test.fs()",
    b"SELECT 1 FROM test.called ORDER BY test.f() LIMIT 1",
    b"SELECT 1 UNION SELECT test.f()",
    b"VALUES ROW(1), ROW(test.f())",
    b"SELECT /*!50000 test.f() */",
];

const SYS: [&[u8]; 6] = [
    b"INSERT INTO sys.sys_config (variable, value) VALUES ('attack', '1')",
    b"INSERT sys.sys_config (variable) VALUES ('attack')",
    b"REPLACE INTO `sys`.`sys_config` (variable, value) VALUES ('attack', '1')",
    b"UPDATE sys.sys_config SET set_by = 'attacker'",
    b"INSERT INTO SYS.sys_config (variable, value) VALUES ('attack', '1')",
    b"DELETE FROM sys.sys_config",
];
