//! `insights`.

use super::checks::whole;
use super::limits;
use crate::fault::Faults;
use crate::insights::Insights;
use crate::raw::{self, Maybe};

pub(super) fn compile(insights: Maybe<raw::Insights>, faults: &mut Faults) -> Insights {
    let raw = insights.map(|insights| insights.value).unwrap_or_default();
    Insights {
        enabled: raw.enabled.is_none_or(|enabled| enabled.value),
        max_digests: whole(raw.max_digests, limits::MAX_DIGESTS, faults),
        sample_text: raw.sample_text.is_some_and(|sample| sample.value),
    }
}
