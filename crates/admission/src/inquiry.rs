//! How somebody asks who will write around Sluice.

use crate::{Refusal, Request};

/// One question of a client that asks before it writes, and does not wait: it comes again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inquiry {
    /// As a statement would ask. Its longest wait and what a refused check means do not matter.
    pub request: Request,
    /// Rows that the client means to write once it may; 0 if it only looks. `None`: it does not
    /// say.
    pub rows: Option<u64>,
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
