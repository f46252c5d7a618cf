//! Asking the admin port of a running Sluice.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Deserialize;

use super::http::{Answer, AskError, Door, Request};
use crate::cli::Asked;

/// Why a command has no answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) told: Told,
    pub(crate) message: String,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// The command line is wrong.
    Usage,
    /// Sluice has refused, or nobody answers, or the answer cannot be written.
    Refused,
    /// Sluice has nothing of that name.
    Absent,
}

impl Failure {
    pub(crate) fn usage(message: String) -> Self {
        Self { told: Told::Usage, message }
    }

    pub(crate) fn refused(message: String) -> Self {
        Self { told: Told::Refused, message }
    }
}

/// What Sluice says when it refuses.
#[derive(Debug, Deserialize)]
struct Refusal {
    error: String,
    message: String,
    remedy: Option<String>,
}

impl Refusal {
    fn told(&self) -> Told {
        if self.error == "not_found" { Told::Absent } else { Told::Refused }
    }
}

/// Prints what came of it: the text, or why there is none.
pub(crate) fn tell(answer: Result<String, Failure>) -> ExitCode {
    match answer.and_then(|text| print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => complain(&failure),
    }
}

/// Writes an answer, or fails because not all of it could be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of writing an answer.
pub(crate) fn written(result: io::Result<()>) -> Result<(), Failure> {
    match result {
        Ok(()) => Ok(()),
        // A reader that left early (`| head`) has seen what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::refused(format!("cannot write the answer: {error}"))),
    }
}

/// Says why there is no answer.
pub(crate) fn complain(failure: &Failure) -> ExitCode {
    drop(writeln!(io::stderr(), "{}", failure.message));
    match failure.told {
        Told::Refused | Told::Absent => ExitCode::FAILURE,
        Told::Usage => ExitCode::from(2),
    }
}

/// The body of the answer to a method, a path and a body.
pub(crate) fn ask(
    asked: &Asked,
    token: Option<&str>,
    (method, path, body): (&str, &str, &str),
) -> Result<String, Failure> {
    let door = door(asked).map_err(Failure::usage)?;
    let answer = door.ask(&Request { method, path, token, body });
    let answer = answer.map_err(|error| Failure::refused(error.in_words(&door)))?;
    if answer.status == 200 {
        return Ok(answer.body);
    }
    Err(refused(&door, path, &answer))
}

/// What an answer that is none says, with what to do about it.
pub(super) fn refused(door: &Door, path: &str, answer: &Answer) -> Failure {
    match serde_json::from_str::<Refusal>(&answer.body) {
        Ok(refusal) => Failure { told: refusal.told(), message: in_words(&refusal) },
        Err(_) => Failure::refused(match answer.status {
            404 | 405 => {
                format!("what answers at {door} has no {path}: an older Sluice, or another program")
            }
            status => AskError::Status(status).in_words(door),
        }),
    }
}

fn in_words(Refusal { error, message, remedy }: &Refusal) -> String {
    let remedy = match (error.as_str(), remedy) {
        ("no_token" | "wrong_token", _) => Some(
            "the token comes from the environment variable SLUICE_ADMIN_TOKEN, --token-env or \
             --token-file",
        ),
        (_, Some(remedy)) => Some(remedy.as_str()),
        (_, None) => None,
    };
    match remedy {
        Some(remedy) => format!("refused: {message}; {remedy}"),
        None => format!("refused: {message}"),
    }
}

/// Where to ask, and whom to believe there.
pub(crate) fn door(asked: &Asked) -> Result<Door, String> {
    let Asked { admin, config, ca } = asked;
    match (admin, config) {
        (Some(admin), _) => Door::parse(admin, ca.as_deref().or(system_ca().as_deref())),
        (None, Some(file)) => door_of(file, ca.as_deref()),
        (None, None) => Ok(Door::default()),
    }
}

/// Where the HTTP side listens that a file describes. Its other faults do not matter: what runs is
/// what was read before.
fn door_of(file: &Path, ca: Option<&Path>) -> Result<Door, String> {
    let shown = file.display();
    let instead = "say where to ask instead: --admin http://HOST:PORT";
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{shown}: cannot read it: {error}; {instead}"))?;
    match policy::admin_of(&text) {
        Ok(admin) => match &admin.tls {
            // Its own certificate is as good as who has signed it.
            Some(tls) => Door::of(admin.listen).encrypted(ca.unwrap_or(&tls.cert.path)),
            None => Ok(Door::of(admin.listen)),
        },
        Err(fault) => {
            Err(format!("{shown}:{}: {}: {}; {instead}", fault.line, fault.path, fault.message))
        }
    }
}

/// Where systems keep the certificates that they trust.
fn system_ca() -> Option<PathBuf> {
    let known = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
    known.iter().map(PathBuf::from).find(|path| path.exists())
}
