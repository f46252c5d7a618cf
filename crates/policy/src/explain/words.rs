//! What a rule does, in words.

use admission::{Mode, OnRefusedCheck, OnTimeout, Ratio, Terms};
use sql::Class;

use crate::cluster::{ClusterPolicy, Signal, SignalKind};
use crate::compile::limits::show;
use crate::rule::{Action, Gated, Rule, Standing};
use crate::schedule::Schedule;
use crate::time::UnixTime;

/// How far it is looked for the end of a schedule's hours: they come again each week.
const SCHEDULE_AHEAD_S: i64 = 8 * 86_400;

/// What the rule does with statements that it matches.
pub(super) fn does(policy: &ClusterPolicy, rule: &Rule) -> String {
    let classes = classes(rule);
    let does = match rule.action {
        Action::Exempt => "lets everything pass, and counts it".to_owned(),
        Action::Deny => {
            format!("refuses {classes} always, with errno {}", rule.error.errno)
        }
        Action::Throttle { gated: Gated::No, .. } => {
            "lets everything pass: it has no gate, no ratio, no speed and no hold".to_owned()
        }
        Action::Throttle { terms, .. } if terms.hold => {
            format!("holds {classes}: nothing is admitted; {}", fate(&terms))
        }
        Action::Throttle { terms, gate, gated: Gated::Yes } => {
            let signals: Vec<&Signal> = policy.gate_signals(gate).collect();
            let checks = checks(policy, rule, &terms, &signals);
            format!("delays {classes}: {checks}; {}", fate(&terms))
        }
    };
    let runaway = rule.runaway.map(|runaway| format!("; runaway {}", runaway.in_words()));
    let does = does + &runaway.unwrap_or_default();
    match rule.mode {
        Mode::Enforce => does,
        Mode::Observe => format!("only counts what it would do: {does}"),
    }
}

/// The same, with the `runaway` of the file's rule that watches behind one made at runtime.
pub(super) fn does_behind(policy: &ClusterPolicy, rule: &Rule, watching: Option<&Rule>) -> String {
    let does = does(policy, rule);
    let behind = watching.filter(|watching| watching.index != rule.index);
    match behind.and_then(|behind| Some((behind, behind.runaway?))) {
        Some((behind, runaway)) => {
            format!("{does}; runaway {}, as rule {} says", runaway.in_words(), behind.name)
        }
        None => does,
    }
}

/// The classes that the rule can hold back, of those that it matches.
fn classes(rule: &Rule) -> String {
    let held =
        |class: &Class| rule.statements.contains(*class) && rule.condition.allows_class(*class);
    let classes: Vec<&str> = Class::ALL.into_iter().filter(held).map(Class::as_str).collect();
    classes.join(", ")
}

/// What a check looks at.
fn checks(policy: &ClusterPolicy, rule: &Rule, terms: &Terms, signals: &[&Signal]) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Some(speed) = rule.speed_to_expect() {
        parts.push(format!("a session {speed}, by pauses behind its work"));
    }
    if terms.ratio != Ratio::ZERO {
        let lost = terms.ratio.as_f64();
        parts.push(match terms.on_refused_check {
            OnRefusedCheck::Delay => format!(
                "a check is lost with a probability of {lost} (ratio) and repeated after {}",
                show(policy.check_interval)
            ),
            OnRefusedCheck::Reject => format!(
                "a check is lost with a probability of {lost} (ratio), and the statement is then \
                 refused at once"
            ),
        });
    }
    if let Some(caps) = rule.caps_to_expect() {
        parts.push(format!("its own limits must have room ({caps})"));
    }
    if !signals.is_empty() {
        let signals: Vec<String> = signals.iter().map(|signal| limit(policy, signal)).collect();
        let floor = rule.floor_to_expect().map(|floor| format!(" and then lets {floor} through"));
        let signals = signals.join(", ");
        parts.push(format!("the gate must be open ({signals}){}", floor.unwrap_or_default()));
    }
    parts.join(", and ")
}

fn limit(policy: &ClusterPolicy, signal: &Signal) -> String {
    let name = &signal.name;
    if !signal.kind.is_time() {
        return format!("{name} below {}", signal.close_at);
    }
    if policy.replicas.is_empty() && matches!(signal.kind, SignalKind::Lag { .. }) {
        return format!("{name}, which is open: there are no replicas");
    }
    let limit = std::time::Duration::try_from_secs_f64(signal.close_at).unwrap_or_default();
    let limit = format!("{name} below {}", show(limit));
    match policy.own_thresholds(signal) {
        None => limit,
        Some(own) => format!("{limit}, {own}"),
    }
}

/// What becomes of a statement that has waited for too long.
fn fate(terms: &Terms) -> String {
    let fate = match terms.on_timeout {
        OnTimeout::Reject => "refused",
        OnTimeout::Admit => "admitted",
    };
    if terms.max_delay.is_zero() {
        return format!("what would have to wait is {fate} at once (max_delay 0s)");
    }
    format!("after {} (max_delay) it is {fate}", show(terms.max_delay))
}

/// Until when a rule that is in force stays so; `None`: nothing that is known ends it.
pub(super) fn until(rule: &Rule, now: UnixTime) -> Option<UnixTime> {
    if rule.standing(now) != Standing::InForce {
        return None;
    }
    let ends = rule.schedule.as_ref().and_then(|schedule| hours_end(schedule, now));
    [rule.expires_at, ends].into_iter().flatten().min()
}

fn hours_end(schedule: &Schedule, now: UnixTime) -> Option<UnixTime> {
    let last = now.0.saturating_add(SCHEDULE_AHEAD_S);
    let mut at = now;
    while at.0 < last {
        at = Schedule::next_change_after(at);
        if !schedule.is_in_force(at) {
            return Some(at);
        }
    }
    None
}

/// Why a statement waits under a rule with `hold`; `None`: the rule does not hold.
pub(super) fn held(policy: &ClusterPolicy, rule: &Rule, now: UnixTime) -> Option<String> {
    let Action::Throttle { terms, gate, .. } = rule.action else { return None };
    if !terms.hold {
        return None;
    }
    let until = until(rule, now).map_or_else(
        || "the rule is lifted".to_owned(),
        |end| format!("{end}, or the rule is lifted"),
    );
    let gate: Vec<&str> = policy.gate_signals(gate).map(|signal| &*signal.name).collect();
    let gate = if gate.is_empty() { "none".to_owned() } else { gate.join(", ") };
    let (ratio, max_delay) = (terms.ratio.as_f64(), show(terms.max_delay));
    Some(format!(
        "held until {until}; from then on ratio {ratio} and gate {gate} decide. A statement waits \
         for max_delay {max_delay} at most: {}",
        fate(&terms)
    ))
}
