//! The clock of the process: the one place where time is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use admission::MonoTime;
use tokio::time::Instant;

/// Turns the operating system's monotonic clock into [`MonoTime`], counted from when this was made.
/// It is the clock of the runtime's timers, which tests can stop.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose zero is now.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Monotonic time since this clock's zero.
    pub fn now(&self) -> MonoTime {
        let elapsed = self.origin.elapsed();
        MonoTime::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// When `at` is, as tokio's timers want it.
    pub fn instant(&self, at: MonoTime) -> Instant {
        self.origin + Duration::from_nanos(at.as_nanos())
    }

    /// Seconds since 1970. It follows the wall clock, which can jump: only rules that expire or
    /// have a schedule, and what is shown to people, use it.
    pub fn unix_seconds(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}
