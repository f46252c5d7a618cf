//! What the session asks of the shell.

use admission::{DigestKey, MonoTime, Written};
use policy::{ClusterPolicy, GuardReport, Priority, UnixTime};
use sql::{Class, DigestMemo};

use crate::denial::Denial;
use crate::facts::ServerFacts;
use crate::judge::known::KnownTexts;
use crate::leg::Password;
use crate::outcome::Finished;

/// One of the two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The application.
    Client,
    /// The MySQL server.
    Backend,
}

/// Where more bytes are to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// The client only.
    Client,
    /// The backend only.
    Backend,
    /// Whichever has something first.
    Either,
}

/// What the shell shows the session: both buffers from their first unconsumed byte, and the rules
/// in force.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Bytes of the client not yet forwarded or dropped.
    pub client: &'a [u8],
    /// Bytes of the backend not yet forwarded or dropped.
    pub backend: &'a [u8],
    /// The rules in force. The shell changes them only while the session is idle, and says so by
    /// [`crate::Session::handle_new_policy`].
    pub policy: &'a ClusterPolicy,
    /// What the server says of itself. The shell shows what is known when a command has come, and
    /// says by [`crate::Session::handle_new_facts`] that it is something else than before.
    pub facts: &'a ServerFacts,
    /// The digests that came before. `None`: nobody counts statements by their digests.
    pub digests: Option<&'a DigestMemo>,
    /// The texts that came before on this thread.
    pub texts: &'a KnownTexts,
    /// The wall clock, for rules that expire.
    pub now: UnixTime,
    /// The monotonic clock, for what is in quarantine.
    pub mono: MonoTime,
}

/// Bytes on their way. Counts are from the start of the buffer named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// Write the first `len` bytes of this side's buffer to the other side, and drop them.
    Forward {
        /// Whose buffer.
        from: Side,
        /// How many bytes.
        len: usize,
    },
    /// Drop the first `drop` bytes of this side's buffer and write [`crate::Session::outbox`] to
    /// the other side.
    Replace {
        /// Whose buffer.
        from: Side,
        /// How many bytes.
        drop: usize,
    },
    /// Drop the first `len` bytes of this side's buffer.
    Drop {
        /// Whose buffer.
        from: Side,
        /// How many bytes.
        len: usize,
    },
}

/// The next thing to do.
#[derive(Debug)]
pub enum Action {
    /// More bytes are needed.
    Read(Reads),
    /// Move bytes.
    Move(Move),
    /// May this statement run? Answer with [`crate::Session::handle_admitted`],
    /// [`crate::Session::handle_refused`] or [`crate::Session::handle_judge_again`].
    Ask(Ask),
    /// A rule denies this statement whatever the load. Answer with
    /// [`crate::Session::handle_refused`], or with [`crate::Session::handle_admitted`] in mode
    /// `observe`.
    Deny(Ask),
    /// Guards object to this command, or could not judge it. Answer with
    /// [`crate::Session::handle_guarded`].
    Guard(ByGuards),
    /// Drop the first `drop` bytes of this side's buffer; what is behind them, and all that comes,
    /// is TLS. With the client Sluice is the server, with the backend it is the client, and
    /// nothing may be behind. Answer with [`crate::Session::handle_encrypted`], or for the
    /// backend with [`crate::Session::handle_not_encrypted`].
    StartTls {
        /// With whom.
        side: Side,
        /// How many bytes.
        drop: usize,
    },
    /// Cryptography that only one of the legs needs.
    Crypt(Crypt),
    /// The command that goes out next may change routines, until it is [`Action::Finished`]: from
    /// now on nobody may be shown a list of them that was read before it has ended.
    ChangeRoutines,
    /// The login is over: the connection is usable.
    LoggedIn,
    /// A command is over, with what is to be counted of it.
    Finished(Finished),
    /// Close both sides.
    Close(CloseReason),
}

