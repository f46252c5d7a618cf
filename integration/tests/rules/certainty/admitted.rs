//! What is taken for admitted, whose name counts, and what a statement that never ran may change.

use std::time::Duration;

use integration::scenario::{Pending, Refused, wait_for_depth};

use super::{World, both, is_refused, mariadb};

#[tokio::test]
async fn a_definition_does_not_admit_the_transaction_it_is_in() {
    for world in both().await {
        world.table("defined").await;
        let insert: &[u8] = b"INSERT INTO test.defined (n) VALUES (1)";
        world
            .none_gets_past(
                "ddlfree",
                "defined",
                &[
                    &[b"BEGIN", b"CREATE x", insert],
                    &[b"BEGIN", b"CREATE TEMPORARY TABLE test.d1 (id INT)", insert],
                    &[b"START TRANSACTION", b"DROP TABLE IF EXISTS test.none", insert],
                    &[b"START TRANSACTION", b"DROP TEMPORARY TABLE IF EXISTS test.none", insert],
                    &[b"XA START 'd'", b"OPTIMIZE", insert],
                    &[b"XA START 'e'", b"DROP", insert],
                    &[b"XA START 'x'; START TRANSACTION", b"DROP TABLE IF EXISTS w.none", insert],
                    &[b"SET autocommit = 0", b"SELECT * FROM test.called", b"ALTER x", insert],
                    &[b"BEGIN", b"TRUNCATE TABLE", insert],
                    &[b"BEGIN", b"SELECT * FROM test.called FOR UPDATE", insert],
                ],
            )
            .await;
    }
}

#[tokio::test]
async fn an_admission_ends_with_its_transaction_also_out_of_sight() {
    for world in both().await {
        world.table("ended").await;
        let ok: &[u8] = b"/* app=ok */ SELECT id FROM test.called WHERE id = 1 FOR UPDATE";
        let bad: &[u8] = b"/* app=bad */ UPDATE test.ended SET n = 1";
        let ways: [&[&[u8]]; 18] = [
            &[b"COMMIT; SELECT nonsense"],
            &[b"BEGIN; SELECT nonsense"],
            &[b"COMMIT AND CHAIN; SELECT nonsense"],
            &[b"ROLLBACK AND CHAIN; SELECT nonsense"],
            &[b"PREPARE e FROM 'COMMIT AND CHAIN'; EXECUTE e; SELECT nonsense"],
            &[b"PREPARE e FROM 'COMMIT AND CHAIN'", b"EXECUTE e; SELECT nonsense"],
            &[b"SET @v = 'COMMIT AND CHAIN'", b"PREPARE e FROM @v", b"EXECUTE e"],
            &[b"SET @v = 'COMMIT AND CHAIN'", b"PREPARE e FROM @v; EXECUTE e; SELECT nonsense"],
            &[b"SET autocommit = 1; SET autocommit = 0; SELECT 1 FROM test.called; SELECT nonsense"],
            &[b"SET autocommit = 1, autocommit = 0", b"SELECT 1 FROM test.called"],
            &[b"SET autocommit = 0", b"SET autocommit = 1"],
            &[b"SET autocommit = 0, autocommit = 1", b"BEGIN"],
            &[b"SET autocommit = 0", b"SET autocommit = 1; SET autocommit = 0; SELECT 1 FROM test.called"],
            &[b"SELECT /*+ it's */ 1; COMMIT; BEGIN"],
            &[b"COMMIT /*+ ' */; BEGIN"],
            &[b"SELECT /*+ \" */ 1; COMMIT AND CHAIN; SELECT nonsense /*+ \" */"],
            &[b"COMMIT AND CHAIN"],
            &[b"BEGIN; SELECT 1 FROM test.called"],
        ];
        for begin in [b"BEGIN".as_slice(), b"SET autocommit = 0"] {
            for way in ways {
                let ended = [&[begin, ok], way].concat();
                ends_the_admission(world, &ended, bad).await;
            }
        }
    }
}

