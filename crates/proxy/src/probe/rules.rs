//! The table of runtime rules, beside the heartbeat's: read all the time, written when a rule is
//! made or lifted.
//!
//! Versions. Each cluster has a row without a name, whose version is the highest that was given.
//! Whoever writes raises it first, in the same transaction: it stays locked until the commit, so
//! versions become visible in their order, and whoever has read up to one has missed none below.
//!
//! Reading asks for the version that is known and what is above. Nothing at all means that the
//! primary is not the one that gave that version: a replica that was behind has taken over, or the
//! table is another one. Then, on each new connection, and after each minute, everything is read,
//! and the keeper sees what is missing.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::Row;
use policy::TableName;
use tokio::time::Instant;

use super::ProbeTarget;
use super::answer::{number, text};
use super::health::Purpose;
use super::heartbeat::{ask_if_writable, is_missing};
use crate::board::ProbeError;
use crate::link::Link;
use crate::rule_table::{ReadRow, Reading, RuleKeeper, VERSION_MAX, WriteRow, Written};

/// The longest a reading or a statement of a write may take.
const TABLE_TIMEOUT: Duration = Duration::from_secs(2);

/// How often the table is read, hibernating or not: a rule is to be everywhere within a second.
const READ_INTERVAL_MIN: Duration = Duration::from_millis(100);
const READ_INTERVAL_MAX: Duration = Duration::from_millis(400);

/// How soon what could not be written is tried again.
const WRITE_RETRY: Duration = Duration::from_secs(1);

/// How often everything is read although nothing asks for it.
const FULL_READ_INTERVAL: Duration = Duration::from_secs(60);

/// How often rows that have ended are removed.
const CLEAN_INTERVAL: Duration = Duration::from_secs(600);

/// Rows of one answer, and of one transaction.
const READ_ROWS_MAX: usize = 1_000;
const WRITE_ROWS_MAX: usize = 100;

/// Transactions between two readings.
const WRITES_MAX: usize = 10;

/// The longest body that is read, in bytes: no rule comes near it.
const BODY_LEN_MAX: usize = 16 << 10;

/// Most text of one reading, in bytes: with 10,000 rules it has some two million.
const TEXT_LEN_MAX: usize = 128 << 20;

/// Answers of one reading of everything: ten times as many rows as there may be rules.
const PAGES_MAX: usize = 100;

/// Runs until it is dropped.
pub(super) async fn watch(target: ProbeTarget, keeper: Arc<dyn RuleKeeper>) {
    let TableName { schema, .. } = &target.probe.heartbeat_table;
    let table = RuleTable { cluster: target.site.cluster.name.clone(), schema: schema.clone() };
    let mut link = target.link(TABLE_TIMEOUT);
    let mut health = target.health(Purpose::Rules);
    let mut position = Position::default();
    let interval = target.probe.heartbeat_interval.clamp(READ_INTERVAL_MIN, READ_INTERVAL_MAX);
    let mut write_after = Instant::now();
    let mut clean_after = Instant::now();
    loop {
        let began = Instant::now();
        let read = table.read(&mut link, &mut position, keeper.read_to()).await;
        health.note(&read);
        match read {
            Ok(reading) => keeper.handle_reading(reading),
            Err(error) => {
                position = Position::default();
                keeper.handle_unread(&error.sentence());
            }
        }
        if Instant::now() >= write_after {
            for _ in 0..WRITES_MAX {
                let rows = keeper.outbox(WRITE_ROWS_MAX);
                if rows.is_empty() {
                    break;
                }
                // Committed or not: the next reading shows it.
                if !table.bring(&mut link, &*keeper, rows).await {
                    write_after = Instant::now() + WRITE_RETRY;
                    break;
                }
            }
        }
        if position.is_known() && Instant::now() >= clean_after {
            clean_after = Instant::now() + CLEAN_INTERVAL;
            table.clean(&mut link).await;
        }
        let soon = write_after.max(began);
        tokio::select! {
            () = tokio::time::sleep_until(began + interval) => {}
            () = async { tokio::time::sleep_until(soon).await; keeper.work().await } => {}
        }
    }
}

