//! What the appliers of a replica are at, for what transactions and rows cost (unless `probe.row_costs: told`).
//!
//! An applier holds the metadata locks of its transaction's tables until it has committed, those of
//! cascades and triggers among them, and its state says which kind of rows it applies. Both are in
//! `performance_schema` as MySQL comes, and reading them takes neither lock nor wait: some 0.4 ms,
//! of which the number of sessions is no part, for locks are looked up by the appliers' thread ids; thousands of locks
//! of other sessions are (4 to 12 ms with 16,000).

mod rows;

use std::sync::Arc;
use std::time::Duration;

use admission::{Appliers, Applying, Step, TableKey, WriteKind};
use mysql_async::Row;
use policy::table_key;
use rand::RngExt as _;

use self::rows::AppliedRows;
use super::answer::{number, text};
use super::health::{self, Purpose};
use super::{PROBE_TIMEOUT, ProbeTarget};
use crate::board::{CommitOrder, ProbeError};
use crate::link::Link;

/// How often it is looked, however often lag is asked for.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// How often while nobody is gated.
const SLOW: Duration = Duration::from_secs(1);

/// How long nothing is asked of a server that cannot tell or does not want to, and after a question that failed.
const CANNOT_TELL: Duration = Duration::from_secs(60);
const FAILED: Duration = Duration::from_secs(5);

/// How often it is asked whether it still tells: in looks.
const LOOKS_PER_SETTINGS: u32 = 600;

/// Tables of one transaction that count.
const TABLES_MAX: usize = 32;

const SETTINGS: &str = "SELECT @@GLOBAL.performance_schema, VERSION()";

/// Asked only where the answer to that is MySQL with it on: it takes a right. As MySQL 5.7 comes it is off.
const INSTRUMENTS: &str = "SELECT NAME FROM performance_schema.setup_instruments \
    WHERE NAME IN ('wait/lock/metadata/sql/mdl', 'wait/io/table/sql/handler') AND ENABLED = 'YES'";
const LOCKS: &str = "wait/lock/metadata/sql/mdl";
const TABLE_ROWS: &str = "wait/io/table/sql/handler";

/// What is read: it takes a right to each of them.
const RIGHTS: &str = "SELECT 1 FROM performance_schema.threads, performance_schema.metadata_locks, \
    performance_schema.table_io_waits_summary_by_table LIMIT 0";

/// The type of the object is not asked for: the server would look locks up by it. That an applier waits for the lock
/// of a row is in no state; that somebody does is a number that takes no right.
const QUESTION: &str = "SELECT STRAIGHT_JOIN t.THREAD_ID, t.NAME, t.PROCESSLIST_STATE, \
    m.OBJECT_TYPE, m.LOCK_TYPE, m.LOCK_STATUS, m.OBJECT_SCHEMA, m.OBJECT_NAME, \
    (SELECT VARIABLE_VALUE FROM performance_schema.global_status \
     WHERE VARIABLE_NAME = 'Innodb_row_lock_current_waits') \
    FROM performance_schema.threads t \
    LEFT JOIN performance_schema.metadata_locks m ON m.OWNER_THREAD_ID = t.THREAD_ID \
    WHERE t.NAME IN ('thread/sql/replica_worker', 'thread/sql/replica_sql', \
    'thread/sql/slave_worker', 'thread/sql/slave_sql')";

/// How often the rows of tables are counted: in looks.
const LOOKS_PER_COUNT: u32 = 20;

/// What one that is busy is at.
type At = (Vec<TableKey>, Step);

/// One applier.
#[derive(Debug, Default, PartialEq)]
struct Applier {
    thread: u64,
    /// It takes transactions from another thread, and so is busy while it waits for nothing.
    is_worker: bool,
    state: String,
    tables: Vec<(String, String)>,
}

/// The tables that this replica's appliers were met at.
struct Counted {
    rows: AppliedRows,
    /// As many as replicas are asked.
    one_of: Arc<()>,
}

