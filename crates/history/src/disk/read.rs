//! What is read, each time on a connection of its own that cannot write.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params, params_from_iter};

use super::write::READ_BUSY;
use super::{FILE, schema};
use crate::record::{At, Counts, Event, Run, Span, SpanFacts, SpanKind, Values};

/// Rows of one answer, of each kind.
const ROWS_MAX: i64 = 20_000;

/// The file, while an answer is made.
#[derive(Debug)]
pub struct Reading {
    connection: Connection,
    /// Of these runs, from these minutes on, the memory is right.
    memory: BTreeMap<i64, i64>,
}

/// A time, a cluster, an app: what is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// From then on.
    pub since: At,
    /// Before then.
    pub until: At,
    /// Only this cluster.
    pub cluster: Option<&'a str>,
    /// Only this app, or those that have it as a level.
    pub app: Option<&'a str>,
}

impl Asked<'_> {
    /// Whether an app's label is meant.
    #[must_use]
    pub fn is_of(&self, label: &str) -> bool {
        self.app.is_none_or(|app| {
            label == app
                || label
                    .match_indices(app)
                    .any(|(at, found)| is_level(label, at, at.saturating_add(found.len())))
        })
    }

    /// Whether a cluster is meant.
    #[must_use]
    pub fn is_in(&self, cluster: &str) -> bool {
        self.cluster.is_none_or(|wanted| wanted == cluster)
    }
}

fn is_level(label: &str, begin: usize, end: usize) -> bool {
    let bytes = label.as_bytes();
    let before = begin.checked_sub(1).and_then(|at| bytes.get(at));
    before.is_none_or(|byte| *byte == b':') && bytes.get(end).is_none_or(|byte| *byte == b':')
}

