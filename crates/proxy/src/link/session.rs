//! What each of Sluice's own sessions begins with.
//!
//! A session has its server's defaults, and those may be made for others: a limit for the rows of an
//! answer, or for the time of a SELECT, cuts off what is asked for here.

/// What a member of a group shows (`group_replication_consistency`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// With BEFORE a reader waits until all that came before it is applied.
    AsTheServerSays,
    /// What is applied by now: how far that is behind is what is asked.
    AtOnce,
}

/// What is needed everywhere.
pub(super) const AUTOCOMMIT: &str = "SET autocommit = 1";

/// With another default
///
/// - heartbeats would not commit and readings never move (`autocommit`);
/// - a transaction would be open behind each COMMIT, whose readings never move either
///   (`completion_type`);
/// - rows of former processes could not be deleted by their age (`sql_safe_updates`);
/// - answers would be cut off or refused (`sql_select_limit`, `sql_big_selects`, `max_execution_time`,
///   MariaDB's `max_statement_time`);
/// - words of Sluice's statements would be others' (`sql_mode=ORACLE` of MariaDB: BODY is a keyword, and
///   an empty text NULL);
/// - what is rarely asked would find its session ended (`wait_timeout`);
/// - a replica would show heartbeats that it has not committed yet, and a primary that logs statements
///   would take none (`transaction_isolation`).
///
/// Servers that do not have a variable skip its comment. An empty text in it would be NULL until it holds,
/// and all of it refused.
const SETTINGS: &str = "SET autocommit = 1, completion_type = 0, sql_safe_updates = 0, \
    sql_select_limit = 18446744073709551615, sql_big_selects = 1, wait_timeout = 28800 \
    /*!50708 , max_execution_time = 0 */ \
    /*!50720 , transaction_isolation = 'REPEATABLE-READ' */ \
    /*M!100101 , max_statement_time = 0, tx_isolation = 'REPEATABLE-READ' */ \
    /*M!100301 , sql_mode = REPLACE(REPLACE(@@sql_mode, 'ORACLE', SPACE(0)), \
    'EMPTY_STRING_IS_NULL', SPACE(0)) */";

const READ_AT_ONCE: &str = "/*!80014 , SESSION group_replication_consistency = 'EVENTUAL' */";

impl Reads {
    /// The statement that sets all of it.
    pub(super) fn settings(self) -> String {
        match self {
            Self::AsTheServerSays => SETTINGS.to_owned(),
            Self::AtOnce => format!("{SETTINGS} {READ_AT_ONCE}"),
        }
    }
}
