//! `sluice status`: what does the running Sluice do?

mod http;
mod text;

use std::fs;
use std::io::{self, IsTerminal as _, Write};
use std::path::Path;
use std::process::ExitCode;

use self::http::{AskError, Door};
use self::text::Style;
use crate::cli::{Format, Status};

pub(crate) fn run(command: &Status) -> ExitCode {
    match answer(command) {
        Ok(answer) => {
            // A reader that left early (`| head`) has seen what it wanted.
            drop(io::stdout().write_all(answer.as_bytes()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

fn answer(command: &Status) -> Result<String, String> {
    let door = match (&command.admin, &command.config) {
        (Some(admin), _) => Door::parse(admin)?,
        (None, Some(file)) => door_of(file)?,
        (None, None) => Door::default(),
    };
    let path = format!("/api/v1/status?limit={}", command.waiting);
    let body = match door.get(&path) {
        Ok(body) => body,
        Err(AskError::Status(404)) => return Err(who_is_there(&door)),
        Err(error) => return Err(error.in_words(&door)),
    };
    let status: Option<admin::status::Status> = serde_json::from_str(&body).ok();
    // Every field has a default: another program's object would be an empty status.
    let Some(status) = status.filter(|status| !status.version.is_empty()) else {
        return Err(format!("what answers at {door} is not Sluice"));
    };
    Ok(match command.format {
        Format::Json => format!("{}\n", body.trim_end()),
        Format::Text => text::render(&status, style()),
    })
}

/// Where the HTTP side listens that a file describes. Its other faults do not matter: what runs is
/// what was read before.
fn door_of(file: &Path) -> Result<Door, String> {
    let shown = file.display();
    let instead = "say where to ask instead: --admin http://HOST:PORT";
    let text = fs::read_to_string(file)
        .map_err(|error| format!("{shown}: cannot read it: {error}; {instead}"))?;
    match policy::admin_of(&text) {
        Ok(admin) => Ok(Door::of(admin.listen)),
        Err(fault) => {
            Err(format!("{shown}:{}: {}: {}; {instead}", fault.line, fault.path, fault.message))
        }
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

fn style() -> Style {
    let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if wanted && io::stdout().is_terminal() { Style::Coloured } else { Style::Plain }
}
