//! The sluice binary: command line and boot order.

mod cli;
mod commands;
mod log;

use std::process::ExitCode;

use clap::Parser as _;

use self::cli::{Cli, Command, Throttle};
use self::commands::rules;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) if told.use_stderr() => told.exit(),
        Err(help) => return commands::help(&help),
    };
    match cli.command {
        Command::Run(run) => commands::run::run(&run),
        Command::Check(check) => commands::check::run(&check),
        Command::Explain(explain) => commands::explain::run(&explain),
        Command::Simulate(simulate) => commands::simulate::run(&simulate),
        Command::Status(status) => commands::status::run(&status),
        Command::History(command) => commands::history::run(&command),
        Command::Why(command) => commands::why::run(&command),
        Command::Insights(command) => commands::insights::run(&command),
        Command::Suggest(command) => commands::suggest::run(&command),
        Command::Top(top) => commands::top::run(&top),
        Command::Throttle(Throttle { ratio, made }) => rules::make(&made, "throttle", Some(ratio)),
        Command::Hold(made) => rules::make(&made, "hold", None),
        Command::Exempt(made) => rules::make(&made, "exempt", None),
        Command::Deny(made) => rules::make(&made, "deny", None),
        Command::Unthrottle(command) => rules::unthrottle(&command),
        Command::Rules(command) => rules::rules(&command),
        Command::Quarantine(command) => commands::quarantine::run(&command),
        #[cfg(feature = "demo")]
        Command::Demo(demo) => commands::demo::run(&demo),
    }
}
