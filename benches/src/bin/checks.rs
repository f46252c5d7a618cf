//! Checks over HTTP beside traffic: how long an answer takes at a steady rate.
//!
//!   checks [CHECKS A SECOND = 5000] [SECONDS = 10] [CONNECTIONS = 32] [WRITERS = 8]
//!
//! Prints Markdown. Each connection stays and asks by HEAD, one question at a time, at times that are fixed ahead: a
//! question that has to wait for the answer before it has waited since its own time, so that a stall is seen in all
//! that it delays. The writers send through Sluice as fast as they are answered. Client, server and Sluice share the
//! machine, so the client's own delays are in the figures.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::time::{Duration, Instant};

use benches::Result;
use integration::sluice::{Checker, Config, SluiceProcess};
use integration::topology::Topology;
use integration::writers::Writers;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u32| args.next().map_or(Ok(default), |text| text.parse());
    let load = Load {
        per_s: number(5_000)?,
        lasts: Duration::from_secs(number(10)?.into()),
        connections: number(32)?,
    };
    let writers = number(8)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(load, writers))
}

/// What is asked.
#[derive(Clone, Copy)]
struct Load {
    per_s: u32,
    lasts: Duration,
    connections: u32,
}

async fn run(load: Load, writers: u32) -> Result<()> {
    let servers = Topology::mysql(1).await?;
    servers.primary.run_sql(&[TABLE]).await?;
    let config = Config::new(&servers)?.rules(RULES);
    let sluice = SluiceProcess::start(&config).await?;
    println!(
        "| dialect | writers | checks a second | statements a second | p50 | p99 | p99.9 | max |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for sessions in [0, writers] {
        for (dialect, path) in PATHS {
            let sessions = usize::try_from(sessions)?;
            let writers = Writers::start(sluice.listen_addr(), "app", sessions, INSERT).await?;
            tokio::time::sleep(WARM_UP).await;
            let before = writers.written().statements;
            let started = Instant::now();
            let mut took = measure(&sluice, path, load).await?;
            let elapsed = started.elapsed().as_secs_f64();
            let statements = writers.stop().await?.statements.saturating_sub(before);
            took.sort_unstable();
            let part = |part: f64| millis(at(&took, part));
            let checks = f64::from(u32::try_from(took.len())?) / elapsed;
            let statements = f64::from(u32::try_from(statements)?) / elapsed;
            println!(
                "| {dialect} | {sessions} | {checks:.0} | {statements:.0} | {} | {} | {} | {} |",
                part(0.5),
                part(0.99),
                part(0.999),
                part(1.0),
            );
        }
    }
    Ok(())
}

/// The time of every answer.
async fn measure(sluice: &SluiceProcess, path: &str, load: Load) -> Result<Vec<Duration>> {
    let between = Duration::from_secs(1).mul_f64(f64::from(load.connections)) / load.per_s.max(1);
    let started = Instant::now() + WARM_UP;
    let mut tasks = Vec::new();
    for n in 0..load.connections {
        let mut checker = Checker::connect(sluice.admin_addr(), path).await?;
        let first = started + between * n / load.connections;
        tasks.push(tokio::spawn(async move {
            let mut took = Vec::new();
            let mut due = first;
            while due < first + load.lasts {
                tokio::time::sleep_until(due.into()).await;
                let status = checker.ask().await?;
                took.push(due.elapsed());
                if !matches!(status, 200 | 417 | 429) {
                    return Err(integration::error::HarnessError::Malformed(format!("{status}")));
                }
                due += between;
            }
            Ok(took)
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await??);
    }
    Ok(all)
}

/// The value below which this part of them is.
fn at(sorted: &[Duration], part: f64) -> Duration {
    let last = sorted.len().saturating_sub(1);
    let share = Duration::from_nanos(u64::try_from(last).unwrap_or(0)).mul_f64(part).as_nanos();
    let index = usize::try_from(share).unwrap_or(last);
    sorted.get(index).copied().unwrap_or_default()
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

const PATHS: [(&str, &str); 2] =
    [("vitess", "/throttler/check?app=tool&rows=1"), ("freno", "/check/tool/mysql/main?rows=1")];
const RULES: &str = "- { name: gated, match: { app: [tool, app] }, ratio: 0.1, permanent: true }";
const TABLE: &str = "CREATE TABLE t (n INT AUTO_INCREMENT PRIMARY KEY)";
const INSERT: &str = "INSERT INTO t () VALUES ()";
const WARM_UP: Duration = Duration::from_secs(2);
