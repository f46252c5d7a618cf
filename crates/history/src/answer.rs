//! What is answered: intervals, minutes, events of a time, from memory and disk together.

mod shown;

use std::collections::{BTreeMap, BTreeSet};

use crate::book::Recent;
use crate::disk::{Asked, Reading};
use crate::record::{At, Counts, Event, MinuteRow, Run, Span, SpanFacts, SpanKind};

pub use self::shown::{Answer, Checks, Gap, Held, Kept, LeftOut, Part, Share, SignalPart, State};

/// Intervals of each kind that one answer has: those that lasted longest.
const SPANS_MAX: usize = 200;

/// Events of one answer, the last ones.
const EVENTS_MAX: usize = 200;

/// Parts of the time that one answer has.
const PARTS_MAX: i64 = 60;

/// Apps that are named of those that wrote meanwhile.
const MEANWHILE_MAX: usize = 3;

/// Intervals of which it is said who wrote meanwhile.
const WITH_MEANWHILE_MAX: usize = 20;

const MINUTE_S: i64 = 60;

/// What is there.
pub(crate) struct Sources<'s> {
    pub(crate) recent: Recent,
    pub(crate) disk: Option<&'s Reading>,
}

/// Puts the answer together, but for its sentences. What the file does not tell is noted.
pub(crate) fn answer(asked: &Asked<'_>, sources: &Sources<'_>, now: At) -> Answer {
    let minutes = asked.until.0.saturating_sub(asked.since.0).div_euclid(MINUTE_S * 1_000);
    let parts = minutes.saturating_add(1).max(1);
    let part_s = parts.saturating_add(PARTS_MAX - 1).div_euclid(PARTS_MAX).max(1) * MINUTE_S;
    let mut made = Making { asked, sources, now, trouble: None };
    let counts = made.counts(part_s);
    let mut total = Counts::default();
    counts.values().for_each(|counts| total.add(counts));
    let spans = made.spans();
    let (held, held_left) = made.held(&spans);
    let signals = made.signals(part_s);
    let refused_by = made.reasons();
    let checks = made.checks();
    let ((events, events_left), gaps) = (made.events(), made.gaps());
    let (states, states_left) = states(&spans);
    let since = made.read(|disk| disk.since()).flatten();
    Answer {
        now,
        since: asked.since,
        until: asked.until,
        app: asked.app.map(str::to_owned),
        sentences: Vec::new(),
        total,
        refused_by,
        checks,
        held,
        part_s,
        parts: counts.into_iter().map(|(at, counts)| Part { at: seconds(at), counts }).collect(),
        signals,
        states,
        events,
        left_out: LeftOut { held: held_left, states: states_left, events: events_left },
        kept: Kept {
            on_disk: sources.disk.is_some(),
            since: since.map_or(sources.recent.since, |since| since.min(sources.recent.since)),
            trouble: made.trouble,
            gaps,
        },
    }
}

struct Making<'a, 's> {
    asked: &'a Asked<'a>,
    sources: &'a Sources<'s>,
    now: At,
    trouble: Option<String>,
}

impl Making<'_, '_> {
    fn read<T>(&mut self, read: impl FnOnce(&Reading) -> rusqlite::Result<T>) -> Option<T> {
        match read(self.sources.disk?) {
            Ok(read) => Some(read),
            Err(error) => {
                self.trouble = Some(format!("the file cannot be read: {error}"));
                None
            }
        }
    }

    fn own_minutes(&self) -> impl Iterator<Item = &MinuteRow> {
        let asked = self.asked;
        let rows = self.sources.recent.minutes.iter();
        rows.filter(move |row| asked.is_in(&row.cluster) && asked.is_of(&row.app))
    }

    fn counts(&mut self, part_s: i64) -> BTreeMap<i64, Counts> {
        let asked = *self.asked;
        let mut counts = self.read(|disk| disk.counts(&asked, part_s)).unwrap_or_default();
        for row in self.own_minutes() {
            let part = row.at.div_euclid(part_s).saturating_mul(part_s);
            counts.entry(part).or_default().add(&row.counts);
        }
        counts
    }

