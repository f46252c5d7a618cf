//! `insights`.

use super::checks::{name, whole};
use super::limits;
use crate::fault::Faults;
use crate::identity::IdentityPolicy;
use crate::insights::{InsightTags, Insights};
use crate::raw::{self, Maybe, OneOrMany, Spanned};

pub(super) fn compile(
    insights: Maybe<raw::Insights>,
    identity: &IdentityPolicy,
    faults: &mut Faults,
) -> Insights {
    let raw = insights.map(|insights| insights.value).unwrap_or_default();
    Insights {
        enabled: raw.enabled.is_none_or(|enabled| enabled.value),
        max_digests: whole(raw.max_digests, limits::MAX_DIGESTS, faults),
        sample_text: raw.sample_text.is_some_and(|sample| sample.value),
        tags: raw.tags.map(|tags| tags_of(tags, identity, faults)).unwrap_or_default(),
    }
}

/// Keys of tags, each once.
fn tags_of(
    keys: Spanned<OneOrMany<String>>,
    identity: &IdentityPolicy,
    faults: &mut Faults,
) -> InsightTags {
    let Spanned { value: OneOrMany(keys), place } = keys;
    if keys.len() > limits::INSIGHT_TAGS_MAX {
        faults.add(&place, format!("must be at most {} keys", limits::INSIGHT_TAGS_MAX));
    }
    let mut kept: Vec<Box<str>> = Vec::new();
    for Spanned { value, place } in keys {
        if identity.app_key_rank(value.as_bytes()).is_some() {
            let message = format!(
                "`{value}` names the app (`identity.keys`), and is no tag: rows have their app"
            );
            faults.add(&place, message);
        } else if kept.iter().any(|known| **known == *value) {
            faults.add(&place, format!("`{value}` is there already"));
        } else {
            name(&value, &place, faults);
            kept.push(value.into());
        }
    }
    InsightTags(kept.into())
}
