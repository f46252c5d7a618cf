//! Time as the shell tells it.

use std::time::Duration;

/// Monotonic time since an origin that the shell chose, in nanoseconds.
///
/// All arithmetic saturates: 2^64 ns are 584 years, so a value at the end means "never".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MonoTime(u64);

impl MonoTime {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// The end of time: a deadline that never comes.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant `duration` later, at most [`MonoTime::MAX`].
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// The instant `duration` earlier, at least [`MonoTime::ZERO`].
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(duration)))
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let second = Duration::from_secs(1);
        assert_eq!(MonoTime::MAX.saturating_add(second), MonoTime::MAX);
        assert_eq!(MonoTime::ZERO.saturating_add(Duration::MAX), MonoTime::MAX);
        assert_eq!(MonoTime::ZERO.saturating_sub(second), MonoTime::ZERO);
        assert_eq!(MonoTime::ZERO.saturating_since(MonoTime::MAX), Duration::ZERO);
        assert_eq!(MonoTime::from_nanos(7).saturating_since(MonoTime::from_nanos(4)).as_nanos(), 3);
    }
}
