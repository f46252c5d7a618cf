use std::os::unix::net::UnixStream;

use super::*;
use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::telemetry::{Telemetry, TelemetryConfig};

/// Clients of a primary that accepts and says nothing: they stay until they leave.
fn context() -> (Shared, std::net::TcpListener) {
    let primary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = primary.local_addr().unwrap();
    let text = format!(
        "version: 1\nclusters: {{ a: {{ listen: 127.0.0.1:1, primary: \"{address}\", \
         connect_timeout: 1s }} }}\n\
         rules: []\n"
    );
    let policy = policy::load(&text).unwrap().clusters[0].clone();
    let cluster = Cluster::new(policy, Clock::start(), 7);
    let telemetry = Telemetry::new(TelemetryConfig { max_apps: 10 });
    (Shared { cluster, telemetry }, primary)
}

async fn take(workers: &Arc<Workers>, shared: &Shared) -> UnixStream {
    let (client, accepted) = UnixStream::pair().unwrap();
    accepted.set_nonblocking(true).unwrap();
    let (registration, control) = shared.cluster.registry.enter();
    let shared = shared.clone();
    let (socket, peer) = (Unregistered::Unix(accepted), Peer::Local);
    let accepted = Accepted { shared, socket, peer, registration, control };
    assert!(workers.take(accepted).await);
    client
}

fn started(max: usize, full: u8) -> Arc<Workers> {
    Arc::new(Workers::start(Threads { max, full }).unwrap())
}

fn connections(workers: &Workers) -> Vec<usize> {
    workers.loads().map(|load| load.connections()).collect()
}

#[tokio::test]
async fn clients_go_where_fewest_are_and_are_forgotten_when_they_leave() {
    let workers = started(2, 0);
    let (shared, _primary) = context();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(take(&workers, &shared).await);
    }
    assert_eq!(connections(&workers), [2, 2]);
    drop(clients);
    // Their threads have a clock of their own.
    while connections(&workers) != [0, 0] || !shared.cluster.registry.is_empty() {
        tokio::task::yield_now().await;
    }
    let _next = take(&workers, &shared).await;
    assert_eq!(connections(&workers).iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn clients_go_to_one_thread_as_long_as_it_has_little_to_do() {
    let workers = started(2, 60);
    let (shared, _primary) = context();
    let telemetry = shared.telemetry.clone();
    let spreading = tokio::spawn(spread(Arc::downgrade(&workers), telemetry.clone()));
    let _clients = (take(&workers, &shared).await, take(&workers, &shared).await);
    assert_eq!(connections(&workers), [2, 0]);
    let said = || telemetry.gather(&[]);
    while !said().contains("sluice_relay_busy_ratio{thread=\"1\"} 0\n") {
        tokio::time::sleep(LOOK / 10).await;
    }
    assert!(said().contains("sluice_relay_threads 1\n"));
    drop(workers);
    spreading.await.unwrap();
}

#[tokio::test]
async fn clients_that_come_all_at_once_log_in_on_every_thread_and_count_as_nobody_when_they_leave()
{
    let workers = started(3, 60);
    let (shared, _primary) = context();
    let mut clients = Vec::new();
    for _ in 0..ARRIVING_MAX {
        clients.push(take(&workers, &shared).await);
    }
    assert_eq!(connections(&workers), [ARRIVING_MAX, 0, 0], "one thread is enough");
    for _ in 0..2 * ARRIVING_MAX + 3 {
        clients.push(take(&workers, &shared).await);
    }
    assert_eq!(connections(&workers), [ARRIVING_MAX + 1; 3]);
    drop(clients);
    while connections(&workers) != [0; 3] || workers.loads().any(|load| load.arriving() > 0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn there_is_one_worker_at_least() {
    assert_eq!(connections(&started(0, 60)), [0]);
}

#[tokio::test]
async fn who_relays_something_once_in_a_while_leaves_a_thread_that_is_not_used_any_more() {
    let workers = started(3, 60);
    for _ in 0..3 {
        workers.tell(&[], 2, &(1..2));
    }
    let said: Vec<_> = workers.loads().map(|load| load.report()).collect();
    assert_eq!(said, [None, None, Some(1)]);
}
