//! Replicas of the file that are the primary.
//!
//! Behind a failover the server that was promoted is still in the list until somebody edits it. It shows its own
//! heartbeats at once, or none ever: neither is the lag of a replica.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::ProbeBoard;

/// What tells the primary from all other servers, and each replica.
#[derive(Debug, Default)]
pub(super) struct Listed(Mutex<Identities>);

#[derive(Debug, Default)]
struct Identities {
    primary: Option<String>,
    replicas: BTreeMap<Arc<str>, String>,
}

impl ProbeBoard {
    /// The primary is this server.
    pub(crate) fn note_primary(&self, identity: String) {
        self.listed.0.lock().primary = Some(identity);
    }

    /// A replica is this server.
    pub(crate) fn note_replica(&self, replica: &Arc<str>, identity: String) {
        self.listed.0.lock().replicas.insert(replica.clone(), identity);
    }

    /// Whether a replica of the file is the primary itself.
    pub(crate) fn is_the_primary(&self, replica: &str) -> bool {
        let identities = self.listed.0.lock();
        let replica = identities.replicas.get(replica);
        replica.is_some() && replica == identities.primary.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_the_primary_may_be_a_replica_and_the_other_way_round() {
        let board = ProbeBoard::default();
        let [a, b]: [Arc<str>; 2] = ["a:3306".into(), "b:3306".into()];
        assert!(!board.is_the_primary(&a));
        for replica in [&a, &b] {
            board.note_replica(replica, format!("uuid of {replica}"));
            assert!(!board.is_the_primary(replica), "nobody knows who is");
        }
        board.note_primary("uuid of a:3306".to_owned());
        assert!(board.is_the_primary(&a) && !board.is_the_primary(&b));
        board.note_primary("uuid of b:3306".to_owned());
        assert!(board.is_the_primary(&b) && !board.is_the_primary(&a), "at once");
    }
}
