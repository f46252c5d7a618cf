//! By which of its channels a replica gets what the primary of its cluster writes.
//!
//! Heartbeats come by that one alone. Others have delays and stops of their own, which neither excuse
//! its lag nor make it. Where no channel names the primary (its source is another replica) each may
//! be the one.

use mysql_async::Row;
use sql::Server;

use super::answer::{column, text};
use crate::board::ProbeError;
use crate::link::Link;

/// What tells a source from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceIdentity {
    /// `server_uuid`; MariaDB has none.
    pub(super) uuid: Option<String>,
    /// `server_id`; a channel that was never connected knows none.
    pub(super) server_id: Option<String>,
}

impl SourceIdentity {
    /// The identity of a server as a source.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) async fn ask(primary: &mut Link, server: Server) -> Result<Self, ProbeError> {
        let uuid = match server {
            Server::MySql { .. } => "@@GLOBAL.server_uuid",
            Server::MariaDb { .. } | Server::Unknown => "NULL",
        };
        let row = primary.first(&format!("SELECT {uuid}, @@GLOBAL.server_id")).await?;
        let value = |at| row.as_ref().and_then(|row| row.as_ref(at)).and_then(text);
        Ok(Self { uuid: value(0), server_id: value(1) })
    }

    /// The source that a row of `SHOW REPLICA STATUS` names.
    pub(super) fn of_channel(row: &Row) -> Self {
        let told = |names: &[&str]| {
            column(row, names).and_then(text).filter(|told| !told.is_empty() && told != "0")
        };
        Self {
            uuid: told(&["Source_UUID", "Master_UUID"]),
            server_id: told(&["Source_Server_Id", "Master_Server_Id"]),
        }
    }

    /// Whether both are one server.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (&self.uuid, &other.uuid) {
            (Some(own), Some(other)) => own == other,
            (_, _) => self.server_id.is_some() && self.server_id == other.server_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SourceIdentity;

    #[test]
    fn a_server_is_told_by_its_uuid_and_without_one_by_its_number() {
        let of = |uuid: Option<&str>, server_id: Option<&str>| SourceIdentity {
            uuid: uuid.map(str::to_owned),
            server_id: server_id.map(str::to_owned),
        };
        assert!(of(Some("a"), Some("1")).is(&of(Some("a"), Some("2"))));
        assert!(!of(Some("a"), Some("1")).is(&of(Some("b"), Some("1"))));
        assert!(of(None, Some("1")).is(&of(None, Some("1"))));
        assert!(!of(Some("a"), None).is(&of(None, None)));
        assert!(!of(None, None).is(&of(None, None)), "that was never connected");
    }
}
