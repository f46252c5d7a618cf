//! The file: SQLite, so that people can open it themselves.
//!
//! One thread writes, a transaction every few seconds, and nobody waits for it. The file has a
//! write-ahead log, so that what ends the process in the middle of a write leaves what was
//! committed. Whatever is wrong with the file is told once, and tried again; meanwhile what is to
//! be written waits, up to a bound.

mod costs;
mod insights;
mod quarantine;
mod read;
mod schema;
mod write;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use policy::HistoryLimits;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub(crate) use self::costs::known_costs;
pub(crate) use self::insights::NAMES_AGAIN_S;
pub(crate) use self::quarantine::standing;
pub use self::read::{Asked, Reading};
use crate::record::{At, InsightsWindow, Writes};

/// The file's name in `state_dir`.
pub const FILE: &str = "history.sqlite3";

/// How long another program may keep the file locked.
const BUSY: Duration = Duration::from_secs(2);

/// Below this part of the largest size nothing is deleted for it.
const FULL_AT_PERCENT: u64 = 90;

/// How large the file may become, and how long it remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// In bytes, without the write-ahead log.
    pub bytes_max: u64,
    /// What is older goes.
    pub keep: Duration,
}

impl Default for Limits {
    /// A quarter of a gigabyte, and a month.
    fn default() -> Self {
        Self { bytes_max: 256 << 20, keep: Duration::from_secs(31 * 86_400) }
    }
}

impl From<HistoryLimits> for Limits {
    fn from(limits: HistoryLimits) -> Self {
        let HistoryLimits { enabled: _, max_age, max_size } = limits;
        Self { bytes_max: max_size, keep: max_age }
    }
}

/// A hash, and what it stands for, as JSON.
pub(crate) type NameOf = (u64, String);

/// Why the file cannot be used now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble(pub String);

/// The file of one directory.
#[derive(Debug)]
pub struct Disk {
    directory: PathBuf,
    limits: Limits,
    open: Option<Open>,
    /// What was done about the file, and has not been told.
    note: Option<String>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// Device and inode: somebody may take the file away.
    identity: (u64, u64),
}

/// What has come of a write.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// How large the file is.
    pub bytes: u64,
    /// What was done about the file, for the log.
    pub note: Option<String>,
}

impl Disk {
    /// The file in this directory. Nothing is touched before it is first read or written.
    #[must_use]
    pub fn new(directory: &Path, limits: Limits) -> Self {
        Self { directory: directory.to_owned(), limits, open: None, note: None }
    }

    /// Keeps to other limits from the next write on.
    pub fn limit(&mut self, limits: Limits) {
        if limits == self.limits {
            return;
        }
        self.limits = limits;
        // It is opened with them; a failure shows with the next write as well.
        if let Some(open) = &self.open
            && schema::bound(&open.connection, limits.bytes_max).is_err()
        {
            self.open = None;
        }
    }

    /// Writes all of it, or nothing.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do about it.
    pub fn write(&mut self, writes: &[Writes], now: At) -> Result<Written, Trouble> {
        self.open(now)?;
        let Some(open) = &mut self.open else { return Ok(Written::default()) };
        match write::write(&mut open.connection, writes, now, self.limits) {
            Ok(bytes) => Ok(Written { bytes, note: self.note.take() }),
            Err(error) => {
                let trouble = self.in_words(&error);
                // What is broken is looked at anew, and put aside then.
                self.open = None;
                if is_damage(&error) {
                    self.put_aside(now)?;
                }
                Err(trouble)
            }
        }
    }

    /// The windows of insights that other runs than this have kept of a cluster, and what their
    /// hashes stand for.
    ///
    /// # Errors
    /// What is wrong with the file, and what to do about it.
    pub(crate) fn insights(
        &mut self,
        (cluster, run): (&str, i64),
        now: At,
    ) -> Result<(Vec<InsightsWindow>, Vec<NameOf>), Trouble> {
        self.open(now)?;
        let Some(open) = &self.open else { return Ok((Vec::new(), Vec::new())) };
        let windows = insights::windows(&open.connection, (cluster, run));
        let names = insights::names(&open.connection, cluster);
        windows.and_then(|windows| Ok((windows, names?))).map_err(|error| self.in_words(&error))
    }

