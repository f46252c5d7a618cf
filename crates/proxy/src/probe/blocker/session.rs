//! What a session of Sluice's own is at.

use super::super::answer::{column, number, text};
use crate::board::ProbeError;
use crate::link::Link;

/// What the process list says of a session that is at a statement.
pub(super) struct Session {
    /// The state of its thread.
    pub(super) state: String,
    /// For how long it has been in it, in whole seconds.
    pub(super) time_s: u64,
}

impl Session {
    /// Asks for a session of this id. None: it is over, or idle.
    ///
    /// `information_schema.PROCESSLIST` is not asked: it needs a temporary table, which a full disk
    /// has no room for.
    pub(super) async fn ask(link: &mut Link, id: u32) -> Result<Option<Self>, ProbeError> {
        let own = format!(
            "SELECT ID, COMMAND, STATE, TIME FROM performance_schema.processlist \
             WHERE ID IN ({id}, CONNECTION_ID())"
        );
        let rows = match link.rows(&own).await {
            // Whoever asks is in it, unless performance_schema is off.
            Ok(rows) if !rows.is_empty() => rows,
            Err(error) if error.is_silence() => return Err(error),
            Ok(_) | Err(_) => link.rows("SHOW PROCESSLIST").await?,
        };
        let its = rows.iter().find(|row| column(row, &["ID", "Id"]).and_then(number) == Some(id));
        let told = |names: &[&str]| its.and_then(|row| column(row, names));
        if told(&["COMMAND", "Command"]).and_then(text).is_none_or(|command| command == "Sleep") {
            return Ok(None);
        }
        Ok(Some(Self {
            state: told(&["STATE", "State"]).and_then(text).unwrap_or_default(),
            time_s: told(&["TIME", "Time"]).and_then(number).unwrap_or(0),
        }))
    }
}
