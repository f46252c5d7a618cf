//! Digests that a guard or a `runaway` is about.

use std::collections::BTreeMap;

use admin::insights::Row;

use super::report::{Hits, OfDigest};

/// Digests that are listed.
const DIGESTS_MAX: usize = 10;

/// Whether a digest is known to be one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hit {
    Certain,
    Unknown,
}

/// So many statements of a row.
pub(super) fn of_row(row: &Row, statements: u64, hit: Hit) -> OfDigest {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    OfDigest {
        digest: text(&row.digest),
        digest_text: text(&row.digest_text),
        app: text(&row.app),
        statements,
        is_certain: hit == Hit::Certain,
    }
}

/// All of them, each digest of an app once.
pub(super) fn hits(digests: Vec<OfDigest>) -> Hits {
    let (hits, unknown): (Vec<OfDigest>, Vec<OfDigest>) =
        digests.into_iter().partition(|digest| digest.is_certain);
    let sum = |digests: &[OfDigest]| {
        digests.iter().fold(0_u64, |sum, digest| sum.saturating_add(digest.statements))
    };
    let mut apps: BTreeMap<String, u64> = BTreeMap::new();
    let mut merged: BTreeMap<(String, String), OfDigest> = BTreeMap::new();
    let (statements, unknown) = (sum(&hits), sum(&unknown));
    for digest in hits {
        let of_app = apps.entry(digest.app.clone()).or_default();
        *of_app = of_app.saturating_add(digest.statements);
        let key = (digest.digest.clone(), digest.app.clone());
        match merged.get_mut(&key) {
            Some(known) => known.statements = known.statements.saturating_add(digest.statements),
            None => drop(merged.insert(key, digest)),
        }
    }
    let mut digests: Vec<OfDigest> = merged.into_values().collect();
    digests.sort_by_key(|digest| std::cmp::Reverse(digest.statements));
    let digests_total = digests.len();
    digests.truncate(DIGESTS_MAX);
    Hits { statements, apps, digests, digests_total, unknown }
}
