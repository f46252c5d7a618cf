//! What the servers of a file say to it.

use std::io;

use policy::Config;
use proxy::probe::trial::{Finding, Trial, Weight, try_servers};

/// Asks all of them.
///
/// # Errors
/// When this machine does not let a program wait for sockets.
pub(super) fn try_all(config: &Config) -> io::Result<Vec<Trial>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let trials = runtime.block_on(try_servers(config));
    // A name that is still looked up is waited for by nobody.
    runtime.shutdown_background();
    Ok(trials)
}

/// A line for each server, and below it what is to be done.
pub(super) fn told(trials: &[Trial]) -> String {
    let mut text = String::new();
    for Trial { path, server, answered, findings } in trials {
        let answered = answered.as_deref().unwrap_or("not logged in");
        text += &format!("\n{path}: {server}: {}\n", one_line(answered));
        for Finding { weight, message, statement } in findings {
            let weight = match weight {
                Weight::Fault => "fault",
                Weight::Warning => "warning",
                Weight::Note => "note",
            };
            text += &format!("  {weight}: {}\n", one_line(message));
            if let Some(statement) = statement {
                text += &format!("    {}\n", one_line(statement));
            }
        }
        if findings.iter().all(|finding| finding.weight == Weight::Note) {
            text += "  all that the file needs of it works\n";
        }
    }
    text
}

/// What servers say, in one line of a terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
