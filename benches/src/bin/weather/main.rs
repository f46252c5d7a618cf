//! Everyday weather over a real replica that is slower than its primary: transactions that last, a
//! new job, a replica that becomes slow, restarts, refusals, a light writer beside heavy ones; each
//! with an adaptive pace, with the binary one, and without Sluice.
//!
//!   weather FOLDER for what was seen  FOLDER for the plot  [NAMES of weathers, all if none]
//!
//! `drop:adaptive` is `drop` in that way alone.
//!
//! Prints Markdown. Each way of a weather has new servers and a new Sluice, takes a minute or so,
//! and begins with measuring what the replica can apply of what the job writes. The lag is that of
//! the benchmark's own row, written on the primary every 50 ms and looked for at the replica every
//! 20 ms. The plot has all weathers that the first folder knows of, so they can be run one by one.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod figures;
mod kept;
mod load;
mod plot;
mod report;
mod run;
mod sluice;
mod stage;
mod weathers;

use std::path::{Path, PathBuf};
use std::time::Duration;

use benches::Result;
use benches::way::Way;

use crate::kept::Kept;
use crate::weathers::Weather;

/// The default of `signals.lag.threshold` in the harness.
pub(crate) const THRESHOLD: Duration = Duration::from_secs(1);

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut folder = || args.next().map(PathBuf::from).ok_or("weather FOLDER FOLDER [NAMES]");
    let (seen_folder, plot_folder) = (folder()?, folder()?);
    let wanted = asked_for(&args.collect::<Vec<String>>())?;
    std::fs::create_dir_all(&seen_folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for (weather, ways) in &wanted {
            in_ways(weather, ways, &seen_folder).await?;
        }
        let kept = Weather::all()
            .into_iter()
            .filter_map(|weather| Some((weather.name, Kept::read(&weather, &seen_folder)?)));
        let plot = plot::svg(&kept.collect::<Vec<_>>());
        Ok(std::fs::write(plot_folder.join("weather.svg"), plot)?)
    })
}

async fn in_ways(weather: &Weather, ways: &[Way], folder: &Path) -> Result<()> {
    let mut all_seen = Vec::new();
    for way in ways {
        eprintln!("weather: {}, {}", weather.name, way.as_str());
        let seen = run::run(weather, *way, folder).await?;
        kept::write_said(weather, &seen, folder)?;
        all_seen.push(seen);
    }
    Kept::of(&all_seen).write(weather, folder)?;
    let text = report::markdown(weather, &all_seen);
    std::fs::write(folder.join(format!("{}.md", weather.name)), &text)?;
    println!("{text}");
    Ok(())
}

/// The weathers that are asked for, each with the ways that it is to be run in.
fn asked_for(names: &[String]) -> Result<Vec<(Weather, Vec<Way>)>> {
    if names.is_empty() {
        return Ok(Weather::all().map(|weather| (weather, Way::ALL.into())).into());
    }
    let known = Weather::all().map(|weather| weather.name).join(", ");
    let unknown = |name: &str| format!("no weather is called {name}; there are {known}");
    let one = |asked: &String| -> Result<(Weather, Vec<Way>)> {
        let (name, way) = asked.split_once(':').unwrap_or((asked, ""));
        let weather = Weather::named(name).ok_or_else(|| unknown(name))?;
        let ways = Way::ALL.into_iter().filter(|of| way.is_empty() || of.as_str() == way);
        let ways: Vec<Way> = ways.collect();
        if ways.is_empty() {
            return Err(
                format!("{asked}: {way} is no way; there are adaptive, binary, direct").into()
            );
        }
        Ok((weather, ways))
    };
    names.iter().map(one).collect()
}
