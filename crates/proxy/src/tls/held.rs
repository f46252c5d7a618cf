//! What a leg has in force, and whether that is what its files say now.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::fault::FileFault;

/// What one leg has in force.
#[derive(Debug)]
pub(super) struct Held<C> {
    /// None: it could never be made, and handshakes fail.
    made: Option<Made<C>>,
    freshness: Freshness,
}

/// Whether it is what the files say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    Current,
    /// They could not be used when they were looked at last.
    Older,
}

/// What is made of one leg's settings and files.
#[derive(Debug)]
pub(super) struct Made<C> {
    pub(super) config: Arc<C>,
    /// Until when the certificate that is shown is valid, in Unix time.
    pub(super) not_after: Option<Duration>,
}

impl<C> Clone for Made<C> {
    fn clone(&self) -> Self {
        Self { config: self.config.clone(), not_after: self.not_after }
    }
}

impl<C> Default for Held<C> {
    fn default() -> Self {
        Self { made: None, freshness: Freshness::Older }
    }
}

impl<C> Held<C> {
    /// What is in force after an attempt to make it anew.
    pub(super) fn renewed(&self, made: Result<Made<C>, FileFault>) -> Self {
        match made {
            Ok(made) => Self { made: Some(made), freshness: Freshness::Current },
            Err(_) => Self { made: self.made.clone(), freshness: Freshness::Older },
        }
    }

    pub(super) fn config(&self) -> io::Result<Arc<C>> {
        self.made.as_ref().map(|made| made.config.clone()).ok_or_else(no_certificates)
    }

    pub(super) fn view(&self, leg: &'static str) -> LegView {
        LegView {
            leg,
            is_current: self.freshness == Freshness::Current,
            not_after: self.made.as_ref().and_then(|made| made.not_after),
        }
    }
}

/// What metrics tell of one leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegView {
    /// `client`, `backend` or `admin`.
    pub leg: &'static str,
    /// Whether what the files say is in force.
    pub is_current: bool,
    /// Until when the certificate that Sluice shows is valid, in Unix time. `None`: it shows none.
    pub not_after: Option<Duration>,
}

fn no_certificates() -> io::Error {
    io::Error::other("there are no usable certificates; the log of Sluice tells why")
}
