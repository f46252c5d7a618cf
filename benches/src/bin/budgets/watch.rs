//! What is at the server, asked of the server on a direct connection.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use benches::Result;
use benches::beside::{Failure, beside, ended};
use integration::client::connect;
use integration::server::Server;
use mysql_async::prelude::Queryable;
use tokio::sync::oneshot;

/// The reports at the server at one time, as `performance_schema.threads` has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) reports: u32,
}

/// Looks again and again.
pub(crate) struct Watch {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<std::result::Result<Vec<Look>, Failure>>,
}

impl Watch {
    pub(crate) fn start(server: &Server) -> Result<Self> {
        let addr = server.addr();
        let (stop, mut stopped) = oneshot::channel();
        let thread = beside("watch", move || async move {
            let mut conn = connect(addr, "admin").await?;
            let mut tick = tokio::time::interval(LOOK_EVERY);
            let mut looks = Vec::new();
            loop {
                tokio::select! {
                    _ = &mut stopped => return Ok(looks),
                    _ = tick.tick() => {}
                }
                let at = Instant::now();
                let reports = conn.query_first(REPORTS_NOW).await?.unwrap_or_default();
                looks.push(Look { at, reports });
            }
        })?;
        Ok(Self { stop, thread })
    }

    pub(crate) async fn stop(self) -> Result<Vec<Look>> {
        drop(self.stop);
        ended(self.thread).await
    }
}

/// What both apps of batch work had taken at one time, and how much of theirs was running.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Since the meter was started.
    pub(crate) at: Duration,
    /// Server-seconds of `etl`.
    pub(crate) etl_s: f64,
    /// Server-seconds of both.
    pub(crate) both_s: f64,
    pub(crate) running: u32,
}

/// Reads the server's statement timers again and again. A statement is in them when it has ended.
pub(crate) struct Meter {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<std::result::Result<Vec<Taken>, Failure>>,
}

impl Meter {
    pub(crate) fn start(server: &Server) -> Result<Self> {
        let addr = server.addr();
        let (stop, mut stopped) = oneshot::channel();
        let thread = beside("meter", move || async move {
            let mut conn = connect(addr, "admin").await?;
            conn.query_drop(
                "TRUNCATE performance_schema.events_statements_summary_by_user_by_event_name",
            )
            .await?;
            let mut tick = tokio::time::interval(METER_EVERY);
            let mut taken = Vec::new();
            let began = Instant::now();
            loop {
                tokio::select! {
                    _ = &mut stopped => return Ok(taken),
                    _ = tick.tick() => {}
                }
                let at = began.elapsed();
                let row: Option<(Option<f64>, Option<f64>)> = conn.query_first(TIMERS).await?;
                let (etl_s, both_s) = row.unwrap_or_default();
                let (etl_s, both_s) = (etl_s.unwrap_or_default(), both_s.unwrap_or_default());
                let running = conn.query_first(BATCH_NOW).await?.unwrap_or_default();
                taken.push(Taken { at, etl_s, both_s, running });
            }
        })?;
        Ok(Self { stop, thread })
    }

    pub(crate) async fn stop(self) -> Result<Vec<Taken>> {
        drop(self.stop);
        ended(self.thread).await
    }
}

/// Keeps the history of statements for the reports alone, so that none is pushed out of it.
pub(crate) async fn keep_reports(server: &Server) -> Result<()> {
    Ok(server
        .run_sql(&[
            "UPDATE performance_schema.setup_actors SET HISTORY = 'NO'",
            "INSERT INTO performance_schema.setup_actors VALUES ('%', 'app', '%', 'YES', 'YES')",
            "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
             WHERE NAME = 'events_statements_history_long'",
        ])
        .await?)
}

/// Forgets what the server has noted by now.
pub(crate) async fn forget(server: &Server) -> Result<()> {
    Ok(server
        .run_sql(&[
            "TRUNCATE performance_schema.events_statements_history_long",
            "TRUNCATE performance_schema.events_statements_summary_by_digest",
        ])
        .await?)
}

/// The most reports that were under way at any instant since [`forget`], by the beginnings and
/// ends of the statements.
pub(crate) async fn most_at_once(server: &Server) -> Result<usize> {
    let spans: Vec<(u64, u64)> = server.query(SPANS).await?;
    let under_way = |at: u64| spans.iter().filter(|(start, end)| *start <= at && at < *end).count();
    Ok(spans.iter().map(|(start, _)| under_way(*start)).max().unwrap_or(0))
}

/// The web application's 99th percentiles since [`forget`], in seconds, as the server has them:
/// reads and writes.
pub(crate) async fn web_p99_s(server: &Server) -> Result<(f64, f64)> {
    let p99s: Vec<(String, f64)> = server.query(WEB_P99).await?;
    let of = |word: &str| {
        let found = p99s.iter().find(|(text, _)| text.starts_with(word));
        found.map_or(f64::NAN, |(_, p99)| *p99)
    };
    Ok((of("SELECT"), of("UPDATE")))
}

const LOOK_EVERY: Duration = Duration::from_millis(20);
const REPORTS_NOW: &str = "SELECT COUNT(*) FROM performance_schema.threads \
                           WHERE PROCESSLIST_USER = 'app' AND PROCESSLIST_COMMAND = 'Query'";
const METER_EVERY: Duration = Duration::from_millis(100);
const TIMERS: &str = "SELECT SUM(IF(USER = 'etl', SUM_TIMER_WAIT, 0)) / 1e12, SUM(SUM_TIMER_WAIT) / 1e12 \
                      FROM performance_schema.events_statements_summary_by_user_by_event_name \
                      WHERE USER IN ('etl', 'ddl')";
const BATCH_NOW: &str = "SELECT COUNT(*) FROM performance_schema.threads \
                         WHERE PROCESSLIST_USER IN ('etl', 'ddl') AND PROCESSLIST_COMMAND = 'Query'";
const SPANS: &str = "SELECT TIMER_START, TIMER_END \
                     FROM performance_schema.events_statements_history_long \
                     WHERE SQL_TEXT LIKE 'SELECT o.id%'";
const WEB_P99: &str = "SELECT DIGEST_TEXT, QUANTILE_99 / 1e12 \
                       FROM performance_schema.events_statements_summary_by_digest \
                       WHERE DIGEST_TEXT LIKE 'SELECT `pad` FROM `t`%' OR DIGEST_TEXT LIKE 'UPDATE `t`%'";
