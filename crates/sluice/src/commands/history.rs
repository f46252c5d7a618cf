//! `sluice history`: what happened?

mod plot;
mod table;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use history::{Answer, At};
use jiff::tz::TimeZone;

use super::door::{Failure, ask, tell};
use super::rules::printable;
use super::zone;
use crate::cli::{Format, History};

pub(crate) fn run(command: &History) -> ExitCode {
    tell(answer(command))
}

fn answer(command: &History) -> Result<String, Failure> {
    let History { app, since, until, cluster, asked, format } = command;
    let zone = zone::local();
    let now = history::watch::wall();
    let since = read(since, now, &zone)?;
    let until = until.as_deref().map(|until| read(until, now, &zone)).transpose()?;
    let mut path = format!("/api/v1/history?since={}", escaped(&since.to_string()));
    let texts = [
        ("until", until.map(|at| at.to_string())),
        ("app", app.clone()),
        ("cluster", cluster.clone()),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            path.push_str(&format!("&{key}={}", escaped(&value)));
        }
    }
    let body = ask(asked, None, ("GET", &path, ""))?;
    let not_sluice = || Failure::refused("what answers there is not Sluice".to_owned());
    let answer: Answer = serde_json::from_str(&body).map_err(|_| not_sluice())?;
    Ok(match format {
        Format::Json => format!("{}\n", body.trim_end()),
        Format::Text => render(&answer, &zone, io::stdout().is_terminal()),
    })
}

fn read(text: &str, now: At, zone: &TimeZone) -> Result<At, Failure> {
    history::time::parse(text, now, zone).map_err(Failure::usage)
}

/// Sentences, a plot where somebody looks, the table.
fn render(answer: &Answer, zone: &TimeZone, is_terminal: bool) -> String {
    let mut text = String::new();
    for sentence in history::words::sentences(answer, zone) {
        text.push_str(&printable(&sentence));
        text.push('\n');
    }
    if is_terminal {
        text.push_str(&plot::plots(answer));
    }
    text.push_str(&table::table(answer, zone));
    text
}

/// As a part of a URL.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
