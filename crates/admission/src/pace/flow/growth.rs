//! How fast the rate grows while there is no queue and somebody waits.
//!
//! What is too much comes to light when it has gone the way. Until then the rate goes on growing,
//! and the queue that this leaves is about the growth times the way. Near by and at a threshold of
//! a second that is a queue of the length aimed for. Where the way is long, by distance or because
//! what is let in runs for seconds before it commits, it is more than there is room for, and each
//! time the rate has found its end again the lag is over the threshold. The first time it takes the
//! risk: from a guess of 100 rows a second it would be minutes until a fast replica is in use. Once
//! the rate was found, what the replica delivered while a queue last stood tells where its end may
//! be. Up to shortly before that it grows fast: a pause (a stall, a shut gate) has made it smaller.
//! From there on it grows by no more than leaves a quarter of what the way leaves of the threshold;
//! and by twice as much with each way that has passed without a queue, for the replica may have
//! become faster. Ha, Rhee and Xu's CUBIC (2008) goes back to where it last lost a packet in the
//! same manner.
//!
//! Until the rate was found, the way is that of what is found running, not the mean over rows: small
//! statements beside transactions of seconds have all they ask for, and what more is let in are
//! transactions. Once it was, haste is bounded by what the way leaves of the threshold; with a longer
//! way on top a far replica of which little is asked was throttled for good by queues that were none.
//!
//! No queue is no sign where what was let in has not come through yet: while a pipeline fills that
//! was drained, nothing is delivered. So the rate grows no further above what is delivered than
//! growth leads within the way and the time of a sample. (Where a sample spans many ways, for the sake
//! of large statements, that bounds nothing; there is no pipeline then.)

use super::{Aim, Flow, RATE_MAX, acknowledging, seconds};
use crate::MonoTime;

/// Growth of the rate within the time of the way.
const GROWTH: f64 = 0.5;

/// What is added to it, until the rate was found, where all of that time is work at the primary.
const GROWTH_AT_WORK: f64 = 0.4;

/// By which part it grows within that time at most where looks at the appliers tell that there is as much more.
const GROWTH_SEEN: f64 = 2.0;

/// Once the rate was found, growth leaves a queue of this part of the room there is for one.
const ROOM: f64 = 0.25;

/// From this part of what was delivered at most on, its end may be near.
const NEAR: f64 = 0.9;

/// Growth within this many ways at most at a time.
const WAYS_MAX: f64 = 2.0;

impl Flow {
    /// No queue has stood `clear_for` seconds, there is `room` for a part of the one aimed for, and
    /// somebody waits. The newest sample spans so many seconds.
    pub(super) fn grow(
        &mut self,
        at: MonoTime,
        (clear_for, room): (f64, f64),
        span: f64,
        aim: &Aim,
    ) {
        let way = self.way_of_more(aim);
        let covers = (clear_for / way).min(WAYS_MAX);
        let more = self.more(at, aim);
        let seen = more.unwrap_or(0.0).min(GROWTH_SEEN);
        let part = (self.growth(at, more.is_some(), aim) * room).max(seen);
        let leads = (1.0 + self.haste(aim).max(GROWTH).max(seen)).powf(1.0 + span / way);
        let most = (self.delivered * leads).max(self.rate);
        self.rate = (self.rate * (1.0 + part * covers)).min(most).min(RATE_MAX);
    }

    /// By which part the rate grows in the time of the way, for all that the lag tells.
    fn growth(&self, at: MonoTime, is_looked_at: bool, aim: &Aim) -> f64 {
        let haste = self.haste(aim);
        let way = self.way_of_more(aim);
        let is_near = self.found.is_found() && self.rate >= NEAR * self.found.most();
        if !is_near && !is_looked_at {
            return haste;
        }
        let since = self.found.clear_since().max(self.idle.told_at());
        let first = ROOM * self.rest(aim) / (way - self.commit);
        haste.min(first * (seconds(since, at) / way).exp2())
    }

    /// By which part it does while its end is not near. From the commit on what is too much is
    /// seen as soon as near by, however long it was at work before; but by then as much more of it
    /// is at work. Where the rate was found once, there is less to be gained by haste.
    fn haste(&self, aim: &Aim) -> f64 {
        if !self.found.is_found() {
            return GROWTH + GROWTH_AT_WORK * aim.running / self.way_of_more(aim);
        }
        let base = self.standing(aim);
        GROWTH.min(ROOM * self.rest(aim) / (acknowledging(aim) + base))
    }

    /// What the way leaves of the threshold, in seconds.
    fn rest(&self, aim: &Aim) -> f64 {
        (aim.threshold - self.standing(aim)).max(0.0)
    }

    /// The way of what more is let in.
    pub(super) fn way_of_more(&self, aim: &Aim) -> f64 {
        let runs = if self.found.is_found() { aim.service } else { aim.running };
        self.way(aim) - aim.service + runs
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    pub(in crate::pace::flow) fn aim(running: f64) -> Aim {
        Aim {
            threshold: 1.0,
            lenient: None,
            heartbeat: 0.25,
            probe: 0.1,
            looking: 0.1,
            lump: 1.0,
            service: running,
            running,
            others: None,
            others_lump: 0.0,
        }
    }

    /// A queue stood at a replica that delivers 1,000 rows a second, the last time at `at(500)`.
    fn found(rate: f64) -> Flow {
        let mut flow = Flow::new(at(0), Some(rate));
        for ms in [0, 250, 500] {
            flow.found.handle(at(ms), Some(1_000.0), true);
        }
        flow.delivered = rate;
        flow
    }

    #[test]
    fn near_its_end_the_rate_grows_the_slower_the_longer_work_runs() {
        let (fast, slow) = (aim(0.0), aim(5.0));
        assert_eq!(
            found(800.0).growth(at(500), false, &slow),
            GROWTH,
            "a pause has made it smaller"
        );
        assert_eq!(
            found(950.0).growth(at(500), false, &fast),
            GROWTH,
            "a statement is seen at once"
        );
        let first = found(950.0).growth(at(500), false, &slow);
        assert!((first - 0.25 / 5.35).abs() < 1e-9, "{first}");
        let later = found(950.0).growth(at(500 + 2 * 5_350), false, &slow);
        assert!((later - 4.0 * first).abs() < 1e-9, "{later}: two ways without a queue");
        assert_eq!(found(950.0).growth(at(60_000), false, &slow), GROWTH);
    }

    #[test]
    fn a_pipeline_that_fills_is_no_sign_of_more() {
        let mut flow = found(800.0);
        flow.delivered = 0.0;
        flow.grow(at(750), (0.25, 1.0), 1.0, &aim(5.0));
        assert_eq!(flow.rate(), 800.0, "nothing has come through yet");
        flow.delivered = 800.0;
        flow.grow(at(750), (0.25, 1.0), 1.0, &aim(5.0));
        assert!(flow.rate() > 800.0);
    }

    #[test]
    fn small_statements_beside_transactions_hasten_nothing() {
        let beside = Aim { service: 0.5, ..aim(2.0) };
        let mut flow = Flow::new(at(0), Some(500.0));
        flow.delivered = 500.0;
        flow.grow(at(750), (0.25, 1.0), 1.0, &beside);
        let mut alone = Flow::new(at(0), Some(500.0));
        alone.delivered = 500.0;
        alone.grow(at(750), (0.25, 1.0), 1.0, &aim(2.0));
        assert!((flow.rate() - alone.rate()).abs() < 1e-9, "{} {}", flow.rate(), alone.rate());
    }
}
