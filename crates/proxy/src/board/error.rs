//! Why a server could not be measured.

use std::fmt;

/// What an attempt to reach a server has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contact {
    /// The server has said something.
    Reached,
    /// It has not, and why.
    Failed(String),
    /// There was no attempt.
    NotTried,
}

/// Why a probe has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// No answer within the time limit.
    TimedOut,
    /// There is no connection, or it broke.
    Lost(String),
    /// There is no password to log in with: nothing was tried.
    NoPassword(String),
    /// The server is there, and the encryption that the file wants cannot be had with it.
    Unencrypted(String),
    /// The server answered with an error.
    Refused {
        /// Its errno.
        code: u16,
        /// Its text.
        message: String,
    },
    /// The answer is not what the query should give.
    Unusable(String),
}

impl ProbeError {
    /// The errno, if the server gave one.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::TimedOut
            | Self::Lost(_)
            | Self::NoPassword(_)
            | Self::Unencrypted(_)
            | Self::Unusable(_) => None,
        }
    }

    /// What it shows of the server.
    pub(crate) fn contact(&self) -> Contact {
        match self {
            Self::TimedOut | Self::Lost(_) => Contact::Failed(self.to_string()),
            Self::NoPassword(_) => Contact::NotTried,
            Self::Unencrypted(_) | Self::Refused { .. } | Self::Unusable(_) => Contact::Reached,
        }
    }

    /// Whether this is the same trouble as `other`, though the wording may differ.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Refused { code, .. }, Self::Refused { code: other, .. }) => code == other,
            (
                Self::TimedOut
                | Self::Lost(_)
                | Self::NoPassword(_)
                | Self::Unencrypted(_)
                | Self::Refused { .. }
                | Self::Unusable(_),
                _,
            ) => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Lost(why) => write!(f, "{why}"),
            Self::Refused { code, message } => write!(f, "error {code}: {message}"),
            Self::NoPassword(why) | Self::Unencrypted(why) | Self::Unusable(why) => {
                f.write_str(why)
            }
        }
    }
}
