//! Who holds a lock that others wait for: the server says it, no text does.

use integration::server::Flavour;

use super::{both, is_refused, mariadb};

const INSERT: &str = "INSERT INTO test.{table} (n) VALUES (1)";

#[tokio::test]
async fn a_lock_that_was_not_given_exempts_nobody() {
    for world in both().await {
        world.table("given").await;
        let mut other = world.login("free").await;
        other.query("SELECT GET_LOCK('taken', 0)").await.unwrap();
        let insert: &[u8] = b"INSERT INTO test.given (n) VALUES (1)";
        let texts: [&[u8]; 10] = [
            b"SELECT IF(0, GET_LOCK('a', 0), 1)",
            b"SELECT 1 OR GET_LOCK('a', 0)",
            b"SELECT GET_LOCK('taken', 0)",
            b"SELECT GET_LOCK('', 0)",
            b"SET @l = GET_LOCK('taken', 0)",
            b"DO GET_LOCK('taken', 0)",
            b"SELECT GET_LOCK('taken', 0) UNION SELECT 1",
            b"SELECT 1 FROM test.called WHERE GET_LOCK('taken', 0)",
            b"SELECT GET_LOCK(NULL, 0)",
            b"SELECT COALESCE(GET_LOCK('taken', 0), 1) + 1",
        ];
        for text in texts {
            world.none_gets_past("gated", "given", &[&[text, insert]]).await;
        }
    }
}

#[tokio::test]
async fn a_lock_that_was_released_exempts_nobody() {
    for world in both().await {
        world.table("released").await;
        let insert: &[u8] = b"INSERT INTO test.released (n) VALUES (1)";
        let take: &[u8] = b"SELECT GET_LOCK('released', 0)";
        for release in [
            &b"SELECT RELEASE_LOCK('released')"[..],
            b"DO RELEASE_LOCK('released')",
            b"SELECT RELEASE_ALL_LOCKS()",
            b"SET @r = RELEASE_LOCK('released')",
            b"SELECT 1 FROM test.called WHERE RELEASE_LOCK('released')",
            b"SELECT RELEASE_LOCK(CONCAT('relea', 'sed'))",
        ] {
            world.none_gets_past("gated", "released", &[&[take, release, insert]]).await;
        }
    }
}

#[tokio::test]
async fn deny_and_hold_reach_who_holds_a_named_lock() {
    for world in both().await {
        world.table("reached").await;
        for user in ["held", "sealed", "paused"] {
            let mut conn = world.login(user).await;
            for text in ["SELECT GET_LOCK('reached', 0)", "SET @l = GET_LOCK('reached', 0)"] {
                conn.query(text).await.unwrap();
                let insert = INSERT.replace("{table}", "reached");
                assert!(is_refused(&conn.query(insert).await.unwrap()), "{user}: {text}");
            }
            conn.query("SELECT RELEASE_ALL_LOCKS()").await.unwrap();
            conn.quit().await.unwrap();
        }
        assert!(!world.has_changed("reached").await);
    }
}

#[tokio::test]
async fn a_lock_that_is_held_exempts_from_a_gate() {
    for world in both().await {
        world.table("holder").await;
        let insert = INSERT.replace("{table}", "holder");
        let mut conn = world.login("gated").await;
        assert!(is_refused(&conn.query(insert.as_str()).await.unwrap()));
        for name in ["a", "b"] {
            conn.query(format!("SELECT GET_LOCK('held-{name}', 0)")).await.unwrap();
        }
        assert!(conn.query(insert.as_str()).await.unwrap().err().is_none());
        // One of two is still held.
        conn.query("SELECT RELEASE_LOCK('held-a')").await.unwrap();
        assert!(conn.query(insert.as_str()).await.unwrap().err().is_none());
        conn.query("SELECT RELEASE_LOCK('held-b')").await.unwrap();
        assert!(is_refused(&conn.query(insert.as_str()).await.unwrap()));
        // What others wait for in the server's own locks goes on too.
        conn.query("LOCK TABLES test.holder WRITE").await.unwrap();
        assert!(conn.query(insert.as_str()).await.unwrap().err().is_none());
        conn.query("UNLOCK TABLES").await.unwrap();
        assert!(is_refused(&conn.query(insert.as_str()).await.unwrap()));
        assert!(world.has_changed("holder").await);
    }
}

#[tokio::test]
async fn a_lock_without_a_name_exempts_nobody_whom_the_server_does_not_let_hold_it() {
    let world = mariadb().await;
    world.table("nameless").await;
    let insert: &[u8] = b"INSERT INTO test.nameless (n) VALUES (1)";
    let deny: &[&[&[u8]]] = &[
        &[b"SELECT GET_LOCK('', 0)", insert],
        &[b"SET @l = GET_LOCK('', 0)", b"DELETE FROM test.nameless"],
    ];
    world.none_gets_past("held", "nameless", deny).await;
}

#[tokio::test]
async fn locked_tables_that_the_server_has_given_back_exempt_nobody() {
    const MADE: &[u8] = b"CREATE TABLE test.lost_one (n INT)";
    const LOCKED: &[u8] = b"LOCK TABLES test.lost_one WRITE";
    const FLUSHED: &[u8] = b"FLUSH TABLES test.lost WITH READ LOCK";
    const INSERT: &[u8] = b"INSERT INTO test.lost (n) VALUES (1)";
    for world in both().await {
        world.table("lost").await;
        let grant = "GRANT RELOAD ON *.* TO ddlfree@'%'";
        world.servers.primary.run_sql(&[grant]).await.unwrap();
        let attacks: [&[&[u8]]; 5] = [
            &[MADE, LOCKED, b"DROP TABLE test.lost_one", INSERT],
            &[MADE, LOCKED, b"DROP /* x */ TABLES IF EXISTS test.lost_one RESTRICT", INSERT],
            &[MADE, LOCKED, b"DROP TABLE test.lost_one; INSERT INTO test.lost (n) VALUES (1)"],
            &[FLUSHED, b"BEGIN", INSERT, b"COMMIT", INSERT],
            &[FLUSHED, b"LOCK TABLES test.nobody READ", INSERT],
        ];
        world.none_gets_past("ddlfree", "lost", &attacks).await;
        if world.servers.primary.flavour() == Flavour::MariaDb {
            const SEQUENCE: &[u8] = b"CREATE SEQUENCE test.lost_next";
            const NEXT: &[u8] = b"LOCK TABLES test.lost_next WRITE";
            const ANEW: &[u8] = b"CREATE OR REPLACE TABLE test.lost_one (n INT PRIMARY KEY) \
                SELECT 1 AS n UNION ALL SELECT 1";
            let attacks: [&[&[u8]]; 2] = [
                &[SEQUENCE, NEXT, b"DROP SEQUENCE test.lost_next", INSERT],
                &[MADE, LOCKED, ANEW, INSERT],
            ];
            world.none_gets_past("ddlfree", "lost", &attacks).await;
        }
    }
}
