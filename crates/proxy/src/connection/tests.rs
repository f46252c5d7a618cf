//! One connection, from its first byte to its last, without a server and without waiting.

mod change_user;
mod drain;
mod moving;
mod pauses;
mod places;
mod script;
mod stalls;

use std::time::Duration;

use session::{Action, Side};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use self::script::*;
use super::serving::{Begun, serve};
use super::{Arrival, Ended, Fault, Shared};
use crate::board::Reachability;
use crate::cluster::TurnedAway;
use crate::registry::Control;
use crate::socket::{Peer, Socket};
use crate::workers::Affinity;

const OPEN: &str = "  - { name: all, gate: none, permanent: true }\n";
const HELD: &str =
    "  - { name: held, hold: true, max_delay: 2s, statements: [write], permanent: true }\n";
/// Nobody measures the lag, so its gate is shut.
const ADMITTING: &str = "  - { name: gated, max_delay: 2s, on_timeout: admit, permanent: true }\n";
const FINISHING: &str = "  - { name: all, gate: none, on_client_gone: finish, permanent: true }\n";
const INSERT: &str = "INSERT INTO t VALUES (1)";

/// Long enough for whatever is to happen at once: the clock stands still until all have done it.
const AT_ONCE: Duration = Duration::from_millis(50);

