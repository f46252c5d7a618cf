//! What Sluice says of itself while it is measured.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use integration::sluice::Metrics;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// What Sluice said at some time.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// Since the watch began.
    pub at: Duration,
    /// Its largest lag.
    pub lag_s: f64,
    /// Rows a second that it admits.
    pub pace_per_s: f64,
    /// Statements in its queue.
    pub waiting: f64,
    /// Statements admitted so far.
    pub admitted: f64,
}

/// Asks for Sluice's metrics until it is stopped.
#[derive(Debug)]
pub struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Vec<Said>>,
}

impl Watch {
    /// Begins. Without an address there is nobody to ask, and nothing will have been said.
    #[must_use]
    pub fn start(admin: Option<SocketAddr>) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(watch(admin, stopped)) }
    }

    /// Ends, and gives what was said.
    pub async fn stop(self) -> Vec<Said> {
        drop(self.stop);
        self.task.await.unwrap_or_default()
    }
}

impl Said {
    /// What the values of [`Said::csv`] are.
    pub const CSV_HEADER: &str = "at_s,lag_s,pace_per_s,waiting,admitted";

    /// A line of a file, without its end.
    #[must_use]
    pub fn csv(&self) -> String {
        let Self { at, lag_s, pace_per_s, waiting, admitted } = self;
        format!("{:.3},{lag_s:.3},{pace_per_s:.1},{waiting},{admitted}", at.as_secs_f64())
    }
}

async fn watch(admin: Option<SocketAddr>, mut stopped: oneshot::Receiver<()>) -> Vec<Said> {
    let mut series = Vec::new();
    let began = Instant::now();
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = &mut stopped => return series,
            _ = look.tick() => {}
        }
        let Some(admin) = admin else { continue };
        let Ok(metrics) = Metrics::of(admin).await else { continue };
        let gauge = |name: &str, labels: &[_]| metrics.value(name, labels).unwrap_or(f64::NAN);
        series.push(Said {
            at: began.elapsed(),
            lag_s: metrics.max("sluice_signal_value", &[("signal", "lag")]).unwrap_or(f64::NAN),
            pace_per_s: gauge("sluice_pace_per_second", &[]),
            waiting: metrics.sum("sluice_queue_depth", &[]),
            admitted: metrics.sum("sluice_statements_total", &[("decision", "admitted")]),
        });
    }
}

const LOOK: Duration = Duration::from_millis(100);
