//! What is written in one transaction.

use std::time::Duration;

use rusqlite::{Connection, Transaction, params};

use super::{FULL_AT_PERCENT, Limits, costs, insights, quarantine};
use crate::record::{At, CheckRow, Event, MinuteRow, Run, SignalRow, Span, StatementRow, Writes};

/// What a row takes with its part of indexes: a generous guess.
const ROW_BYTES: u64 = 1_024;

/// Statements that are kept, the last ones.
const STATEMENTS_MAX: u64 = 10_000;

/// Writes all of it or nothing, lets what is too old go, and tells how large the file is.
pub(super) fn write(
    connection: &mut Connection,
    writes: &[Writes],
    now: At,
    limits: Limits,
) -> rusqlite::Result<u64> {
    let rows = writes.iter().map(Writes::rows).sum::<usize>();
    let needed = u64::try_from(rows).unwrap_or(u64::MAX).saturating_mul(ROW_BYTES);
    make_room(connection, needed, now, limits)?;
    let all = connection.transaction()?;
    insights::forget(&all, now)?;
    quarantine::forget(&all, now)?;
    costs::forget(&all, now)?;
    for writes in writes {
        let Writes { runs, minutes, signals, checks, spans, events, statements, .. } = writes;
        runs.iter().try_for_each(|row| run(&all, row))?;
        minutes.iter().try_for_each(|row| minute(&all, row))?;
        signals.iter().try_for_each(|row| signal(&all, row))?;
        checks.iter().try_for_each(|row| check(&all, row))?;
        spans.iter().try_for_each(|row| span(&all, row))?;
        events.iter().try_for_each(|row| event(&all, row))?;
        statements.iter().try_for_each(|row| statement(&all, row))?;
        insights::write(&all, writes, limits.bytes_max)?;
        quarantine::write(&all, writes)?;
        costs::write(&all, writes)?;
    }
    all.commit()?;
    Ok(size(connection)?.0)
}

fn run(all: &Transaction<'_>, row: &Run) -> rusqlite::Result<()> {
    let sql = "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (run) DO UPDATE SET \
               seen_ms = excluded.seen_ms, ended_ms = excluded.ended_ms";
    let Run { run, began, seen, ended, version } = row;
    let ended = ended.map(|at| at.0);
    all.prepare_cached(sql)?.execute(params![run, began.0, seen.0, ended, version]).map(drop)
}

fn minute(all: &Transaction<'_>, row: &MinuteRow) -> rusqlite::Result<()> {
    let MinuteRow { run, at, cluster, app, user, rule, counts, refused_by } = row;
    let sql = "INSERT OR REPLACE INTO minutes VALUES \
               (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    all.prepare_cached(sql)?.execute(params![
        run,
        at,
        cluster,
        app,
        user,
        rule,
        whole(counts.asked),
        whole(counts.admitted),
        whole(counts.delayed),
        whole(counts.refused),
        whole(counts.observed),
        whole(counts.left),
        counts.wait_sum_s,
        counts.wait_max_s,
        counts.wait_p99_s,
        whole(counts.rows),
    ])?;
    let sql = "INSERT OR REPLACE INTO refusals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    for (reason, refused) in refused_by {
        let refused = whole(*refused);
        let row = params![run, at, cluster, app, user, rule, reason, refused];
        all.prepare_cached(sql)?.execute(row)?;
    }
    Ok(())
}

fn signal(all: &Transaction<'_>, row: &SignalRow) -> rusqlite::Result<()> {
    let SignalRow { run, at, cluster, signal, values } = row;
    let sql = "INSERT OR REPLACE INTO signals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let row = params![
        run,
        at,
        cluster,
        signal,
        values.threshold,
        values.min,
        values.mean,
        values.max,
        whole(values.samples),
        values.shut_s,
    ];
    all.prepare_cached(sql)?.execute(row).map(drop)
}

fn check(all: &Transaction<'_>, row: &CheckRow) -> rusqlite::Result<()> {
    let CheckRow { run, at, cluster, app, rule, refused, count } = row;
    let sql = "INSERT OR REPLACE INTO checks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let row = params![run, at, cluster, app, rule, refused, whole(*count)];
    all.prepare_cached(sql)?.execute(row).map(drop)
}

fn span(all: &Transaction<'_>, row: &Span) -> rusqlite::Result<()> {
    let Span { run, n, kind, cluster, subject, state, began, ended, lasted_ms, facts } = row;
    let facts = serde_json::to_string(facts).unwrap_or_default();
    let ended = ended.map(|at| at.0);
    let kind = kind.as_str();
    let sql = "INSERT OR REPLACE INTO spans VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let row = params![run, n, kind, cluster, subject, state, began.0, ended, lasted_ms, facts];
    all.prepare_cached(sql)?.execute(row).map(drop)
}