/// What follows these texts is asked for again, unless Sluice has refused one of them: that has
/// ended nothing, and the transaction may be covered yet.
async fn ends_the_admission(world: &World, texts: &[&[u8]], bad: &[u8]) {
    let mut conn = world.login("turned").await;
    let mut refused = false;
    for text in texts {
        refused |= is_refused(&conn.query(text).await.unwrap());
    }
    let passes = !is_refused(&conn.query(bad).await.unwrap());
    let shown: Vec<String> = texts.iter().map(|text| text.escape_ascii().to_string()).collect();
    assert!(!passes || refused, "{shown:?}");
}

#[tokio::test]
async fn the_comment_of_an_execute_names_the_app_before_what_was_prepared_does() {
    for world in both().await {
        world.table("named").await;
        let prepare: &[u8] = b"PREPARE s FROM '/* app=ok */ UPDATE test.named SET n = 3'";
        let executes: [&[u8]; 7] = [
            b"/* app=bad */ EXECUTE s",
            b"/*app='bad'*/ EXECUTE s",
            b"EXECUTE /*app='bad'*/ s",
            b"EXECUTE s /*app='bad'*/",
            b"EXECUTE s -- app=bad",
            b"/*!40101 EXECUTE s */ /* app=bad */",
            b"/* app=bad */ EXECUTE S;",
        ];
        for execute in executes {
            world.none_gets_past("tagged", "named", &[&[prepare, execute]]).await;
        }
        world.all_pass("tagged", &[prepare, b"EXECUTE s", b"/* app=ok */ EXECUTE s"]).await;
        assert!(world.has_changed("named").await);
    }
}

#[tokio::test]
async fn a_kill_that_never_runs_ends_nobodys_waiting_statement() {
    for world in both().await {
        world.table("spared").await;
        for kill in KILLS {
            let conn = world.login("waits").await;
            let id = conn.connection_id();
            let waiting = Pending::query(conn, "UPDATE test.spared SET n = 1");
            wait_for_depth(&world.sluice, "waits", 1).await.unwrap();
            let mut killer = world.login("free").await;
            for text in kill.split('|') {
                killer.query(text.replace("{id}", &id.to_string())).await.unwrap();
            }
            let answered = waiting.answered(Duration::from_secs(20)).await.unwrap();
            let refused = Refused::of(&answered.response);
            assert!(is_refused(&answered.response), "{kill}: {:?}", answered.response.err());
            assert_eq!(refused.unwrap().errno, 1205, "{kill}");
        }
        assert!(!world.has_changed("spared").await);
    }
}

#[tokio::test]
async fn locks_in_a_branch_that_is_not_taken_do_not_count() {
    let world = mariadb().await;
    world.table("branch").await;
    for block in [
        &b"BEGIN NOT ATOMIC IF 0 THEN SELECT 1; FLUSH TABLES WITH READ LOCK; END IF; END"[..],
        b"IF 0 THEN SELECT 1; BACKUP LOCK test.branch; END IF",
        b"BEGIN NOT ATOMIC IF 0 THEN SELECT 1; DO GET_LOCK('b', 0); END IF; END",
        b"BEGIN NOT ATOMIC IF 0 THEN SELECT GET_LOCK('b', 0); END IF; END",
    ] {
        let attack: &[&[u8]] = &[block, b"TRUNCATE test.branch"];
        world.none_gets_past("ddlgated", "branch", &[attack]).await;
    }
}

/// `|` parts texts. All but the ones with an IF lack the right to kill another user's session.
const KILLS: [&str; 5] = [
    "BEGIN NOT ATOMIC IF 0 THEN SELECT 1; KILL {id}; END IF; END",
    "IF 0 THEN SELECT 1; KILL QUERY {id}; END IF",
    "DROP PROCEDURE IF EXISTS test.k|CREATE PROCEDURE test.k() BEGIN SELECT 1; KILL {id}; END",
    "KILL {id}",
    "SELECT 1; KILL QUERY {id}",
];
