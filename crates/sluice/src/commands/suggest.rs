//! `sluice suggest`: a first rule file, from what statements have cost.

mod apps;
mod write;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use admin::insights::Insights;
use policy::UnixTime;

use self::apps::apps;
use super::door::{Failure, ask, tell};
use super::insights::{parsed, read};
use super::rules::encoded;
use crate::cli::Suggest;

pub(crate) fn run(command: &Suggest) -> ExitCode {
    tell(answer(command))
}

fn answer(command: &Suggest) -> Result<String, Failure> {
    let shown = match &command.from {
        Some(path) => read(path),
        None => {
            let window = encoded(&command.window);
            let path = format!("/api/v1/insights?by=digest&window={window}&limit=10000");
            parsed(&ask(&command.asked, None, ("GET", &path, ""))?)
        }
    };
    let shown: Insights = shown.map_err(Failure::refused)?;
    let apps = apps(&shown);
    if apps.is_empty() {
        return Err(Failure::refused(nothing(&shown)));
    }
    if let Some(short) = write::short(&shown) {
        // The file goes elsewhere, mostly.
        drop(writeln!(io::stderr(), "{short}"));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(write::file(&shown, apps, UnixTime(i64::try_from(now).unwrap_or(i64::MAX))))
}

/// Why there is no app to suggest anything for.
fn nothing(shown: &Insights) -> String {
    match shown.total.count.saturating_add(shown.total.refused) {
        0 if !shown.enabled => "nothing is counted: insights.enabled of the file is false".into(),
        0 => {
            "no statement has come in that window: there is nothing to suggest anything from".into()
        }
        came => format!(
            "{came} statements have come in that window, and all of them are counted as `other`: \
             with a larger insights.max_digests they have rows with their apps"
        ),
    }
}
