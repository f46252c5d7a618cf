//! The heartbeat: one row of our own on the primary, its number raised again and again, and read on
//! each replica.
//!
//! A writer whose statement hung has given up its connection, but the statement may still take
//! effect later. So a write only ever raises the number: what comes late changes nothing.
//!
//! An account that may KILL (CONNECTION_ADMIN, MariaDB's READ_ONLY ADMIN) may also write where `read_only`
//! is on, which an application may not. What was the primary until a moment ago would go on with heartbeats then, each
//! a transaction that no other server has, and look well to whom nobody can write. So the server is asked before.

use policy::TableName;

use super::answer::{is_on, number, text};
use super::health::ER_OPTION_PREVENTS_STATEMENT;
use crate::board::ProbeError;
use crate::link::Link;

/// `ER_BAD_DB_ERROR`
const ER_BAD_DB_ERROR: u16 = 1049;
/// `ER_NO_SUCH_TABLE`
const ER_NO_SUCH_TABLE: u16 = 1146;

/// The row that one process writes for one cluster.
#[derive(Debug, Clone)]
pub(super) struct Heartbeat {
    schema: String,
    /// With its schema.
    table: String,
    /// Random, so that no two processes share a row. Hexadecimal, so it needs no quoting.
    instance: String,
}

impl Heartbeat {
    pub(super) fn new(name: &TableName, instance: u128) -> Self {
        let TableName { schema, table } = name;
        Self {
            // The names need no quoting, unless they are words of SQL.
            schema: format!("`{schema}`"),
            table: format!("`{schema}`.`{table}`"),
            instance: format!("{instance:032x}"),
        }
    }

    /// Commits number `seq` on the primary, making the row and its table if they are missing.
    ///
    /// # Cancellation
    /// The write may still take effect.
    pub(super) async fn write(&self, primary: &mut Link, seq: u64) -> Result<(), ProbeError> {
        match self.raise(primary, seq).await {
            Err(error) if is_missing(&error) => {
                self.create(primary).await?;
                self.raise(primary, seq).await
            }
            written => written,
        }
    }

    async fn raise(&self, primary: &mut Link, seq: u64) -> Result<(), ProbeError> {
        let Self { table, instance, .. } = self;
        let update = format!(
            "UPDATE {table} SET seq = {seq}, written_at = CURRENT_TIMESTAMP(6) \
             WHERE instance = '{instance}' AND seq < {seq}"
        );
        if primary.run(&update).await? > 0 {
            return Ok(());
        }
        let insert = format!("INSERT INTO {table} (instance, seq) VALUES ('{instance}', {seq})");
        primary.run(&insert).await.map(|_| ())
    }

    async fn create(&self, primary: &mut Link) -> Result<(), ProbeError> {
        let Self { schema, table, .. } = self;
        // The account may lack the right to create the schema and still have it on the table.
        if let Err(error) = primary.run(&format!("CREATE SCHEMA IF NOT EXISTS {schema}")).await {
            tracing::debug!(%error, "the heartbeat's schema was not created");
        }
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {table} (\
             instance CHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY \
             COMMENT 'one row for each running Sluice', \
             seq BIGINT UNSIGNED NOT NULL COMMENT 'raised with every heartbeat', \
             written_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) \
             COMMENT 'for people; Sluice compares its own clock only') ENGINE=InnoDB"
        );
        primary.run(&create).await.map(|_| ())
    }

    /// The number that a server shows; `None` if it has no row or no table yet.
    pub(super) async fn read(&self, server: &mut Link) -> Result<Option<u64>, ProbeError> {
        let Self { table, instance, .. } = self;
        let select = format!("SELECT seq FROM {table} WHERE instance = '{instance}'");
        let row = match server.first(&select).await {
            Err(error) if is_missing(&error) => return Ok(None),
            row => row?,
        };
        let seq = row.and_then(|row| row.as_ref(0).and_then(number::<u64>));
        Ok(seq)
    }

    /// Removes the rows of processes that have not written for a day. How many there were.
    pub(super) async fn forget_the_dead(&self, primary: &mut Link) -> Result<u64, ProbeError> {
        let delete = format!(
            "DELETE FROM {} WHERE written_at < CURRENT_TIMESTAMP(6) - INTERVAL 1 DAY",
            self.table
        );
        primary.run(&delete).await
    }
}

/// Fails as the write of an application would where the server is read only.
pub(super) async fn ask_if_writable(primary: &mut Link) -> Result<(), ProbeError> {
    let row = primary.first("SELECT @@GLOBAL.read_only").await?;
    let value = row.and_then(|row| row.as_ref(0).and_then(text));
    if value.is_some_and(|value| is_on(&value)) {
        return Err(ProbeError::Refused {
            code: ER_OPTION_PREVENTS_STATEMENT,
            message: "read_only is on".into(),
        });
    }
    Ok(())
}

/// Whether there is no such table, or schema.
pub(super) fn is_missing(error: &ProbeError) -> bool {
    matches!(error.code(), Some(ER_NO_SUCH_TABLE | ER_BAD_DB_ERROR))
}
