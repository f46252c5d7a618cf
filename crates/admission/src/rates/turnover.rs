//! How fast the places in flight of a rule become free while somebody waits for one.
//!
//! Theory. A line for places moves on by one with each statement that ends, however long each of
//! them is at the server or waits at its gate first. So the ends are counted, and the time in which
//! somebody waits: their quotient is the pace of the line. Both are halved now and then, so that it
//! is that of the last [`ENDS_MAX`] ends or so.

use std::time::Duration;

use crate::MonoTime;

/// As many ends as are remembered.
const ENDS_MAX: f64 = 64.0;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turnover {
    ends: f64,
    /// In which these ended and somebody waited.
    seconds: f64,
    /// Since when somebody waits whose time is not in that; `None`: nobody does.
    since: Option<MonoTime>,
}

impl Turnover {
    /// Somebody waits from now on, or did already.
    pub(super) fn begin(&mut self, now: MonoTime) {
        self.since.get_or_insert(now);
    }

    /// Nobody waits any more.
    pub(super) fn end(&mut self, now: MonoTime) {
        self.count(now);
        self.since = None;
    }

    /// A statement has ended.
    pub(super) fn ended(&mut self, now: MonoTime) {
        if self.since.is_none() {
            return;
        }
        self.count(now);
        self.ends += 1.0;
        if self.ends >= ENDS_MAX {
            self.ends /= 2.0;
            self.seconds /= 2.0;
        }
    }

    fn count(&mut self, now: MonoTime) {
        if let Some(since) = self.since {
            self.seconds += now.saturating_since(since).as_secs_f64();
            self.since = Some(now);
        }
    }

    /// How long until so many have ended, about. Where none has yet, one does in the time that
    /// somebody has waited for it; `None`: nobody has ever waited.
    pub(super) fn frees_in(mut self, now: MonoTime, statements: f64) -> Option<Duration> {
        self.count(now);
        let each = self.seconds / self.ends.max(1.0);
        let wait = Duration::try_from_secs_f64(each * statements).ok()?;
        (self.seconds > 0.0).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn frees_in(turnover: Turnover, now: u64, statements: f64) -> Option<u128> {
        turnover.frees_in(at(now), statements).map(|wait| wait.as_millis())
    }

    #[test]
    fn ends_count_while_somebody_waits() {
        let mut turnover = Turnover::default();
        turnover.ended(at(1_000));
        assert_eq!(frees_in(turnover, 2_000, 1.0), None, "nobody has waited");
        turnover.begin(at(10_000));
        assert_eq!(frees_in(turnover, 10_400, 2.0), Some(800), "one in the time until now");
        for ms in [10_050, 10_100, 10_150, 10_200] {
            turnover.ended(at(ms));
        }
        turnover.end(at(10_200));
        turnover.ended(at(60_000));
        assert_eq!(frees_in(turnover, 90_000, 10.0), Some(500));
    }

    #[test]
    fn slower_ends_are_known_after_as_many_as_are_remembered() {
        let mut turnover = Turnover::default();
        turnover.begin(at(0));
        for n in 1..=1_000 {
            turnover.ended(at(n * 10));
        }
        assert_eq!(frees_in(turnover, 10_000, 100.0), Some(1_000));
        for n in 1..=200 {
            turnover.ended(at(10_000 + n * 100));
        }
        let each = frees_in(turnover, 30_000, 100.0).unwrap();
        assert!((9_500..=10_000).contains(&each), "{each}");
    }
}
