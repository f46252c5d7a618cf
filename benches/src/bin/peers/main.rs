//! Point selects and large results direct, through other proxies and through Sluice, on the same server,
//! interleaved.
//!
//!   peers [SECONDS of one run = 8] [ROUNDS = 3] [PART…] [CONNECTIONS…]
//!
//! Parts: memory clear tls bulk neighbours; all unless some are named. Numbers behind them are how many connections
//! send point selects: 1, 8 and 64 unless some are named.
//!
//! The part `insights`, if it is named, compares Sluice with itself where it counts nothing.
//! The part `everything` compares HAProxy and Sluice as they are shipped with a Sluice that insights, guards, budgets
//! and a runaway rule make look at every statement of the load; the part `idle`, their memory for idle connections.
//! The part `before` compares with another build of Sluice: SLUICE_BEFORE_BIN is its program, SLUICE_BEFORE_CONFIG
//! the `proxy-config.yaml` that it ships with.
//!
//! Prints Markdown. Every figure is a median over rounds of a ratio taken within one round, because the
//! machine is shared and absolute figures drift. CPU is that of the proxy's process alone, with all
//! its threads, probes and timers.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod bulk;
mod idle;
mod neighbours;
mod report;
mod setup;

use std::path::Path;

use benches::Result;
use benches::process::cpu_time;
use benches::sysbench::{self, Load, Protocol, Run};

use crate::report::Measured;
use crate::setup::{Setup, Target};

const CONNECTIONS: [u32; 3] = [1, 8, 64];

/// Router drops one TLS login in some hundreds; the whole run is taken again then.
const TRIES: u32 = 8;

/// What is measured and how often.
struct Plan {
    seconds: u32,
    rounds: u32,
    parts: Vec<String>,
    connections: Vec<u32>,
}

impl Plan {
    fn of_arguments() -> Result<Self> {
        let mut args = std::env::args().skip(1);
        let seconds = args.next().map_or(Ok(8), |text| text.parse())?;
        let rounds = args.next().map_or(Ok(3), |text| text.parse())?;
        let (numbers, parts): (Vec<_>, Vec<_>) = args.partition(|word| word.parse::<u32>().is_ok());
        let mut connections: Vec<u32> = numbers.iter().flat_map(|word| word.parse()).collect();
        if connections.is_empty() {
            connections.extend(CONNECTIONS);
        }
        Ok(Self { seconds, rounds, parts, connections })
    }

    fn has(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|named| named == part)
    }
}

fn main() -> Result<()> {
    let plan = Plan::of_arguments()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let setup = Setup::start().await?;
        if plan.has("memory") {
            let memory = idle::per_connection(&setup.targets()?).await?;
            println!("{}", report::memory(&memory));
        }
        setup.prepare()?;
        if plan.has("clear") {
            selects(&plan, "", &setup.targets()?, None)?;
        }
        if let Some(targets) = setup.before_targets()?.filter(|_| plan.has("before")) {
            selects(&plan, "", &targets, None)?;
        }
        if plan.parts.iter().any(|part| part == "insights") {
            let without = setup.start_without_insights().await?;
            selects(&plan, "", &setup.insights_targets(&without)?, None)?;
        }
        let everything = ["everything", "idle"].map(|part| plan.parts.iter().any(|it| it == part));
        if everything.contains(&true) {
            let [loaded, idle] = everything;
            let with_all = setup.start_with_everything().await?;
            let targets = setup.everything_targets(&with_all)?;
            if idle {
                let memory = idle::per_connection(&targets).await?;
                println!("{}", report::memory(&memory));
            }
            if loaded {
                selects(&plan, "", &targets, None)?;
            }
        }
        if plan.has("tls") {
            selects(
                &plan,
                ", TLS with the client",
                &setup.tls_targets()?,
                Some(setup.client_folder()),
            )?;
        }
        if plan.has("bulk") {
            for rows in bulk::RESULTS {
                let transfers = bulk::transfers(&setup, rows, plan.rounds).await?;
                println!("{}", report::transfers(rows, &transfers));
            }
        }
        if plan.has("neighbours") {
            let targets = setup.before_targets()?.map_or_else(|| setup.targets(), Ok)?;
            setup.fill_web().await?;
            let ways = neighbours::measure(&targets, (plan.seconds, plan.rounds)).await?;
            println!("{}", report::neighbours(&ways));
        }
        Ok(())
    })
}

/// Every protocol and number of connections; all targets, round by round.
fn selects(plan: &Plan, legs: &str, targets: &[Target], tls: Option<&Path>) -> Result<()> {
    for protocol in Protocol::ALL {
        for &connections in &plan.connections {
            let load = Load { protocol, connections, seconds: plan.seconds, tls };
            let title = format!("{connections} connections, {}{legs}", protocol.as_str());
            let mut all = Vec::new();
            for round in 1..=plan.rounds {
                eprintln!("peers: {title}, round {round}");
                let round = targets.iter().map(|target| one(target, &load));
                all.push(round.collect::<Result<Vec<_>>>()?);
            }
            println!("{}", report::runs(&title, &all));
        }
    }
    Ok(())
}

fn one(target: &Target, load: &Load<'_>) -> Result<Measured> {
    let mut tried = 1;
    loop {
        match attempt(target, load) {
            Err(error) if tried < TRIES => {
                eprintln!("peers: {}: once more after: {error}", target.name);
                tried += 1;
            }
            end => return end,
        }
    }
}

fn attempt(target: &Target, load: &Load<'_>) -> Result<Measured> {
    let before = target.pid.map(cpu_time).transpose()?;
    let run: Run = sysbench::run(target.addr, load)?;
    let after = target.pid.map(cpu_time).transpose()?;
    let spent = before.zip(after).map(|(before, after)| {
        let per_statement = 1_000_000.0 / run.statements;
        (
            (after.total_s() - before.total_s()) * per_statement,
            (after.user_s - before.user_s) * per_statement,
        )
    });
    let (cpu_us, user_us) = spent.unwrap_or((f64::NAN, f64::NAN));
    Ok(Measured { name: target.name, run, cpu_us, user_us })
}
