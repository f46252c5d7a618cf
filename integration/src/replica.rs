//! A replica, and the ways to make it lag on purpose.

use std::net::SocketAddr;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::error::{HarnessError, Result};
use crate::server::{Flavour, Server};

/// How to make a replica lag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lag {
    /// `STOP REPLICA SQL_THREAD`: events arrive and are not applied. The server's own measure is NULL.
    StoppedApplier,
    /// `STOP REPLICA IO_THREAD`: events do not arrive. The server's own measure says 0 for a while.
    StoppedReceiver,
    /// `LOCK TABLES … READ` of this table in a session of its own: the applier waits at the first
    /// event for it. The most real lag. The table must be there.
    LockedTable(String),
    /// `FLUSH TABLES WITH READ LOCK` in a session of its own: the applier waits at every commit.
    GlobalReadLock,
    /// `SOURCE_DELAY`, in whole seconds: a replica that is delayed, not overloaded.
    Delayed(u32),
    /// SIGSTOP: the server answers nothing at all.
    Frozen,
    /// A capacity: one applier thread that needs at least this long for each transaction, because
    /// the commit waits (without using the processor) for others to share its group. One in 5 ms is
    /// 200 transactions a second. At most one second.
    SlowCommits(Duration),
}

/// A replica that follows a primary. It does not lag unless told.
#[derive(Debug)]
pub struct Replica {
    server: Server,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    how: Lag,
    /// The session whose lock stops the applier.
    lock: Option<Conn>,
}

impl Replica {
    /// Makes a fresh server follow a primary.
    ///
    /// # Errors
    /// When a statement of the link fails.
    pub async fn link(server: Server, primary: &Server) -> Result<Self> {
        Self::link_at(server, primary.addr()).await
    }

    /// The same at an address on the loopback, which may be a proxy's.
    ///
    /// # Errors
    /// When a statement of the link fails.
    pub async fn link_at(server: Server, source: SocketAddr) -> Result<Self> {
        let port = source.port();
        let source = match server.flavour() {
            Flavour::MySql => format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, \
                 SOURCE_USER='repl', SOURCE_PASSWORD='repl', SOURCE_AUTO_POSITION=1, \
                 SOURCE_SSL=1, SOURCE_CONNECT_RETRY=1, SOURCE_HEARTBEAT_PERIOD=1"
            ),
            Flavour::MariaDb => format!(
                "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, \
                 MASTER_USER='repl', MASTER_PASSWORD='repl', MASTER_USE_GTID=slave_pos, \
                 MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1"
            ),
        };
        let replica = Self { server, held: None };
        replica.server.run_sql(&[&source, replica.words().start]).await?;
        Ok(replica)
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The server, to crash it and the like.
    pub fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    /// Where clients connect.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Makes the replica lag, until [`Replica::lag_stop`]. Another way that is in force ends first.
    ///
    /// # Errors
    /// When a statement or signal fails.
    pub async fn lag_start(&mut self, how: Lag) -> Result<()> {
        self.lag_stop().await?;
        let lock = match &how {
            Lag::StoppedApplier => self.sql(&[self.words().stop_applier]).await?,
            Lag::StoppedReceiver => self.sql(&[self.words().stop_receiver]).await?,
            Lag::LockedTable(table) => Some(self.hold(&format!("LOCK TABLES {table} READ")).await?),
            Lag::GlobalReadLock => Some(self.hold("FLUSH TABLES WITH READ LOCK").await?),
            Lag::Delayed(seconds) => self.delay(*seconds).await?,
            Lag::Frozen => {
                self.server.freeze()?;
                None
            }
            Lag::SlowCommits(each) => self.slow_commits(*each).await?,
        };
        self.held = Some(Held { how, lock });
        Ok(())
    }

    /// Ends whatever makes the replica lag. It still needs time to catch up.
    ///
    /// # Errors
    /// When a statement or signal fails.
    pub async fn lag_stop(&mut self) -> Result<()> {
        let Some(Held { how, lock }) = self.held.take() else {
            return Ok(());
        };
        if let Some(mut lock) = lock {
            lock.query_drop("UNLOCK TABLES").await?;
            lock.disconnect().await?;
        }
        match how {
            Lag::StoppedApplier => drop(self.sql(&[self.words().start_applier]).await?),
            Lag::StoppedReceiver => drop(self.sql(&[self.words().start_receiver]).await?),
            Lag::LockedTable(_) | Lag::GlobalReadLock => {}
            Lag::Delayed(_) => drop(self.delay(0).await?),
            Lag::Frozen => self.server.thaw()?,
            Lag::SlowCommits(_) => drop(self.slow_commits(Duration::ZERO).await?),
        }
        Ok(())
    }

