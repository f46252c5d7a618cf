//! `speed` of a rule: the part of its own speed at which a session goes.
//!
//! Theory. What took `t` at the server is followed by a pause of `t × (1/speed − 1)`, so of all its
//! time a session has the server work for `speed` at most, and one that does nothing but work gets
//! that part done of what it would do undisturbed. Unlike `ratio`, a probability, it needs no
//! knowledge of how long statements take.

use std::fmt;
use std::time::Duration;

/// More than 0, and at most 1, which is as fast as the session goes by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed(f64);

impl Speed {
    /// As fast as it goes.
    pub const FULL: Self = Self(1.0);

    /// None if `part` is no such part.
    #[must_use]
    pub fn new(part: f64) -> Option<Self> {
        (part > 0.0 && part <= 1.0).then_some(Self(part))
    }

    /// The part.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0
    }

    /// Whether nothing is slowed.
    #[must_use]
    pub fn is_full(self) -> bool {
        self.0 >= 1.0
    }

    /// The pause that so much time at the server is followed by.
    #[must_use]
    pub fn pause_after(self, worked: Duration) -> Duration {
        if worked.is_zero() || self.is_full() {
            return Duration::ZERO;
        }
        let seconds = worked.as_secs_f64() * (1.0 / self.0 - 1.0);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// `10 %`.
impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        let places = if percent >= 1.0 { 1 } else { 4 };
        let shown = format!("{percent:.places$}");
        write!(f, "{} %", shown.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speed(part: f64) -> Speed {
        Speed::new(part).unwrap()
    }

    #[test]
    fn a_session_works_for_that_part_of_its_time() {
        let worked = Duration::from_millis(20);
        for (part, pause_ms) in [(1.0, 0), (0.5, 20), (0.25, 60), (0.1, 180)] {
            let pause = speed(part).pause_after(worked);
            assert!(pause.abs_diff(Duration::from_millis(pause_ms)) < Duration::from_micros(1));
        }
        assert_eq!(speed(0.1).pause_after(Duration::ZERO), Duration::ZERO);
        assert_eq!(speed(f64::MIN_POSITIVE).pause_after(worked), Duration::MAX);
    }

    #[test]
    fn nothing_else_is_a_speed() {
        for part in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Speed::new(part), None, "{part}");
        }
    }

    #[test]
    fn people_read_percent() {
        for (part, shown) in [(0.1, "10 %"), (1.0, "100 %"), (0.125, "12.5 %"), (0.001, "0.1 %")] {
            assert_eq!(speed(part).to_string(), shown);
        }
    }
}
