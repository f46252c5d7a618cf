//! Every run ends: by its time, or because it has cost as much as one may.
//!
//! What the file alone tells, how often servers and Sluices are looked at over the run, is refused
//! when it is read ([`RHYTHM_MAX`]). How many statements there will be only the run shows: it ends
//! with an error after [`WORK_MAX`] steps, or when it would remember more than [`MEMORY_MAX`].

use std::fmt;
use std::time::Duration;

use admission::MonoTime;

use super::World;
use crate::{Scenario, TICK};

/// Most steps of one run: two minutes or so of a core, for which an hour of 20,000 statements a second
/// ends by itself. A step is an event, or what takes as long.
pub const WORK_MAX: u64 = 600_000_000;

/// Most steps that the rhythm of servers and Sluices alone may take: there is to be room for
/// statements.
pub(crate) const RHYTHM_MAX: f64 = 75_000_000.0;

/// Most bytes of what is remembered: transactions that are not applied, waits, refusals, and what
/// controllers know of apps and sessions. What a laptop has to spare.
const MEMORY_MAX: usize = 2048 * 1024 * 1024;

/// Appliers that are gone through in a step.
const APPLIERS_PER_STEP: u32 = 16;
/// Sluices whose timers are compared in a step.
const PROXIES_PER_STEP: usize = 16;

/// A run that was ended before its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooMuch {
    /// How far it had come.
    pub at: Duration,
    /// How long it was to be.
    pub duration: Duration,
    /// What there was too much of.
    pub what: Bound,
    /// The app that was admitted and refused most often.
    pub busiest: Option<String>,
}

/// What a run may not have more of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Steps: more than so many.
    Work(u64),
    /// Bytes.
    Memory,
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, duration, what, busiest } = self;
        let (at, duration) = (at.as_secs_f64(), duration.as_secs_f64());
        write!(f, "ended at {at:.3} s of {duration} s: ")?;
        match what {
            Bound::Work(most) => write!(f, "more than {most} steps are too many to simulate")?,
            Bound::Memory => {
                let mib = MEMORY_MAX.checked_div(1024 * 1024).unwrap_or_default();
                write!(f, "what waits to be applied, and who waited, is more than {mib} MiB")?;
            }
        }
        f.write_str("; make `duration` shorter, ")?;
        match busiest {
            Some(app) => write!(
                f,
                "or have fewer sessions or a longer `think_time` or `latency` (app {app:?} was \
                 admitted and refused most often)"
            ),
            None => f.write_str("heartbeats and probes rarer, or other writes fewer"),
        }
    }
}

impl std::error::Error for TooMuch {}

/// What a run has cost so far, and what it may.
#[derive(Debug)]
pub(super) struct Spent {
    steps: u64,
    steps_max: u64,
    bytes: usize,
}

impl Spent {
    pub(super) fn nothing_of(steps_max: u64) -> Self {
        Self { steps: 0, steps_max, bytes: 0 }
    }

    /// So many steps more.
    pub(super) fn work(&mut self, steps: usize) {
        self.steps = self.steps.saturating_add(u64::try_from(steps).unwrap_or(u64::MAX));
    }

    /// So many bytes more that stay to the end.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn over(&self, queued: usize) -> Option<Bound> {
        if self.steps > self.steps_max {
            return Some(Bound::Work(self.steps_max));
        }
        (self.bytes.saturating_add(queued) > MEMORY_MAX).then_some(Bound::Memory)
    }
}

impl World<'_> {
    /// An event has come: what it costs at least, and whether that was too much.
    pub(super) fn spend(&mut self) -> Result<(), TooMuch> {
        let timers = self.proxies.len().checked_div(PROXIES_PER_STEP).unwrap_or_default();
        self.spent.work(timers.saturating_add(1));
        let queued = self.replicas.iter().map(|replica| replica.queued_bytes());
        let Some(what) = self.spent.over(queued.fold(0, usize::saturating_add)) else {
            return Ok(());
        };
        let at = self.now.saturating_since(MonoTime::ZERO);
        let busiest = self.measure.busiest().and_then(|app| self.scenario.apps.get(app));
        let busiest = busiest.map(|app| app.name.clone());
        Err(TooMuch { at, duration: self.scenario.duration, what, busiest })
    }
}

/// What it costs to have a replica of so many appliers apply.
pub(super) fn applying(appliers: u32) -> usize {
    let steps = appliers.checked_div(APPLIERS_PER_STEP).unwrap_or_default();
    usize::try_from(steps).unwrap_or(usize::MAX).saturating_add(1)
}

