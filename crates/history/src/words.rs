//! The history in sentences, in the zone of who reads them.

mod times;

use std::time::Duration;

use jiff::tz::TimeZone;

pub use self::times::{Times, span};
use crate::answer::{Answer, Checks, Held, State};
use crate::record::is_usual;
use crate::record::{At, Event};

/// Sentences about intervals: more is for the table.
const HELD_MAX: usize = 8;

/// Sentences about states, and about events.
const OTHERS_MAX: usize = 8;

/// What happened, what matters most first.
#[must_use]
pub fn sentences(answer: &Answer, zone: &TimeZone) -> Vec<String> {
    let times = Times::new(answer.since, answer.until, answer.now, zone);
    let mut said = Vec::new();
    let mut longest: Vec<&Held> = answer.held.iter().collect();
    longest.sort_by(|a, b| b.lasted_s.total_cmp(&a.lasted_s));
    let further = longest.len().saturating_sub(HELD_MAX);
    longest.truncate(HELD_MAX);
    longest.sort_by_key(|held| held.began);
    said.extend(longest.iter().map(|one| held(one, &times)));
    let further = count(further).saturating_add(answer.left_out.held);
    if further > 0 {
        said.push(format!("{} more were shorter", counted(further, "time")));
    }
    if answer.held.is_empty() {
        said.push(nothing_held(answer, &times));
    }
    said.extend(checks(answer));
    let states = answer.states.iter().filter(|state| is_news(state));
    let mut states: Vec<String> = states.map(|one| state(one, &times)).collect();
    cut(&mut states, answer.left_out.states, "state");
    said.extend(states);
    let mut events: Vec<String> = answer.events.iter().map(|one| event(one, &times)).collect();
    cut(&mut events, answer.left_out.events, "change");
    said.extend(events);
    for gap in &answer.kept.gaps {
        let (began, ended) = (times.show(gap.began), times.show(gap.ended));
        let why = if gap.clock_set { "the clock was set" } else { "no Sluice ran here" };
        said.push(format!("nothing was recorded {began}–{ended}: {why}"));
    }
    if answer.kept.since > answer.since {
        said.push(format!("the history begins at {}", times.show(answer.kept.since)));
    }
    if let Some(trouble) = &answer.kept.trouble {
        said.push(format!("not all of it is told: {trouble}"));
    }
    said
}

/// The last ones stay; so many have not come this far.
fn cut(sentences: &mut Vec<String>, left_out: u64, what: &str) {
    let further = sentences.len().saturating_sub(OTHERS_MAX);
    sentences.drain(..further);
    let further = count(further).saturating_add(left_out);
    if further > 0 {
        sentences.insert(0, format!("{} before these", counted(further, what)));
    }
}

/// Those who ask over HTTP.
fn checks(answer: &Answer) -> Option<String> {
    let Checks { asked, passed, refused, refused_by } = &answer.checks;
    if *asked == 0 {
        return None;
    }
    let who = answer.app.as_deref().unwrap_or("who asks");
    let came = counted(*asked, "time");
    if *refused == 0 {
        return Some(format!("{who} asked {came} over HTTP, and was told to go on"));
    }
    let mut reasons: Vec<(&String, &u64)> = refused_by.iter().collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let reasons: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{reason} {}", figures(**count))).collect();
    Some(format!(
        "{who} asked {came} over HTTP: {} told to go on, {} not to ({})",
        figures(*passed),
        figures(*refused),
        reasons.join(", ")
    ))
}

fn nothing_held(answer: &Answer, times: &Times) -> String {
    let who = answer.app.as_deref().unwrap_or("any app");
    // Of the time before the history nobody can say that nothing came.
    let since = answer.since.max(answer.kept.since);
    if since >= answer.until {
        let time = times.between(answer.since, Some(answer.until));
        return format!("nothing is kept of {time}");
    }
    let time = times.between(since, Some(answer.until));
    let asked = answer.total.asked;
    if asked == 0 {
        return match &answer.app {
            Some(app) => format!(
                "no statement of {app} came {time}; `sluice status` lists the apps that have come"
            ),
            None => format!("no statement came {time}"),
        };
    }
    let passed = counted(answer.total.admitted, "statement");
    let observed = match answer.total.observed {
        0 => String::new(),
        some => format!("; {} would have been, and were only observed", figures(some)),
    };
    format!("nothing of {who} was held {time}: {passed} passed{observed}")
}

