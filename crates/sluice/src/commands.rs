//! What each command does.

pub(crate) mod check;
#[cfg(feature = "demo")]
pub(crate) mod demo;
mod door;
pub(crate) mod explain;
pub(crate) mod history;
mod http;
pub(crate) mod insights;
pub(crate) mod quarantine;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod status;
pub(crate) mod suggest;
pub(crate) mod top;
pub(crate) mod why;
mod zone;

use std::io::{self, Write as _};
use std::process::ExitCode;

/// Prints what was asked for in place of a command: help, or the version.
pub(crate) fn help(help: &clap::Error) -> ExitCode {
    let printed = help.print().and_then(|()| io::stdout().flush());
    door::tell(door::written(printed).map(|()| String::new()))
}
