//! Why a server could not be measured.

use std::fmt;
use std::mem::Discriminant;
use std::ops::RangeInclusive;

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

/// What is the same in errors that are the same trouble, though their wording may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorKind(Discriminant<ProbeError>, Option<u16>);

/// `ER_CON_COUNT_ERROR`
const ER_TOO_MANY_CONNECTIONS: u16 = 1040;
/// `ER_TOO_MANY_USER_CONNECTIONS`
const ER_TOO_MANY_USER_CONNECTIONS: u16 = 1203;
/// `ER_USER_LIMIT_REACHED`
const ER_USER_LIMIT_REACHED: u16 = 1226;
/// `ER_SERVER_OFFLINE_MODE`
const ER_OFFLINE_MODE: u16 = 3032;
/// `ER_SERVER_SHUTDOWN`
const ER_SERVER_SHUTDOWN: u16 = 1053;
/// `ER_NORMAL_SHUTDOWN`
const ER_NORMAL_SHUTDOWN: u16 = 1079;
/// Errors of clients: servers do not send them, proxies in front of one that is gone do.
const CLIENT_ERRORS: RangeInclusive<u16> = 2000..=2999;
/// `ER_ACCESS_DENIED_ERROR`, and where the account takes no password: who comes with one is none
/// of its own, or is taken for the anonymous one.
const ER_ACCESS_DENIED: u16 = 1045;
const ER_ACCESS_DENIED_NO_PASSWORD: u16 = 1698;
/// `ER_ACCOUNT_HAS_BEEN_LOCKED`, and MariaDB's.
const ER_ACCOUNT_LOCKED: u16 = 3118;
const ER_ACCOUNT_LOCKED_MARIADB: u16 = 4151;
/// `ER_MUST_CHANGE_PASSWORD_LOGIN`
const ER_PASSWORD_EXPIRED: u16 = 1862;

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

    /// What to do about a server that lets nobody in, or not this account, if it is that.
    pub(crate) fn login_advice(&self) -> Option<&'static str> {
        match self.code()? {
            _ if self.is_access_denied() => Some(
                "check probe.user and its password on this server, and whether it has an \
                 anonymous account (''@'localhost'), which is taken before one of '%'",
            ),
            ER_ACCOUNT_LOCKED | ER_ACCOUNT_LOCKED_MARIADB => {
                Some("ALTER USER … ACCOUNT UNLOCK, for probe.user on this server")
            }
            ER_PASSWORD_EXPIRED => {
                Some("ALTER USER … PASSWORD EXPIRE NEVER, for probe.user on this server")
            }
            ER_TOO_MANY_CONNECTIONS => {
                Some("on this server raise max_connections, or end sessions that leak")
            }
            ER_TOO_MANY_USER_CONNECTIONS => {
                Some("on this server raise max_user_connections, or end sessions of probe.user")
            }
            ER_USER_LIMIT_REACHED => Some(
                "on this server lift the limits of probe.user: ALTER USER … WITH \
                 MAX_USER_CONNECTIONS 0 MAX_CONNECTIONS_PER_HOUR 0 MAX_QUERIES_PER_HOUR 0",
            ),
            ER_OFFLINE_MODE => Some(
                "on this server SET GLOBAL offline_mode = OFF. To go on without it, take it out of \
                 the cluster's replicas in the file",
            ),
            _ => None,
        }
    }

    /// Whether the server knows no such account with this password.
    pub(crate) fn is_access_denied(&self) -> bool {
        matches!(self.code(), Some(ER_ACCESS_DENIED | ER_ACCESS_DENIED_NO_PASSWORD))
    }

    /// Whether the server may be there, and well: it has answered that it will not, or was not
    /// asked.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { code, .. } => {
                let is_leaving = matches!(*code, ER_SERVER_SHUTDOWN | ER_NORMAL_SHUTDOWN);
                !is_leaving && !CLIENT_ERRORS.contains(code)
            }
            Self::NoPassword(_) | Self::Unencrypted(_) | Self::Unusable(_) => true,
            Self::TimedOut | Self::Lost(_) => false,
        }
    }

    /// Whether there is nobody to ask the next question: it says nothing of what was asked.
    pub(crate) fn is_silence(&self) -> bool {
        match self {
            Self::TimedOut | Self::Lost(_) | Self::NoPassword(_) | Self::Unencrypted(_) => true,
            Self::Refused { .. } | Self::Unusable(_) => false,
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

    /// What a server does that gives this: `refuses its probe: error 1142: …`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let does = match self {
            Self::TimedOut | Self::Lost(_) => "does not answer",
            Self::NoPassword(_) => "is not asked",
            Self::Unencrypted(_) => "cannot be asked in TLS",
            Self::Refused { .. } => "refuses its probe",
            Self::Unusable(_) => "gives no usable answer",
        };
        format!("{does}: {self}")
    }

    /// What trouble it is, whatever its words.
    pub(crate) fn kind(&self) -> ErrorKind {
        ErrorKind(std::mem::discriminant(self), self.code())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_has_answered_is_not_said_to_be_silent() {
        let message = "INSERT command denied".to_owned();
        let refused = ProbeError::Refused { code: 1142, message };
        let sentence = refused.sentence();
        assert_eq!(sentence, "refuses its probe: error 1142: INSERT command denied");
        assert_eq!(ProbeError::TimedOut.sentence(), "does not answer: no answer in time");
    }

    #[test]
    fn who_shuts_down_or_is_gone_behind_a_proxy_does_not_refuse() {
        let refused = |code| ProbeError::Refused { code, message: String::new() };
        for code in [1040, 1045, 1129, 1146, 1203, 1226, 3032, 3118] {
            assert!(refused(code).is_refusal(), "{code}");
        }
        for code in [1053, 1079, 2003, 2013] {
            assert!(!refused(code).is_refusal(), "{code}");
        }
        assert!(
            !ProbeError::TimedOut.is_refusal() && !ProbeError::Lost(String::new()).is_refusal()
        );
    }
}
