//! How many gated statements may be at the server at once, for signals other than the lag.
//!
//! # Model
//!
//! A signal (threads running, the latency of an app, a number of an operator's own) has a value x, a
//! threshold T, and a cause that Sluice holds in its hand: n, the statements in flight that it let
//! through a gate of the signal. How x depends on n nobody tells, and it changes: x grows with n, at
//! once or later, and others move it too. A plain gate on x saws: everybody rushes in, x shoots past
//! T, everybody stops. So n is kept within a *limit* that is steered.
//!
//! # State and law
//!
//! For each signal the limit, the mean m of the values and their mean deviation d (both over about
//! [`SMOOTHING`]), and S, the mean time that a statement holds its place. On every value, with dt
//! the time since the last:
//!
//! ```text
//!   aim      = T − max(T/10, 2·d), at least T/2          a noisy signal keeps further away
//!   settling = memory + SMOOTHING + S                    until a change of the limit shows in m
//!   e        = 1 − m/aim, from −2 to 1
//!   e < 0:   limit · exp(κ·e·dt/settling)                κ = 1, at least 1 while the gate is open
//!   e > 0:   limit + g·e·dt/settling, if somebody wanted more than the limit
//!            g = limit below what held before the last excess: it doubles; √limit above
//! ```
//!
//! *memory* is for how long a value tells of what has passed. From T on the gate is shut, whatever the
//! limit: that is the fast answer, and the limit is the slow one which makes it rare. A limit that
//! nobody wants says nothing of what the server can take: it grows only on demand, and what was not in
//! use for [`UNUSED_AFTER`] halves, down to twice what was in use, and then doubles again up to where
//! it was.
//!
//! # A percentile
//!
//! A percentile of latencies has a law of its own, for its value is not what n adds up to: where n is
//! in flight for a part of the time, the share of statements that are too slow is that part of what it
//! is with n in flight all the time, and the percentile is anything in between. With r the share of the
//! latest statements that took longer than the aim, and q the share that may (0.01 of p99):
//!
//! ```text
//!   aim      = T − T/10
//!   memory   = window/2, and longer, up to a minute, until some 5/q statements are in it
//!   e        = 1 − r/q, from −4 to 1
//!   step     = e·dt/(memory + S)      upwards if somebody wanted more or the limit is below 1,
//!                                     downwards if somebody was in flight within the window
//!   limit + max(√limit/2, 1) · step   from 1 on; it falls by no more than with the next line
//!   limit · exp(step)                 below 1
//! ```
//!
//! The limit moves until the mean of r is q, which is to say that the percentile over a long time is
//! the aim, however r swings and whatever n does to it. It is told by the statements of the last seconds,
//! not by a window that remembers what is over. With so few statements that one which is too slow says
//! little, more of them are waited for: then the steering is slow, and the gate is quick.
//!
//! What the app itself has in flight is λ·w (Little), with λ its statements a second and w the mean of
//! what each takes, up to the aim. When λ has grown, by more than chance, so has what it needs of the server,
//! and the limit gives way before anybody is slow:
//!
//! ```text
//!   λ over SMOOTHING > λ over 10 s by four standard deviations of a count, and a tenth
//!   limit − min(Δλ·w, limit·Δλ/λ)     and for 2 s each further growth of λ likewise
//! ```
//!
//! By what the app has more, as where each needs a slot or a core; and by no larger part than that by which
//! the app has grown, for it may be in flight without needing what the jobs do. When λ falls nothing is given back
//! at once: an app that waits for reports has a smaller λ too, and more reports would make it smaller still.
//!
//! Below 1 the limit is the part of the time in which one statement is in flight: what has held its
//! place for h is followed by a rest of h·(1/limit − 1), of 30 s at most, in which nothing passes. So a
//! server that one report at a time disturbs too much has reports with rests between them.
//!
//! # Stability
//!
//! With ε = d ln x / d ln n, d ln n/dt = −κ·ε·(x − aim)/(aim·settling), seen after about settling: loop
//! gain κ·ε, under the π/2 at which an integrator with delay begins to swing while ε < 1.5. Threads
//! running have ε ≤ 1. What grows while n stands still (a history list) has no equilibrium in n: the
//! limit falls to 1, and the gate holds. For r the memory fades instead of cutting off, so the loop is an
//! integrator behind one lag, which comes to rest at any gain; near saturation, where ε is 3 to 4, it swings
//! by a statement or two before, and whole statements make it swing anyway. What counts is d ln r/dn: of a
//! server with c slots a root of c more statements take it from hardly anybody waiting to most, so r grows by
//! some 1/√c for each, and steps of √limit/2 give a loop gain about one whatever c is. Steps in parts of the
//! limit have one of six and more at sixteen slots, and swing from above what the server takes to hardly anything.
//!
//! # Before the first value
//!
//! An app that is idle has no value, and no jobs are limited for it. Whether it is idle is not known
//! before its signal is as old as a value may become. Until then the first limit holds: everybody who waits
//! would rush in beside an app that is at work, and what that does to it is remembered for longer than
//! it takes to end.
//!
//! # Several
//!
//! A gate with several such signals has the room of the one with the least. Statements in flight are
//! counted by gate, and a signal counts those of all gates that have it.
//!
//! A place that is held for longer than [`HELD_MAX`] does not count any more: a transaction that its
//! client keeps open must not hold up everybody for ever. If it is at work, the signal shows it.
//!
//! Sources: Netflix concurrency-limits, Gradient2, for a limit from a ratio of latencies; RFC 6298
//! for mean and deviation; RFC 5681 for doubling below what held; RFC 7661 for limits that were not
//! in use; Robbins and Monro (1951), stochastic approximation, for finding a quantile by how often it is
//! exceeded; Halfin and Whitt (1981), heavy-traffic limits for queues with many exponential servers, for
//! the root; Little (1961), for what is in flight from how many come and how long they stay.

