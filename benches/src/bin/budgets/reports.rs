//! A report run forty times at once beside a web application.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benches::Result;
use benches::beside::{Failure, beside, ended};
use benches::export::{self, Tool};
use benches::process::cpu_time;
use benches::stats::{median, quantile};
use benches::web::{self, Reads, Seen, Web, WebApp};
use integration::raw::Login;
use integration::server::{Flavour, PerformanceSchema, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::plot;
use crate::watch::{self, Look, Watch};

/// For how long the web application is alone, and the tool works on a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) alone: Duration,
    pub(crate) works: Duration,
}

pub(crate) async fn run(rounds: u64, times: Times, folder: Option<PathBuf>) -> Result<()> {
    let mut options = ServerOptions::new(Flavour::MySql);
    options.extra_args.push(BUFFER_POOL.into());
    options.performance_schema = PerformanceSchema::On;
    let server = Server::start(options).await?;
    web::fill(&server).await?;
    export::fill(&server).await?;
    watch::keep_reports(&server).await?;
    let mut config = Config::in_front_of(server.addr(), Vec::new())?;
    BUDGET.clone_into(&mut config.top);
    let sluice = SluiceProcess::start(&config).await?;

    let mut all = Vec::new();
    for round in 1..=rounds {
        let mut parts = Vec::new();
        for part in Part::ALL {
            eprintln!("reports: round {round}, {}", part.name());
            let addr = match part.way() {
                Way::Direct => server.addr(),
                Way::Sluice => sluice.listen_addr(),
            };
            parts.push(Measured { part, ..measure(&server, addr, part, times).await? });
        }
        report(round, &parts);
        if let (1, Some(folder)) = (round, &folder) {
            std::fs::write(folder.join("reports.svg"), plot::reports(&parts))?;
        }
        all.push(parts);
    }
    summary(&all);
    Ok(())
}

/// One part of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    AloneDirect,
    AloneThroughSluice,
    FortyDirect,
    /// What a budget of four would be at its best: the tools take turns, and nothing is in between.
    InTurnDirect,
    FortyThroughSluice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    Sluice,
}

impl Part {
    const ALL: [Self; 5] = [
        Self::AloneDirect,
        Self::AloneThroughSluice,
        Self::FortyDirect,
        Self::InTurnDirect,
        Self::FortyThroughSluice,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AloneDirect => "web alone, direct",
            Self::AloneThroughSluice => "web alone, Sluice",
            Self::FortyDirect => "40 reports, direct",
            Self::InTurnDirect => "40 reports, 4 at a time, direct",
            Self::FortyThroughSluice => "40 reports, Sluice",
        }
    }

    fn way(self) -> Way {
        match self {
            Self::AloneDirect | Self::FortyDirect | Self::InTurnDirect => Way::Direct,
            Self::AloneThroughSluice | Self::FortyThroughSluice => Way::Sluice,
        }
    }
}

/// What a part has shown.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) part: Part,
    pub(crate) began: Instant,
    pub(crate) time: Duration,
    pub(crate) web: Vec<Seen>,
    pub(crate) looks: Vec<Look>,
    /// Of the web's reads and writes, by the server, in seconds.
    server_p99_s: (f64, f64),
    most_at_once: usize,
    done: Vec<Done>,
    /// Of the server, in cores.
    cpu: f64,
}

impl Measured {
    pub(crate) fn p99_s(&self) -> f64 {
        self.quantile(0.99)
    }

    fn quantile(&self, part: f64) -> f64 {
        let mut sorted: Vec<f64> = self.web.iter().map(|seen| seen.took_s).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        quantile(&sorted, part)
    }

    fn web_per_s(&self) -> f64 {
        f64::from(u32::try_from(self.web.len()).unwrap_or(u32::MAX)) / self.time.as_secs_f64()
    }

    fn most_seen(&self) -> u32 {
        self.looks.iter().map(|look| look.reports).max().unwrap_or(0)
    }
}

async fn measure(server: &Server, addr: SocketAddr, part: Part, times: Times) -> Result<Measured> {
    let mut web = Web::start(addr, WEB_APP).await?;
    tokio::time::sleep(WARM_UP).await;
    let watch = Watch::start(server)?;
    watch::forget(server).await?;
    drop(web.take()?);
    let pid = server.pid().ok_or("the server has gone")?;
    let cpu_before = cpu_time(pid)?.total_s();
    let began = Instant::now();
    let done = match part {
        Part::AloneDirect | Part::AloneThroughSluice => {
            tokio::time::sleep(times.alone).await;
            Vec::new()
        }
        Part::FortyDirect | Part::FortyThroughSluice => {
            at_once(addr, REPORTS, REPORTS, times.works).await?
        }
        Part::InTurnDirect => at_once(addr, REPORTS, BUDGETED, times.works).await?,
    };
    let time = began.elapsed();
    Ok(Measured {
        part,
        began,
        time,
        web: web.take()?,
        looks: watch.stop().await?,
        server_p99_s: watch::web_p99_s(server).await?,
        most_at_once: watch::most_at_once(server).await?,
        done,
        cpu: (cpu_time(pid)?.total_s() - cpu_before) / time.as_secs_f64(),
    })
}

