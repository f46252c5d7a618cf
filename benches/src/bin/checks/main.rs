//! Checks over HTTP beside traffic: how long an answer takes at a steady rate.
//!
//!   checks [CHECKS A SECOND = 5000] [SECONDS = 6] [CONNECTIONS = 32] [ROUNDS = 3]
//!
//! Prints Markdown. Each connection stays, has a thread of its own and asks by HEAD at times that are fixed ahead, all
//! of them evenly spread. A question that has to wait for the answer before it has waited since its own time, so that a
//! stall is seen in all that it delays. Three times are told of each question: *due*, from its time to its answer, which
//! holds the client's own delay in waking up; *sent*, from the write to the answer; and *late*, how much later than its
//! time it was written, which is the client's and the machine's alone where no answer was waited for. `/_ping` is asked
//! at the same rate for comparison: it is answered by the same thread, and knows nothing.
//!
//! Beside them go writers through Sluice, at a steady rate of their own and, in the last level, as fast as they are
//! answered. Client, servers and Sluice share the machine, and so does whoever else is there: how busy it was stands
//! beside each time. Of several rounds the one with the lowest p99 is told, and the p99 of all.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

mod asking;
mod load;
mod traffic;

use std::time::{Duration, Instant};

use benches::Result;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;

use self::asking::{Asking, Took};
use self::load::{Busy, thread_cpu_s};
use self::traffic::Traffic;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u32| args.next().map_or(Ok(default), |text| text.parse());
    let asking = Asking {
        per_s: number(5_000)?.max(1),
        lasts: Duration::from_secs(number(6)?.max(1).into()),
        connections: number(32)?.max(1),
    };
    let rounds = number(3)?.max(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(asking, rounds))
}

async fn run(asking: Asking, rounds: u32) -> Result<()> {
    let servers = Topology::mysql(1).await?;
    servers.primary.run_sql(&[TABLE]).await?;
    let config = Config::new(&servers)?.rules(RULES);
    let sluice = SluiceProcess::start(&config).await?;
    println!("{HEAD}");
    for traffic in TRAFFIC {
        let mut best = [const { None::<Round> }; PATHS.len()];
        let mut p99s = [const { Vec::new() }; PATHS.len()];
        // What is compared is asked in turns, so that it meets the same neighbours.
        for _ in 0..rounds {
            for (at, (_, path)) in PATHS.iter().enumerate() {
                let round = measure(&sluice, path, asking, traffic).await?;
                let p99 = round.sent(0.99);
                let (Some(best), Some(p99s)) = (best.get_mut(at), p99s.get_mut(at)) else {
                    continue;
                };
                p99s.push(format!("{:.2}", ms(p99)));
                if best.as_ref().is_none_or(|best| p99 < best.sent(0.99)) {
                    *best = Some(round);
                }
            }
        }
        for ((what, _), (round, p99s)) in PATHS.iter().zip(best.iter().flatten().zip(&p99s)) {
            println!("| {what} | {} | {} |", round.row(asking), p99s.join(", "));
        }
    }
    Ok(())
}

/// What was seen in one round.
struct Round {
    took: Vec<Took>,
    statements: u64,
    busy: Busy,
    /// Of Sluice's thread that answers.
    answering_s: f64,
}

async fn measure(
    sluice: &SluiceProcess,
    path: &'static str,
    asking: Asking,
    traffic: Traffic,
) -> Result<Round> {
    let writers = traffic.start(sluice.listen_addr()).await?;
    tokio::time::sleep(WARM_UP).await;
    let (admin, pid) = (sluice.admin_addr(), sluice.pid().ok_or("Sluice has ended")?);
    let written = writers.written();
    let (busy, answering_s) = (Busy::now()?, thread_cpu_s(pid, ANSWERING)?);
    let took = tokio::task::spawn_blocking(move || asking.measure(admin, path)).await??;
    let busy = Busy::now()?.since(busy);
    let answering_s = thread_cpu_s(pid, ANSWERING)? - answering_s;
    let statements = writers.stop().await?.saturating_sub(written);
    Ok(Round { took, statements, busy, answering_s })
}

impl Round {
    /// The time that this part of the answers was below.
    fn sent(&self, part: f64) -> Duration {
        part_of(&self.took, |took| took.sent, part)
    }

    fn row(&self, asking: Asking) -> String {
        let Self { took, statements, busy, answering_s } = self;
        let seconds = asking.lasts.as_secs_f64();
        let count = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let answers = count(u64::try_from(took.len()).unwrap_or(u64::MAX));
        let parts = |of: fn(&Took) -> Duration, parts: &[f64]| {
            let of = |part: &f64| format!("{:.2}", ms(part_of(took, of, *part)));
            parts.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        format!(
            "{:.0} | {:.0} | {:.0} %, {:.0} % | {:.0} | {} | {} | {}",
            count(*statements) / seconds,
            answers / seconds,
            busy.all * 100.0,
            busy.niced * 100.0,
            answering_s * 1e6 / answers,
            parts(|took| took.sent, &[0.5, 0.99, 0.999, 1.0]),
            parts(|took| took.due, &[0.5, 0.99]),
            parts(|took| took.late, &[0.99]),
        )
    }
}

/// The value below which this part of them is.
fn part_of(took: &[Took], of: impl Fn(&Took) -> Duration, part: f64) -> Duration {
    let mut sorted: Vec<Duration> = took.iter().map(of).collect();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    let at = Duration::from_nanos(u64::try_from(last).unwrap_or(0)).mul_f64(part);
    let at = usize::try_from(at.as_nanos()).unwrap_or(last);
    sorted.get(at).copied().unwrap_or_default()
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const HEAD: &str = "\
| asked | statements a second | answers a second | cores busy, by niced others | µs of CPU an answer | \
sent p50, p99, p99.9, max (ms) | due p50, p99 | late p99 | sent p99 of each round |
|---|---|---|---|---|---|---|---|---|";

const PATHS: [(&str, &str); 3] = [
    ("Vitess'", "/throttler/check?app=tool&rows=1"),
    ("freno's", "/check/tool/mysql/main?rows=1"),
    ("`/_ping`", "/_ping"),
];
const TRAFFIC: [Traffic; 4] =
    [Traffic::None, Traffic::PerS(500), Traffic::PerS(2_000), Traffic::Unbounded];
const RULES: &str = "- { name: gated, match: { app: [tool, app] }, ratio: 0.1, permanent: true }";
const TABLE: &str = "CREATE TABLE t (n INT AUTO_INCREMENT PRIMARY KEY)";
const WARM_UP: Duration = Duration::from_secs(1);
/// The name of Sluice's thread that answers.
const ANSWERING: &str = "admin";
/// Time to start the threads in.
const BEGINS_IN: Duration = Duration::from_millis(200);

/// When a round begins.
fn begin() -> Instant {
    Instant::now() + BEGINS_IN
}
