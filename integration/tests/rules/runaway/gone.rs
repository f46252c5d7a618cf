//! Who leaves takes no statement out of its limit.

use integration::scenario::wait_until;

use super::*;

/// More work than anybody waits for, in which no server looks for its client.
const WORKS: &str = "SELECT COUNT(*) FROM ran_in a, ran_in b, ran_in c WHERE a.n + b.n + c.n < 0";

/// The server's connection was closed with the client's, and the statement ran on, watched by nobody.
#[tokio::test]
async fn a_client_that_resets_its_connection_leaves_its_statement_to_its_limit() {
    let _alone = ALONE.lock().await;
    tokio::join!(resets(MYSQL.get().await.unwrap()), resets(MARIADB.get().await.unwrap()));
}

async fn resets(servers: &Topology) {
    let rules = "- { name: gone, match: { app: gone }, gate: none, permanent: true, runaway: { elapsed: 2s, action: kill, watch: { for: 1m } } }";
    let sluice = started(servers, rules).await;
    let mut conn = connect_as(&sluice, "gone").await.unwrap();
    let payload = conn.query_payload(WORKS.as_bytes(), &[]);
    conn.send_command(&payload).await.unwrap();
    let runs = async |count: u32| {
        let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT COUNT(*) FROM ran_in%'";
        Ok(servers.primary.query_first::<u32>(running).await? == Some(count))
    };
    let limit = Duration::from_secs(20);
    wait_until("it runs", limit, || runs(1)).await.unwrap();
    conn.stream().set_zero_linger().unwrap();
    drop(conn);
    let counted = [("rule", "gone"), ("action", "kill")];
    wait_for_sum(&sluice, "sluice_runaway_total", &counted, 1.0).await.unwrap();
    wait_until("it has ended", limit, || runs(0)).await.unwrap();
    wait_for_sum(&sluice, "sluice_client_connections", &[], 0.0).await.unwrap();
    assert_eq!(listed(&sluice).await.len(), 1);
}
