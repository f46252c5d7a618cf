//! The sluice binary: command line and boot order.

mod cli;
mod commands;
mod log;

use std::process::ExitCode;

use clap::Parser as _;

use self::cli::{Cli, Command};

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(run) => commands::run::run(&run),
        Command::Check(check) => commands::check::run(&check),
        Command::Explain(explain) => commands::explain::run(&explain),
        Command::Simulate(simulate) => commands::simulate::run(&simulate),
        Command::Status(status) => commands::status::run(&status),
        #[cfg(feature = "demo")]
        Command::Demo(demo) => commands::demo::run(&demo),
    }
}
