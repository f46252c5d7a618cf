//! When a replica was looked at, and how long that takes.
//!
//! An answer tells what the replica showed at some time between the question and the answer. Halfway
//! is off by half of what both took at most, and by nothing where the ways are alike. Taken for what
//! it showed when the answer came, a slow answer was a lag, and everybody was braked for it.
//!
//! What a replica has applied is seen after half of the time from one question to the next on the
//! mean, and what the answer takes. While answers come within a probe interval that is about one.
//!
//! Certain is what it did not show when it was asked. Taken as of the answer, up to a probe
//! interval more is a queue where there is none. Near by that holds back who would grow too fast
//! for a short threshold. Behind a long way the queue aimed for may be as short as the error: then
//! one stood for ever, each lower sample was believed, what was let through was the next sample,
//! and a replica that nobody kept busy was throttled down to a hundredth of what it can. So the
//! longer the way, the more the question counts.
//!
//! Source: Cristian, Probabilistic Clock Synchronization (1989).

use super::{Aim, Flow, Look, acknowledging, seconds};
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

/// From a way of this part of what acknowledging takes on, only the question is certain.
const FAR: f64 = 0.5;

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

/// When it was looked for what an answer does not show. An answer may take a probe interval; one
/// that takes longer is as old as its question.
pub(super) fn looked_at(look: &Look, probe: f64) -> MonoTime {
    let late = seconds(look.asked_at, look.answered_at) > probe;
    if late { look.asked_at } else { look.answered_at }
}

impl Flow {
    /// Since when what an answer does not show has not been applied, for certain.
    pub(super) fn certain_at(&self, look: &Look, aim: &Aim) -> MonoTime {
        let acknowledging = acknowledging(aim);
        let far = (self.base.seconds(acknowledging) / (FAR * acknowledging)).min(1.0);
        let took = looked_at(look, aim.probe).saturating_since(look.asked_at);
        look.asked_at.saturating_add(took.mul_f64(1.0 - far))
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
            appliers: 1,
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
