//! What is known of the server's side of the session.

pub(crate) mod prepared;
pub(crate) mod temporary;
pub(crate) mod transaction;

use sql::{Charset, LexMode, Server, Setting};
use wire::status::{SERVER_STATUS_AUTOCOMMIT, StatusFlags};

use self::prepared::PreparedStatements;
use self::temporary::TemporaryTables;
use self::transaction::Transaction;
use crate::cut_over::CutOver;
use crate::facts::ServerFacts;
use crate::judge::who::Who;

/// The server's side of the session, as far as its responses and what was sent have shown it.
#[derive(Debug, Default)]
pub(crate) struct ServerSide {
    /// How it reads text.
    pub(crate) mode: LexMode,
    /// Its transaction, and its locks.
    pub(crate) transaction: Transaction,
    /// Its prepared statements.
    pub(crate) prepared: PreparedStatements,
    /// Its temporary tables, where guards look at texts.
    pub(crate) temporary: TemporaryTables,
    /// Whether the default schema is the one that the session's identity names.
    pub(crate) schema: SchemaKnown,
    /// What the last LOCK TABLES locked, if that was gh-ost's for its cut-over. Whether it is still
    /// held the transaction knows.
    pub(crate) cut_over: Option<Box<CutOver>>,
}

/// How well the default schema is known; the later the better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SchemaKnown {
    /// It may be another.
    #[default]
    No,
    /// The server tells when it changes (CLIENT_SESSION_TRACK), unless a routine has switched that
    /// off. That will do for guards, and lets nothing pass.
    Told,
    /// By the login, and by statements that were read.
    Certain,
}

impl ServerSide {
    /// A session begins anew: after a login, COM_CHANGE_USER or COM_RESET_CONNECTION. `flags` are
    /// what the server's OK says; none: it has not said it yet.
    pub(crate) fn start(
        &mut self,
        charset: Charset,
        flags: Option<StatusFlags>,
        facts: &ServerFacts,
    ) {
        self.mode = LexMode { charset, ..LexMode::unknown(self.mode.server) };
        if let Some(flags) = flags {
            self.mode.no_backslash_escapes = flags.no_backslash_escapes().into();
            self.mode.ansi_quotes = match self.mode.server {
                // Its flags never show it.
                Server::MySql { .. } => facts.ansi_quotes,
                Server::MariaDb { .. } => flags.ansi_quotes().into(),
                Server::Unknown => Setting::Unknown,
            };
        }
        // Neither server leaves a transaction open, and autocommit is on unless it says otherwise.
        self.transaction.start(flags.unwrap_or(StatusFlags(SERVER_STATUS_AUTOCOMMIT)));
        self.prepared.clear();
        self.temporary = TemporaryTables::default();
        self.cut_over = None;
    }

    /// What the OK of a text says of how text is read, when nothing in the text can have made it lie
    /// (`sql::PlainEffects::sql_mode_by_flags`). ANSI_QUOTES of MySQL stays unknown.
    pub(crate) fn believe_flags(&mut self, flags: StatusFlags) {
        self.mode.no_backslash_escapes = flags.no_backslash_escapes().into();
        match self.mode.server {
            Server::MariaDb { .. } => self.mode.ansi_quotes = flags.ansi_quotes().into(),
            Server::MySql { .. } | Server::Unknown => {}
        }
    }

    /// What an OK or an EOF says of how text is read. Behind a routine that has set `sql_mode` for
    /// itself both servers say what it had set, although they have restored what was there before:
    /// where flags and statements disagree, neither is believed.
    pub(crate) fn follow_flags(&mut self, flags: StatusFlags) {
        let agreed = |known: Setting, said: bool| {
            if known == Setting::from(said) { known } else { Setting::Unknown }
        };
        let LexMode { no_backslash_escapes, ansi_quotes, server, .. } = &mut self.mode;
        *no_backslash_escapes = agreed(*no_backslash_escapes, flags.no_backslash_escapes());
        match server {
            Server::MariaDb { .. } => *ansi_quotes = agreed(*ansi_quotes, flags.ansi_quotes()),
            Server::MySql { .. } | Server::Unknown => {}
        }
    }

    /// What COM_RESET_CONNECTION makes of `character_set_client`: MariaDB goes back to what the
    /// login chose, MySQL to its global default.
    pub(crate) fn charset_after_reset(&self, login: Charset, facts: &ServerFacts) -> Charset {
        match self.mode.server {
            Server::MariaDb { .. } => login,
            Server::MySql { .. } => facts.charset_client,
            Server::Unknown => Charset::Unknown,
        }
    }

    /// The default schema in which a function is looked up that is named without one. Empty: there
    /// is none, or it is not certain which. Of names only these letters are certain to be the same
    /// in every character set.
    pub(crate) fn default_schema<'w>(&self, who: &'w Who) -> &'w [u8] {
        let schema = who.identity().schema();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
        if self.schema == SchemaKnown::Certain && schema.iter().all(plain) { schema } else { b"" }
    }
}
