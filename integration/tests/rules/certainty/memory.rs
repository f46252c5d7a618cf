//! What a client can make Sluice keep.

use integration::footprint::Footprint;
use integration::raw::RawConn;
use integration::scenario::connect;
use integration::sluice::SluiceProcess;

use super::{both, front};

/// Allocators keep some of what passes through: far less than what was said.
const KEPT_KIB_MAX: u64 = 5 * 1024;
const SAID_LEN: usize = 256 * 1024;
const TIMES: usize = 40;

#[tokio::test]
async fn apps_that_prepared_statements_set_are_kept_no_longer_than_an_app_can_be() {
    for world in both().await {
        let value = "x".repeat(SAID_LEN);
        let set = format!("SET @sluice_app = '{value}'");
        let sluice = front(world.servers).await;
        let (mut conn, before) = warm(&sluice).await;
        for _ in 0..TIMES {
            conn.prepare(set.as_str()).await.unwrap();
        }
        assert_little(&sluice, before, "COM_STMT_PREPARE of SET @sluice_app");
    }
}

#[tokio::test]
async fn names_and_texts_of_prepared_statements_are_not_kept_however_long() {
    for world in both().await {
        let long = "n".repeat(SAID_LEN);
        let sluice = front(world.servers).await;
        let (mut conn, before) = warm(&sluice).await;
        for nth in 0..TIMES {
            // The server refuses the long name; the long text it takes.
            conn.query(format!("PREPARE {long}{nth} FROM 'SELECT 1'")).await.unwrap();
            let text = format!("PREPARE n{nth} FROM 'SELECT /* app={long} */ 1'");
            conn.query(text).await.unwrap();
        }
        assert_little(&sluice, before, "PREPARE");
    }
}

/// A connection through which a long text has gone: what one takes is not what is measured.
async fn warm(sluice: &SluiceProcess) -> (RawConn, u64) {
    let mut conn = connect(sluice, "free").await.unwrap();
    let text = format!("SELECT '{}'", "x".repeat(3 * SAID_LEN));
    conn.query(text).await.unwrap();
    (conn, Footprint::of(sluice).unwrap().rss_kib)
}

fn assert_little(sluice: &SluiceProcess, before: u64, what: &str) {
    let after = Footprint::of(sluice).unwrap().rss_kib;
    let kept = after.saturating_sub(before);
    assert!(kept < KEPT_KIB_MAX, "{what}: {kept} KiB more");
}
