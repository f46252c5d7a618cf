//! Point selects direct, through HAProxy and through Sluice, on the same server, interleaved.
//!
//!   peers [SECONDS of one run = 8] [ROUNDS = 3]
//!
//! Prints Markdown. Every figure is a median over rounds of a ratio taken within one round, because the
//! machine is shared and absolute figures drift. CPU is that of the proxy's process alone, with all
//! its threads, probes and timers.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod idle;
mod report;
mod setup;

use benches::Result;
use benches::process::cpu_time;
use benches::sysbench::{self, Protocol, Run};

use crate::report::Measured;
use crate::setup::{Setup, Target};

const CONNECTIONS: [u32; 3] = [1, 8, 64];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let seconds = args.next().map_or(Ok(8), |text| text.parse())?;
    let rounds = args.next().map_or(Ok(3), |text| text.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let setup = Setup::start().await?;
        let memory = idle::per_connection(&setup).await?;
        println!("{}", report::memory(&memory));
        setup.prepare()?;
        for protocol in Protocol::ALL {
            for connections in CONNECTIONS {
                let measured = measure(&setup, protocol, connections, seconds, rounds)?;
                println!("{}", report::runs(protocol, connections, &measured));
            }
        }
        Ok(())
    })
}

/// All targets, round by round.
fn measure(
    setup: &Setup,
    protocol: Protocol,
    connections: u32,
    seconds: u32,
    rounds: u32,
) -> Result<Vec<Vec<Measured>>> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        eprintln!("peers: {}, {connections} connections, round {round}", protocol.as_str());
        let targets = setup.targets()?;
        let round = targets.iter().map(|target| one(target, protocol, connections, seconds));
        all.push(round.collect::<Result<Vec<_>>>()?);
    }
    Ok(all)
}

fn one(target: &Target, protocol: Protocol, connections: u32, seconds: u32) -> Result<Measured> {
    let before = target.pid.map(cpu_time).transpose()?;
    let run: Run = sysbench::run(target.addr, protocol, connections, seconds)?;
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
