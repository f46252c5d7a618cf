//! KILL QUERY over the probe's account, for statements whose client has left and whose rule wants
//! them ended (`on_client_gone: kill`).
//!
//! A server uses a connection's id again when the connection is over. So whoever kills holds its
//! own connection of that id open until this has returned, and the KILL goes to the address which
//! that connection leads to, not to what the primary's name stands for by now: it can meet no other
//! session. A statement that has just ended takes no harm, for a KILL QUERY of an idle session is
//! void.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use policy::{ClusterPolicy, ServerAddress};
use tokio::sync::Semaphore;

use crate::board::ProbeError;
use crate::link::{Link, OwnLinks, ProbeAccount};
use crate::socket::Remote;

/// KILLs of one cluster under way at once, each over a connection of its own: many clients leave
/// together when their machine dies, and the server is busy enough then.
const KILLS_MAX: usize = 4;

/// From asking for a place among those to the server's answer.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The KILLs of one cluster.
#[derive(Debug)]
pub(crate) struct Killer {
    places: Semaphore,
    /// Where its connections are noted.
    links: Arc<OwnLinks>,
}

/// Why a statement was not killed.
#[derive(Debug)]
pub(crate) enum KillError {
    /// The cluster has no `probe`, or the server's address is not known.
    NoAccount,
    /// It took too long, waiting for others included.
    TimedOut,
    /// The server could not be reached, or refused.
    Failed(ProbeError),
}

impl Killer {
    pub(crate) fn new(links: Arc<OwnLinks>) -> Self {
        Self { places: Semaphore::new(KILLS_MAX), links }
    }

    /// Ends the statement that the connection `connection_id` of the server at `remote` runs.
    ///
    /// # Errors
    /// When the server has not said that it did.
    ///
    /// # Cancellation
    /// The KILL may or may not have been sent.
    pub(crate) async fn kill_query(
        &self,
        policy: &ClusterPolicy,
        remote: Option<Remote>,
        connection_id: u32,
    ) -> Result<(), KillError> {
        let kill = format!("KILL QUERY {connection_id}");
        let killing =
            async |link: &mut Link| link.run(&kill).await.map(drop).map_err(KillError::Failed);
        self.killing(policy, remote, killing).await
    }

    /// Does something about a session over a connection of its own to the server at `remote`, when
    /// there is a place.
    ///
    /// # Cancellation
    /// Nobody knows how far it has come.
    pub(crate) async fn killing<T>(
        &self,
        policy: &ClusterPolicy,
        remote: Option<Remote>,
        kill: impl AsyncFnOnce(&mut Link) -> Result<T, KillError>,
    ) -> Result<T, KillError> {
        let (Some(probe), Some(remote)) = (&policy.probe, remote) else {
            return Err(KillError::NoAccount);
        };
        let account = ProbeAccount::of(probe, &policy.backend_tls);
        let link = match remote {
            Remote::Network(address) => {
                // The name is for the certificate.
                let name = match ServerAddress::of(&policy.primary) {
                    ServerAddress::Network(name) => name.to_owned(),
                    ServerAddress::Unix(_) => address.to_string(),
                };
                Link::new(&name, account, KILL_TIMEOUT).at(address)
            }
            Remote::Unix(path) => Link::new(&path, account, KILL_TIMEOUT),
        };
        let mut link = link.noted_in(&self.links);
        let killing = async {
            // The semaphore is never closed.
            let _place = self.places.acquire().await;
            kill(&mut link).await
        };
        let killed = tokio::time::timeout(KILL_TIMEOUT, killing).await;
        killed.unwrap_or(Err(KillError::TimedOut))
    }
}

impl fmt::Display for KillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAccount => f.write_str("the cluster has no probe"),
            Self::TimedOut => f.write_str("the server has not answered in time"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}
