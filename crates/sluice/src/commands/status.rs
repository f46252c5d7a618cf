//! `sluice status`: what does the running Sluice do?

pub(super) mod text;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use self::text::Style;
use super::door::{self, Failure};
use super::http::{Door, Request};
use crate::cli::{Format, Status};

pub(crate) fn run(command: &Status) -> ExitCode {
    door::tell(answer(command))
}

fn answer(command: &Status) -> Result<String, Failure> {
    let door = door::door(&command.asked).map_err(Failure::usage)?;
    let (body, status) = look(&door, command.waiting).map_err(Failure::refused)?;
    Ok(match command.format {
        Format::Json => format!("{}\n", body.trim_end()),
        Format::Text => text::render(&status, style()),
    })
}

/// The status as it came, and as it is read, with so many of the waiting statements of each cluster.
pub(super) fn look(door: &Door, waiting: u16) -> Result<(String, admin::status::Status), String> {
    let path = format!("/api/v1/status?limit={waiting}");
    let asked = Request { method: "GET", path: &path, token: None, body: "" };
    let answer = door.ask(&asked).map_err(|error| error.in_words(door))?;
    let body = match answer.status {
        200 => answer.body,
        404 => return Err(who_is_there(door)),
        _ => return Err(door::refused(door, &path, &answer).message),
    };
    let status: Option<admin::status::Status> = serde_json::from_str(&body).ok();
    // Every field has a default: another program's object would be an empty status.
    match status.filter(|status| !status.version.is_empty()) {
        Some(status) => Ok((body, status)),
        None => Err(format!("what answers at {door} is not Sluice")),
    }
}

/// Somebody who speaks HTTP and has no such page.
fn who_is_there(door: &Door) -> String {
    let metrics = door.get("/metrics").unwrap_or_default();
    let build = metrics.lines().find_map(|line| line.strip_prefix("sluice_build_info{version=\""));
    match build.and_then(|rest| rest.split_once('"')) {
        Some((version, _)) => format!(
            "the Sluice at {door} is version {version}, which has no /api/v1/status: its page is {door}/"
        ),
        None => format!(
            "what answers at {door} is not Sluice: it has neither /api/v1/status nor Sluice's metrics"
        ),
    }
}

pub(super) fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && io::stdout().is_terminal() { Style::Coloured } else { Style::Plain }
}
