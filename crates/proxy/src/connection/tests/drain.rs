//! A drain, and a takeover, as one session sees them.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::script::*;
use super::{ADMITTING, AT_ONCE, HELD, INSERT, OPEN};
use crate::registry::Control;

/// What `SIGTERM` does to the sessions.
fn shut_down(stage: &Stage) {
    stage.cluster.registry.drain();
    stage.cluster.control(|controller, now| controller.shutdown(now));
    stage.cluster.registry.refuse_waiters();
}

/// What a takeover does to the sessions of the old process.
fn taken_over(stage: &Stage) {
    stage.cluster.registry.drain();
}

/// The refusal of a drain: the rule's error, and nothing of it has run.
fn is_refused(packet: &[u8]) {
    let (errno, message) = error(packet);
    assert_eq!(errno, 1205, "{message}");
    assert!(message.contains(" rule=held ") && message.contains(" reason=shutdown "), "{message}");
    assert!(message.ends_with("executed=no]"), "{message}");
}

/// The end of a session whose client may have something on its way, and nothing behind it.
fn is_told_of_the_end(rest: &[u8]) {
    let (errno, message) = error(rest);
    assert!(errno == 1053 && message.ends_with("shutdown in progress [executed=no]"), "{message}");
    assert_eq!(rest.len(), 4 + usize::from(rest[0]));
}

