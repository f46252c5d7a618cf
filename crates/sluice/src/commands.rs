//! What each command does.

pub(crate) mod check;
#[cfg(feature = "demo")]
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod status;
