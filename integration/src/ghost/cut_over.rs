//! The swap of the tables.
//!
//! A locks `t` and the sentry `_t_del`. With the table locked nothing more comes into the binary
//! log of it, so once the writer has met a mark in the changelog, `_t_gho` has all rows: within
//! three seconds, else A unlocks and all of it is tried again. B renames, which waits for A's lock;
//! when B is seen to wait and A still has its own GET_LOCK, A drops the sentry. B waits for that
//! first, by the order of the names: only when it stands before `t` as well, which
//! `performance_schema` tells, A unlocks, and the server lets B go first. Unlocked sooner, a writer
//! may come before B, and its row is lost: gh-ost before 1.1.8, and with
//! `--skip-metadata-lock-check`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::check::status;
use super::session::Session;
use super::stream::now_ms;
use super::writer::changelog;
use super::{BETWEEN_TRIES, Migration, Shared, TRIES};
use crate::error::{HarnessError, Result};

/// Waits until all is copied, nobody postpones it and the binary log is read up to date, and swaps.
pub(super) async fn when_copied(
    migration: &Migration,
    states: &mut watch::Receiver<String>,
    shared: &Arc<Shared>,
) -> Result<()> {
    let mut last = None;
    for tried in 0..TRIES {
        if tried > 0 {
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        while !may_begin(migration, shared) {
            tokio::time::sleep(LOOK_EACH).await;
        }
        migration.progress.cut_overs.fetch_add(1, Ordering::Relaxed);
        shared.is_critical.store(true, Ordering::Relaxed);
        let swapped = swap(migration, states).await;
        shared.is_critical.store(false, Ordering::Relaxed);
        match swapped {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    let last = last.map_or_else(String::new, |error| error.to_string());
    Err(HarnessError::Protocol(format!("no cut-over in {TRIES} tries: {last}")))
}

fn may_begin(migration: &Migration, shared: &Shared) -> bool {
    migration.progress.copied.load(Ordering::Relaxed)
        && !migration.postponed.load(Ordering::Relaxed)
        && !shared.is_throttled.load(Ordering::Relaxed)
        && shared.heartbeat_lag_ms.load(Ordering::Relaxed) <= MAX_LAG_MS
}

async fn swap(migration: &Migration, states: &mut watch::Receiver<String>) -> Result<()> {
    let open = || Session::open(migration.applier, &migration.user);
    let (mut a, mut pool) = (open().await?, open().await?);
    a.run("START TRANSACTION").await?;
    let id = a.text("SELECT /* gh-ost */ CONNECTION_ID()").await?.unwrap_or_default();
    let lock = format!("SELECT /* gh-ost */ GET_LOCK('gh-ost.{id}.lock', 0)");
    if a.text(&lock).await?.as_deref() != Some("1") {
        return Err(HarnessError::Protocol(format!("no lock for session {id}")));
    }
    a.run("SET /* gh-ost */ SESSION lock_wait_timeout := 6").await?;
    pool.run("SHOW /* gh-ost */ TABLE STATUS FROM `test` LIKE '_t_del'").await?;
    pool.run(SENTRY).await?;
    a.run("SET /* gh-ost */ SESSION wait_timeout := 9").await?;
    a.run("LOCK /* gh-ost */ TABLES `test`.`t` WRITE, `test`.`_t_del` WRITE").await?;
    if let Some((addr, path)) = &migration.when_locked {
        let told = status(*addr, ("GET", path)).await;
        if told != Some(200) {
            return Err(HarnessError::Malformed(format!("{path} is answered by {told:?}")));
        }
    }
    let locked = Instant::now();
    let renaming = rename(migration, states, &mut pool, &id).await;
    // Whatever has happened, the table must be free again.
    a.run("DROP /* gh-ost */ TABLE IF EXISTS `test`.`_t_del`").await?;
    if let Ok(renaming) = &renaming {
        stands_before_the_table(&mut pool, renaming).await?;
    }
    a.run("UNLOCK /* gh-ost */ TABLES").await?;
    let locked_ms = u64::try_from(locked.elapsed().as_millis()).unwrap_or(u64::MAX);
    migration.progress.locked_ms.fetch_add(locked_ms, Ordering::Relaxed);
    let renamed = match renaming {
        Ok(renaming) => {
            renaming.await.map_err(|e| HarnessError::Malformed(format!("a task failed: {e}")))?
        }
        Err(error) => Err(error),
    };
    a.run("ROLLBACK").await?;
    renamed
}

/// Waits until RENAME has asked for the lock of `t`, if the server tells.
///
/// # Errors
/// When it has not in as many tries as there are: then nothing is unlocked, A's session ends.
async fn stands_before_the_table(pool: &mut Session, renaming: &Renaming) -> Result<()> {
    for _ in 0..LOCK_LOOKS {
        if renaming.is_finished() || pool.text(STANDS_BEFORE_T).await?.as_deref() != Some("0") {
            return Ok(());
        }
        tokio::time::sleep(LOCK_LOOK_EACH).await;
    }
    Err(HarnessError::Protocol("RENAME does not ask for the lock of t".into()))
}

/// A RENAME that waits for the lock.
type Renaming = tokio::task::JoinHandle<Result<()>>;

async fn rename(
    migration: &Migration,
    states: &mut watch::Receiver<String>,
    pool: &mut Session,
    holder: &str,
) -> Result<Renaming> {
    let mark = format!("AllEventsUpToLockProcessed:{}", now_ms());
    pool.run(&changelog("state", &mark, 2)).await?;
    pool.run(&changelog(&format!("state at {}", now_ms()), &mark, 0)).await?;
    let met = states.wait_for(|state| *state == mark);
    match tokio::time::timeout(LOCK_LIMIT, met).await {
        Ok(Ok(_)) => {}
        Ok(Err(_)) => return Err(HarnessError::Protocol("the writer has ended".into())),
        Err(_) => {
            let what = "all changes up to the lock".to_owned();
            return Err(HarnessError::TimedOut { what, after: LOCK_LIMIT });
        }
    }
    let mut b = Session::open(migration.applier, &migration.user).await?;
    b.run("START TRANSACTION").await?;
    let id = b.text("SELECT /* gh-ost */ CONNECTION_ID()").await?.unwrap_or_default();
    b.run("SET /* gh-ost */ SESSION lock_wait_timeout := 3").await?;
    let renaming = tokio::spawn(async move { b.run(RENAME).await });
    let waits = format!(
        "SELECT /* gh-ost */ id FROM information_schema.processlist \
         WHERE id != CONNECTION_ID() AND {id} IN (0, id) \
         AND state LIKE '%metadata lock%' AND info LIKE '%rename%'"
    );
    let mut tried = 0;
    while pool.text(&waits).await?.is_none() && !renaming.is_finished() {
        tried += 1;
        if tried >= TRIES {
            return Err(HarnessError::Protocol(format!("nobody sees session {id} rename")));
        }
        tokio::time::sleep(BETWEEN_TRIES).await;
    }
    let used = format!("SELECT /* gh-ost */ IS_USED_LOCK('gh-ost.{holder}.lock')");
    if pool.text(&used).await?.as_deref() != Some(holder) {
        return Err(HarnessError::Protocol(format!("session {holder} has lost its lock")));
    }
    Ok(renaming)
}

const SENTRY: &str = "CREATE /* gh-ost */ TABLE IF NOT EXISTS `test`.`_t_del` \
     (id INT AUTO_INCREMENT PRIMARY KEY) COMMENT='ghost-cut-over-sentry'";
const RENAME: &str =
    "RENAME /* gh-ost */ TABLE `test`.`t` TO `test`.`_t_del`, `test`.`_t_gho` TO `test`.`t`";
/// No row where the server does not tell: 0 or 1 where it does.
const STANDS_BEFORE_T: &str = "SELECT /* gh-ost */ EXISTS (SELECT 1 \
     FROM performance_schema.metadata_locks WHERE object_type = 'TABLE' \
     AND object_schema = 'test' AND object_name = 't' AND lock_type = 'EXCLUSIVE' \
     AND lock_status = 'PENDING') FROM DUAL WHERE @@performance_schema";
const LOCK_LOOKS: u32 = 100;
const LOCK_LOOK_EACH: Duration = Duration::from_millis(20);
/// `--max-lag-millis`.
const MAX_LAG_MS: u64 = 1500;
/// `--cut-over-lock-timeout-seconds`.
const LOCK_LIMIT: Duration = Duration::from_secs(3);
const LOOK_EACH: Duration = Duration::from_millis(250);
