//! What replication takes with no queue at all: the way to the replica, and of its answers back.
//!
//! Theory. The age at which a heartbeat is seen is the base and the queue, and only the queue is
//! ours to steer. No age that was ever seen is below the base, so the estimate falls at once. It
//! rises only when a *drain* shows that it must: for a moment so little is let through that a queue
//! would be gone, and what is left then is the way. A drain costs work that the replica could have
//! done; so there is one only when the estimate is old: no age near it has been seen for long,
//! while everybody waited. A queue that is taken for a longer way, as by a minimum over the last
//! half minute, is let stand; another is put on top of it, and so on up to the threshold.
//!
//! Sources: Brakmo and Peterson, TCP Vegas (1995), for the base; Cardwell et al., BBR (2016), for
//! draining when the minimum is old.

use std::time::Duration;

use crate::MonoTime;

/// How long no age near the base must have been seen before it is doubted.
const OLD: Duration = Duration::from_secs(5);

/// A rate that has fallen to this part of what was delivered before is a reason to doubt it.
const FALLEN: f64 = 0.6;

/// The part of the rate that is let through while a queue is drained.
const DRAINS: f64 = 0.4;

/// The part of what acknowledging takes by which the least age seen is longer than the way: always,
/// and with the first.
const LOOKING: f64 = 0.15;
const LOOKING_FEW: f64 = 0.4;

/// Heartbeats by which the way is measured.
const HEARTBEATS: f64 = 3.0;

/// And for so many times what a large statement takes: one of them may be applied all the while.
const LUMPS: f64 = 4.0;

/// A drain is given up after so many times what it should take.
const PATIENCE: f64 = 3.0;

/// An age within this part of the queue that is aimed for is near.
const NEAR: f64 = 0.5;

/// A way that is longer by less than this part of what acknowledging takes is not told from one
/// that is not.
const TOLD: f64 = 0.25;

/// The base is at most this part of the threshold: beyond, there is no room for any queue.
const MOST: f64 = 0.8;

/// An age at which a heartbeat was seen, and what is known at that time. In seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Age {
    pub(super) at: MonoTime,
    pub(super) committed_at: MonoTime,
    /// When it was looked, and about, without the time between two looks.
    pub(super) most: f64,
    pub(super) about: f64,
    /// The queue that is aimed for.
    pub(super) aim: f64,
    pub(super) threshold: f64,
    /// What acknowledging takes.
    pub(super) acknowledging: f64,
    /// What the usual large statement takes.
    pub(super) lump: f64,
    /// Rows a second.
    pub(super) rate: f64,
    /// Somebody waited most of the time.
    pub(super) limited: bool,
}

#[derive(Debug)]
pub(super) struct Base {
    /// The least age seen, in seconds, and how many were about as small. `None` before the first.
    least: Option<f64>,
    seen: f64,
    /// When an age near it was seen, or it was tried.
    near_at: MonoTime,
    /// The most that was delivered in a second since it was tried.
    delivered: f64,
    tried: bool,
    drain: Option<Drain>,
    /// Until what was held back by a drain is on its way again.
    refills_until: MonoTime,
}

#[derive(Debug)]
struct Drain {
    /// When a queue would be gone.
    drained_at: MonoTime,
    /// Of heartbeats committed after that: how many were seen, the least of their ages, and the
    /// first.
    seen: f64,
    least: f64,
    first: f64,
    /// It is given up then.
    ends_at: MonoTime,
}

impl Base {
    pub(super) fn new(now: MonoTime) -> Self {
        Self {
            least: None,
            seen: 0.0,
            near_at: now,
            delivered: 0.0,
            tried: false,
            drain: None,
            refills_until: now,
        }
    }

    /// Of what acknowledging takes, looking is always a part, and more of it in the least of few.
    pub(super) fn seconds(&self, acknowledging: f64) -> f64 {
        let looking = (LOOKING + LOOKING_FEW / (1.0 + self.seen)) * acknowledging;
        (self.least.unwrap_or(0.0) - looking).max(0.0)
    }

    /// Whether less is on its way than there would be.
    pub(super) fn is_drained(&self, now: MonoTime) -> bool {
        self.drain.is_some() || now < self.refills_until
    }

    /// The part of the rate that is let through at most while it is drained.
    pub(super) fn part(&self) -> Option<f64> {
        self.drain.as_ref().map(|_| DRAINS)
    }

