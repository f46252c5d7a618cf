//! `speed` of a rule: when a session is paused, for how long, and what ends a pause.

use std::time::Duration;

use tokio::time::Instant;

use super::script::*;
use super::{AT_ONCE, INSERT, OPEN};
use crate::registry::Control;

const HALF: &str = "  - { name: half, speed: 0.5, gate: none, max_delay: 5s, permanent: true }\n";
const WORK: Duration = Duration::from_millis(400);

/// A statement that takes the server so long.
async fn takes(stage: &mut Stage, sql: &str, work: Duration, status: u16) {
    stage.asks(sql).await;
    assert_eq!(packet(&mut stage.server).await, query(sql));
    tokio::time::sleep(work).await;
    answers(stage, status).await;
}

async fn answers(stage: &mut Stage, status: u16) {
    use tokio::io::AsyncWriteExt;
    stage.server.write_all(&ok(1, status)).await.unwrap();
    assert_eq!(packet(&mut stage.client).await, ok(1, status));
}

/// How long it lasts until the server has the statement.
async fn paused_before(stage: &mut Stage, sql: &str) -> Duration {
    let since = Instant::now();
    stage.asks(sql).await;
    assert_eq!(packet(&mut stage.server).await, query(sql));
    let paused = since.elapsed();
    answers(stage, AUTOCOMMIT).await;
    paused
}

