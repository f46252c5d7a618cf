//! An EXPLAIN that takes too long ends at the server.

use std::time::Duration;

use integration::scenario::{connect_as, wait_until};

use super::{EXPECTING, MYSQL, started};

/// The server's own limit is not for what writes: each of these went on for as long as it liked, one
/// beside the other.
#[tokio::test]
async fn an_explain_that_is_given_up_ends_at_the_server() {
    let servers = MYSQL.get().await.unwrap();
    let tables = [
        "CREATE DATABASE IF NOT EXISTS g_given_up",
        "DROP TABLE IF EXISTS g_given_up.many",
        "CREATE TABLE g_given_up.many (n INT PRIMARY KEY, v INT)",
        "INSERT INTO g_given_up.many WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900) SELECT n, n FROM s",
        "CREATE TABLE IF NOT EXISTS g_given_up.one (n INT PRIMARY KEY, v INT)",
        "GRANT ALL ON g_given_up.* TO 'app'@'%', 'sluice'@'%'",
    ];
    servers.primary.run_sql(&tables).await.unwrap();
    let sluice = started(servers, "g_given", EXPECTING).await;
    let all = "(SELECT COUNT(*) FROM g_given_up.many a, g_given_up.many b, g_given_up.many c, \
               g_given_up.many d WHERE a.v + b.v + c.v + d.v < 0)";
    let text = format!("UPDATE g_given_up.one SET v = 1 WHERE n = {all}");
    let explained = async |count: u32| {
        let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'EXPLAIN %UPDATE g_given_up%'";
        Ok(servers.primary.query_first::<u32>(running).await? == Some(count))
    };
    let mut conn = connect_as(&sluice, "expected").await.unwrap();
    conn.query("USE g_given_up").await.unwrap().accepted().unwrap();
    // It is looked at, and not run.
    conn.prepare(&text).await.unwrap();
    let limit = Duration::from_secs(20);
    wait_until("nobody waits for it any more", limit, || explained(1)).await.unwrap();
    wait_until("it is stopped", limit, || explained(0)).await.unwrap();
}
