//! One measured health metric: its value, how old it is, and what it says.
//!
//! Theory. A value has a time, and a value older than `stale_after` says nothing: then `on_no_data`
//! speaks. Between `open_at` and `close_at` the signal keeps saying what it said, so that a value
//! that dances around one number does not flap. Nothing here happens by itself: what a signal says
//! at `now` is a function of its last value, so no timer can be missed.
//!
//! While nobody needs a signal it may hibernate: it is measured seldom. Who needs it then wakes it,
//! and it lets nobody through until there is a value that was asked for since; without one it is
//! soon without data, as always.

use std::time::Duration;

use crate::{Cause, MonoTime, OnNoData, SignalConfig, SignalKey};

/// A new reading of a signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    /// The value, in the signal's unit. A value that is not finite counts as failed.
    Value(f64),
    /// The measurement failed. The last value is used until it is stale.
    Failed,
}

/// A signal as metrics and status show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignalView {
    /// Which signal.
    pub key: SignalKey,
    /// The last value, however old.
    pub value: Option<f64>,
    /// How old it is.
    pub age: Option<Duration>,
    /// What the value is held against: the signal's threshold, or that of the replica it is of.
    pub threshold: f64,
    /// What the signal says.
    pub state: SignalState,
    /// Since when.
    pub since: MonoTime,
    /// Whether it lets statements through, whatever the state says.
    pub lets_through: bool,
    /// It has hibernated, and a value that was asked for since is waited for: for a moment it has
    /// no data, and lets nobody through.
    pub awaited: bool,
}

/// What a signal says.
///
/// ```text
///          value < open_at                    value >= close_at
///   Open ◀─────────────────── any state ───────────────────────▶ Closed
///     │        open_at <= value < close_at: what the last value said        │
///     └──────────────▶ NoData ◀── value older than stale_after ◀────────────┘
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalState {
    /// The value is healthy.
    Open,
    /// The value is not.
    Closed,
    /// There is no value, or it is too old; the policy speaks.
    NoData {
        /// What the policy says then.
        policy: OnNoData,
    },
}

#[derive(Debug)]
pub(crate) struct Signal {
    config: SignalConfig,
    last: Option<Reading>,
    /// What the last value said. Closed before the first: nothing has shown health yet.
    level: Level,
    /// Since when the values say what they say, without a gap in the data.
    since: MonoTime,
    rest: Rest,
}

/// ```text
///          hibernate                 somebody needs it
///   Awake ───────────▶ Hibernating ───────────────────▶ Waking { since }
///     ◀──────────────────────────────────────────────────────
///                 a value that was asked for since
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Awake,
    Hibernating,
    Waking { since: MonoTime },
}

#[derive(Debug, Clone, Copy)]
struct Reading {
    value: f64,
    /// What the value is held against; `None`: the signal's threshold.
    threshold: Option<f64>,
    at: MonoTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Open,
    Closed,
}

impl Signal {
    pub(crate) fn new(config: SignalConfig, now: MonoTime) -> Self {
        Self { config, last: None, level: Level::Closed, since: now, rest: Rest::Awake }
    }

    /// New limits for the same metric: the value stays and is held against them.
    pub(crate) fn reconfigure(&mut self, config: SignalConfig, now: MonoTime) {
        self.config = config;
        if let Some(last) = self.last {
            let before = self.level;
            self.level = self.level_of(last.value, last.threshold);
            if self.level != before {
                self.since = now;
            }
        }
    }

    /// It is measured seldom from now on.
    pub(crate) fn hibernate(&mut self) {
        if self.rest == Rest::Awake {
            self.rest = Rest::Hibernating;
        }
    }

    /// Somebody needs it.
    pub(crate) fn wake(&mut self, now: MonoTime) {
        if self.rest == Rest::Hibernating {
            self.rest = Rest::Waking { since: now };
        }
    }

    /// Whether only a value that was asked for since its waking is missing.
    pub(crate) fn is_awaited(&self, now: MonoTime) -> bool {
        let waking = matches!(self.rest, Rest::Waking { .. });
        waking && self.level == Level::Open && self.stale_since(now).is_none()
    }