    fn reasons(&mut self) -> BTreeMap<String, u64> {
        let asked = *self.asked;
        let mut reasons = self.read(|disk| disk.reasons(&asked)).unwrap_or_default();
        for row in self.own_minutes() {
            for (reason, count) in &row.refused_by {
                let known = reasons.entry(reason.clone()).or_default();
                *known = known.saturating_add(*count);
            }
        }
        reasons
    }

    fn checks(&mut self) -> Checks {
        let asked = *self.asked;
        let mut told = self.read(|disk| disk.checks(&asked)).unwrap_or_default();
        let rows = self.sources.recent.checks.iter();
        for row in rows.filter(|row| asked.is_in(&row.cluster) && asked.is_of(&row.app)) {
            let count = told.entry(row.refused.clone()).or_default();
            *count = count.saturating_add(row.count);
        }
        let passed = told.remove("").unwrap_or_default();
        let refused = told.values().fold(0, |sum: u64, count| sum.saturating_add(*count));
        Checks { asked: passed.saturating_add(refused), passed, refused, refused_by: told }
    }

    fn signals(&mut self, part_s: i64) -> Vec<SignalPart> {
        let asked = *self.asked;
        let mut parts = self.read(|disk| disk.signals(&asked, part_s)).unwrap_or_default();
        for row in &self.sources.recent.signals {
            if asked.is_in(&row.cluster) {
                let at = row.at.div_euclid(part_s).saturating_mul(part_s);
                let key = (row.cluster.clone(), row.signal.clone(), at);
                parts.entry(key).or_default().add(&row.values);
            }
        }
        let part = |((cluster, signal, at), values)| SignalPart {
            at: seconds(at),
            cluster,
            signal,
            values,
        };
        parts.into_iter().map(part).collect()
    }

    /// The intervals of memory and disk; where both have one, the memory's.
    fn spans(&mut self) -> Vec<Span> {
        let asked = *self.asked;
        let recent = &self.sources.recent.spans;
        let known: BTreeSet<(i64, i64)> = recent.iter().map(|span| (span.run, span.n)).collect();
        let mut spans: Vec<Span> =
            recent.iter().filter(|span| asked.is_in(&span.cluster)).cloned().collect();
        let kept = self.read(|disk| disk.spans(&asked)).unwrap_or_default();
        spans.extend(kept.into_iter().filter(|span| !known.contains(&(span.run, span.n))));
        spans.sort_by_key(|span| (span.began, span.run, span.n));
        spans
    }

    /// The last ones, and how many there are besides.
    fn events(&mut self) -> (Vec<Event>, u64) {
        let asked = *self.asked;
        let recent = &self.sources.recent.events;
        let known: BTreeSet<(i64, i64)> = recent.iter().map(|event| (event.run, event.n)).collect();
        let mut events = self.read(|disk| disk.events(&asked)).unwrap_or_default();
        events.retain(|event| !known.contains(&(event.run, event.n)));
        events.extend(recent.iter().cloned());
        events.retain(|event| event.cluster.is_empty() || asked.is_in(&event.cluster));
        events.sort_by_key(|event| (event.at, event.n));
        let left = events.len().saturating_sub(EVENTS_MAX);
        (events.split_off(left), crate::words::count(left))
    }

    /// Between the runs of the file nobody wrote, or the clock showed another time.
    fn gaps(&mut self) -> Vec<Gap> {
        let asked = *self.asked;
        let runs = self.read(|disk| disk.runs(&asked)).unwrap_or_default();
        let mut gaps = Vec::new();
        let mut seen: Option<(At, i64)> = None;
        for Run { run, began, seen: seen_last, ended, .. } in runs {
            if let Some((before, number)) = seen
                && began.0.saturating_sub(before.0) > GAP_MIN_MS
            {
                // Both are of one process.
                let clock_set = run.abs_diff(number) <= RUNS_OF_PROCESS_MAX;
                gaps.push(Gap { began: before, ended: began, clock_set });
            }
            let last = (ended.unwrap_or(seen_last), run);
            seen = Some(seen.map_or(last, |before| before.max(last)));
        }
        gaps
    }

