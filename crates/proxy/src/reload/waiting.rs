//! An edit that waits for files that it names, of secrets or certificates.
//!
//! Nothing tells when one of those appears or answers: it may be anywhere, and on a network. So the edit
//! is looked at again every few seconds for as long as it is the newest, and the log says why it waits
//! when that is something else than before.

use std::time::Duration;

use tokio::time::Instant;

/// How often it is looked at again. Whoever puts a file there waits for that; a look reads some files.
pub(super) const TRIED_AGAIN_EVERY_S: u64 = 5;

#[derive(Debug)]
pub(super) struct Waiting {
    why: String,
    until: Instant,
}

impl Waiting {
    pub(super) fn new(why: &str, now: Instant) -> Self {
        Self { why: why.to_owned(), until: now + Duration::from_secs(TRIED_AGAIN_EVERY_S) }
    }

    /// Whether it is to be looked at again.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until <= now
    }

    /// What was said of it.
    pub(super) fn why(&self) -> &str {
        &self.why
    }
}
