//! What is in quarantine, over a restart.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admission::MonoTime;
use policy::{Likeness, Quarantine, Quarantined, RunawayAction, WatchBy, rule_key};
use proxy::cluster::Cluster;

use super::{DiskState, History};
use crate::disk;
use crate::record::{At, QuarantineKey, QuarantineRow, Writes};
use crate::why::label;

/// What the disk has of something that was freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreedKept {
    /// Whether it is free in the file as well; else why not, for people.
    pub file: Result<(), String>,
    /// Whether it is free in the next process.
    pub outlives_restart: bool,
}

impl History {
    /// What has just been freed from quarantine is not to stand in the next process: waits until the
    /// disk has it, for two seconds at most. Not for a thread that others wait for.
    #[must_use]
    pub fn keep_quarantine(&self) -> FreedKept {
        let none_keeps = |why: &str| FreedKept { file: Err(why.into()), outlives_restart: true };
        if self.inner.state_dir.is_none() {
            return none_keeps("the file has no `state_dir`");
        }
        if !self.is_kept() {
            return none_keeps("`history.enabled` of the file is false");
        }
        let is_seen = self.inner.look_within(WRITE_WAIT);
        let mut disk = self.inner.disk.lock();
        let failed = disk.failed;
        disk.is_hurried = true;
        self.inner.wanted.notify_all();
        let is_busy = |disk: &mut DiskState| !disk.is_idle && disk.failed == failed;
        self.inner.wanted.wait_while_for(&mut disk, is_busy, WRITE_WAIT);
        if is_seen && disk.is_idle && disk.waiting.is_empty() {
            return FreedKept { file: Ok(()), outlives_restart: true };
        }
        let why = disk.trouble.clone();
        let why = why.unwrap_or_else(|| "it has not been written for two seconds".to_owned());
        FreedKept { file: Err(why), outlives_restart: false }
    }
}

/// What an answer waits for the disk.
const WRITE_WAIT: Duration = Duration::from_secs(2);

/// What of each cluster's quarantine is on disk.
#[derive(Debug)]
pub(super) struct QuarantineKeeper {
    clusters: Vec<Kept>,
    /// What is on disk and does not stand any more.
    freed: Vec<QuarantineKey>,
}

#[derive(Debug)]
struct Kept {
    cluster: Arc<Cluster>,
    /// As it was then.
    quarantine: Quarantine,
    /// What is on disk, and until when it stands.
    entries: HashMap<QuarantineKey, MonoTime>,
}

impl QuarantineKeeper {
    /// `freed` is on disk, and not restored.
    pub(super) fn new(clusters: &[Arc<Cluster>], freed: Vec<QuarantineKey>) -> Self {
        let kept = |cluster: &Arc<Cluster>| {
            let quarantine = cluster.policy().quarantine.clone();
            let standing = cluster.quarantined();
            let entries =
                standing.iter().map(|entry| (key_of(cluster, entry), entry.until)).collect();
            Kept { cluster: cluster.clone(), quarantine, entries }
        };
        Self { clusters: clusters.iter().map(kept).collect(), freed }
    }

    /// Whether anything was caught or freed since the last call of [`Self::add_changes`].
    pub(super) fn has_changed(&self) -> bool {
        let is_other = |kept: &Kept| !kept.cluster.policy().quarantine.is_still(&kept.quarantine);
        !self.freed.is_empty() || self.clusters.iter().any(is_other)
    }

    /// Adds what has changed since the last call. Another process that still drains has entries of its
    /// own there: those are let stand.
    pub(super) fn add_changes(&mut self, writes: &mut Writes, now: At) {
        writes.freed.append(&mut self.freed);
        for Kept { cluster, quarantine, entries } in &mut self.clusters {
            quarantine.clone_from(&cluster.policy().quarantine);
            let standing = cluster.quarantined();
            let keyed: HashMap<QuarantineKey, MonoTime> =
                standing.iter().map(|entry| (key_of(cluster, entry), entry.until)).collect();
            let time = cluster.now();
            let is_freed = |(key, until): &(&QuarantineKey, &MonoTime)| {
                **until > time && !keyed.contains_key(*key)
            };
            writes.freed.extend(entries.iter().filter(is_freed).map(|(key, _)| key.clone()));
            for entry in standing {
                let key = key_of(cluster, &entry);
                if entries.get(&key) != Some(&entry.until) {
                    writes.quarantined.push(row_of(key, &entry, (time, now)));
                }
            }
            *entries = keyed;
        }
    }
}

fn key_of(cluster: &Cluster, entry: &Quarantined) -> QuarantineKey {
    QuarantineKey {
        cluster: cluster.name.to_string(),
        rule: entry.rule.to_string(),
        by: entry.likeness.by.as_str(),
        hash: entry.likeness.hash,
    }
}

fn row_of(key: QuarantineKey, entry: &Quarantined, (time, now): (MonoTime, At)) -> QuarantineRow {
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let stood = time.saturating_since(entry.since).saturating_add(entry.stood);
    let since = now.0.saturating_sub(ms(stood));
    QuarantineRow {
        key,
        action: entry.action.as_str(),
        app: label(&entry.app),
        since: At(since),
        // To the millisecond what its rule says, so that it is told from what an edit changes.
        until: At(since.saturating_add(ms(entry.lasts()))),
    }
}

/// Has stand in all clusters what stood in the process before. A disk that does not tell frees it, and
/// says so. Returned is what is there and their rules do not watch for any more.
pub(super) fn restore(directory: &Path, clusters: &[Arc<Cluster>], now: At) -> Vec<QuarantineKey> {
    let rows = match disk::standing(directory, now) {
        Ok(rows) => rows,
        Err(error) => {
            tracing::warn!(%error, "what was in quarantine before cannot be read, and is free");
            return Vec::new();
        }
    };
    let mut freed = Vec::new();
    for cluster in clusters {
        let time = cluster.now();
        let own = rows.iter().filter(|row| *row.key.cluster == *cluster.name);
        let entries: Vec<Quarantined> = own.filter_map(|row| entry_of(row, (time, now))).collect();
        if entries.is_empty() {
            continue;
        }
        let mut gone: HashSet<QuarantineKey> =
            entries.iter().map(|entry| key_of(cluster, entry)).collect();
        cluster.restore_quarantine(Quarantine::restored(entries));
        let standing = cluster.quarantined();
        for entry in &standing {
            gone.remove(&key_of(cluster, entry));
        }
        freed.extend(gone);
        tracing::info!(cluster = %cluster.name, entries = standing.len(), "in quarantine as before");
    }
    freed
}

/// By the wall clock, which is all that goes on between two processes: one that was put back makes
/// nothing stand for longer than it would have stood in all.
fn entry_of(row: &QuarantineRow, (time, now): (MonoTime, At)) -> Option<Quarantined> {
    let ms = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or_default());
    let all = ms(row.until.0.saturating_sub(row.since.0));
    let left = ms(row.until.0.saturating_sub(now.0)).min(all);
    Some(Quarantined {
        rule: row.key.rule.as_str().into(),
        key: rule_key(&row.key.rule),
        likeness: Likeness { by: WatchBy::of_word(row.key.by)?, hash: row.key.hash },
        action: RunawayAction::of_word(row.action)?,
        app: row.app.as_bytes().into(),
        since: time,
        stood: all.saturating_sub(left),
        until: time.saturating_add(left),
    })
}
