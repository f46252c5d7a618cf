//! Sluice under attack, and a neighbour whose every statement is watched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::error::{HarnessError, Result};
use crate::raw::RawConn;
use crate::scenario::{connect, wait_for_sum};
use crate::sluice::SluiceProcess;

/// From [`Siege::begin`] to [`Siege::end`] anything may be done to Sluice.
#[derive(Debug)]
pub struct Siege {
    stop: Arc<AtomicBool>,
    neighbour: JoinHandle<Result<Neighbour>>,
    rss_before_kib: u64,
}

/// What a client that does nothing wrong has seen.
#[derive(Debug, Clone, Copy)]
pub struct Neighbour {
    /// How many statements it has run, each with the right answer.
    pub statements: u64,
    /// The one that took longest.
    pub slowest: Duration,
}

impl Siege {
    /// Lets the neighbour in.
    ///
    /// # Errors
    /// When it cannot log in.
    pub async fn begin(sluice: &SluiceProcess) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let conn = connect(sluice, "web").await?;
        let neighbour = tokio::spawn(live_on(conn, stop.clone()));
        Ok(Self { stop, neighbour, rss_before_kib: rss_kib(sluice)? })
    }

    /// After the attack: Sluice runs, nothing in it has panicked, no connection is left behind and no memory
    /// of note, and new clients are served. Gives what the neighbour has seen.
    ///
    /// # Errors
    /// When one of these is not so.
    pub async fn end(self, sluice: &mut SluiceProcess) -> Result<Neighbour> {
        self.stop.store(true, Ordering::Relaxed);
        let failed =
            |error| HarnessError::Protocol(format!("the neighbour's task failed: {error}"));
        let seen = self.neighbour.await.map_err(failed)??;
        if let Some(status) = sluice.exited() {
            return Err(HarnessError::Protocol(format!("sluice has ended: {status}")));
        }
        if sluice.log()?.contains("panicked") {
            return Err(HarnessError::Protocol("something in sluice has panicked".into()));
        }
        wait_for_sum(sluice, "sluice_client_connections", &[], 0.0).await?;
        let grown_kib = rss_kib(sluice)?.saturating_sub(self.rss_before_kib);
        if grown_kib > GROWTH_KIB_MAX {
            return Err(HarnessError::Protocol(format!("sluice has grown by {grown_kib} KiB")));
        }
        connect(sluice, "web").await?.query("SELECT 1").await?.accepted()?;
        Ok(seen)
    }
}

async fn live_on(mut conn: RawConn, stop: Arc<AtomicBool>) -> Result<Neighbour> {
    let mut seen = Neighbour { statements: 0, slowest: Duration::ZERO };
    while !stop.load(Ordering::Relaxed) {
        let sent = Instant::now();
        let answer = conn.query(format!("SELECT {}", seen.statements)).await?.accepted()?;
        if answer.first_text() != Some(seen.statements.to_string()) {
            return Err(HarnessError::Protocol(format!("the neighbour was told {answer:?}")));
        }
        seen.slowest = seen.slowest.max(sent.elapsed());
        seen.statements = seen.statements.saturating_add(1);
        tokio::time::sleep(PAUSE).await;
    }
    conn.quit().await?;
    Ok(seen)
}

fn rss_kib(sluice: &SluiceProcess) -> Result<u64> {
    let path = format!("/proc/{}/status", sluice.pid().unwrap_or(0));
    let status = std::fs::read_to_string(&path).map_err(HarnessError::io(path))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| HarnessError::Malformed("no VmRSS".into()))
}

const PAUSE: Duration = Duration::from_millis(5);
/// Allocators keep some of what a burst took; what thousands of attacks leave behind would be more.
const GROWTH_KIB_MAX: u64 = 48 * 1024;
