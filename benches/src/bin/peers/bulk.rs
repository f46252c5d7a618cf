//! One large result: throughput, CPU and memory.

use std::time::{Duration, Instant};

use benches::Result;
use benches::process::{cpu_time, forget_peak, peak_kib, resident_kib};
use benches::stats::median;
use integration::raw::{Login, RawConn};
use tokio::io::AsyncReadExt;

use crate::setup::{Setup, Target};

/// Rows of a result.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) len: u64,
    pub(crate) count: u64,
}

/// A GiB in rows of two sizes: there is something to do for a row, and something for a byte.
pub(crate) const RESULTS: [Rows; 2] =
    [Rows { len: 100, count: 10_226_112 }, Rows { len: 1_000_000, count: 1_074 }];

const GIB: f64 = 1_073_741_824.0;

/// What one way took for one result.
pub(crate) struct Transfer {
    pub(crate) name: &'static str,
    /// MiB per second.
    pub(crate) mib_per_s: f64,
    /// Of the direct way's.
    pub(crate) of_direct: f64,
    /// Of the proxy, in seconds.
    pub(crate) cpu_s: f64,
    /// What the proxy grew by at most, in KiB.
    pub(crate) grown_kib: f64,
}

/// Every way in turn, round by round; medians.
pub(crate) async fn transfers(setup: &Setup, rows: Rows, rounds: u32) -> Result<Vec<Transfer>> {
    let targets = setup.targets()?;
    let mut all: Vec<Vec<Transfer>> = Vec::new();
    for round in 1..=rounds {
        eprintln!("peers: 1 GiB in rows of {}, round {round}", rows.len);
        let mut transfers: Vec<Transfer> = Vec::new();
        for target in &targets {
            let mut transfer = one(target, rows).await?;
            let direct = transfers.first().map_or(transfer.mib_per_s, |first| first.mib_per_s);
            transfer.of_direct = transfer.mib_per_s / direct;
            transfers.push(transfer);
        }
        all.push(transfers);
    }
    let medians = targets.iter().enumerate().map(|(index, target)| {
        let of = |figure: fn(&Transfer) -> f64| {
            median(all.iter().filter_map(|round| round.get(index)).map(figure).collect())
        };
        Transfer {
            name: target.name,
            mib_per_s: of(|t| t.mib_per_s),
            of_direct: of(|t| t.of_direct),
            cpu_s: of(|t| t.cpu_s),
            grown_kib: of(|t| t.grown_kib),
        }
    });
    Ok(medians.collect())
}

async fn one(target: &Target, rows: Rows) -> Result<Transfer> {
    let mut conn = RawConn::open(target.addr, &Login::new("app")).await?;
    let before = target.pid.map(cost).transpose()?;
    if let Some(pid) = target.pid {
        forget_peak(pid)?;
    }
    let Rows { len, count } = rows;
    let sql =
        format!("SELECT REPEAT('x', {len}) FROM test.sbtest1 a, test.sbtest2 b LIMIT {count}");
    let started = Instant::now();
    conn.send_command(&[b"\x03", sql.as_bytes()].concat()).await?;
    // Of each row its header and the length of its value come too; what stands before the first and behind the
    // last is small.
    let expected = rows.bytes();
    let mut buffer = vec![0; 256 * 1024];
    let mut got = 0_u64;
    while got < expected {
        let read = tokio::time::timeout(STALL, conn.stream().read(&mut buffer)).await??;
        if read == 0 {
            return Err("the result ended early".into());
        }
        got = got.saturating_add(u64::try_from(read)?);
    }
    let seconds = started.elapsed().as_secs_f64();
    let (mut cpu_s, mut grown_kib) = (f64::NAN, f64::NAN);
    if let Some((pid, (cpu_before, resident))) = target.pid.zip(before) {
        cpu_s = cpu_time(pid)?.total_s() - cpu_before;
        grown_kib = peak_kib(pid)? - resident;
    }
    let mib_per_s = GIB / 1_048_576.0 / seconds;
    Ok(Transfer { name: target.name, mib_per_s, of_direct: 1.0, cpu_s, grown_kib })
}

fn cost(pid: u32) -> Result<(f64, f64)> {
    Ok((cpu_time(pid)?.total_s(), resident_kib(pid)?))
}

impl Rows {
    fn bytes(self) -> u64 {
        let prefix = if self.len < 251 { 1 } else { 4 };
        self.count.saturating_mul(self.len.saturating_add(4).saturating_add(prefix))
    }
}

/// Nothing comes for so long when something is wrong.
const STALL: Duration = Duration::from_secs(30);
