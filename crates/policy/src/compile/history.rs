//! `history`.

use super::checks::duration;
use super::limits;
use crate::fault::Faults;
use crate::history::HistoryLimits;
use crate::raw::{self, Maybe, Size, Spanned};

pub(super) fn compile(history: Maybe<raw::History>, faults: &mut Faults) -> HistoryLimits {
    let raw = history.map(|history| history.value).unwrap_or_default();
    HistoryLimits {
        enabled: raw.enabled.is_none_or(|enabled| enabled.value),
        max_age: duration(raw.max_age, limits::HISTORY_AGE, faults),
        max_size: size(raw.max_size, faults),
    }
}

fn size(size: Maybe<Size>, faults: &mut Faults) -> u64 {
    let limits = limits::HISTORY_MIB;
    let mib = |mib: u32| u64::from(mib) << 20;
    let Some(Spanned { value: Size(bytes), place }) = size else { return mib(limits.default) };
    if bytes < mib(limits.min) || bytes > mib(limits.max) {
        faults.add(&place, format!("must be from {} to {} MiB", limits.min, limits.max));
    }
    bytes
}
