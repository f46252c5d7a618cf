//! What the admission controller has found out, beside the heartbeats on the primary: the next
//! process begins with it, after a takeover as after a crash.
//!
//! It is read once, when a process starts, and written every few seconds while somebody is gated.
//! Without it, without the right to it, or with one that cannot be read, the controller begins with
//! a guess, as it always has.

mod text;

use std::sync::Arc;
use std::time::Duration;

use admission::{Learned, MonoTime};
use policy::TableName;

use super::ProbeTarget;
use super::answer::{number, text as text_of};
use super::heartbeat::{ask_if_writable, is_missing};
use crate::board::ProbeError;
use crate::cluster::Cluster;
use crate::link::Link;

/// How often it is written: what is lost by a crash is less than that.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// The longest a question may take. Nobody waits for it.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Its name, in the schema of the heartbeat's.
pub(super) const TABLE: &str = "learned";

/// The longest text that is read, in bytes: what Sluice writes is a hundredth of it.
const TEXT_LEN_MAX: usize = 1 << 20;

/// How old a row is whose age cannot be told.
const OLD: Duration = Duration::from_secs(3_600);

/// Digests and apps that are written: some 5 kB.
const KNOWN_MAX: usize = 200;

/// Rows of processes that have not written for so long are removed.
const FORGOTTEN_AFTER_DAYS: u32 = 7;

/// Runs until it is dropped.
pub(super) async fn watch(target: ProbeTarget) {
    let cluster = &target.site.cluster;
    let mut row = LearnedRow::new(&target.probe.heartbeat_table, &cluster.name);
    let mut link = target.link(TIME_LIMIT);
    let mut rhythm = target.site.rhythm(WRITE_INTERVAL, WRITE_INTERVAL);
    let mut told = false;
    loop {
        rhythm.beat().await;
        let done = if cluster.probes.has_remembered() {
            row.write_if_new(&target, &mut link).await
        } else {
            row.read(&mut link).await.map(|found| remember(cluster, found))
        };
        if let Err(error) = done
            && !std::mem::replace(&mut told, true)
        {
            tracing::info!(
                cluster = %cluster.name, %error,
                "what is found out about the pace is not kept: a process that starts begins with \
                 a guess"
            );
        }
    }
}

fn remember(cluster: &Arc<Cluster>, found: Option<(Learned, Duration)>) {
    cluster.probes.note_remembered();
    let Some((learned, age)) = found else { return };
    cluster.control(|controller, _| controller.begin_with(&learned, age));
    tracing::info!(
        cluster = %cluster.name, age_s = age.as_secs(), rows_per_s = learned.rows_per_s,
        "the pace begins with what was found out before"
    );
}

/// The row of this host's process for one cluster.
struct LearnedRow {
    /// With its schema.
    table: String,
    /// Hexadecimal, so they need no quoting.
    cluster: String,
    host: String,
    /// When somebody was gated last as it was written.
    written_for: Option<MonoTime>,
}

impl LearnedRow {
    fn new(heartbeats: &TableName, cluster: &str) -> Self {
        let system = rustix::system::uname();
        Self {
            // The names need no quoting, unless they are words of SQL.
            table: format!("`{}`.`{TABLE}`", heartbeats.schema),
            cluster: hex(cluster.as_bytes()),
            host: hex(system.nodename().to_bytes()),
            written_for: None,
        }
    }

    /// The newest of this host, or else of any, and how old it is.
    async fn read(&self, primary: &mut Link) -> Result<Option<(Learned, Duration)>, ProbeError> {
        let Self { table, cluster, host, .. } = self;
        let select = format!(
            "SELECT IF(LENGTH(learned) <= {TEXT_LEN_MAX}, learned, ''), \
             TIMESTAMPDIFF(MICROSECOND, written_at, CURRENT_TIMESTAMP(6)) \
             FROM {table} WHERE cluster = X'{cluster}' \
             ORDER BY host = X'{host}' DESC, written_at DESC LIMIT 1"
        );
        let row = match primary.first(&select).await {
            Err(error) if is_missing(&error) => return Ok(None),
            row => row?,
        };
        let Some(row) = row else { return Ok(None) };
        let Some(read) = row.as_ref(0).and_then(text_of).and_then(|text| text::read(&text)) else {
            tracing::warn!(
                %table,
                "the row of what was found out about the pace is not what a Sluice writes; it \
                 begins with a guess and writes the row anew"
            );
            return Ok(None);
        };
        if read.lowered > 0 {
            tracing::warn!(
                %table, costs = read.lowered, most = text::COST_MAX,
                "costs of statements in the row of what was found out about the pace are beyond \
                 what is believed of another process, and lowered"
            );
        }
        // A clock of the primary that went back makes it new, and it is found out soon.
        let micros = row.as_ref(1).and_then(number::<i64>);
        let age = micros.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0)));
        Ok(Some((read.learned, age.unwrap_or(OLD))))
    }

    /// Writes what is known, if somebody was gated since it was written.
    async fn write_if_new(
        &mut self,
        target: &ProbeTarget,
        primary: &mut Link,
    ) -> Result<(), ProbeError> {
        let (gated, learned) = target.site.cluster.control(|controller, _| {
            (controller.last_gated_request(), controller.learned(KNOWN_MAX))
        });
        let Some(learned) = learned.filter(|learned| learned.rows_per_s.is_some()) else {
            return Ok(());
        };
        if gated == self.written_for {
            return Ok(());
        }
        ask_if_writable(primary).await?;
        let written = match self.write(primary, &learned).await {
            Err(error) if is_missing(&error) => {
                self.create(primary).await?;
                self.write(primary, &learned).await
            }
            written => written,
        };
        if written.is_ok() {
            self.written_for = gated;
        }
        written
    }

    async fn write(&self, primary: &mut Link, learned: &Learned) -> Result<(), ProbeError> {
        let Self { table, cluster, host, .. } = self;
        let replace = format!(
            "REPLACE INTO {table} (cluster, host, learned) VALUES (X'{cluster}', X'{host}', '{}')",
            text::write(learned)
        );
        primary.run(&replace).await.map(|_| ())
    }

    async fn create(&self, primary: &mut Link) -> Result<(), ProbeError> {
        let table = &self.table;
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {table} (\
             cluster VARBINARY(255) NOT NULL COMMENT 'as the file of Sluice names it', \
             host VARBINARY(255) NOT NULL COMMENT 'where that Sluice runs', \
             learned MEDIUMTEXT CHARACTER SET ascii NOT NULL \
             COMMENT 'rows a second, and what statements cost', \
             written_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) \
             COMMENT 'the older, the less it counts', \
             PRIMARY KEY (cluster, host)) ENGINE=InnoDB"
        );
        primary.run(&create).await?;
        // Hosts come and go.
        let delete = format!(
            "DELETE FROM {table} WHERE written_at < CURRENT_TIMESTAMP(6) - INTERVAL \
             {FORGOTTEN_AFTER_DAYS} DAY"
        );
        primary.run(&delete).await.map(|_| ())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(NAME_MAX).map(|byte| format!("{byte:02x}")).collect()
}

/// As long as the columns.
const NAME_MAX: usize = 255;
