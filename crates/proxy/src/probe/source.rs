//! By which of its channels a replica gets what the primary of its cluster writes.
//!
//! Heartbeats come by that one alone. Others have delays and stops of their own, which neither excuse
//! its lag nor make it. Where no channel names the primary (its source is another replica) each may
//! be the one.

use mysql_async::Row;

use super::answer::{column, text};

/// What tells a source from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceIdentity {
    /// `server_uuid`; MariaDB has none.
    pub(crate) uuid: Option<String>,
    /// `server_id`; a channel that was never connected knows none.
    pub(crate) server_id: Option<String>,
}

impl SourceIdentity {
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
