//! The threads that relay: one single-threaded runtime each.
//!
//! A connection lives on one thread from its first byte to its last, so relaying a statement wakes
//! no other thread and its state moves between no caches. (A bare relay on tokio's multi-thread
//! runtime was measured to cost a quarter to a third more CPU per statement; docs/decisions tells.)

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::mpsc;

use crate::connection::{Arrival, Shared, serve};
use crate::registry::{Inbox, Registration};
use crate::socket::{Peer, Unregistered};

/// Accepted sockets on their way to a worker. The accepting task waits when a worker is this far
/// behind, and the kernel's backlog fills instead.
const HANDOVER_QUEUE_LEN: usize = 256;

/// The relaying threads, as the accepting tasks see them.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<Worker>,
}

#[derive(Debug)]
struct Worker {
    handover: mpsc::Sender<Accepted>,
    connections: Arc<AtomicUsize>,
}

/// A client that has just been accepted.
pub(crate) struct Accepted {
    pub(crate) shared: Shared,
    pub(crate) socket: Unregistered,
    pub(crate) peer: Peer,
    pub(crate) registration: Registration,
    pub(crate) control: Inbox,
}

impl Workers {
    /// Starts `count` threads.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        let workers = (0..count.max(1)).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Self { workers })
    }

    /// Gives a client to the worker with the fewest connections. False when there is none left.
    pub(crate) async fn take(&self, accepted: Accepted) -> bool {
        let least =
            self.workers.iter().min_by_key(|worker| worker.connections.load(Ordering::Relaxed));
        match least {
            Some(worker) => {
                worker.connections.fetch_add(1, Ordering::Relaxed);
                worker.handover.send(accepted).await.is_ok()
            }
            None => false,
        }
    }
}

impl Worker {
    fn start(index: usize) -> io::Result<Self> {
        let (handover, incoming) = mpsc::channel(HANDOVER_QUEUE_LEN);
        let connections = Arc::new(AtomicUsize::new(0));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let counter = connections.clone();
        std::thread::Builder::new()
            .name(format!("relay-{index}"))
            .spawn(move || runtime.block_on(accept_all(incoming, counter, index)))?;
        Ok(Self { handover, connections })
    }
}

async fn accept_all(
    mut incoming: mpsc::Receiver<Accepted>,
    connections: Arc<AtomicUsize>,
    worker: usize,
) {
    while let Some(accepted) = incoming.recv().await {
        let open = Open(connections.clone());
        let Accepted { shared, socket, peer, registration, control } = accepted;
        let shared = Shared { worker, ..shared };
        match socket.register() {
            Ok(client) => {
                let arrival = Box::new(Arrival { shared, client, peer, registration, control });
                tokio::spawn(async move {
                    serve(arrival).await;
                    drop(open);
                });
            }
            Err(error) => tracing::warn!(%error, "an accepted socket could not be registered"),
        }
    }
}

/// Counts one connection of a worker down, also when its task panics.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
