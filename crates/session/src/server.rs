//! What is known of the server's side of the session.

pub(crate) mod prepared;
pub(crate) mod transaction;

use sql::{Charset, LexMode};
use wire::status::StatusFlags;

use self::prepared::Prepared;
use self::transaction::Transaction;

/// The server's side of the session, as far as its responses and what was sent have shown it.
#[derive(Debug, Default)]
pub(crate) struct ServerSide {
    /// How it reads text.
    pub(crate) mode: LexMode,
    /// Its transaction, and its locks.
    pub(crate) transaction: Transaction,
    /// Its prepared statements.
    pub(crate) prepared: Prepared,
}

impl ServerSide {
    /// A session begins anew: after a login, COM_CHANGE_USER or COM_RESET_CONNECTION.
    pub(crate) fn start(&mut self, charset: Charset, flags: StatusFlags) {
        self.mode = LexMode { charset, server: self.mode.server, ..LexMode::default() };
        self.transaction.start(flags);
        self.prepared.clear();
    }
}
