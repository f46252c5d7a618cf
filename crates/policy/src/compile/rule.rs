//! One of `rules`.

use std::sync::Arc;
use std::time::Duration;

use admission::{GateKey, Mode, OnRefusedCheck, OnTimeout, Ratio, RuleKey, Speed, Terms};
use sql::{Class, ClassSet};

use super::checks::{MODES, duration, keyword, list, name, whole};
use super::classes::{
    Delayable, are_known, check_agreement, check_default, compile_classes, expand, whatever_changes,
};
use super::context::Context;
use super::matching::compile_match;
use super::{error_profile, limits, runaway, schedule};
use crate::cluster::Probe;
use crate::condition::Condition;
use crate::fault::{Faults, Place};
use crate::raw::{self, Maybe, OneOrMany, Spanned};
use crate::rule::{Action, GateFrom, Gated, OnClientGone, RefusalProfile, Rule, rule_key};
use crate::runaway::{Runaway, RunawayAction};
use crate::schedule::Schedule;
use crate::time::UnixTime;

/// A rule before it is told to which cluster it belongs: its gate and its mode may be the
/// cluster's.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) place: Place,
    pub(super) name: Arc<str>,
    pub(super) key: RuleKey,
    pub(super) gate: Maybe<OneOrMany<String>>,
    /// `None`: every cluster.
    clusters: Option<Vec<String>>,
    pub(super) condition: Arc<Condition>,
    pub(super) statements: ClassSet,
    kind: Kind,
    terms: Terms,
    speed: Speed,
    mode: Option<Mode>,
    error: RefusalProfile,
    honour_priority: bool,
    schedule: Option<Arc<Schedule>>,
    on_client_gone: OnClientGone,
    client_gone_place: Option<Place>,
    runaway: Option<Runaway>,
    runaway_place: Option<Place>,
    expires_at: Option<UnixTime>,
    essential: bool,
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Throttle,
    Exempt,
    Deny,
}

impl Draft {
    /// Whether the rule is in force for this cluster.
    pub(super) fn is_for(&self, cluster: &str) -> bool {
        self.clusters.as_ref().is_none_or(|names| names.iter().any(|name| name == cluster))
    }

    /// Whether statements that it matches are let pass.
    pub(super) fn exempts(&self) -> bool {
        match self.kind {
            Kind::Exempt => true,
            Kind::Throttle | Kind::Deny => false,
        }
    }

    /// A query that is killed is killed over the probe's account.
    pub(super) fn check_kill(&self, cluster: &str, probe: Option<&Probe>, faults: &mut Faults) {
        let is_killed = match self.on_client_gone {
            OnClientGone::Kill => true,
            OnClientGone::Close | OnClientGone::Finish => false,
        };
        let message =
            format!("the query is killed over the probe's account: `{cluster}` has no `probe`");
        let of_cluster = Place { path: format!("clusters.{cluster}"), line: 0 };
        let kills = self.runaway.is_some_and(|runaway| runaway.action == RunawayAction::Kill);
        if let Some(place) = self.runaway_place.as_ref().filter(|_| kills && probe.is_none()) {
            faults.add_unless_of((&of_cluster, &["probe"]), place, message.clone());
        }
        if let Some(place) =
            self.client_gone_place.as_ref().filter(|_| is_killed && probe.is_none())
        {
            faults.add_unless_of((&of_cluster, &["probe"]), place, message);
        }
    }

