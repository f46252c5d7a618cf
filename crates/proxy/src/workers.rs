//! The threads that relay: one single-threaded runtime each.
//!
//! A connection lives on one thread while it relays a statement, so that wakes no other thread and its
//! state moves between no caches. (A bare relay on tokio's multi-thread runtime was measured to cost a
//! quarter to a third more CPU per statement; docs/decisions tells.) Between two reads it may
//! move: as few threads are used as the load needs (`spread`).

mod affinity;
mod load;
mod spread;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::sync::mpsc;

pub(crate) use self::affinity::Affinity;
pub(crate) use self::load::Load;
use self::load::{CORE, Counted, LOOK, Meter};
use self::spread::{Spread, Transfer};
use crate::connection::{Arrival, Begun, Shared, resume, serve};
use crate::registry::{Inbox, Registration};
use crate::socket::{Peer, Unregistered};
use crate::telemetry::Telemetry;

/// Connections on their way to a worker. Whoever hands them over waits when a worker is this far
/// behind, and for those that are new the kernel's backlog fills instead.
const HANDOVER_QUEUE_LEN: usize = 256;

/// As many log in on one thread before clients go to threads that are not used. A login in TLS takes as long as some
/// hundred statements, and does not move; when thousands come back at once one thread would keep them for seconds.
const ARRIVING_MAX: usize = 8;

/// How many threads relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    /// At most.
    pub max: usize,
    /// How much of a core one uses before the next joins, in percent. 0: all relay from the start.
    pub full: u8,
}

impl Threads {
    /// Each of which has enough to do before the next joins.
    pub fn up_to(max: usize) -> Self {
        Self { max, full: spread::FULL }
    }
}

/// The relaying threads, as the accepting tasks see them.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<Worker>,
    full: u8,
    /// New connections go to so many of them, from the first.
    used: AtomicUsize,
}

#[derive(Debug)]
struct Worker {
    handover: mpsc::Sender<Handed>,
    handle: Handle,
    load: Arc<Load>,
}

/// A client that has just been accepted.
pub(crate) struct Accepted {
    pub(crate) shared: Shared,
    pub(crate) socket: Unregistered,
    pub(crate) peer: Peer,
    pub(crate) registration: Registration,
    pub(crate) control: Inbox,
}

/// What a worker is given.
enum Handed {
    New(Accepted, Arriving),
    /// From another thread. Its sockets are this one's already.
    Moved(Box<Begun>, Counted),
}

/// Who is counted as a connection, and as one that logs in.
struct Arriving {
    workers: Weak<Workers>,
    open: Counted,
    logs_in: Counted,
}

impl Workers {
    /// Starts the threads.
    pub(crate) fn start(threads: Threads) -> io::Result<Self> {
        let count = threads.max.max(1);
        let workers: Vec<_> = (0..count).map(Worker::start).collect::<io::Result<_>>()?;
        let used = AtomicUsize::new(Spread::new(threads.full, count).used());
        Ok(Self { workers, full: threads.full, used })
    }

    /// Gives a client to a worker. False when there is none left.
    pub(crate) async fn take(self: &Arc<Self>, accepted: Accepted) -> bool {
        let Some(Worker { load, handover, .. }) = self.next() else { return false };
        let workers = Arc::downgrade(self);
        let arriving = Arriving { workers, open: load.enter(), logs_in: load.arrive() };
        handover.send(Handed::New(accepted, arriving)).await.is_ok()
    }

    /// That of those in use which has the fewest connections. If clients come faster than these let them in: where
    /// fewest log in.
    fn next(&self) -> Option<&Worker> {
        let used = self.workers.iter().take(self.used.load(Ordering::Relaxed));
        let next = used.min_by_key(|worker| worker.load.connections());
        match next.filter(|worker| worker.load.arriving() < ARRIVING_MAX) {
            None => self.workers.iter().min_by_key(|worker| worker.load.arriving()),
            next => next,
        }
    }

    /// All connections of a thread that relay move to another.
    #[cfg(test)]
    pub(crate) fn move_all(&self, from: usize, to: usize) {
        self.workers[from].load.tell(u32::MAX, &(to..to + 1));
    }