    /// So much was delivered in a second.
    pub(super) fn delivered(&mut self, per_s: f64) {
        self.delivered = self.delivered.max(per_s);
    }

    /// The rate was another part of what all deliver.
    pub(super) fn scale(&mut self, factor: f64) {
        self.delivered *= factor;
    }

    /// A heartbeat was seen.
    pub(super) fn handle(&mut self, age: &Age) {
        let told = TOLD * age.acknowledging;
        let most = age.most.min(MOST * age.threshold);
        let least = self.least.unwrap_or(f64::INFINITY);
        if most < least - told {
            self.seen = 1.0;
        } else if most <= least + told {
            self.seen += 1.0;
        }
        let least = least.min(most);
        self.least = Some(least);
        if age.most <= least + NEAR * age.aim {
            self.end(age);
        } else if self.drain.is_some() {
            self.go_on(age, told);
        } else if self.is_doubted(age) {
            let drains_for = (age.about - least).max(0.0) / (1.0 - DRAINS);
            let watches_for = age.most + (heartbeats(age) + 1.0) * age.acknowledging;
            self.drain = Some(Drain {
                drained_at: later(age.at, drains_for),
                seen: 0.0,
                least: f64::INFINITY,
                first: age.about,
                ends_at: later(age.at, PATIENCE * (drains_for + watches_for)),
            });
        }
    }

    fn is_doubted(&self, age: &Age) -> bool {
        let old = age.at.saturating_since(self.near_at) >= OLD;
        let untried = !self.tried && self.least.unwrap_or(0.0) > NEAR * age.aim;
        let fallen = age.rate < FALLEN * self.delivered;
        age.limited && old && (untried || fallen)
    }

    fn go_on(&mut self, age: &Age, told: f64) {
        let Some(drain) = &mut self.drain else { return };
        if age.at >= drain.ends_at {
            self.end(age);
            return;
        }
        if age.committed_at < drain.drained_at {
            return;
        }
        // As long as it still falls, it is a queue.
        if age.about < drain.first - 2.0 * told {
            (drain.seen, drain.least) = (0.0, f64::INFINITY);
        }
        if drain.seen < 1.0 {
            drain.first = age.about;
        }
        drain.seen += 1.0;
        drain.least = drain.least.min(age.most);
        if drain.seen < heartbeats(age) {
            return;
        }
        self.least = Some(drain.least.min(MOST * age.threshold));
        self.seen = 1.0;
        self.end(age);
    }

    /// It is what it was taken for, as far as can be told.
    fn end(&mut self, age: &Age) {
        self.near_at = age.at;
        if self.drain.take().is_some() {
            self.tried = true;
            self.delivered = age.rate;
            self.refills_until = later(age.at, age.most + age.acknowledging);
        }
    }
}

/// Heartbeats by which the way is measured.
fn heartbeats(age: &Age) -> f64 {
    HEARTBEATS.max((LUMPS * age.lump / age.acknowledging).ceil())
}

fn later(at: MonoTime, seconds: f64) -> MonoTime {
    at.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// A heartbeat of this age is seen, where everybody waits and a large statement takes so long.
    fn see(base: &mut Base, ms: u64, age_ms: u32, lump: f64) {
        let seconds = f64::from(age_ms) / 1_000.0;
        base.handle(&Age {
            at: at(ms),
            committed_at: at(ms.saturating_sub(age_ms.into())),
            most: seconds,
            about: seconds,
            aim: 0.15,
            threshold: 5.0,
            acknowledging: 0.35,
            lump,
            rate: 1_000.0,
            limited: true,
        });
    }

    /// The way as it is known after twelve seconds of which eleven had a lag of 1.3 s, and after one heartbeat more that
    /// takes no longer than the way.
    fn after_a_lag(lump: f64) -> (f64, f64) {
        let mut base = Base::new(at(0));
        for ms in (0..12_000).step_by(250) {
            see(&mut base, ms, if ms < 1_000 { 200 } else { 1_300 }, lump);
        }
        let before = base.seconds(0.0);
        see(&mut base, 12_000, 210, lump);
        (before, base.seconds(0.0))
    }

    #[test]
    fn the_way_is_longer_when_a_drain_has_shown_that_no_queue_stood() {
        assert_eq!(after_a_lag(0.0), (1.3, 0.21));
    }

    #[test]
    fn a_large_statement_that_is_applied_while_a_queue_is_drained_is_no_longer_way() {
        assert_eq!(after_a_lag(1.3), (0.2, 0.2));
    }
}
