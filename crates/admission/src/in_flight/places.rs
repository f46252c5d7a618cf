//! Places in flight at one gate, by the second in which they were taken.

use std::collections::VecDeque;
use std::time::Duration;

use crate::{GateKey, MonoTime};

/// A place that is held for longer does not count any more.
const HELD_MAX: Duration = Duration::from_secs(60);

const NANOS_PER_S: u64 = 1_000_000_000;

/// At most a minute of seconds, and the one that begins.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_second: VecDeque<(u64, u64)>,
    count: u64,
}

/// A place in flight. It is given back exactly once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    gate: GateKey,
    taken_at: MonoTime,
}

impl Place {
    pub(super) const fn gate(&self) -> GateKey {
        self.gate
    }

    pub(super) const fn taken_at(&self) -> MonoTime {
        self.taken_at
    }
}

impl Places {
    /// How many count.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn take(&mut self, now: MonoTime, gate: GateKey) -> Place {
        let second = second_of(now);
        match self.by_second.back_mut() {
            Some((last, count)) if *last == second => *count = count.saturating_add(1),
            Some(_) | None => self.by_second.push_back((second, 1)),
        }
        self.count = self.count.saturating_add(1);
        Place { gate, taken_at: now }
    }

    pub(super) fn free(&mut self, place: Place) {
        let second = second_of(place.taken_at);
        let Ok(index) = self.by_second.binary_search_by_key(&second, |(second, _)| *second) else {
            return;
        };
        if let Some((_, count)) = self.by_second.get_mut(index).filter(|(_, count)| *count > 0) {
            *count = count.saturating_sub(1);
            self.count = self.count.saturating_sub(1);
        }
    }

    /// Those that are held for too long do not count from here on.
    pub(super) fn forget(&mut self, now: MonoTime) {
        while let Some(&(second, count)) = self.by_second.front() {
            if count > 0 && now < forgotten_at(second) {
                return;
            }
            self.count = self.count.saturating_sub(count);
            self.by_second.pop_front();
        }
    }

    /// When the oldest stops to count.
    pub(super) fn forgets_at(&self) -> Option<MonoTime> {
        self.by_second.iter().find(|(_, count)| *count > 0).map(|(second, _)| forgotten_at(*second))
    }
}

fn second_of(at: MonoTime) -> u64 {
    at.as_nanos().checked_div(NANOS_PER_S).unwrap_or(0)
}

fn forgotten_at(second: u64) -> MonoTime {
    let begins = MonoTime::from_nanos(second.saturating_mul(NANOS_PER_S));
    begins.saturating_add(HELD_MAX)
}
