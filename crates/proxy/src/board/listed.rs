//! Replicas of the file that are the primary, or one another.
//!
//! Behind a failover the server that was promoted is still in the list until somebody edits it. It shows its own
//! heartbeats at once, or none ever: neither is the lag of a replica.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ProbeBoard;
use crate::probe::{Logging, ServerIdentity, SourceIdentity};

/// What tells the primary from all other servers, and each replica.
#[derive(Debug, Default)]
pub(super) struct Listed(Mutex<Identities>);

#[derive(Debug, Default)]
struct Identities {
    primary: Option<ServerIdentity>,
    replicas: BTreeMap<Arc<str>, String>,
}

impl Listed {
    /// The addresses that a server has or had.
    pub(super) fn addresses_of(&self, identity: &str) -> Vec<Arc<str>> {
        let identities = self.0.lock();
        let known = identities.replicas.iter().filter(|(_, known)| **known == identity);
        known.map(|(address, _)| address.clone()).collect()
    }
}

impl ProbeBoard {
    /// The primary is this server.
    pub(crate) fn note_primary(&self, identity: ServerIdentity) {
        self.listed.0.lock().primary = Some(identity);
    }

    /// Who the primary is, as its replicas know it.
    pub(crate) fn primary_as_source(&self) -> Option<SourceIdentity> {
        self.listed.0.lock().primary.as_ref().map(|primary| primary.source.clone())
    }

    /// As what the primary logs heartbeats.
    pub(crate) fn primary_logging(&self) -> Logging {
        let identities = self.listed.0.lock();
        identities.primary.as_ref().map(|primary| primary.logging).unwrap_or_default()
    }

    /// A replica is this server.
    pub(crate) fn note_replica(&self, replica: &Arc<str>, identity: String) {
        self.listed.0.lock().replicas.insert(replica.clone(), identity);
    }

    /// Why one of these replicas of the file is none: it is the primary itself, or the same server as one ahead of it.
    pub(crate) fn is_no_replica(&self, replica: &str, listed: &[Arc<str>]) -> Option<String> {
        let identities = self.listed.0.lock();
        let own = identities.replicas.get(replica)?;
        if identities.primary.as_ref().is_some_and(|primary| primary.name == *own) {
            return Some("it is the primary itself; take it out of `replicas`".to_owned());
        }
        let mut ahead = listed.iter().take_while(|other| ***other != *replica);
        let same = ahead.find(|other| identities.replicas.get(*other) == Some(own))?;
        Some(format!("it is the same server as {same}; take one of them out of `replicas`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_the_primary_may_be_a_replica_and_the_other_way_round() {
        let board = ProbeBoard::default();
        let listed: [Arc<str>; 2] = ["a:3306".into(), "b:3306".into()];
        let are = |a, b| {
            let is_one = |replica| board.is_no_replica(replica, &listed).is_none();
            assert_eq!([is_one("a:3306"), is_one("b:3306")], [a, b]);
        };
        are(true, true);
        for replica in &listed {
            board.note_replica(replica, format!("uuid of {replica}"));
        }
        are(true, true);
        let becomes = |name: &str| {
            let source = SourceIdentity { uuid: Some(name.to_owned()), server_id: None };
            let logging = Logging::Unknown;
            board.note_primary(ServerIdentity { name: name.to_owned(), source, logging });
        };
        becomes("uuid of a:3306");
        are(false, true);
        becomes("uuid of b:3306");
        are(true, false);
    }

    #[test]
    fn a_server_counts_once_whatever_names_it_has() {
        let board = ProbeBoard::default();
        let listed: [Arc<str>; 3] = ["a:1".into(), "b:1".into(), "c:1".into()];
        for (replica, identity) in listed.iter().zip(["x", "y", "x"]) {
            board.note_replica(replica, identity.to_owned());
        }
        let is_one = |replica| board.is_no_replica(replica, &listed).is_none();
        assert_eq!([is_one("a:1"), is_one("b:1"), is_one("c:1")], [true, true, false]);
        // What was in the list before is no other.
        assert_eq!(board.is_no_replica("c:1", &listed[1..]), None);
    }
}
