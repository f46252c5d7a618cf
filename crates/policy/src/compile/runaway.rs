//! `runaway` of a rule.

use super::checks::{duration, keyword};
use super::limits;
use crate::fault::Faults;
use crate::raw::{self, Maybe, Size, Spanned};
use crate::runaway::{Runaway, RunawayAction, Watch, WatchBy};

const ACTIONS: [(&str, RunawayAction); 3] = [
    ("log", RunawayAction::Log),
    ("kill", RunawayAction::Kill),
    ("deprioritise", RunawayAction::Deprioritise),
];

const KEYS: [(&str, WatchBy); 2] = [("digest", WatchBy::Digest), ("text", WatchBy::Text)];

pub(super) fn compile(runaway: Spanned<raw::Runaway>, faults: &mut Faults) -> Runaway {
    let Spanned { value: raw, place } = runaway;
    if raw.elapsed.is_none() && raw.bytes_sent.is_none() && raw.rows_sent.is_none() {
        let message = "names no limit: one of `elapsed`, `bytes_sent`, `rows_sent` is needed";
        let limits = ["elapsed", "bytes_sent", "rows_sent"];
        faults.add_unless_of((&place, &limits), &place, message);
    }
    let action_place = raw.action.as_ref().map(|word| word.place.clone());
    let action = keyword(raw.action, RunawayAction::Log, &ACTIONS, faults);
    if raw.watch.is_none() && action == RunawayAction::Deprioritise {
        let message = "`deprioritise` is about the statements that come after it: say by \
                       `watch: { by: digest, for: 10m }` which, and for how long";
        let at = action_place.as_ref().unwrap_or(&place);
        faults.add_unless_of((&place, &["watch"]), at, message);
    }
    let watch = raw.watch.map(|watch| Watch {
        by: keyword(watch.value.by, WatchBy::Digest, &KEYS, faults),
        lasts: duration(watch.value.lasts, limits::QUARANTINE, faults),
    });
    Runaway {
        elapsed: raw.elapsed.map(|limit| duration(Some(limit), limits::RUNAWAY_ELAPSED, faults)),
        bytes_sent: raw.bytes_sent.map(|most| bytes(most, faults)),
        rows_sent: rows(raw.rows_sent, faults),
        action,
        // What is only logged puts nothing in quarantine. It may stand there for the day on which it
        // is `kill` again: whoever stops the kills in a hurry changes one word.
        watch: watch.filter(|_| action != RunawayAction::Log),
    }
}

/// So many rows an answer may have.
fn rows(most: Maybe<i128>, faults: &mut Faults) -> Option<u64> {
    let Spanned { value, place } = most?;
    let most = u64::try_from(value).ok().filter(|most| *most > 0);
    if most.is_none() {
        faults.add(&place, "must be a number of rows, from 1");
    }
    Some(most.unwrap_or(u64::MAX))
}

fn bytes(Spanned { value: Size(most), place }: Spanned<Size>, faults: &mut Faults) -> u64 {
    if most == 0 {
        faults.add(&place, "must be at least a byte");
    }
    most
}
