//! How much of an app may be on its way before more of it has been seen at the replicas.
//!
//! Theory. The rate is what replicas have delivered of the rows of whoever was there. What it is worth
//! in rows of somebody else nobody knows: a rate found with rows that are hardly replicated
//! (temporary tables, a schema that a filter leaves out) is many times what the replicas bear of
//! others, and whoever begins has been let in at it for half a second before any lag tells. So
//! what an app has on its way has a *limit* of its own: at first what the first rate of all lets in
//! within the way, and more by what is shown of it, so that it doubles with the way at most. It is
//! the congestion window of TCP, of an app.
//!
//! - On its way is what is admitted and not completed, of late, and what has completed behind the
//!   newest heartbeat that all replicas show, but for those that may lag for longer than the others.
//!   With nothing on its way a statement passes whatever it costs.
//! - The limit grows by what is shown if the app had no room since: at the limit, or at the pace with
//!   more than half of its limit on its way. An app that needs no more proves no more. Of what was on
//!   its way while a long queue was braked for ([`crate::pace`]) a tenth is added: it may have been
//!   this app's.
//! - Who is at its limit is passed over in line, keeps its turn, and is in nobody else's way.
//! - After a minute without use half of what is beyond the first limit is forgotten, and so on.
//!
//! Costs are in rows of the mean, as in the window.
//!
//! Sources: Jacobson, Congestion Avoidance and Control (1988), for slow start; RFC 7661 (2015), for
//! what is not in use.

use std::collections::VecDeque;
use std::time::Duration;

use crate::aged::RATE_FIRST;
use crate::key_map::KeyMap;
use crate::pace::Charge;
use crate::{AppKey, MonoTime};

/// The way with the usual heartbeats, in seconds: the least that a first limit is for.
const WAY_MIN: f64 = 0.35;

/// Of what is shown while a lag is braked for, this part is added to the limit.
const BRAKED: f64 = 0.1;

/// Who is refused room at the pace, with more than this part of its limit on its way, could use
/// more of both.
const USED: f64 = 0.5;

/// Less than this on its way is nothing.
const NOTHING: f64 = 0.5;

/// Work that still runs counts for so long: a transaction may be kept open for an hour.
const RUNNING_COUNTS_FOR: Duration = Duration::from_secs(2);

/// Half of a limit is forgotten each time that it was not used for so long.
const HALVED_AFTER: Duration = Duration::from_secs(60);

/// Apps with a limit of their own; clients choose apps. Beyond, all others have one together.
const APPS_MAX: usize = 4_096;

/// Heartbeats between which work is told apart.
const BITS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct SlowStart {
    apps: KeyMap<AppKey, Window>,
    /// That of all apps for which there is no place.
    others: Option<Window>,
    /// Heartbeats: the newest that was begun, and the newest that all replicas that count show.
    begun: u64,
    shown: Option<Shown>,
    /// In seconds, without any queue.
    way: f64,
    forgotten_at: MonoTime,
}

/// Heartbeats that all replicas that count show.
#[derive(Debug, Clone, Copy)]
struct Shown {
    newest: u64,
    /// The newest that was begun while a lag was braked for: what was on its way then, before it, may
    /// have made that.
    braked: Option<u64>,
}

#[derive(Debug)]
struct Window {
    limit: f64,
    /// By how many heartbeats were begun ahead of the admission, and by the newest that was ahead of the
    /// completion.
    running: VecDeque<Bit>,
    done: VecDeque<Bit>,
    /// It had no room since anything of it was shown.
    limited: bool,
    /// When it had none of its limit last.
    held_at: Option<MonoTime>,
    used_at: MonoTime,
}

#[derive(Debug, Clone, Copy)]
struct Bit {
    seq: u64,
    at: MonoTime,
    cost: f64,
}

impl SlowStart {
    pub(crate) fn heartbeat_begun(&mut self, seq: u64) {
        self.begun = self.begun.max(seq);
    }

    /// The newest heartbeat that all replicas that count show, whether a lag is braked for, and how
    /// many seconds it takes without any queue until they show what has completed.
    pub(crate) fn shown(&mut self, shown: Option<u64>, is_braked: bool, way: f64) {
        self.way = way;
        self.shown = shown.map(|newest| {
            let before = self.shown.and_then(|shown| shown.braked);
            Shown { newest, braked: if is_braked { Some(self.begun) } else { before } }
        });
    }

    /// A rate was found with these apps by another process: their limits begin there, if nothing
    /// is known of them.
    pub(crate) fn begin_with(
        &mut self,
        now: MonoTime,
        apps: impl Iterator<Item = AppKey>,
        limit: f64,
    ) {
        let limit = limit.max(self.first());
        for app in apps {
            if self.apps.len() < APPS_MAX {
                self.apps.entry(app).or_insert_with(|| Window::new(now, limit));
            }
        }
    }

    /// Whether the limit of its app leaves room for such work. A no is remembered.
    pub(crate) fn allows(&mut self, now: MonoTime, app: AppKey, cost: f64) -> bool {
        let Some(shown) = self.shown else { return true };
        let Some(window) = self.window(app) else { return true };
        window.settle(now, shown);
        let out = window.out(now);
        if out < NOTHING || out + cost <= window.limit {
            return true;
        }
        (window.limited, window.held_at) = (true, Some(now));
        false
    }

    /// There was no room at the pace for such work.
    pub(crate) fn refused(&mut self, now: MonoTime, app: AppKey, cost: f64) {
        if let Some(window) = self.window(app)
            && window.out(now) + cost > USED * window.limit
        {
            window.limited = true;
        }
    }

