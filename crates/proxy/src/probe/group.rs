//! What a member of a group (Group Replication) says of itself: while it is well SHOW REPLICA STATUS has
//! no channel of it, and none either when it has left its group or failed.

use mysql_async::Row;

use super::answer::{number, text};
use crate::board::{ProbeError, StoppedReplication};
use crate::link::Link;

/// The state of this server in its group, and the error of its applier. No row: it is in none.
/// (Manual, "The replication_group_members Table")
const QUESTION: &str = "SELECT m.MEMBER_STATE, w.LAST_ERROR_NUMBER, w.LAST_ERROR_MESSAGE \
    FROM performance_schema.replication_group_members m \
    LEFT JOIN performance_schema.replication_applier_status_by_worker w \
    ON w.CHANNEL_NAME = 'group_replication_applier' AND w.LAST_ERROR_NUMBER <> 0 \
    WHERE m.MEMBER_ID = @@server_uuid LIMIT 1";

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Member {
    /// It is ONLINE.
    Online,
    /// It is OFFLINE, RECOVERING or in ERROR.
    Stopped(StoppedReplication),
}

impl Member {
    /// None: it is in no group, or does not say.
    pub(super) async fn ask(link: &mut Link) -> Result<Option<Self>, ProbeError> {
        match link.first(QUESTION).await {
            Ok(row) => Ok(row.as_ref().and_then(Self::of)),
            // MariaDB and MySQL 5.6 know no such table, and the account may not read it.
            Err(ProbeError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn of(row: &Row) -> Option<Self> {
        let state = row.as_ref(0).and_then(text)?;
        let code = row.as_ref(1).and_then(number).unwrap_or(0);
        let message = row.as_ref(2).and_then(text).unwrap_or_default();
        Some(Self::in_state(&state, code, &message))
    }

    fn in_state(state: &str, code: u32, message: &str) -> Self {
        if state == "ONLINE" {
            Self::Online
        } else {
            Self::Stopped(StoppedReplication::of_member(state, code, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_online_is_well_and_any_other_says_its_state_and_what_ends_it() {
        assert_eq!(Member::in_state("ONLINE", 0, ""), Member::Online);
        for (state, ends) in [
            ("OFFLINE", "START GROUP_REPLICATION"),
            ("ERROR", "STOP GROUP_REPLICATION"),
            ("RECOVERING", "catches up by itself"),
        ] {
            let Member::Stopped(stopped) = Member::in_state(state, 1062, "Duplicate entry") else {
                panic!("{state} is not well");
            };
            let told = stopped.to_string();
            assert!(told.contains(state) && told.contains("error 1062: Duplicate entry"), "{told}");
            assert!(stopped.advice().contains(ends), "{state}: {}", stopped.advice());
        }
        let Member::Stopped(left) = Member::in_state("OFFLINE", 0, "") else {
            panic!("it has left")
        };
        assert_eq!(left.to_string(), "it is OFFLINE in its group (Group Replication)");
    }
}
