//! The running proxy: clusters, their listeners, and the way it stops.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;

use policy::{ClusterPolicy, Config, Listen, ServerAddress};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::cluster::Cluster;
use crate::connection::Shared;
use crate::inherited::{Inherited, Origin};
use crate::insights;
use crate::listener::Listener;
use crate::registry::Control;
use crate::socket::{Peer, Unregistered};
use crate::standstill;
use crate::telemetry::Telemetry;
use crate::unbound::cannot_listen;
use crate::workers::{self, Accepted, Threads, Workers};

/// Clients that may wait in the accept queue when a listener closes: more cannot be in it.
const LAST_ACCEPTS_MAX: usize = 4096;

/// After an accept that failed (no file descriptors left): time for some to come back.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// How often a drain looks whether everybody has left.
const DRAIN_POLL: Duration = Duration::from_millis(20);

/// What sessions that were told to close get for writing their last error.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Whether clients are let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accepting {
    Yes,
    /// No more, but those who are connected already.
    TheLast,
    /// No more: another process goes on with the same accept queue.
    No,
}

/// How long those may stay who are connected when a drain begins; the later the less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Patience {
    /// Statements that wait may wait on, until their deadlines.
    WithWaiters,
    /// Who waits is refused. Transactions may finish.
    WithTransactions,
    /// Everything is closed.
    None,
}

/// How a drain has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Everybody had left.
    Empty,
    /// So many sessions were closed.
    Cut {
        /// In all clusters.
        sessions: usize,
    },
}

/// What becomes of the listeners when a drain begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// They close: whoever connects now is refused by the kernel, until another process listens.
    Closed,
    /// Another process has them.
    ToSuccessor,
}

/// The proxy while it runs.
#[derive(Debug)]
pub struct Server {
    clusters: Vec<Arc<Cluster>>,
    addresses: Vec<Listen>,
    sockets: Vec<Arc<Listener>>,
    accepting: watch::Sender<Accepting>,
    /// The relaying threads end, and every connection with them, when the last handle goes.
    workers: Arc<Workers>,
    listeners: Vec<JoinHandle<()>>,
    drivers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Binds every listener that is not inherited, and starts relaying. Call it on the runtime that
    /// is to run the clusters' timers.
    ///
    /// # Errors
    /// A listener that cannot be bound, with its address; a thread that cannot be started.
    pub fn start(
        config: &Config,
        telemetry: &Arc<Telemetry>,
        threads: Threads,
        inherited: &mut Inherited,
    ) -> io::Result<Self> {
        let clock = Clock::start();
        let workers = Arc::new(Workers::start(threads)?);
        let mut server = Self {
            clusters: Vec::new(),
            addresses: Vec::new(),
            sockets: Vec::new(),
            accepting: watch::Sender::new(Accepting::Yes),
            workers: workers.clone(),
            listeners: Vec::new(),
            drivers: Vec::new(),
        };
        let log = Arc::clone(&telemetry.statement_log);
        server.drivers.push(tokio::spawn(log.keep(clock)));
        let spread = workers::spread(Arc::downgrade(&workers), telemetry.clone());
        server.drivers.push(tokio::spawn(spread));
        for policy in &config.clusters {
            warn_of_socket_accounts(policy);
            let cluster = Cluster::new(policy.clone(), clock, rand::random());
            let (listener, origin) = listen(policy, inherited)?;
            server.addresses.push(listener.listens_on()?);
            server.sockets.push(listener.clone());
            let shared = Shared { cluster: cluster.clone(), telemetry: telemetry.clone() };
            let acceptor = Acceptor {
                listener,
                origin,
                shared,
                workers: workers.clone(),
                told: server.accepting.subscribe(),
            };
            server.listeners.push(tokio::spawn(acceptor.keep()));
            server.drivers.push(tokio::spawn(cluster.clone().drive()));
            server.clusters.push(cluster);
        }
        let standstills = standstill::watch(server.clusters.clone());
        server.drivers.push(tokio::spawn(standstills));
        insights::count(&server.clusters)?;
        Ok(server)
    }

    /// The clusters, in the order of the file.
    pub fn clusters(&self) -> &[Arc<Cluster>] {
        &self.clusters
    }

    /// Where each cluster listens; useful when the file says port 0.
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// The listening sockets once more, for another process.
    ///
    /// # Errors
    /// When there are no file descriptors left.
    pub fn share_listeners(&self) -> io::Result<Vec<OwnedFd>> {
        self.sockets.iter().map(|socket| socket.as_fd().try_clone_to_owned()).collect()
    }

    /// Where clients come in, for as long as this process listens there.
    pub(crate) fn listeners(&self) -> Vec<Weak<Listener>> {
        self.sockets.iter().map(Arc::downgrade).collect()
    }

    /// Tells everybody to leave and waits until they have, for up to `timeout`, or until `patience`
    /// says that it is over; then closes what is left: a statement that waits is refused, and
    /// everybody else gets errno 1053. Nobody may be let in any more. While the process behind is told
    /// of budgets, what those count at the servers is waited for as well.
    pub async fn drain(
        self,
        timeout: Duration,
        mut patience: watch::Receiver<Patience>,
    ) -> Drained {
        for cluster in &self.clusters {
            cluster.registry.drain();
        }
        let drained = self.empty(&mut patience, timeout).await;
        for driver in self.drivers {
            driver.abort();
            // What it still held is given back.
            drop(driver.await);
        }
        drop(self.workers);
        drained
    }