    /// Says who moves. From a thread that is not used everybody does, whenever it relays something next: who does
    /// so once in a while is not seen when it is told.
    fn tell(&self, transfers: &[Transfer], used: usize, home: &Range<usize>) {
        for (index, load) in self.loads().enumerate() {
            match transfers.iter().find(|transfer| transfer.from == index) {
                Some(told) => load.tell(told.count, &told.to),
                None if index >= used => load.tell(u32::MAX, home),
                None => load.tell(0, &(0..0)),
            }
        }
    }

    fn get(&self, index: usize) -> Option<&Worker> {
        self.workers.get(index)
    }

    fn loads(&self) -> impl Iterator<Item = &Arc<Load>> {
        self.workers.iter().map(|worker| &worker.load)
    }
}

/// Spreads the connections over the threads, until these have ended.
pub(crate) async fn spread(workers: Weak<Workers>, telemetry: Arc<Telemetry>) {
    let Some(mut spread) =
        workers.upgrade().map(|workers| Spread::new(workers.full, workers.workers.len()))
    else {
        return;
    };
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(workers) = workers.upgrade() else { return };
        let seen: Vec<_> = workers.loads().map(|load| load.take()).collect();
        let transfers = spread.look(&seen);
        workers.used.store(spread.used(), Ordering::Relaxed);
        workers.tell(&transfers, spread.used(), &spread.home(&seen));
        let busy = seen.iter().map(|seen| f64::from(seen.busy) / f64::from(CORE));
        telemetry.relay_threads(spread.used(), busy);
    }
}

impl Worker {
    fn start(index: usize) -> io::Result<Self> {
        let (handover, incoming) = mpsc::channel(HANDOVER_QUEUE_LEN);
        let load = Arc::new(Load::of(index));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let ours = load.clone();
        std::thread::Builder::new()
            .name(format!("relay-{index}"))
            .spawn(move || runtime.block_on(take_all(incoming, ours)))?;
        Ok(Self { handover, handle, load })
    }
}

/// Takes whom it is given, until nobody can give any more.
async fn take_all(mut incoming: mpsc::Receiver<Handed>, load: Arc<Load>) {
    let mut meter = Meter::start();
    let mut rests = true;
    loop {
        // A thread that relays nothing is never woken.
        let handed = match rests {
            true => tokio::select! {
                handed = incoming.recv() => Some(handed),
                () = load.stirred() => None,
            },
            false => tokio::time::timeout(LOOK, incoming.recv()).await.ok(),
        };
        meter.tell(&load);
        rests = !rests && handed.is_none() && load.rests();
        match handed {
            None => {}
            Some(None) => return,
            Some(Some(Handed::New(accepted, arriving))) => take(accepted, arriving, &load),
            Some(Some(Handed::Moved(mut begun, open))) => {
                begun.settle(load.clone());
                tokio::spawn(async move { pass_on(resume(begun).await, open).await });
            }
        }
    }
}

fn take(accepted: Accepted, arriving: Arriving, load: &Arc<Load>) {
    let Arriving { workers, open, logs_in } = arriving;
    let Accepted { shared, socket, peer, registration, control } = accepted;
    match socket.register() {
        Ok(client) => {
            let affinity = Affinity::new(load.clone(), workers);
            let arrival =
                Box::new(Arrival { shared, affinity, client, peer, registration, control });
            tokio::spawn(async move { pass_on(serve(arrival, logs_in).await, open).await });
        }
        Err(error) => tracing::warn!(%error, "an accepted socket could not be registered"),
    }
}

/// A connection goes on on another thread, if it is not over.
async fn pass_on(moving: Option<(Box<Begun>, usize)>, open: Counted) {
    let Some((begun, to)) = moving else { return };
    // Nobody keeps the threads from ending meanwhile.
    let handover = begun.affinity().workers().upgrade().and_then(|workers| {
        let worker = workers.get(to)?;
        Some((worker.handover.clone(), worker.load.enter()))
    });
    drop(open);
    if let Some((handover, open)) = handover {
        // If nobody takes it the process ends, and every connection with it.
        drop(handover.send(Handed::Moved(begun, open)).await);
    }
}

#[cfg(test)]
mod tests;
