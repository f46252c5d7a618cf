//! `sluice insights`: what have statements cost?

mod table;

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
        TableFormat::Text | TableFormat::Csv => 20,
        TableFormat::Json => 10_000,
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
        ("cluster", &command.cluster),
    ];
    for (key, value) in given.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        path.push_str(&format!("&{key}={}", encoded(value)));
    }
    path
}
