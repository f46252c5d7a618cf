//! What a cluster's primary says of itself, which no packet of a session shows.

use sql::{Charset, Routines, Setting};

/// What is known of the server of all sessions: what its probe has read last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// The functions that write nothing. None of them: whatever calls one is a `call`.
    pub routines: Routines,
    /// Whether a session of MySQL begins with ANSI_QUOTES (`@@GLOBAL.sql_mode`). MariaDB's say so
    /// themselves.
    pub ansi_quotes: Setting,
    /// With which `character_set_client` a session of MySQL goes on behind COM_RESET_CONNECTION.
    pub charset_client: Charset,
}

impl Default for ServerFacts {
    /// Nothing is known.
    fn default() -> Self {
        Self {
            routines: Routines::default(),
            ansi_quotes: Setting::Unknown,
            charset_client: Charset::Unknown,
        }
    }
}

impl ServerFacts {
    /// What a server is taken for that nobody asks: one without ANSI_QUOTES in `@@GLOBAL.sql_mode`.
    /// Were that unknown, no rule on a digest would know a text with a double quote again.
    #[must_use]
    pub fn unasked() -> Self {
        Self { ansi_quotes: Setting::Off, ..Self::default() }
    }
}