    /// The longest ones, and how many there are besides.
    fn held(&mut self, spans: &[Span]) -> (Vec<Held>, u64) {
        let is_meant =
            |span: &&Span| span.kind == SpanKind::Held && self.asked.is_of(&span.subject);
        let mut meant: Vec<&Span> = spans.iter().filter(is_meant).collect();
        meant.sort_by_key(|span| std::cmp::Reverse(span.lasted_ms));
        let left = crate::words::count(meant.len().saturating_sub(SPANS_MAX));
        meant.truncate(SPANS_MAX);
        let mut held: Vec<Held> = Vec::new();
        for (place, span) in meant.into_iter().enumerate() {
            let meanwhile =
                if place < WITH_MEANWHILE_MAX { self.meanwhile(span) } else { Vec::new() };
            held.push(Held { meanwhile, ..of_span(&self.as_seen(span), spans) });
        }
        held.sort_by_key(|held| held.began);
        (held, left)
    }

    /// Nobody knows at first whether a client that was refused comes back; one of which nothing was
    /// seen for a while is not told to wait.
    fn as_seen(&self, span: &Span) -> Span {
        let seen = span.began.0.saturating_add(span.lasted_ms);
        let is_quiet = self.now.0.saturating_sub(seen) > QUIET_MS;
        let ended = span.ended.or(is_quiet.then_some(At(seen)));
        Span { ended, ..span.clone() }
    }

    /// Who else wrote in the minutes of an interval.
    fn meanwhile(&mut self, span: &Span) -> Vec<Share> {
        let until = span.ended.unwrap_or(At(span.began.0.saturating_add(span.lasted_ms)));
        let until = At(until.0.saturating_add(1));
        let asked = Asked { since: span.began, until, cluster: Some(&span.cluster), app: None };
        let mut rows = self.read(|disk| disk.rows(&asked)).unwrap_or_default();
        let first = span.began.0.div_euclid(MINUTE_S * 1_000).saturating_mul(MINUTE_S);
        for row in &self.sources.recent.minutes {
            let is_then = row.at >= first && row.at.saturating_mul(1_000) < until.0;
            if is_then && row.cluster == span.cluster {
                let sum = rows.entry(row.app.clone()).or_default();
                *sum = sum.saturating_add(row.counts.rows);
            }
        }
        let all = rows.values().fold(0_u64, |sum, rows| sum.saturating_add(*rows));
        let mut others: Vec<Share> = rows
            .into_iter()
            .filter(|(app, rows)| *app != span.subject && *rows > 0)
            .map(|(app, rows)| Share {
                app,
                rows,
                share: crate::record::float(rows) / crate::record::float(all.max(1)),
            })
            .collect();
        others.sort_by_key(|share| std::cmp::Reverse(share.rows));
        others.truncate(MEANWHILE_MAX);
        others
    }
}

/// An app of which nothing was held for so long does not wait now.
const QUIET_MS: i64 = 5_000;

/// A shorter time between two processes is a restart that nobody has to be told of.
const GAP_MIN_MS: i64 = 15_000;

/// Runs of one process are numbered one behind the other, a clock that is set begins the next.
const RUNS_OF_PROCESS_MAX: u64 = 1_000;

