//! What gh-ost writes: the tables, the chunks, and the changes that it has read.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::session::Session;
use super::stream::{Event, Row};
use super::{BETWEEN_TRIES, Migration, Shared, TRIES};
use crate::error::{HarnessError, Result};

/// The one goroutine that writes: changes first, then the next chunk.
#[derive(Debug)]
pub(super) struct Writer {
    migration: Migration,
    session: Session,
    events: mpsc::Receiver<Event>,
    /// What came out of the changelog, once all that was before it is applied.
    states: watch::Sender<String>,
    shared: Arc<Shared>,
    /// The last id that is copied, and the last that shall be.
    copied_to: i64,
    last: i64,
}

impl Writer {
    pub(super) async fn open(
        migration: &Migration,
        events: mpsc::Receiver<Event>,
        states: watch::Sender<String>,
        shared: Arc<Shared>,
    ) -> Result<Self> {
        let session = Session::open(migration.applier, &migration.user).await?;
        let migration = migration.clone();
        Ok(Self { migration, session, events, states, shared, copied_to: i64::MIN, last: 0 })
    }

    /// `_t_ghc` and `_t_gho`, and where the copy begins and ends.
    pub(super) async fn make_tables(&mut self) -> Result<()> {
        for statement in TABLES {
            self.session.run(statement).await?;
        }
        self.session.run("BEGIN").await?;
        self.session.run(&settings("@@global.time_zone", "")).await?;
        self.session
            .run("ALTER /* gh-ost */ TABLE `test`.`_t_gho` ADD COLUMN extra INT NOT NULL DEFAULT 0")
            .await?;
        self.session.run("COMMIT").await?;
        self.session.run(&changelog("state", "GhostTableMigrated", 2)).await?;
        let range = "SELECT /* gh-ost `test`.`t` */ MAX(id) FROM `test`.`t`";
        self.last = number(self.session.text(range).await?).unwrap_or(i64::MIN);
        Ok(())
    }

    /// Until the migration is over, or something has failed sixty times.
    pub(super) async fn run(mut self) -> Result<()> {
        while !self.shared.is_finished.load(Ordering::Relaxed) {
            self.wait_while_throttled().await;
            if let Ok(event) = self.events.try_recv() {
                self.apply(event).await?;
            } else if self.migration.progress.copied.load(Ordering::Relaxed) {
                // Nothing to copy and nothing to apply: it looks again after a second.
                tokio::time::sleep(IDLE).await;
            } else {
                self.copy().await?;
            }
        }
        Ok(())
    }

    async fn wait_while_throttled(&self) {
        let is = |flag: &std::sync::atomic::AtomicBool| flag.load(Ordering::Relaxed);
        while is(&self.shared.is_throttled) && !is(&self.shared.is_critical) {
            tokio::time::sleep(THROTTLED).await;
        }
    }

    /// Ten changes at most in one transaction, and no state among them.
    async fn apply(&mut self, first: Event) -> Result<()> {
        let mut batch = Vec::new();
        let mut next = Some(first);
        while let Some(event) = next {
            if let Event::State(state) = event {
                self.apply_rows(&batch).await?;
                batch.clear();
                // Nobody listens when the cut-over has given up.
                self.states.send(state).ok();
                return Ok(());
            }
            batch.push(event);
            next = if batch.len() < BATCH { self.events.try_recv().ok() } else { None };
        }
        self.apply_rows(&batch).await
    }

