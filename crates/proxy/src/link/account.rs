//! As whom Sluice's own connections log in, and which those of one cluster are.

use std::collections::VecDeque;

use parking_lot::Mutex;
use policy::{BackendTls, Probe, Secret};

use super::encryption::{Encryption, WithoutTls};
use crate::secret::{self, SecretError};

/// As whom probes log in.
#[derive(Clone, Debug)]
pub(crate) struct ProbeAccount {
    pub(super) user: String,
    password: Option<Secret>,
    pub(super) encryption: Encryption,
}

impl ProbeAccount {
    /// One of a cluster whose connections are `links`.
    pub(crate) fn of(probe: &Probe, tls: &BackendTls, links: &OwnLinks) -> Self {
        Self {
            user: probe.user.clone(),
            password: probe.password.clone(),
            encryption: Encryption::of(tls, &links.without_tls),
        }
    }

    /// Whoever answers at this server's address is not known.
    pub(crate) fn tries_tls_at(&self, server: &str) {
        self.encryption.forget(server);
    }

    /// The password as it is now: it may be changed while Sluice runs.
    pub(crate) fn password(&self) -> Result<Option<String>, SecretError> {
        self.password.as_ref().map(secret::read).transpose()
    }
}

/// Sluice's own connections of one cluster.
#[derive(Debug, Default)]
pub(crate) struct OwnLinks {
    /// The primary's ids of those to it.
    newest: Mutex<VecDeque<u32>>,
    without_tls: WithoutTls,
}

impl OwnLinks {
    pub(super) fn note(&self, connection_id: u32) {
        let mut newest = self.newest.lock();
        if newest.len() >= OWN_LINKS_MAX {
            newest.pop_front();
        }
        newest.push_back(connection_id);
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.newest.lock().iter().map(|id| u64::from(*id)).collect()
    }

    /// Which servers offer TLS is not known any more.
    pub(crate) fn try_tls(&self) {
        self.without_tls.forget_all();
    }
}

/// The newest ids of Sluice's own connections to a primary that are kept; there are some ten.
const OWN_LINKS_MAX: usize = 256;