    /// The rule of one cluster.
    pub(super) fn rule(
        &self,
        index: u32,
        gate: GateKey,
        gate_is_always_open: bool,
        mode: Mode,
    ) -> Rule {
        let mode = self.mode.unwrap_or(mode);
        let terms = Terms { mode, ..self.terms };
        let asks = !gate_is_always_open
            || terms.hold
            || terms.ratio != Ratio::ZERO
            || !self.speed.is_full()
            || terms.max_rate.is_some()
            || terms.max_in_flight.is_some();
        let gated = if asks { Gated::Yes } else { Gated::No };
        let action = match self.kind {
            Kind::Throttle => Action::Throttle { terms, gate, gated },
            Kind::Exempt => Action::Exempt,
            Kind::Deny => Action::Deny,
        };
        Rule {
            name: self.name.clone(),
            key: self.key,
            index,
            condition: self.condition.clone(),
            statements: self.statements,
            action,
            gate_from: if self.gate.is_some() { GateFrom::Rule } else { GateFrom::Cluster },
            speed: self.speed,
            mode,
            error: self.error.clone(),
            honour_priority: self.honour_priority,
            schedule: self.schedule.clone(),
            on_client_gone: self.on_client_gone,
            runaway: self.runaway,
            expires_at: self.expires_at,
            essential: self.essential,
            author: None,
            reason: self.reason.clone(),
        }
    }
}

pub(super) fn compile(
    rule: Spanned<raw::Rule>,
    context: &Context<'_>,
    faults: &mut Faults,
) -> Draft {
    let Spanned { value: mut raw, place } = rule;
    let kind = compile_kind(&raw, &place, faults);
    check_ineffective(&raw, kind, faults);
    if let Some(rule_name) = &raw.name {
        name(&rule_name.value, &rule_name.place, faults);
    }
    let rule_name: Arc<str> = raw.name.take().map(|name| name.value).unwrap_or_default().into();
    let statements = compile_statements(&raw, kind, &place, faults);
    let (condition, clusters) = compile_match(raw.conditions.take(), context, faults);
    let default_error = match kind {
        Kind::Deny => RefusalProfile::quota(),
        Kind::Throttle | Kind::Exempt => RefusalProfile::retryable(),
    };
    let expires_at = compile_expiry(&mut raw, kind, &place, faults);
    Draft {
        key: rule_key(&rule_name),
        name: rule_name,
        gate: raw.gate.take(),
        clusters,
        condition: Arc::new(condition),
        statements,
        kind,
        mode: raw.mode.take().map(|mode| keyword(Some(mode), Mode::Enforce, &MODES, faults)),
        error: error_profile::compile(raw.error.take(), default_error, faults),
        honour_priority: is_set(&raw.honour_priority),
        schedule: raw
            .schedule
            .take()
            .map(|schedule| Arc::new(schedule::compile(schedule, context.zones, faults))),
        runaway_place: raw.runaway.as_ref().map(|runaway| runaway.place.clone()),
        runaway: raw.runaway.take().map(|runaway| runaway::compile(runaway, faults)),
        client_gone_place: raw.on_client_gone.as_ref().map(|word| word.place.clone()),
        on_client_gone: keyword(
            raw.on_client_gone.take(),
            OnClientGone::default(),
            &CLIENT_GONE,
            faults,
        ),
        expires_at,
        essential: is_set(&raw.essential),
        reason: compile_reason(raw.reason.take(), faults),
        speed: compile_speed(&raw, faults),
        terms: compile_terms(raw, &place, faults),
        place,
    }
}

const CLIENT_GONE: [(&str, OnClientGone); 3] = [
    ("close", OnClientGone::Close),
    ("kill", OnClientGone::Kill),
    ("finish", OnClientGone::Finish),
];

fn is_set(flag: &Maybe<bool>) -> bool {
    flag.as_ref().is_some_and(|flag| flag.value)
}

fn compile_kind(raw: &raw::Rule, place: &Place, faults: &mut Faults) -> Kind {
    let flags = [("exempt", &raw.exempt), ("deny", &raw.deny), ("hold", &raw.hold)];
    let set: Vec<&str> =
        flags.iter().filter(|(_, flag)| is_set(flag)).map(|(name, _)| *name).collect();
    if set.len() > 1 {
        let names = list(set.iter());
        faults.add(place, format!("{names} contradict each other"));
    }
    if is_set(&raw.exempt) {
        Kind::Exempt
    } else if is_set(&raw.deny) {
        Kind::Deny
    } else {
        Kind::Throttle
    }
}

