//! `sluice check`: is the file good, what does it say, and can it work?

mod against;
mod servers;
mod summary;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use policy::Fault;
use proxy::probe::trial::{Trial, Weight};
use proxy::reload;

use crate::cli::{Check, Format};

pub(crate) fn run(check: &Check) -> ExitCode {
    let loaded = match reload::load_to_run(&check.config) {
        Ok(loaded) => loaded,
        Err(error) => {
            let lines = error.lines(&check.config);
            complain(&lines);
            complain(&[count(lines.len(), "fault")]);
            return ExitCode::FAILURE;
        }
    };
    // Whoever reads JSON reads nothing else.
    let tells = check.format == Format::Text;
    if tells {
        let summary = summary::of(&loaded.config, loaded.warnings.len());
        // A reader that left early (`| head`) has seen what it wanted.
        drop(io::stdout().write_all(summary.as_bytes()));
    }
    complain(&warnings(&loaded.warnings, &check.config));
    if let Some(insights) = &check.against {
        match against::answer(&loaded.config, insights, check.format) {
            Ok(text) => drop(io::stdout().write_all(text.as_bytes())),
            Err(why) => {
                complain(&[why]);
                return ExitCode::FAILURE;
            }
        }
    }
    let mut faults = 0_usize;
    let mut warnings = loaded.warnings.len();
    if check.connect {
        let trials = match servers::try_all(&loaded.config) {
            Ok(trials) => trials,
            Err(error) => {
                complain(&[format!("cannot connect to anything: {error}")]);
                return ExitCode::FAILURE;
            }
        };
        if tells {
            drop(io::stdout().write_all(servers::told(&trials).as_bytes()));
        }
        faults = found(&trials, Weight::Fault);
        warnings = warnings.saturating_add(found(&trials, Weight::Warning));
    }
    for (number, thing) in [(faults, "fault"), (warnings, "warning")] {
        if number > 0 {
            complain(&[count(number, thing)]);
        }
    }
    if faults > 0 || (check.strict && warnings > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn complain(lines: &[String]) {
    let mut stderr = io::stderr().lock();
    for line in lines {
        drop(writeln!(stderr, "{line}"));
    }
}

/// Each warning as a line of its own: `FILE:LINE: warning: path: message`.
fn warnings(warnings: &[Fault], path: &Path) -> Vec<String> {
    let file = path.display();
    let line = |Fault { path, line, message }: &Fault| {
        format!("{file}:{line}: warning: {path}: {message}")
    };
    warnings.iter().map(line).collect()
}

fn found(trials: &[Trial], weight: Weight) -> usize {
    let findings = trials.iter().flat_map(|trial| &trial.findings);
    findings.filter(|finding| finding.weight == weight).count()
}

/// `1 rule`, `2 rules`.
fn count(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
