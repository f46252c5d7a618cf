//! When a map that is full is gone through for what has become old: not for each that does not fit,
//! which is as often as clients ask.

use std::time::Duration;

use crate::MonoTime;

/// No two times are closer.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Sweep {
    last: Option<MonoTime>,
}

impl Sweep {
    /// Whether it is time; then it is as if it had been done.
    pub(crate) fn is_due(&mut self, now: MonoTime) -> bool {
        let is_due = self.last.is_none_or(|last| now.saturating_since(last) >= INTERVAL);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_gone_through_once_a_second_however_many_ask() {
        let mut sweep = Sweep::default();
        let times = (0..3_500_u64).map(|ms| MonoTime::from_nanos(ms * 1_000_000));
        assert_eq!(times.filter(|now| sweep.is_due(*now)).count(), 4);
    }
}
