//! Who is starved, looked at in pieces.

use std::collections::BTreeMap;

use super::buckets::Mask;
use super::{Admitted, STARVED_MAX, Starved};
use crate::{IdentityKey, RuleKey};

/// Who is starved, as far as it has been looked at: thousands of identities may be watched, and the
/// lock is not to be held for all of them. See [`crate::Controller::look_for_starved`].
#[derive(Debug, Default)]
pub struct Census {
    pub(super) stage: Stage,
    pub(super) found: Vec<(Starved, Mask)>,
    pub(super) causes: BTreeMap<Mask, Vec<Admitted>>,
}

#[derive(Debug)]
pub(super) enum Stage {
    /// Identities are looked at, from behind this one on.
    Identities { after: Option<(RuleKey, IdentityKey)> },
    /// It is looked who was admitted meanwhile; for so many that is known.
    Causes { named: usize },
}

impl Default for Stage {
    fn default() -> Self {
        Self::Identities { after: None }
    }
}

impl Census {
    /// Who is starved, those first that were blocked longest.
    #[must_use]
    pub fn into_starved(self) -> Vec<Starved> {
        let Self { found, causes, .. } = self;
        let with_cause = |(starved, mask): (Starved, Mask)| {
            let meanwhile = causes.get(&mask).cloned().unwrap_or_default();
            Starved { meanwhile, ..starved }
        };
        found.into_iter().map(with_cause).collect()
    }

    /// All have been looked at.
    pub(super) fn rank(&mut self) {
        self.stage = Stage::Causes { named: 0 };
        self.found.sort_by(|(a, _), (b, _)| {
            b.share.total_cmp(&a.share).then(a.since.cmp(&b.since)).then(a.app.cmp(&b.app))
        });
        self.found.truncate(STARVED_MAX);
    }
}
