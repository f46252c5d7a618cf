//! The clock of the process: the one place where time is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use admission::MonoTime;
use tokio::time::Instant;

/// Turns the operating system's monotonic clock into [`MonoTime`], counted from when this was made.
/// It is the clock of the runtime's timers, which tests can stop.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    /// Its zero by the wall clock of then, in seconds since 1970.
    started_at: i64,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Self {
        Self { origin: Instant::now(), started_at: wall_seconds() }
    }

    /// This clock's zero in seconds since 1970, as the wall clock had it then: the same for as long as
    /// the process is there, also where that is set meanwhile.
    pub fn started_at(&self) -> i64 {
        self.started_at
    }

    /// Monotonic time since this clock's zero.
    pub fn now(&self) -> MonoTime {
        self.at(Instant::now())
    }

    /// When `instant` is, counted from this clock's zero.
    pub fn at(&self, instant: Instant) -> MonoTime {
        let elapsed = instant.saturating_duration_since(self.origin);
        MonoTime::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// When `at` is, as tokio's timers want it.
    pub fn instant(&self, at: MonoTime) -> Instant {
        self.origin + Duration::from_nanos(at.as_nanos())
    }

    /// Seconds since 1970. It follows the wall clock, which can jump: it is for what is shown to
    /// people. Rules have [a time of their own](crate::cluster::Cluster::rule_time).
    pub fn unix_seconds(&self) -> i64 {
        wall_seconds()
    }

    /// The same in milliseconds.
    pub(crate) fn unix_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// The second of the wall clock at `at`, if it goes on from now, and went before, as it does now.
    pub fn unix_seconds_at(&self, at: MonoTime) -> i64 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.now();
        let wall = wall.saturating_add(at.saturating_since(now));
        let wall = wall.saturating_sub(now.saturating_since(at));
        i64::try_from(wall.as_secs()).unwrap_or(i64::MAX)
    }
}

fn wall_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
