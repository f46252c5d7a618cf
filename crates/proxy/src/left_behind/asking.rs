//! A server that is asked for the statements that it had.

use tokio::time::Instant;

use super::{Shown, Statement};
use crate::board::{IsAt, ProbeError, Sightings};
use crate::link::Link;
use crate::probe::identify;
use crate::socket::Remote;

/// Ids in one question.
const ASKED_MAX: usize = 256;

/// A server that is asked for those that it had.
pub(super) struct Asked {
    pub(super) remote: Remote,
    link: Link,
    /// Who it is, by what it has said on the connection of this id.
    identity: Option<(Option<u32>, Option<String>)>,
}

impl Asked {
    /// A server that has not been asked yet.
    pub(super) fn new(remote: Remote, link: Link) -> Self {
        Self { remote, link, identity: None }
    }

    /// Asks a server for those that it had.
    pub(super) async fn ask_for(&mut self, theirs: &mut [&mut Statement], sightings: &Sightings) {
        for asked in theirs.chunks_mut(ASKED_MAX) {
            let ids: Vec<String> =
                asked.iter().map(|statement| statement.session.connection_id.to_string()).collect();
            let Ok(rows) = self.link.rows(&question(&ids.join(","))).await else { return };
            let Ok(identity) = self.identity().await else { return };
            let shown = Shown::of(&rows);
            let now = Instant::now();
            for statement in asked {
                let birth = &statement.session.birth;
                let is_at = identity.map(|identity| sightings.is_at(birth, identity, now));
                statement.is_at = is_at.unwrap_or(IsAt::Unknown);
                statement.note(&shown, now);
            }
        }
        if theirs.iter().all(|statement| statement.watched.ended) {
            return;
        }
        let Ok(Some(uptime)) = self.link.known_uptime().await else { return };
        for statement in theirs.iter_mut().filter(|statement| statement.is_at != IsAt::No) {
            statement.watched.ended |= statement.session.is_older(uptime, Instant::now());
        }
    }

    /// Who has answered; asked once on each connection.
    async fn identity(&mut self) -> Result<Option<&str>, ProbeError> {
        let connection = self.link.connection_id().get();
        if self.identity.as_ref().is_none_or(|(on, _)| *on != connection) {
            let found = identify(&mut self.link).await?;
            self.identity = Some((connection, found.map(|found| found.name)));
        }
        Ok(self.identity.as_ref().and_then(|(_, name)| name.as_deref()))
    }
}

/// Which of these sessions there are, and whether others are shown at all: one is, or the account has
/// PROCESS by itself. One that has it by a role is told by the former alone.
fn question(ids: &str) -> String {
    format!(
        "SELECT ID, COMMAND FROM information_schema.PROCESSLIST WHERE ID IN ({ids}) UNION ALL \
         (SELECT 0, '' FROM information_schema.PROCESSLIST \
         WHERE USER <> SUBSTRING_INDEX(USER(), '@', 1) LIMIT 1) UNION ALL \
         (SELECT 0, '' FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'PROCESS' \
         AND GRANTEE = CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', \
         SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''') LIMIT 1)"
    )
}
