//! The messages of the mailboxes.

use tokio::time::Instant;

/// What a session can be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// `KILL QUERY`: a statement that waits in the queue is answered with errno 1317, unless it
    /// came after the KILL had been sent: the killer's OK can be relayed before this is read.
    KillQuery {
        /// When the KILL was sent.
        sent: Instant,
    },
    /// `KILL`: the same, and the connection ends. (The server closes its side itself.)
    Kill,
    /// Drain: leave as soon as no transaction is open.
    Drain,
    /// The drain's time is over: answer with errno 1053 and close.
    Close,
}
