//! The journal of the runtime rules, in `state_dir`.
//!
//! One process writes it: whoever has the lock. A process that takes over reads it at once, gets the
//! lock when the one before lets go of it, and then reads what that one has written meanwhile. When
//! the disk is full, or does not answer, rules stand all the same; the journal is written anew as
//! soon as it can be.

pub(crate) mod record;
mod storage;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

pub(crate) use self::record::Record;
use self::record::{Found, State, parse};
use self::storage::{Disk, is_writable_by_others, read};
use self::writer::{JOURNAL, Writer};

/// How long a change waits for the one before it to be on disk.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The journal of this process.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    access: Mutex<Access>,
}

/// Whether this process writes it.
#[derive(Debug)]
enum Access {
    Writer(Writer<Disk>),
    /// Another process does.
    Other,
    /// This one did, and has let go of it.
    LetGo,
}

/// What is to be written.
pub(crate) trait Source {
    /// What has changed since this was asked last.
    fn changed(&self) -> Vec<Record>;
    /// Everything.
    fn all(&self) -> Vec<Record>;
    /// How much that is, about.
    fn count(&self) -> usize;
}

impl Journal {
    /// The journal in this directory. It is not written before the first [`Self::acquire`].
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), access: Mutex::new(Access::Other) }
    }

    /// What it holds while another process may be writing it.
    ///
    /// # Errors
    /// What is wrong with the directory.
    pub(crate) fn peek(&self) -> io::Result<Vec<Record>> {
        Ok(parse(&read(&self.directory, JOURNAL)?.unwrap_or_default()).records)
    }

    /// Takes the lock if nobody has it. What the journal holds by then, which is to be taken in and
    /// then [saved](Self::save).
    ///
    /// # Errors
    /// What is wrong with the directory.
    pub(crate) fn acquire(&self, now_ms: i64) -> io::Result<Option<Vec<Record>>> {
        let mut access = self.access.lock();
        match *access {
            Access::Other => {}
            Access::Writer(_) | Access::LetGo => return Ok(None),
        }
        let Some(disk) = Disk::lock(&self.directory)? else { return Ok(None) };
        let (writer, found, aside) = Writer::open(disk, now_ms)?;
        self.tell(&found, aside.as_deref());
        if is_writable_by_others(&self.directory) {
            tracing::warn!(
                path = %self.directory.display(),
                "others than its owner may write to state_dir, and so make runtime rules, \
                 exemptions among them, at the next start: `chmod go-w` it"
            );
        }
        *access = Access::Writer(writer);
        Ok(Some(found.records))
    }

    fn tell(&self, found: &Found, aside: Option<&str>) {
        let path = self.directory.join(JOURNAL);
        let (path, kept_as) = (path.display(), aside.unwrap_or_default());
        match found.state {
            State::Whole => {}
            State::Torn => tracing::info!(
                %path, "the last write to the journal of runtime rules was not finished; it is cut"
            ),
            State::Damaged { lines } => tracing::error!(
                %path, lines, kept_as,
                "the journal of runtime rules is damaged; what can be read of it stands, but for \
                 rules that exempt"
            ),
            State::Newer { format } => tracing::error!(
                %path, format, kept_as,
                "a later version of Sluice has written the journal of runtime rules; none of it \
                 stands here, but for what is in the tables on the primaries"
            ),
        }
    }

    /// Has the disk hold what `source` holds. It may take long: not for a thread that serves.
    ///
    /// # Errors
    /// Why it does not, for people.
    pub(crate) fn save(&self, source: &dyn Source) -> Result<(), String> {
        let Some(mut access) = self.access.try_lock_for(LOCK_PATIENCE) else {
            return Err(self.fault("does not answer"));
        };
        let writer = match &mut *access {
            Access::Writer(writer) => writer,
            Access::Other => return Err(self.fault("is in use by another process")),
            Access::LetGo => return Err(self.fault("has gone to the process that took over")),
        };
        let saved = if writer.wants_all(source.count()) {
            // What changes from here on is saved by the next one.
            drop(source.changed());
            writer.write_all(&source.all())
        } else {
            writer.add(&source.changed())
        };
        saved.map_err(|error| self.fault(&format!("cannot be written: {error}")))
    }

    /// Sees that nobody has removed it. Where somebody has it is begun anew, with the next
    /// [`Self::acquire`].
    pub(crate) fn look(&self) {
        // Whoever is writing it has it.
        let Some(mut access) = self.access.try_lock() else { return };
        if let Access::Writer(writer) = &*access
            && writer.storage().is_gone()
        {
            let path = self.directory.join(JOURNAL);
            tracing::warn!(
                path = %path.display(),
                "the journal of runtime rules was removed: another one is begun"
            );
            *access = Access::Other;
        }
    }

    /// Lets go of it for good: another process writes it from now on.
    pub(crate) fn let_go(&self) {
        *self.access.lock() = Access::LetGo;
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether another process has the lock, as far as is known.
    pub(crate) fn is_others(&self) -> bool {
        // Whoever is writing it has it.
        self.access.try_lock().is_some_and(|access| matches!(*access, Access::Other))
    }

    fn fault(&self, what: &str) -> String {
        format!("state_dir {} {what}", self.directory.display())
    }
}

#[cfg(test)]
mod tests;
