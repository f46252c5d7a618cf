//! What connections report.

use std::sync::Arc;
use std::time::Duration;

use admission::{Mode, Reason, RuleKey};
use sql::Class;

/// A statement that is over.
#[derive(Clone, Copy, Debug)]
pub struct StatementEvent<'a> {
    /// Which cluster it came to.
    pub cluster: &'a Arc<str>,
    /// The rule that matched; `none` when none did.
    pub rule: &'a str,
    /// Its key; 0 when none did.
    pub rule_key: RuleKey,
    /// The app as the client named it.
    pub app: &'a [u8],
    /// The MySQL user.
    pub user: &'a [u8],
    /// Never the same of one connection with another app or user ([`session::Session::naming`]).
    pub naming: u64,
    /// What kind of statement.
    pub class: Class,
    /// What became of it.
    pub decision: StatementDecision,
    /// Why, if it was not simply admitted.
    pub reason: Option<Reason>,
    /// Whether the decision was carried out.
    pub mode: Mode,
    /// How long it was in the queue; `None` if it never was.
    pub queued: Option<Duration>,
    /// How long the server took; `None` if it never got there.
    pub backend: Option<Duration>,
    /// Rows changed, as the server's OK says.
    pub rows: u64,
    /// Time in Sluice less time queued and time at the server.
    pub overhead: Duration,
}

/// What became of a statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementDecision {
    /// It was forwarded.
    #[default]
    Admitted,
    /// It was answered with an error; in mode `observe`, it would have been delayed or refused.
    Rejected,
    /// It left the queue before its turn: its client did, it was killed, or the server ended its
    /// session. No reason of Sluice's is behind that.
    ClientGone,
}

impl StatementDecision {
    /// The value of its label in the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Rejected => "rejected",
            Self::ClientGone => "client_gone",
        }
    }
}

/// A check over HTTP that was answered.
#[derive(Clone, Copy, Debug)]
pub struct CheckEvent<'a> {
    /// The cluster that it was about.
    pub cluster: &'a str,
    /// The rule that decided; `none` when none did.
    pub rule: &'a str,
    /// The app as the client named it.
    pub app: &'a [u8],
    /// The language it was asked in: `vitess`, `freno`.
    pub dialect: &'static str,
    /// What it was told. In mode `observe`, `rejected` is what it would have been told.
    pub decision: StatementDecision,
    /// Why, if it was not simply allowed.
    pub reason: Option<&'static str>,
}

/// How a backend failed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackendErrorKind {
    /// The TCP connection was refused or failed.
    Connect,
    /// The TCP connection was not there in time.
    ConnectTimeout,
    /// An established connection was lost in the middle of something.
    Lost,
    /// The server greeted with an error (too many connections, a blocked host).
    Greeting,
    /// The server sent bytes that are not the protocol.
    Protocol,
    /// The TLS that the configuration wants cannot be had with the server.
    Tls,
}

impl BackendErrorKind {
    /// Every one.
    pub(super) const ALL: [Self; 6] = [
        Self::Connect,
        Self::ConnectTimeout,
        Self::Lost,
        Self::Greeting,
        Self::Protocol,
        Self::Tls,
    ];

    /// The value of its label in the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Lost => "lost",
            Self::Greeting => "greeting",
            Self::Protocol => "protocol",
            Self::Tls => "tls",
        }
    }
}

/// Why Sluice itself turned a client away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionRefusal {
    /// There are as many clients as `max_connections` allows.
    MaxConnections,
    /// A PROXY header was missing, malformed, or sent by somebody who may not.
    ProxyProtocol,
    /// The client did not go on with its login.
    LoginTimeout,
    /// The client did not go on with a statement that held others up.
    Stalled,
}

impl ConnectionRefusal {
    /// Every one.
    pub(super) const ALL: [Self; 4] =
        [Self::MaxConnections, Self::ProxyProtocol, Self::LoginTimeout, Self::Stalled];

    /// The value of its label in the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MaxConnections => "max_connections",
            Self::ProxyProtocol => "proxy_protocol",
            Self::LoginTimeout => "login_timeout",
            Self::Stalled => "stalled",
        }
    }
}

/// What became of a KILL QUERY for a client that had left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillOutcome {
    /// The server has accepted it.
    Killed,
    /// There was none: the statement commits, or has ended.
    Left,
    /// The server was not reached in time, or refused.
    Failed,
}

impl KillOutcome {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::Killed, Self::Left, Self::Failed];

    /// The value of its label in the metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Left => "left",
            Self::Failed => "failed",
        }
    }
}

/// How a reading of the configuration file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// It is in force.
    Applied,
    /// It has faults; the one before stays in force.
    Failed,
    /// Files that it names cannot be used yet; it is looked at again by itself, and the one before stays
    /// in force.
    Waiting,
    /// A panic, which is a fault of Sluice's own, may have left it in force in part.
    Torn,
}