/// Keys that do nothing on a rule that exempts or denies would look as if they did.
fn check_ineffective(raw: &raw::Rule, kind: Kind, faults: &mut Faults) {
    let what = match kind {
        Kind::Throttle => return,
        Kind::Exempt => "exempt",
        Kind::Deny => "deny",
    };
    let place = |value: &Maybe<()>| value.as_ref().map(|value| value.place.clone());
    let of_exempt = [erase(&raw.statements), erase(&raw.error)];
    let of_both = [
        erase(&raw.ratio),
        erase(&raw.speed),
        erase(&raw.gate),
        erase(&raw.max_delay),
        erase(&raw.on_refused_check),
        erase(&raw.on_timeout),
        erase(&raw.max_queue),
        erase(&raw.weight),
        erase(&raw.min_rate),
        erase(&raw.max_rate),
        erase(&raw.max_in_flight),
        erase(&raw.honour_priority),
    ];
    let of_exempt = of_exempt.iter().filter(|_| kind == Kind::Exempt);
    for place in of_exempt.chain(&of_both).filter_map(place) {
        faults.add(&place, format!("has no effect together with `{what}`"));
    }
}

fn erase<T>(value: &Maybe<T>) -> Maybe<()> {
    value.as_ref().map(|value| Spanned { value: (), place: value.place.clone() })
}

/// The classes that the rule covers; what it matches must be the same, or the difference would pass
/// and be seen by no later rule.
fn compile_statements(raw: &raw::Rule, kind: Kind, place: &Place, faults: &mut Faults) -> ClassSet {
    let matched = raw.conditions.as_ref().and_then(|matched| matched.value.statements.as_ref());
    let covered = match (&raw.statements, kind) {
        (Some(classes), _) => compile_classes(classes, Delayable::Only, faults),
        (None, Kind::Deny) => whatever_changes(),
        (None, Kind::Throttle | Kind::Exempt) => expand(Class::Write),
    };
    let Some(matched) = matched else { return covered };
    let in_match = place.key("match", place.line);
    let is_unsure = faults.is_about(place, &SAYS_WHAT_IS_COVERED)
        || faults.is_about(&in_match, &["statements"])
        || ![Some(matched), raw.statements.as_ref()].into_iter().flatten().all(are_known);
    if is_unsure {
        return covered;
    }
    match (kind, &raw.statements) {
        (Kind::Exempt, _) => {}
        (Kind::Throttle, None) if lets_pass(raw) => {}
        (Kind::Throttle | Kind::Deny, Some(named)) => check_agreement(matched, named, faults),
        (Kind::Throttle | Kind::Deny, None) => check_default(matched, covered, faults),
    }
    covered
}

/// What cannot be read of these may have said that a rule covers what it matches.
const SAYS_WHAT_IS_COVERED: [&str; 9] =
    ["statements", "exempt", "deny", "hold", "gate", "ratio", "speed", "max_rate", "max_in_flight"];

/// Whether the rule holds nothing back, and says so.
fn lets_pass(raw: &raw::Rule) -> bool {
    let says_none = |gate: &Spanned<OneOrMany<String>>| matches!(gate.value.0.as_slice(), [signal] if signal.value == "none");
    let is = |number: &Maybe<f64>, neutral: f64| {
        number.as_ref().is_none_or(|number| (number.value - neutral).abs() < f64::EPSILON)
    };
    raw.gate.as_ref().is_some_and(says_none)
        && is(&raw.ratio, 0.0)
        && is(&raw.speed, 1.0)
        && !is_set(&raw.hold)
        && raw.max_rate.is_none()
        && raw.max_in_flight.is_none()
}

