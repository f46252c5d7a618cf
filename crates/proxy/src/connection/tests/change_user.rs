//! COM_CHANGE_USER: a login in the middle of a session, and what becomes of it when nobody goes on.

use session::{ClientInfo, Leg, Session};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::super::serving::Begun;
use super::script::*;
use super::{ADMITTING, AT_ONCE, INSERT, OPEN};

/// To `other`, with what a plugin says first.
fn change(plugin: &str, says: &[u8]) -> Vec<u8> {
    let len = u8::try_from(says.len()).unwrap();
    let plugin = [plugin.as_bytes(), b"\0"].concat();
    frame(0, &[&b"\x11other\0"[..], &[len], says, b"\0", &[255, 0], &plugin].concat())
}

/// The server wants to hear this plugin.
fn switch(plugin: &str) -> Vec<u8> {
    let plugin = plugin.as_bytes();
    frame(1, &[&b"\xfe"[..], plugin, b"\0saltsaltsaltsaltsalt\0"].concat())
}

const NATIVE: &str = "mysql_native_password";

/// A session whose client has been asked for its password, and has not answered.
async fn asked(rules: &str) -> Stage {
    let mut stage = Stage::logged_in(rules).await;
    stage.client.write_all(&change(NATIVE, b"")).await.unwrap();
    assert_eq!(packet(&mut stage.server).await, change(NATIVE, b""));
    stage.server.write_all(&switch(NATIVE)).await.unwrap();
    assert_eq!(packet(&mut stage.client).await, switch(NATIVE));
    stage
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_silent_then_is_told_to_leave_after_the_login_timeout() {
    let mut stage = asked(OPEN).await;
    let since = Instant::now();
    let told = rest(&mut stage.client).await;
    assert_eq!(since.elapsed().as_secs(), LOGIN_TIMEOUT.as_secs());
    assert_eq!((error(&told).0, told[3]), (1043, 3));
    assert!(stage.has_counted("sluice_connections_refused_total"));
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_sends_a_command_in_place_of_its_answer_is_told_so_too() {
    let mut stage = asked(OPEN).await;
    stage.asks("SELECT 1").await;
    assert_eq!(error(&rest(&mut stage.client).await).0, 1043);
    stage.ends_unasked().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_may_take_its_time_and_the_session_goes_on_as_somebody_else() {
    let mut stage = asked(OPEN).await;
    stage.client.write_all(&frame(2, b"")).await.unwrap();
    assert_eq!(packet(&mut stage.server).await, frame(2, b""));
    // It asks a directory.
    tokio::time::sleep(LOGIN_TIMEOUT * 10).await;
    stage.server.write_all(&ok(3, AUTOCOMMIT)).await.unwrap();
    assert_eq!(packet(&mut stage.client).await, ok(3, AUTOCOMMIT));
    tokio::time::sleep(LOGIN_TIMEOUT * 10).await;
    stage.passes("SELECT 1", AUTOCOMMIT).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_send_its_key_is_given_up_after_the_connect_timeout() {
    let Parts { mut client, mut server, mut connection, deadlines, counted, control } =
        Parts::new(OPEN);
    // Others can listen to the server's leg, and not to the client's.
    connection.session = Session::new(ClientInfo { address: None, leg: Leg::Unix }, Leg::Network);
    let task = tokio::spawn(async move {
        Begun::log_in(connection, deadlines, counted, control).await.run().await;
    });
    log_in(&mut client, &mut server).await;
    client.write_all(&change("sha256_password", b"secret\0")).await.unwrap();
    packet(&mut server).await;
    server.write_all(&switch("sha256_password")).await.unwrap();
    assert_eq!(packet(&mut server).await, frame(2, b"\x01"), "Sluice asks for the key");
    let since = Instant::now();
    let told = rest(&mut client).await;
    assert_eq!(since.elapsed().as_secs(), CONNECT_TIMEOUT.as_secs());
    let (errno, message) = error(&told);
    assert!(errno == 1053 && message.contains("did not send its key"), "{message}");
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_server_sees_at_once_that_a_client_leaves_whatever_it_has_sent_ahead() {
    for unread in [vec![], query("SELECT 1"), [query("SELECT 1"), query(INSERT)].concat()] {
        let mut stage = asked(OPEN).await;
        stage.client.write_all(&unread).await.unwrap();
        tokio::time::sleep(AT_ONCE).await;
        leaves(&mut stage).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_admission_does_not_keep_the_server_of_who_leaves_during_a_change_of_user() {
    let mut stage = Stage::logged_in(ADMITTING).await;
    stage.passes("BEGIN", IN_TRANSACTION).await;
    stage.passes(INSERT, IN_TRANSACTION).await;
    stage.client.write_all(&change(NATIVE, b"")).await.unwrap();
    packet(&mut stage.server).await;
    stage.server.write_all(&switch(NATIVE)).await.unwrap();
    packet(&mut stage.client).await;
    stage.asks("SELECT 1").await;
    tokio::time::sleep(AT_ONCE).await;
    leaves(&mut stage).await;
}

/// The client leaves, and the server sees it at once.
async fn leaves(stage: &mut Stage) {
    let (nobody, _) = UnixStream::pair().unwrap();
    let since = Instant::now();
    drop(std::mem::replace(&mut stage.client, nobody));
    assert_eq!(rest(&mut stage.server).await, b"");
    assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn commands_behind_an_exchange_that_wants_nothing_more_have_their_turn() {
    let mut stage = Stage::logged_in(OPEN).await;
    let ahead = [change(NATIVE, b""), query("SELECT 1")].concat();
    stage.client.write_all(&ahead).await.unwrap();
    stage.client.shutdown().await.unwrap();
    packet(&mut stage.server).await;
    tokio::time::sleep(AT_ONCE).await;
    stage.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
    stage.runs("SELECT 1", &ok(1, AUTOCOMMIT)).await;
    stage.server.shutdown().await.unwrap();
    assert_eq!(rest(&mut stage.client).await, [ok(1, AUTOCOMMIT), ok(1, AUTOCOMMIT)].concat());
}
