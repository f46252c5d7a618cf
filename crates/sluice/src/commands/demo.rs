//! `sluice demo`: the main job, on real servers, to look at.
//!
//! A primary with two replicas is started on free local ports, Sluice (this same program) in front
//! of it, and three kinds of clients go to work: a nightly ETL, an online schema change and a web
//! application. Half-way one replica stops applying, so that the gate can be seen to shut and to
//! open. The configuration file is there to be edited meanwhile. On a terminal `sluice top` shows it,
//! with its keys; elsewhere lines of text do.

mod lines;
mod report;
mod workload;

use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use integration::replica::Lag;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use tokio::sync::oneshot;

use self::lines::Lines;
use self::report::Report;
use self::workload::Workload;
use super::top;
use crate::cli::{Demo, Top};

/// How often the figures are read and shown.
const REFRESH: Duration = Duration::from_millis(500);

/// What people get to read where everything is, before the screen covers it.
const READING: Duration = Duration::from_secs(4);

/// The replica that is made to lag stops from this part of the run …
const LAG_FROM: f64 = 0.45;
/// … to this.
const LAG_TO: f64 = 0.65;

pub(crate) fn run(args: &Demo) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(demo(args)),
        Err(error) => Err(format!("cannot start: {error}")),
    };
    result.unwrap_or_else(|error| {
        println_line(&error);
        ExitCode::FAILURE
    })
}

/// Errors are for people: what could not be started or read.
async fn demo(args: &Demo) -> Result<ExitCode, String> {
    println_line("Starting a MySQL primary, two replicas and Sluice on 127.0.0.1 …");
    let mut topology = Topology::mysql(2).await.map_err(|error| {
        format!("{error}\nThe servers are installed by `scripts/install-servers` (or `make demo`).")
    })?;
    workload::prepare(&topology).await.map_err(|error| error.to_string())?;
    let config = config(&topology).map_err(|error| error.to_string())?;
    let sluice = SluiceProcess::start(&config).await.map_err(|error| error.to_string())?;
    let result = show(args, &mut topology, &sluice).await;
    // Kept until here: dropping them stops the servers and removes their data.
    drop(sluice);
    drop(topology);
    result
}

async fn show(
    args: &Demo,
    topology: &mut Topology,
    sluice: &SluiceProcess,
) -> Result<ExitCode, String> {
    let total = Duration::from_secs(args.seconds);
    let workload = Workload::start(sluice.listen_addr());
    let mut lines = Lines::new(sluice);
    lines.hints();
    let is_screen = !args.plain && std::io::stdout().is_terminal();
    let mut top = if is_screen { Some(screen(sluice, total).await) } else { None };
    let started = Instant::now();
    let mut report = Report::default();
    let mut lagging = false;
    while started.elapsed() < total {
        tokio::select! {
            () = tokio::time::sleep(REFRESH) => {}
            () = ended(&mut top) => {
                top = None;
                break;
            }
            _ = tokio::signal::ctrl_c() => break,
        }
        let elapsed = started.elapsed();
        let part = elapsed.as_secs_f64() / total.as_secs_f64();
        let shall_lag = (LAG_FROM..LAG_TO).contains(&part);
        if shall_lag != lagging {
            lagging = shall_lag;
            set_lag(topology, shall_lag).await?;
        }
        let metrics = sluice.metrics().await.map_err(|error| error.to_string())?;
        report = Report::read(&metrics);
        if top.is_none() {
            lines.show(&report, elapsed, total, lagging);
        }
    }
    if let Some(end) = top.take() {
        // It ends with the time, if nobody has ended it.
        drop(end.await);
    }
    workload.stop().await;
    lines.farewell(&report);
    Ok(match report.faults() {
        faults if !args.assert || faults.is_empty() => ExitCode::SUCCESS,
        faults => {
            for fault in faults {
                println_line(&format!("NOT AS EXPECTED: {fault}"));
            }
            ExitCode::FAILURE
        }
    })
}

/// `sluice top` of this Sluice, in a thread of its own until the time is over or somebody presses q.
/// Resolves with its end.
async fn screen(sluice: &SluiceProcess, total: Duration) -> oneshot::Receiver<()> {
    println_line("");
    println_line(
        "`sluice top` comes in a moment: ? shows its keys, h holds an app, q ends the demo.",
    );
    tokio::time::sleep(READING).await;
    let watching = Top::of(format!("http://{}", sluice.admin_addr()), total.as_secs());
    let (ending, end) = oneshot::channel();
    thread::spawn(move || {
        top::run(&watching);
        // Whoever waited for it has gone.
        ending.send(()).ok();
    });
    end
}

/// Waits until the screen has gone; without one, for ever.
async fn ended(top: &mut Option<oneshot::Receiver<()>>) {
    match top {
        // A thread that has died has ended as well.
        Some(end) => drop(end.await),
        None => std::future::pending().await,
    }
}

async fn set_lag(topology: &mut Topology, lagging: bool) -> Result<(), String> {
    let Some(replica) = topology.replicas.first_mut() else { return Ok(()) };
    let set = if lagging {
        replica.lag_start(Lag::StoppedApplier).await
    } else {
        replica.lag_stop().await
    };
    set.map_err(|error| error.to_string())
}

/// The file that the demo runs with; it is written to be read and edited.
fn config(topology: &Topology) -> integration::error::Result<Config> {
    // Its keys and buttons work without a token: all of it is on this machine, and gone after.
    let config = Config::new(topology)?.admin_keys("loopback_changes: true");
    Ok(config
        .signals("lag: { threshold: 1s }")
        .identity(
            "claims:\n  \
             - { user: etl, apps: [nightly-etl] }\n  \
             - { user: \"*\", apps: [\"*\"] }",
        )
        .rules(
            "- name: nightly-etl\n  \
             match: { app: nightly-etl }\n  \
             ratio: 0.9          # try 0, or `hold: true`: saving the file is enough\n  \
             max_delay: 2s\n  \
             permanent: true\n  \
             reason: it may wait\n\
             - name: schema-changes\n  \
             match: { app: online-ddl }\n  \
             ratio: 0.1\n  \
             max_delay: 30s\n  \
             permanent: true\n\
             - name: everything-else\n  \
             gate: none\n  \
             permanent: true",
        ))
}

/// The demo speaks to people on standard output. If nobody reads it any more, it goes on in
/// silence.
fn println_line(line: &str) {
    writeln!(std::io::stdout(), "{line}").ok();
}
