//! KILL QUERY over the probe's account, for statements that run away, and for those whose client has
//! left and whose rule wants them ended (`on_client_gone: kill`). What commits is left alone
//! ([`crate::runaway`]).
//!
//! A server uses a connection's id again when the connection is over. So whoever kills holds its
//! own connection of that id open until this has returned, and the KILL goes to the address which
//! that connection leads to, not to what the primary's name stands for by now. Whether what answers
//! there is the server that gave the id is looked at first: [`crate::runaway::OwnSession`]. A
//! statement that has just ended takes no harm, for a KILL QUERY of an idle session is void.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use policy::{ClusterPolicy, ServerAddress};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::board::{ProbeBoard, ProbeError, Sightings};
use crate::link::{Link, OwnLinks, ProbeAccount};
use crate::socket::Remote;

/// KILLs of one cluster under way at once, each over a connection of its own: many clients leave
/// together when their machine dies, and the server is busy enough then.
const KILLS_MAX: usize = 4;

/// Of these, so many may take their time.
const CHASES_MAX: usize = 2;

/// From asking for a place among those to the server's answer.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The KILLs of one cluster.
#[derive(Debug)]
pub(crate) struct Killer {
    places: Semaphore,
    chases: Semaphore,
    /// Where its connections are noted.
    links: Arc<OwnLinks>,
    pub(crate) sightings: Arc<Sightings>,
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
    /// The session is over, or what answers there is not the server that has it, or began anew.
    OtherServer,
    /// What answers there may be another server than the one that has it.
    MayBeOther,
}

impl Killer {
    pub(crate) fn new(probes: &ProbeBoard) -> Self {
        Self {
            places: Semaphore::new(KILLS_MAX),
            chases: Semaphore::new(CHASES_MAX),
            links: Arc::clone(&probes.own_links),
            sightings: Arc::clone(&probes.sightings),
        }
    }

    /// A place among those that look at a session for longer, if there is one: the others must not
    /// wait for them.
    pub(crate) fn chasing(&self) -> Option<SemaphorePermit<'_>> {
        self.chases.try_acquire().ok()
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
        let link = remote.and_then(|remote| link_to(policy, &remote, &self.links, KILL_TIMEOUT));
        let Some(mut link) = link else { return Err(KillError::NoAccount) };
        let killing = async {
            // The semaphore is never closed.
            let _place = self.places.acquire().await;
            kill(&mut link).await
        };
        let killed = tokio::time::timeout(KILL_TIMEOUT, killing).await;
        killed.unwrap_or(Err(KillError::TimedOut))
    }
}

/// A link to the very server at `remote`, over the probe's account, with this limit for each answer.
/// None: the cluster has no `probe`.
pub(crate) fn link_to(
    policy: &ClusterPolicy,
    remote: &Remote,
    links: &Arc<OwnLinks>,
    time_limit: Duration,
) -> Option<Link> {
    let account = ProbeAccount::of(policy.probe.as_ref()?, &policy.backend_tls, links);
    let link = match remote {
        Remote::Network(address) => {
            // The name is for the certificate.
            let name = match ServerAddress::of(&policy.primary) {
                ServerAddress::Network(name) => name.to_owned(),
                ServerAddress::Unix(_) => address.to_string(),
            };
            Link::new(&name, account, time_limit).at(*address)
        }
        Remote::Unix(path) => Link::new(path, account, time_limit),
    };
    Some(link.noted_in(links))
}

impl fmt::Display for KillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAccount => f.write_str("the cluster has no probe"),
            Self::TimedOut => f.write_str("the server has not answered in time"),
            Self::Failed(error) => error.fmt(f),
            Self::OtherServer => f.write_str(
                "its connection has ended, or the server has been started since or is another one, \
                 whose sessions are others'",
            ),
            Self::MayBeOther => f.write_str(
                "it is not certain that what answers at the primary's address is the server that \
                 its session is at",
            ),
        }
    }
}
