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
    (Shared { cluster, telemetry, worker: 0 }, primary)
}

async fn take(workers: &Workers, shared: &Shared) -> UnixStream {
    let (client, accepted) = UnixStream::pair().unwrap();
    accepted.set_nonblocking(true).unwrap();
    let (registration, control) = shared.cluster.registry.enter();
    let shared = shared.clone();
    let (socket, peer) = (Unregistered::Unix(accepted), Peer::Local);
    let accepted = Accepted { shared, socket, peer, registration, control };
    assert!(workers.take(accepted).await);
    client
}

fn loads(workers: &Workers) -> Vec<usize> {
    let load = |worker: &Worker| worker.connections.load(Ordering::Relaxed);
    workers.workers.iter().map(load).collect()
}

#[tokio::test]
async fn clients_go_where_fewest_are_and_are_forgotten_when_they_leave() {
    let workers = Workers::start(2).unwrap();
    let (shared, _primary) = context();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(take(&workers, &shared).await);
    }
    assert_eq!(loads(&workers), [2, 2]);
    drop(clients);
    // Their threads have a clock of their own.
    while loads(&workers) != [0, 0] || !shared.cluster.registry.is_empty() {
        tokio::task::yield_now().await;
    }
    let _next = take(&workers, &shared).await;
    assert_eq!(loads(&workers).iter().sum::<usize>(), 1);
}

#[tokio::test]
async fn there_is_one_worker_at_least() {
    assert_eq!(loads(&Workers::start(0).unwrap()), [0]);
}