    /// Waits until everything that the primary has committed by now is applied here.
    ///
    /// # Errors
    /// When it is not within `limit`.
    pub async fn wait_for(&self, primary: &Server, limit: Duration) -> Result<()> {
        let words = self.words();
        let position: String = primary.query_first(words.position).await?.unwrap_or_default();
        let (wait, seconds) = (words.wait, limit.as_secs().max(1));
        let position = position.replace('\n', "");
        let question = format!("SELECT {wait}('{position}', {seconds})");
        let answer: Option<Option<i64>> = self.server.query_first(&question).await?;
        match answer.flatten() {
            Some(answer) if answer >= 0 && answer != words.wait_timed_out => Ok(()),
            _ => Err(HarnessError::TimedOut {
                what: format!("replica on port {} applies {position}", self.server.port()),
                after: limit,
            }),
        }
    }

    /// `Seconds_Behind_Source` as the server says it: `None` is its NULL.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn seconds_behind(&self) -> Result<Option<u64>> {
        let words = self.words();
        let row: Option<mysql_async::Row> = self.server.query_first(words.status).await?;
        Ok(row.and_then(|row| row.get::<Option<u64>, _>(words.behind)).flatten())
    }

    async fn sql(&self, statements: &[&str]) -> Result<Option<Conn>> {
        self.server.run_sql(statements).await?;
        Ok(None)
    }

    async fn hold(&self, statement: &str) -> Result<Conn> {
        let mut conn = self.server.admin().await?;
        conn.query_drop(statement).await?;
        Ok(conn)
    }

    async fn delay(&self, seconds: u32) -> Result<Option<Conn>> {
        let words = self.words();
        let change = format!("{}={seconds}", words.delay);
        // MariaDB changes a link only when both of its threads are stopped.
        self.sql(&[words.stop, &change, words.start]).await
    }

    async fn slow_commits(&self, each: Duration) -> Result<Option<Conn>> {
        let words = self.words();
        let wait_us = format!("{}={}", words.commit_wait_us, each.as_micros());
        match self.server.flavour() {
            Flavour::MySql => {
                let workers = if each.is_zero() { 4 } else { 1 };
                let workers = format!("SET GLOBAL replica_parallel_workers={workers}");
                self.sql(&[words.stop_applier, &wait_us, &workers, words.start_applier]).await
            }
            Flavour::MariaDb => {
                // The commit waits for so many others, which one applier thread never brings.
                let count = if each.is_zero() { 0 } else { 1_000 };
                let count = format!("SET GLOBAL binlog_commit_wait_count={count}");
                self.sql(&[&wait_us, &count]).await
            }
        }
    }

    fn words(&self) -> &'static Words {
        match self.server.flavour() {
            Flavour::MySql => &MYSQL,
            Flavour::MariaDb => &MARIADB,
        }
    }
}

/// The same acts in the words of each server.
#[derive(Debug)]
struct Words {
    start: &'static str,
    stop: &'static str,
    start_applier: &'static str,
    stop_applier: &'static str,
    start_receiver: &'static str,
    stop_receiver: &'static str,
    delay: &'static str,
    position: &'static str,
    wait: &'static str,
    wait_timed_out: i64,
    status: &'static str,
    behind: &'static str,
    commit_wait_us: &'static str,
}

const MYSQL: Words = Words {
    start: "START REPLICA",
    stop: "STOP REPLICA",
    start_applier: "START REPLICA SQL_THREAD",
    stop_applier: "STOP REPLICA SQL_THREAD",
    start_receiver: "START REPLICA IO_THREAD",
    stop_receiver: "STOP REPLICA IO_THREAD",
    delay: "CHANGE REPLICATION SOURCE TO SOURCE_DELAY",
    position: "SELECT @@GLOBAL.gtid_executed",
    wait: "WAIT_FOR_EXECUTED_GTID_SET",
    wait_timed_out: 1,
    status: "SHOW REPLICA STATUS",
    behind: "Seconds_Behind_Source",
    commit_wait_us: "SET GLOBAL binlog_group_commit_sync_delay",
};

const MARIADB: Words = Words {
    start: "START SLAVE",
    stop: "STOP SLAVE",
    start_applier: "START SLAVE SQL_THREAD",
    stop_applier: "STOP SLAVE SQL_THREAD",
    start_receiver: "START SLAVE IO_THREAD",
    stop_receiver: "STOP SLAVE IO_THREAD",
    delay: "CHANGE MASTER TO MASTER_DELAY",
    position: "SELECT @@GLOBAL.gtid_binlog_pos",
    wait: "MASTER_GTID_WAIT",
    wait_timed_out: -1,
    status: "SHOW SLAVE STATUS",
    behind: "Seconds_Behind_Master",
    commit_wait_us: "SET GLOBAL binlog_commit_wait_usec",
};
