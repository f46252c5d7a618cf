//! The intervals: those that go on, and the last that have ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use admission::{Reason, RuleLimit};
use proxy::cluster::GateSignal;
use proxy::telemetry::{Tallied, TallyKey};

use super::millis;
use super::minutes::refused_by;
use crate::look::{CauseLook, RuleLook, ServerLook, SignalLook, StarvedLook, WaitingLook};
use crate::record::{At, Span, SpanFacts, SpanKind, is_usual};

/// Intervals that have ended and are kept in memory.
pub const SPANS_MAX: usize = 4_000;

/// Intervals that go on at once: apps have as many labels as `metrics.max_apps`, times rules.
const OPEN_MAX: usize = 4_000;

/// An app of which nothing waits or is refused for so long is not held any more. Clients that were
/// refused come back within this as a rule.
const GAP: Duration = Duration::from_secs(10);

/// What an interval is about: cluster, kind, subject, and the rule of those that have one.
pub(super) type SpanKey = (Arc<str>, SpanKind, String, Arc<str>);

/// When a look is, in which run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) run: i64,
    pub(super) at: At,
    pub(super) mono: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Intervals {
    open: BTreeMap<SpanKey, Open>,
    ended: VecDeque<Span>,
    unwritten: Vec<Span>,
    next: i64,
}

#[derive(Debug)]
struct Open {
    span: Span,
    /// By the monotonic clock.
    began: Duration,
    seen: Moment,
}

impl Intervals {
    pub(super) fn all(&self) -> impl Iterator<Item = &Span> {
        self.ended.iter().chain(self.open.values().map(|open| &open.span))
    }

    /// Those that have ended since the last call, and those that go on.
    pub(super) fn writes(&mut self) -> Vec<Span> {
        let mut writes = std::mem::take(&mut self.unwritten);
        writes.extend(self.open.values().map(|open| open.span.clone()));
        writes
    }

    /// Somebody waits.
    pub(super) fn wait(
        &mut self,
        now: Moment,
        cluster: &Arc<str>,
        waiting: &WaitingLook,
        rule: Option<&RuleLook>,
    ) {
        let key = held(cluster, &waiting.app, &waiting.rule);
        let Some(open) = self.see_held(key, now, waiting.oldest, rule) else { return };
        let facts = &mut open.span.facts;
        let count = facts.reasons.entry(waiting.reason.to_owned()).or_default();
        *count = count.saturating_add(1);
        if let Some(behind) = &waiting.behind {
            note_behind(facts, waiting.reason, behind);
        }
    }

    /// What is behind what was refused. Of what is not told as held, nothing.
    pub(super) fn cause(&mut self, cluster: &Arc<str>, cause: &CauseLook) {
        if let Some(open) = self.open.get_mut(&held(cluster, &cause.app, &cause.rule)) {
            let facts = &mut open.span.facts;
            note_behind(facts, cause.reason, &cause.behind);
            if let Some(signal) = &cause.signal {
                note_signal(facts, signal);
            }
        }
    }

    /// What became of an app's statements since the last look.
    pub(super) fn count(
        &mut self,
        now: Moment,
        key: &TallyKey,
        counts: &Tallied,
        rule: Option<&RuleLook>,
    ) {
        let refused = counts.refused_in_all();
        if counts.delayed == 0 && refused == 0 {
            return;
        }
        let key = held(&key.cluster, &key.app, &key.rule);
        let Some(open) = self.see_held(key, now, counts.wait_max, rule) else { return };
        let facts = &mut open.span.facts;
        facts.delayed = facts.delayed.saturating_add(counts.delayed);
        facts.refused = facts.refused.saturating_add(refused);
        facts.wait_max_s = facts.wait_max_s.max(counts.wait_max.as_secs_f64());
        for (reason, count) in refused_by(counts) {
            let known = facts.reasons.entry(reason).or_default();
            *known = known.saturating_add(count);
        }
        // Its pauses may all have been between two looks.
        let slows = rule.is_some_and(|rule| rule.slows) && counts.delayed > 0;
        if slows && !facts.behind.contains_key(PACED) {
            note_behind(facts, PACED, RuleLimit::Speed.as_str());
        }
    }