fn held(held: &Held, times: &Times) -> String {
    let Held { app, began, ended, .. } = held;
    let when = match ended {
        Some(_) => format!("was {} {}", verb(&held.reason), times.between(*began, *ended)),
        None => {
            let lasted = span(Duration::try_from_secs_f64(held.lasted_s).unwrap_or_default());
            let began = times.show(*began);
            format!("has been {} since {began}, for {lasted}", verb(&held.reason))
        }
    };
    let mut text = format!("{app} {when}: {}", cause(held));
    if let Some(besides) = besides(held) {
        text.push_str(&format!(", and {besides}"));
    }
    let waited = match (held.delayed, held.refused) {
        (0, 0) => None,
        (0, refused) => Some(format!("{} refused", were(refused, "statement"))),
        (delayed, 0) => Some(waits(delayed, held.wait_max_s)),
        (delayed, refused) => {
            let were = if refused == 1 { "was" } else { "were" };
            let waits = waits(delayed, held.wait_max_s);
            Some(format!("{waits}, {} {were} refused", figures(refused)))
        }
    };
    if let Some(waited) = waited {
        text.push_str(&format!("; {waited}"));
    }
    if let Some(first) = held.meanwhile.first() {
        let percent = (first.share * 100.0).round();
        text.push_str(&format!("; meanwhile {} wrote {percent} % of the rows", first.app));
    }
    text
}

fn waits(delayed: u64, longest_s: f64) -> String {
    let longest = quantity(longest_s, "s");
    format!("{} waited {longest} at most", counted(delayed, "statement"))
}

fn were(count: u64, what: &str) -> String {
    let were = if count == 1 { "was" } else { "were" };
    format!("{} {were}", counted(count, what))
}

const fn verb(reason: &str) -> &'static str {
    match reason.as_bytes() {
        b"deny" => "denied",
        b"paced" | b"ratio" => "slowed down",
        _ => "held",
    }
}

/// Of that which shut only for a part of the time, what held it in the rest.
fn besides(held: &Held) -> Option<String> {
    let is_part = held.signal.is_some() && held.shut_s < held.lasted_s * MOST;
    let rule = &held.rule;
    match held.besides.as_deref().filter(|_| is_part)? {
        "ratio" => Some(format!("the dice of rule {rule}")),
        "paced" => Some(format!("the pace (rule {rule})")),
        _ => None,
    }
}

/// A cause that lasted for this part of an interval is told as that of all of it.
const MOST: f64 = 0.8;

/// Why, in words.
fn cause(held: &Held) -> String {
    let rule = &held.rule;
    let made = match (&held.author, &*held.because) {
        (Some(author), "") => format!(" ({author} made it)"),
        (Some(author), because) => format!(" ({author} made it: {because})"),
        (None, "") => String::new(),
        (None, because) => format!(" ({because})"),
    };
    let signal = held.signal.as_deref().unwrap_or("a signal");
    let shut = span(Duration::try_from_secs_f64(held.shut_s).unwrap_or_default());
    match &*held.reason {
        "gate_closed" => match (held.highest, held.threshold) {
            (Some(highest), Some(threshold)) => {
                let at = match (&held.server, signal) {
                    (Some(server), "lag") => format!(" at replica {server}"),
                    (Some(server), _) => format!(" at {server}"),
                    (None, _) => String::new(),
                };
                let (highest, threshold) =
                    (quantity(highest, &held.unit), quantity(threshold, &held.unit));
                let lasted = if held.shut_s > 0.0 { format!(" for {shut}") } else { String::new() };
                format!("{signal} {highest}{at} (over {threshold}{lasted})")
            }
            (Some(_) | None, _) => format!("{signal} was over its threshold"),
        },
        "no_data" => format!("{signal} had no data (for {shut})"),
        "hold" => format!("rule {rule} held everything of it{made}"),
        "deny" => format!("rule {rule} denies it{made}"),
        "ratio" => format!("the dice of rule {rule}{made}"),
        "paced" => paced(held),
        "guard" if held.guard.is_some() => {
            format!("guard {}", held.guard.as_deref().unwrap_or_default())
        }
        "queue_full" => format!("as many waited as max_queue of rule {rule} allows"),
        "shutdown" => "Sluice was shutting down".to_owned(),
        other => match &held.budget {
            Some(budget) => by_budget(budget, other),
            None => format!("{other} (rule {rule})"),
        },
    }
}

