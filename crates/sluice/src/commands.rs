//! What each command does.

pub(crate) mod check;
pub(crate) mod explain;
pub(crate) mod run;
