//! The tables. What people read has times as seconds or milliseconds since 1970, in UTC, and views
//! that show them as text.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::write::READ_BUSY;
use super::{FILE, OpenError, costs, insights, quarantine};

/// Raised when an older Sluice could not read what this one writes.
pub(super) const VERSION: i64 = 1;

/// `slce`, so that no other file is taken for one.
const APPLICATION_ID: i64 = 0x736c_6365;

const PAGE_BYTES: u64 = 4_096;

/// The write-ahead log is cut to this whenever it is empty.
const LOG_BYTES_MAX: u64 = 16 << 20;

const TABLES: &str = "
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,
  ended_ms INTEGER, version TEXT NOT NULL);
CREATE TABLE minutes (run INTEGER NOT NULL, at INTEGER NOT NULL, cluster TEXT NOT NULL,
  app TEXT NOT NULL, user TEXT NOT NULL, rule TEXT NOT NULL, asked INTEGER NOT NULL,
  admitted INTEGER NOT NULL, delayed INTEGER NOT NULL, refused INTEGER NOT NULL,
  observed INTEGER NOT NULL, left INTEGER NOT NULL, wait_sum_s REAL NOT NULL,
  wait_max_s REAL NOT NULL, wait_p99_s REAL NOT NULL, rows INTEGER NOT NULL,
  PRIMARY KEY (at, cluster, app, user, rule, run)) WITHOUT ROWID;
CREATE TABLE refusals (run INTEGER NOT NULL, at INTEGER NOT NULL, cluster TEXT NOT NULL,
  app TEXT NOT NULL, user TEXT NOT NULL, rule TEXT NOT NULL, reason TEXT NOT NULL,
  refused INTEGER NOT NULL,
  PRIMARY KEY (at, cluster, app, user, rule, reason, run)) WITHOUT ROWID;
CREATE TABLE signals (run INTEGER NOT NULL, at INTEGER NOT NULL, cluster TEXT NOT NULL,
  signal TEXT NOT NULL, threshold REAL NOT NULL, min REAL NOT NULL, mean REAL NOT NULL,
  max REAL NOT NULL, samples INTEGER NOT NULL, shut_s REAL NOT NULL,
  PRIMARY KEY (at, cluster, signal, run)) WITHOUT ROWID;
CREATE TABLE spans (run INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL,
  cluster TEXT NOT NULL, subject TEXT NOT NULL, state TEXT NOT NULL, began_ms INTEGER NOT NULL,
  ended_ms INTEGER, lasted_ms INTEGER NOT NULL, facts TEXT NOT NULL,
  PRIMARY KEY (run, n)) WITHOUT ROWID;
CREATE INDEX spans_began ON spans (began_ms);
CREATE TABLE events (run INTEGER NOT NULL, n INTEGER NOT NULL, at_ms INTEGER NOT NULL,
  cluster TEXT NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, author TEXT, text TEXT NOT NULL,
  diff TEXT, PRIMARY KEY (run, n)) WITHOUT ROWID;
CREATE INDEX events_at ON events (at_ms);
CREATE TABLE statements (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, cluster TEXT NOT NULL,
  app TEXT NOT NULL, why TEXT NOT NULL);
CREATE INDEX statements_at ON statements (at_ms);
CREATE VIEW minutes_utc AS SELECT datetime(at, 'unixepoch') AS utc, * FROM minutes;
CREATE VIEW signals_utc AS SELECT datetime(at, 'unixepoch') AS utc, * FROM signals;
CREATE VIEW spans_utc AS SELECT datetime(began_ms / 1000, 'unixepoch') AS began_utc,
  datetime(ended_ms / 1000, 'unixepoch') AS ended_utc, * FROM spans;
CREATE VIEW events_utc AS SELECT datetime(at_ms / 1000, 'unixepoch') AS utc, * FROM events;
";

/// Tables that files of the first Sluices lack: those do not miss them.
const LATER_TABLES: &str = "
CREATE TABLE IF NOT EXISTS checks (run INTEGER NOT NULL, at INTEGER NOT NULL, cluster TEXT NOT NULL,
  app TEXT NOT NULL, rule TEXT NOT NULL, refused TEXT NOT NULL, count INTEGER NOT NULL,
  PRIMARY KEY (at, cluster, app, rule, refused, run)) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS checks_utc AS SELECT datetime(at, 'unixepoch') AS utc, * FROM checks;
";

/// Makes a new file one of Sluice's, or sees that it is.
pub(super) fn prepare(connection: &Connection, bytes_max: u64) -> Result<(), OpenError> {
    let (application, version) = (pragma(connection, "application_id")?, version(connection)?);
    let tables: i64 =
        connection.query_row("SELECT COUNT(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (application, version, tables) != (0, 0, 0) {
        if application != APPLICATION_ID {
            return Err(OpenError::Foreign);
        }
        if version > VERSION {
            return Err(OpenError::Newer(version));
        }
        let sound: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if sound != "ok" {
            return Err(damaged(sound));
        }
    }
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX)?;
    bound(connection, bytes_max)?;
    if version == 0 {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; {TABLES}
             PRAGMA user_version = {VERSION}; COMMIT;"
        ))?;
    }
    connection.execute_batch(LATER_TABLES)?;
    connection.execute_batch(insights::TABLES)?;
    connection.execute_batch(quarantine::TABLE)?;
    connection.execute_batch(costs::TABLE)?;
    Ok(())
}

/// The file of a directory, to read a table that some lack before anything is written; nothing where
/// there is no such table in a file that this Sluice can read.
pub(super) fn open_before(directory: &Path, table: &str) -> rusqlite::Result<Option<Connection>> {
    let path = directory.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    // Whoever opens the log of a process that was killed has to be able to write.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(READ_BUSY)?;
    let has_table = || {
        let sql = "SELECT COUNT(*) FROM sqlite_schema WHERE name = ?1";
        connection.query_row(sql, [table], |row| row.get::<_, i64>(0)).map(|count| count > 0)
    };
    let is_there = is_ours(&connection)? && has_table()?;
    Ok(is_there.then_some(connection))
}

/// Whether it is a file of Sluice's that this one can read.
pub(super) fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let application = pragma(connection, "application_id")?;
    Ok(application == APPLICATION_ID && version(connection)? <= VERSION)
}

/// From now on the file becomes no larger than that, or than it is.
pub(super) fn bound(connection: &Connection, bytes_max: u64) -> rusqlite::Result<()> {
    connection.pragma_update(None, "max_page_count", (bytes_max / PAGE_BYTES).max(64))
}

/// The version of the tables of a file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    pragma(connection, "user_version")
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn damaged(how: String) -> OpenError {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    OpenError::Sqlite(rusqlite::Error::SqliteFailure(code, Some(how)))
}
