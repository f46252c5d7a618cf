//! One of `budgets`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{BudgetTerms, Mode, OnExceeded};
use sql::Class;

use super::checks::{duration, keyword, list, name};
use super::context::Context;
use super::limits;
use super::matching::compile_match;
use crate::budget::{Budget, Per, budget_key};
use crate::condition::Condition;
use crate::fault::{Faults, Place};
use crate::raw::{self, Level, Maybe, Spanned};

/// A budget before it is told to which cluster it belongs.
#[derive(Debug)]
pub(super) struct BudgetDraft {
    name: Arc<str>,
    /// `None`: every cluster.
    clusters: Option<Vec<String>>,
    condition: Arc<Condition>,
    terms: BudgetTerms,
    per: Option<Per>,
    reason: Arc<str>,
}

/// All of them.
pub(super) fn compile(
    budgets: Maybe<Vec<Spanned<raw::Budget>>>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Vec<BudgetDraft> {
    let mut lines: HashMap<String, u32> = HashMap::new();
    let mut keys: HashMap<u64, String> = HashMap::new();
    let mut drafts = Vec::new();
    let budgets = budgets.map(|budgets| budgets.value).unwrap_or_default();
    if budgets.len() > limits::BUDGETS_MAX {
        let place = budgets.last().map(|budget| budget.place.clone()).unwrap_or_default();
        faults.add(&place, format!("more than {} budgets", limits::BUDGETS_MAX));
        return drafts;
    }
    for budget in budgets {
        let place = budget.place.clone();
        let draft = compile_one(budget, context, faults);
        let name = draft.name.to_string();
        let at = place.key("name", place.line);
        if name.is_empty() {
            // It has a fault for that.
        } else if let Some(line) = lines.insert(name.clone(), place.line) {
            faults.add(&at, format!("the budget on line {line} has the same name, `{name}`"));
        } else if let Some(other) = keys.insert(budget_key(&name).0, name) {
            faults.add(&at, format!("rename the budget: its key collides with that of `{other}`"));
        }
        drafts.push(draft);
    }
    drafts
}

/// Those of one cluster. Where everything only observes, so do they.
pub(super) fn of_cluster(drafts: &[BudgetDraft], cluster: &str, mode: Mode) -> Vec<Budget> {
    let is_for = |draft: &&BudgetDraft| {
        draft.clusters.as_ref().is_none_or(|names| names.iter().any(|name| name == cluster))
    };
    let budget = |(index, draft): (u32, &BudgetDraft)| {
        let mode = match mode {
            Mode::Enforce => draft.terms.mode,
            Mode::Observe => Mode::Observe,
        };
        Budget {
            name: draft.name.clone(),
            key: budget_key(&draft.name),
            index,
            condition: draft.condition.clone(),
            terms: BudgetTerms { mode, ..draft.terms },
            per: draft.per.clone(),
            reason: draft.reason.clone(),
        }
    };
    (0_u32..).zip(drafts.iter().filter(is_for)).map(budget).collect()
}

fn compile_one(
    Spanned { value: raw, place }: Spanned<raw::Budget>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> BudgetDraft {
    if let Some(named) = &raw.name {
        name(&named.value, &named.place, faults);
    }
    let (condition, clusters) = compile_match(raw.conditions, context, faults);
    let is_held = |class: &Class| class.is_gateable() && condition.allows_class(*class);
    if !Class::ALL.iter().any(is_held) {
        let message = "nothing may hold back statements of these classes: it meets none";
        faults.add_unless_of((&place, &["match"]), &place, message);
    }
    let share = amount(raw.share, limits::SHARE_MAX, faults);
    let burst_place = raw.burst.as_ref().map(|burst| burst.place.clone());
    let burst = seconds(raw.burst, faults);
    if let Some(burst_place) = burst_place.filter(|_| share.is_none()) {
        let message = "`burst` is how much may be owed to `share`, which is missing";
        faults.add_unless_of((&place, &["share"]), &burst_place, message);
    }
    let terms = BudgetTerms {
        max_concurrency: raw.max_concurrency.map(|most| count(&most, faults)),
        rate: amount(raw.rate, limits::AMOUNT_MAX, faults),
        rows_per_s: amount(raw.rows_per_s, limits::AMOUNT_MAX, faults),
        share,
        // What is drained in a second.
        burst: burst.or(share).unwrap_or_default(),
        max_query_cost: seconds(raw.max_query_cost, faults),
        on_exceeded: keyword(raw.on_exceeded, OnExceeded::Delay, &EXCEEDED, faults),
        max_delay: duration(raw.max_delay, limits::BUDGET_MAX_DELAY, faults),
        mode: keyword(raw.mode, Mode::Enforce, &MODES, faults),
    };
    check_limits(&terms, &place, faults);
    BudgetDraft {
        name: raw.name.map(|name| name.value).unwrap_or_default().into(),
        clusters,
        condition: Arc::new(condition),
        terms,
        per: raw.per.and_then(|per| compile_per(&per, context, faults)),
        reason: super::rule::compile_reason(raw.reason, faults).into(),
    }
}

fn check_limits(terms: &BudgetTerms, place: &Place, faults: &mut Faults) {
    let BudgetTerms { max_concurrency, rate, rows_per_s, share, max_query_cost, .. } = terms;
    let rates = [rate, rows_per_s, share, max_query_cost];
    if max_concurrency.is_none() && rates.iter().all(|rate| rate.is_none()) {
        let message = "limits nothing: one of `max_concurrency`, `rate`, `rows_per_s`, `share` and \
                       `max_query_cost` is needed";
        let limits = ["max_concurrency", "rate", "rows_per_s", "share", "max_query_cost"];
        faults.add_unless_of((place, &limits), place, message);
    }
}

fn count(most: &Spanned<i128>, faults: &mut Faults) -> u32 {
    match u32::try_from(most.value) {
        Ok(value) if (1..=limits::CONCURRENCY_MAX).contains(&value) => value,
        Ok(_) | Err(_) => {
            faults.add(&most.place, format!("must be from 1 to {}", limits::CONCURRENCY_MAX));
            1
        }
    }
}

fn amount(value: Maybe<f64>, most: f64, faults: &mut Faults) -> Option<f64> {
    let Spanned { value, place } = value?;
    if !(value >= limits::AMOUNT_MIN && value <= most) {
        faults.add(&place, format!("must be from {} to {most}", limits::AMOUNT_MIN));
    }
    Some(value)
}

/// Server-seconds: a number of them, or a duration.
fn seconds(value: Maybe<Level>, faults: &mut Faults) -> Option<f64> {
    let Spanned { value, place } = value?;
    let seconds = match value {
        Level::Number(seconds) => seconds,
        Level::Time(time) => time.as_secs_f64(),
    };
    if !(seconds >= limits::AMOUNT_MIN && Duration::try_from_secs_f64(seconds).is_ok()) {
        let message =
            "server-seconds: must be a number from 0.001, or a duration like `500ms` or `2s`";
        faults.add(&place, message);
    }
    Some(seconds)
}

fn compile_per(per: &Spanned<String>, context: &Context<'_>, faults: &mut Faults) -> Option<Per> {
    let Spanned { value, place } = per;
    if let Some(key) = value.strip_prefix("tag:") {
        if key.is_empty() {
            faults.add(place, "`tag:` is followed by the tag's key, as in `tag:tenant`");
        }
        if key.len() > limits::PATTERN_LEN_MAX {
            faults.add(place, format!("a key has at most {} bytes", limits::PATTERN_LEN_MAX));
        }
        if context.identity.app_key_rank(key.as_bytes()).is_some() {
            faults.add(place, format!("`{key}` names the app (`identity.keys`): use `app`"));
        }
        return Some(Per::Tag(key.as_bytes().into()));
    }
    let per = match value.as_str() {
        "app" => Per::App,
        "user" => Per::User,
        "client" => Per::Client,
        "digest" => Per::Digest,
        _ => {
            let words = list(["app", "user", "tag:NAME", "client", "digest"].iter());
            faults.add(place, format!("`{value}` is not one of {words}"));
            return None;
        }
    };
    Some(per)
}

/// `reject` is what rules call it (`on_refused_check`, `on_timeout`).
const EXCEEDED: [(&str, OnExceeded); 3] =
    [("delay", OnExceeded::Delay), ("refuse", OnExceeded::Refuse), ("reject", OnExceeded::Refuse)];

/// The modes of a budget; `observe` is what rules and clusters call it.
const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("warn", Mode::Observe), ("observe", Mode::Observe)];