mod demand;
mod limit;
mod places;
mod slow;

use std::collections::BTreeMap;

use self::limit::Limit;
pub(crate) use self::places::Place;
use self::places::Places;
use crate::{GateKey, LatencyRecent, MonoTime, SignalConfig, SignalKey};

/// All limits of a cluster, and who is in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    limits: BTreeMap<SignalKey, Limit>,
    gates: BTreeMap<GateKey, Places>,
}

/// The limit of one signal, as metrics and status show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InFlightView {
    /// Which signal.
    pub signal: SignalKey,
    /// Statements that may be in flight at gates with this signal, a whole number; below one, the part
    /// of the time in which one may be. `None`: as many as come, for the signal has no value.
    pub limit: Option<f64>,
    /// Statements that are.
    pub in_flight: u64,
    /// For how long a statement is in flight, in seconds, on average.
    pub service: f64,
}

impl InFlight {
    /// Live reload: limits of signals that stay are kept, and so is who is in flight.
    pub(crate) fn configure<'g>(
        &mut self,
        now: MonoTime,
        signals: &[SignalConfig],
        gates: impl Iterator<Item = (GateKey, &'g [SignalKey])> + Clone,
    ) {
        let mut old = std::mem::take(&mut self.limits);
        for config in signals {
            let Some(pacing) = config.in_flight else { continue };
            let with = gates.clone().filter(|(_, keys)| keys.contains(&config.key));
            let with = with.map(|(gate, _)| gate).collect();
            let mut limit = old.remove(&config.key).unwrap_or_else(|| Limit::new(now));
            limit.configure(pacing, config, with);
            self.limits.insert(config.key, limit);
        }
    }

    /// Whether any of these signals has a limit.
    pub(crate) fn limits_any(&self, signals: &[SignalKey]) -> bool {
        signals.iter().any(|key| self.limits.contains_key(key))
    }

    /// What a percentile has been told since its last value.
    pub(crate) fn handle_latencies(
        &mut self,
        now: MonoTime,
        key: SignalKey,
        recent: &LatencyRecent,
    ) {
        if let Some(limit) = self.limits.get_mut(&key) {
            limit.handle_latencies(now, recent);
        }
    }

    /// A value was measured.
    pub(crate) fn handle_value(&mut self, now: MonoTime, key: SignalKey, value: f64) {
        if let Some(limit) = self.limits.get_mut(&key) {
            limit.note_used(now, as_f64(count(&self.gates, limit.gates())));
            limit.handle_value(now, value);
        }
    }

