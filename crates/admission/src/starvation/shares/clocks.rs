//! What is remembered of time: how much of it counts, and what was of late.

use std::time::Duration;

use crate::MonoTime;

/// While nobody is admitted for longer, nobody takes anything from anybody.
const MOVES_FOR: Duration = Duration::from_secs(5);

/// What an app received is told of the last minutes, as far as somebody was admitted in them.
const OF_LATE: Duration = Duration::from_secs(60);

/// The largest statements of the last ten to twenty minutes count.
const LARGEST_FOR: Duration = Duration::from_secs(600);

/// Goes while somebody is admitted at least every now and then.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    time: Duration,
    at: MonoTime,
    moves_until: MonoTime,
}

/// The largest statement that was admitted of late, in rows and in rows for each weight.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Largest {
    since: MonoTime,
    now: (f64, f64),
    before: (f64, f64),
}

/// Sums in which the past counts less and less.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfLate {
    entitled: f64,
    received: f64,
    at: Duration,
}

impl Clock {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { time: Duration::ZERO, at: now, moves_until: now }
    }

    pub(super) const fn time(&self) -> Duration {
        self.time
    }

    /// Somebody is admitted.
    pub(super) fn moves(&mut self, now: MonoTime) {
        self.moves_until = now.saturating_add(MOVES_FOR);
    }

    pub(super) fn tick(&mut self, now: MonoTime) {
        let passed = now.min(self.moves_until).saturating_since(self.at);
        self.time = self.time.saturating_add(passed);
        self.at = self.at.max(now);
    }
}

impl Largest {
    pub(super) fn note(&mut self, now: MonoTime, rows: f64, weight: f64) {
        if now.saturating_since(self.since) >= LARGEST_FOR {
            *self = Self { since: now, now: (0.0, 0.0), before: self.now };
        }
        self.now = (self.now.0.max(rows), self.now.1.max(rows / weight));
    }

    pub(super) fn get(&self) -> (f64, f64) {
        (self.now.0.max(self.before.0), self.now.1.max(self.before.1))
    }
}

impl OfLate {
    pub(super) fn add(&mut self, time: Duration, (entitled, received): (f64, f64)) {
        let passed = time.saturating_sub(self.at);
        if !passed.is_zero() {
            let kept = (-passed.div_duration_f64(OF_LATE)).exp();
            self.entitled *= kept;
            self.received *= kept;
            self.at = time;
        }
        self.entitled += entitled;
        self.received += received;
    }

    pub(super) const fn sums(&self) -> (f64, f64) {
        (self.entitled, self.received)
    }
}
