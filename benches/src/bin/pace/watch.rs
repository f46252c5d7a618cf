//! What a run shows, and what Sluice says of itself meanwhile.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use benches::Result;
use integration::lag_meter::LagSeries;
use integration::sluice::Metrics;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::setup::Way;

/// One way, measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) way: Way,
    /// Of all blocks, one after the other.
    pub(crate) lag: LagSeries,
    /// The same of what Sluice said.
    pub(crate) said: Vec<Said>,
    /// How long all blocks were.
    pub(crate) time: Duration,
    applied: u64,
    committed: u64,
}

/// One block of a way.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) lag: LagSeries,
    /// Rows that the replica applied.
    pub(crate) applied: u64,
    /// Rows that the primary committed.
    pub(crate) committed: u64,
    pub(crate) time: Duration,
    pub(crate) said: Vec<Said>,
}

/// What Sluice said at some time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) at: Duration,
    pub(crate) lag_s: f64,
    pub(crate) pace_per_s: f64,
    pub(crate) waiting: f64,
    pub(crate) admitted: f64,
}

/// Asks for Sluice's metrics until it is stopped.
pub(crate) struct Watch {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Vec<Said>>,
}

impl Watch {
    pub(crate) fn start(admin: Option<SocketAddr>) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(watch(admin, stopped)) }
    }

    pub(crate) async fn stop(self) -> Vec<Said> {
        drop(self.stop);
        self.task.await.unwrap_or_default()
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

impl Measured {
    pub(crate) fn new(way: Way) -> Self {
        Self {
            way,
            lag: LagSeries::default(),
            said: Vec::new(),
            time: Duration::ZERO,
            applied: 0,
            committed: 0,
        }
    }

    pub(crate) fn add(&mut self, block: Block) {
        let Block { lag, applied, committed, time, said } = block;
        let first = lag.samples.first().map_or(Duration::ZERO, |(at, _)| *at);
        let shifted = |at: Duration| at.saturating_sub(first) + self.time;
        self.lag.samples.extend(lag.samples.iter().map(|(at, lag)| (shifted(*at), *lag)));
        let before = self.time;
        self.said.extend(said.into_iter().map(|said| Said { at: said.at + before, ..said }));
        self.applied += applied;
        self.committed += committed;
        self.time += time;
    }

    /// Rows a second that the replica applied.
    pub(crate) fn applied_per_s(&self) -> f64 {
        self.per_s(self.applied)
    }

    /// Rows a second that the primary committed.
    pub(crate) fn committed_per_s(&self) -> f64 {
        self.per_s(self.committed)
    }

    fn per_s(&self, rows: u64) -> f64 {
        u32::try_from(rows).map_or(f64::NAN, f64::from) / self.time.as_secs_f64()
    }

    /// Both series, for whoever wants to see more than the table says.
    pub(crate) fn write_series(&self, path: &Path) -> Result<()> {
        let mut text = String::from("kind,at_s,lag_s,pace_per_s,waiting,admitted\n");
        for (at, lag) in &self.lag.samples {
            writeln!(text, "true,{:.3},{:.3},,,", at.as_secs_f64(), lag.as_secs_f64())?;
        }
        for said in &self.said {
            let Said { at, lag_s, pace_per_s, waiting, admitted } = said;
            let at_s = at.as_secs_f64();
            writeln!(text, "sluice,{at_s:.3},{lag_s:.3},{pace_per_s:.1},{waiting},{admitted}")?;
        }
        Ok(std::fs::write(path, text)?)
    }
}

const LOOK: Duration = Duration::from_millis(100);
