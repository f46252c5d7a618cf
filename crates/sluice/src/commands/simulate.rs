//! `sluice simulate`: how does the pace hold the lag?

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use ::simulate::{Pace, Report, Scenario, simulate};

use crate::cli::{Format, Pacing, Simulate};

/// The exit status of figures that are not as the file expects.
const NOT_AS_EXPECTED: u8 = 1;
/// The exit status of a file that cannot be read or has faults.
const BAD_FILE: u8 = 2;

pub(crate) fn run(command: &Simulate) -> ExitCode {
    let scenario = match load(command) {
        Ok(scenario) => scenario,
        Err(lines) => {
            complain(&lines);
            return ExitCode::from(BAD_FILE);
        }
    };
    let report = simulate(&scenario);
    match written(&report, command.format) {
        // A reader that left early has seen what it wanted.
        Ok(answer) => drop(writeln!(io::stdout(), "{}", answer.trim_end())),
        Err(error) => {
            complain(&[error.to_string()]);
            return ExitCode::from(BAD_FILE);
        }
    }
    if report.missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    complain(&report.missed);
    ExitCode::from(NOT_AS_EXPECTED)
}

fn load(command: &Simulate) -> Result<Scenario, Vec<String>> {
    let path = command.scenario.display();
    let named = |fault: &dyn std::fmt::Display| format!("{path}: {fault}");
    let text = fs::read_to_string(&command.scenario).map_err(|error| vec![named(&error)])?;
    let mut scenario = Scenario::parse(&text)
        .map_err(|error| error.faults.iter().map(|fault| named(fault)).collect::<Vec<_>>())?;
    scenario.seed = command.seed.unwrap_or(scenario.seed);
    scenario.pacing = match command.pacing {
        Some(Pacing::Adaptive) => Pace::Adaptive,
        Some(Pacing::Binary) => Pace::Binary,
        None => scenario.pacing,
    };
    Ok(scenario)
}

fn written(report: &Report, format: Format) -> Result<String, serde_json::Error> {
    match format {
        Format::Text => Ok(report.to_string()),
        Format::Json => serde_json::to_string(report),
    }
}

fn complain(lines: &[String]) {
    let mut stderr = io::stderr().lock();
    for line in lines {
        drop(writeln!(stderr, "{line}"));
    }
}
