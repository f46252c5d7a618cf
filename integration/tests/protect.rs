//! Signals other than the lag on a real server: they hold batch work by what is in flight.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as the tests do")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use integration::raw::{Login, RawConn};
use integration::sluice::{Config, Metrics, SluiceProcess};
use integration::topology::Topology;
use integration::writers::Writers;
use tokio::task::JoinHandle;

#[tokio::test]
async fn report_jobs_are_held_by_the_latency_they_make_and_by_the_threads_they_run() {
    let servers = Topology::mysql(0).await.unwrap();
    servers.primary.run_sql(&[TABLE, ROW]).await.unwrap();
    let config = Config::new(&servers).unwrap().signals(SIGNALS).rules(RULES);
    let sluice = SluiceProcess::start(&config).await.unwrap();

    latency(&sluice).await;
    threads(&sluice).await;
}

/// A web app and eight sessions of a job want the same row, and the job keeps it for a while: the
/// longer the line for the row, the longer the web app's statements take at the server.
async fn latency(sluice: &SluiceProcess) {
    let web = Web::start(sluice.listen_addr()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(web.take().await);

    // The same job under a rule without a gate.
    let job = Writers::start(sluice.listen_addr(), "ddl", JOB_SESSIONS, JOB).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let without = web.take().await;
    job.stop().await.unwrap();

    let job = Writers::start(sluice.listen_addr(), "etl", JOB_SESSIONS, JOB).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    drop(web.take().await);
    let before = job.written().statements;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (with, done) = (web.take().await, job.written().statements - before);
    let metrics = sluice.metrics().await.unwrap();
    let status = sluice.http_get("/plain").await.unwrap().body;

    let limit = of(&metrics, "sluice_in_flight_limit", "web_p99");
    let seen = format!(
        "p99 {:.0?} without and {:.0?} with, {done} statements of the job, limit {limit:?}, value {:?}",
        quantile(&without, 0.99),
        quantile(&with, 0.99),
        of(&metrics, "sluice_signal_value", "web_p99"),
    );
    assert!(quantile(&without, 0.99) >= 2 * quantile(&with, 0.99), "{seen}");
    assert!(done >= 20, "one may run at any time while the gate is open: {seen}");
    assert!(limit.is_some_and(|limit| limit < 8.0), "{seen}");
    assert!(metrics.sum("sluice_queue_depth", &[("rule", "held-by-latency")]) >= 1.0, "{seen}");
    assert_eq!(of(&metrics, "sluice_pace_governs", "web_p99"), Some(1.0), "{seen}");
    assert!(status.contains("in flight"), "the page has a column for it");
    drop(job);
    web.stop().await;
}

/// Twenty sessions that do nothing but run.
async fn threads(sluice: &SluiceProcess) {
    let job = Writers::start(sluice.listen_addr(), "app", 20, SLEEPS).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (mut most, mut least) = (0.0_f64, f64::MAX);
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let metrics = sluice.metrics().await.unwrap();
        let in_flight = of(&metrics, "sluice_in_flight", "threads_running").unwrap();
        (most, least) = (most.max(in_flight), least.min(in_flight));
    }
    let done = job.written().refused;
    let seen = format!("{least} to {most} in flight, {done} answers");
    assert!(
        most <= 9.0,
        "a threshold of 8 leaves room for seven, and a sample may be late: {seen}"
    );
    assert!(most >= 1.0 && done >= 20, "{seen}");
}

/// One session of a web app.
struct Web {
    task: JoinHandle<()>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    over: AtomicBool,
    /// The latencies since they were taken, in microseconds, one in each place.
    latencies: tokio::sync::Mutex<Vec<u64>>,
    count: AtomicU64,
}

impl Web {
    async fn start(addr: SocketAddr) -> Self {
        let mut conn = RawConn::open(addr, &Login::new("web")).await.unwrap();
        let seen = Arc::new(Seen::default());
        let told = seen.clone();
        let task = tokio::spawn(async move {
            while !told.over.load(Ordering::Relaxed) {
                let began = Instant::now();
                let answer = conn.query(WEB).await.unwrap();
                assert!(answer.affected_rows().is_some(), "the web app is never refused");
                let micros = u64::try_from(began.elapsed().as_micros()).unwrap();
                told.latencies.lock().await.push(micros);
                told.count.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(THINKS).await;
            }
        });
        Self { task, seen }
    }

    async fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.seen.latencies.lock().await)
    }

    async fn stop(self) {
        self.seen.over.store(true, Ordering::Relaxed);
        self.task.await.unwrap();
        assert!(self.seen.count.load(Ordering::Relaxed) > 0);
    }
}

fn quantile(latencies: &[u64], quantile: f64) -> Duration {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    let last = f64::from(u32::try_from(sorted.len().saturating_sub(1)).unwrap());
    let at = Duration::try_from_secs_f64(last * quantile).unwrap().as_secs();
    let micros = sorted.get(usize::try_from(at).unwrap()).copied();
    Duration::from_micros(micros.unwrap_or_default())
}

fn of(metrics: &Metrics, name: &str, signal: &str) -> Option<f64> {
    metrics.max(name, &[("signal", signal)])
}

const SIGNALS: &str = "\
web_p99: { latency: { app: web, statements: [write], window: 2s }, threshold: 120ms }
threads_running: { threshold: 8 }";
const RULES: &str = "\
- { name: held-by-latency, match: { app: etl }, gate: web_p99, max_delay: 120s, permanent: true }
- { name: held-by-threads, match: { app: app }, statements: [read], gate: threads_running, max_delay: 120s, permanent: true }
- { name: everything-else, gate: none, permanent: true }";
const TABLE: &str = "CREATE TABLE t (id INT PRIMARY KEY, n INT)";
const ROW: &str = "INSERT INTO t VALUES (1, 0)";
const WEB: &str = "UPDATE t SET n = n + 1 WHERE id = 1";
/// It sleeps with the row's lock.
const JOB: &str = "UPDATE t SET n = n + 1 WHERE id = 1 AND SLEEP(0.04) = 0";
const JOB_SESSIONS: usize = 8;
const SLEEPS: &str = "SELECT SLEEP(0.1)";
const THINKS: Duration = Duration::from_millis(10);
