//! What a reading of the file gave, and the configuration that it says.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use policy::{Config, Fault, UnixTime};
use rustix::fs::{Mode, OFlags};

use super::{LoadError, Loaded};
use crate::secret;
use crate::tls::FileFaults;

/// Where the secrets are that a file names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Secrets {
    /// They have to be where it says.
    Here,
    /// Whoever runs it has them.
    Elsewhere,
}

/// What a reading of the file gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileContent {
    Bytes(Arc<[u8]>),
    /// With the system's number, which says more to people.
    Unreadable(io::ErrorKind, Option<i32>),
    /// A FIFO, a device: who reads it may wait for ever.
    NotRegular,
}

impl FileContent {
    pub(super) fn text(&self) -> Arc<str> {
        match self {
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
            Self::Unreadable(..) | Self::NotRegular => "".into(),
        }
    }

    pub(super) fn read(path: &Path) -> Self {
        std::fs::read(path).map_or_else(Self::unreadable, |bytes| Self::Bytes(bytes.into()))
    }

    /// Reads it without waiting for anybody who might write.
    pub(super) fn read_regular(path: &Path) -> Self {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from);
        let read = opened.map(File::from).and_then(|mut file| {
            let kind = file.metadata()?.file_type();
            // Reading says of a directory what it is.
            if !kind.is_file() && !kind.is_dir() {
                return Ok(Self::NotRegular);
            }
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok(Self::Bytes(bytes.into()))
        });
        read.unwrap_or_else(Self::unreadable)
    }

    fn unreadable(error: io::Error) -> Self {
        Self::Unreadable(error.kind(), error.raw_os_error())
    }

    /// Checks it. Where the settings of TLS are those of `in_force`, what their files say now is no
    /// reason to refuse everything else: connections go on with what they said before.
    pub(super) fn load(
        self,
        in_force: Option<&Config>,
        secrets: Secrets,
    ) -> Result<Loaded, LoadError> {
        let text = match &self {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|error| {
                LoadError::Unreadable(io::Error::new(io::ErrorKind::InvalidData, error))
            })?,
            Self::Unreadable(kind, number) => {
                let error = number.map_or_else(|| (*kind).into(), io::Error::from_raw_os_error);
                return Err(LoadError::Unreadable(error));
            }
            Self::NotRegular => {
                return Err(LoadError::Unreadable(io::Error::other("it is not a regular file")));
            }
        };
        // Whatever else is wrong: all faults at once.
        let named = policy::named_by(text);
        let mut missing = match secrets {
            Secrets::Here => secret::faults(&named.secrets, in_force),
            Secrets::Elsewhere => Vec::new(),
        };
        let FileFaults { fatal, outlived } = FileFaults::of(&named, in_force);
        missing.extend(fatal);
        let loaded = policy::load_with_warnings(text, unix_time());
        let (config, warnings) = match loaded {
            Ok(loaded) if missing.is_empty() => loaded,
            Ok(_) => return Err(LoadError::Files(by_line(missing))),
            Err(mut faults) => {
                // What is nothing that could be there has been told.
                let is_told = |it: &Fault| {
                    faults.iter().any(|told| (told.line, &told.path) == (it.line, &it.path))
                };
                missing.retain(|fault| !is_told(fault));
                faults.extend(missing);
                return Err(LoadError::Faults(by_line(faults)));
            }
        };
        Ok(Loaded { config: Arc::new(config), content: self, warnings, outlived })
    }
}

fn by_line(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort_by_key(|fault| fault.line);
    faults
}

fn unix_time() -> UnixTime {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    UnixTime(i64::try_from(now).unwrap_or(i64::MAX))
}