fn event(all: &Transaction<'_>, row: &Event) -> rusqlite::Result<()> {
    let Event { run, n, at, cluster, kind, subject, author, text, diff } = row;
    let sql = "INSERT OR REPLACE INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let row = params![run, n, at.0, cluster, kind, subject, author, text, diff];
    all.prepare_cached(sql)?.execute(row).map(drop)
}

fn statement(all: &Transaction<'_>, row: &StatementRow) -> rusqlite::Result<()> {
    let StatementRow { id, at, cluster, app, why } = row;
    let sql = "INSERT OR REPLACE INTO statements VALUES (?1, ?2, ?3, ?4, ?5)";
    all.prepare_cached(sql)?.execute(params![id, at.0, cluster, app, why]).map(drop)
}

/// Deletes what is too old, and of the oldest as much as what comes needs.
fn make_room(
    connection: &mut Connection,
    needed: u64,
    now: At,
    limits: Limits,
) -> rusqlite::Result<()> {
    let keep_ms = i64::try_from(limits.keep.as_millis()).unwrap_or(i64::MAX);
    delete_before(connection, At(now.0.saturating_sub(keep_ms)))?;
    // What is larger than that does not become smaller by it.
    let needed = needed.min(limits.bytes_max / 4);
    for _ in 0..TENTHS_MAX {
        let (bytes, free) = size(connection)?;
        let used = bytes.saturating_sub(free);
        if used.saturating_add(needed) <= limits.bytes_max / 100 * FULL_AT_PERCENT {
            break;
        }
        if insights::are_most(connection, limits.bytes_max)? {
            insights::forget_a_quarter(connection)?;
            continue;
        }
        let first: Option<i64> = connection.query_row(FIRST, [], |row| row.get(0))?;
        let Some(first) = first.map(|at| at.saturating_mul(1_000)) else { break };
        // A tenth of the time.
        let tenth = now.0.saturating_sub(first).checked_div(10).unwrap_or_default();
        delete_before(connection, At(first.saturating_add(tenth.max(MINUTE_MS))))?;
    }
    Ok(())
}

/// The beginning of what takes most room.
const FIRST: &str = "SELECT MIN(at) FROM \
                     (SELECT MIN(at) AS at FROM minutes UNION ALL SELECT MIN(at) FROM insights)";

/// How often a tenth goes for one write.
const TENTHS_MAX: usize = 10;

fn delete_before(connection: &mut Connection, oldest: At) -> rusqlite::Result<()> {
    let oldest = oldest.0;
    let all = connection.transaction()?;
    let before_s = oldest.div_euclid(1_000);
    for table in ["minutes", "refusals", "signals", "checks", "insights"] {
        all.prepare_cached(&format!("DELETE FROM {table} WHERE at < ?1"))?.execute([before_s])?;
    }
    all.prepare_cached("DELETE FROM events WHERE at_ms < ?1")?.execute([oldest])?;
    all.prepare_cached("DELETE FROM runs WHERE seen_ms < ?1")?.execute([oldest])?;
    // What is known of the others begins there.
    all.prepare_cached("UPDATE runs SET began_ms = ?1 WHERE began_ms < ?1")?.execute([oldest])?;
    // A process that was killed leaves intervals open.
    all.prepare_cached(
        "DELETE FROM spans WHERE began_ms < ?1 AND (ended_ms < ?1 OR ended_ms IS NULL AND NOT \
         EXISTS (SELECT 1 FROM runs WHERE runs.run BETWEEN spans.run AND spans.run + 1000))",
    )?
    .execute([oldest])?;
    all.prepare_cached(
        "DELETE FROM statements WHERE at_ms < ?1 OR at_ms < (SELECT at_ms FROM statements \
         ORDER BY at_ms DESC LIMIT 1 OFFSET ?2)",
    )?
    .execute(params![oldest, whole(STATEMENTS_MAX)])?;
    all.commit()
}

const MINUTE_MS: i64 = 60_000;

/// How large the file is, and how much of it is free.
fn size(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    let number = |name: &str| -> rusqlite::Result<u64> {
        let value: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
        Ok(u64::try_from(value).unwrap_or_default())
    };
    let page = number("page_size")?;
    let (pages, free) = (number("page_count")?, number("freelist_count")?);
    Ok((pages.saturating_mul(page), free.saturating_mul(page)))
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Kept for the reader: how long nobody has to wait for a lock.
pub(super) const READ_BUSY: Duration = Duration::from_millis(500);