/// One report that has come to its end.
#[derive(Debug, Clone, Copy)]
struct Done {
    /// Since all were asked for.
    after: Duration,
    rows: u64,
}

/// So many tools, each on a session of its own, of which so many ask at once: to their ends.
async fn at_once(
    addr: SocketAddr,
    count: usize,
    asking: usize,
    works: Duration,
) -> Result<Vec<Done>> {
    let thread = beside("reports", move || async move {
        let login = Login::new("app").attribute("sluice_app", "report");
        let mut tools = Vec::new();
        for _ in 0..count {
            let tool = Tool::open(addr, &login, works).await;
            tools.push(tool.map_err(|failure| failure.to_string())?);
        }
        let began = Instant::now();
        let mut all = JoinSet::new();
        let turns = Arc::new(Semaphore::new(asking));
        for mut tool in tools {
            let turns = Arc::clone(&turns);
            all.spawn(async move {
                let _turn = turns.acquire().await?;
                let rows = tool.export(export::ORDERS).await?;
                Ok::<_, Failure>(Done { after: began.elapsed(), rows })
            });
        }
        let mut done = Vec::new();
        while let Some(one) = all.join_next().await {
            done.push(one??);
        }
        Ok(done)
    })?;
    ended(thread).await
}

fn report(round: u64, parts: &[Measured]) {
    println!(
        "\nRound {round}\n\n\
         | part | seconds | web statements/s | p50 | p99 | max | reads' p99 at the server | writes' | \
         reports there at once: looks, most seen | by their beginnings and ends | reports done | first after | last after | server's cores |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    );
    for it in parts {
        let after = |of: fn(&[Duration]) -> Option<&Duration>| {
            let mut after: Vec<Duration> = it.done.iter().map(|done| done.after).collect();
            after.sort_unstable();
            of(&after).map_or("–".to_owned(), |after| format!("{:.1} s", after.as_secs_f64()))
        };
        let whole = it.done.iter().filter(|done| done.rows == u64::from(export::ORDERS)).count();
        println!(
            "| {} | {:.1} | {:.0} | {} | {} | {} | {} | {} | {}, {} | {} | {whole} | {} | {} | {:.2} |",
            it.part.name(),
            it.time.as_secs_f64(),
            it.web_per_s(),
            ms(it.quantile(0.5)),
            ms(it.p99_s()),
            ms(it.quantile(1.0)),
            ms(it.server_p99_s.0),
            ms(it.server_p99_s.1),
            it.looks.len(),
            it.most_seen(),
            it.most_at_once,
            after(<[Duration]>::first),
            after(<[Duration]>::last),
            it.cpu,
        );
    }
}

/// The two quotients of every round, and their spread.
fn summary(all: &[Vec<Measured>]) {
    println!("\n| p99 with 40 reports ÷ alone | median | least | most |\n|---|---|---|---|");
    for (forty, alone) in [
        (Part::FortyDirect, Part::AloneDirect),
        (Part::InTurnDirect, Part::AloneDirect),
        (Part::FortyThroughSluice, Part::AloneThroughSluice),
        (Part::FortyThroughSluice, Part::AloneDirect),
    ] {
        let p99 = |parts: &[Measured], part: Part| {
            parts.iter().find(|it| it.part == part).map_or(f64::NAN, Measured::p99_s)
        };
        let quotients: Vec<f64> =
            all.iter().map(|parts| p99(parts, forty) / p99(parts, alone)).collect();
        let least = quotients.iter().copied().fold(f64::INFINITY, f64::min);
        let most = quotients.iter().copied().fold(0.0, f64::max);
        println!(
            "| {} ÷ {} | {:.2} | {least:.2} | {most:.2} |",
            forty.name(),
            alone.name(),
            median(quotients)
        );
    }
}

fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

const REPORTS: usize = 40;
/// As the budget has it.
const BUDGETED: usize = 4;
/// All rows fit: what is measured is not the disk.
const BUFFER_POOL: &str = "--innodb-buffer-pool-size=128M";
const WARM_UP: Duration = Duration::from_secs(3);
/// Some 750 statements a second.
const WEB_APP: WebApp = WebApp {
    sessions: 16,
    thinks: Duration::from_millis(20),
    reads: Reads::Row,
    writes_one_in: Some(5),
};
const BUDGET: &str = "budgets:\n\
     \x20 - { name: reports, match: { app: report }, max_concurrency: 4, max_delay: 10m }";
