//! `sluice simulate`: how does the pace hold the lag, and what do rules make of a load?

mod answer;
mod met;
mod ruled;
mod tried;

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;

use ::simulate::{Pace, Scenario, TooMuch, simulate};
use proxy::reload;

use self::answer::Answer;
use self::ruled::Ruled;
use super::door::tell;
use crate::cli::{Format, Pacing, Simulate};

/// The exit status of figures that are not as the file expects.
const NOT_AS_EXPECTED: u8 = 1;
/// The exit status of a file that cannot be read or has faults, and of a run that is too much.
const BAD_FILE: u8 = 2;

/// What is wrong with a file or a load, a line each.
type Faults = Vec<String>;

pub(crate) fn run(command: &Simulate) -> ExitCode {
    let (text, missed) = match answer(command) {
        Ok(answer) => answer,
        Err(faults) => {
            complain(&faults);
            return ExitCode::from(BAD_FILE);
        }
    };
    let printed = tell(Ok(text));
    if missed.is_empty() {
        return printed;
    }
    complain(&missed);
    ExitCode::from(NOT_AS_EXPECTED)
}

/// Simulates and gives what came of it and what was expected and is not so, or writes the scenario.
fn answer(command: &Simulate) -> Result<(String, Vec<String>), Faults> {
    let (scenario, ruled) = match (&command.scenario, &command.load.config) {
        (Some(path), _) => (load(path, command)?, None),
        (None, Some(config)) => {
            let ruled = Ruled::load(config, command)?;
            (ruled.scenario.clone(), Some(ruled))
        }
        (None, None) => return Err(vec!["a scenario or --config is needed".to_owned()]),
    };
    if let Some(path) = &command.write_scenario {
        let head = ruled.as_ref().map(Ruled::head).unwrap_or_default();
        let text = head + &scenario.to_yaml();
        if path == Path::new("-") {
            return Ok((text, Vec::new()));
        }
        write(path, &text).map_err(|fault| vec![fault])?;
        return Ok((String::new(), Vec::new()));
    }
    let report = simulate(&scenario).map_err(|ended| vec![named(command, &ended)])?;
    let without_rules = match &ruled {
        Some(ruled) => match simulate(&ruled.without_rules()) {
            Ok(report) => Some(report),
            Err(ended) => return Err(vec![format!("without rules: {}", named(command, &ended))]),
        },
        None => None,
    };
    let answer = Answer { report: &report, ruled: ruled.as_ref().zip(without_rules.as_ref()) };
    let text = match command.format {
        Format::Text => answer.to_string(),
        Format::Json => answer.json().map_err(|error| vec![error.to_string()])?,
    };
    Ok((format!("{}\n", text.trim_end()), report.missed))
}

fn load(path: &Path, command: &Simulate) -> Result<Scenario, Faults> {
    let text = read(path).map_err(reload::LoadError::Unreadable);
    let scenario = text.and_then(|text| {
        Scenario::parse(&text).map_err(|error| reload::LoadError::Faults(error.faults))
    });
    let mut scenario = scenario.map_err(|error| error.lines(path))?;
    scenario.seed = command.seed.unwrap_or(scenario.seed);
    scenario.pacing = pace(command.pacing).unwrap_or(scenario.pacing);
    Ok(scenario)
}

/// The longest file that is read: whatever has more is no scenario.
const FILE_LEN_MAX: u64 = 2 * 1024 * 1024;

/// As much of a file as one may have: a device has no end.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_LEN_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// A run that was ended before its time, and whose it was.
fn named(command: &Simulate, ended: &TooMuch) -> String {
    match &command.scenario {
        Some(path) => format!("{}: {ended}", path.display()),
        None => format!("the load: {ended}"),
    }
}

fn pace(pacing: Option<Pacing>) -> Option<Pace> {
    pacing.map(|pacing| match pacing {
        Pacing::Adaptive => Pace::Adaptive,
        Pacing::Binary => Pace::Binary,
    })
}

/// A file that is there already is somebody's: it may have been edited.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let named = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{}: it is there already, and is not overwritten", path.display())
        }
        _ => format!("{}: cannot write it: {error}", path.display()),
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(named)
}

fn complain(lines: &[String]) {
    let mut stderr = io::stderr().lock();
    for line in lines {
        drop(writeln!(stderr, "{line}"));
    }
}
