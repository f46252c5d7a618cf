//! `sluice quarantine`: what is refused because its like ran away, and freeing it.

use std::process::ExitCode;

use admin::quarantine::{Freed, KeptFree, Quarantine, QuarantineEntry};

use super::door::{Failure, Told, ask, complain, print, tell};
use super::rules::{encoded, printable, read, read_token, whole_line};
use crate::cli::{Format, Quarantine as Command};

const PATH: &str = "/api/v1/quarantine";

/// All of them, in place of an id.
const ALL: &str = "all";

pub(crate) fn run(command: &Command) -> ExitCode {
    if command.freed.is_empty() {
        return tell(list(command));
    }
    match free(command) {
        Ok(Freeing { told, failure }) => {
            let printed = print(&told).err();
            failure.or(printed).map_or(ExitCode::SUCCESS, |failure| complain(&failure))
        }
        Err(failure) => complain(&failure),
    }
}

fn list(command: &Command) -> Result<String, Failure> {
    let body = ask(&command.asked, None, ("GET", PATH, ""))?;
    match command.format {
        Format::Json => Ok(whole_line(&body)),
        Format::Text => Ok(table(&read(&body)?)),
    }
}

/// What has come of freeing some.
#[derive(Debug, Default)]
struct Freeing {
    /// A line for each.
    told: String,
    /// Why not all of them are free by it.
    failure: Option<Failure>,
}

fn free(command: &Command) -> Result<Freeing, Failure> {
    let token = read_token(&command.token)?;
    let mut freed = |id: &str| {
        let path = format!("{PATH}/{}", encoded(id));
        ask(&command.asked, token.as_deref(), ("DELETE", &path, ""))
    };
    if !command.freed.iter().any(|id| id == ALL) {
        return Ok(each(&command.freed, Gone::IsWrong, command.format, &mut freed));
    }
    let standing: Quarantine = read(&ask(&command.asked, None, ("GET", PATH, ""))?)?;
    let ids: Vec<String> = standing.quarantine.into_iter().map(|entry| entry.id).collect();
    if ids.is_empty() && command.format == Format::Text {
        return Ok(Freeing { told: NOTHING.to_owned(), failure: None });
    }
    Ok(each(&ids, Gone::IsFree, command.format, &mut freed))
}

/// What it means that one of them is not in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// It was listed a moment ago: it is free, as it is meant to be.
    IsFree,
    /// Whoever named it has meant another one.
    IsWrong,
}

/// One after the other, also behind one that is not there; up to the first that Sluice refuses to free.
fn each(
    ids: &[String],
    gone: Gone,
    format: Format,
    freed: &mut impl FnMut(&str) -> Result<String, Failure>,
) -> Freeing {
    let mut freeing = Freeing::default();
    for id in ids {
        let told = match (freed(id), format) {
            (Ok(body), Format::Json) => whole_line(&body),
            (Ok(body), Format::Text) => format!("{}: free{}\n", printable(id), until(&body)),
            (Err(Failure { told: Told::Absent, message }), _) => {
                if gone == Gone::IsWrong {
                    freeing.failure.get_or_insert(Failure::refused(message));
                }
                absent(id, format)
            }
            (Err(failure), _) => {
                freeing.failure = Some(failure);
                return freeing;
            }
        };
        freeing.told.push_str(&told);
    }
    freeing
}

/// Until when it is free, if that is not for good.
fn until(body: &str) -> String {
    match read(body).map(|freed: Freed| freed.kept) {
        Ok(Some(KeptFree { outlives_restart: false, file_error, .. })) => {
            let why = file_error.as_deref().map(printable).unwrap_or_default();
            format!(", but not on disk yet ({why}): a restart before that brings it back")
        }
        Ok(_) | Err(_) => String::new(),
    }
}

fn absent(id: &str, format: Format) -> String {
    match format {
        Format::Json => format!("{}\n", serde_json::json!({ "done": "nothing", "id": id })),
        Format::Text => format!("{}: not in quarantine\n", printable(id)),
    }
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

    /// Its time was over between the list and the DELETE: the others stayed in quarantine.
    #[test]
    fn the_others_are_freed_when_one_is_gone_meanwhile() {
        let ids = ["main:1", "main:2", "main:3"].map(str::to_owned);
        let of = |gone, format| {
            each(&ids, gone, format, &mut |id| match id {
                "main:2" => Err(Failure { told: Told::Absent, message: "there is nothing".into() }),
                id => Ok(format!("{{\"done\":\"freed\",\"id\":\"{id}\"}}")),
            })
        };
        let Freeing { told, failure } = of(Gone::IsFree, Format::Text);
        assert_eq!(told, "main:1: free\nmain:2: not in quarantine\nmain:3: free\n");
        assert!(failure.is_none(), "{failure:?}");
        let Freeing { told, failure } = of(Gone::IsWrong, Format::Json);
        let lines = "{\"done\":\"freed\",\"id\":\"main:1\"}\n{\"done\":\"nothing\",\"id\":\"main:2\"}\n\
                     {\"done\":\"freed\",\"id\":\"main:3\"}\n";
        assert_eq!(told, lines);
        assert_eq!(failure.map(|failure| failure.message).as_deref(), Some("there is nothing"));
    }

    #[test]
    fn what_was_freed_ahead_of_a_refusal_is_told() {
        let ids = ["main:1", "main:2", "main:3"].map(str::to_owned);
        let mut asked = Vec::new();
        let Freeing { told, failure } = each(&ids, Gone::IsFree, Format::Text, &mut |id| {
            asked.push(id.to_owned());
            let kept = "{\"kept\":{\"outlives_restart\":false,\"file_error\":\"it is locked\"}}";
            if id == "main:2" { Err(Failure::refused("no answer".into())) } else { Ok(kept.into()) }
        });
        let not_kept = "main:1: free, but not on disk yet (it is locked): a restart before that \
                        brings it back\n";
        assert_eq!((told.as_str(), asked.len()), (not_kept, 2));
        assert_eq!(failure.map(|failure| failure.message).as_deref(), Some("no answer"));
    }

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
