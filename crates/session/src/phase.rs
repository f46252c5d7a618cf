//! The phases of a session: each owns what is valid in it and borrows what it needs of the
//! session's owners. What a phase may lead to is its own `Next`; [`crate::session`] alone knows
//! all of them.

pub(crate) mod asking;
pub(crate) mod clearing;
pub(crate) mod ending;
pub(crate) mod execution;
pub(crate) mod forwarding;
pub(crate) mod greeting;
pub(crate) mod guarding;
pub(crate) mod idle;
pub(crate) mod login;
pub(crate) mod refusing;
