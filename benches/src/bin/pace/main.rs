//! Writers through Sluice with an adaptive pace, with the binary one, and without Sluice, in front of a replica that
//! is slower than its primary.
//!
//!   pace [ROUNDS = 3] [SECONDS of one block = 20] [WARM-UP = 10] [FOLDER for the plot] [FOLDER for series]
//!
//! Prints Markdown. The machine is shared and its speed drifts, so the ways take turns in short blocks; figures are over
//! all blocks of a way. Each block begins with a replica that has caught up and a Sluice that has just started, and
//! is measured after a warm-up. The lag is measured without Sluice, every 20 ms, by a row of the benchmark's
//! own that is written every 50 ms.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod plot;
mod setup;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use benches::Result;
use benches::way::Way;

use crate::setup::Setup;
use crate::watch::Measured;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().map_or(Ok(default), |text| text.parse());
    let rounds = number(3)?;
    let seconds = Duration::from_secs(number(20)?);
    let warm_up = Duration::from_secs(number(10)?);
    let mut folder = || args.next().map(PathBuf::from);
    let (plot_folder, series_folder) = (folder(), folder());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut setup = Setup::start().await?;
        let mut all = Way::ALL.map(Measured::new);
        for round in 1..=rounds {
            for measured in &mut all {
                eprintln!("pace: round {round}, {}", measured.way.as_str());
                setup.measure(measured, warm_up, seconds).await?;
                setup.catch_up().await?;
            }
        }
        report(&all);
        if let Some(folder) = plot_folder {
            std::fs::write(folder.join("pace.svg"), plot::svg(&all))?;
        }
        if let Some(folder) = series_folder {
            for measured in &all {
                measured
                    .write_series(&folder.join(format!("pace-{}.csv", measured.way.as_str())))?;
            }
        }
        Ok(())
    })
}

fn report(all: &[Measured]) {
    println!(
        "| way | lag p50 | p99 | max | at or over 1 s | rows applied a second | ÷ binary's | rows committed a second |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let binary = all.iter().find(|measured| measured.way == Way::Binary);
    let binary = binary.map_or(f64::NAN, Measured::applied_per_s);
    for measured in all {
        let lag = |part| measured.lag.quantile(part).as_secs_f64();
        println!(
            "| {} | {:.2} s | {:.2} s | {:.2} s | {:.1} % | {:.0} | {:.2} | {:.0} |",
            measured.way.as_str(),
            lag(0.5),
            lag(0.99),
            lag(1.0),
            100.0 * measured.lag.share_from(setup::THRESHOLD),
            measured.applied_per_s(),
            measured.applied_per_s() / binary,
            measured.committed_per_s(),
        );
    }
}