    /// Sees that the file is open. What was done about it is told with the next write that succeeds.
    fn open(&mut self, now: At) -> Result<(), Trouble> {
        let gone = self.forget_if_gone();
        self.note = gone.or(self.note.take());
        if self.open.is_none() {
            let (open, told) = self.opened(now)?;
            self.open = Some(open);
            self.note = self.note.take().or(told);
        }
        Ok(())
    }

    /// Somebody has removed or replaced the file.
    fn forget_if_gone(&mut self) -> Option<String> {
        let known = self.open.as_ref()?.identity;
        if identity(&self.path()).is_ok_and(|now| now == known) {
            return None;
        }
        self.open = None;
        Some(format!("{} was removed or replaced: another one is begun", self.path().display()))
    }

    fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    fn opened(&self, now: At) -> Result<(Open, Option<String>), Trouble> {
        match self.try_open() {
            Ok(open) => Ok((open, None)),
            Err(OpenError::Sqlite(error)) if is_damage(&error) => {
                let aside = self.put_aside(now)?;
                let open = self.try_open().map_err(|error| self.trouble(&error))?;
                let note = format!("the history was damaged ({error}); it is put aside as {aside}");
                Ok((open, Some(note)))
            }
            Err(error) => Err(self.trouble(&error)),
        }
    }

    fn try_open(&self) -> Result<Open, OpenError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let path = self.path();
        if !path.exists() {
            // A log without its file would be taken for that of the next one.
            for log in [self.beside("-wal"), self.beside("-shm")] {
                match fs::remove_file(log) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(error.into());
                    }
                    Ok(()) | Err(_) => {}
                }
            }
            OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path)?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags)?;
        connection.busy_timeout(BUSY)?;
        schema::prepare(&connection, self.limits.bytes_max)?;
        Ok(Open { connection, identity: identity(&path)? })
    }

    /// Gives a damaged file another name; one of an earlier time goes.
    fn put_aside(&self, _now: At) -> Result<String, Trouble> {
        let aside = self.beside(".damaged");
        for log in [self.beside("-wal"), self.beside("-shm")] {
            drop(fs::remove_file(log));
        }
        fs::rename(self.path(), &aside).map_err(|error| self.trouble(&OpenError::Io(error)))?;
        Ok(aside.display().to_string())
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.directory.join(format!("{FILE}{ending}"))
    }

    fn trouble(&self, error: &OpenError) -> Trouble {
        let path = self.path();
        let path = path.display();
        match error {
            OpenError::Io(error) => Trouble(format!("{path}: {error}")),
            OpenError::Sqlite(error) => self.in_words(error),
            OpenError::Newer(version) => Trouble(format!(
                "{path} is of a newer Sluice (version {version}; this one knows {}): start that \
                 one, or move the file away",
                schema::VERSION
            )),
            OpenError::Foreign => Trouble(format!(
                "{path} is no history of Sluice's: move it away, or name another state_dir"
            )),
        }
    }

    fn in_words(&self, error: &rusqlite::Error) -> Trouble {
        let path = self.path();
        let path = path.display();
        let remedy = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "; make room on its disk",
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                "; Sluice has to be able to write there"
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "; another program keeps it locked"
            }
            _ => "",
        };
        Trouble(format!("{path}: {error}{remedy}"))
    }
}

/// Why the file cannot be opened.
#[derive(Debug)]
enum OpenError {
    Io(io::Error),
    Sqlite(rusqlite::Error),
    Newer(i64),
    Foreign,
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// A hash, as digests are shown.
fn in_hex(hash: u64) -> String {
    format!("{hash:016x}")
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
pub(crate) mod scratch;
#[cfg(test)]
mod tests;
