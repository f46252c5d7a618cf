//! One of `guards`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::Mode;
use sql::Accepts;

use super::checks::{duration, keyword, list, name, whole};
use super::context::Context;
use super::limits;
use super::matching::compile_match;
use super::{error_profile, schedule};
use crate::cluster::Probe;
use crate::condition::Condition;
use crate::fault::{Faults, Place};
use crate::guard::{Check, Guard, GuardMode, Guards, RowsExpected};
use crate::raw::{self, Maybe, OneOrMany, OrOff, Size, Spanned, on};
use crate::rule::RefusalProfile;

/// A guard before it is told to which cluster it belongs.
#[derive(Debug)]
pub(super) struct GuardDraft {
    guard: Guard,
    /// Where it asks for what only a server can tell.
    asks: Option<Place>,
    /// `None`: every cluster.
    clusters: Option<Vec<String>>,
}

/// How far a check goes; `None` is `off`.
type How = Option<GuardMode>;

const MODES: [(&str, How); 3] =
    [("off", None), ("warn", Some(GuardMode::Warn)), ("deny", Some(GuardMode::Deny))];

/// The guards of one cluster, which only warn where its rules only observe.
pub(super) fn guards_of(drafts: &[GuardDraft], cluster: &str, mode: Mode) -> Guards {
    let guards = drafts.iter().filter(|draft| draft.is_for(cluster)).map(|draft| match mode {
        Mode::Enforce => draft.guard.clone(),
        Mode::Observe => draft.guard.clone().warning(),
    });
    Guards::new(guards.collect())
}

/// Who asks the server does so over the probe's account.
pub(super) fn check_probe(
    drafts: &[GuardDraft],
    cluster: &str,
    probe: Option<&Probe>,
    faults: &mut Faults,
) {
    let asking = drafts.iter().filter(|draft| probe.is_none() && draft.is_for(cluster));
    for place in asking.filter_map(|draft| draft.asks.as_ref()) {
        let message =
            format!("the server is asked over the probe's account: `{cluster}` has no `probe`");
        let of_cluster = Place { path: format!("clusters.{cluster}"), line: 0 };
        faults.add_unless_of((&of_cluster, &["probe"]), place, message);
    }
}

impl GuardDraft {
    fn is_for(&self, cluster: &str) -> bool {
        self.clusters.as_ref().is_none_or(|names| names.iter().any(|name| name == cluster))
    }
}

