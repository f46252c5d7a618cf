//! `sluice quarantine`: what is refused because its like ran away, and freeing it.

use std::process::ExitCode;

use admin::quarantine::{Quarantine, QuarantineEntry};

use super::door::{Failure, ask, tell};
use super::rules::{encoded, printable, read, read_token, whole_line};
use crate::cli::{Format, Quarantine as Command};

const PATH: &str = "/api/v1/quarantine";

/// All of them, in place of an id.
const ALL: &str = "all";

pub(crate) fn run(command: &Command) -> ExitCode {
    tell(if command.freed.is_empty() { list(command) } else { free(command) })
}

fn list(command: &Command) -> Result<String, Failure> {
    let body = ask(&command.asked, None, ("GET", PATH, ""))?;
    match command.format {
        Format::Json => Ok(whole_line(&body)),
        Format::Text => Ok(table(&read(&body)?)),
    }
}

/// One after the other, up to the first that is not there.
fn free(command: &Command) -> Result<String, Failure> {
    let token = read_token(&command.token)?;
    let mut ids = command.freed.clone();
    if ids.iter().any(|id| id == ALL) {
        let standing: Quarantine = read(&ask(&command.asked, None, ("GET", PATH, ""))?)?;
        ids = standing.quarantine.into_iter().map(|entry| entry.id).collect();
    }
    let mut told = String::new();
    for id in &ids {
        let path = format!("{PATH}/{}", encoded(id));
        let body = ask(&command.asked, token.as_deref(), ("DELETE", &path, ""))?;
        told.push_str(&match command.format {
            Format::Json => whole_line(&body),
            Format::Text => format!("{}: free\n", printable(id)),
        });
    }
    if ids.is_empty() && command.format == Format::Text {
        told.push_str(NOTHING);
    }
    Ok(told)
}

const NOTHING: &str = "nothing is in quarantine\n";

fn table(shown: &Quarantine) -> String {
    if shown.quarantine.is_empty() {
        return NOTHING.to_owned();
    }
    shown.quarantine.iter().map(line).collect()
}

fn line(entry: &QuarantineEntry) -> String {
    let QuarantineEntry { id, rule, by, hash, action, app, until, left_s, .. } = entry;
    let becomes = if action == "deprioritise" { "one at a time" } else { "refused" };
    format!(
        "{:<12} {by} {hash} · {becomes} until {until} ({left_s} s) · ran away from rule {} as {}\n",
        printable(id),
        printable(rule),
        printable(app)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_of_it_and_for_how_long_is_in_its_line() {
        let killed = QuarantineEntry {
            id: "main:1".into(),
            rule: "slow".into(),
            by: "digest".into(),
            hash: "056a126becd55dc6".into(),
            action: "kill".into(),
            app: "rep\u{1b}[2J".into(),
            until: "2026-12-01T00:01:00Z".into(),
            left_s: 60,
            ..QuarantineEntry::default()
        };
        let late = QuarantineEntry { action: "deprioritise".into(), ..killed.clone() };
        let shown = Quarantine { now: String::new(), quarantine: vec![killed, late] };
        let told = "main:1       digest 056a126becd55dc6 · refused until 2026-12-01T00:01:00Z (60 s) \
                    · ran away from rule slow as rep\u{fffd}[2J\n";
        assert_eq!(table(&shown), format!("{told}{}", told.replace("refused", "one at a time")));
        assert_eq!(table(&Quarantine::default()), NOTHING);
    }
}