impl Reading {
    /// Opens the file of a directory; none if there is none that this Sluice can read.
    #[must_use]
    pub fn open(directory: &Path, memory: BTreeMap<i64, i64>) -> Option<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(directory.join(FILE), flags).ok()?;
        connection.busy_timeout(READ_BUSY).ok()?;
        let version = schema::version(&connection).ok()?;
        (version == schema::VERSION).then_some(Self { connection, memory })
    }

    /// What became of statements, by parts of the time that are `bucket` seconds long.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn counts(
        &self,
        asked: &Asked<'_>,
        bucket: i64,
    ) -> rusqlite::Result<BTreeMap<i64, Counts>> {
        let (filter, mut values) = self.filter(asked);
        values.push(bucket.into());
        let sql = format!(
            "SELECT (at / ?{n}) * ?{n} AS b, SUM(asked), SUM(admitted), SUM(delayed), SUM(refused), \
             SUM(observed), SUM(left), SUM(wait_sum_s), MAX(wait_max_s), MAX(wait_p99_s), SUM(rows) \
             FROM minutes WHERE {filter} GROUP BY b LIMIT {ROWS_MAX}",
            n = values.len()
        );
        let read = |row: &Row<'_>| -> rusqlite::Result<(i64, Counts)> {
            Ok((
                row.get(0)?,
                Counts {
                    asked: whole(row, 1)?,
                    admitted: whole(row, 2)?,
                    delayed: whole(row, 3)?,
                    refused: whole(row, 4)?,
                    observed: whole(row, 5)?,
                    left: whole(row, 6)?,
                    wait_sum_s: row.get(7)?,
                    wait_max_s: row.get(8)?,
                    wait_p99_s: row.get(9)?,
                    rows: whole(row, 10)?,
                },
            ))
        };
        self.connection.prepare(&sql)?.query_map(params_from_iter(values), read)?.collect()
    }

    /// How many were refused for which reason.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn reasons(&self, asked: &Asked<'_>) -> rusqlite::Result<BTreeMap<String, u64>> {
        self.sums(asked, "reason", "refused", "refusals")
    }

    /// How many checks over HTTP were told to go on (under an empty name), and how many not to, for
    /// which reason.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn checks(&self, asked: &Asked<'_>) -> rusqlite::Result<BTreeMap<String, u64>> {
        let has_table = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'checks')";
        // A file that only an older Sluice has written has none.
        if !self.connection.query_row(has_table, [], |row| row.get::<_, bool>(0))? {
            return Ok(BTreeMap::new());
        }
        self.sums(asked, "refused", "count", "checks")
    }

    /// The rows that each app has changed.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn rows(&self, asked: &Asked<'_>) -> rusqlite::Result<BTreeMap<String, u64>> {
        self.sums(asked, "app", "rows", "minutes")
    }

    fn sums(
        &self,
        asked: &Asked<'_>,
        by: &str,
        what: &str,
        table: &str,
    ) -> rusqlite::Result<BTreeMap<String, u64>> {
        let (filter, values) = self.filter(asked);
        let sql = format!(
            "SELECT {by}, SUM({what}) FROM {table} WHERE {filter} GROUP BY {by} LIMIT {ROWS_MAX}"
        );
        let read = |row: &Row<'_>| Ok((row.get(0)?, whole(row, 1)?));
        self.connection.prepare(&sql)?.query_map(params_from_iter(values), read)?.collect()
    }

    /// The signals, by parts of the time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn signals(
        &self,
        asked: &Asked<'_>,
        bucket: i64,
    ) -> rusqlite::Result<BTreeMap<(String, String, i64), Values>> {
        let (filter, mut values) = self.filter(&Asked { app: None, ..*asked });
        values.push(bucket.into());
        let sql = format!(
            "SELECT cluster, signal, (at / ?{n}) * ?{n} AS b, MAX(threshold), \
             MIN(CASE WHEN samples > 0 THEN min END), SUM(mean * samples), MAX(max), SUM(samples), \
             SUM(shut_s) FROM signals WHERE {filter} GROUP BY cluster, signal, b LIMIT {ROWS_MAX}",
            n = values.len()
        );
        let read = |row: &Row<'_>| -> rusqlite::Result<((String, String, i64), Values)> {
            let samples = whole(row, 7)?;
            let sum: f64 = row.get(5)?;
            let min: Option<f64> = row.get(4)?;
            let mean = if samples == 0 { 0.0 } else { sum / crate::record::float(samples) };
            let values = Values {
                threshold: row.get(3)?,
                min: min.unwrap_or_default(),
                mean,
                max: row.get(6)?,
                samples,
                shut_s: row.get(8)?,
            };
            Ok(((row.get(0)?, row.get(1)?, row.get(2)?), values))
        };
        self.connection.prepare(&sql)?.query_map(params_from_iter(values), read)?.collect()
    }

    /// The intervals that overlap the time. One that a process has left open ends when that process
    /// was seen last; where nothing is known of the process any more, as long as the interval was seen to last.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn spans(&self, asked: &Asked<'_>) -> rusqlite::Result<Vec<Span>> {
        let sql = format!(
            "SELECT run, n, kind, cluster, subject, state, began_ms, \
             COALESCE(ended_ms, CASE kind WHEN 'held' THEN began_ms + lasted_ms END, (SELECT MAX(seen_ms) FROM runs \
             WHERE runs.run BETWEEN s.run AND s.run + 1000), began_ms + lasted_ms) AS ended, lasted_ms, facts \
             FROM spans s WHERE began_ms < ?2 AND (ended IS NULL OR ended >= ?1) \
             ORDER BY began_ms DESC LIMIT {ROWS_MAX}"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params![asked.since.0, asked.until.0], span)?;
        let rows: rusqlite::Result<Vec<Option<Span>>> = rows.collect();
        Ok(rows?.into_iter().flatten().filter(|span| asked.is_in(&span.cluster)).collect())
    }

    /// What happened.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn events(&self, asked: &Asked<'_>) -> rusqlite::Result<Vec<Event>> {
        let sql = format!(
            "SELECT run, n, at_ms, cluster, kind, subject, author, text, diff FROM events \
             WHERE at_ms >= ?1 AND at_ms < ?2 ORDER BY at_ms DESC LIMIT {ROWS_MAX}"
        );
        let read = |row: &Row<'_>| {
            Ok(Event {
                run: row.get(0)?,
                n: row.get(1)?,
                at: At(row.get(2)?),
                cluster: row.get(3)?,
                kind: row.get(4)?,
                subject: row.get(5)?,
                author: row.get(6)?,
                text: row.get(7)?,
                diff: row.get(8)?,
            })
        };
        let mut statement = self.connection.prepare(&sql)?;
        statement.query_map(params![asked.since.0, asked.until.0], read)?.collect()
    }

    /// The runs that overlap the time.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn runs(&self, asked: &Asked<'_>) -> rusqlite::Result<Vec<Run>> {
        let sql = "SELECT run, began_ms, seen_ms, ended_ms, version FROM runs \
                   WHERE began_ms < ?2 AND seen_ms >= ?1 ORDER BY began_ms LIMIT 1000";
        let read = |row: &Row<'_>| {
            Ok(Run {
                run: row.get(0)?,
                began: At(row.get(1)?),
                seen: At(row.get(2)?),
                ended: row.get::<_, Option<i64>>(3)?.map(At),
                version: row.get(4)?,
            })
        };
        let mut statement = self.connection.prepare(sql)?;
        statement.query_map(params![asked.since.0, asked.until.0], read)?.collect()
    }

    /// Since when there is anything.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn since(&self) -> rusqlite::Result<Option<At>> {
        let sql = "SELECT MIN(began_ms) FROM runs";
        let first: Option<i64> = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(first.map(At))
    }

    /// What is known of one statement.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn statement(&self, id: u32) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT why FROM statements WHERE id = ?1";
        self.connection.query_row(sql, [id], |row| row.get(0)).optional()
    }

    /// What is known of the last refusal of those that are asked for, and of their longest wait since
    /// then that ended well.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn statements(&self, asked: &Asked<'_>) -> rusqlite::Result<Vec<String>> {
        let of = "FROM statements WHERE instr(':' || app || ':', ':' || ?1 || ':') > 0 \
                  AND json_extract(why, '$.end')";
        let sql = format!(
            "SELECT why FROM (SELECT why {of} = 'refused' ORDER BY at_ms DESC LIMIT 1) UNION ALL \
             SELECT why FROM (SELECT why {of} = 'admitted' AND at_ms >= ?2 \
             ORDER BY json_extract(why, '$.waited_s') DESC LIMIT 1)"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let values = params![asked.app.unwrap_or_default(), asked.since.0];
        statement.query_map(values, |row| row.get(0))?.collect()
    }

    /// The rows of minutes that are meant, but for those that the memory has.
    fn filter(&self, asked: &Asked<'_>) -> (String, Vec<Value>) {
        let mut values: Vec<Value> = Vec::new();
        // The minute in which the time begins counts.
        let since = asked.since.0.div_euclid(60_000).saturating_mul(60);
        values.push(since.into());
        values.push(asked.until.0.div_euclid(1_000).into());
        let mut filter = "at >= ?1 AND at < ?2".to_owned();
        let mut add = |text: &str, value: Value| {
            values.push(value);
            filter.push_str(&text.replace("{}", &format!("?{}", values.len())));
        };
        if let Some(cluster) = asked.cluster {
            add(" AND cluster = {}", cluster.to_owned().into());
        }
        if let Some(app) = asked.app {
            add(" AND instr(':' || app || ':', ':' || {} || ':') > 0", app.to_owned().into());
        }
        for (run, from) in &self.memory {
            add(" AND NOT (run = {}", (*run).into());
            add(" AND at >= {})", (*from).into());
        }
        (filter, values)
    }
}

fn span(row: &Row<'_>) -> rusqlite::Result<Option<Span>> {
    let kind: String = row.get(2)?;
    let facts: String = row.get(9)?;
    let Some(kind) = SpanKind::ALL.into_iter().find(|known| known.as_str() == kind) else {
        return Ok(None);
    };
    Ok(Some(Span {
        run: row.get(0)?,
        n: row.get(1)?,
        kind,
        cluster: row.get(3)?,
        subject: row.get(4)?,
        state: row.get(5)?,
        began: At(row.get(6)?),
        ended: row.get::<_, Option<i64>>(7)?.map(At),
        lasted_ms: row.get(8)?,
        facts: serde_json::from_str::<SpanFacts>(&facts).unwrap_or_default(),
    }))
}

fn whole(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    Ok(u64::try_from(value).unwrap_or_default())
}