/// What the last readings have shown of the server.
#[derive(Debug, Default)]
struct Position {
    /// The connection, and the server that it is to.
    origin: Option<String>,
    /// When everything was read.
    full_at: Option<Instant>,
}

impl Position {
    fn is_known(&self) -> bool {
        self.origin.is_some()
    }

    fn is_old(&self) -> bool {
        self.full_at.is_none_or(|at| at.elapsed() >= FULL_READ_INTERVAL)
    }
}

/// The table of one cluster's rules.
struct RuleTable {
    cluster: Arc<str>,
    schema: String,
}

impl RuleTable {
    fn name(&self) -> String {
        format!("`{}`.`{TABLE}`", self.schema)
    }

    async fn read(
        &self,
        link: &mut Link,
        position: &mut Position,
        known: u64,
    ) -> Result<Reading, ProbeError> {
        if known > 0 && position.is_known() && !position.is_old() {
            let page = self.page(link, known).await?;
            let same = page.origin.is_some() && page.origin == position.origin;
            // A full page is not all there is above: what it ends with says where to go on.
            if same && page.counter.is_none_or(|counter| counter >= known) {
                return Ok(Reading::Changes(page.rows));
            }
        }
        let mut everything = Page::default();
        let (mut from, mut text_len) = (0, 0_usize);
        for _ in 0..PAGES_MAX {
            let page = match self.page(link, from).await {
                Err(error) if is_missing(&error) => Page::default(),
                page => page?,
            };
            let is_last = page.len < READ_ROWS_MAX;
            from = page.rows.iter().map(|row| row.version).max().map_or(from, |v| v.max(from));
            text_len =
                page.rows.iter().fold(text_len, |sum, row| sum.saturating_add(row.body.len()));
            if text_len > TEXT_LEN_MAX {
                return Err(ProbeError::Unusable(format!(
                    "{} has more than {TEXT_LEN_MAX} bytes of rules: remove what no Sluice wrote",
                    self.name()
                )));
            }
            everything.rows.extend(page.rows);
            everything.counter = page.counter.or(everything.counter);
            everything.origin = page.origin.or(everything.origin);
            if is_last {
                break;
            }
        }
        *position = Position { origin: everything.origin, full_at: Some(Instant::now()) };
        let counter = everything.counter.unwrap_or(0);
        Ok(Reading::Everything { rows: everything.rows, counter })
    }

    /// The rows of this version and above, the lowest first.
    async fn page(&self, link: &mut Link, version: u64) -> Result<Page, ProbeError> {
        let select = self.select(version);
        let rows = link.rows(&select).await?;
        let mut page = Page { len: rows.len(), ..Page::default() };
        for row in &rows {
            let unusable = || ProbeError::Unusable(format!("a row of {} is no rule", self.name()));
            page.origin = row.as_ref(6).and_then(text).or(page.origin);
            let read = read_row(row).ok_or_else(unusable)?;
            if read.name.is_empty() {
                page.counter = Some(read.version);
            } else {
                page.rows.push(read);
            }
        }
        Ok(page)
    }

    fn select(&self, version: u64) -> String {
        // What is too long is read as nothing, and so not understood.
        format!(
            "SELECT name, version, deleted, \
             TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), LEFT(author, 255), \
             IF(LENGTH(body) <= {BODY_LEN_MAX}, body, ''), \
             CONCAT_WS(' ', CONNECTION_ID(), @@server_id, @@port, @@hostname) \
             FROM {} WHERE cluster = '{}' AND version BETWEEN {version} AND {VERSION_MAX} \
             ORDER BY version, name DESC LIMIT {READ_ROWS_MAX}",
            self.name(),
            self.cluster
        )
    }

    /// Whether all of these rows were written.
    async fn bring(&self, link: &mut Link, keeper: &dyn RuleKeeper, rows: Vec<WriteRow>) -> bool {
        let floor = keeper.highest();
        let written = match self.write(link, floor, &rows).await {
            Err(error) if is_missing(&error) => match self.create(link).await {
                Ok(()) => self.write(link, floor, &rows).await,
                Err(error) => Err(error),
            },
            written => written,
        };
        match written {
            Ok(written) => {
                keeper.handle_written(written);
                true
            }
            Err(error) => {
                keeper.handle_unwritten(&error.sentence());
                false
            }
        }
    }