    /// A signal shuts its gates, or does not.
    pub(super) fn signal(&mut self, now: Moment, cluster: &Arc<str>, signal: &SignalLook) {
        let key = (cluster.clone(), SpanKind::Signal, signal.signal.to_string(), "".into());
        let Some(state) = signal.shut else {
            self.end(&key, now, signal.lasts);
            return;
        };
        let Some(open) = self.see_state(key, now, state, Some(signal.lasts)) else { return };
        let facts = &mut open.span.facts;
        facts.signal = Some(signal.signal.to_string());
        signal.unit.clone_into(&mut facts.unit);
        facts.threshold = Some(signal.threshold);
        if let Some(value) = signal.value
            && facts.highest.is_none_or(|highest| value > highest)
        {
            facts.highest = Some(value);
            facts.server = signal.server.as_deref().map(str::to_owned);
        }
    }

    /// A server is in a state.
    pub(super) fn server(
        &mut self,
        now: Moment,
        cluster: &Arc<str>,
        server: &ServerLook,
    ) -> SpanKey {
        let kind = if server.is_primary { SpanKind::Primary } else { SpanKind::Replica };
        let key: SpanKey = (cluster.clone(), kind, server.server.clone(), "".into());
        if let Some(open) = self.see_state(key.clone(), now, &server.state, server.lasts) {
            // The look before the state ends may find its cause gone already: what was told stays.
            match &server.trouble {
                Some(trouble) => open.span.facts.text.clone_from(trouble),
                None if is_usual(&server.state) => open.span.facts.text.clear(),
                None => {}
            }
        }
        key
    }

    /// Somebody is starved.
    pub(super) fn starved(
        &mut self,
        now: Moment,
        cluster: &Arc<str>,
        starved: &StarvedLook,
    ) -> SpanKey {
        let rule: Arc<str> = starved.rule.as_str().into();
        let key: SpanKey = (cluster.clone(), SpanKind::Starved, starved.app.clone(), rule);
        if let Some(open) = self.see(key.clone(), now, &starved.rule, starved.lasts) {
            open.span.facts.text.clone_from(&starved.meanwhile);
        }
        key
    }

    /// The states of this cluster that were not seen now are over: servers that the file does not
    /// name any more, and who is not starved any more.
    pub(super) fn end_states(&mut self, cluster: &str, seen: &BTreeSet<SpanKey>) {
        let is_state =
            |kind| matches!(kind, SpanKind::Primary | SpanKind::Replica | SpanKind::Starved);
        let over: Vec<SpanKey> = self
            .open
            .keys()
            .filter(|key| *key.0 == *cluster && is_state(key.1) && !seen.contains(*key))
            .cloned()
            .collect();
        over.iter().for_each(|key| self.end_when_seen(key));
    }

    /// Apps of which nothing was held for a while are not any more, since then.
    pub(super) fn end_those_unseen(&mut self, now: Moment) {
        let is_over = |open: &Open| now.mono.saturating_sub(open.seen.mono) > GAP;
        let over: Vec<SpanKey> = self
            .open
            .iter()
            .filter(|(key, open)| key.1 == SpanKind::Held && is_over(open))
            .map(|(key, _)| key.clone())
            .collect();
        over.iter().for_each(|key| self.end_when_seen(key));
    }

    fn see_held(
        &mut self,
        key: SpanKey,
        now: Moment,
        ago: Duration,
        rule: Option<&RuleLook>,
    ) -> Option<&mut Open> {
        let state = key.3.clone();
        let open = self.see(key, now, &state, ago)?;
        let began = now.mono.saturating_sub(ago);
        if began < open.began {
            // A wait that began before what is told so far.
            open.began = began;
            open.span.began = before(now.at, ago);
            open.span.lasted_ms = millis(now.mono.saturating_sub(began));
        }
        if let Some(rule) = rule {
            open.span.facts.author = rule.author.as_deref().map(str::to_owned);
            open.span.facts.text.clone_from(&rule.reason);
        }
        Some(open)
    }

