//! Checks over HTTP beside traffic: how long an answer takes at a steady rate.
//!
//!   checks [CHECKS A SECOND = 5000] [SECONDS = 10] [CONNECTIONS = 32] [WRITERS = 8]
//!
//! Prints Markdown. Each connection stays, has a thread of its own and asks by HEAD at times that are fixed ahead, all
//! of them evenly spread. A question that has to wait for the answer before it has waited since its own time, so that a
//! stall is seen in all that it delays. Three times are told of each question: *due*, from its time to its answer, which
//! holds the client's own delay in waking up; *sent*, from the write to the answer; and *late*, how much later than its
//! time it was written, which is the client's and the machine's alone where no answer was waited for. `/_ping` is asked
//! at the same rate for comparison: it is answered by the same thread, and knows nothing.
//!
//! The writers send through Sluice as fast as they are answered. Client, servers and Sluice share the machine.
#![expect(clippy::print_stdout, reason = "the report is what this program is for")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use benches::Result;
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use integration::writers::Writers;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u32| args.next().map_or(Ok(default), |text| text.parse());
    let load = Load {
        per_s: number(5_000)?.max(1),
        lasts: Duration::from_secs(number(10)?.into()),
        connections: number(32)?.max(1),
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

/// One question.
#[derive(Clone, Copy)]
struct Took {
    due: Duration,
    sent: Duration,
    late: Duration,
}

async fn run(load: Load, writers: u32) -> Result<()> {
    let servers = Topology::mysql(1).await?;
    servers.primary.run_sql(&[TABLE]).await?;
    let config = Config::new(&servers)?.rules(RULES);
    let sluice = SluiceProcess::start(&config).await?;
    println!(
        "| asked | writers | checks a second | statements a second | due p50, p99, p99.9, max (ms) | \
         sent p50, p99, p99.9, max (ms) | late p50, p99 (ms) |\n|---|---|---|---|---|---|---|"
    );
    for sessions in [0, writers] {
        for (what, path) in PATHS {
            let sessions = usize::try_from(sessions)?;
            let writers = Writers::start(sluice.listen_addr(), "app", sessions, INSERT).await?;
            tokio::time::sleep(WARM_UP).await;
            let admin = sluice.admin_addr();
            let before = writers.written().statements;
            let took = tokio::task::spawn_blocking(move || measure(admin, path, load)).await??;
            let statements = writers.stop().await?.statements.saturating_sub(before);
            let seconds = load.lasts.as_secs_f64();
            let checks = f64::from(u32::try_from(took.len())?) / seconds;
            let statements = f64::from(u32::try_from(statements)?) / seconds;
            println!(
                "| {what} | {sessions} | {checks:.0} | {statements:.0} | {} | {} | {} |",
                parts(&took, |took| took.due, &[0.5, 0.99, 0.999, 1.0]),
                parts(&took, |took| took.sent, &[0.5, 0.99, 0.999, 1.0]),
                parts(&took, |took| took.late, &[0.5, 0.99]),
            );
        }
    }
    Ok(())
}

/// The times of every question.
fn measure(admin: SocketAddr, path: &str, load: Load) -> std::io::Result<Vec<Took>> {
    let between = Duration::from_secs(1).mul_f64(f64::from(load.connections)) / load.per_s;
    let request = format!("HEAD {path} HTTP/1.1\r\nHost: {admin}\r\nUser-Agent: check\r\n\r\n");
    let sockets = (0..load.connections).map(|_| TcpStream::connect(admin));
    let sockets = sockets.collect::<std::io::Result<Vec<_>>>()?;
    let begin = Instant::now() + BEGINS_IN;
    thread::scope(|scope| {
        let ask = |(n, socket): (u32, TcpStream)| {
            let first = begin + between * n / load.connections;
            let request = request.as_bytes();
            scope.spawn(move || ask(socket, request, first..begin + load.lasts, between))
        };
        let asking: Vec<_> = (0..).zip(sockets).map(ask).collect();
        let mut all = Vec::new();
        for asked in asking {
            let ended = |_| std::io::Error::other("a client has ended");
            all.extend(asked.join().map_err(ended)??);
        }
        Ok(all)
    })
}

/// Asks at its times, over one connection.
fn ask(
    mut socket: TcpStream,
    request: &[u8],
    times: std::ops::Range<Instant>,
    between: Duration,
) -> std::io::Result<Vec<Took>> {
    socket.set_nodelay(true)?;
    let mut took = Vec::new();
    let mut answer = [0; 4_096];
    let mut due = times.start;
    while due < times.end {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let written = Instant::now();
        socket.write_all(request)?;
        let mut len = 0;
        // The answer to HEAD ends with its head.
        while !answer.get(..len).unwrap_or_default().ends_with(b"\r\n\r\n") {
            let read = socket.read(answer.get_mut(len..).unwrap_or_default())?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            len += read;
        }
        let answered = Instant::now();
        let status = answer.get(9..12).unwrap_or_default();
        if !STATUSES.contains(&status) {
            return Err(std::io::Error::other(String::from_utf8_lossy(&answer).into_owned()));
        }
        took.push(Took {
            due: answered - due,
            sent: answered - written,
            late: written.saturating_duration_since(due),
        });
        due += between;
    }
    Ok(took)
}

/// The values below which these parts of them are, in milliseconds.
fn parts(took: &[Took], of: impl Fn(&Took) -> Duration, parts: &[f64]) -> String {
    let mut sorted: Vec<Duration> = took.iter().map(of).collect();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    let at = |part: &f64| {
        let share = Duration::from_nanos(u64::try_from(last).unwrap_or(0)).mul_f64(*part);
        let index = usize::try_from(share.as_nanos()).unwrap_or(last);
        let value = sorted.get(index).copied().unwrap_or_default();
        format!("{:.2}", value.as_secs_f64() * 1e3)
    };
    parts.iter().map(at).collect::<Vec<_>>().join(", ")
}

const PATHS: [(&str, &str); 3] = [
    ("vitess", "/throttler/check?app=tool&rows=1"),
    ("freno", "/check/tool/mysql/main?rows=1"),
    ("nothing", "/_ping"),
];
const STATUSES: [&[u8]; 3] = [b"200", b"417", b"429"];
const RULES: &str = "- { name: gated, match: { app: [tool, app] }, ratio: 0.1, permanent: true }";
const TABLE: &str = "CREATE TABLE t (n INT AUTO_INCREMENT PRIMARY KEY)";
const INSERT: &str = "INSERT INTO t () VALUES ()";
const WARM_UP: Duration = Duration::from_secs(1);
/// Time to start the threads in.
const BEGINS_IN: Duration = Duration::from_millis(200);