    /// # Cancellation
    /// The server rolls back, unless the commit was on its way.
    async fn write(
        &self,
        link: &mut Link,
        floor: u64,
        rows: &[WriteRow],
    ) -> Result<Vec<Written>, ProbeError> {
        let written = self.write_in_transaction(link, floor, rows).await;
        if written.as_ref().is_err_and(|error| !error.is_silence()) {
            // A connection that is lost has rolled back of itself.
            link.run("ROLLBACK").await?;
        }
        written
    }

    async fn write_in_transaction(
        &self,
        link: &mut Link,
        floor: u64,
        rows: &[WriteRow],
    ) -> Result<Vec<Written>, ProbeError> {
        let Self { cluster, .. } = self;
        let table = self.name();
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        ask_if_writable(link).await?;
        link.run("BEGIN").await?;
        let first = floor.saturating_add(count);
        let raise = format!(
            "INSERT INTO {table} (cluster, name, version, deleted, expires_at, author, body) \
             VALUES ('{cluster}', '', {first}, 0, '9999-12-31', '', '') \
             ON DUPLICATE KEY UPDATE version = \
             GREATEST(IF(version > {VERSION_MAX}, 0, version), {floor}) + {count}"
        );
        link.run(&raise).await?;
        let given =
            format!("SELECT version FROM {table} WHERE cluster = '{cluster}' AND name = ''");
        let row = link.first(&given).await?;
        let given: u64 = row
            .and_then(|row| row.as_ref(0).and_then(number))
            .ok_or_else(|| ProbeError::Unusable(format!("{table} gives no versions")))?;
        if given > VERSION_MAX {
            return Err(ProbeError::Unusable(format!(
                "the versions of {table} have come to their end, {VERSION_MAX}: somebody has \
                 written such a row by hand. Stop every Sluice of this cluster, drop the table, \
                 and start them: they write their rules anew"
            )));
        }
        let mut written = Vec::with_capacity(rows.len());
        let versions = given.saturating_sub(count).saturating_add(1)..=given;
        for (row, version) in rows.iter().zip(versions) {
            link.run(&self.upsert(row, version)).await?;
            written.push(Written { name: row.name.clone(), change: row.change, version });
        }
        link.run("COMMIT").await?;
        Ok(written)
    }

    fn upsert(&self, row: &WriteRow, version: u64) -> String {
        let WriteRow { name, change: _, left, lifted, author, body, over } = row;
        let table = self.name();
        let cluster = &self.cluster;
        let deleted = u8::from(*lifted);
        let ends = format!("UTC_TIMESTAMP(6) + INTERVAL {} MICROSECOND", left.as_micros());
        let [author, body] = [author, body].map(|value| literal(value));
        let insert = format!(
            "INSERT INTO {table} (cluster, name, version, deleted, expires_at, author, body) \
             VALUES ('{cluster}', '{name}', {version}, {deleted}, {ends}, {author}, {body})"
        );
        let set = |column: &str, value: &str| match over {
            None => format!("{column} = {value}"),
            Some(over) => format!(
                "{column} = IF(version <= {over} OR version > {VERSION_MAX}, {value}, {column})"
            ),
        };
        let columns = [
            ("deleted", deleted.to_string()),
            ("expires_at", ends),
            ("author", author),
            ("body", body),
            // Last: the others look at what it was.
            ("version", version.to_string()),
        ];
        let columns = columns.map(|(column, value)| set(column, &value)).join(", ");
        format!("{insert} ON DUPLICATE KEY UPDATE {columns}")
    }

    async fn create(&self, link: &mut Link) -> Result<(), ProbeError> {
        // The account may lack the right to create the schema and still have it on the table.
        let schema = format!("CREATE SCHEMA IF NOT EXISTS `{}`", self.schema);
        if let Err(error) = link.run(&schema).await {
            tracing::debug!(%error, "the schema of the runtime rules was not created");
        }
        link.run(&create(&self.name())).await.map(|_| ())
    }

