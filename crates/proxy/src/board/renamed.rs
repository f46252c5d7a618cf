//! Replicas that have another name in the file than before.

use std::collections::BTreeMap;
use std::sync::Arc;

use admission::MonoTime;
use admission::lag::ReplicaKey;

use super::{Observations, ProbeBoard};

/// Addresses that are remembered behind an edit that takes them out.
const DEPARTED_MAX: usize = 64;

impl Observations {
    /// These were taken from the file.
    pub(super) fn keep_departed(&mut self, replicas: BTreeMap<Arc<str>, ReplicaKey>) {
        self.departed.extend(replicas);
        while self.departed.len() > DEPARTED_MAX {
            self.departed.pop_first();
        }
    }
}

impl ProbeBoard {
    /// A replica is this server, which may have been in the file under another address: it is that one,
    /// as far behind as it is.
    pub(crate) fn replica_is(&self, replica: &Arc<str>, identity: &str, now: MonoTime) {
        let addresses = self.listed.addresses_of(identity);
        let mut seen = self.seen.lock();
        let Observations { lag: Some(tracker), replicas, departed, .. } = &mut *seen else {
            return;
        };
        let Some(key) = replicas.get(replica) else { return };
        for address in addresses {
            if let Some(before) = departed.remove(&address) {
                tracker.handle_replica_was(now, *key, before);
            }
        }
    }
}
