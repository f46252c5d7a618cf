//! Two apps of batch work beside a web application, held to shares of the server: what they took is what the
//! server's own statement timers say.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use benches::Result;
use benches::beside::{Failure, beside, ended};
use benches::stats::median;
use benches::web::{self, Chance, Reads, Web, WebApp};
use integration::raw::{Login, RawConn};
use integration::server::{Flavour, PerformanceSchema, Server, ServerOptions};
use integration::sluice::{Config, SluiceProcess};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::plot;
use crate::watch::{Meter, Taken};

pub(crate) async fn run(rounds: u64, seconds: Duration, folder: Option<PathBuf>) -> Result<()> {
    let mut options = ServerOptions::new(Flavour::MySql);
    options.performance_schema = PerformanceSchema::On;
    let server = Server::start(options).await?;
    web::fill(&server).await?;
    server.run_sql(&[TARGET]).await?;
    let mut all = Vec::new();
    for round in 1..=rounds {
        eprintln!("share: round {round}");
        all.push(measure(&server, seconds).await?);
    }
    report(&all);
    if let (Some(folder), Some(first)) = (folder, all.first()) {
        std::fs::write(folder.join("share.svg"), plot::shares(first))?;
    }
    Ok(())
}

/// One round.
#[derive(Debug)]
pub(crate) struct Measured {
    /// From the first statement of a Sluice that has just started.
    pub(crate) taken: Vec<Taken>,
    /// From here on nobody lives on his burst any more.
    settled: Duration,
}

impl Measured {
    /// Server-seconds a second of one or both apps, once settled.
    fn share(&self, of: fn(&Taken) -> f64) -> f64 {
        let first = self.taken.iter().find(|taken| taken.at >= self.settled);
        let (Some(first), Some(last)) = (first, self.taken.last()) else { return f64::NAN };
        (of(last) - of(first)) / last.at.saturating_sub(first.at).as_secs_f64()
    }

    /// The most that was taken ahead of a share, over any stretch of time whatever.
    fn most_ahead(&self, of: fn(&Taken) -> f64, share: f64) -> f64 {
        let mut least = f64::INFINITY;
        let mut most = 0.0_f64;
        for taken in &self.taken {
            let ahead = of(taken) - share * taken.at.as_secs_f64();
            least = least.min(ahead);
            most = most.max(ahead - least);
        }
        most
    }
}

async fn measure(server: &Server, seconds: Duration) -> Result<Measured> {
    let mut config = Config::in_front_of(server.addr(), Vec::new())?;
    BUDGETS.clone_into(&mut config.top);
    let sluice = SluiceProcess::start(&config).await?;
    let mut web = Web::start(sluice.listen_addr(), WEB_APP).await?;
    let meter = Meter::start(server)?;
    let batch = Batch::start(sluice.listen_addr())?;
    tokio::time::sleep(SETTLES + seconds).await;
    let taken = meter.stop().await?;
    batch.stop().await?;
    drop(web.take()?);
    Ok(Measured { taken, settled: SETTLES })
}

/// Two apps that send a statement as soon as the last is answered.
struct Batch {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<std::result::Result<(), Failure>>,
}

impl Batch {
    fn start(addr: SocketAddr) -> Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = beside("batch", move || async move {
            let mut sessions = JoinSet::new();
            for (session, user) in (1_u32..).zip([["etl"; SESSIONS], ["ddl"; SESSIONS]].concat()) {
                let mut conn = RawConn::open(addr, &Login::new(user)).await?;
                conn.set_read_limit(ANSWER_LIMIT);
                sessions.spawn(work(conn, Chance(session)));
            }
            tokio::select! {
                ended = sessions.join_next() => match ended {
                    Some(ended) => ended?,
                    None => Ok(()),
                },
                _ = stopped => Ok(()),
            }
        })?;
        Ok(Self { stop, thread })
    }

    async fn stop(self) -> Result<()> {
        drop(self.stop);
        ended(self.thread).await
    }
}

/// Statements of four digests, each from tens to thousands of rows.
async fn work(mut conn: RawConn, mut chance: Chance) -> std::result::Result<(), Failure> {
    loop {
        let few = chance.below(90) + 10;
        let rows = if chance.below(3) == 0 { few * 50 } else { few };
        let first = chance.below(web::ROWS.saturating_sub(rows)) + 1;
        let slice = format!("WHERE id BETWEEN {first} AND {}", first + rows);
        let text = match chance.below(4) {
            0 => format!("SELECT COUNT(DISTINCT SHA2(CONCAT(id, pad), 512)) FROM t {slice}"),
            1 => format!("SELECT id, n, pad FROM t {slice} ORDER BY pad DESC LIMIT 20"),
            2 => format!("UPDATE t SET n = n + 1 {slice}"),
            _ => format!("REPLACE INTO copied SELECT id, n, SHA2(pad, 512) FROM t {slice}"),
        };
        let answer = conn.query(text).await?;
        // Two statements that copy may want each other's gaps: such a one has taken time as well.
        if answer.err().is_none_or(|(errno, _)| errno != ER_LOCK_DEADLOCK) {
            answer.accepted()?;
        }
    }
}

fn report(all: &[Measured]) {
    println!(
        "| | share | of server-seconds | median | least | most | most ahead of the share, in server-seconds | burst |\n\
         |---|---|---|---|---|---|---|---|"
    );
    for Budgeted { name, share, burst_s, of } in BUDGETED {
        let shares: Vec<f64> = all.iter().map(|it| it.share(of)).collect();
        let each: Vec<String> = shares.iter().map(|share| format!("{share:.3}")).collect();
        let ahead: Vec<String> =
            all.iter().map(|it| format!("{:.2}", it.most_ahead(of, share))).collect();
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let most = shares.iter().copied().fold(0.0, f64::max);
        println!(
            "| {name} | {share} | {} | {:.3} | {least:.3} | {most:.3} | {} | {burst_s} |",
            each.join(", "),
            median(shares),
            ahead.join(", ")
        );
    }
    let at_once = all.iter().flat_map(|it| &it.taken).map(|taken| taken.running).max();
    println!("\nMost statements of both at the server at once: {}", at_once.unwrap_or(0));
}

/// A budget of a share, and what of the server's timers it is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budgeted {
    pub(crate) name: &'static str,
    pub(crate) share: f64,
    /// In server-seconds.
    pub(crate) burst_s: f64,
    pub(crate) of: fn(&Taken) -> f64,
}

/// As [`BUDGETS`] has them.
pub(crate) const BUDGETED: [Budgeted; 2] = [
    Budgeted { name: "etl", share: 0.25, burst_s: 2.0, of: |taken| taken.etl_s },
    Budgeted { name: "batch: etl and ddl", share: 0.6, burst_s: 3.0, of: |taken| taken.both_s },
];
const ER_LOCK_DEADLOCK: u16 = 1213;
/// Of each app.
const SESSIONS: usize = 4;
const WEB_APP: WebApp = WebApp {
    sessions: 8,
    thinks: Duration::from_millis(20),
    reads: Reads::Row,
    writes_one_in: Some(5),
};
const SETTLES: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(600);
const TARGET: &str = "CREATE TABLE copied (id INT PRIMARY KEY, n INT, hash CHAR(128))";
const BUDGETS: &str = "budgets:\n\
     \x20 - { name: etl, match: { app: etl }, share: 0.25, burst: 2s, max_delay: 10m }\n\
     \x20 - { name: batch, match: { app: [etl, ddl] }, share: 0.6, burst: 3s, max_delay: 10m }\n\
     \x20 - { name: few, match: { app: [etl, ddl] }, max_concurrency: 3, max_delay: 10m }";
