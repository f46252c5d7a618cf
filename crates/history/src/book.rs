//! The history of this process, as looks make it: minutes, intervals, events. It knows no clock and
//! no disk.
//!
//! Theory. A look is taken a few times a second. What is counted goes into the minute of the wall
//! clock; whoever waits, is refused, or has waited since the last look is *held*, from when the
//! oldest of it began to wait until the last that was seen of that, and short gaps between are not
//! told. Times are the wall clock's, lengths the monotonic clock's. When the wall clock is set, a
//! run ends and another begins: no minute is written twice, and intervals go on.

mod intervals;
mod minutes;
mod rules;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub use self::intervals::SPANS_MAX;
use self::intervals::{Intervals, Moment, SpanKey};
use self::minutes::{Minutes, Rows};
use self::rules::KnownRules;
use crate::look::{ClusterLook, Happened, Look};
use crate::record::{At, CheckRow, Event, MinuteRow, Run, SignalRow, Span, SpanKind, Writes};

/// A step of the wall clock against the monotonic one that is no drift.
const STEP_MS: i64 = 2_000;

/// Events that are kept in memory.
const EVENTS_MAX: usize = 1_000;

/// Runs of one process that are kept in memory: each is a clock that was set.
const RUNS_MAX: usize = 100;

/// The history of one process.
#[derive(Debug)]
pub struct Book {
    version: String,
    runs: VecDeque<Run>,
    last: Option<(Duration, At)>,
    minutes: Minutes,
    intervals: Intervals,
    rules: BTreeMap<Arc<str>, KnownRules>,
    events: VecDeque<Event>,
    next_event: i64,
    unwritten_events: Vec<Event>,
    /// How long the last look was before this one.
    step: Duration,
}

/// What the memory holds of a time.
#[derive(Debug, Clone, Default)]
pub struct Recent {
    /// The rows of minutes.
    pub minutes: Vec<MinuteRow>,
    /// The rows of signals.
    pub signals: Vec<SignalRow>,
    /// The rows of checks.
    pub checks: Vec<CheckRow>,
    /// The intervals.
    pub spans: Vec<Span>,
    /// The events.
    pub events: Vec<Event>,
    /// The runs, and the first minute of each that is in memory: from there on the memory is right,
    /// whatever the disk says.
    pub from: BTreeMap<i64, i64>,
    /// Since when there is anything.
    pub since: At,
}

impl Book {
    /// The history of a process that begins now, under a number that no other has.
    #[must_use]
    pub fn new(run: i64, version: &str, at: At) -> Self {
        Self::begun(run, version, at, format!("Sluice {version} was started"))
    }

    /// That of a process of which nothing was kept for a while, from now on.
    #[must_use]
    pub fn again(run: i64, version: &str, at: At) -> Self {
        Self::begun(run, version, at, "history.enabled was switched on".to_owned())
    }

    fn begun(run: i64, version: &str, at: At, text: String) -> Self {
        let mut book = Self {
            version: version.to_owned(),
            runs: VecDeque::new(),
            last: None,
            minutes: Minutes::default(),
            intervals: Intervals::default(),
            rules: BTreeMap::new(),
            events: VecDeque::new(),
            next_event: 0,
            unwritten_events: Vec::new(),
            step: Duration::ZERO,
        };
        book.begin_run(run, at);
        book.happens(at, Event { kind: "start".to_owned(), text, ..Event::default() });
        book
    }

    /// Takes a look in.
    pub fn look(&mut self, look: &Look) {
        self.see_clock(look.mono, look.at);
        let now = Moment { run: self.run(), at: look.at, mono: look.mono };
        self.minutes.enter(now.run, look.at);
        for (key, counts) in &look.counted {
            self.minutes.count(key, counts);
        }
        for (key, count) in &look.checks {
            self.minutes.count_checks(key, *count);
        }
        let is_end = |it: &&Happened| matches!(it, Happened::Stop | Happened::Off);
        for happened in look.happened.iter().filter(|it| !is_end(it)) {
            self.take(look.at, happened);
        }
        for cluster in &look.clusters {
            self.look_at(now, cluster);
        }
        for (key, counts) in &look.counted {
            let rule = self.rules.get(&key.cluster).and_then(|rules| rules.of(&key.rule));
            self.intervals.count(now, key, counts, rule);
        }
        for cluster in &look.clusters {
            cluster.causes.iter().for_each(|it| self.intervals.cause(&cluster.cluster, it));
        }
        self.intervals.end_those_unseen(now);
        // The last look goes on with intervals, and would begin them anew behind their end.
        for happened in look.happened.iter().filter(is_end) {
            self.take(look.at, happened);
        }
        if let Some(current) = self.runs.back_mut() {
            current.seen = look.at;
        }
    }

