//! Which server the primary is, for replicas that have several sources.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::ProbeBoard;
use crate::probe::SourceIdentity;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct PrimaryIdentity {
    /// Some replica has several channels.
    is_wanted: AtomicBool,
    known: Mutex<Option<SourceIdentity>>,
}

impl ProbeBoard {
    /// The primary is asked who it is from now on.
    pub(crate) fn want_primary_identity(&self) {
        self.primary_identity.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn wants_primary_identity(&self) -> bool {
        self.primary_identity.is_wanted.load(Ordering::Relaxed)
    }

    pub(crate) fn note_primary_identity(&self, identity: SourceIdentity) {
        *self.primary_identity.known.lock() = Some(identity);
    }

    /// Who the primary is, if that was asked.
    pub(crate) fn primary_identity(&self) -> Option<SourceIdentity> {
        self.primary_identity.known.lock().clone()
    }
}