/// What bridges an encrypted leg and one that is not, when a password has to pass. All of it is
/// RSA with OAEP padding and SHA-1, as the servers have it.
#[derive(Debug)]
pub enum Crypt {
    /// Sluice's own public key in PEM is needed. Answer with [`crate::Session::handle_own_key`].
    ShowKey,
    /// Encrypt a password for the server. Answer with [`crate::Session::handle_sealed`].
    Seal(Box<Sealing>),
    /// Decrypt this with Sluice's own key. Answer with [`crate::Session::handle_opened`].
    Open(Vec<u8>),
}

/// A password to be encrypted.
#[derive(Debug)]
pub struct Sealing {
    /// The server's public key in PEM, as it sent it.
    pub key: Vec<u8>,
    /// The password, masked.
    pub masked: Password,
}

/// A statement at an admission point, and the right to answer for it: whoever has it answers once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the statement waits until it is admitted, refused or judged again"]
pub struct Ask {
    /// Index into the rules of the policy that was shown. `None`: no rule matches, only budgets do.
    pub rule: Option<u32>,
    /// What is to be asked for it.
    pub question: Question,
    /// Its class.
    pub class: Class,
    /// By what its cost is predicted: the shape of its text (of a prepared statement, of the text it
    /// was prepared from), and the size of a bulk of values. None for a denial, and where the text is
    /// not known.
    pub digest: Option<DigestKey>,
    /// What it writes, if that is known and what its rows cost is to be learned.
    pub written: Option<Written>,
    /// Scales the rule's dice; the lowest unless the rule honours priorities.
    pub priority: Priority,
    /// Only a session makes one.
    _right: Right,
}

/// What is to be asked for a statement. Its budgets are [`crate::Session::budgets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Its rule holds it back; its budgets, if there are any, do as well.
    Rule,
    /// Only its budgets hold it back.
    Budgets,
    /// It may not be held back, and counts for its budgets.
    Count,
}

/// What cannot be made outside of this file.
#[derive(Debug, PartialEq, Eq)]
struct Right;

impl Ask {
    /// The statement stands before the shell now.
    pub(crate) fn of(held: Held) -> Self {
        let Held { rule, question, class, digest, written, priority } = held;
        Self { rule, question, class, digest, written, priority, _right: Right }
    }
}

/// What guards say of a command, and the right to answer for it.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the command waits until it is let pass or refused"]
pub struct ByGuards {
    /// What they say.
    pub report: Box<GuardReport>,
    /// The class of the statement, or of what is prepared.
    pub class: Option<Class>,
    /// Only a session makes one.
    _right: Right,
}

impl ByGuards {
    /// The command stands before the shell now.
    pub(crate) fn of(report: Box<GuardReport>, class: Option<Class>) -> Self {
        Self { report, class, _right: Right }
    }
}

/// What a rule or a budget holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) rule: Option<u32>,
    pub(crate) question: Question,
    pub(crate) class: Class,
    pub(crate) digest: Option<DigestKey>,
    pub(crate) written: Option<Written>,
    pub(crate) priority: Priority,
}

impl Move {
    /// What is written of this comes from the session's outbox, and none of this side's is used up.
    pub(crate) fn outbox_to(to: Side) -> Self {
        let from = match to {
            Side::Client => Side::Backend,
            Side::Backend => Side::Client,
        };
        Self::Replace { from, drop: 0 }
    }
}

impl From<Move> for Action {
    fn from(moved: Move) -> Self {
        Self::Move(moved)
    }
}

/// Why a connection ends by the session's own doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The client said COM_QUIT.
    Quit,
    /// The server refused the connection or the login; its own error has been forwarded.
    LoginRefused,
    /// Sluice refused the login, and has said so to the client.
    LoginDenied(Denial),
    /// The client broke the protocol before its login, or sent what cannot be relayed.
    ClientProtocol,
    /// The server broke the protocol.
    BackendProtocol,
    /// The session was told to leave (drain, KILL) and has answered.
    Told,
    /// The shell has called what the session was not waiting for: a fault of Sluice's own.
    OutOfTurn,
}
