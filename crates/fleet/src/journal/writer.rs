//! Writes a journal so that a crash between any two steps leaves the old state or the new one.
//!
//! A group of changes is one line, added and synced. When a journal has grown, or after anything
//! went wrong, it is written anew: another file, synced, takes its name, and the directory is
//! synced. So a line that a full disk has cut in the middle never has another one behind it, and
//! what a failed sync has lost is written again.

use std::io;

use super::record::{Found, Record, State, head, line, parse};
use super::storage::Storage;

/// The journal.
pub(crate) const JOURNAL: &str = "rules.journal";

/// The one that takes its place.
const NEXT: &str = "rules.journal.next";

/// Groups beyond those that are needed, before it is written anew.
const SPARE_LINES: usize = 1_000;

/// Writes the journal of one directory.
#[derive(Debug)]
pub(crate) struct Writer<S> {
    storage: S,
    /// Lines since it was written anew.
    lines: usize,
    /// Nobody knows what its end is, or there is none.
    unsure: bool,
}

impl<S: Storage> Writer<S> {
    /// Opens the journal, and puts one that is damaged or newer aside under another name, which it
    /// gives. What is found is to be written anew.
    ///
    /// # Errors
    /// When it cannot be read or put aside.
    pub(crate) fn open(mut storage: S, now_ms: i64) -> io::Result<(Self, Found, Option<String>)> {
        let content = storage.read(JOURNAL)?.unwrap_or_default();
        let found = parse(&content);
        let aside = match found.state {
            State::Whole | State::Torn => None,
            State::Damaged { .. } => Some(format!("{JOURNAL}.damaged-{now_ms}")),
            State::Newer { .. } => Some(format!("{JOURNAL}.newer-{now_ms}")),
        };
        if let Some(aside) = &aside {
            // A copy: until the next one is complete, this one is the journal.
            storage.create(aside, &content)?;
            storage.sync(aside)?;
            storage.sync_directory()?;
        }
        Ok((Self { storage, lines: 0, unsure: true }, found, aside))
    }

    /// Where it is.
    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    /// Whether it is to be written anew before anything is added.
    pub(crate) fn wants_all(&self, live: usize) -> bool {
        self.unsure || self.lines > live.saturating_add(SPARE_LINES)
    }

    /// Adds what has changed together.
    ///
    /// # Errors
    /// What was wrong: it is not known then whether the change is kept, until it is written anew.
    pub(crate) fn add(&mut self, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.unsure = true;
        self.storage.append(JOURNAL, line(records).as_bytes())?;
        self.storage.sync(JOURNAL)?;
        self.unsure = false;
        self.lines = self.lines.saturating_add(1);
        Ok(())
    }

    /// Writes it anew with all that is to be kept.
    ///
    /// # Errors
    /// What was wrong: what was kept before is kept.
    pub(crate) fn write_all(&mut self, all: &[Record]) -> io::Result<()> {
        self.unsure = true;
        let mut content = head();
        for records in all.chunks(1) {
            content.push_str(&line(records));
        }
        self.storage.create(NEXT, content.as_bytes())?;
        self.storage.sync(NEXT)?;
        self.storage.rename(NEXT, JOURNAL)?;
        self.storage.sync_directory()?;
        self.unsure = false;
        self.lines = 0;
        Ok(())
    }
}
