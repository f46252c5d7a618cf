//! A client that does not go on with a long statement.

use std::sync::Arc;
use std::time::Duration;

use session::Compression;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::time::{Instant, sleep};
use wire::compress::{Algorithm, CompressedLeg, Compressor, Role};

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

/// Compressed with zstd: of a block nothing can be read before all of it is there. Its digits are as
/// long there as three quarters of them.
fn packed(command: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut leg = CompressedLeg::new(Role::Client, Algorithm::Zstd, 3);
    leg.pack(command, &mut Compressor::new(Algorithm::Zstd).unwrap(), &mut wire);
    wire
}

/// It was ended in the middle of a block that took longer than 30 s.
#[tokio::test(start_paused = true)]
async fn what_comes_of_a_block_that_is_not_whole_yet_counts_and_nothing_more_does_not() {
    let Parts { mut client, mut server, mut connection, deadlines, counted, mut control } =
        Parts::new(BUDGETED);
    let (login, ()) =
        tokio::join!(connection.login(deadlines, &mut control), log_in(&mut client, &mut server));
    login.unwrap();
    let compression = Compression { algorithm: Algorithm::Zstd, level: 3 };
    connection.client.compress(Role::Server, compression, &Arc::default());
    let cluster = connection.shared.cluster.clone();
    let there = || cluster.budgeted_there().values().sum::<u32>();
    let ends = tokio::spawn(async move {
        let ended = connection.converse(&mut control).await;
        Box::pin(connection.end(ended)).await;
        drop(counted);
    });
    let reads = tokio::spawn(async move { copy(&mut server, &mut sink()).await });

    let mut state = 1_u64;
    let digits = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from(state >> 58).unwrap())
    });
    let wire = packed(&query(&digits.take(2 * SENT).collect::<String>()));
    let (first, mut left) = wire.split_at(SENT);
    client.write_all(first).await.unwrap();
    for _ in 0..5 {
        sleep(Duration::from_secs(29)).await;
        let next = left.split_off(..8 * 1024).unwrap();
        client.write_all(next).await.unwrap();
    }
    sleep(Duration::from_secs(29)).await;
    assert_eq!(there(), 1, "it goes on");
    let told = rest(&mut client).await;
    assert!(String::from_utf8_lossy(&told).contains("08S01Got timeout"), "{told:?}");
    assert_eq!(there(), 0);
    ends.await.unwrap();
    reads.await.unwrap().unwrap();
}
