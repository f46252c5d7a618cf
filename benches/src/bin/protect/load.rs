//! The web app and the report jobs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benches::Result;
use benches::export::Tool;
use benches::stats::quantile;
use benches::web::{Web, WebApp};
use integration::raw::Login;
use tokio::task::JoinHandle;

/// Some 750 statements a second.
const WEB_APP: WebApp =
    WebApp { sessions: 16, thinks: Duration::from_millis(20), writes_one_in: None };
/// A report: so many orders, and what the tool works on a row of them. Half a second when nobody is in the way.
const ORDERS: u32 = 1_000;
const WORKS: Duration = Duration::from_micros(500);

/// What was measured in one block, or in several.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    /// Of the web app, in seconds, sorted.
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
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        quantile(&self.latencies, part)
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
    web: Web,
    jobs: Vec<JoinHandle<()>>,
    reports: Arc<AtomicU64>,
    since: Instant,
}

impl Load {
    pub(crate) async fn start(addr: SocketAddr, jobs: usize) -> Result<Self> {
        let web = Web::start(addr, WEB_APP).await?;
        let reports = Arc::new(AtomicU64::new(0));
        let mut load = Self { web, jobs: Vec::new(), reports, since: Instant::now() };
        for _ in 0..jobs {
            let mut tool = Tool::open(addr, &Login::new("etl"), WORKS).await?;
            let reports = load.reports.clone();
            load.jobs.push(tokio::spawn(async move {
                while tool.export(ORDERS).await.is_ok() {
                    reports.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        Ok(load)
    }

    /// What was measured since the last call.
    ///
    /// # Errors
    /// When a job or the web app has ended.
    pub(crate) fn take(&mut self) -> Result<Measured> {
        if self.jobs.iter().any(JoinHandle::is_finished) {
            return Err("a report has failed".into());
        }
        let time = self.since.elapsed();
        self.since = Instant::now();
        let mut latencies: Vec<f64> = self.web.take()?.iter().map(|seen| seen.took_s).collect();
        latencies.sort_unstable_by(f64::total_cmp);
        Ok(Measured { latencies, reports: self.reports.swap(0, Ordering::Relaxed), time })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for job in &self.jobs {
            job.abort();
        }
    }
}
