//! What is in quarantine: it stands over a restart.

use std::path::Path;

use policy::{RunawayAction, WatchBy};
use rusqlite::{Row, Transaction, params};

use super::{in_hex, schema};
use crate::record::{At, QuarantineKey, QuarantineRow, Writes};

/// A table that files of the first Sluices lack. `id` was a number once, and is 0.
pub(super) const TABLE: &str = "
CREATE TABLE IF NOT EXISTS quarantine (cluster TEXT NOT NULL, rule TEXT NOT NULL, by TEXT NOT NULL,
  hash TEXT NOT NULL, id INTEGER NOT NULL, action TEXT NOT NULL, app TEXT NOT NULL,
  since_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL,
  PRIMARY KEY (cluster, rule, by, hash)) WITHOUT ROWID;
";

/// Most entries that are read: as many as a cluster has, of several.
const ENTRIES_MAX: i64 = 16_000;

/// What stands in the file of a directory at this time; nothing where there is no file that this
/// Sluice can read.
pub(crate) fn standing(directory: &Path, now: At) -> rusqlite::Result<Vec<QuarantineRow>> {
    let Some(connection) = schema::open_before(directory, "quarantine")? else {
        return Ok(Vec::new());
    };
    let sql = "SELECT cluster, rule, by, hash, action, app, since_ms, until_ms FROM quarantine \
               WHERE until_ms > ?1 ORDER BY since_ms DESC LIMIT ?2";
    let mut read = connection.prepare(sql)?;
    let rows = read.query_map(params![now.0, ENTRIES_MAX], |read| Ok(row(read)))?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let odd = rows.iter().filter_map(|row| row.as_ref().err());
    if let Some(error) = odd.clone().next() {
        tracing::warn!(
            %error, rows = odd.count(),
            "rows of the table quarantine cannot be read, and are left out"
        );
    }
    // Words of another version are no entries here.
    Ok(rows.into_iter().filter_map(Result::ok).flatten().collect())
}

fn row(row: &Row<'_>) -> rusqlite::Result<Option<QuarantineRow>> {
    let word = |at: usize| row.get::<_, String>(at);
    let (by, action) = (WatchBy::of_word(&word(2)?), RunawayAction::of_word(&word(4)?));
    let hash = u64::from_str_radix(&word(3)?, 16).ok();
    let (Some(by), Some(action), Some(hash)) = (by, action, hash) else {
        return Ok(None);
    };
    let (cluster, rule) = (word(0)?, word(1)?);
    Ok(Some(QuarantineRow {
        key: QuarantineKey { cluster, rule, by: by.as_str(), hash },
        action: action.as_str(),
        app: word(5)?,
        since: At(row.get(6)?),
        until: At(row.get(7)?),
    }))
}

pub(super) fn write(
    all: &Transaction<'_>,
    Writes { quarantined, freed, .. }: &Writes,
) -> rusqlite::Result<()> {
    let sql = "DELETE FROM quarantine WHERE cluster = ?1 AND rule = ?2 AND by = ?3 AND hash = ?4";
    for QuarantineKey { cluster, rule, by, hash } in freed {
        all.prepare_cached(sql)?.execute(params![cluster, rule, by, in_hex(*hash)])?;
    }
    let sql = "INSERT OR REPLACE INTO quarantine VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8)";
    for QuarantineRow { key, action, app, since, until } in quarantined {
        let QuarantineKey { cluster, rule, by, hash } = key;
        let hash = in_hex(*hash);
        let row = params![cluster, rule, by, hash, action, app, since.0, until.0];
        all.prepare_cached(sql)?.execute(row)?;
    }
    Ok(())
}

/// Deletes what is free.
pub(super) fn forget(all: &Transaction<'_>, now: At) -> rusqlite::Result<()> {
    let sql = "DELETE FROM quarantine WHERE until_ms <= ?1";
    all.prepare_cached(sql)?.execute([now.0]).map(drop)
}
