//! One line for each scenario and seed: `cargo run --release -p simulate --example table [SEED…] [NAME…]`.
#![expect(clippy::print_stdout, reason = "a table for people")]
#![expect(clippy::disallowed_methods, reason = "how long a run takes is of interest here")]

use std::error::Error;
use std::time::Instant;
use std::{env, fs};

use simulate::{Report, Scenario, simulate};

fn main() -> Result<(), Box<dyn Error>> {
    let (seeds, names): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.parse::<u64>().is_ok());
    let seeds: Vec<u64> = seeds.iter().filter_map(|word| word.parse().ok()).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut paths: Vec<_> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    paths.sort();
    println!(
        "{:20} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6}  missed",
        "scenario", "seed", "used", "over", "p50", "p99", "max", "ratio", "ms"
    );
    for path in paths {
        let mut scenario = Scenario::parse(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        if !names.is_empty() && !names.contains(&scenario.name) {
            continue;
        }
        let own = [scenario.seed];
        for &seed in if seeds.is_empty() { own.as_slice() } else { seeds.as_slice() } {
            scenario.seed = seed;
            let begun = Instant::now();
            let report = simulate(&scenario);
            print_line(&report, begun.elapsed().as_millis());
        }
    }
    Ok(())
}

fn print_line(report: &Report, took_ms: u128) {
    let rows: Vec<f64> = report.apps.iter().map(|(_, app)| app.rows_per_s).collect();
    let ratio = match rows.as_slice() {
        [first, second, ..] if *first > 0.0 => second / first,
        _ => 0.0,
    };
    println!(
        "{:20} {:>5} {:>7.4} {:>7.4} {:>7.3} {:>7.3} {:>7.3} {ratio:>6.2} {took_ms:>6}  {}",
        report.name,
        report.seed,
        report.capacity_used,
        report.over_threshold,
        report.lag_s.p50,
        report.lag_s.p99,
        report.lag_s.max,
        if report.missed.is_empty() { "-".to_owned() } else { report.missed.len().to_string() },
    );
}