#[tokio::test(start_paused = true)]
async fn statements_that_nothing_holds_pass_and_are_answered() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.passes("SELECT 1", AUTOCOMMIT).await;
    stage.passes(INSERT, AUTOCOMMIT).await;
    stage.client.write_all(b"\x01\0\0\0\x01").await.unwrap();
    assert_eq!(rest(&mut stage.server).await, b"\x01\0\0\0\x01", "COM_QUIT");
    stage.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_greet_is_given_up_after_the_connect_timeout() {
    let mut stage = Stage::new(OPEN);
    let since = Instant::now();
    let told = rest(&mut stage.client).await;
    assert_eq!(since.elapsed().as_secs(), CONNECT_TIMEOUT.as_secs());
    assert_eq!((told[3], error(&told).0), (0, 1053));
    assert!(stage.has_counted("sluice_backend_errors_total"));
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_silent_in_its_login_is_told_to_leave_after_the_login_timeout() {
    let mut stage = Stage::new(OPEN);
    stage.server.write_all(&greeting()).await.unwrap();
    packet(&mut stage.client).await;
    let since = Instant::now();
    let told = rest(&mut stage.client).await;
    assert_eq!(since.elapsed().as_secs(), LOGIN_TIMEOUT.as_secs());
    assert_eq!(error(&told).0, 1043);
    stage.logs_nobody_in().await;
}

/// One that froze behind its greeting was said to have been heard whenever a client left its login.
#[tokio::test(start_paused = true)]
async fn a_primary_that_has_greeted_was_heard_then_and_not_when_the_login_ends() {
    let mut stage = Stage::new(OPEN);
    let heard = |stage: &Stage| stage.cluster.probes.reachability(stage.cluster.now());
    assert_eq!(heard(&stage), Reachability::Unknown);
    stage.server.write_all(&greeting()).await.unwrap();
    packet(&mut stage.client).await;
    assert!(matches!(heard(&stage), Reachability::Reached(ago) if ago < AT_ONCE));
    rest(&mut stage.client).await;
    tokio::time::sleep(AT_ONCE).await;
    assert_eq!(heard(&stage), Reachability::Unknown, "{LOGIN_TIMEOUT:?} ago");
    stage.logs_nobody_in().await;
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_waits_in_vain_is_refused_at_its_deadline_and_the_session_goes_on() {
    let mut stage = Stage::logged_in(HELD).await;
    let since = Instant::now();
    stage.asks(INSERT).await;
    let refused = packet(&mut stage.client).await;
    let waited = since.elapsed();
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_secs(3), "{waited:?}");
    let (errno, message) = error(&refused);
    assert!(errno == 1205 && message.contains("rule=held"), "{message}");
    stage.passes("SELECT 1", AUTOCOMMIT).await;
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_has_waited_long_enough_is_admitted_if_its_rule_says_so() {
    let mut stage = Stage::logged_in(ADMITTING).await;
    let since = Instant::now();
    stage.passes(INSERT, AUTOCOMMIT).await;
    assert_eq!(since.elapsed().as_secs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_statement_that_waits_runs_when_its_rule_is_lifted() {
    let mut stage = Stage::logged_in(HELD).await;
    let since = Instant::now();
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    stage.cluster.apply(policy(OPEN));
    stage.runs(INSERT, &ok(1, AUTOCOMMIT)).await;
    assert_eq!(packet(&mut stage.client).await, ok(1, AUTOCOMMIT));
    assert!(since.elapsed() < AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn kill_query_ends_the_wait_and_not_the_session() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    let kill = Control::KillQuery { sent: Instant::now() };
    assert!(stage.cluster.registry.tell(CONNECTION_ID, kill));
    assert_eq!(error(&packet(&mut stage.client).await).0, 1317);
    stage.until_waiting(0).await;
    stage.passes("SELECT 1", AUTOCOMMIT).await;
}

#[tokio::test(start_paused = true)]
async fn a_kill_query_that_was_sent_before_the_statement_came_does_not_end_its_wait() {
    let mut stage = Stage::logged_in(HELD).await;
    let before = Instant::now();
    tokio::time::advance(Duration::from_millis(10)).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    stage.cluster.registry.tell(CONNECTION_ID, Control::KillQuery { sent: before });
    assert_eq!(error(&packet(&mut stage.client).await).0, 1205, "its deadline ends it");
}

#[tokio::test(start_paused = true)]
async fn kill_ends_the_wait_and_the_session() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    stage.cluster.registry.tell(CONNECTION_ID, Control::Kill);
    assert_eq!(error(&rest(&mut stage.client).await).0, 1317);
    stage.ends_unasked().await;
}

/// The last words waited for room as long as the client read nothing: the connection stayed, and so did
/// its place in line.
#[tokio::test(start_paused = true)]
async fn kill_ends_the_wait_of_a_client_that_reads_nothing() {
    let parts = Parts::new(HELD);
    let unread = parts.connection.client.register_anew().unwrap();
    let mut stage = Stage::of(parts);
    log_in(&mut stage.client, &mut stage.server).await;
    while unread.try_write(&[0; 4096]).is_ok() {}
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    stage.cluster.registry.tell(CONNECTION_ID, Control::Kill);
    let ended = tokio::time::timeout(Duration::from_secs(10), stage.ends());
    ended.await.expect("it does not wait for its client");
}

/// Each had a line of the log, however many came.
#[tokio::test(start_paused = true)]
async fn of_clients_that_fail_before_their_login_a_few_have_lines() {
    let Parts { connection, .. } = Parts::new(OPEN);
    let Shared { cluster, telemetry } = connection.shared.clone();
    for _ in 0..20 {
        let parts = Parts::of(cluster.clone(), telemetry.clone());
        let Parts { mut client, mut server, mut connection, .. } = parts;
        client.write_all(b"no handshake of TLS").await.unwrap();
        server.write_all(b"no handshake of TLS").await.unwrap();
        let client = connection.start_tls(Side::Client, 0).await;
        assert_eq!(client, Err(Ended::ByClient));
        connection.start_tls(Side::Backend, 0).await.unwrap();
    }
    for _ in 0..20 {
        let parts = Parts::of(cluster.clone(), telemetry.clone());
        let Stage { mut client, mut server, .. } = Stage::of(parts);
        server.write_all(&greeting()).await.unwrap();
        tokio::spawn(async move { (rest(&mut client).await, server) });
    }
    tokio::time::sleep(LOGIN_TIMEOUT + AT_ONCE).await;
    let now = cluster.now();
    let TurnedAway { client_tls, backend_tls, silent, .. } = &cluster.turned_away;
    for told in [client_tls, backend_tls, silent] {
        assert_eq!(told.lock().again(now), None, "there is a line left");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_the_session_ends_the_wait() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.until_waiting(1).await;
    stage.server.shutdown().await.unwrap();
    let (errno, message) = error(&rest(&mut stage.client).await);
    assert!(errno == 4031 && message.contains("executed=no"), "{message}");
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_its_statement_waits_takes_the_statement_along() {
    let mut stage = Stage::logged_in(HELD).await;
    stage.asks(INSERT).await;
    stage.asks("SELECT 1").await;
    stage.until_waiting(1).await;
    let since = Instant::now();
    stage.client.shutdown().await.unwrap();
    stage.until_waiting(0).await;
    assert!(since.elapsed() < AT_ONCE);
    assert!(stage.has_counted("sluice_statements_total"));
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn the_server_sees_at_once_that_the_client_of_a_running_statement_has_left() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.asks("SELECT SLEEP(3600)").await;
    stage.runs("SELECT SLEEP(3600)", b"").await;
    let since = Instant::now();
    stage.client.shutdown().await.unwrap();
    assert_eq!(rest(&mut stage.server).await, b"");
    assert!(since.elapsed() < AT_ONCE);
    // It has closed its sending half only, and gets its answer.
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    stage.server.shutdown().await.unwrap();
    assert_eq!(rest(&mut stage.client).await, ok(1, AUTOCOMMIT));
    stage.ends().await;
}

#[tokio::test(start_paused = true)]
async fn commands_that_came_before_the_clients_end_are_sent_before_it() {
    let mut stage = Stage::logged_in(OPEN).await;
    stage.asks("SELECT SLEEP(1)").await;
    stage.runs("SELECT SLEEP(1)", b"").await;
    stage.asks("SELECT 2").await;
    stage.client.shutdown().await.unwrap();
    tokio::time::sleep(AT_ONCE).await;
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    stage.runs("SELECT 2", b"").await;
    assert_eq!(rest(&mut stage.server).await, b"", "now the client has left");
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    stage.server.shutdown().await.unwrap();
    assert_eq!(rest(&mut stage.client).await, [ok(1, AUTOCOMMIT), ok(1, AUTOCOMMIT)].concat());
    stage.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_running_statement_that_was_admitted_keeps_its_server_when_its_client_leaves() {
    outlives_its_client(ADMITTING).await;
}

#[tokio::test(start_paused = true)]
async fn a_running_statement_whose_rule_says_finish_keeps_its_server_when_its_client_leaves() {
    outlives_its_client(FINISHING).await;
}

async fn outlives_its_client(rules: &str) {
    let mut stage = Stage::logged_in(rules).await;
    stage.asks(INSERT).await;
    stage.runs(INSERT, b"").await;
    let Stage { client, .. } = &mut stage;
    let (nobody, _) = tokio::net::UnixStream::pair().unwrap();
    drop(std::mem::replace(client, nobody));
    let mut byte = [0];
    let hour = Duration::from_secs(3_600);
    let read = tokio::io::AsyncReadExt::read(&mut stage.server, &mut byte);
    assert!(tokio::time::timeout(hour, read).await.is_err(), "the server is told nothing");
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    stage.ends_unasked().await;
}

/// What is allocated on top of it, by the connection itself: an idle one is promised 10 KiB in all
/// (`integration/tests/wire/faults/idle.rs`), buffers and names included.
#[tokio::test]
async fn the_task_of_a_connection_has_room_for_little_but_the_connection() {
    let Parts { connection, counted, control, .. } = Parts::new(OPEN);
    let (_far, near) = tokio::net::UnixStream::pair().unwrap();
    let shared = connection.shared.clone();
    let client = Socket::Unix(near);
    let (registration, affinity) = (counted.0, Affinity::alone());
    let arrival = Arrival { shared, affinity, client, peer: Peer::Local, registration, control };
    let task = serve(Box::new(arrival), ());
    let (task, begun) = (size_of_val(&task), size_of::<Begun>());
    assert!(task <= TASK_LEN_MAX, "{task} bytes to read and write with");
    assert!(begun <= CONNECTION_LEN_MAX, "{begun} bytes of what is known");
}

/// In bytes. The future of what an idle connection waits for, and of what it may do next: what is
/// rare is boxed where it is done.
const TASK_LEN_MAX: usize = 1_024;

/// In bytes. Session, rules, permits and counters.
const CONNECTION_LEN_MAX: usize = 3_472;

#[tokio::test(start_paused = true)]
async fn a_rule_that_the_policy_does_not_have_ends_the_connection_and_nothing_passes() {
    let wrong = "  - { name: exempt, exempt: true, permanent: true, essential: true }\n";
    for (rules, fault) in [("  []\n", Fault::NoSuchRule), (wrong, Fault::RuleDoesNotAsk)] {
        let Parts { mut client, mut server, mut connection, deadlines, mut control, .. } =
            Parts::new(HELD);
        let (login, ()) = tokio::join!(
            connection.login(deadlines, &mut control),
            log_in(&mut client, &mut server)
        );
        login.unwrap();
        client.write_all(&query(INSERT)).await.unwrap();
        while connection.client.bytes().is_empty() {
            connection.step(&mut control).await.unwrap();
        }
        let Action::Ask(ask) = connection.next_action() else { panic!("it is asked for") };
        connection.policy = policy(rules);
        let unsettled = connection.ask(ask).unwrap();
        let ended = connection.settle(unsettled, &mut control).await.unwrap_err();
        assert_eq!(ended, Ended::BySluice(fault));
        let counted = connection.shared.telemetry.gather(&[]);
        assert!(counted.contains("sluice_internal_faults_total{cluster=\"a\"} 1"), "{counted}");
        drop(connection);
        assert_eq!(error(&rest(&mut client).await).0, 1053);
        assert_eq!(rest(&mut server).await, b"");
    }
}