    async fn empty(&self, patience: &mut watch::Receiver<Patience>, timeout: Duration) -> Drained {
        let over = tokio::time::sleep(timeout);
        tokio::pin!(over);
        loop {
            let patient = *patience.borrow_and_update();
            match patient {
                Patience::WithWaiters => {}
                Patience::WithTransactions => self.refuse_waiters(),
                Patience::None => break,
            }
            tokio::select! {
                () = self.emptied() => return Drained::Empty,
                () = &mut over => break,
                Ok(()) = patience.changed() => {}
            }
        }
        let sessions = self.connected();
        if sessions == 0 {
            if !self.is_empty() {
                tracing::warn!("what a server still does without a session counts no longer");
            }
            return Drained::Empty;
        }
        self.refuse_waiters();
        for cluster in &self.clusters {
            cluster.registry.tell_all(Control::Close);
        }
        drop(tokio::time::timeout(CLOSE_GRACE, self.emptied()).await);
        Drained::Cut { sessions }
    }

    fn refuse_waiters(&self) {
        for cluster in &self.clusters {
            drop(cluster.control(|controller, now| controller.shutdown(now)));
            cluster.registry.refuse_waiters();
        }
    }

    /// How many clients there are, in all clusters.
    pub fn connected(&self) -> usize {
        self.clusters.iter().map(|cluster| cluster.registry.len()).sum()
    }

    /// Lets nobody in any more. Returns when everybody who was accepted is in a registry.
    pub async fn stop_accepting(&mut self, leaving: Leaving) {
        let accepting = match leaving {
            Leaving::Closed => Accepting::TheLast,
            Leaving::ToSuccessor => {
                self.sockets.iter().for_each(|socket| socket.leave_to_successor());
                Accepting::No
            }
        };
        self.accepting.send_replace(accepting);
        for listener in self.listeners.drain(..) {
            // A worker that takes nobody keeps its listener from ending; what it has accepted is
            // lost then.
            drop(tokio::time::timeout(CLOSE_GRACE, listener).await);
        }
        self.sockets.clear();
    }

    /// Returns when nobody is connected any more, and nothing is left to tell.
    async fn emptied(&self) {
        while !self.is_empty() {
            tokio::time::sleep(DRAIN_POLL).await;
        }
    }

    fn is_empty(&self) -> bool {
        self.clusters.iter().all(Cluster::is_drained)
    }
}

/// A server tells who comes by a Unix socket from the user of the process: accounts that log in so
/// (auth_socket, MariaDB's unix_socket) let every client of Sluice in as Sluice.
fn warn_of_socket_accounts(policy: &ClusterPolicy) {
    let by_socket = matches!(ServerAddress::of(&policy.primary), ServerAddress::Unix(_));
    if by_socket && rustix::process::geteuid().is_root() {
        tracing::warn!(
            cluster = %policy.name, primary = %policy.primary,
            "the primary is a Unix socket and Sluice runs as root: where the server's root logs \
             in by \
             auth_socket or unix_socket, every client can be root; run Sluice as a user of its own"
        );
    }
}

fn listen(
    policy: &ClusterPolicy,
    inherited: &mut Inherited,
) -> io::Result<(Arc<Listener>, Origin)> {
    let listener = match inherited.take(&policy.listen) {
        Some((socket, origin)) => {
            Listener::of_socket(&policy.listen, socket).map(|listener| (listener, origin))
        }
        None => Listener::bind(&policy.listen, policy.network.listen_mode)
            .map(|listener| (listener, Origin::Predecessor)),
    };
    match listener {
        Ok((listener, origin)) => {
            if origin == Origin::ServiceManager {
                listener.leave_to_successor();
            }
            Ok((Arc::new(listener), origin))
        }
        Err(error) => {
            let (name, listen) = (&policy.name, &policy.listen);
            let text = format!("cluster {name}: {}", cannot_listen(listen, &error));
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// Where clients of one cluster come in.
struct Acceptor {
    listener: Arc<Listener>,
    origin: Origin,
    shared: Shared,
    workers: Arc<Workers>,
    told: watch::Receiver<Accepting>,
}

impl Acceptor {
    /// Lets clients in until told otherwise.
    async fn keep(mut self) {
        loop {
            tokio::select! {
                biased;
                // The sender is dropped only after it has told.
                _ = self.told.changed() => break,
                accepted = poll_fn(|cx| self.listener.poll_accept(cx)) => {
                    if !self.let_in(accepted).await {
                        return;
                    }
                }
            }
        }
        let told = *self.told.borrow();
        match (told, self.origin) {
            (Accepting::TheLast, Origin::Predecessor) => self.let_in_the_last().await,
            // Somebody else accepts from the same queue, now or later.
            (Accepting::TheLast, Origin::ServiceManager)
            | (Accepting::No | Accepting::Yes, Origin::Predecessor | Origin::ServiceManager) => {}
        }
    }

    /// Those whose connection is established already: closing the listener would reset it.
    async fn let_in_the_last(&self) {
        for _ in 0..LAST_ACCEPTS_MAX {
            let accepted = self.listener.accept_now();
            if accepted.is_err() || !self.let_in(accepted).await {
                return;
            }
        }
    }

    /// False when there is nobody to serve any more.
    async fn let_in(&self, accepted: io::Result<(Unregistered, Peer)>) -> bool {
        match accepted {
            Ok((socket, peer)) => {
                let shared = self.shared.clone();
                // Before it is handed over, so that a drain waits for it.
                let (registration, control) = shared.cluster.registry.enter();
                self.workers.take(Accepted { shared, socket, peer, registration, control }).await
            }
            Err(error) => {
                let cluster = &self.shared.cluster;
                if let Some(untold) = cluster.turned_away.unaccepted.lock().again(cluster.now()) {
                    tracing::warn!(cluster = %cluster.name, %error, untold, "accept failed");
                }
                tokio::time::sleep(ACCEPT_RETRY).await;
                true
            }
        }
    }
}

#[cfg(test)]
mod tests;
