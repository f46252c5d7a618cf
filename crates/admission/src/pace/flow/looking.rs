//! When a replica was looked at, and how long that takes.
//!
//! An answer tells what the replica showed at some time between the question and the answer. Halfway
//! is off by half of what both took at most, and by nothing where the ways are alike. Taken for what
//! it showed when the answer came, a slow answer was a lag, and everybody was braked for it.
//!
//! What a replica has applied is seen after half of the time from one question to the next on the
//! mean, and what the answer takes. While answers come within a probe interval that is about one.
//!
//! Source: Cristian, Probabilistic Clock Synchronization (1989).

use super::{Look, seconds};
use crate::MonoTime;

/// The mean is over so many seconds.
const MEMORY: f64 = 5.0;

/// An answer counts as at most so many probe intervals: a replica that hangs tells nothing of how
/// long looking takes.
const ANSWER_MAX: f64 = 5.0;

#[derive(Debug, Default)]
pub(super) struct Looking {
    asked_at: Option<MonoTime>,
    at: Option<MonoTime>,
    seconds: f64,
}

/// One look, as far as its time is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looked {
    pub(super) at: MonoTime,
    /// Seconds since the one before.
    pub(super) since: f64,
}

impl Looking {
    /// A replica was looked at, as is done every `probe` seconds.
    pub(super) fn handle(&mut self, look: &Look, probe: f64) -> Looked {
        let took = look.answered_at.saturating_since(look.asked_at);
        let at = look.asked_at.saturating_add(took.mul_f64(0.5));
        let before = self.at.replace(at).unwrap_or(at);
        if let Some(asked_before) = self.asked_at.replace(look.asked_at)
            && asked_before < look.asked_at
        {
            let took = took.as_secs_f64().min(ANSWER_MAX * probe);
            // While nobody asks, replicas are looked at more rarely.
            let apart = seconds(asked_before, look.asked_at).min(probe.max(took));
            let newest = 1.0 - (-apart / MEMORY).exp();
            self.seconds += newest * (apart / 2.0 + took - self.seconds);
        }
        Looked { at, since: seconds(before, at) }
    }

    /// What it takes, in seconds.
    pub(super) fn seconds(&self, probe: f64) -> f64 {
        self.seconds.max(probe)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PROBE: f64 = 0.1;

    fn look(asked_ms: u64, took_ms: u64) -> Look {
        let at = |ms| MonoTime::ZERO.saturating_add(Duration::from_millis(ms));
        let answered_at = at(asked_ms.saturating_add(took_ms));
        Look {
            now: answered_at,
            answered_at,
            asked_at: at(asked_ms),
            lag: Duration::ZERO,
            threshold: None,
            shown: None,
            committed_at: None,
        }
    }

    #[test]
    fn a_replica_was_looked_at_between_question_and_answer() {
        let mut looking = Looking::default();
        assert_eq!(looking.handle(&look(1_000, 40), PROBE).at, look(1_020, 0).now);
        let next = looking.handle(&look(1_100, 200), PROBE);
        assert_eq!(next.at, look(1_200, 0).now);
        assert!((next.since - 0.18).abs() < 1e-9, "{next:?}");
    }

    #[test]
    fn late_answers_and_nothing_else_make_looking_longer() {
        let mut near = Looking::default();
        let mut far = Looking::default();
        let mut rare = Looking::default();
        let mut hanging = Looking::default();
        for n in 0..200 {
            near.handle(&look(n * 100, 2), PROBE);
            far.handle(&look(n * 200, 200), PROBE);
            rare.handle(&look(n * 1_000, 2), PROBE);
            hanging.handle(&look(n * 60_000, 60_000), PROBE);
        }
        assert!((near.seconds(PROBE) - PROBE).abs() < 1e-9, "within a probe interval");
        assert!((rare.seconds(PROBE) - PROBE).abs() < 1e-9, "nobody wanted more");
        assert!((far.seconds(PROBE) - 0.3).abs() < 0.01, "{far:?}");
        assert!(hanging.seconds(PROBE) < 0.8, "{hanging:?}");
    }
}
