//! Status flags: what a server says about its session in every OK and EOF.
//!
//! Manual: `SERVER_STATUS_flags_enum`.

/// The status flags of one OK or EOF packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StatusFlags(pub u16);

impl StatusFlags {
    /// Whether all of `flags` are set.
    #[must_use]
    pub fn has(self, flags: u16) -> bool {
        self.0 & flags == flags
    }

    /// A transaction is open. Set by BEGIN itself.
    #[must_use]
    pub fn in_transaction(self) -> bool {
        self.has(SERVER_STATUS_IN_TRANS)
    }

    /// The open transaction is READ ONLY.
    #[must_use]
    pub fn in_read_only_transaction(self) -> bool {
        self.has(SERVER_STATUS_IN_TRANS_READONLY)
    }

    /// A statement outside a transaction commits itself.
    #[must_use]
    pub fn autocommit(self) -> bool {
        self.has(SERVER_STATUS_AUTOCOMMIT)
    }

    /// Another result of the same command follows.
    #[must_use]
    pub fn more_results(self) -> bool {
        self.has(SERVER_MORE_RESULTS_EXISTS)
    }

    /// The statement has a cursor open on the server.
    #[must_use]
    pub fn cursor_exists(self) -> bool {
        self.has(SERVER_STATUS_CURSOR_EXISTS)
    }

    /// The cursor has given its last row.
    #[must_use]
    pub fn last_row_sent(self) -> bool {
        self.has(SERVER_STATUS_LAST_ROW_SENT)
    }

    /// A backslash in a string literal is an ordinary character.
    #[must_use]
    pub fn no_backslash_escapes(self) -> bool {
        self.has(SERVER_STATUS_NO_BACKSLASH_ESCAPES)
    }

    /// Double quotes enclose identifiers. MariaDB only; MySQL does not show it.
    #[must_use]
    pub fn ansi_quotes(self) -> bool {
        self.has(SERVER_STATUS_ANSI_QUOTES)
    }
}

/// A transaction is open.
pub const SERVER_STATUS_IN_TRANS: u16 = 0x0001;
/// autocommit is on.
pub const SERVER_STATUS_AUTOCOMMIT: u16 = 0x0002;
/// Another result follows.
pub const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;
/// The query used no good index.
pub const SERVER_QUERY_NO_GOOD_INDEX_USED: u16 = 0x0010;
/// The query used no index.
pub const SERVER_QUERY_NO_INDEX_USED: u16 = 0x0020;
/// A cursor is open.
pub const SERVER_STATUS_CURSOR_EXISTS: u16 = 0x0040;
/// The cursor is at its end.
pub const SERVER_STATUS_LAST_ROW_SENT: u16 = 0x0080;
/// A schema was dropped.
pub const SERVER_STATUS_DB_DROPPED: u16 = 0x0100;
/// sql_mode has NO_BACKSLASH_ESCAPES.
pub const SERVER_STATUS_NO_BACKSLASH_ESCAPES: u16 = 0x0200;
/// Metadata changed since PREPARE.
pub const SERVER_STATUS_METADATA_CHANGED: u16 = 0x0400;
/// The query was slow.
pub const SERVER_QUERY_WAS_SLOW: u16 = 0x0800;
/// The result set holds OUT parameters.
pub const SERVER_PS_OUT_PARAMS: u16 = 0x1000;
/// The open transaction is READ ONLY.
pub const SERVER_STATUS_IN_TRANS_READONLY: u16 = 0x2000;
/// The OK carries changes of session state.
pub const SERVER_SESSION_STATE_CHANGED: u16 = 0x4000;
/// MariaDB: sql_mode has ANSI_QUOTES.
pub const SERVER_STATUS_ANSI_QUOTES: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_one_by_one() {
        let status = StatusFlags(0x8203);
        assert!(status.in_transaction() && status.autocommit());
        assert!(status.no_backslash_escapes() && status.ansi_quotes());
        assert!(!status.more_results() && !status.cursor_exists() && !status.last_row_sent());
        assert!(!status.in_read_only_transaction());
    }
}
