//! What can go wrong while servers are started, linked and asked.

use std::fmt;
use std::io;
use std::time::Duration;

/// What every fallible part of this package gives.
pub type Result<T> = std::result::Result<T, HarnessError>;

/// A failure of the ground, as opposed to one of what is being tested.
///
/// `Debug` prints the same sentence as `Display`, because that is what a test's `unwrap` shows.
pub enum HarnessError {
    /// A program is not on this machine.
    Missing {
        /// The program.
        what: String,
        /// What brings it.
        remedy: &'static str,
    },
    /// A process ended before it was ready.
    NotStarted {
        /// Which process.
        what: String,
        /// The end of its log.
        log_tail: String,
    },
    /// Something that must happen did not happen in time.
    TimedOut {
        /// What was waited for.
        what: String,
        /// How long.
        after: Duration,
    },
    /// A file, a socket or a command of the host failed.
    Io {
        /// What was tried.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A statement of the harness failed.
    Sql(mysql_async::Error),
    /// A peer sent bytes that are not what the protocol says.
    Protocol(String),
    /// A server answered the harness's own statement or login with an ERR packet.
    Refused {
        /// The error number.
        errno: u16,
        /// The message as the server sent it.
        message: String,
    },
    /// A corpus or a metrics page cannot be read.
    Malformed(String),
}

impl HarnessError {
    /// An `io::Error` with what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl fmt::Display for HarnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { what, remedy } => write!(f, "{what} is not here: {remedy}"),
            Self::NotStarted { what, log_tail } => {
                write!(f, "{what} ended before it was ready; its log ends:\n{log_tail}")
            }
            Self::TimedOut { what, after } => write!(f, "{what}: not within {after:?}"),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::Sql(source) => write!(f, "{source}"),
            Self::Protocol(what) => write!(f, "protocol: {what}"),
            Self::Refused { errno, message } => write!(f, "ERR {errno}: {message}"),
            Self::Malformed(what) => write!(f, "malformed: {what}"),
        }
    }
}

impl fmt::Debug for HarnessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for HarnessError {}

impl From<mysql_async::Error> for HarnessError {
    fn from(source: mysql_async::Error) -> Self {
        Self::Sql(source)
    }
}