    /// The same for a state, of which another one ends it. Lasting unknown: since now.
    fn see_state(
        &mut self,
        key: SpanKey,
        now: Moment,
        state: &str,
        lasts: Option<Duration>,
    ) -> Option<&mut Open> {
        let lasts = lasts.unwrap_or_default();
        if self.open.get(&key).is_some_and(|open| open.span.state != state) {
            self.end(&key, now, lasts);
        }
        self.see(key, now, state, lasts)
    }

    /// It goes on, or has begun so long ago. None: too many go on already.
    fn see(&mut self, key: SpanKey, now: Moment, state: &str, ago: Duration) -> Option<&mut Open> {
        if !self.open.contains_key(&key) {
            if self.open.len() >= OPEN_MAX {
                return None;
            }
            let span = Span {
                run: now.run,
                n: self.next,
                kind: key.1,
                cluster: key.0.to_string(),
                subject: key.2.clone(),
                state: state.to_owned(),
                began: before(now.at, ago),
                ended: None,
                lasted_ms: 0,
                facts: SpanFacts::default(),
            };
            self.next = self.next.saturating_add(1);
            let began = now.mono.saturating_sub(ago);
            self.open.insert(key.clone(), Open { span, began, seen: now });
        }
        let open = self.open.get_mut(&key)?;
        open.seen = now;
        open.span.lasted_ms = millis(now.mono.saturating_sub(open.began));
        Some(open)
    }

    /// It has ended so long ago.
    fn end(&mut self, key: &SpanKey, now: Moment, ago: Duration) {
        let Some(mut open) = self.open.remove(key) else { return };
        let ended = now.mono.saturating_sub(ago).max(open.began);
        open.span.ended = Some(before(now.at, now.mono.saturating_sub(ended)));
        open.span.lasted_ms = millis(ended.saturating_sub(open.began));
        self.keep(open.span);
    }

    /// It has ended when it was seen last.
    fn end_when_seen(&mut self, key: &SpanKey) {
        let Some(mut open) = self.open.remove(key) else { return };
        open.span.ended = Some(open.seen.at);
        self.keep(open.span);
    }

    /// Everything that goes on ends: the process does.
    pub(super) fn end_all(&mut self) {
        let keys: Vec<SpanKey> = self.open.keys().cloned().collect();
        keys.iter().for_each(|key| self.end_when_seen(key));
    }

    fn keep(&mut self, span: Span) {
        if self.ended.len() >= SPANS_MAX {
            self.ended.pop_front();
        }
        if self.unwritten.len() >= SPANS_MAX {
            self.unwritten.remove(0);
        }
        self.ended.push_back(span.clone());
        self.unwritten.push(span);
    }
}

/// Of what was refused at once no look may have met the gate shut.
fn note_signal(facts: &mut SpanFacts, signal: &GateSignal) {
    let GateSignal { name, is_time, value, threshold, server, .. } = signal;
    if facts.signal.as_deref() != Some(name) {
        (facts.signal, facts.highest) = (Some(name.to_string()), None);
    }
    facts.unit = if *is_time { "s" } else { "" }.to_owned();
    facts.threshold = Some(*threshold);
    if facts.highest.is_none() || *value > facts.highest {
        facts.highest = *value;
        facts.server = server.as_deref().map(str::to_owned);
    }
}

fn note_behind(facts: &mut SpanFacts, reason: &str, behind: &str) {
    let known = facts.behind.entry(reason.to_owned()).or_default();
    if known.len() < BEHIND_MAX || known.contains_key(behind) {
        let count = known.entry(behind.to_owned()).or_default();
        *count = count.saturating_add(1);
    }
}

/// What one interval tells apart behind one reason.
const BEHIND_MAX: usize = 16;

const PACED: &str = Reason::Paced.as_str();

fn held(cluster: &Arc<str>, app: &str, rule: &Arc<str>) -> SpanKey {
    (cluster.clone(), SpanKind::Held, app.to_owned(), rule.clone())
}

fn before(at: At, ago: Duration) -> At {
    At(at.0.saturating_sub(millis(ago)))
}