impl Counted {
    fn new(target: &ProbeTarget) -> Self {
        let one_of = target.site.cluster.probes.counts_rows.clone();
        Self { rows: AppliedRows::default(), one_of }
    }
}

/// Looks at one replica's appliers until it is dropped.
pub(super) async fn watch(target: ProbeTarget) {
    let interval = target.probe.probe_interval.max(INTERVAL_MIN);
    let mut rhythm = target.site.rhythm(interval, SLOW);
    let mut health = target.health(Purpose::Appliers);
    let mut counting = target.health(Purpose::AppliedRows);
    let mut link = target.link(PROBE_TIMEOUT);
    let mut can_tell = false;
    let mut silence: Option<String> = None;
    let mut rows = None;
    let mut looks = 0_u32;
    loop {
        rhythm.beat().await;
        tokio::time::sleep(at_any_time_of(interval)).await;
        if !can_tell {
            match why_silent(&mut link).await {
                Ok(told) => {
                    if told.is_some() {
                        // Else the look says whether it answers.
                        health.note(&Ok(()));
                    }
                    if told.is_some() && told != silence {
                        let (cluster, server) = (&target.site.cluster.name, &target.server);
                        let why = told.as_deref().unwrap_or_default();
                        tracing::info!(%cluster, %server, why, "at the pace a row counts as a row");
                    }
                    can_tell = told.is_none();
                    silence = told;
                }
                Err(error) => {
                    rows = None;
                    let pause = pause(&error);
                    health.note::<()>(&Err(error));
                    tokio::time::sleep(pause).await;
                    continue;
                }
            }
        }
        if !can_tell {
            rows = None;
            tokio::time::sleep(CANNOT_TELL).await;
            continue;
        }
        let counted = rows.get_or_insert_with(|| Counted::new(&target));
        let looked = look(&target, &mut link, counted).await;
        health.note(&looked);
        if let Err(error) = looked {
            // It may be another server now.
            can_tell = false;
            rows = None;
            tokio::time::sleep(pause(&error)).await;
            continue;
        }
        if looks.is_multiple_of(LOOKS_PER_COUNT) {
            let outcome = count(&target, &mut link, counted).await;
            counting.note(&outcome);
            if let Err(error) = outcome {
                // Without it what others write would be taken for the work of those who are admitted.
                can_tell = false;
                rows = None;
                tokio::time::sleep(pause(&error)).await;
                continue;
            }
        }
        looks = looks.wrapping_add(1);
        // It may have been switched off.
        can_tell = !looks.is_multiple_of(LOOKS_PER_SETTINGS);
    }
}

/// When in its interval a look is taken. In step with the probes it would meet what these have just let in, and with
/// a job that writes ten times a second always or never what that writes.
fn at_any_time_of(interval: Duration) -> Duration {
    interval.mul_f64(rand::rng().random_range(0.0..1.0))
}

/// How long nothing is asked behind this.
fn pause(error: &ProbeError) -> Duration {
    if health::is_denied(error) { CANNOT_TELL } else { FAILED }
}

/// Why the server does not tell what its appliers are at; `None` if it does.
pub(super) async fn why_silent(replica: &mut Link) -> Result<Option<String>, ProbeError> {
    let row = replica.first(SETTINGS).await?;
    let value = |index| row.as_ref().and_then(|row| row.as_ref(index));
    // Their states have other names.
    let version = value(1).and_then(text).unwrap_or_default();
    if version.contains("MariaDB") {
        return Ok(Some("MariaDB does not tell what its appliers are at".into()));
    }
    if version.starts_with("5.") {
        return Ok(Some("MySQL before 8.0 does not tell what its appliers are at".into()));
    }
    if value(0).and_then(number::<u8>) != Some(1) {
        return Ok(Some("performance_schema is off".into()));
    }
    replica.rows(RIGHTS).await?;
    let on: Vec<String> = replica
        .rows(INSTRUMENTS)
        .await?
        .iter()
        .filter_map(|row| row.as_ref(0).and_then(text))
        .collect();
    let off = [LOCKS, TABLE_ROWS].into_iter().find(|name| !on.iter().any(|on| on == name));
    Ok(off.map(|name| format!("the instrument {name} of performance_schema is off")))
}

