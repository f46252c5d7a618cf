//! How somebody asks who will write around Sluice.

use crate::{Refusal, Request};

/// One question of a client that asks before it writes, and does not wait: it comes again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inquiry {
    /// As a statement would ask. Its longest wait and what a refused check means do not matter.
    pub request: Request,
    /// What for.
    pub purpose: Purpose,
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To write.
    Write {
        /// So many rows once it may; 0 if it only looks. `None`: it does not say.
        rows: Option<u64>,
    },
    /// To read from replicas. Only a hold and the dice stand in its way; how much lag it can bear
    /// it knows itself.
    Read,
}

/// What an inquiry is told.
#[derive(Debug, Clone, Copy, PartialEq)]
#[must_use]
pub enum Answer {
    /// Write now: see [`crate::Controller::inquire`] for what that promises.
    Allowed,
    /// Not now.
    Refused(Refusal),
    /// The rule only observes: write now. What would have stood in the way, if anything.
    Observed(Option<Refusal>),
}
