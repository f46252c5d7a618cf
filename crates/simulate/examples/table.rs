//! One line for each scenario and seed: `cargo run --release -p simulate --example table [SEED…] [NAME…] [FILE…]`.
#![expect(clippy::print_stdout, reason = "a table for people")]
#![expect(clippy::disallowed_methods, reason = "how long a run takes is of interest here")]

use std::error::Error;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;
use std::{env, fs};

use simulate::{Report, Scenario, simulate};

fn main() -> Result<(), Box<dyn Error>> {
    let (seeds, names): (Vec<String>, Vec<String>) =
        env::args().skip(1).partition(|word| word.parse::<u64>().is_ok());
    let seeds: Vec<u64> = seeds.iter().filter_map(|word| word.parse().ok()).collect();
    println!(
        "{:20} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>6}  rows/s (p99 of delays) missed",
        "scenario", "seed", "used", "over", "p50", "p99", "max", "ms"
    );
    for path in paths(&names)? {
        let mut scenario = Scenario::parse(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let own = [scenario.seed];
        for &seed in if seeds.is_empty() { own.as_slice() } else { seeds.as_slice() } {
            scenario.seed = seed;
            let begun = Instant::now();
            let report = simulate(&scenario)?;
            print_line(&report, begun.elapsed().as_millis());
        }
    }
    Ok(())
}

/// The files named, and those of `scenarios/` named; all of `scenarios/` if none is.
fn paths(names: &[String]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let is_file = |name: &&String| name.ends_with(".yaml");
    let mut paths: Vec<PathBuf> = names.iter().filter(is_file).map(PathBuf::from).collect();
    let mut ours: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            names.is_empty() || names.iter().any(|name| name == stem)
        })
        .collect();
    ours.sort();
    paths.append(&mut ours);
    Ok(paths)
}

fn print_line(report: &Report, took_ms: u128) {
    let rows: Vec<String> =
        report.apps.iter().map(|(_, app)| format!("{:.1}", app.rows_per_s)).collect();
    let p99: Vec<String> =
        report.apps.iter().map(|(_, app)| format!("{:.2}", app.delay_s.p99)).collect();
    let latencies = report.apps.iter().filter_map(|(_, app)| app.latency_s);
    let latencies: Vec<String> =
        latencies.map(|latency| format!("{:.2} ms", latency.p99 * 1e3)).collect();
    let refused = report.apps.iter().filter_map(|(name, app)| {
        let for_each = app.rejected_per_s / app.admitted_per_s;
        let (right, in_all) = (app.told_right?, app.in_all_s);
        Some(format!(
            "{name}: {for_each:.2} refusals for each, told right {right:.2}, \
             in all {:.1} s, p99 {:.1} s, {:.1} s",
            in_all.p50, in_all.p99, in_all.max
        ))
    });
    let refused: Vec<String> = refused.collect();
    let missed: Vec<&str> =
        report.missed.iter().filter_map(|missed| missed.split(' ').next()).collect();
    println!(
        "{:20} {:>5} {:>7.4} {:>7.4} {:>7.3} {:>7.3} {:>7.3} {took_ms:>6}  {} ({}) {} {} {}",
        report.name,
        report.seed,
        report.capacity_used,
        report.over_threshold,
        report.lag_s.p50,
        report.lag_s.p99,
        report.lag_s.max,
        rows.join(" : "),
        p99.join(" : "),
        latencies.join(" : "),
        refused.join("; "),
        missed.join(" "),
    );
}
