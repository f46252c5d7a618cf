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
    /// The file limits what runs (`runaway`), or counts it (`budgets`), otherwise than before: it goes
    /// by the new one.
    NewLimits,
    /// Drain: leave as soon as nothing is under way and no transaction is open. A statement that
    /// waits may wait on.
    Drain,
    /// Drain, and nobody waits any more: a statement that does is refused (`reason=shutdown`). The
    /// controller says so to its waiters itself; this is for those who wait for something else.
    Refuse,
    /// The drain's time is over: answer and close. With errno 1053, unless a statement waits: it is
    /// refused.
    Close,
}
