//! How the rules of a process come from its journal and go there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Inner, RuntimeRules};
use crate::journal::{Journal, Record, Source};
use crate::member::Member;

/// Why the disk does not hold what stands. It is told once for as long as it stays so.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    why: Option<String>,
    /// Since when another process has the lock.
    waits_since: Option<Instant>,
    told: bool,
    /// When it is tried again.
    retry_at: Option<Instant>,
}

/// How long the process before may keep the lock without that being news.
const HANDOVER: Duration = Duration::from_secs(5);

/// How soon it is tried again what failed.
const RETRY: Duration = Duration::from_secs(2);

impl Source for Inner {
    fn changed(&self) -> Vec<Record> {
        self.members.iter().flat_map(|member| member.changed_records()).collect()
    }

    fn all(&self) -> Vec<Record> {
        self.members.iter().flat_map(|member| member.all_records()).collect()
    }

    fn count(&self) -> usize {
        self.members.iter().map(|member| member.ledger().len()).sum()
    }
}

impl Inner {
    /// Takes in what the journal in this directory holds, before anybody is let in.
    pub(super) fn load(&self, directory: &Path) -> Journal {
        let journal = Journal::new(directory);
        let mut trouble = Trouble::default();
        let mut fault = self.acquire(&journal).err();
        if journal.is_others() {
            // Another process writes it, or nobody can: what it holds stands all the same.
            match journal.peek() {
                Ok(records) => self.restore(&records),
                Err(error) => fault = fault.or(Some(error.to_string())),
            }
        }
        if fault.is_some() {
            trouble.note(fault, Wait::ForDisk, directory);
        }
        *self.trouble.lock() = trouble;
        for member in &self.members {
            member.put_in_force();
        }
        journal
    }

    /// Takes the journal's lock if nobody has it. Whether this process has got it now.
    fn acquire(&self, journal: &Journal) -> Result<bool, String> {
        let now_ms = self.members.first().map_or(0, |member| member.now().unix_ms);
        let fault = |error| format!("state_dir {}: {error}", journal.directory().display());
        let records = journal.acquire(now_ms).map_err(fault)?;
        let Some(records) = records else { return Ok(false) };
        self.restore(&records);
        journal.save(self)?;
        Ok(true)
    }

    fn restore(&self, records: &[Record]) {
        for record in records {
            let is_its = |member: &&Arc<Member>| *record.cluster == *member.cluster.name;
            // A cluster that the file does not name any more has no rules.
            if let Some(member) = self.members.iter().find(is_its) {
                member.restore(record);
            }
        }
        let standing: usize = self.members.iter().map(|member| member.standing().len()).sum();
        if standing > 0 {
            tracing::info!(standing, "runtime rules stand again");
        }
    }

    /// Saves, and takes the lock first where that has not been possible yet.
    pub(super) fn save(&self) -> Result<(), String> {
        let Some(journal) = &self.journal else {
            return Err("the file has no `state_dir`".to_owned());
        };
        journal.look();
        let (saved, wait) = if journal.is_others() {
            match self.acquire(journal) {
                Ok(true) => (Ok(()), Wait::ForDisk),
                Ok(false) => (journal.save(self), Wait::ForOther),
                Err(error) => (Err(error), Wait::ForDisk),
            }
        } else {
            (journal.save(self), Wait::ForDisk)
        };
        let told = saved.as_ref().err().cloned();
        self.trouble.lock().note(told, wait, journal.directory());
        saved
    }
}

impl RuntimeRules {
    /// Saves what has changed, for up to the time that an answer waits for the disk.
    pub(super) async fn save(&self) -> Result<(), String> {
        let inner = self.inner.clone();
        if inner.journal.is_none() {
            return inner.save();
        }
        let saving = tokio::task::spawn_blocking(move || inner.save());
        match tokio::time::timeout(super::DISK_PATIENCE, saving).await {
            Ok(Ok(saved)) => saved,
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the disk of state_dir does not answer".to_owned()),
        }
    }
}

impl Trouble {
    /// Whether it is time to try again.
    pub(super) fn is_due(&self) -> bool {
        self.why.is_some() && self.retry_at.is_none_or(|at| at <= Instant::now())
    }

    pub(super) fn is_some(&self) -> bool {
        self.why.is_some()
    }

    /// Why, once the log has it.
    pub(super) fn told(&self) -> Option<String> {
        self.why.clone().filter(|_| self.told)
    }

    fn note(&mut self, now: Option<String>, wait: Wait, directory: &Path) {
        let path = directory.display();
        match (now, wait) {
            (None, _) => {
                if self.told {
                    tracing::info!(%path, "runtime rules are kept on disk");
                }
                *self = Self::default();
            }
            (Some(why), wait) => {
                self.told &= self.why.as_ref() == Some(&why);
                let tells = match wait {
                    Wait::ForOther => {
                        let since = *self.waits_since.get_or_insert_with(Instant::now);
                        since.elapsed() >= HANDOVER
                    }
                    Wait::ForDisk => {
                        self.retry_at = Some(Instant::now() + RETRY);
                        true
                    }
                };
                if tells && !self.told {
                    self.told = true;
                    tracing::warn!(
                        %path, %why,
                        "runtime rules are not kept on disk; they stand, and are kept as soon as \
                         they can be"
                    );
                }
                self.why = Some(why);
            }
        }
    }
}

/// What a journal waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The process that has the lock.
    ForOther,
    ForDisk,
}