fn compile_terms(mut raw: raw::Rule, place: &Place, faults: &mut Faults) -> Terms {
    let (min_rate, max_rate) = compile_rates(&mut raw, place, faults);
    let refused = [("delay", OnRefusedCheck::Delay), ("reject", OnRefusedCheck::Reject)];
    let timeout = [("reject", OnTimeout::Reject), ("admit", OnTimeout::Admit)];
    let max_delay: Duration = duration(raw.max_delay, limits::MAX_DELAY, faults);
    Terms {
        ratio: compile_ratio(raw.ratio, faults),
        weight: whole(raw.weight, limits::WEIGHT, faults),
        max_delay,
        on_refused_check: keyword(raw.on_refused_check, OnRefusedCheck::Delay, &refused, faults),
        on_timeout: keyword(raw.on_timeout, OnTimeout::Reject, &timeout, faults),
        queue_len_max: whole(raw.max_queue, limits::MAX_QUEUE, faults),
        hold: is_set(&raw.hold),
        mode: Mode::Enforce,
        min_rate,
        max_rate,
        max_in_flight: raw.max_in_flight.map(|most| whole(Some(most), limits::RATE, faults)),
    }
}

/// A floor and a cap in rows a second.
fn compile_rates(
    raw: &mut raw::Rule,
    place: &Place,
    faults: &mut Faults,
) -> (Option<u32>, Option<u32>) {
    let min_place = raw.min_rate.as_ref().map(|rate| rate.place.clone());
    let mut rate = |rate: Maybe<i128>| rate.map(|rate| whole(Some(rate), limits::RATE, faults));
    let rates = (rate(raw.min_rate.take()), rate(raw.max_rate.take()));
    if let ((Some(least), Some(most)), Some(min_place)) = (rates, min_place)
        && least > most
    {
        let message = "must not be above `max_rate`";
        faults.add_unless_of((place, &["min_rate", "max_rate"]), &min_place, message);
    }
    rates
}

fn compile_ratio(ratio: Maybe<f64>, faults: &mut Faults) -> Ratio {
    let Some(Spanned { value, place }) = ratio else { return Ratio::ZERO };
    Ratio::new(value).unwrap_or_else(|| {
        faults.add(&place, format!("{value} is not a probability: must be from 0 to 1"));
        Ratio::ZERO
    })
}

fn compile_speed(raw: &raw::Rule, faults: &mut Faults) -> Speed {
    let Some(Spanned { value, place }) = &raw.speed else { return Speed::FULL };
    let speed = Speed::new(*value);
    if *value == 0.0 {
        faults.add(place, "nothing runs at speed 0: that is `hold: true`");
    } else if speed.is_none() {
        faults.add(place, format!("{value} is no part of a speed: must be above 0, and up to 1"));
    }
    let never_waits = raw.max_delay.as_ref().is_some_and(|delay| delay.value.is_zero());
    if never_waits && speed.is_some_and(|speed| !speed.is_full()) {
        faults.add(place, "has no effect with `max_delay: 0s`, which is the longest pause");
    }
    speed.unwrap_or(Speed::FULL)
}

pub(super) fn compile_reason(reason: Maybe<String>, faults: &mut Faults) -> String {
    let Some(Spanned { value, place }) = reason else { return String::new() };
    if value.len() > limits::REASON_LEN_MAX {
        faults.add(&place, format!("longer than {} bytes", limits::REASON_LEN_MAX));
    }
    value
}

fn compile_expiry(
    raw: &mut raw::Rule,
    kind: Kind,
    place: &Place,
    faults: &mut Faults,
) -> Option<UnixTime> {
    let permanent = is_set(&raw.permanent);
    let Some(Spanned { value, place: expiry_place }) = raw.expires_at.take() else {
        if !permanent {
            let message = "every rule ends: `expires_at` or `permanent: true` is missing";
            faults.add_unless_of((place, &["expires_at", "permanent"]), place, message);
        } else if kind == Kind::Exempt && !is_set(&raw.essential) {
            let message = "an exempt rule may be permanent only if it also says `essential: true`";
            faults.add_unless_of((place, &["essential"]), place, message);
        }
        return None;
    };
    if permanent {
        faults.add(&expiry_place, "a permanent rule does not expire");
    }
    match value.parse::<UnixTime>() {
        Ok(time) => Some(time),
        Err(no_time) => {
            faults.add(&expiry_place, no_time.to_string());
            None
        }
    }
}
