//! Windows of insights, and what their hashes stand for.

use rusqlite::{Connection, Transaction, params};

use super::{NameOf, in_hex};
use crate::record::{At, InsightsName, InsightsWindow, Writes};

/// Tables that files of the first Sluices lack.
pub(super) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS insights (run INTEGER NOT NULL, at INTEGER NOT NULL,
  minutes INTEGER NOT NULL, cluster TEXT NOT NULL, rows TEXT NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS insights_at ON insights (at, cluster, minutes, run);
CREATE TABLE IF NOT EXISTS insights_names (cluster TEXT NOT NULL, hash TEXT NOT NULL,
  at INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (cluster, hash)) WITHOUT ROWID;
";

/// Minutes are shown for an hour, and ten minutes of a run that was killed are made of them. So are
/// those that say how many statements were there at once, of length 0.
const MINUTES_FOR_S: i64 = 2 * 3_600;

/// Ten minutes are shown for a day.
const TENS_FOR_S: i64 = 25 * 3_600;

/// Names are written again so often ([`crate::watch`]), and a day of windows refers to them.
const NAMES_FOR_S: i64 = TENS_FOR_S + NAMES_AGAIN_S + 3_600;

/// How often.
pub(crate) const NAMES_AGAIN_S: i64 = 12 * 3_600;

/// Of the largest size of the file, the part that a window may take: one more is not kept.
const WINDOW_PART: u64 = 8;

/// Of the largest size of the file, the part that all windows may take where it is full.
const ALL_PART: u64 = 2;

/// Writes windows and names.
pub(super) fn write(
    all: &Transaction<'_>,
    Writes { insights, names, .. }: &Writes,
    bytes_max: u64,
) -> rusqlite::Result<()> {
    let fits = |window: &&InsightsWindow| {
        u64::try_from(window.rows.len()).is_ok_and(|len| len <= bytes_max / WINDOW_PART)
    };
    insights.iter().filter(fits).try_for_each(|window| write_window(all, window))?;
    names.iter().try_for_each(|name| write_name(all, name))
}

/// Whether windows take most of a file that is full.
pub(super) fn are_most(connection: &Connection, bytes_max: u64) -> rusqlite::Result<bool> {
    let sql = "SELECT COALESCE(SUM(LENGTH(rows)), 0) FROM insights";
    let bytes: i64 = connection.query_row(sql, [], |row| row.get(0))?;
    Ok(u64::try_from(bytes).unwrap_or_default() > bytes_max / ALL_PART)
}

/// The oldest go.
pub(super) fn forget_a_quarter(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM insights WHERE rowid IN (SELECT rowid FROM insights ORDER BY at \
               LIMIT 1 + (SELECT COUNT(*) / 4 FROM insights))";
    connection.execute(sql, []).map(drop)
}

fn write_window(all: &Transaction<'_>, window: &InsightsWindow) -> rusqlite::Result<()> {
    let InsightsWindow { run, at, minutes, cluster, count: _, rows } = window;
    let sql = "INSERT OR REPLACE INTO insights VALUES (?1, ?2, ?3, ?4, ?5)";
    all.prepare_cached(sql)?.execute(params![run, at, minutes, cluster, rows]).map(drop)
}

fn write_name(all: &Transaction<'_>, name: &InsightsName) -> rusqlite::Result<()> {
    let InsightsName { cluster, hash, at, name } = name;
    let sql = "INSERT OR REPLACE INTO insights_names VALUES (?1, ?2, ?3, ?4)";
    all.prepare_cached(sql)?.execute(params![cluster, in_hex(*hash), at, name]).map(drop)
}

/// Deletes what nobody is shown any more.
pub(super) fn forget(all: &Transaction<'_>, now: At) -> rusqlite::Result<()> {
    let now = now.0.div_euclid(1_000);
    let before = |seconds: i64| now.saturating_sub(seconds);
    all.prepare_cached("DELETE FROM insights WHERE at < ?1 AND (at < ?2 OR minutes <= 1)")?
        .execute([before(MINUTES_FOR_S), before(TENS_FOR_S)])?;
    all.prepare_cached("DELETE FROM insights_names WHERE at < ?1")?
        .execute([before(NAMES_FOR_S)])
        .map(drop)
}

/// The windows that other runs have kept of a cluster.
pub(super) fn windows(
    connection: &Connection,
    (cluster, run): (&str, i64),
) -> rusqlite::Result<Vec<InsightsWindow>> {
    let sql = "SELECT run, at, minutes, rows FROM insights WHERE cluster = ?1 AND run <> ?2";
    let mut read = connection.prepare(sql)?;
    let windows = read.query_map(params![cluster, run], |row| {
        Ok(InsightsWindow {
            run: row.get(0)?,
            at: row.get(1)?,
            minutes: row.get(2)?,
            cluster: cluster.to_owned(),
            count: 0,
            rows: row.get(3)?,
        })
    })?;
    windows.collect()
}

/// What hashes stand for; what is no hash is left out.
pub(super) fn names(connection: &Connection, cluster: &str) -> rusqlite::Result<Vec<NameOf>> {
    let mut read =
        connection.prepare("SELECT hash, name FROM insights_names WHERE cluster = ?1")?;
    let names = read.query_map([cluster], |row| {
        let (hash, name): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(u64::from_str_radix(&hash, 16).ok().map(|hash| (hash, name)))
    })?;
    Ok(names.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
}