/// What the controllers of a run may come to remember of its sessions, each an identity that waits,
/// of its apps, at each Sluice that has some of them, and of their texts. Measured with thousands of both, and
/// rounded up: it is counted from the begin on, so that it does not come on top of the bound.
pub(super) fn controllers(scenario: &Scenario) -> usize {
    let of_app = |app: &crate::App| {
        let sessions = usize::try_from(app.sessions).unwrap_or(usize::MAX);
        let named = if app.proxies.is_empty() { scenario.proxies } else { app.proxies.len() };
        let there = named.min(sessions).saturating_mul(APP_BYTES);
        sessions.saturating_mul(SESSION_BYTES).saturating_add(there)
    };
    let apps = scenario.apps.iter().map(of_app).fold(0, usize::saturating_add);
    let digests = scenario.apps.iter().map(|app| app.digests).fold(0, u32::saturating_add);
    let digests = usize::try_from(digests).unwrap_or(usize::MAX).min(DIGESTS_MAX);
    let of_digests = digests.saturating_mul(DIGEST_BYTES).saturating_mul(scenario.proxies);
    apps.saturating_add(of_digests)
}

/// What a controller knows of a session and its identity, of an app, and of a text.
const SESSION_BYTES: usize = 3 * 1024;
const APP_BYTES: usize = 8 * 1024;
const DIGEST_BYTES: usize = 128;
/// It remembers what so many texts cost at most.
const DIGESTS_MAX: usize = 10_000;

/// How many steps a run takes without any statement of an app: ticks, heartbeats, probes, signals.
pub(crate) fn rhythm(scenario: &Scenario) -> f64 {
    let count = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
    let per_s = |interval: Duration| 1.0 / interval.as_secs_f64().max(1e-6);
    let replicas = &scenario.replicas;
    let proxies = count(scenario.proxies);
    let windows: usize = scenario.apps.iter().map(|app| app.active.len()).sum();
    let of_replica = |replica: &crate::Replica| {
        let steps = match &replica.apply {
            crate::Amount::Steps(steps) => steps.len(),
            crate::Amount::Sine { .. } => 1,
        };
        let lists = count(steps.saturating_add(replica.away.len())) / LIST_PER_STEP;
        lists + count(applying(replica.appliers))
    };
    let applied: f64 = replicas.iter().map(of_replica).sum();
    let ticks = per_s(TICK) * (1.0 + applied + count(windows) / LIST_PER_STEP);
    let heartbeats = per_s(scenario.heartbeat_interval) * (2.0 + applied);
    // The lag is told again after each interval that an answer is late.
    let probes = per_s(scenario.probe_interval) * (2.0 * count(replicas.len()) + applied);
    let signals = 4.0 * count(scenario.signals.len()) * proxies;
    let news = proxies * proxies;
    let all = ticks + proxies * (heartbeats + probes) + signals + news;
    all * scenario.duration.as_secs_f64()
}

/// Entries of a list that are gone through in a step.
const LIST_PER_STEP: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn remembers(proxies: &str, apps: &str) -> usize {
        let text = format!(
            "{{ name: x, duration: 1s, primary: {{ writes_per_s: 1 }}, proxies: {proxies}, \
             replicas: [{{ apply_per_s: 1 }}], apps: [{apps}] }}"
        );
        controllers(&Scenario::parse(&text).unwrap())
    }

    #[test]
    fn what_controllers_know_counts_where_sessions_are() {
        let one = 10 * SESSION_BYTES + APP_BYTES + DIGEST_BYTES;
        assert_eq!(remembers("1", "{ app: a, sessions: 10 }"), one);
        let few = remembers("64", "{ app: a, sessions: 10 }");
        let no_more = 10 * (SESSION_BYTES + APP_BYTES) + 64 * DIGEST_BYTES;
        assert_eq!(few, no_more, "no more Sluices than sessions");
        let named = remembers("64", "{ app: a, sessions: 10, proxies: [0, 2] }");
        assert_eq!(named, 10 * SESSION_BYTES + 2 * APP_BYTES + 64 * DIGEST_BYTES);
    }

    #[test]
    fn texts_count_at_each_sluice_as_far_as_they_are_remembered() {
        let of = |digests| {
            let app = format!("{{ app: a, sessions: 1, digests: {digests} }}");
            remembers("2", &app).saturating_sub(remembers("2", "{ app: a, sessions: 1 }"))
        };
        assert_eq!(of(201), 2 * 200 * DIGEST_BYTES);
        assert_eq!(of(1_000_000), 2 * DIGESTS_MAX.saturating_sub(1) * DIGEST_BYTES);
    }

    #[test]
    fn a_run_that_is_allowed_leaves_room_for_what_it_does() {
        // 100,000 sessions are the most there may be, and so is an app at a Sluice for each.
        let most = remembers("64", "{ app: a, sessions: 100000 }")
            + 100_000_usize.saturating_mul(APP_BYTES);
        assert!(most < MEMORY_MAX.checked_div(5).unwrap() * 3, "{most}");
    }
}
