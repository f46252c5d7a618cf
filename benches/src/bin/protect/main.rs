//! A web app beside report jobs on one MySQL server, through Sluice: what the app's latency
//! becomes, and what the jobs get done, ungated, at fixed numbers of reports in flight, behind the
//! plain gate, and protected by the app's latency.
//!
//!   protect [ROUNDS = 3] [SECONDS of one block = 20] [WARM-UP = 15] [FOLDER for the plot]
//!
//! Prints Markdown. The machine is shared and its speed drifts, so the ways take turns in blocks,
//! and figures are over all blocks of a way. Latencies are the web app's own, through Sluice, in
//! every way. The threshold is 1.25 times the undisturbed p99, which is measured first.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod load;
mod plot;

use std::path::PathBuf;
use std::time::Duration;

use benches::{Result, export, web};
use integration::server::Flavour;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::{Topology, TopologyOptions};

use crate::load::{Load, Measured};

/// Sessions of the report jobs: four jobs of four.
const JOB_SESSIONS: usize = 16;
/// Reports in flight that are tried alone.
const LIMITS: [u32; 6] = [1, 2, 3, 4, 6, 8];
/// How far the app's p99 may be from undisturbed.
const WITHIN: f64 = 1.25;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| args.next().map_or(Ok(default), |text| text.parse());
    let rounds = number(3)?;
    let seconds = Duration::from_secs(number(20)?);
    let warm_up = Duration::from_secs(number(15)?);
    let folder = args.next().map(PathBuf::from);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut options = TopologyOptions::new(Flavour::MySql, 0);
        // All rows fit: what is measured is not the disk.
        options.extra_args.push("--innodb-buffer-pool-size=128M".into());
        let servers = Topology::start(options).await?;
        web::fill(&servers.primary).await?;
        export::fill(&servers.primary).await?;
        let undisturbed = block(&servers, Way::Undisturbed, 0.0, (warm_up, seconds)).await?;
        let threshold = undisturbed.quantile(0.99) * WITHIN;
        let mut all: Vec<(Way, Measured)> = ways().map(|way| (way, Measured::default())).collect();
        for round in 1..=rounds {
            for (way, measured) in &mut all {
                eprintln!("protect: round {round}, {}", way.name());
                measured.add(block(&servers, *way, threshold, (warm_up, seconds)).await?);
            }
        }
        report(&all);
        if let Some(folder) = folder {
            std::fs::write(folder.join("protect.svg"), plot::svg(&all))?;
        }
        Ok(())
    })
}

/// How the reports are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// There are none.
    Undisturbed,
    /// So many are in flight at most.
    Limit(u32),
    /// By the app's latency.
    Protected,
    /// By the plain gate on the app's latency.
    Binary,
    /// Not at all.
    Ungated,
}

impl Way {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Undisturbed => "undisturbed".to_owned(),
            Self::Limit(count) => format!("{count} at once"),
            Self::Protected => "protected".to_owned(),
            Self::Binary => "binary".to_owned(),
            Self::Ungated => "ungated".to_owned(),
        }
    }

    fn rule(self) -> String {
        match self {
            Self::Undisturbed | Self::Ungated => "gate: none".to_owned(),
            Self::Limit(count) => format!("gate: none, max_in_flight: {count}"),
            Self::Protected | Self::Binary => "gate: web_p99".to_owned(),
        }
    }

    fn pacing(self) -> &'static str {
        match self {
            Self::Binary => "pacing: binary",
            Self::Undisturbed | Self::Limit(_) | Self::Protected | Self::Ungated => {
                "pacing: adaptive"
            }
        }
    }
}

fn ways() -> impl Iterator<Item = Way> {
    let limits = LIMITS.into_iter().map(Way::Limit);
    let others = [Way::Protected, Way::Binary, Way::Ungated];
    [Way::Undisturbed].into_iter().chain(limits).chain(others)
}

/// One way for a while, with a Sluice that has just started.
async fn block(
    servers: &Topology,
    way: Way,
    threshold_s: f64,
    (warm_up, time): (Duration, Duration),
) -> Result<Measured> {
    let micros = (threshold_s * 1e6).max(100.0);
    let config = Config::new(servers)?
        .signals(&format!("web_p99: {{ latency: {{ app: web }}, threshold: {micros:.0}us }}"))
        .cluster(way.pacing())
        .rules(&format!(
            "- {{ name: reports, match: {{ app: etl }}, statements: [read], {}, max_delay: 1h, \
             permanent: true }}\n- {{ name: everything-else, gate: none, permanent: true }}",
            way.rule()
        ));
    let sluice = SluiceProcess::start(&config).await?;
    let jobs = if way == Way::Undisturbed { 0 } else { JOB_SESSIONS };
    let mut load = Load::start(sluice.listen_addr(), jobs).await?;
    tokio::time::sleep(warm_up).await;
    drop(load.take()?);
    tokio::time::sleep(time).await;
    load.take()
}

fn report(all: &[(Way, Measured)]) {
    let p99 = |wanted: Way| {
        all.iter().find(|(way, _)| *way == wanted).map_or(0.0, |(_, it)| it.quantile(0.99))
    };
    let alone = p99(Way::Undisturbed);
    let doubles = all.iter().filter(|(way, measured)| {
        matches!(way, Way::Limit(_)) && measured.quantile(0.99) <= 2.0 * alone
    });
    let most = doubles.map(|(_, measured)| measured.reports_per_s()).fold(0.0, f64::max);
    println!(
        "| way | web p50 | p99 | ÷ undisturbed | web statements a second | reports a second | \
         ÷ those where p99 doubles |\n\
         |---|---|---|---|---|---|---|"
    );
    for (way, measured) in all {
        let (p50, p99) = (measured.quantile(0.5), measured.quantile(0.99));
        println!(
            "| {} | {:.2} ms | {:.2} ms | {:.2} | {:.0} | {:.1} | {:.2} |",
            way.name(),
            p50 * 1e3,
            p99 * 1e3,
            p99 / alone.max(1e-9),
            measured.web_per_s(),
            measured.reports_per_s(),
            measured.reports_per_s() / most.max(1e-9),
        );
    }
}