    async fn apply_rows(&mut self, batch: &[Event]) -> Result<()> {
        let changes: Vec<String> = batch.iter().filter_map(change).collect();
        if changes.is_empty() {
            return Ok(());
        }
        let script = changes.concat();
        let settings = settings("'+00:00'", "/* gh-ost */ ");
        self.transaction([&settings, "START TRANSACTION", &script]).await?;
        let count = u64::try_from(batch.len()).unwrap_or_default();
        self.migration.progress.applied.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// The next thousand rows.
    async fn copy(&mut self) -> Result<()> {
        let (from, last) = (self.copied_to, self.last);
        let end = format!(
            "SELECT /* gh-ost `test`.`t` iteration */ MAX(id) FROM (SELECT id FROM `test`.`t` \
             WHERE id > {from} AND id <= {last} ORDER BY id LIMIT {CHUNK}) AS chunk"
        );
        let Some(to) = number(self.session.text(&end).await?) else {
            self.migration.progress.copied.store(true, Ordering::Relaxed);
            return Ok(());
        };
        let copy = format!(
            "INSERT /* gh-ost `test`.`t` */ IGNORE INTO `test`.`_t_gho` (id, k, pad) \
             (SELECT id, k, pad FROM `test`.`t` FORCE INDEX (`PRIMARY`) \
             WHERE id > {from} AND id <= {to} LOCK IN SHARE MODE)"
        );
        let settings = settings("@@global.time_zone", "");
        self.transaction(["START TRANSACTION", &settings, &copy]).await?;
        self.copied_to = to;
        self.migration.progress.chunks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Three statements and COMMIT, as often as it takes and gh-ost tries.
    async fn transaction(&mut self, statements: [&str; 3]) -> Result<()> {
        let mut last = None;
        for tried in 0..TRIES {
            if tried > 0 {
                tokio::time::sleep(BETWEEN_TRIES).await;
            }
            match self.try_once(statements).await {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        let last = last.map_or_else(String::new, |error| error.to_string());
        Err(HarnessError::Protocol(format!("the migration has used up its {TRIES} tries: {last}")))
    }

    async fn try_once(&mut self, statements: [&str; 3]) -> Result<()> {
        for statement in statements.into_iter().chain(["COMMIT"]) {
            match self.session.run(statement).await {
                Ok(()) => {}
                Err(refused @ HarnessError::Refused { .. }) => {
                    self.session.run("ROLLBACK").await?;
                    return Err(refused);
                }
                Err(lost) => {
                    // The pool opens another connection.
                    let Migration { applier, user, .. } = &self.migration;
                    self.session = Session::open(*applier, user).await?;
                    return Err(lost);
                }
            }
        }
        Ok(())
    }
}

/// A statement on `_t_gho` that does what was done to `t`.
fn change(event: &Event) -> Option<String> {
    let text = match event {
        Event::State(_) => return None,
        Event::Gone(id) => format!("DELETE {MARK} FROM `test`.`_t_gho` WHERE id = {id}"),
        Event::Row { before: Some(before), after } if *before == after.id => {
            let Row { id, k, .. } = after;
            let pad = quoted(&after.pad);
            format!(
                "UPDATE {MARK} `test`.`_t_gho` SET id = {id}, k = {k}, pad = {pad} WHERE id = {id}"
            )
        }
        Event::Row { before, after } => {
            let gone = before.and_then(|id| change(&Event::Gone(id))).unwrap_or_default();
            let Row { id, k, .. } = after;
            let pad = quoted(&after.pad);
            format!(
                "{gone}INSERT {MARK} IGNORE INTO `test`.`_t_gho` (id, k, pad) \
                 VALUES ({id}, {k}, {pad})"
            )
        }
    };
    Some(text + ";\n")
}

/// A row of the changelog.
pub(super) fn changelog(hint: &str, value: &str, id: u32) -> String {
    format!(
        "INSERT /* gh-ost */ INTO `test`.`_t_ghc` (id, hint, value) \
         VALUES (NULLIF({id}, 0), '{hint}', '{value}') \
         ON DUPLICATE KEY UPDATE last_update = NOW(), value = VALUES(value)"
    )
}

fn settings(time_zone: &str, comment: &str) -> String {
    format!(
        "SET {comment}SESSION time_zone = {time_zone}, \
         sql_mode = CONCAT(@@session.sql_mode, ',NO_AUTO_VALUE_ON_ZERO,STRICT_ALL_TABLES')"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn number(text: Option<String>) -> Option<i64> {
    text?.parse().ok()
}

const MARK: &str = "/* gh-ost `test`.`_t_gho` */";
/// `--chunk-size`.
const CHUNK: u32 = 1000;
/// `--dml-batch-size`.
const BATCH: usize = 10;
const IDLE: Duration = Duration::from_secs(1);
const THROTTLED: Duration = Duration::from_millis(250);

const TABLES: [&str; 5] = [
    "DROP /* gh-ost */ TABLE IF EXISTS `test`.`_t_gho`",
    "DROP /* gh-ost */ TABLE IF EXISTS `test`.`_t_ghc`",
    "DROP /* gh-ost */ TABLE IF EXISTS `test`.`_t_del`",
    "CREATE /* gh-ost */ TABLE `test`.`_t_ghc` (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, \
     last_update TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, \
     hint VARCHAR(64) CHARACTER SET ascii NOT NULL, \
     value VARCHAR(4096) CHARACTER SET ascii NOT NULL, \
     UNIQUE KEY (hint)) AUTO_INCREMENT=256 COMMENT='gh-ost changelog'",
    "CREATE /* gh-ost */ TABLE `test`.`_t_gho` LIKE `test`.`t`",
];
