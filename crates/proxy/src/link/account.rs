//! As whom Sluice's own connections log in, and which those of one cluster are.

use std::collections::VecDeque;

use parking_lot::Mutex;
use policy::{BackendTls, Probe, Secret};

use super::encryption::Encryption;
use crate::secret::{self, SecretError};

/// As whom probes log in.
#[derive(Clone, Debug)]
pub(crate) struct ProbeAccount {
    pub(super) user: String,
    password: Option<Secret>,
    pub(super) encryption: Encryption,
}

impl ProbeAccount {
    pub(crate) fn of(probe: &Probe, tls: &BackendTls) -> Self {
        Self {
            user: probe.user.clone(),
            password: probe.password.clone(),
            encryption: Encryption::of(tls),
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

/// The primary's ids of Sluice's own connections to it.
#[derive(Debug, Default)]
pub(crate) struct OwnLinks(Mutex<VecDeque<u32>>);

impl OwnLinks {
    pub(super) fn note(&self, connection_id: u32) {
        let mut newest = self.0.lock();
        if newest.len() >= OWN_LINKS_MAX {
            newest.pop_front();
        }
        newest.push_back(connection_id);
    }

    pub(crate) fn ids(&self) -> Vec<u64> {
        self.0.lock().iter().map(|id| u64::from(*id)).collect()
    }
}

/// The newest ids of Sluice's own connections to a primary that are kept; there are some ten.
const OWN_LINKS_MAX: usize = 256;