async fn look(
    target: &ProbeTarget,
    replica: &mut Link,
    counted: &mut Counted,
) -> Result<(), ProbeError> {
    let rows = replica.rows(QUESTION).await?;
    let appliers = appliers(&rows);
    // Who an applier stands at for somebody's lock is no dearer.
    let is_free = row_lock_waits(&rows) == 0;
    let busy = appliers.iter().filter(|_| is_free).filter_map(Applier::at);
    take_in(target, &appliers, busy.collect());
    for (schema, table) in appliers.iter().flat_map(|applier| &applier.tables) {
        counted.rows.meet(schema, table);
    }
    Ok(())
}

async fn count(
    target: &ProbeTarget,
    replica: &mut Link,
    counted: &mut Counted,
) -> Result<(), ProbeError> {
    let Some(question) = counted.rows.question() else { return Ok(()) };
    // One is the board's own.
    let replicas = Arc::strong_count(&counted.one_of).saturating_sub(1).max(1);
    let each = 1.0 / f64::from(u32::try_from(replicas).unwrap_or(u32::MAX));
    let mut applied = counted.rows.take_in(&replica.rows(&question).await?);
    for (_, rows) in &mut applied {
        *rows *= each;
    }
    target.site.cluster.control(|controller, _| controller.handle_applied_rows(&applied));
    Ok(())
}

/// Sessions of the replica that wait for the lock of a row.
fn row_lock_waits(rows: &[Row]) -> u64 {
    rows.first().and_then(|row| row.as_ref(8)).and_then(number).unwrap_or(0)
}

fn take_in(target: &ProbeTarget, appliers: &[Applier], busy: Vec<At>) {
    let cluster = &target.site.cluster;
    let seen: Vec<Applying<'_>> =
        busy.iter().map(|(tables, step)| Applying { tables, step: *step }).collect();
    for (schema, table) in appliers.iter().flat_map(|applier| &applier.tables) {
        cluster.probes.tables.note(schema, table);
    }
    let keep_order = cluster.probes.order_of(&target.server) == CommitOrder::Kept;
    let idle = !appliers.is_empty() && appliers.iter().all(Applier::is_idle);
    let seen = Appliers { busy: &seen, idle, keep_order };
    let Some(replica) = cluster.probes.key_of(&target.server) else { return };
    cluster.control(|controller, now| controller.handle_appliers(now, replica, &seen));
}

fn appliers(rows: &[Row]) -> Vec<Applier> {
    let mut appliers: Vec<Applier> = Vec::new();
    for row in rows {
        let word = |index| row.as_ref(index).and_then(text);
        let Some(thread) = row.as_ref(0).and_then(number::<u64>) else { continue };
        if appliers.last().is_none_or(|last| last.thread != thread) {
            appliers.push(Applier {
                thread,
                is_worker: word(1).is_some_and(|name| name.ends_with("_worker")),
                state: word(2).unwrap_or_default(),
                tables: Vec::new(),
            });
        }
        let is_written = [(3, "TABLE"), (4, "SHARED_WRITE"), (5, "GRANTED")]
            .into_iter()
            .all(|(index, wanted)| word(index).is_some_and(|said| said == wanted));
        if let (Some(last), Some(schema), Some(table)) = (appliers.last_mut(), word(6), word(7))
            && is_written
            && last.tables.len() < TABLES_MAX
        {
            last.tables.push((schema, table));
        }
    }
    appliers
}