    pub(crate) fn admit(&mut self, now: MonoTime, app: AppKey, charge: Charge) {
        let first = self.first();
        let is_full = self.apps.len() >= APPS_MAX;
        let has_place = !is_full || self.apps.contains_key(&app) || self.makes_place(now);
        let window = if has_place {
            self.apps.entry(app).or_insert_with(|| Window::new(now, first))
        } else {
            self.others.get_or_insert_with(|| Window::new(now, first))
        };
        window.idle(now, first);
        window.forget_old(now);
        Window::add(&mut window.running, charge.epoch(), now, charge.known());
    }

    /// Work that runs costs more than it did.
    pub(crate) fn charge(&mut self, now: MonoTime, app: AppKey, before: Charge, charge: Charge) {
        let Some(window) = self.window(app) else { return };
        window.used_at = now;
        Window::move_by(&mut window.running, charge.epoch(), charge.known() - before.known());
    }

    /// It was taken back before it ran.
    pub(crate) fn take_back(&mut self, app: AppKey, charge: Charge) {
        if let Some(window) = self.window(app) {
            Window::move_by(&mut window.running, charge.epoch(), -charge.known());
        }
    }

    /// It has completed, at this cost.
    pub(crate) fn complete(&mut self, now: MonoTime, app: AppKey, charge: Charge, cost: f64) {
        let (begun, shown) = (self.begun, self.shown);
        let Some(window) = self.window(app) else { return };
        Window::move_by(&mut window.running, charge.epoch(), -charge.known());
        match shown {
            Some(shown) => {
                window.settle(now, shown);
                Window::add(&mut window.done, begun, now, cost);
            }
            None => window.done.clear(),
        }
    }

    /// What the first rate of all lets in within the way.
    fn first(&self) -> f64 {
        RATE_FIRST * self.way.max(WAY_MIN)
    }

    /// How many apps were held back by their limits within a second.
    pub(crate) fn held_back(&self, now: MonoTime) -> usize {
        let of_late = |at: MonoTime| now.saturating_since(at) < Duration::from_secs(1);
        let all = self.apps.values().chain(&self.others);
        all.filter(|window| window.held_at.is_some_and(of_late)).count()
    }

    fn window(&mut self, app: AppKey) -> Option<&mut Window> {
        let has_none = self.apps.len() >= APPS_MAX && !self.apps.contains_key(&app);
        if has_none { self.others.as_mut() } else { self.apps.get_mut(&app) }
    }

    /// Forgets apps that were not used for long; once a second. Whether there were any.
    fn makes_place(&mut self, now: MonoTime) -> bool {
        if now.saturating_since(self.forgotten_at) < Duration::from_secs(1) {
            return false;
        }
        self.forgotten_at = now;
        self.apps.retain(|_, window| now.saturating_since(window.used_at) < HALVED_AFTER);
        self.apps.len() < APPS_MAX
    }
}

impl Window {
    fn new(now: MonoTime, limit: f64) -> Self {
        let (running, done) = (VecDeque::new(), VecDeque::new());
        Self { limit, running, done, limited: false, held_at: None, used_at: now }
    }

    /// Halves the limit for each minute that it was not used.
    fn idle(&mut self, now: MonoTime, first: f64) {
        let unused = now.saturating_since(self.used_at).as_secs_f64();
        self.used_at = now;
        let halvings = (unused / HALVED_AFTER.as_secs_f64()).floor();
        if halvings >= 1.0 {
            let more = (self.limit - first).max(0.0);
            self.limit = first + more * 0.5_f64.powf(halvings);
        }
    }

    /// Takes in what is shown by now.
    fn settle(&mut self, now: MonoTime, shown: Shown) {
        let (mut acked, mut proves) = (0.0, 0.0);
        while let Some(bit) = self.done.front().filter(|bit| bit.seq < shown.newest) {
            acked += bit.cost;
            let is_braked = shown.braked.is_some_and(|braked| bit.seq <= braked);
            proves += if is_braked { BRAKED * bit.cost } else { bit.cost };
            self.done.pop_front();
        }
        self.forget_old(now);
        if acked > 0.0 && self.limited {
            self.limit += proves;
            self.limited = false;
        }
    }

    /// What runs for long does not count.
    fn forget_old(&mut self, now: MonoTime) {
        while let Some(bit) = self.running.front()
            && now.saturating_since(bit.at) > RUNNING_COUNTS_FOR
        {
            self.running.pop_front();
        }
    }

    /// What is on its way.
    fn out(&self, now: MonoTime) -> f64 {
        let of_late = |bit: &&Bit| now.saturating_since(bit.at) <= RUNNING_COUNTS_FOR;
        let running: f64 = self.running.iter().filter(of_late).map(|bit| bit.cost.max(0.0)).sum();
        let done: f64 = self.done.iter().map(|bit| bit.cost).sum();
        running + done
    }

    fn add(bits: &mut VecDeque<Bit>, seq: u64, at: MonoTime, cost: f64) {
        let full = bits.len() >= BITS_MAX;
        match bits.back_mut() {
            Some(last) if last.seq >= seq || full => last.cost += cost,
            Some(_) | None => bits.push_back(Bit { seq, at, cost }),
        }
    }

    fn move_by(bits: &mut VecDeque<Bit>, seq: u64, more: f64) {
        // A bit that was the last of too many holds what began later as well.
        if let Some(bit) = bits.iter_mut().rev().find(|bit| bit.seq <= seq) {
            bit.cost += more;
        }
    }
}

#[cfg(test)]
mod tests;