fn paced(held: &Held) -> String {
    let rule = &held.rule;
    match held.limit.as_deref() {
        Some("speed") => format!("it goes at the speed of rule {rule}"),
        Some(limit) => format!("{limit} of rule {rule} was used up"),
        None => format!("work came faster than its pace (rule {rule})"),
    }
}

fn by_budget(budget: &str, reason: &str) -> String {
    match reason {
        "budget_concurrency" => format!("max_concurrency of budget {budget} was used up"),
        "budget_rate" => format!("the rate of budget {budget} was used up"),
        "budget_share" => format!("the share of budget {budget} was used up"),
        "budget_query" => format!("it costs more than max_query_cost of budget {budget}"),
        other => format!("budget {budget} ({other})"),
    }
}

/// A server that is not known yet, as at every start, is not told of.
const TOLD_FROM_S: f64 = 2.0;

/// What is usual is not told.
fn is_news(state: &State) -> bool {
    let is_long = state.ended.is_none() || state.lasted_s >= TOLD_FROM_S;
    match &*state.kind {
        "signal" => is_long || state.state == "closed",
        "starved" => true,
        _ => is_long && !is_usual(&state.state),
    }
}

fn state(state: &State, times: &Times) -> String {
    let State { kind, subject, state: is, began, ended, unit, .. } = state;
    let when = times.between(*began, *ended);
    let text = if state.text.is_empty() { String::new() } else { format!(": {}", state.text) };
    let (was, had) = if ended.is_some() { ("was", "had") } else { ("has been", "has had") };
    match &**kind {
        "signal" if is == "no_data" => format!("{subject} {had} no data {when}"),
        "signal" => {
            let threshold = state.threshold.map(|value| quantity(value, unit)).unwrap_or_default();
            let highest = state.highest.map(|value| quantity(value, unit)).unwrap_or_default();
            let at = state.server.as_deref().map(|server| format!(" at {server}"));
            let at = at.unwrap_or_default();
            format!("{subject} {was} over {threshold} {when}, {highest}{at} at most")
        }
        "starved" => format!("{subject} {was} starved under rule {is} {when}{text}"),
        kind => format!("{kind} {subject} {was} {} {when}{text}", is.replace('_', " ")),
    }
}

fn event(event: &Event, times: &Times) -> String {
    let at = times.show(event.at);
    match &*event.kind {
        "file" => format!("at {at} {} was applied: {}", event.subject, event.text),
        _ => format!("at {at} {}", event.text),
    }
}

/// A number and what is counted.
#[must_use]
pub fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", figures(count))
}

/// A count with its thousands apart.
#[must_use]
pub fn figures(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        let left = digits.len().saturating_sub(place);
        if place > 0 && left.is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A value with its unit: one decimal from 1 on, three below.
#[must_use]
pub fn quantity(value: f64, unit: &str) -> String {
    let shown = if value.abs() >= 1.0 { format!("{value:.1}") } else { format!("{value:.3}") };
    let shown = if shown.contains('.') {
        shown.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        shown
    };
    if unit.is_empty() { shown } else { format!("{shown} {unit}") }
}

pub(crate) fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Kept for callers that have a time and no answer.
#[must_use]
pub fn at(time: At, now: At, zone: &TimeZone) -> String {
    Times::new(time, now, now, zone).show(time)
}

#[cfg(test)]
mod tests;