    fn look_at(&mut self, now: Moment, cluster: &ClusterLook) {
        let name = &cluster.cluster;
        if let Some(rules) = &cluster.rules {
            let known = self.rules.entry(name.clone()).or_default();
            for event in known.change(name, rules, now) {
                self.happens(now.at, event);
            }
        }
        let known = self.rules.get(name);
        for waiting in &cluster.waiting {
            let rule = known.and_then(|rules| rules.of(&waiting.rule));
            self.intervals.wait(now, name, waiting, rule);
        }
        for signal in &cluster.signals {
            let shut =
                if signal.shut.is_some() { self.step.min(signal.lasts) } else { Duration::ZERO };
            self.minutes.measure(name, signal, shut);
            self.intervals.signal(now, name, signal);
        }
        let mut seen: BTreeSet<SpanKey> = BTreeSet::new();
        for server in &cluster.servers {
            seen.insert(self.intervals.server(now, name, server));
        }
        for starved in &cluster.starved {
            seen.insert(self.intervals.starved(now, name, starved));
        }
        self.intervals.end_states(name, &seen);
    }

    fn take(&mut self, at: At, happened: &Happened) {
        let event = match happened {
            Happened::File { path, changes, diff } => Event {
                kind: "file".to_owned(),
                subject: path.clone(),
                text: changes.join("; "),
                diff: Some(diff.clone()).filter(|diff| !diff.is_empty()),
                ..Event::default()
            },
            Happened::Rule { cluster, rule, author, what } => {
                let known = self.rules.entry(cluster.clone()).or_default();
                known.note_author(rule, author, what, at);
                return;
            }
            Happened::Stop => self.end(at, "Sluice ended"),
            Happened::Off => self.end(at, "history.enabled was switched off"),
        };
        self.happens(at, event);
    }

    fn end(&mut self, at: At, text: &str) -> Event {
        self.intervals.end_all();
        if let Some(run) = self.runs.back_mut() {
            run.ended = Some(at);
        }
        Event { kind: "stop".to_owned(), text: text.to_owned(), ..Event::default() }
    }

    /// A clock that is set begins another run.
    fn see_clock(&mut self, mono: Duration, at: At) {
        self.step = self.last.map_or(Duration::ZERO, |(before, _)| mono.saturating_sub(before));
        let stepped = self.last.map_or(0, |(_, before)| {
            at.0.saturating_sub(before.0).saturating_sub(millis(self.step))
        });
        self.last = Some((mono, at));
        if stepped.abs() < STEP_MS {
            return;
        }
        self.minutes.close();
        let next = self.run().saturating_add(1);
        self.begin_run(next, at);
        let by = crate::words::span(Duration::from_millis(stepped.unsigned_abs()));
        let way = if stepped > 0 { "forward" } else { "back" };
        self.happens(
            at,
            Event {
                kind: "clock".to_owned(),
                text: format!("the clock was set {way} by {by}"),
                ..Event::default()
            },
        );
    }

    fn begin_run(&mut self, run: i64, at: At) {
        if self.runs.len() >= RUNS_MAX {
            self.runs.pop_front();
        }
        let version = self.version.clone();
        self.runs.push_back(Run { run, began: at, seen: at, ended: None, version });
    }

    fn run(&self) -> i64 {
        self.runs.back().map_or(0, |run| run.run)
    }

    fn happens(&mut self, at: At, event: Event) {
        let event = Event { run: self.run(), n: self.next_event, at, ..event };
        self.next_event = self.next_event.saturating_add(1);
        if self.events.len() >= EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event.clone());
        self.unwritten_events.push(event);
        if self.unwritten_events.len() > EVENTS_MAX {
            self.unwritten_events.remove(0);
        }
    }

    /// What is new since the last call, and what there is of the minute under way.
    pub fn writes(&mut self) -> Writes {
        let Rows { minutes, signals, checks } = self.minutes.writes();
        Writes {
            runs: self.runs.iter().cloned().collect(),
            minutes,
            signals,
            checks,
            spans: self.intervals.writes(),
            events: std::mem::take(&mut self.unwritten_events),
            ..Writes::default()
        }
    }

    /// What the memory holds of the time from `since` to `until`.
    #[must_use]
    pub fn recent(&self, since: At, until: At) -> Recent {
        let Rows { minutes, signals, checks } = self.minutes.between(since, until);
        let overlaps =
            |span: &&Span| span.began < until && span.ended.is_none_or(|ended| ended >= since);
        let mut from = self.minutes.first_of_each();
        for run in &self.runs {
            from.entry(run.run).or_insert(i64::MAX);
        }
        Recent {
            minutes,
            signals,
            checks,
            spans: self.intervals.all().filter(overlaps).cloned().collect(),
            events: self
                .events
                .iter()
                .filter(|event| event.at >= since && event.at < until)
                .cloned()
                .collect(),
            from,
            since: self
                .minutes
                .gone_before()
                .max(self.runs.front().map(|run| run.began))
                .unwrap_or(until),
        }
    }

    /// Whether some interval of this kind goes on.
    #[must_use]
    pub fn goes_on(&self, kind: SpanKind, subject: &str) -> bool {
        self.intervals
            .all()
            .any(|span| span.kind == kind && span.ended.is_none() && span.subject == subject)
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
