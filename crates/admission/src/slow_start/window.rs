//! One limit, and what is on its way of it; and those of many.

use std::collections::VecDeque;
use std::hash::Hash;
use std::time::Duration;

use super::Shown;
use crate::MonoTime;
use crate::key_map::KeyMap;
use crate::pace::Charge;

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

/// Limits of one sort; clients choose apps, and tables. Beyond, all others have one together.
pub(super) const WINDOWS_MAX: usize = 4_096;

/// Heartbeats between which work is told apart.
const BITS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Window {
    limit: f64,
    /// By how many heartbeats were begun ahead of the admission, and by the newest that was ahead of the
    /// completion.
    running: VecDeque<Bit>,
    done: VecDeque<Bit>,
    /// It had no room since anything of it was shown.
    limited: bool,
    /// When somebody waited for it last.
    held_at: Option<MonoTime>,
    used_at: MonoTime,
}

#[derive(Debug, Clone, Copy)]
struct Bit {
    seq: u64,
    at: MonoTime,
    cost: f64,
}

impl Window {
    pub(super) fn new(now: MonoTime, limit: f64) -> Self {
        let (running, done) = (VecDeque::new(), VecDeque::new());
        Self { limit, running, done, limited: false, held_at: None, used_at: now }
    }

    /// Whether it leaves room for such work. A no is remembered.
    pub(super) fn allows(&mut self, now: MonoTime, cost: f64) -> bool {
        let out = self.out(now);
        let allows = out < NOTHING || out + cost <= self.limit;
        self.limited |= !allows;
        allows
    }

    pub(super) fn limit(&self) -> f64 {
        self.limit
    }

    /// Whether more than such a first limit has been seen of it.
    pub(super) fn is_beyond(&self, first: f64) -> bool {
        self.limit > first
    }

    /// There was no room at the pace for such work.
    pub(super) fn refused(&mut self, now: MonoTime, cost: f64) {
        self.limited |= self.out(now) + cost > USED * self.limit;
    }

    /// Somebody waits for it.
    pub(super) fn hold(&mut self, now: MonoTime) {
        self.held_at = Some(now);
    }

    /// Whether somebody waited for it within such a time.
    pub(super) fn has_held(&self, now: MonoTime, within: Duration) -> bool {
        self.held_at.is_some_and(|at| now.saturating_since(at) < within)
    }

    pub(super) fn admit(&mut self, now: MonoTime, first: f64, charge: Charge) {
        self.idle(now, first);
        self.forget_old(now);
        Self::add(&mut self.running, charge.epoch(), now, charge.known());
    }

    /// Work that runs costs more than it did.
    pub(super) fn charge(&mut self, now: MonoTime, before: Charge, charge: Charge) {
        self.used_at = now;
        Self::move_by(&mut self.running, charge.epoch(), charge.known() - before.known());
    }

    /// It was taken back before it ran.
    pub(super) fn take_back(&mut self, charge: Charge) {
        Self::move_by(&mut self.running, charge.epoch(), -charge.known());
    }

    /// It has completed, at this cost, with so many heartbeats begun.
    pub(super) fn complete(
        &mut self,
        now: MonoTime,
        (begun, shown): (u64, Option<Shown>),
        charge: Charge,
        cost: f64,
    ) {
        self.take_back(charge);
        match shown {
            Some(shown) => {
                self.settle(now, shown);
                Self::add(&mut self.done, begun, now, cost);
            }
            None => self.done.clear(),
        }
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
    pub(super) fn settle(&mut self, now: MonoTime, shown: Shown) {
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
    pub(super) fn out(&self, now: MonoTime) -> f64 {
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

/// The limits of one sort.
#[derive(Debug)]
pub(super) struct Windows<K> {
    of: KeyMap<K, Window>,
    /// That of all for which there is no place.
    others: Option<Window>,
    forgotten_at: MonoTime,
}

impl<K> Default for Windows<K> {
    fn default() -> Self {
        Self { of: KeyMap::default(), others: None, forgotten_at: MonoTime::ZERO }
    }
}

impl<K: Copy + Eq + Hash> Windows<K> {
    pub(super) fn get(&mut self, key: K) -> Option<&mut Window> {
        let has_none = self.of.len() >= WINDOWS_MAX && !self.of.contains_key(&key);
        if has_none { self.others.as_mut() } else { self.of.get_mut(&key) }
    }

    /// The one of this key, which begins with such a limit.
    pub(super) fn enter(&mut self, now: MonoTime, key: K, limit: f64) -> &mut Window {
        let is_full = self.of.len() >= WINDOWS_MAX;
        let has_place = !is_full || self.of.contains_key(&key) || self.makes_place(now);
        if has_place {
            self.of.entry(key).or_insert_with(|| Window::new(now, limit))
        } else {
            self.others.get_or_insert_with(|| Window::new(now, limit))
        }
    }

    /// Begins with such a limit, if nothing is known of it and there is a place.
    pub(super) fn begin(&mut self, now: MonoTime, key: K, limit: f64) {
        if self.of.len() < WINDOWS_MAX {
            self.of.entry(key).or_insert_with(|| Window::new(now, limit));
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Window> {
        self.of.values().chain(&self.others)
    }

    /// Forgets what was not used for long; once a second. Whether there was any.
    fn makes_place(&mut self, now: MonoTime) -> bool {
        if now.saturating_since(self.forgotten_at) < Duration::from_secs(1) {
            return false;
        }
        self.forgotten_at = now;
        self.of.retain(|_, window| now.saturating_since(window.used_at) < HALVED_AFTER);
        self.of.len() < WINDOWS_MAX
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }
}
