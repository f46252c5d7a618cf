//! `sluice insights`: what have statements cost?

mod table;

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::ExitCode;

use super::door::{Failure, ask, tell};
use super::rules::{encoded, whole_line};
use crate::cli::{Insights, TableFormat};

pub(crate) fn run(command: &Insights) -> ExitCode {
    tell(answer(command))
}

fn answer(command: &Insights) -> Result<String, Failure> {
    let body = ask(&command.asked, None, ("GET", &path(command), ""))?;
    if command.format == TableFormat::Json {
        return Ok(whole_line(&body));
    }
    let shown: admin::insights::Insights = serde_json::from_str(&body)
        .map_err(|error| Failure::refused(format!("what was answered is not Sluice's: {error}")))?;
    Ok(match command.format {
        TableFormat::Json => body,
        TableFormat::Csv => table::csv(&shown),
        TableFormat::Text => table::text(&shown),
    })
}

fn path(command: &Insights) -> String {
    let Insights { by, sort, window, compare, .. } = command;
    let limit = command.limit.unwrap_or(match command.format {
        TableFormat::Text => 20,
        TableFormat::Csv | TableFormat::Json => 10_000,
    });
    let mut path = format!(
        "/api/v1/insights?by={}&sort={}&window={}&limit={limit}",
        encoded(by),
        encoded(sort),
        encoded(window)
    );
    let given = [
        ("compare", compare),
        ("app", &command.app),
        ("schema", &command.schema),
        ("user", &command.user),
        ("digest", &command.digest),
        ("tag", &command.tag),
        ("cluster", &command.cluster),
    ];
    for (key, value) in given.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        path.push_str(&format!("&{key}={}", encoded(value)));
    }
    path
}

/// The longest file that is read: ten thousand rows have some 15 MiB.
const LEN_MAX: u64 = 256 << 20;

/// Rows by digest that `sluice insights --format json` has written; `-` is standard input. Why not,
/// with the file's name.
pub(super) fn read(path: &Path) -> Result<admin::insights::Insights, String> {
    read_text(path)
        .and_then(|text| parsed(&text))
        .map_err(|why| format!("{}: {why}", path.display()))
}

/// The same of an answer.
pub(super) fn parsed(text: &str) -> Result<admin::insights::Insights, String> {
    let shown: admin::insights::Insights = serde_json::from_str(text)
        .map_err(|error| format!("these are no insights: {error}; {HOW}"))?;
    match shown.by.as_str() {
        "digest" => Ok(shown),
        "" => Err(format!("these are no insights; {HOW}")),
        by => Err(format!(
            "its rows are by {by:?}, and only rows by digest say what the statements were; take it \
             with --by digest"
        )),
    }
}

const HOW: &str = "it is what `sluice insights --window 1d --format json` writes";

fn read_text(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(LEN_MAX).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(LEN_MAX).read_to_string(&mut text))
    };
    match read {
        Ok(_) => Ok(text),
        Err(error) => Err(format!("cannot read it: {error}; {HOW}")),
    }
}
