//! Replication lag, measured without Sluice: a row of our own on the primary, looked for on a replica.
//!
//! Every [`BEAT`] a task raises a number on the primary and notes when that had committed; another reads it on the
//! replica. The lag at that moment is the time since the oldest commit that the replica does not show, and 0 if
//! it shows all: too little by one beat at most.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::error::{HarnessError, Result};
use crate::server::Server;

/// Measures from [`LagMeter::start`] until it is dropped; [`LagMeter::take`] gives what was seen.
#[derive(Debug)]
pub struct LagMeter {
    writer: JoinHandle<Result<()>>,
    reader: JoinHandle<Result<()>>,
    samples: Arc<Mutex<LagSeries>>,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LagSeries {
    /// When, since the meter was started, and how long the lag was.
    pub samples: Vec<(Duration, Duration)>,
}

impl LagMeter {
    /// Makes the table `test.beat` on the primary and begins.
    ///
    /// # Errors
    /// When a server does not let the meter in.
    pub async fn start(primary: &Server, replica: &Server) -> Result<Self> {
        primary.run_sql(&[TABLE, "REPLACE INTO beat VALUES (1, 0)"]).await?;
        let committed = Arc::new(Mutex::new(Vec::new()));
        let samples = Arc::new(Mutex::new(LagSeries::default()));
        let writer = tokio::spawn(write(primary.admin().await?, committed.clone()));
        let reader = tokio::spawn(read(replica.admin().await?, committed, samples.clone()));
        Ok(Self { writer, reader, samples })
    }

    /// The lag as it was last seen.
    pub async fn now(&self) -> Duration {
        self.samples.lock().await.samples.last().map_or(Duration::ZERO, |(_, lag)| *lag)
    }

    /// Takes what was measured since the last call; times go on.
    ///
    /// # Errors
    /// When a connection of the meter has failed meanwhile.
    pub async fn take(&mut self) -> Result<LagSeries> {
        for task in [&mut self.writer, &mut self.reader] {
            if task.is_finished() {
                let why = format!("the lag meter has ended: {:?}", task.await);
                return Err(HarnessError::Malformed(why));
            }
        }
        Ok(std::mem::take(&mut *self.samples.lock().await))
    }
}

impl Drop for LagMeter {
    fn drop(&mut self) {
        self.writer.abort();
        self.reader.abort();
    }
}

impl LagSeries {
    /// The lag that this part of the samples does not exceed; zero if there are none.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Duration {
        let mut lags: Vec<Duration> = self.samples.iter().map(|(_, lag)| *lag).collect();
        lags.sort_unstable();
        let all = u32::try_from(lags.len()).unwrap_or(u32::MAX);
        let below = |rank: u32| f64::from(rank) < part * f64::from(all);
        let rank = lags.iter().zip(1_u32..).find(|(_, rank)| !below(*rank));
        rank.map(|(lag, _)| *lag).or(lags.last().copied()).unwrap_or_default()
    }

    /// The part of the samples at which the lag was as long or longer; 0 if there are none.
    #[must_use]
    pub fn share_from(&self, threshold: Duration) -> f64 {
        let count = |n: usize| u32::try_from(n).map_or(f64::INFINITY, f64::from);
        let over = self.samples.iter().filter(|(_, lag)| *lag >= threshold).count();
        count(over) / count(self.samples.len().max(1))
    }
}

async fn write(mut primary: Conn, committed: Arc<Mutex<Vec<Instant>>>) -> Result<()> {
    let mut beat = interval(BEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for seq in 1_u64.. {
        beat.tick().await;
        primary.query_drop(format!("UPDATE test.beat SET seq = {seq} WHERE id = 1")).await?;
        committed.lock().await.push(Instant::now());
    }
    Ok(())
}

async fn read(
    mut replica: Conn,
    committed: Arc<Mutex<Vec<Instant>>>,
    samples: Arc<Mutex<LagSeries>>,
) -> Result<()> {
    let started = Instant::now();
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let asked = Instant::now();
        let shown = match replica.query_first::<Option<u64>, _>(SELECT).await {
            Ok(seq) => usize::try_from(seq.flatten().unwrap_or(0)).unwrap_or(usize::MAX),
            // A replica that lags shows the table late, too.
            Err(mysql_async::Error::Server(error)) if error.code == NO_SUCH_TABLE => 0,
            Err(error) => return Err(error.into()),
        };
        // Number n is at index n - 1, so this is the first that is not shown.
        let unseen = committed.lock().await.get(shown).copied();
        let lag = unseen.map_or(Duration::ZERO, |at| asked.saturating_duration_since(at));
        samples.lock().await.samples.push((asked.saturating_duration_since(started), lag));
    }
}

/// How often the primary's row is raised.
pub const BEAT: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(20);
const TABLE: &str = "CREATE TABLE IF NOT EXISTS beat (id INT PRIMARY KEY, seq BIGINT NOT NULL)";
/// `ER_NO_SUCH_TABLE`.
const NO_SUCH_TABLE: u16 = 1146;
const SELECT: &str = "SELECT MAX(seq) FROM test.beat";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_shares_are_those_of_the_samples() {
        let ms = Duration::from_millis;
        let samples = (1..=100).map(|n| (ms(n), ms(n * 10))).collect();
        let series = LagSeries { samples };
        assert_eq!((series.quantile(0.5), series.quantile(0.99)), (ms(500), ms(990)));
        assert_eq!((series.quantile(0.0), series.quantile(1.0)), (ms(10), ms(1_000)));
        assert!((series.share_from(ms(900)) - 0.11).abs() < 1e-9);
        assert_eq!(LagSeries::default().quantile(0.5), Duration::ZERO);
        assert!(LagSeries::default().share_from(Duration::ZERO).abs() < f64::EPSILON);
    }
}