    /// Which of these signals has no room for one more. A no is remembered: somebody is waiting.
    pub(crate) fn in_the_way(&mut self, now: MonoTime, signals: &[SignalKey]) -> Option<SignalKey> {
        if self.limits.is_empty() {
            return None;
        }
        for places in self.gates.values_mut() {
            places.forget(now);
        }
        let rooms = signals.iter().filter_map(|key| Some((self.room(now, *key)?, *key)));
        let (room, least) = rooms.min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        if room >= 1.0 {
            return None;
        }
        if let Some(limit) = self.limits.get_mut(&least) {
            limit.want(now);
        }
        Some(least)
    }

    /// How many more may pass; `None`: as many as come.
    fn room(&self, now: MonoTime, key: SignalKey) -> Option<f64> {
        let limit = self.limits.get(&key)?;
        let in_force = limit.in_force(now)?;
        if limit.rests_until() > now {
            return Some(0.0);
        }
        Some(in_force.floor().max(1.0) - as_f64(count(&self.gates, limit.gates())))
    }

    /// A statement has passed this gate.
    pub(crate) fn admit(&mut self, now: MonoTime, gate: GateKey) -> Place {
        let place = self.gates.entry(gate).or_default().take(now, gate);
        for limit in self.limits.values_mut().filter(|limit| limit.gates().contains(&gate)) {
            let in_flight = as_f64(count(&self.gates, limit.gates()));
            limit.note_used(now, in_flight);
        }
        place
    }

    /// Its work is done.
    pub(crate) fn complete(&mut self, now: MonoTime, place: Place) {
        let held = now.saturating_since(place.taken_at());
        for limit in self.limits.values_mut() {
            if limit.gates().contains(&place.gate()) {
                limit.note_held(now, held);
            }
        }
        self.take_back(place);
    }

    /// Its place is free.
    pub(crate) fn take_back(&mut self, place: Place) {
        if let Some(places) = self.gates.get_mut(&place.gate()) {
            places.free(place);
            if places.is_empty() {
                self.gates.remove(&place.gate());
            }
        }
    }

    /// When next, after `now`, there may be room by the passing of time: a place stops to count, a rest
    /// ends, or a limit is not in force any more because nobody has told its value.
    pub(crate) fn next_change(&self, now: MonoTime) -> Option<MonoTime> {
        if self.limits.is_empty() {
            return None;
        }
        let rests = self.limits.values().map(Limit::rests_until);
        let forgets = self.gates.values().filter_map(Places::forgets_at);
        let begins = self.limits.values().filter_map(Limit::begins_until);
        rests.chain(forgets).chain(begins).filter(|at| *at > now).min()
    }

    /// Statements a second that the limits of these signals let through, about; `None`: as many as
    /// come.
    pub(crate) fn per_s(&self, now: MonoTime, signals: &[SignalKey]) -> Option<f64> {
        let rates = signals.iter().filter_map(|key| {
            let limit = self.limits.get(key)?;
            Some(whole(limit.in_force(now)?) / limit.service().max(SERVICE_MIN))
        });
        rates.min_by(f64::total_cmp)
    }

    /// All limits, by signal.
    pub(crate) fn views(&self, now: MonoTime) -> impl Iterator<Item = InFlightView> + '_ {
        self.limits.iter().map(move |(key, limit)| InFlightView {
            signal: *key,
            limit: limit.in_force(now).map(whole),
            in_flight: count(&self.gates, limit.gates()),
            service: limit.service(),
        })
    }
}

/// A statement of no time at all would make the rate endless.
const SERVICE_MIN: f64 = 0.001;

/// What a limit comes to: from one on whole statements, below it a part of the time.
fn whole(limit: f64) -> f64 {
    if limit < 1.0 { limit } else { limit.floor() }
}

fn count(gates: &BTreeMap<GateKey, Places>, of: &[GateKey]) -> u64 {
    let counts = of.iter().filter_map(|gate| gates.get(gate)).map(Places::count);
    counts.fold(0, u64::saturating_add)
}

fn as_f64(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
