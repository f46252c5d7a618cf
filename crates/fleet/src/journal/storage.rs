//! The few things that a journal does to a directory, one after the other: what can stand between
//! two of them is what a crash can leave behind.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// A directory, step by step.
pub(crate) trait Storage: Debug + Send {
    /// The content of a file; `None`: there is none.
    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>>;
    /// Makes a file with this content, in place of one of that name.
    fn create(&mut self, name: &str, content: &[u8]) -> io::Result<()>;
    /// Adds to the end of a file that is there.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Has the file's content survive a loss of power.
    fn sync(&mut self, name: &str) -> io::Result<()>;
    /// Gives a file another name, in place of one that has it.
    fn rename(&mut self, from: &str, to: &str) -> io::Result<()>;
    /// Has the names survive a loss of power.
    fn sync_directory(&mut self) -> io::Result<()>;
}

/// A directory of this machine, which no other process writes.
#[derive(Debug)]
pub(crate) struct Disk {
    directory: PathBuf,
    /// Locked while this lives: the kernel lets go of it when the process ends, however it ends.
    lock: File,
}

/// A file is read up to this size: far more than a journal has.
const FILE_LEN_MAX: u64 = 256 << 20;

/// The file that is locked.
const LOCK: &str = "rules.lock";

impl Disk {
    /// Makes the directory if it is not there, and locks it; `None`: another process has.
    pub(crate) fn lock(directory: &Path) -> io::Result<Option<Self>> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let path = directory.join(LOCK);
        let lock =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { directory: directory.to_owned(), lock })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether somebody has removed what is locked, with the directory or out of it: another process
    /// would lock another file then.
    pub(crate) fn is_gone(&self) -> bool {
        let found = fs::metadata(self.directory.join(LOCK));
        match (found, self.lock.metadata()) {
            (Ok(found), Ok(ours)) => (found.dev(), found.ino()) != (ours.dev(), ours.ino()),
            (Err(error), _) => error.kind() == io::ErrorKind::NotFound,
            (Ok(_), Err(_)) => false,
        }
    }
}

/// Whether others than its owner may put files into a directory.
pub(crate) fn is_writable_by_others(directory: &Path) -> bool {
    const GROUP_AND_OTHERS: u32 = 0o022;
    let mode = fs::metadata(directory).map(|found| found.permissions().mode());
    mode.is_ok_and(|mode| mode & GROUP_AND_OTHERS != 0)
}

/// The content of a file in a directory that another process may be writing.
pub(crate) fn read(directory: &Path, name: &str) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(directory.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.take(FILE_LEN_MAX).read_to_end(&mut content)?;
    Ok(Some(content))
}

impl Storage for Disk {
    fn read(&mut self, name: &str) -> io::Result<Option<Vec<u8>>> {
        read(&self.directory, name)
    }

    fn create(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.directory.join(name);
        // Not through a link, to a file that is somebody else's.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
        file.write_all(content)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).open(self.directory.join(name))?.write_all(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        File::open(self.directory.join(name))?.sync_all()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.directory.join(from), self.directory.join(to))
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }
}
