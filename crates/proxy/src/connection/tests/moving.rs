//! From thread to thread. These have a clock of their own, so here it is the real one.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use super::super::Shared;
use super::script::*;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::registry::Control;
use crate::socket::{Peer, Unregistered};
use crate::telemetry::{Telemetry, TelemetryConfig};
use crate::workers::{Accepted, Threads, Workers};

/// A session through threads of its own.
struct Moving {
    client: UnixStream,
    server: UnixStream,
    workers: std::sync::Arc<Workers>,
    shared: Shared,
    primary: std::path::PathBuf,
}

impl Drop for Moving {
    fn drop(&mut self) {
        std::fs::remove_file(&self.primary).ok();
    }
}

impl Moving {
    async fn logged_in() -> Self {
        let name = format!("sluice-moving-{}-{:x}", std::process::id(), rand::random::<u64>());
        let primary = std::env::temp_dir().join(name);
        let listener = UnixListener::bind(&primary).unwrap();
        let text = format!(
            "version: 1\nclusters: {{ a: {{ listen: \"127.0.0.1:1\", primary: \"unix:{}\" }} }}\n\
             rules:\n  - {{ name: all, gate: none, permanent: true }}\n",
            primary.display()
        );
        let policy = policy::load(&text).unwrap().clusters[0].clone();
        let cluster = Cluster::new(policy, Clock::start(), 7);
        let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
        let shared = Shared { cluster, telemetry };
        let workers = Workers::start(Threads { max: 3, full: 0 }).unwrap();
        let workers = std::sync::Arc::new(workers);
        let (near, accepted) = std::os::unix::net::UnixStream::pair().unwrap();
        for end in [&near, &accepted] {
            end.set_nonblocking(true).unwrap();
        }
        let (registration, control) = shared.cluster.registry.enter();
        let (socket, peer) = (Unregistered::Unix(accepted), Peer::Local);
        let accepted = Accepted { shared: shared.clone(), socket, peer, registration, control };
        assert!(workers.take(accepted).await);
        let mut client = UnixStream::from_std(near).unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        log_in(&mut client, &mut server).await;
        Self { client, server, workers, shared, primary }
    }

    async fn passes(&mut self, sql: &str) {
        self.client.write_all(&query(sql)).await.unwrap();
        self.is_answered(sql).await;
    }

    async fn is_answered(&mut self, sql: &str) {
        assert_eq!(packet(&mut self.server).await, query(sql));
        self.server.write_all(&ok(1, AUTOCOMMIT)).await.unwrap();
        assert_eq!(packet(&mut self.client).await, ok(1, AUTOCOMMIT));
    }

    /// How often connections have moved. A move is over when it is counted but for the thread that takes it.
    fn moves(&self) -> u64 {
        let text = self.shared.telemetry.gather(&[]);
        let line = text.lines().find_map(|line| line.strip_prefix("sluice_relay_moves_total "));
        line.unwrap().parse().unwrap()
    }

    async fn moved(&self, times: u64) {
        while self.moves() < times {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_session_goes_on_wherever_it_moves() {
    let mut moving = Moving::logged_in().await;
    for times in 0..300 {
        let from = usize::try_from(times % 3).unwrap();
        // A command that comes in the middle of a move is answered behind it. Who has just arrived has not
        // heard of what its thread was told before.
        while moving.moves() == times {
            moving.workers.move_all(from, (from + 1) % 3);
            moving.passes(&format!("SELECT {times}")).await;
        }
    }
    assert_eq!(moving.moves(), 300);
    moving.client.write_all(b"\x01\0\0\0\x01").await.unwrap();
    assert_eq!(rest(&mut moving.server).await, b"\x01\0\0\0\x01", "COM_QUIT");
    drop(moving.server.shutdown().await);
    assert_eq!(rest(&mut moving.client).await, b"");
}

#[tokio::test]
async fn commands_that_were_sent_ahead_are_answered_in_their_order_behind_a_move() {
    let mut moving = Moving::logged_in().await;
    moving.workers.move_all(0, 2);
    let ahead = [query("SELECT 1"), query("SELECT 2"), query("SELECT 3")].concat();
    moving.client.write_all(&ahead).await.unwrap();
    for sql in ["SELECT 1", "SELECT 2", "SELECT 3"] {
        moving.is_answered(sql).await;
    }
    moving.moved(1).await;
    moving.passes("SELECT 4").await;
}

#[tokio::test]
async fn who_is_told_to_leave_while_it_moves_leaves() {
    for _ in 0..50 {
        let mut moving = Moving::logged_in().await;
        moving.workers.move_all(0, 1);
        moving.passes("SELECT 1").await;
        assert!(moving.shared.cluster.registry.tell(CONNECTION_ID, Control::Close));
        assert_eq!(error(&packet(&mut moving.client).await).0, 1053);
        assert_eq!(rest(&mut moving.client).await, b"");
    }
}

#[tokio::test]
async fn sessions_end_with_the_threads_wherever_they_have_moved() {
    let mut moving = Moving::logged_in().await;
    moving.workers.move_all(0, 1);
    moving.passes("SELECT 1").await;
    moving.moved(1).await;
    moving.passes("SELECT 2").await;
    let none = Workers::start(Threads::up_to(1)).unwrap();
    moving.workers = std::sync::Arc::new(none);
    assert_eq!(rest(&mut moving.client).await, b"");
    assert_eq!(rest(&mut moving.server).await, b"");
}

#[tokio::test]
async fn a_long_answer_goes_on_wherever_its_session_moves() {
    let mut moving = Moving::logged_in().await;
    moving.client.write_all(&query("SELECT n FROM t")).await.unwrap();
    assert_eq!(packet(&mut moving.server).await, query("SELECT n FROM t"));
    let column = b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x0b\0\0\0\x03\0\0\0\0\0";
    let mut next = [frame(1, b"\x01"), frame(2, column)].concat();
    let (mut sequence, mut rows) = (3_u8, 0);
    while moving.moves() < 100 {
        assert!(rows < 10_000, "it does not move");
        moving.workers.move_all(rows % 3, (rows + 1) % 3);
        rows += 1;
        let row = frame(sequence, b"\x011");
        moving.server.write_all(&[next, row].concat()).await.unwrap();
        next = Vec::new();
        while packet(&mut moving.client).await[3] != sequence {}
        sequence = sequence.wrapping_add(1);
    }
    let end = frame(sequence, b"\xfe\0\0\x02\0\0\0");
    moving.server.write_all(&end).await.unwrap();
    assert_eq!(packet(&mut moving.client).await, end);
    moving.passes("SELECT 2").await;
}

/// There is always the beginning of the next command, so its client is never quiet.
#[tokio::test]
async fn a_session_whose_client_sends_ahead_all_the_time_moves() {
    let mut moving = Moving::logged_in().await;
    let command = query("SELECT 1");
    let (head, tail) = command.split_at(6);
    moving.client.write_all(head).await.unwrap();
    let mut statements = 0;
    while moving.moves() < 100 {
        assert!(statements < 10_000, "it does not move");
        moving.workers.move_all(statements % 3, (statements + 1) % 3);
        statements += 1;
        moving.client.write_all(&[tail, head].concat()).await.unwrap();
        moving.is_answered("SELECT 1").await;
    }
    moving.client.write_all(tail).await.unwrap();
    moving.is_answered("SELECT 1").await;
}