impl Applier {
    /// What it is at, if that is its own work: no wait for an event, for those before it to commit, or for a lock of
    /// somebody else, and no definition of a table.
    fn at(&self) -> Option<At> {
        let has_work = self.is_worker || !self.tables.is_empty();
        if !has_work || self.state.starts_with("Waiting ") {
            return None;
        }
        let step = match self.state.as_str() {
            "Applying batch of row changes (write)" => Step::Rows(Some(WriteKind::Insert)),
            "Applying batch of row changes (update)" => Step::Rows(Some(WriteKind::Update)),
            "Applying batch of row changes (delete)" => Step::Rows(Some(WriteKind::Delete)),
            state if FOR_TRANSACTIONS.contains(&state) => Step::Transaction,
            // A statement that is replicated as one.
            _ if !self.tables.is_empty() => Step::Rows(None),
            _ => return None,
        };
        let key =
            |(schema, table): &(String, String)| table_key(schema.as_bytes(), table.as_bytes());
        Some((self.tables.iter().map(key).collect(), step))
    }

    /// Whether there is nothing for it to do. In any other state it may be at work.
    fn is_idle(&self) -> bool {
        let waits = if self.is_worker { WORKER_WAITS } else { ALL_IS_READ };
        self.state.ends_with(waits)
    }
}

/// A worker that has nothing to do, and whoever reads the relay log when there is nothing in it (MySQL before 8.0.26 calls
/// it a slave).
const WORKER_WAITS: &str = "Waiting for an event from Coordinator";
const ALL_IS_READ: &str = "has read all relay log; waiting for more updates";

/// What a worker does for each transaction, whatever that writes: nearly all of it is the commit. Seen of MySQL 9.7.
const FOR_TRANSACTIONS: [&str; 8] = [
    "waiting for handler commit",
    "",
    "starting",
    "Opening tables",
    "System lock",
    "query end",
    "closing tables",
    "freeing items",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn applier(is_worker: bool, state: &str, tables: &[&str]) -> Applier {
        let tables = tables.iter().map(|table| ("shop".to_owned(), (*table).to_owned())).collect();
        Applier { thread: 1, is_worker, state: state.to_owned(), tables }
    }

    #[test]
    fn what_waits_for_others_is_at_nothing() {
        let update = "Applying batch of row changes (update)";
        let step = |applier: Applier| applier.at().map(|(_, step)| step);
        let rows = Some(Step::Rows(Some(WriteKind::Update)));
        assert_eq!(step(applier(true, update, &["t"])), rows);
        assert_eq!(step(applier(false, update, &["t"])), rows, "it has no workers");
        assert_eq!(step(applier(true, "", &[])), Some(Step::Transaction), "between two of them");
        let commits = "waiting for handler commit";
        assert_eq!(step(applier(true, commits, &["t"])), Some(Step::Transaction));
        assert_eq!(step(applier(true, "updating", &["t"])), Some(Step::Rows(None)));
        assert_eq!(step(applier(true, "altering table", &[])), None, "a definition");
        assert_eq!(step(applier(true, "Waiting for an event from Coordinator", &[])), None);
        let turn = "Waiting for preceding transaction to commit";
        assert_eq!(step(applier(true, turn, &["t"])), None);
        // The coordinator reads what its workers apply.
        assert_eq!(step(applier(false, "Reading event from the relay log", &[])), None);
    }

    #[test]
    fn only_who_has_nothing_to_do_is_idle() {
        let idle = |is_worker, state| applier(is_worker, state, &[]).is_idle();
        assert!(idle(true, "Waiting for an event from Coordinator"));
        assert!(idle(false, "Replica has read all relay log; waiting for more updates"));
        assert!(idle(false, "Slave has read all relay log; waiting for more updates"));
        for state in
            ["", "Waiting for preceding transaction to commit", "waiting for handler commit"]
        {
            assert!(!idle(true, state), "{state}");
        }
        let coordinator =
            ["", "Reading event from the relay log", "Waiting for Replica Worker queue"];
        assert!(coordinator.iter().all(|state| !idle(false, state)));
    }

    #[test]
    fn what_it_is_at_is_named_as_statements_name_it() {
        let delete = "Applying batch of row changes (delete)";
        let (tables, step) = applier(true, delete, &["Parent", "child"]).at().unwrap();
        assert_eq!(tables, [table_key(b"shop", b"parent"), table_key(b"SHOP", b"CHILD")]);
        assert_eq!(step, Step::Rows(Some(WriteKind::Delete)));
    }
}
