//! `sluice check --against`: what would the file have done to the statements of the last day?

mod budgets;
mod past;
mod report;
mod tally;
mod text;

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use admin::insights::Insights;
use policy::{Config, UnixTime};

use self::report::Report;
use self::tally::Tally;
use crate::cli::Format;

/// The longest file that is read: ten thousand rows have some 15 MiB.
const LEN_MAX: u64 = 256 << 20;

/// What is printed, or why there is nothing.
pub(super) fn answer(config: &Config, path: &Path, format: Format) -> Result<String, String> {
    let shown = read(path).map_err(|why| format!("{}: {why}", path.display()))?;
    let report = replayed(config, &shown).map_err(|why| format!("{}: {why}", path.display()))?;
    match format {
        Format::Text => Ok(text::of(&report)),
        Format::Json => serde_json::to_string(&report)
            .map(|json| json + "\n")
            .map_err(|error| error.to_string()),
    }
}

fn read(path: &Path) -> Result<Insights, String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(LEN_MAX).read_to_string(&mut text)
    } else {
        fs::File::open(path).and_then(|file| file.take(LEN_MAX).read_to_string(&mut text))
    };
    let how = "it is what `sluice insights --window 1d --format json` writes";
    read.map_err(|error| format!("cannot read it: {error}; {how}"))?;
    let shown: Insights = serde_json::from_str(&text)
        .map_err(|error| format!("these are no insights: {error}; {how}"))?;
    if shown.by.is_empty() { Err(format!("these are no insights; {how}")) } else { Ok(shown) }
}

/// Puts every row through the file.
fn replayed(config: &Config, shown: &Insights) -> Result<Report, String> {
    if shown.by != "digest" {
        return Err(format!(
            "its rows are by {:?}, and only rows by digest say what the statements were; take it \
             with --by digest",
            shown.by
        ));
    }
    let time = |text: &str| text.parse::<UnixTime>().ok();
    let (Some(from), Some(to)) = (time(&shown.from), time(&shown.to)) else {
        return Err("it does not say when its window begins and ends".to_owned());
    };
    let mut tally = Tally::new(config, shown, (from, to));
    for row in &shown.rows {
        tally.add(row);
    }
    Ok(tally.report())
}
