//! `runaway` of a rule.

use super::checks::{duration, keyword};
use super::limits;
use crate::fault::Faults;
use crate::raw::{self, NOT_SUPPORTED, Spanned};
use crate::runaway::{Runaway, RunawayAction, Watch, WatchBy};

const ACTIONS: [(&str, RunawayAction); 2] =
    [("log", RunawayAction::Log), ("kill", RunawayAction::Kill)];

const KEYS: [(&str, WatchBy); 2] = [("digest", WatchBy::Digest), ("text", WatchBy::Text)];

pub(super) fn compile(runaway: Spanned<raw::Runaway>, faults: &mut Faults) -> Runaway {
    let Spanned { value: raw, place } = runaway;
    if raw.elapsed.is_none() && raw.bytes_sent.is_none() {
        faults.add(&place, "names no limit: one of `elapsed`, `bytes_sent` is needed");
    }
    let deprioritises = |word: &&Spanned<String>| word.value == "deprioritise";
    let action = if let Some(word) = raw.action.as_ref().filter(deprioritises) {
        faults.add(&word.place, NOT_SUPPORTED);
        RunawayAction::Log
    } else {
        keyword(raw.action, RunawayAction::Log, &ACTIONS, faults)
    };
    if let (Some(watch), RunawayAction::Log) = (&raw.watch, action) {
        let message = "has no effect with `action: log`: what is only logged is not quarantined";
        faults.add(&watch.place, message);
    }
    let bytes_sent = raw.bytes_sent.map(|bytes| {
        u64::try_from(bytes.value).ok().filter(|bytes| *bytes > 0).unwrap_or_else(|| {
            faults.add(&bytes.place, "must be a number of bytes, from 1");
            u64::MAX
        })
    });
    Runaway {
        elapsed: raw.elapsed.map(|limit| duration(Some(limit), limits::RUNAWAY_ELAPSED, faults)),
        bytes_sent,
        action,
        watch: raw.watch.map(|watch| Watch {
            by: keyword(watch.value.by, WatchBy::Digest, &KEYS, faults),
            lasts: duration(watch.value.lasts, limits::QUARANTINE, faults),
        }),
    }
}