    /// Whether this value counts: while it wakes, one that was asked for since, or one that shuts.
    pub(crate) fn counts(
        &mut self,
        (value, threshold): (f64, Option<f64>),
        asked_since: impl FnOnce(MonoTime) -> bool,
    ) -> bool {
        let Rest::Waking { since } = self.rest else { return true };
        if asked_since(since) {
            self.rest = Rest::Awake;
            return true;
        }
        self.level_of(value, threshold) == Level::Closed
    }

    /// A value measured at `at`, and what it is held against if that is not the signal's
    /// threshold. One older than the last is ignored.
    pub(crate) fn record(&mut self, at: MonoTime, value: f64, threshold: Option<f64>) {
        if !value.is_finite() || self.last.is_some_and(|last| at < last.at) {
            return;
        }
        let gap = self.stale_since(at).is_some();
        let before = self.level;
        self.level = self.level_of(value, threshold);
        self.last = Some(Reading { value, threshold, at });
        if gap || self.level != before {
            self.since = at;
        }
    }

    /// The band of a threshold of its own is as wide, in proportion.
    fn level_of(&self, value: f64, threshold: Option<f64>) -> Level {
        let value = match threshold {
            Some(own) if own > 0.0 => value * (self.config.threshold / own),
            Some(_) | None => value,
        };
        if value >= self.config.close_at {
            Level::Closed
        } else if value < self.config.open_at {
            Level::Open
        } else {
            self.level
        }
    }

    /// The value at which it closes.
    pub(crate) fn closes_at(&self) -> f64 {
        self.config.close_at
    }

    pub(crate) fn state(&self, now: MonoTime) -> SignalState {
        match (self.stale_since(now), self.level) {
            (None, Level::Open) if !self.is_awaited(now) => SignalState::Open,
            (None, Level::Closed) => SignalState::Closed,
            (Some(_) | None, Level::Open) | (Some(_), Level::Closed) => {
                SignalState::NoData { policy: self.config.on_no_data }
            }
        }
    }

    pub(crate) fn lets_through(&self, now: MonoTime) -> bool {
        let Some(stale_since) = self.stale_since(now) else {
            return self.level == Level::Open && !self.is_awaited(now);
        };
        match self.config.on_no_data {
            OnNoData::Open => true,
            OnNoData::Closed => false,
            OnNoData::HoldLast(hold) => {
                let held = self.last.is_some() && now.saturating_since(stale_since) < hold;
                held && self.level == Level::Open
            }
        }
    }

    /// Since when there is no usable value; `None` while there is one.
    fn stale_since(&self, now: MonoTime) -> Option<MonoTime> {
        let Some(last) = self.last else { return Some(self.since) };
        let fresh = now.saturating_since(last.at) <= self.config.stale_after;
        (!fresh).then(|| self.stale_at(last))
    }

    /// The first instant at which `last` is older than `stale_after`.
    fn stale_at(&self, last: Reading) -> MonoTime {
        last.at.saturating_add(self.config.stale_after).saturating_add(Duration::from_nanos(1))
    }

    /// The next instant after `now` at which the signal says something else without a new value.
    pub(crate) fn next_change(&self, now: MonoTime) -> Option<MonoTime> {
        let stale_at = self.stale_at(self.last?);
        let held_until = match self.config.on_no_data {
            OnNoData::Open | OnNoData::Closed => None,
            OnNoData::HoldLast(hold) => Some(stale_at.saturating_add(hold)),
        };
        let never = MonoTime::MAX;
        [Some(stale_at), held_until].into_iter().flatten().find(|&at| at > now && at < never)
    }

    pub(crate) fn cause(&self) -> Cause {
        Cause {
            signal: self.config.key,
            value: self.last.map(|last| last.value),
            threshold: self.threshold(),
        }
    }

    /// What the last value is held against.
    fn threshold(&self) -> f64 {
        self.last.and_then(|last| last.threshold).unwrap_or(self.config.threshold)
    }

    pub(crate) fn view(&self, now: MonoTime) -> SignalView {
        SignalView {
            key: self.config.key,
            value: self.last.map(|last| last.value),
            age: self.last.map(|last| now.saturating_since(last.at)),
            threshold: self.threshold(),
            state: self.state(now),
            since: self.stale_since(now).unwrap_or(self.since),
            lets_through: self.lets_through(now),
            awaited: self.is_awaited(now),
        }
    }
}

#[cfg(test)]
mod tests;
