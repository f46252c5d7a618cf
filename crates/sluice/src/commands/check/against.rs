//! `sluice check --against`: what would the file have done to the statements of the last day?

mod budgets;
mod digests;
mod past;
mod peaks;
mod report;
mod runaways;
mod tally;
mod text;

use std::path::Path;

use admin::insights::Insights;
use policy::{Config, UnixTime};

use self::report::Report;
use self::tally::Tally;
use super::super::insights::read;
use crate::cli::Format;

/// What is printed, or why there is nothing.
pub(super) fn answer(config: &Config, path: &Path, format: Format) -> Result<String, String> {
    let shown = read(path)?;
    let report = replayed(config, &shown).map_err(|why| format!("{}: {why}", path.display()))?;
    match format {
        Format::Text => Ok(text::of(&report)),
        Format::Json => serde_json::to_string(&report)
            .map(|json| json + "\n")
            .map_err(|error| error.to_string()),
    }
}

/// Puts every row through the file.
fn replayed(config: &Config, shown: &Insights) -> Result<Report, String> {
    let time = |text: &str| text.parse::<UnixTime>().ok();
    let (Some(from), Some(to)) = (time(&shown.from), time(&shown.to)) else {
        return Err("it does not say when its window begins and ends".to_owned());
    };
    if to < from {
        return Err(format!("its window ends at {to}, before it begins at {from}"));
    }
    let mut tally = Tally::new(config, shown, (from, to));
    for row in &shown.rows {
        tally.add(row);
    }
    Ok(tally.report())
}