/// An interval with what its signal was meanwhile.
fn of_span(span: &Span, spans: &[Span]) -> Held {
    let SpanFacts {
        reasons, mut behind, signal, delayed, wait_max_s, refused, author, text, ..
    } = span.facts.clone();
    let all = reasons.values().fold(0_u64, |sum, count| sum.saturating_add(*count));
    let explains = |reason: &str, count: u64| {
        let is_much = count.saturating_mul(SUBSTANTIAL) >= all;
        (is_much, if is_much { rank(reason) } else { 0 }, count)
    };
    let reason = reasons.iter().max_by_key(|(reason, count)| explains(reason, **count));
    let others = reasons.iter().filter(|other| Some(*other) != reason);
    let besides = others.max_by_key(|(_, count)| **count).map(|(reason, _)| reason.clone());
    let mut held = Held {
        besides,
        cluster: span.cluster.clone(),
        app: span.subject.clone(),
        rule: span.state.clone(),
        began: span.began,
        ended: span.ended,
        lasted_s: length(span.lasted_ms),
        reason: reason.map(|(reason, _)| reason.clone()).unwrap_or_else(|| "paced".to_owned()),
        delayed,
        wait_max_s,
        refused,
        author,
        because: text,
        ..Held::default()
    };
    let behind = behind.remove(&held.reason).unwrap_or_default();
    let behind = behind.into_iter().max_by_key(|(_, count)| *count).map(|(behind, _)| behind);
    let behind = behind.filter(|behind| !behind.is_empty());
    match &*held.reason {
        "gate_closed" | "no_data" => held.signal = behind.or(signal),
        "paced" => held.limit = behind,
        "guard" => held.guard = behind,
        reason if reason.starts_with("budget_") => held.budget = behind,
        _ => {}
    }
    let Some(signal) = held.signal.clone() else { return held };
    if span.facts.signal.as_ref() == Some(&signal) {
        let SpanFacts { unit, threshold, highest, server, .. } = span.facts.clone();
        held = Held { unit, threshold, highest, server, ..held };
    }
    let of_signal = |other: &&Span| {
        other.kind == SpanKind::Signal && other.cluster == span.cluster && other.subject == signal
    };
    for shut in spans.iter().filter(of_signal) {
        let common = overlap_ms(span, shut);
        if common <= 0 {
            continue;
        }
        held.shut_s += length(common);
        held.unit.clone_from(&shut.facts.unit);
        held.threshold = shut.facts.threshold;
        if held.highest.is_none() || shut.facts.highest > held.highest {
            held.highest = shut.facts.highest;
            held.server.clone_from(&shut.facts.server);
        }
    }
    held
}

/// A reason of less than a tenth explains nothing.
const SUBSTANTIAL: u64 = 10;

/// What explains more comes first, if it is substantial: a line behind a shut gate is also paced now and then.
fn rank(reason: &str) -> u8 {
    match reason {
        "hold" | "deny" => 3,
        "gate_closed" | "no_data" => 2,
        "ratio" => 1,
        _ => 0,
    }
}

/// How long two intervals were at the same time, by the wall clock.
fn overlap_ms(a: &Span, b: &Span) -> i64 {
    let end = |span: &Span| {
        span.ended.map_or_else(|| span.began.0.saturating_add(span.lasted_ms), |at| at.0)
    };
    end(a).min(end(b)).saturating_sub(a.began.0.max(b.began.0))
}

/// The last ones, and how many there are besides.
fn states(spans: &[Span]) -> (Vec<State>, u64) {
    let mut states: Vec<&Span> = spans.iter().filter(|span| span.kind != SpanKind::Held).collect();
    states.sort_by_key(|span| std::cmp::Reverse(span.began));
    let left = crate::words::count(states.len().saturating_sub(SPANS_MAX));
    states.truncate(SPANS_MAX);
    states.reverse();
    let state = |span: &Span| State {
        kind: span.kind.as_str().to_owned(),
        cluster: span.cluster.clone(),
        subject: span.subject.clone(),
        state: span.state.clone(),
        began: span.began,
        ended: span.ended,
        lasted_s: length(span.lasted_ms),
        highest: span.facts.highest,
        threshold: span.facts.threshold,
        unit: span.facts.unit.clone(),
        server: span.facts.server.clone(),
        text: span.facts.text.clone(),
    };
    (states.into_iter().map(state).collect(), left)
}

fn seconds(at: i64) -> At {
    At(at.saturating_mul(1_000))
}

/// Milliseconds as seconds.
pub(crate) fn length(ms: i64) -> f64 {
    std::time::Duration::from_millis(u64::try_from(ms).unwrap_or_default()).as_secs_f64()
}
