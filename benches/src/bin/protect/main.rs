//! A web app beside four report jobs on one MySQL server: what the app's latency becomes at the
//! server, and what the jobs get done, at fixed numbers of reports in flight, protected by the app's
//! latency, behind the plain gate, and without Sluice.
//!
//!   protect slots[-…]|scans|exports|pages [SECONDS of one block = 8] [FOLDER for the plots]
//!
//! Prints Markdown. The p99 that is judged is the one of the server's answers: from when a statement is
//! sent to the server until its answer has come, as Sluice sees it. Beside it stands the server's own
//! (`performance_schema`, by digest), whose clock starts only when a thread of the server has got the
//! processor and has read the statement: a statement that waits for the processor is not in it. The
//! threshold comes from what Sluice's signal says of the app alone, as an operator would take it. Clients are
//! niced, so that what works for the load does not take the processor from the server.
//!
//! What a law can reach by steering how many are in flight follows from the limits alone: over a long
//! time, the part of statements over some latency is the mean of what each limit makes of it, by the
//! time spent at each. So the most reports with 99 of 100 statements within the goal is that of the best
//! mixture of two limits, and the law is compared with that.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod at_server;
mod block;
mod distribution;
mod jobs;
mod plot;
mod report;
mod slots;

use std::path::PathBuf;
use std::time::Duration;

use benches::{Result, export, web};
use integration::server::{Flavour, PerformanceSchema};
use integration::topology::{Topology, TopologyOptions};

use crate::block::{Measured, Way, block};
use crate::jobs::Kind;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let kind = Kind::of(args.next().as_deref())?;
    let seconds = args.next().map_or(Ok(8), |text| text.parse())?;
    let folder = args.next().map(PathBuf::from);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(kind, Duration::from_secs(seconds), folder))
}

async fn run(kind: Kind, time: Duration, folder: Option<PathBuf>) -> Result<()> {
    let mut options = TopologyOptions::new(Flavour::MySql, 0);
    // All rows fit: what is measured is not the disk.
    options.extra_args.push("--innodb-buffer-pool-size=128M".into());
    options.extra_args.extend(kind.server_args());
    options.performance_schema = PerformanceSchema::On;
    let servers = Topology::start(options).await?;
    web::fill(&servers.primary).await?;
    export::fill(&servers.primary).await?;
    if let Kind::Slots(load) = kind {
        slots::check(servers.primary.addr(), load).await?;
    }
    // Nothing is held while the app is alone, so any threshold does. The first time everything is cold.
    let alone = (WARM_UP, time, UNHELD_S);
    block(&servers, kind, Way::Undisturbed, alone).await?;
    let mut all: Vec<Measured> = Vec::new();
    let mut threshold_s = UNHELD_S;
    for way in ways(kind) {
        eprintln!("protect: {}, {}", kind.name(), way.name());
        let (warm_up, times) = match way {
            // Until the limit is found; and its swings are to be seen.
            Way::Protected | Way::Binary => (WARM_UP * 5, 5),
            Way::Undisturbed | Way::Part(_) | Way::Limit(_) | Way::Direct => (WARM_UP, 1),
        };
        if matches!(way, Way::Protected) {
            threshold_s = report::said_alone_s(&all) * THRESHOLD;
        }
        all.push(block(&servers, kind, way, (warm_up, time * times, threshold_s)).await?);
    }
    report::print(kind, threshold_s, &all);
    if let Some(folder) = folder {
        let name = format!("protect-{}.svg", kind.name());
        std::fs::write(folder.join(name), plot::svg(&all))?;
    }
    Ok(())
}

/// The machine's speed drifts, so the app is alone again and again.
fn ways(kind: Kind) -> Vec<Way> {
    let parts = kind.parts().iter().copied().map(Way::Part);
    let limits: Vec<Way> = kind.limits().iter().copied().map(Way::Limit).collect();
    let (few, many) = limits.split_at(limits.len() / 2);
    let mut all = vec![Way::Undisturbed];
    all.extend(parts.chain(few.iter().copied()));
    all.push(Way::Undisturbed);
    all.extend(many);
    all.extend([Way::Undisturbed, Way::Protected, Way::Undisturbed, Way::Binary, Way::Direct]);
    all
}

/// How far the app's p99 may be from undisturbed.
const WITHIN: f64 = 1.25;
/// The threshold, in what the signal says undisturbed: the value is steered a tenth below it.
const THRESHOLD: f64 = WITHIN * 1.1;
/// The part of what the jobs get where the p99 doubles that they should have.
const JOBS_PART: f64 = 0.6;
/// Longer than the window of the signal, which is not to remember how all log in.
const WARM_UP: Duration = Duration::from_secs(6);
/// A threshold that nothing reaches.
const UNHELD_S: f64 = 3_600.0;