    async fn clean(&self, link: &mut Link) {
        let cluster = &self.cluster;
        let delete = format!(
            "DELETE FROM {} WHERE cluster = '{cluster}' AND name <> '' \
             AND expires_at < UTC_TIMESTAMP(6) - INTERVAL 1 HOUR LIMIT 1000",
            self.name()
        );
        match link.run(&delete).await {
            Ok(0) => {}
            Ok(rows) => tracing::debug!(%cluster, rows, "removed runtime rules that have ended"),
            Err(error) if is_missing(&error) => {}
            Err(error) => tracing::debug!(
                %cluster, %error,
                "rows of runtime rules that have ended stay in their table; they do no harm"
            ),
        }
    }
}

/// The rows of one answer.
#[derive(Debug, Default)]
struct Page {
    rows: Vec<ReadRow>,
    /// How many rows it had, of all kinds.
    len: usize,
    /// The version of the row without a name.
    counter: Option<u64>,
    origin: Option<String>,
}

fn read_row(row: &Row) -> Option<ReadRow> {
    // A time that is none has ended: somebody has written this row by hand.
    let micros: i64 = row.as_ref(3).and_then(number).unwrap_or(0);
    Some(ReadRow {
        name: row.as_ref(0).and_then(text)?,
        version: row.as_ref(1).and_then(number)?,
        lifted: row.as_ref(2).and_then(number::<u8>)? != 0,
        left: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
        author: row.as_ref(4).and_then(text)?,
        body: row.as_ref(5).and_then(text)?,
    })
}

/// A text that needs no quoting, whatever is in it and whatever the SQL mode is.
fn literal(text: &str) -> String {
    if text.is_empty() {
        return "''".to_owned();
    }
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("_utf8mb4 0x{digits}")
}

/// Its name, in the schema of the heartbeat's.
pub(super) const TABLE: &str = "rules";

/// The statement that makes the table.
pub(super) fn create(table: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (\
         cluster VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL \
         COMMENT 'as the configuration file names it', \
         name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL \
         COMMENT 'empty: the highest version of the cluster', \
         version BIGINT UNSIGNED NOT NULL COMMENT 'the order of changes', \
         deleted TINYINT UNSIGNED NOT NULL COMMENT '1: lifted', \
         expires_at DATETIME(6) NOT NULL COMMENT 'UTC', \
         author VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL, \
         body TEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'JSON', \
         PRIMARY KEY (cluster, name), KEY (cluster, version)) ENGINE=InnoDB \
         COMMENT 'runtime rules of Sluice; lift them there, rows that are deleted come again'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> RuleTable {
        RuleTable { cluster: "main".into(), schema: "sluice".to_owned() }
    }

    fn row(over: Option<u64>) -> WriteRow {
        WriteRow {
            name: "runtime:etl".to_owned(),
            change: 1,
            left: Duration::from_secs(60),
            lifted: false,
            author: "it's".to_owned(),
            body: String::new(),
            over,
        }
    }

    #[test]
    fn texts_are_sent_without_quotes_of_their_own() {
        let sql = table().upsert(&row(None), 7);
        assert!(sql.contains("_utf8mb4 0x69742773") && !sql.contains("it's"), "{sql}");
        assert!(sql.contains("INTERVAL 60000000 MICROSECOND"), "{sql}");
    }

    #[test]
    fn a_row_that_is_brought_again_does_not_replace_a_newer_one() {
        let sql = table().upsert(&row(Some(5)), 7);
        let but_over = format!("IF(version <= 5 OR version > {VERSION_MAX}, ");
        assert!(sql.ends_with(&format!("version = {but_over}7, version)")), "{sql}");
        assert!(sql.contains(&format!("deleted = {but_over}0, deleted)")), "{sql}");
    }

    #[test]
    fn versions_and_bodies_that_no_sluice_wrote_are_not_read() {
        let sql = table().select(7);
        assert!(sql.contains("version BETWEEN 7 AND 9223372036854775807 "), "{sql}");
        assert!(sql.contains("IF(LENGTH(body) <= 16384, body, '')"), "{sql}");
    }
}
