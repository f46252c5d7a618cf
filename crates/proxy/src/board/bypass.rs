//! Sessions of the primary that have not come through a Sluice of the cluster, and write.

use super::ProbeBoard;
use crate::printable::Printable;

/// What the last look has found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BypassReading {
    /// Whose sessions write past Sluice; those with most of them first.
    pub users: Vec<BypassUser>,
    /// Sessions of which it is not known whether they have come through a Sluice.
    pub unknown: u64,
    /// Why it cannot be told for all sessions.
    pub trouble: Option<String>,
}

/// The sessions of one MySQL user that write past Sluice.
#[derive(Debug, Clone, PartialEq)]
pub struct BypassUser {
    /// The user.
    pub user: String,
    /// Where they come from: some of the addresses.
    pub hosts: Vec<String>,
    /// How many there are.
    pub sessions: u64,
    /// Their part of the rows that were changed on the primary in the last minutes, 0 to 1; none:
    /// the server does not tell.
    pub share: Option<f64>,
}

impl BypassUser {
    /// `user etl (3 sessions from 10.0.0.7, 12 % of the rows changed)`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { user, hosts, sessions, share } = self;
        let user = Printable(user.as_bytes());
        let hosts: Vec<String> =
            hosts.iter().map(|host| Printable(host.as_bytes()).to_string()).collect();
        let hosts = hosts.join(", ");
        let many = if *sessions == 1 { "session" } else { "sessions" };
        let share = share.map_or_else(String::new, |share| {
            format!(", {:.1} % of the rows changed in the last minutes", share * 100.0)
        });
        format!("user {user} ({sessions} {many} from {hosts}{share})")
    }
}

impl ProbeBoard {
    /// What the last look for sessions that go around has found; none: there was none yet.
    pub fn bypass(&self) -> Option<BypassReading> {
        self.seen.lock().bypass.clone()
    }

    pub(crate) fn note_bypass(&self, reading: Option<BypassReading>) {
        self.seen.lock().bypass = reading;
    }
}
