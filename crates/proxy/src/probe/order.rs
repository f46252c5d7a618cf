//! Whether a replica commits in the order of its primary, and what its heartbeats acknowledge where
//! it does not ([`CommitOrder`]).

use std::time::Duration;

use admission::MonoTime;
use mysql_async::Row;

use super::ProbeTarget;
use super::answer::{number, text};
use super::gtids::GtidSet;
use super::heartbeat::Heartbeat;
use super::replica::{LagAnswer, lag_of, until_primary_is_known};
use super::replication::Dialect;
use crate::board::{CommitOrder, ProbeError};
use crate::link::Link;

/// How often a replica is asked for its settings: they change with its appliers stopped.
const SETTINGS_INTERVAL: Duration = Duration::from_secs(5);

/// Works on every server, without a right: a server leaves out what it does not have.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('gtid_mode', \
    'replica_parallel_workers', 'replica_preserve_commit_order', 'slave_parallel_workers', \
    'slave_preserve_commit_order', 'slave_parallel_threads', 'version')";

/// What MySQL calls what it has executed.
const MYSQL_EXECUTED: &str = "SELECT @@GLOBAL.gtid_executed";
/// MariaDB: of what a primary has written, and of what a replica has applied.
const MARIADB_WRITTEN: &str = "SELECT @@GLOBAL.gtid_binlog_pos";
const MARIADB_APPLIED: &str = "SELECT @@GLOBAL.gtid_slave_pos";

/// The settings of a server that say in which order it commits what it applies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    is_mariadb: bool,
    /// MySQL: `gtid_mode` is ON, or ON for its own transactions.
    has_gtids: bool,
    /// How many appliers work beside each other.
    appliers: u64,
    /// MySQL: `replica_preserve_commit_order`.
    keeps_order: bool,
}

impl Settings {
    /// # Errors
    /// When the server does not answer.
    pub(super) async fn ask(server: &mut Link) -> Result<Self, ProbeError> {
        let rows = server.rows(SETTINGS).await?;
        Ok(Self::read(rows.iter().filter_map(name_and_value)))
    }

    fn read(variables: impl Iterator<Item = (String, String)>) -> Self {
        let mut settings = Self::default();
        for (name, value) in variables {
            match name.as_str() {
                "version" => settings.is_mariadb = value.to_ascii_lowercase().contains("mariadb"),
                "gtid_mode" => {
                    settings.has_gtids = matches!(value.as_str(), "ON" | "ON_PERMISSIVE");
                }
                // Both names are there in some versions, with the same value.
                "replica_preserve_commit_order" | "slave_preserve_commit_order" => {
                    settings.keeps_order = matches!(value.as_str(), "ON" | "1");
                }
                _ => settings.appliers = settings.appliers.max(value.parse().unwrap_or(0)),
            }
        }
        settings
    }

    /// The order in which a replica with these settings commits.
    pub(super) fn order(&self) -> CommitOrder {
        if self.is_mariadb {
            // In order within a domain; which domains sessions use nobody knows.
            return if self.appliers == 0 { CommitOrder::Kept } else { CommitOrder::ByGtid };
        }
        match (self.appliers <= 1 || self.keeps_order, self.has_gtids) {
            (true, true | false) => CommitOrder::Kept,
            (false, true) => CommitOrder::ByGtid,
            (false, false) => CommitOrder::Unseen,
        }
    }

    /// What a replica has executed.
    ///
    /// # Errors
    /// When it does not answer, or not with GTIDs.
    pub(super) async fn applied(&self, replica: &mut Link) -> Result<GtidSet, ProbeError> {
        let question = if self.is_mariadb { MARIADB_APPLIED } else { MYSQL_EXECUTED };
        executed(replica, question).await
    }

    /// What a primary has executed.
    ///
    /// # Errors
    /// When it does not answer, or not with GTIDs.
    pub(super) async fn written(&self, primary: &mut Link) -> Result<GtidSet, ProbeError> {
        let question = if self.is_mariadb { MARIADB_WRITTEN } else { MYSQL_EXECUTED };
        let written = executed(primary, question).await?;
        // It has just committed a heartbeat.
        Some(written).filter(|set| !set.is_empty()).ok_or_else(no_gtids)
    }
}

fn no_gtids() -> ProbeError {
    ProbeError::Unusable("it has no GTIDs".into())
}

/// What one replica acknowledges.
pub(super) struct Acknowledgements {
    heartbeat: Heartbeat,
    /// What it said of itself, and when.
    settings: Option<(Settings, MonoTime)>,
    dialect: Dialect,
    /// The newest.
    last: Option<u64>,
}

impl Acknowledgements {
    pub(super) fn of(heartbeat: Heartbeat) -> Self {
        Self { heartbeat, settings: None, dialect: Dialect::default(), last: None }
    }

