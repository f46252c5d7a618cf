//! As what a primary logs Sluice's heartbeats (manual, "Replication Formats").
//!
//! A replica's filters take rows for what their table says, and statements for the default schema of their
//! session: that of the heartbeats has none.

/// What a heartbeat is in the primary's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Logging {
    /// Nobody has said it yet.
    #[default]
    Unknown,
    Rows,
    Statements,
}

/// The variable that says it; a session that is open keeps the one that it began with.
pub(super) const BINLOG_FORMAT: &str = "binlog_format";

impl Logging {
    /// By [`BINLOG_FORMAT`]. MIXED logs the statements of heartbeats: whenever they run they do the same, and their
    /// session reads repeatably.
    pub(super) fn of(format: Option<&str>) -> Self {
        match format.map(str::to_ascii_uppercase).as_deref() {
            Some("ROW") => Self::Rows,
            Some("STATEMENT" | "MIXED") => Self::Statements,
            Some(_) | None => Self::Unknown,
        }
    }

    /// The same behind another replica, which logs rows as rows, and statements as its own format says.
    pub(super) fn passed_on(self) -> Self {
        match self {
            Self::Rows => Self::Rows,
            Self::Statements | Self::Unknown => Self::Unknown,
        }
    }
}
