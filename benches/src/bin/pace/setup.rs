//! The servers, the two Sluices in front of them, and a run of one way.

use std::time::{Duration, Instant};

use benches::Result;
use benches::watch::Watch;
use benches::way::Way;
use integration::lag_meter::LagMeter;
use integration::replica::{Lag, Replica};
use integration::scenario::{numbers, wait_for_signal};
use integration::sluice::{Config, SluiceProcess};
use integration::topology::Topology;
use integration::writers::Writers;

use crate::watch::{Block, Measured};

/// Everything that runs. Dropping stops it.
pub(crate) struct Setup {
    servers: Topology,
}

impl Setup {
    pub(crate) async fn start() -> Result<Self> {
        let servers = Topology::mysql(1).await?;
        servers.primary.run_sql(&[TABLE]).await?;
        Ok(Self { servers })
    }

    /// One block, from a replica that has caught up.
    pub(crate) async fn measure(
        &mut self,
        measured: &mut Measured,
        warm_up: Duration,
        time: Duration,
    ) -> Result<()> {
        self.replica_mut()?.lag_start(Lag::SlowCommits(COMMIT_TAKES)).await?;
        let sluice = match measured.way {
            Way::Adaptive | Way::Binary => Some(start_sluice(&self.servers, measured.way).await?),
            Way::Direct => None,
        };
        let through =
            sluice.as_ref().map_or_else(|| self.servers.primary.addr(), SluiceProcess::listen_addr);
        let mut meter = LagMeter::start(&self.servers.primary, self.replica()?.server()).await?;
        let writers = Writers::start(through, "etl", WRITERS, INSERT).await?;
        tokio::time::sleep(warm_up).await;

        let watch = Watch::start(sluice.as_ref().map(SluiceProcess::admin_addr));
        let began = Instant::now();
        drop(meter.take().await?);
        let (applied, committed) = (self.applied().await?, writers.written().rows);
        tokio::time::sleep(time).await;
        let block = Block {
            lag: meter.take().await?,
            applied: self.applied().await?.saturating_sub(applied),
            committed: writers.written().rows.saturating_sub(committed),
            time: began.elapsed(),
            said: watch.stop().await,
        };
        measured.add(block);
        Ok(())
    }

    /// Lets the replica apply what is left at its full speed.
    pub(crate) async fn catch_up(&mut self) -> Result<()> {
        self.replica_mut()?.lag_stop().await?;
        self.servers.wait_in_sync(CATCH_UP_LIMIT).await?;
        Ok(())
    }

    async fn applied(&self) -> Result<u64> {
        let count = numbers(self.replica()?.server(), "SELECT COUNT(*) FROM t").await?;
        Ok(u64::try_from(count.first().copied().unwrap_or_default())?)
    }

    fn replica(&self) -> Result<&Replica> {
        self.servers.replicas.first().ok_or_else(|| "no replica".into())
    }

    fn replica_mut(&mut self) -> Result<&mut Replica> {
        self.servers.replicas.first_mut().ok_or_else(|| "no replica".into())
    }
}

async fn start_sluice(servers: &Topology, way: Way) -> Result<SluiceProcess> {
    let rules = "- { name: writers, match: { app: etl }, max_delay: 120s, permanent: true }";
    let pacing = format!("pacing: {}", way.as_str());
    let config = Config::new(servers)?.cluster(&pacing).rules(rules);
    let sluice = SluiceProcess::start_with(&config, &[("RUST_LOG", "info")]).await?;
    wait_for_signal(&sluice, "lag", 1.0).await?;
    Ok(sluice)
}

/// The default of `signals.lag.threshold` in the harness.
pub(crate) const THRESHOLD: Duration = Duration::from_secs(1);
const WRITERS: usize = 32;
/// Each commit of the replica takes this and some more.
const COMMIT_TAKES: Duration = Duration::from_millis(1);
const CATCH_UP_LIMIT: Duration = Duration::from_secs(600);
const TABLE: &str = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, pad CHAR(40))";
const INSERT: &str = "INSERT INTO t (n, pad) VALUES (1, 'as much as a row often has')";
