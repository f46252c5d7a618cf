//! What is counted of each digest, app and schema.

use std::sync::Arc;

use crate::fnv;
use crate::identity::Identity;

/// What is counted of each digest, app and schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insights {
    /// Whether anything is.
    pub enabled: bool,
    /// Combinations of digest, app, schema and user with rows of their own in a minute.
    pub max_digests: u32,
    /// Whether one statement of each digest is kept as it came, values included.
    pub sample_text: bool,
    /// The tags of which values are kept.
    pub tags: InsightTags,
}

/// The tags of which values are kept, by key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InsightTags(pub(crate) Arc<[Box<str>]>);

impl InsightTags {
    /// Whether there is none: then nobody looks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|key| &**key)
    }

    /// Writes those of a statement into `out`, which is cleared first: key, NUL, value, NUL; and
    /// gives what stands for them: 0 for none.
    pub fn write(&self, identity: &Identity<'_>, out: &mut Vec<u8>) -> u64 {
        out.clear();
        for key in self.keys() {
            let value = identity.tag(key.as_bytes());
            let Some(value) = value.filter(|value| !value.contains(&0)) else { continue };
            for part in [key.as_bytes(), value] {
                out.extend_from_slice(part);
                out.push(0);
            }
        }
        if out.is_empty() { 0 } else { fnv::plain(out).max(1) }
    }
}