pub(super) fn compile_all(
    guards: Maybe<Vec<Spanned<raw::Guard>>>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Vec<GuardDraft> {
    let mut lines: HashMap<Arc<str>, u32> = HashMap::new();
    let mut drafts = Vec::new();
    let guards = guards.map(|guards| guards.value).unwrap_or_default();
    if guards.len() > limits::GUARDS_MAX {
        let place = guards.last().map(|guard| guard.place.clone()).unwrap_or_default();
        faults.add(&place, format!("more than {} guards", limits::GUARDS_MAX));
        return drafts;
    }
    for guard in guards {
        let place = guard.place.clone();
        let draft = compile(guard, context, faults);
        // Without a name it has a fault for that.
        let name = Some(&draft.guard.name).filter(|name| !name.is_empty());
        if let Some(line) = name.and_then(|name| lines.insert(name.clone(), place.line)) {
            let message =
                format!("the guard on line {line} has the same name, `{}`", draft.guard.name);
            faults.add(&place.key("name", place.line), message);
        }
        drafts.push(draft);
    }
    drafts
}

fn compile(guard: Spanned<raw::Guard>, context: &Context<'_>, faults: &mut Faults) -> GuardDraft {
    let Spanned { value: mut raw, place } = guard;
    if let Some(guard_name) = &raw.name {
        name(&guard_name.value, &guard_name.place, faults);
    }
    let guard_name: Arc<str> = raw.name.take().map(|name| name.value).unwrap_or_default().into();
    let (condition, clusters) = compile_match(raw.conditions.take(), context, faults);
    let error = error_profile::compile(raw.error.take(), RefusalProfile::quota(), faults);
    let reason = super::rule::compile_reason(raw.reason.take(), faults);
    let asks = raw.max_rows_expected.as_ref().filter(|most| !most.value.is_off());
    let asks = asks.map(|most| most.place.clone());
    let checks = compile_checks(raw, &place, context, faults);
    let condition: Arc<Condition> = Arc::new(condition);
    let guard = Guard { name: guard_name, condition, checks, error, reason };
    GuardDraft { guard, asks, clusters }
}

fn compile_checks(
    raw: raw::Guard,
    place: &Place,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Vec<(Check, GuardMode)> {
    let names_none = raw.names_no_check();
    let most = keyword(raw.mode, Some(GuardMode::Deny), &MODES, faults);
    let accepts = compile_accepts(
        &raw.where_required,
        (raw.limit_counts, raw.constant_counts),
        place,
        faults,
    );
    let mut checks: Vec<(Check, How)> = Vec::new();
    let mut add = |check: Check, how: How| checks.push((check, how));
    if let Some(word) = raw.where_required {
        add(Check::WhereRequired(accepts), keyword(Some(word), None, &MODES, faults));
    }
    if let Some(word) = raw.no_cross_join {
        add(Check::NoCrossJoin, keyword(Some(word), None, &MODES, faults));
    }
    let deny = Some(GuardMode::Deny);
    if let Some(len) = on(raw.max_in_list) {
        add(Check::MaxInList(whole(Some(len), limits::MAX_IN_LIST, faults)), deny);
    }
    if let Some(len) = on(raw.max_statement_bytes) {
        let Spanned { value: Size(most), place } = len;
        if !(1..=limits::MAX_STATEMENT_BYTES).contains(&most) {
            faults.add(&place, "must be from 1 byte to 1GiB, the most that a packet may have");
        }
        add(Check::MaxStatementBytes(most), deny);
    }
    if let Some(keys) = on(raw.require_tag) {
        add(Check::RequireTag(compile_tags(keys, context, faults)), deny);
    }
    if let Some(hours) = on(raw.no_ddl_hours) {
        let schedule = schedule::compile(hours, context.zones, faults);
        add(Check::NoDdlHours(Arc::new(schedule)), deny);
    }
    let expected = (raw.max_rows_expected, raw.explain_timeout);
    if let Some(expected) = compile_expected(expected, place, faults) {
        add(Check::MaxRowsExpected(expected), deny);
    }
    if names_none {
        let message = format!("guards nothing: name at least one of {}", list(CHECKS.iter()));
        faults.add_unless_of((place, &CHECKS), place, message);
    }
    let in_force = checks.into_iter().filter_map(|(check, how)| Some((check, how?.min(most?))));
    in_force.collect()
}

/// What a guard may check.
const CHECKS: [&str; 7] = [
    "where_required",
    "no_cross_join",
    "max_in_list",
    "max_statement_bytes",
    "max_rows_expected",
    "require_tag",
    "no_ddl_hours",
];

fn compile_expected(
    (most, timeout): (Maybe<OrOff<i128>>, Maybe<Duration>),
    guard: &Place,
    faults: &mut Faults,
) -> Option<RowsExpected> {
    if let (None, Some(timeout)) = (&most, &timeout) {
        let message = "has no effect without `max_rows_expected`";
        faults.add_unless_of((guard, &["max_rows_expected"]), &timeout.place, message);
    }
    let Spanned { value, place } = on(most)?;
    let most = u64::try_from(value).ok().filter(|most| *most > 0);
    if most.is_none() {
        faults.add(&place, "must be a number of rows, from 1");
    }
    let timeout = duration(timeout, limits::EXPLAIN_TIMEOUT, faults);
    Some(RowsExpected { most: most.unwrap_or(u64::MAX), timeout })
}

fn compile_accepts(
    guards: &Maybe<String>,
    (limit, constant): (Maybe<bool>, Maybe<bool>),
    guard: &Place,
    faults: &mut Faults,
) -> Accepts {
    for key in [&limit, &constant].into_iter().flatten().filter(|_| guards.is_none()) {
        let message = "has no effect without `where_required`";
        faults.add_unless_of((guard, &["where_required"]), &key.place, message);
    }
    let is_set = |key: Maybe<bool>| key.is_some_and(|key| key.value);
    Accepts { limit: is_set(limit), constant: is_set(constant) }
}

fn compile_tags(
    keys: Spanned<OneOrMany<String>>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Arc<[Box<[u8]>]> {
    let Spanned { value: OneOrMany(keys), place } = keys;
    if keys.is_empty() || keys.len() > limits::GUARD_TAGS_MAX {
        faults.add(&place, format!("must be from 1 to {} keys", limits::GUARD_TAGS_MAX));
    }
    for Spanned { value, place } in &keys {
        if context.identity.app_key_rank(value.as_bytes()).is_some() {
            let message = format!(
                "`{value}` names the app (`identity.keys`), which every statement has: match the \
                 app that nobody has named instead"
            );
            faults.add(place, message);
        } else {
            name(value, place, faults);
        }
    }
    keys.into_iter().map(|key| key.value.into_bytes().into()).collect()
}
