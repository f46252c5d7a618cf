//! The traffic beside the checks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use benches::Result;
use integration::error::Result as Answered;
use integration::raw::{Login, RawConn};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// How much of it.
#[derive(Clone, Copy)]
pub(super) enum Traffic {
    None,
    /// Statements a second, of [`SESSIONS`] together.
    PerS(u32),
    /// Each session sends as soon as it is answered.
    Unbounded,
}

/// Sessions that write through Sluice.
pub(super) struct Writing {
    sessions: Vec<JoinHandle<Answered<()>>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    written: AtomicU64,
}

impl Traffic {
    pub(super) async fn start(self, addr: SocketAddr) -> Result<Writing> {
        let shared = Arc::new(Shared::default());
        let mut writing = Writing { sessions: Vec::new(), shared };
        let (sessions, between) = match self {
            Self::None => return Ok(writing),
            Self::PerS(per_s) => (SESSIONS, Some(Duration::from_secs(1) * SESSIONS / per_s.max(1))),
            Self::Unbounded => (SESSIONS, None),
        };
        for _ in 0..sessions {
            let conn = RawConn::open(addr, &Login::new("app")).await?;
            writing.sessions.push(tokio::spawn(write(conn, between, writing.shared.clone())));
        }
        Ok(writing)
    }
}

impl Writing {
    /// Statements so far.
    pub(super) fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Lets each have its answer, and says how many there were.
    pub(super) async fn stop(self) -> Result<u64> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for session in self.sessions {
            session.await??;
        }
        Ok(self.shared.written.load(Ordering::Relaxed))
    }
}

async fn write(mut conn: RawConn, between: Option<Duration>, shared: Arc<Shared>) -> Answered<()> {
    conn.set_read_limit(ANSWER_LIMIT);
    let mut times = between.map(interval);
    if let Some(times) = &mut times {
        // What was late is not sent all at once.
        times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    while !shared.stop.load(Ordering::Relaxed) {
        if let Some(times) = &mut times {
            times.tick().await;
        }
        if conn.query(INSERT).await?.affected_rows().is_some() {
            shared.written.fetch_add(1, Ordering::Relaxed);
        }
    }
    conn.quit().await
}

const INSERT: &str = "INSERT INTO t () VALUES ()";
const SESSIONS: u32 = 8;
/// Longer than a statement may wait in a queue.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
