//! What single replicas have of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What the file says of one replica besides where it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplicaTerms {
    /// What it is for, in the operator's word: those of a group have one threshold.
    pub group: Option<Arc<str>>,
    /// What its lag must stay below; `None`: the threshold of the signal.
    pub threshold: Option<Duration>,
}

/// The replicas that have something of their own, by their address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReplicaBook(BTreeMap<Arc<str>, ReplicaTerms>);

impl ReplicaBook {
    /// What a replica has of its own.
    #[must_use]
    pub fn of(&self, server: &str) -> Option<&ReplicaTerms> {
        self.0.get(server)
    }

    /// The thresholds of those that have one of their own.
    pub fn thresholds(&self) -> impl Iterator<Item = (&Arc<str>, Duration)> {
        self.0.iter().filter_map(|(server, terms)| Some((server, terms.threshold?)))
    }

    pub(crate) fn insert(&mut self, server: Arc<str>, terms: ReplicaTerms) {
        if terms != ReplicaTerms::default() {
            self.0.insert(server, terms);
        }
    }

    /// A threshold that one of a group has, all of it have.
    pub(crate) fn share_in_groups(&mut self) {
        let mut of_groups: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
        for terms in self.0.values() {
            if let (Some(group), Some(threshold)) = (&terms.group, terms.threshold) {
                of_groups.insert(group.clone(), threshold);
            }
        }
        for terms in self.0.values_mut() {
            let of_group = terms.group.as_ref().and_then(|group| of_groups.get(group));
            terms.threshold = terms.threshold.or(of_group.copied());
        }
    }
}
