//! What a replica delivered when it was the bottleneck, and since when nothing has told that again.

use crate::MonoTime;

/// So many acknowledgements on end must have called the replica the bottleneck for the rate to be
/// found. One of them may be a large transaction that was just being applied.
const FINDS: u32 = 2;

/// And so many for what it delivers to be all that it can.
const TELLS: u32 = 3;

#[derive(Debug)]
pub(super) struct Found {
    /// The rate is no first guess any more.
    is_found: bool,
    /// Rows a second: the most that it delivered while a queue last stood.
    most: f64,
    /// Acknowledgements on end that called it the bottleneck.
    on_end: u32,
    /// When the last of them came that counts.
    clear_since: MonoTime,
}

impl Found {
    pub(super) fn new(now: MonoTime) -> Self {
        Self { is_found: false, most: 0.0, on_end: 0, clear_since: now }
    }

    pub(super) fn is_found(&self) -> bool {
        self.is_found
    }

    /// What it delivered at most while a queue last stood, in rows a second; 0: none ever did.
    pub(super) fn most(&self) -> f64 {
        self.most
    }

    /// Since when nothing has told that there is no more.
    pub(super) fn clear_since(&self) -> MonoTime {
        self.clear_since
    }

    /// An acknowledgement. `Some`: the replica was the bottleneck, and delivered so many rows a
    /// second. That `proves` the rate, if it is a good part of it.
    pub(super) fn handle(&mut self, at: MonoTime, bottleneck: Option<f64>, proves: bool) {
        let Some(delivered) = bottleneck else {
            self.on_end = 0;
            return;
        };
        self.on_end = self.on_end.saturating_add(1);
        self.is_found |= proves && self.on_end >= FINDS;
        if self.on_end >= TELLS {
            let before = if self.on_end > TELLS { self.most } else { 0.0 };
            self.most = before.max(delivered);
            self.clear_since = at;
        }
    }

    /// Nothing was seen for a while: what comes is on no end of what was.
    pub(super) fn note_gap(&mut self) {
        self.on_end = 0;
    }

    /// Its part of what all controllers deliver is another.
    pub(super) fn scale(&mut self, factor: f64) {
        self.most *= factor;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    fn told(acknowledgements: &[Option<f64>]) -> Found {
        let mut found = Found::new(at(0));
        for (ms, delivered) in (0..).step_by(250).zip(acknowledgements) {
            found.handle(at(ms), *delivered, true);
        }
        found
    }

    #[test]
    fn one_acknowledgement_finds_nothing_and_a_queue_that_stands_does() {
        let now_and_then = told(&[Some(900.0), None, Some(950.0), None, Some(990.0)]);
        assert!(!now_and_then.is_found() && now_and_then.most() == 0.0, "{now_and_then:?}");
        let stands = told(&[Some(900.0), Some(950.0)]);
        assert!(stands.is_found() && stands.most() == 0.0, "{stands:?}");
        assert_eq!(stands.clear_since(), at(0));
        let stands = told(&[Some(900.0), Some(950.0), Some(1_000.0), Some(200.0)]);
        assert_eq!((stands.most(), stands.clear_since()), (1_000.0, at(750)), "the most of it");
    }

    #[test]
    fn what_a_former_queue_told_is_known_until_the_next_one_stands() {
        let stood = [Some(1_000.0), Some(1_000.0), Some(1_000.0), None, Some(300.0), Some(300.0)];
        assert_eq!(told(&stood).most(), 1_000.0);
        let mut anew = told(&[&stood[..], &[Some(310.0)]].concat());
        assert_eq!(anew.most(), 310.0);
        anew.scale(0.5);
        assert_eq!(anew.most(), 155.0);
    }

    #[test]
    fn a_trickle_proves_no_rate() {
        let mut found = Found::new(at(0));
        for ms in [0, 250, 500] {
            found.handle(at(ms), Some(10.0), false);
        }
        assert!(!found.is_found() && found.most() > 0.0, "{found:?}");
    }
}
