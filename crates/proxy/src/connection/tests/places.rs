//! When the place of a statement in its budgets is free: with the last byte of its answer, and with
//! none before.

use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::script::*;

/// Whoever is in the budget of two shows in how many are there.
const BUDGETED: &str = "  - { name: all, gate: none, permanent: true }
budgets:
  - { name: two, max_concurrency: 2 }
";
const MORE_RESULTS: u16 = AUTOCOMMIT | 8;

/// A result of one column and these rows, in sequence from `first`.
fn rows(first: u8, rows: u8, status: u16) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    let column = b"\x03def\0\0\0\x01a\0\x0c\x3f\0\x01\0\0\0\x08\x81\0\0\0\0";
    let mut all = [frame(first, b"\x01"), frame(first + 1, column)].concat();
    for row in 0..rows {
        all.extend(frame(first + 2 + row, b"\x011"));
    }
    all.extend(frame(first + 2 + rows, &[0xfe, 0, 0, low, high, 0, 0]));
    all
}

fn there(stage: &Stage) -> u32 {
    stage.cluster.budgeted_there().values().sum()
}

/// At load 16 a server showed five statements of a budget of three: its own timer of a statement ends
/// behind its answer, when the thread has a processor again. Here there is no such thread.
#[tokio::test(start_paused = true)]
async fn a_place_is_taken_to_the_last_byte_of_the_answer_and_free_with_it() {
    let failed = frame(1, b"\xff\x28\x04#42000oh");
    let then_failed = frame(4, b"\xff\x28\x04#42000oh");
    let answers = [
        ok(1, AUTOCOMMIT),
        failed,
        rows(1, 0, AUTOCOMMIT),
        rows(1, 3, AUTOCOMMIT),
        [ok(1, MORE_RESULTS), ok(2, AUTOCOMMIT)].concat(),
        [rows(1, 1, MORE_RESULTS), rows(5, 2, MORE_RESULTS), ok(10, AUTOCOMMIT)].concat(),
        [rows(1, 0, MORE_RESULTS), then_failed].concat(),
    ];
    let mut stage = Stage::logged_in(BUDGETED).await;
    for answer in answers {
        stage.asks("SELECT 1").await;
        assert_eq!(packet(&mut stage.server).await, query("SELECT 1"));
        let (last, before) = answer.split_last().unwrap();
        for byte in before {
            assert_eq!(there(&stage), 1, "{answer:?}");
            stage.server.write_all(&[*byte]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(there(&stage), 1, "{answer:?}");
        stage.server.write_all(&[*last]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(there(&stage), 0, "{answer:?}");
        let mut heard = Vec::new();
        while heard.len() < answer.len() {
            heard.extend(packet(&mut stage.client).await);
        }
        assert_eq!(heard, answer);
    }
}
