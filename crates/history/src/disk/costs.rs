//! What statements cost that cost too much for a budget: such are refused behind a restart too.

use std::path::Path;

use rusqlite::{Row, Transaction, params};

use super::{in_hex, schema};
use crate::record::{At, CostKey, CostRow, Writes};

/// A table that files of the first Sluices lack.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS costs (cluster TEXT NOT NULL, digest TEXT NOT NULL,
  seconds REAL NOT NULL, rows REAL NOT NULL, until_ms INTEGER NOT NULL,
  PRIMARY KEY (cluster, digest)) WITHOUT ROWID;
";

/// Most rows that are read: as many as a cluster has, of several.
const ROWS_MAX: i64 = 16_000;

/// What is known at this time in the file of a directory; nothing where there is no file that this
/// Sluice can read.
pub(crate) fn known_costs(directory: &Path, now: At) -> rusqlite::Result<Vec<CostRow>> {
    let Some(connection) = schema::open_before(directory, "costs")? else {
        return Ok(Vec::new());
    };
    let sql = "SELECT cluster, digest, seconds, rows, until_ms FROM costs WHERE until_ms > ?1 \
               ORDER BY seconds DESC LIMIT ?2";
    let mut read = connection.prepare(sql)?;
    let rows = read.query_map(params![now.0, ROWS_MAX], row)?;
    Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn row(row: &Row<'_>) -> rusqlite::Result<Option<CostRow>> {
    // What somebody has written there by hand is no row, and leaves the others.
    let read = || -> rusqlite::Result<CostRow> {
        let digest = u64::from_str_radix(&row.get::<_, String>(1)?, 16);
        let digest = digest.map_err(|_| rusqlite::Error::InvalidQuery)?;
        let key = CostKey { cluster: row.get(0)?, digest };
        Ok(CostRow { key, seconds: row.get(2)?, rows: row.get(3)?, until: At(row.get(4)?) })
    };
    Ok(read().ok())
}

pub(super) fn write(
    all: &Transaction<'_>,
    Writes { costs, cheaper, .. }: &Writes,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM costs WHERE cluster = ?1 AND digest = ?2";
    for CostKey { cluster, digest } in cheaper {
        all.prepare_cached(sql)?.execute(params![cluster, in_hex(*digest)])?;
    }
    let sql = "INSERT OR REPLACE INTO costs VALUES (?1, ?2, ?3, ?4, ?5)";
    for CostRow { key: CostKey { cluster, digest }, seconds, rows, until } in costs {
        let row = params![cluster, in_hex(*digest), seconds, rows, until.0];
        all.prepare_cached(sql)?.execute(row)?;
    }
    Ok(())
}

/// Deletes what nobody is refused for any more.
pub(super) fn forget(all: &Transaction<'_>, now: At) -> rusqlite::Result<()> {
    let sql = "DELETE FROM costs WHERE until_ms <= ?1";
    all.prepare_cached(sql)?.execute([now.0]).map(drop)
}