#[track_caller]
fn assert_about(waited: Duration, expected: Duration) {
    assert!(waited.abs_diff(expected) < AT_ONCE, "{waited:?} is not {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn what_took_the_server_some_time_is_followed_by_a_pause_before_the_next_admission() {
    let mut stage = Stage::logged_in(HALF).await;
    let since = Instant::now();
    takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
    assert_about(since.elapsed(), WORK);
    assert_about(paused_before(&mut stage, "SELECT 1").await, Duration::ZERO);
    assert_about(paused_before(&mut stage, INSERT).await, WORK);
    assert!(counts(&stage, "reason=\"paced\""), "{}", stage.telemetry.gather(&[]));
}

#[tokio::test(start_paused = true)]
async fn whoever_does_something_else_meanwhile_has_paid_by_that() {
    let mut stage = Stage::logged_in(HALF).await;
    takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
    tokio::time::sleep(WORK / 4).await;
    assert_about(paused_before(&mut stage, INSERT).await, WORK * 3 / 4);
    takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
    tokio::time::sleep(WORK).await;
    assert_about(paused_before(&mut stage, INSERT).await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn reads_of_the_rule_count_and_pay_nothing() {
    let mut stage = Stage::logged_in(HALF).await;
    takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
    takes(&mut stage, "SELECT 1", WORK, AUTOCOMMIT).await;
    assert_about(paused_before(&mut stage, INSERT).await, WORK * 2);
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_paused_behind_its_end_for_all_that_it_took() {
    let mut stage = Stage::logged_in(HALF).await;
    stage.passes("BEGIN", IN_TRANSACTION).await;
    let since = Instant::now();
    for _ in 0..3 {
        takes(&mut stage, INSERT, WORK, IN_TRANSACTION).await;
    }
    takes(&mut stage, "COMMIT", WORK, AUTOCOMMIT).await;
    assert_about(since.elapsed(), WORK * 4);
    assert_about(paused_before(&mut stage, INSERT).await, WORK * 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_that_a_transaction_took_is_paid_for_before_its_end() {
    let mut stage = Stage::logged_in(HALF).await;
    // Reads of it, in front of its first write.
    stage.passes("BEGIN", IN_TRANSACTION).await;
    let since = Instant::now();
    takes(&mut stage, "SELECT 1", WORK, IN_TRANSACTION).await;
    takes(&mut stage, INSERT, WORK, IN_TRANSACTION).await;
    takes(&mut stage, "COMMIT", WORK, AUTOCOMMIT).await;
    assert_about(since.elapsed(), WORK * 3);
    assert_about(paused_before(&mut stage, INSERT).await, WORK * 3);
    // A text of several statements leaves one open, and the next text is asked for again.
    let both = format!("BEGIN; {INSERT}");
    takes(&mut stage, &both, WORK, IN_TRANSACTION).await;
    assert_about(paused_before(&mut stage, &format!("COMMIT; {INSERT}")).await, Duration::ZERO);
    assert_about(paused_before(&mut stage, INSERT).await, WORK);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_never_longer_than_max_delay_and_never_an_error() {
    let rules = "  - { name: tenth, speed: 0.1, gate: none, max_delay: 2s, permanent: true }\n";
    let mut stage = Stage::logged_in(rules).await;
    takes(&mut stage, INSERT, Duration::from_secs(60), AUTOCOMMIT).await;
    assert_about(paused_before(&mut stage, INSERT).await, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn timers_that_are_too_coarse_make_nobody_slower() {
    let rules = "  - { name: slow, speed: 0.3, gate: none, permanent: true }\n";
    let mut stage = Stage::logged_in(rules).await;
    let work = Duration::from_millis(1);
    let since = Instant::now();
    for _ in 0..100 {
        takes(&mut stage, INSERT, work, AUTOCOMMIT).await;
    }
    let worked = 100.0 * work.as_secs_f64();
    let speed = worked / since.elapsed().as_secs_f64();
    assert!((speed - 0.3).abs() < 0.01, "{speed}");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_max_delay_is_the_bound_of_a_pause_from_then_on() {
    let rules = |max: &str| {
        format!("  - {{ name: r, speed: 0.5, gate: none, max_delay: {max}, permanent: true }}\n")
    };
    let mut stage = Stage::logged_in(&rules("60s")).await;
    takes(&mut stage, INSERT, Duration::from_secs(50), AUTOCOMMIT).await;
    stage.cluster.apply(policy(&rules("2s")));
    assert_about(paused_before(&mut stage, INSERT).await, Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_in_the_queue_begins_behind_the_pause() {
    // Nobody measures the lag, so the gate is shut, and the deadline admits.
    let rules =
        "  - { name: gated, speed: 0.5, max_delay: 2s, on_timeout: admit, permanent: true }\n";
    let mut stage = Stage::logged_in(rules).await;
    let since = Instant::now();
    takes(&mut stage, INSERT, Duration::from_secs(9), AUTOCOMMIT).await;
    assert_about(since.elapsed(), Duration::from_secs(11));
    assert_about(paused_before(&mut stage, INSERT).await, Duration::from_secs(4));
    assert!(counts(&stage, "reason=\"timeout\""));
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_lifted_or_edited_pauses_nobody_any_more() {
    let faster = HALF.replace("0.5", "0.9");
    for rules in [OPEN, &faster] {
        let mut stage = Stage::logged_in(HALF).await;
        takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
        let since = Instant::now();
        stage.asks(INSERT).await;
        tokio::time::sleep(WORK / 2).await;
        stage.cluster.apply(policy(rules));
        stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
        assert_about(since.elapsed(), WORK / 2);
    }
    // An edit of something else changes nothing.
    let mut stage = Stage::logged_in(HALF).await;
    takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
    let since = Instant::now();
    stage.asks(INSERT).await;
    tokio::time::sleep(WORK / 2).await;
    stage.cluster.apply(policy(&format!("{HALF}{OPEN}")));
    stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
    assert_about(since.elapsed(), WORK);
}

#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_a_kill_a_drain_and_the_client() {
    let paused = async || {
        let mut stage = Stage::logged_in(HALF).await;
        takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
        stage.asks(INSERT).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        stage
    };
    let mut stage = paused().await;
    let since = Instant::now();
    let kill = Control::KillQuery { sent: Instant::now() };
    assert!(stage.cluster.registry.tell(CONNECTION_ID, kill));
    assert_eq!(error(&packet(&mut stage.client).await).0, 1317);
    assert_about(since.elapsed(), Duration::ZERO);
    stage.passes("SELECT 1", AUTOCOMMIT).await;

    let mut stage = paused().await;
    let since = Instant::now();
    stage.cluster.control(|controller, now| controller.shutdown(now));
    stage.cluster.registry.tell(CONNECTION_ID, Control::Refuse);
    let (_, message) = error(&packet(&mut stage.client).await);
    assert!(message.contains("[sluice"), "{message}");
    assert_about(since.elapsed(), Duration::ZERO);
    assert!(counts(&stage, "reason=\"shutdown\""));

    // A takeover lets it wait on.
    let mut stage = paused().await;
    stage.cluster.registry.drain();
    stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));

    let mut stage = paused().await;
    let since = Instant::now();
    stage.client = tokio::net::UnixStream::pair().unwrap().0;
    stage.ends_unasked().await;
    assert_about(since.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn who_takes_turns_between_two_slow_rules_owes_to_both() {
    let rules = "  - { name: a, match: { app: a }, speed: 0.5, gate: none, permanent: true }\n  \
                 - { name: b, match: { app: b }, speed: 0.5, gate: none, permanent: true }\n";
    let mut stage = Stage::logged_in(rules).await;
    takes(&mut stage, "DELETE /*app='a'*/ FROM t", WORK, AUTOCOMMIT).await;
    assert_about(paused_before(&mut stage, "DELETE /*app='b'*/ FROM t").await, WORK);
    takes(&mut stage, "DELETE /*app='a'*/ FROM t", WORK, AUTOCOMMIT).await;
    assert_about(paused_before(&mut stage, "DELETE FROM t").await, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn in_observe_a_pause_is_counted_and_not_made() {
    let rules = HALF.replace("gate: none", "gate: none, mode: observe");
    let mut stage = Stage::logged_in(&rules).await;
    takes(&mut stage, INSERT, WORK, AUTOCOMMIT).await;
    assert_about(paused_before(&mut stage, INSERT).await, Duration::ZERO);
    assert!(counts(&stage, "reason=\"paced\"") && counts(&stage, "mode=\"observe\""));
}

/// Whether a statement was counted with this label.
fn counts(stage: &Stage, label: &str) -> bool {
    let text = stage.telemetry.gather(&[]);
    text.lines().any(|line| line.starts_with("sluice_statements_total{") && line.contains(label))
}