#[tokio::test(start_paused = true)]
async fn an_idle_session_stays_for_its_grace_only_and_is_closed_without_a_word() {
    let mut stage = Stage::logged_in(OPEN).await;
    let since = Instant::now();
    shut_down(&stage);
    assert_eq!(rest(&mut stage.client).await, b"");
    assert!(since.elapsed() <= Duration::from_millis(1_100), "{:?}", since.elapsed());
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_of_a_pool_is_closed_without_a_word_when_it_is_quiet() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.passes("SELECT 1", AUTOCOMMIT).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let since = Instant::now();
    shut_down(&stage);
    tokio::time::sleep(AT_ONCE).await;
    // Somebody has just borrowed it.
    for _ in 0..3 {
        stage.passes(INSERT, AUTOCOMMIT).await;
        tokio::time::sleep(AT_ONCE).await;
    }
    assert_eq!(rest(&mut stage.client).await, b"");
    assert!(since.elapsed() <= Duration::from_millis(310), "{:?}", since.elapsed());
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_never_quiet_is_told_that_its_next_statement_has_not_run() {
    let mut stage = Stage::logged_in(OPEN).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let since = Instant::now();
    shut_down(&stage);
    while since.elapsed() < Duration::from_millis(990) {
        stage.passes("SELECT 1", AUTOCOMMIT).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    is_told_of_the_end(&rest(&mut stage.client).await);
    assert!(since.elapsed() <= Duration::from_millis(1_100), "{:?}", since.elapsed());
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_has_come_by_the_moment_of_the_quiet_end_is_run_and_answered() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.passes("SELECT 1", AUTOCOMMIT).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    shut_down(&stage);
    tokio::time::sleep(Duration::from_millis(100)).await;
    // The session's time is over in this very moment, and the runtime has looked for events
    // already.
    assert_eq!(stage.client.try_write(&query(INSERT)).unwrap(), query(INSERT).len());
    stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    assert_eq!(rest(&mut stage.client).await, b"");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_client_sends_behind_its_last_answer_does_not_reset_its_connection() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.passes("BEGIN", IN_TRANSACTION).await;
    shut_down(&stage);
    stage.cluster.registry.tell_all(Control::Close);
    tokio::time::sleep(AT_ONCE).await;
    stage.asks(INSERT).await;
    is_told_of_the_end(&rest(&mut stage.client).await);
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_transaction_may_end_and_so_may_what_has_locked_tables() {
    for (begins, ends, status) in
        [("BEGIN", "COMMIT", IN_TRANSACTION), ("LOCK TABLES t WRITE", "UNLOCK TABLES", AUTOCOMMIT)]
    {
        let mut stage = Stage::logged_in(OPEN).await;
        stage.passes(begins, status).await;
        shut_down(&stage);
        tokio::time::sleep(Duration::from_secs(20)).await;
        stage.passes(INSERT, status).await;
        stage.passes(ends, AUTOCOMMIT).await;
        stage.ends_unasked().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_waits_is_refused_once_and_the_session_goes_on_for_a_moment() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    shut_down(&stage);
    is_refused(&packet(&mut stage.client).await);
    let since = Instant::now();
    stage.passes("SELECT 1", AUTOCOMMIT).await;
    // To try again is in vain, and answered at once.
    stage.asks(INSERT).await;
    is_refused(&packet(&mut stage.client).await);
    is_told_of_the_end(&rest(&mut stage.client).await);
    assert_eq!(since.elapsed().as_secs(), 1);
    let refused = "sluice_statements_total{app=\"app\",class=\"write\",cluster=\"a\",\
                   decision=\"rejected\",mode=\"enforce\",reason=\"shutdown\",rule=\"held\"} 2";
    assert!(stage.has_counted(refused), "{}", stage.telemetry.gather(&[]));
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_statement_does_not_end_the_transaction_it_was_to_be_the_first_of() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.passes("BEGIN", IN_TRANSACTION).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    shut_down(&stage);
    is_refused(&packet(&mut stage.client).await);
    tokio::time::sleep(Duration::from_secs(20)).await;
    stage.passes("SELECT 1", IN_TRANSACTION).await;
    stage.passes("COMMIT", AUTOCOMMIT).await;
    is_told_of_the_end(&rest(&mut stage.client).await);
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_behind_a_statement_that_is_refused_has_its_turn() {
    let mut stage = Stage::logged_in(HELD).await;
    let behind = [query(INSERT), query("SELECT 1"), query(INSERT)].concat();
    stage.client.write_all(&behind).await.unwrap();
    stage.until_waiting(1).await;
    shut_down(&stage);
    is_refused(&packet(&mut stage.client).await);
    stage.runs("SELECT 1", &ok(1, AUTOCOMMIT)).await;
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    is_refused(&packet(&mut stage.client).await);
    stage.client.write_all(b"\x01\0\0\0\x01").await.unwrap();
    assert_eq!(rest(&mut stage.server).await, b"\x01\0\0\0\x01", "COM_QUIT");
    stage.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_runs_is_answered_and_the_session_ends_behind_it() {
    let mut stage = Stage::logged_in(OPEN).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    stage.asks("SELECT SLEEP(20)").await;
    stage.runs("SELECT SLEEP(20)", b"").await;
    shut_down(&stage);
    tokio::time::sleep(Duration::from_secs(20)).await;
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    assert_eq!(rest(&mut stage.client).await, b"");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn when_the_time_of_a_drain_is_over_a_running_statement_is_told_so() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.asks("SELECT SLEEP(3600)").await;
    stage.runs("SELECT SLEEP(3600)", b"").await;
    stage.cluster.registry.tell_all(Control::Close);
    let (errno, message) = error(&rest(&mut stage.client).await);
    assert!(errno == 1053 && message.ends_with("[executed=unknown]"), "{message}");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn when_the_time_of_a_drain_is_over_an_open_transaction_is_told_that_it_is_idle() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.passes("BEGIN", IN_TRANSACTION).await;
    shut_down(&stage);
    stage.cluster.registry.tell_all(Control::Close);
    is_told_of_the_end(&rest(&mut stage.client).await);
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_takeover_lets_a_statement_wait_until_its_deadline() {
    let mut stage = Stage::logged_in(HELD).await;
    let since = Instant::now();
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    taken_over(&stage);
    let (errno, message) = error(&packet(&mut stage.client).await);
    assert!(errno == 1205 && message.contains(" reason=hold "), "{message}");
    assert!(message.contains(" retry_after_ms=60000 "), "the rule has no end: {message}");
    assert_eq!(since.elapsed().as_secs(), 2);
    assert_eq!(rest(&mut stage.client).await, b"");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_takeover_lets_a_statement_run_when_its_turn_comes_and_ends_the_session_then() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    taken_over(&stage);
    tokio::time::sleep(Duration::from_secs(1)).await;
    stage.cluster.apply(policy(OPEN));
    stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    assert_eq!(rest(&mut stage.client).await, b"");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn who_is_to_be_admitted_at_its_deadline_is_after_a_takeover_and_refused_by_a_shutdown() {
    let mut stage = Stage::logged_in(ADMITTING).await;
    let since = Instant::now();
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    taken_over(&stage);
    stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
    assert_eq!(since.elapsed().as_secs(), 2);
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    stage.ends_unasked().await;

    let mut stage = Stage::logged_in(ADMITTING).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    taken_over(&stage);
    shut_down(&stage);
    let (errno, message) = error(&packet(&mut stage.client).await);
    assert!(errno == 1205 && message.contains(" reason=shutdown "), "{message}");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn when_the_time_of_a_takeover_is_over_who_waits_is_refused_and_its_session_ends() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    taken_over(&stage);
    // Without the controller: it is told of the end first.
    stage.cluster.registry.tell_all(Control::Close);
    let told = rest(&mut stage.client).await;
    is_refused(&told);
    assert_eq!(told.len(), 4 + usize::from(told[0]), "and nothing behind it");
    assert!(stage.has_counted("sluice_statements_total"));
    stage.until_waiting(0).await;
    stage.ends_unasked().await;
}
