//! `sluice check`: is the file good, what does it say, and can it work?

mod against;
mod servers;
mod state_dir;
mod summary;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use policy::Fault;
use proxy::probe::trial::{Trial, Weight};
use proxy::reload;

use super::door::{self, Failure, print};
use crate::cli::{Check, Format};

pub(crate) fn run(check: &Check) -> ExitCode {
    answer(check).unwrap_or_else(|failure| door::complain(&failure))
}

fn answer(check: &Check) -> Result<ExitCode, Failure> {
    let loaded = match reload::load_to_run(&check.config) {
        Ok(loaded) => loaded,
        Err(error) => {
            let lines = error.lines(&check.config);
            complain(&lines);
            return Err(Failure::refused(count(lines.len(), "fault")));
        }
    };
    // Whoever reads JSON reads nothing else.
    let tells = check.format == Format::Text;
    if tells {
        print(&summary::of(&loaded.config, loaded.warnings.len()))?;
    }
    complain(&warnings(&loaded.warnings, &check.config));
    if let Some(insights) = &check.against {
        let answer = against::answer(&loaded.config, insights, check.format);
        print(&answer.map_err(Failure::refused)?)?;
    }
    let mut faults = 0_usize;
    let mut warnings = loaded.warnings.len();
    if check.connect {
        let trials = servers::try_all(&loaded.config)
            .map_err(|error| Failure::refused(format!("cannot connect to anything: {error}")))?;
        if tells {
            print(&servers::told(&trials))?;
        }
        let state_dir = loaded.config.state_dir.as_deref().and_then(state_dir::trouble);
        complain(state_dir.as_slice());
        warnings = warnings.saturating_add(state_dir.iter().len());
        faults = found(&trials, Weight::Fault);
        warnings = warnings.saturating_add(found(&trials, Weight::Warning));
    }
    for (number, thing) in [(faults, "fault"), (warnings, "warning")] {
        if number > 0 {
            complain(&[count(number, thing)]);
        }
    }
    let is_bad = faults > 0 || (check.strict && warnings > 0);
    Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
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
