//! A primary and a replica that is slower than it by the price of each row.

use std::time::{Duration, Instant};

use benches::Result;
use integration::replica::{Lag, Replica};
use integration::scenario::numbers;
use integration::server::Flavour;
use integration::topology::{Topology, TopologyOptions};
use mysql_async::prelude::Queryable;

use crate::load::Load;
use crate::weathers::{Price, Weather};

/// The servers of one way. Dropping stops them.
pub(crate) struct Stage {
    pub(crate) servers: Topology,
}

impl Stage {
    /// New servers: nobody has seen any statement before, and no rate is known from before.
    pub(crate) async fn start(weather: &Weather) -> Result<Self> {
        let mut servers = Topology::start(options(weather.appliers)).await?;
        // Otherwise the session's depth of recursion would have to be the replica's.
        let by_row = match servers.primary.flavour() {
            Flavour::MySql => "SET SESSION binlog_format = ROW, cte_max_recursion_depth = 1000000",
            Flavour::MariaDb => "SET SESSION max_recursive_iterations = 1000000",
        };
        for load in weather.loads() {
            servers.primary.run_sql(&[by_row, &table(load), &fill(load)]).await?;
        }
        servers.wait_in_sync(CATCH_UP_LIMIT).await?;
        let replica = servers.replicas.first_mut().ok_or("no replica")?;
        // A trigger is known to the applier from its next start.
        replica.lag_start(Lag::StoppedApplier).await?;
        for load in weather.loads().filter(|load| load.priced) {
            let trigger = trigger(load, weather.price);
            replica.server().run_sql(&["SET SESSION sql_log_bin = 0", &trigger]).await?;
        }
        replica.lag_stop().await?;
        Ok(Self { servers })
    }

    /// From here on the replica waits for this long at each row that has a price.
    pub(crate) async fn price(&self, wait: Duration) -> Result<()> {
        let set = format!("SET GLOBAL {PRICE_IS_KEPT_IN} = {}", wait.as_micros());
        Ok(self.replica()?.server().run_sql(&[&set]).await?)
    }

    /// Rows of the job's transactions that the replica applies a second at this price, with nothing
    /// else to do.
    pub(crate) async fn capacity(&mut self, weather: &Weather, price: Price) -> Result<f64> {
        let load = weather.job;
        self.price(price.wait).await?;
        let rows_each = f64::from(load.rows_at_once());
        let waits = rows_each / f64::from(price.every) * price.wait.as_secs_f64();
        let at_once = f64::from(weather.appliers);
        let count = (at_once * MEASURES_FOR.as_secs_f64() / waits).clamp(2.0, 3_000.0);
        let count = u32::try_from(Duration::from_secs_f64(count).as_secs())?;
        let replica = self.servers.replicas.first_mut().ok_or("no replica")?;
        replica.lag_start(Lag::StoppedApplier).await?;
        let mut conn = self.servers.primary.admin().await?;
        conn.query_drop("USE test").await?;
        for statement in load.transactions(count) {
            conn.query_drop(statement).await?;
        }
        conn.disconnect().await?;
        replica.lag_stop().await?;
        let began = Instant::now();
        self.servers.wait_in_sync(CATCH_UP_LIMIT).await?;
        Ok(f64::from(count) * rows_each / began.elapsed().as_secs_f64())
    }

    /// Changes of rows that have a price and that the replica has applied.
    pub(crate) async fn applied(&self, weather: &Weather) -> Result<u64> {
        let mut all = 0;
        for load in weather.loads().filter(|load| load.priced) {
            let sum = format!("SELECT CAST(SUM(n) AS SIGNED) FROM test.{}", load.table);
            let sum = numbers(self.replica()?.server(), &sum).await?;
            all += u64::try_from(sum.first().copied().unwrap_or_default())?;
        }
        Ok(all)
    }

    pub(crate) fn replica(&self) -> Result<&Replica> {
        self.servers.replicas.first().ok_or_else(|| "no replica".into())
    }
}

/// A primary and a replica with so many appliers, where a trigger can give each row its price, on the
/// replica only.
fn options(appliers: u32) -> TopologyOptions {
    if appliers > 1 {
        // MariaDB runs triggers for replicated rows, and lets its appliers try anything beside
        // anything. MySQL's do that for rows only, for which it runs no triggers.
        return TopologyOptions {
            extra_args: vec!["--binlog-format=ROW".into()],
            replica_args: vec![
                format!("--slave-parallel-threads={appliers}"),
                "--slave-parallel-mode=optimistic".into(),
                "--slave-run-triggers-for-rbr=YES".into(),
                "--log-slave-updates=OFF".into(),
            ],
            ..TopologyOptions::new(Flavour::MariaDb, 1)
        };
    }
    TopologyOptions {
        extra_args: vec!["--binlog-format=STATEMENT".into()],
        // What the replica has no need to log cannot be what makes it slow.
        replica_args: vec![
            "--replica-parallel-workers=1".into(),
            "--log-replica-updates=OFF".into(),
        ],
        ..TopologyOptions::new(Flavour::MySql, 1)
    }
}

fn table(load: Load) -> String {
    format!("CREATE TABLE {} (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 0)", load.table)
}

fn fill(load: Load) -> String {
    let (rows, table) = (load.sessions.saturating_mul(load.rows_each()), load.table);
    format!(
        "INSERT INTO {table} (id) WITH RECURSIVE n (i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n"
    )
}

fn trigger(load: Load, price: Price) -> String {
    let (table, every) = (load.table, price.every);
    format!(
        "CREATE TRIGGER price_of_{table} BEFORE UPDATE ON {table} FOR EACH ROW \
         DO SLEEP(IF(NEW.id % {every} = 0, @@GLOBAL.{PRICE_IS_KEPT_IN} / 1000000, 0))"
    )
}

/// A variable that can be changed at any time and concerns the slow query log only, which is off.
const PRICE_IS_KEPT_IN: &str = "min_examined_row_limit";
/// For about so long the replica's rate is measured.
const MEASURES_FOR: Duration = Duration::from_millis(1_500);
const CATCH_UP_LIMIT: Duration = Duration::from_secs(60);
