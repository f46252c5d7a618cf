//! Small statements beside large results that come in bursts: what a proxy's threads do for one
//! connection, the others wait for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use benches::Result;
use benches::beside::{Failure, beside, ended};
use benches::stats::{median, quantile};
use benches::web::{Reads, Web, WebApp};
use integration::raw::{Login, RawConn};
use tokio::io::AsyncReadExt;

use crate::setup::Target;

/// One way, alone and beside the exports.
pub(crate) struct Neighbours {
    pub(crate) name: &'static str,
    /// In milliseconds: the 99th of a hundred, and the 999th of a thousand.
    pub(crate) alone_ms: (f64, f64),
    pub(crate) beside_ms: (f64, f64),
    /// What the exports took, in MiB per second.
    pub(crate) mib_per_s: f64,
}

/// Every way in turn, round by round; medians.
pub(crate) async fn measure(
    targets: &[Target],
    (seconds, rounds): (u32, u32),
) -> Result<Vec<Neighbours>> {
    let time = Duration::from_secs(seconds.into());
    let mut all: Vec<Vec<Neighbours>> = Vec::new();
    for round in 1..=rounds {
        eprintln!("peers: small statements beside large results, round {round}");
        let mut ways = Vec::new();
        for target in targets {
            let (alone_ms, _) = one(target.addr, time, 0).await?;
            let (beside_ms, mib_per_s) = one(target.addr, time, EXPORTS).await?;
            ways.push(Neighbours { name: target.name, alone_ms, beside_ms, mib_per_s });
        }
        all.push(ways);
    }
    let medians = targets.iter().enumerate().map(|(index, target)| {
        let of = |figure: fn(&Neighbours) -> f64| {
            median(all.iter().filter_map(|round| round.get(index)).map(figure).collect())
        };
        Neighbours {
            name: target.name,
            alone_ms: (of(|it| it.alone_ms.0), of(|it| it.alone_ms.1)),
            beside_ms: (of(|it| it.beside_ms.0), of(|it| it.beside_ms.1)),
            mib_per_s: of(|it| it.mib_per_s),
        }
    });
    Ok(medians.collect())
}

/// The web application's quantiles, and what the exports beside it took.
async fn one(addr: SocketAddr, time: Duration, exports: u32) -> Result<((f64, f64), f64)> {
    let mut web = Web::start(addr, WEB_APP).await?;
    let (ends, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut threads = Vec::new();
    for _ in 0..exports {
        let (ends, taken) = (Arc::clone(&ends), Arc::clone(&taken));
        threads.push(beside("export", move || export(addr, ends, taken))?);
    }
    tokio::time::sleep(WARM_UP).await;
    drop(web.take()?);
    let before = taken.load(Ordering::Relaxed);
    tokio::time::sleep(time).await;
    let got = taken.load(Ordering::Relaxed).saturating_sub(before);
    let mut took: Vec<f64> = web.take()?.iter().map(|seen| seen.took_s * 1e3).collect();
    ends.store(true, Ordering::Relaxed);
    for thread in threads {
        ended(thread).await?;
    }
    took.sort_unstable_by(f64::total_cmp);
    let mib = f64::from(u32::try_from(got >> 10)?) / 1_024.0;
    Ok(((quantile(&took, 0.99), quantile(&took, 0.999)), mib / time.as_secs_f64()))
}

/// Takes a large result in pieces, and works on each: meanwhile all buffers between the server and
/// it fill.
async fn export(
    addr: SocketAddr,
    ends: Arc<AtomicBool>,
    taken: Arc<AtomicU64>,
) -> std::result::Result<(), Failure> {
    let mut conn = RawConn::open(addr, &Login::new("app")).await?;
    let sql = "SELECT REPEAT('x', 10000) FROM test.sbtest1 a, test.sbtest2 b";
    conn.send_command(&[b"\x03", sql.as_bytes()].concat()).await?;
    let mut buffer = vec![0; 256 * 1024];
    let mut piece = 0_usize;
    while !ends.load(Ordering::Relaxed) {
        let read = tokio::time::timeout(STALL, conn.stream().read(&mut buffer)).await??;
        if read == 0 {
            return Err("the result ended early".into());
        }
        taken.fetch_add(u64::try_from(read)?, Ordering::Relaxed);
        piece = piece.saturating_add(read);
        if piece >= PIECE {
            piece = 0;
            tokio::time::sleep(WORKS).await;
        }
    }
    Ok(())
}

const WEB_APP: WebApp = WebApp {
    sessions: 8,
    thinks: Duration::from_millis(5),
    reads: Reads::Row,
    writes_one_in: None,
};

const EXPORTS: u32 = 2;

/// What an export takes before it works on it, and for how long.
const PIECE: usize = 8 * 1024 * 1024;
const WORKS: Duration = Duration::from_millis(50);

const WARM_UP: Duration = Duration::from_secs(1);

/// Nothing comes for so long when something is wrong.
const STALL: Duration = Duration::from_secs(30);
