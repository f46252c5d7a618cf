//! A file of certificates that cannot be used.

use std::fmt;

use policy::TlsFile;

/// What is wrong with a file that the configuration names.
#[derive(Debug)]
pub(super) struct FileFault {
    pub(super) key: String,
    pub(super) line: u32,
    pub(super) message: String,
}

impl FileFault {
    pub(super) fn new(file: &TlsFile, why: impl fmt::Display) -> Self {
        let message = format!("{}: {why}", file.path.display());
        Self { key: file.key.clone(), line: file.line, message }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.message)
    }
}
