//! A client that does not go on with a long statement.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep};

use super::script::*;
use super::{ADMITTING, OPEN};

const BUDGETED: &str = "  - { name: all, gate: none, permanent: true }
budgets:
  - { name: two, max_concurrency: 2 }
";

const OBSERVED: &str = "  - { name: all, mode: observe, permanent: true }\n";

/// More of a statement than is looked at.
const SENT: usize = 1_100_000;

/// The server has got so much of a statement that is twice as long.
async fn half_sent(rules: &str) -> Stage {
    let mut stage = Stage::logged_in(rules).await;
    let long = query(&format!("SELECT '{}'", "a".repeat(2 * SENT)));
    let mut come = vec![0; SENT];
    let Stage { client, server, .. } = &mut stage;
    let (sent, read) = tokio::join!(client.write_all(&long[..SENT]), server.read_exact(&mut come));
    sent.and(read).unwrap();
    assert!(come == long[..SENT]);
    stage
}

fn there(stage: &Stage) -> u32 {
    stage.cluster.budgeted_there().values().sum()
}

async fn is_ended(mut stage: Stage, since: Instant) {
    let told = rest(&mut stage.client).await;
    assert_eq!((told[3], error(&told).0), (1, 1159), "ER_NET_READ_INTERRUPTED");
    assert_eq!(since.elapsed().as_secs(), 30);
    rest(&mut stage.server).await;
    assert_eq!(there(&stage), 0);
    assert_eq!(stage.cluster.left_behind.len(), 0, "nothing of it runs");
    assert!(
        stage.has_counted("sluice_connections_refused_total{cluster=\"a\",reason=\"stalled\"} 1")
    );
    stage.ends().await;
}

/// It kept its place, or its permit, for as long as it liked.
#[tokio::test(start_paused = true)]
async fn who_holds_others_up_and_sends_no_more_of_a_statement_is_ended_after_net_read_timeout() {
    for (rules, places) in [(BUDGETED, 1), (ADMITTING, 0)] {
        let stage = half_sent(rules).await;
        assert_eq!(there(&stage), places);
        is_ended(stage, Instant::now()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_drips_is_ended_as_well() {
    let mut stage = half_sent(BUDGETED).await;
    let since = Instant::now();
    for _ in 0..5 {
        sleep(Duration::from_secs(5)).await;
        stage.client.write_all(b"a").await.unwrap();
    }
    is_ended(stage, since).await;
}

#[tokio::test(start_paused = true)]
async fn who_goes_on_slowly_has_its_place_and_who_holds_nobody_up_may_take_its_time() {
    let warns = BUDGETED.replace("two,", "two, mode: warn,");
    for (rules, len) in [(BUDGETED, 8 * 1024), (&*warns, 0), (OBSERVED, 0), (OPEN, 0)] {
        let mut stage = half_sent(rules).await;
        let mut come = vec![0; len];
        for _ in 0..60 {
            sleep(Duration::from_secs(29)).await;
            stage.client.write_all(&vec![b'a'; len]).await.unwrap();
            stage.server.read_exact(&mut come).await.unwrap();
        }
        assert_eq!(there(&stage), u32::from(rules.contains("budgets")), "it is there yet");
    }
}

/// A place is free with the last byte of the answer, however long the client thought about its next.
#[tokio::test(start_paused = true)]
async fn a_statement_that_has_come_whole_has_no_such_end() {
    let mut stage = half_sent(BUDGETED).await;
    let rest_of = query(&format!("SELECT '{}'", "a".repeat(2 * SENT))).split_off(SENT);
    let mut come = vec![0; rest_of.len()];
    let Stage { client, server, .. } = &mut stage;
    let (sent, read) = tokio::join!(client.write_all(&rest_of), server.read_exact(&mut come));
    sent.and(read).unwrap();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(there(&stage), 1, "it runs");
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    sleep(Duration::from_secs(600)).await;
    stage.passes("SELECT 1", AUTOCOMMIT).await;
}
