//! The running proxy: clusters, their listeners, and the way it stops.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use policy::{ClusterPolicy, Config};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::connection::Shared;
use crate::registry::Control;
use crate::socket::{Peer, Unregistered};
use crate::telemetry::Telemetry;
use crate::workers::{Accepted, Workers};

/// Connections the kernel completes before they are accepted.
const LISTEN_BACKLOG: i32 = 4096;

/// After an accept that failed (no file descriptors left): time for some to come back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How often a drain looks whether everybody has left.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// What sessions that were told to close get for writing their last error.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// The proxy while it runs.
#[derive(Debug)]
pub struct Server {
    clusters: Vec<Arc<Cluster>>,
    addresses: Vec<SocketAddr>,
    /// The relaying threads end, and every connection with them, when the last handle goes.
    workers: Arc<Workers>,
    listeners: Vec<JoinHandle<()>>,
    drivers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds every listener and starts relaying. Call it on the runtime that is to run the clusters' timers.
    ///
    /// # Errors
    /// A listener that cannot be bound, with its address; a thread that cannot be started.
    pub fn start(config: &Config, telemetry: &Arc<Telemetry>, workers: usize) -> io::Result<Self> {
        let clock = Clock::start();
        let workers = Arc::new(Workers::start(workers)?);
        let mut server = Self {
            clusters: Vec::new(),
            addresses: Vec::new(),
            workers: workers.clone(),
            listeners: Vec::new(),
            drivers: Vec::new(),
        };
        for policy in &config.clusters {
            let cluster = Cluster::new(policy.clone(), clock, rand::random());
            let listener = listen(policy)?;
            server.addresses.push(listener.local_addr()?);
            let shared = Shared { cluster: cluster.clone(), telemetry: telemetry.clone() };
            server.listeners.push(tokio::spawn(accept(listener, shared, workers.clone())));
            server.drivers.push(tokio::spawn(cluster.clone().drive()));
            server.clusters.push(cluster);
        }
        Ok(server)
    }

    /// The clusters, in the order of the file.
    pub fn clusters(&self) -> &[Arc<Cluster>] {
        &self.clusters
    }

    /// Where each cluster listens; useful when the file says port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Stops accepting, lets transactions finish for up to `timeout`, then closes what is left with errno
    /// 1053. Who waits in a queue is refused at once.
    pub async fn drain(self, timeout: Duration) {
        for listener in &self.listeners {
            listener.abort();
        }
        for cluster in &self.clusters {
            cluster.control(|controller, now| controller.shutdown(now));
            cluster.registry.tell_all(Control::Drain);
        }
        if !self.emptied(timeout).await {
            let left: usize = self.clusters.iter().map(|cluster| cluster.registry.len()).sum();
            tracing::warn!(sessions = left, "drain_timeout is over; closing what is left");
            for cluster in &self.clusters {
                cluster.registry.tell_all(Control::Close);
            }
            self.emptied(CLOSE_GRACE).await;
        }
        for driver in &self.drivers {
            driver.abort();
        }
        drop(self.workers);
    }

    async fn emptied(&self, timeout: Duration) -> bool {
        let empty = async {
            while !self.clusters.iter().all(|cluster| cluster.registry.is_empty()) {
                tokio::time::sleep(DRAIN_POLL).await;
            }
        };
        tokio::time::timeout(timeout, empty).await.is_ok()
    }
}

fn listen(policy: &ClusterPolicy) -> io::Result<TcpListener> {
    let bind = || -> io::Result<TcpListener> {
        let address = policy.listen;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(LISTEN_BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    bind().map_err(|error| {
        let text = format!("cluster {}: cannot listen on {}: {error}", policy.name, policy.listen);
        io::Error::new(error.kind(), text)
    })
}

async fn accept(listener: TcpListener, shared: Shared, workers: Arc<Workers>) {
    loop {
        let accepted = match listener.accept().await {
            Ok((socket, peer)) => {
                socket.into_std().map(|socket| (Unregistered::Tcp(socket), Peer::Network(peer)))
            }
            Err(error) => Err(error),
        };
        match accepted {
            Ok((socket, peer)) => {
                if !workers.take(Accepted { shared: shared.clone(), socket, peer }).await {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(cluster = %shared.cluster.name, %error, "accept failed");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}
