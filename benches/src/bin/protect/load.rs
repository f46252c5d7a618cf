//! The web app and the report jobs.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benches::Result;
use integration::raw::{Login, RawConn};
use integration::topology::Topology;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// Sessions of the web app, and how long each thinks.
const WEB_SESSIONS: u32 = 16;
const THINKS: Duration = Duration::from_millis(20);
/// Rows that the web app reads one of.
const ROWS: u32 = 10_000;
/// A report: about a tenth of a second of CPU.
const REPORT: &str = "SELECT COUNT(DISTINCT SHA2(CONCAT(id, pad), 512)) FROM t";
/// A place in line may last as long as a block.
const ANSWER_LIMIT: Duration = Duration::from_secs(3_600);

pub(crate) async fn fill(servers: &Topology) -> Result<()> {
    let rows = format!(
        "INSERT INTO t WITH RECURSIVE n (i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, REPEAT(MD5(i), 4) FROM n"
    );
    let table = "CREATE TABLE t (id INT PRIMARY KEY, pad CHAR(128))";
    servers
        .primary
        .run_sql(&["SET SESSION cte_max_recursion_depth = 1000000", table, &rows])
        .await?;
    Ok(())
}

/// What was measured in one block, or in several.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Of the web app, in seconds.
    latencies: Vec<f64>,
    reports: u64,
    time: Duration,
}

impl Measured {
    pub(crate) fn add(&mut self, other: Self) {
        self.latencies.extend(other.latencies);
        self.latencies.sort_unstable_by(f64::total_cmp);
        self.reports += other.reports;
        self.time += other.time;
    }

    /// In seconds.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = u32::try_from(sorted.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let index = Duration::try_from_secs_f64(f64::from(last) * quantile).unwrap_or_default();
        let index = usize::try_from(index.as_secs()).unwrap_or(usize::MAX);
        sorted.get(index).copied().unwrap_or_default()
    }

    pub(crate) fn web_per_s(&self) -> f64 {
        f64::from(u32::try_from(self.latencies.len()).unwrap_or(u32::MAX)) / self.seconds()
    }

    pub(crate) fn reports_per_s(&self) -> f64 {
        f64::from(u32::try_from(self.reports).unwrap_or(u32::MAX)) / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.time.as_secs_f64().max(1e-9)
    }
}

/// Everybody at work, until it is dropped.
pub(crate) struct Load {
    tasks: Vec<JoinHandle<()>>,
    seen: UnboundedReceiver<Seen>,
    since: Instant,
}

/// A statement has ended.
enum Seen {
    /// The web app's, after so many seconds.
    Web(f64),
    Report,
}

impl Load {
    pub(crate) async fn start(addr: SocketAddr, jobs: usize) -> Result<Self> {
        let (ended, seen) = unbounded_channel();
        let mut tasks = Vec::new();
        for session in 0..WEB_SESSIONS {
            let conn = RawConn::open(addr, &Login::new("web")).await?;
            tasks.push(tokio::spawn(browse(conn, session, ended.clone())));
        }
        for _ in 0..jobs {
            let mut conn = RawConn::open(addr, &Login::new("etl")).await?;
            conn.set_read_limit(ANSWER_LIMIT);
            let ended = ended.clone();
            tasks.push(tokio::spawn(async move {
                while conn.query(REPORT).await.is_ok() && ended.send(Seen::Report).is_ok() {}
            }));
        }
        Ok(Self { tasks, seen, since: Instant::now() })
    }

    /// What was measured since the last call.
    pub(crate) fn take(&mut self) -> Measured {
        let mut measured = Measured { time: self.since.elapsed(), ..Measured::default() };
        self.since = Instant::now();
        while let Ok(seen) = self.seen.try_recv() {
            match seen {
                Seen::Web(latency) => measured.latencies.push(latency),
                Seen::Report => measured.reports += 1,
            }
        }
        measured
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn browse(mut conn: RawConn, session: u32, ended: UnboundedSender<Seen>) {
    let mut row = session;
    loop {
        row = row.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let id = row.checked_rem(ROWS).unwrap_or(0).saturating_add(1);
        let began = Instant::now();
        if conn.query(format!("SELECT pad FROM t WHERE id = {id}")).await.is_err() {
            return;
        }
        let latency = began.elapsed().as_secs_f64();
        if ended.send(Seen::Web(latency)).is_err() {
            return;
        }
        tokio::time::sleep(THINKS).await;
    }
}
