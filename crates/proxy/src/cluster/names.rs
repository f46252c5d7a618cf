//! The names behind the keys that the controller's watch for starvation knows.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use admission::{AppKey, Controller, IdentityKey};

/// Names of each kind: twice what the watch can know of, so that room is rarely made.
const NAMES_MAX: usize = 2 * admission::IDENTITIES_MAX;

/// Names by key, as clients said them.
#[derive(Debug, Default)]
pub(super) struct WatchedNames {
    identities: HashMap<IdentityKey, Box<[u8]>>,
    apps: HashMap<AppKey, Box<[u8]>>,
}

impl WatchedNames {
    /// Keeps who asked in vain.
    pub(super) fn keep(
        &mut self,
        controller: &Controller,
        identity: IdentityKey,
        app: AppKey,
        name: &[u8],
    ) {
        keep(&mut self.identities, identity, name, || controller.watched().0);
        self.keep_app(controller, app, name);
    }

    /// Keeps whose statement passed.
    pub(super) fn keep_app(&mut self, controller: &Controller, app: AppKey, name: &[u8]) {
        keep(&mut self.apps, app, name, || controller.watched().1);
    }

    pub(super) fn identity(&self, key: IdentityKey) -> &[u8] {
        self.identities.get(&key).map_or(UNKNOWN, AsRef::as_ref)
    }

    /// An identity of the app.
    pub(super) fn app(&self, key: AppKey) -> &[u8] {
        self.find_app(key).unwrap_or(UNKNOWN)
    }

    /// The same; `None` if it was forgotten.
    pub(super) fn find_app(&self, key: AppKey) -> Option<&[u8]> {
        self.apps.get(&key).map(AsRef::as_ref)
    }
}

/// Shown for a name that was forgotten.
const UNKNOWN: &[u8] = b"unknown";

fn keep<K: Copy + Eq + Hash>(
    names: &mut HashMap<K, Box<[u8]>>,
    key: K,
    name: &[u8],
    wanted: impl FnOnce() -> Vec<K>,
) {
    if names.contains_key(&key) {
        return;
    }
    if names.len() >= NAMES_MAX {
        let wanted: HashSet<K> = wanted().into_iter().collect();
        names.retain(|key, _| wanted.contains(key));
    }
    names.insert(key, name.into());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_can_ask_for_make_room() {
        let mut names = HashMap::new();
        let mut swept = 0;
        for n in 0..3 * NAMES_MAX {
            keep(&mut names, n, b"name", || {
                swept += 1;
                vec![0, 7]
            });
            assert!(names.len() <= NAMES_MAX);
        }
        assert!(names.contains_key(&0) && names.contains_key(&7));
        assert_eq!(swept, 3);
    }
}