    /// The newest heartbeat that the replica shows with all before it, or how far behind it says
    /// that it is.
    pub(super) async fn ask(
        &mut self,
        target: &ProbeTarget,
        replica: &mut Link,
    ) -> Result<LagAnswer, ProbeError> {
        let now = target.site.cluster.now();
        let settings = match self.settings.take() {
            Some(known) if now.saturating_since(known.1) < SETTINGS_INTERVAL => known,
            Some(_) | None => (told(target, Settings::ask(replica).await?), now),
        };
        let (settings, _) = self.settings.insert(settings);
        let order = settings.order();
        note(target, order);
        // What it has executed is read before what it shows: no less can be there by then.
        let applied = match order {
            CommitOrder::Unasked | CommitOrder::Kept => None,
            CommitOrder::ByGtid => Some(settings.applied(replica).await?),
            CommitOrder::Unseen => {
                until_primary_is_known(target).await;
                let told = self.dialect.ask(replica, &target.site.cluster.probes).await;
                let instead = "set replica_preserve_commit_order=ON there";
                return lag_of(target, told?, instead);
            }
        };
        let board = &target.site.cluster.probes;
        let shown = self.heartbeat.read(replica).await?;
        self.last = match (shown, applied) {
            (Some(shown), Some(applied)) => {
                let last = self.last.filter(|last| *last <= shown);
                board.acknowledged(shown, &applied).max(last)
            }
            (shown, _) => shown,
        };
        board.overtaken_said(&target.server, self.last < shown);
        Ok(LagAnswer::Shows(self.last))
    }
}

/// Tells the pace how many appliers there are.
fn told(target: &ProbeTarget, settings: Settings) -> Settings {
    let appliers = u32::try_from(settings.appliers).unwrap_or(u32::MAX);
    target.site.cluster.probes.on_replica(&target.server, |tracker, key| {
        tracker.handle_replica_appliers(key, appliers);
    });
    settings
}

/// Tells once that the order is another.
fn note(target: &ProbeTarget, order: CommitOrder) {
    let (site, server) = (&target.site, &target.server);
    let before = site.cluster.probes.order_said(server, order);
    if before == order || (before, order) == (CommitOrder::Unasked, CommitOrder::Kept) {
        return;
    }
    let cluster = &site.cluster.name;
    match order {
        CommitOrder::Unasked | CommitOrder::Kept => {
            tracing::info!(%cluster, %server, "a replica commits in the order of its primary");
        }
        CommitOrder::ByGtid => tracing::info!(
            %cluster, %server,
            "a replica's appliers may overtake one another: a heartbeat counts there once the \
             GTIDs before it are executed"
        ),
        CommitOrder::Unseen => tracing::warn!(
            %cluster, %server,
            "a replica's appliers may overtake one another and there are no GTIDs to see it by: \
             its lag is Seconds_Behind_Source; set replica_preserve_commit_order=ON there"
        ),
    }
}

async fn executed(server: &mut Link, question: &str) -> Result<GtidSet, ProbeError> {
    let row = server.first(question).await?;
    let value = row.as_ref().and_then(|row| row.as_ref(0)).and_then(text);
    value.as_deref().and_then(GtidSet::parse).ok_or_else(no_gtids)
}

fn name_and_value(row: &Row) -> Option<(String, String)> {
    let (name, value) = (row.as_ref(0)?, row.as_ref(1)?);
    let value = text(value).or_else(|| number::<u64>(value).map(|n| n.to_string()))?;
    Some((text(name)?.to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(variables: &[(&str, &str)]) -> CommitOrder {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Settings::read(variables.iter().map(own)).order()
    }

    #[test]
    fn several_appliers_keep_the_order_only_where_they_are_told_to() {
        let mysql = |workers: &'static str, keep: &'static str, gtids: &'static str| {
            order(&[
                ("version", "9.7.0"),
                ("replica_parallel_workers", workers),
                ("slave_parallel_workers", workers),
                ("replica_preserve_commit_order", keep),
                ("slave_preserve_commit_order", keep),
                ("gtid_mode", gtids),
            ])
        };
        assert_eq!(mysql("4", "ON", "ON"), CommitOrder::Kept);
        assert_eq!(mysql("1", "OFF", "ON"), CommitOrder::Kept);
        assert_eq!(mysql("4", "OFF", "ON"), CommitOrder::ByGtid);
        assert_eq!(mysql("4", "OFF", "ON_PERMISSIVE"), CommitOrder::ByGtid);
        assert_eq!(mysql("4", "OFF", "OFF_PERMISSIVE"), CommitOrder::Unseen);
        let mariadb = |threads: &'static str| {
            order(&[("version", "10.11.6-MariaDB-log"), ("slave_parallel_threads", threads)])
        };
        let four = [("replica_parallel_workers", "4"), ("slave_parallel_workers", "4")];
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        assert_eq!(Settings::read(four.iter().map(own)).appliers, 4);
        assert_eq!(mariadb("0"), CommitOrder::Kept);
        assert_eq!(mariadb("4"), CommitOrder::ByGtid);
    }
}
