//! The queue aimed for, and from where on there is one.
//!
//! A lag of any length may be one large statement that is being applied, with nothing behind it.
//! Above [`QUEUE`] of what is aimed for the rate does not grow. For a lower sample to be what the
//! replica can, more must stand there: while a rate is found, work that was admitted seconds ago is
//! acknowledged, at the rate of then, and each large statement of it would take back what was found.

use super::{Aim, Flow, acknowledging};

/// The lag aimed for, as part of the threshold.
pub(super) const TARGET: f64 = 0.2;

/// It is at least and at most so many times what acknowledging takes. Less is not told from no
/// queue at all. More keeps the replica no busier, and while it builds up nothing tells that there
/// is enough.
const QUEUE_MIN: f64 = 0.5;
const QUEUE_MAX: f64 = 0.85;

/// Nor is it more than this part of what the way leaves of the threshold: the rest is for what is
/// not seen in time.
const TARGET_OF_REST: f64 = 0.4;

/// Large statements raise the lag aimed for up to this part of it.
pub(super) const TARGET_MAX: f64 = 0.5;

/// The part of the time a usual large statement takes by which the lag aimed for is raised.
const LUMP_PART: f64 = 0.8;

/// When a transaction commits that runs for long, nobody knows before, and until the next one does
/// the replica has nothing to do, unless so many of them stand there. That is let stand where the
/// threshold leaves room for it: up to this part of what it is more than so many seconds, but, where that
/// is much, no more than some tenths of a second and a smaller part.
const READY: f64 = 2.4;
const READY_MAX: f64 = 0.3;
const READY_FROM: f64 = 1.0;
const READY_OF_MUCH: (f64, f64) = (0.6, 0.1);

/// From this part of the lag aimed for, a queue stands at the replica.
const QUEUE: f64 = 0.15;

/// So much of the time that a usual large statement takes may be what is being applied, and tells
/// nothing of what is behind it; up to this part of the lag aimed for.
const APPLIED: f64 = 0.5;
const APPLIED_MAX: f64 = 0.25;

impl Flow {
    /// The queue aimed for, in seconds.
    pub(super) fn target(&self, aim: &Aim) -> f64 {
        // What it takes by itself is no queue where several are applied at once.
        let lump = (LUMP_PART * self.lump_time(aim) - self.alone(aim)).max(0.0);
        let lump = lump.max(self.standing_ready(aim));
        let seen = acknowledging(aim);
        let rest = aim.threshold - self.standing(aim);
        let queue = (TARGET * aim.threshold).clamp(QUEUE_MIN * seen, QUEUE_MAX * seen);
        (queue.min(TARGET_OF_REST * rest) + lump).min(TARGET_MAX * rest)
    }

    /// What is let stand of work that runs for long, in seconds.
    fn standing_ready(&self, aim: &Aim) -> f64 {
        let runs_long = (aim.running / acknowledging(aim)).min(1.0);
        let room = aim.threshold - READY_FROM;
        let (some, part) = READY_OF_MUCH;
        let most = (READY_MAX * room).min(some + part * room);
        (READY * runs_long * self.lump_time(aim)).min(most)
    }

    /// The least queue that stands, in seconds.
    pub(super) fn queue_least(target: f64) -> f64 {
        QUEUE * target
    }

    /// The least queue that is more than the large statement being applied, in seconds.
    pub(super) fn queue_behind(&self, target: f64, aim: &Aim) -> f64 {
        let applied = APPLIED * self.lump_time(aim);
        let behind = QUEUE * (target - applied).max(0.0) + applied;
        behind.min(APPLIED_MAX * target).max(Self::queue_least(target))
    }

    /// What the usual large statement takes, in seconds.
    pub(super) fn lump_time(&self, aim: &Aim) -> f64 {
        // All of the replica applies it, not the part of it that is ours, and those of others.
        aim.lump.max(aim.others_lump) / (self.rate + aim.others.unwrap_or(0.0)).max(1.0)
    }

    /// Whether no queue stands, as far as is known.
    pub(in crate::pace) fn is_idle(&self, aim: &Aim) -> bool {
        let aim = &self.own(aim);
        self.queue(aim) < Self::queue_least(self.target(aim))
    }

    /// Beside other controllers: from one of the usual large statements to the next of our own, in
    /// seconds. Between them next to nothing of ours is acknowledged.
    pub(super) fn own_lumps_every(&self, aim: &Aim) -> f64 {
        if aim.others.is_some() { aim.lump / self.rate.max(1.0) } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::growth::tests::aim;
    use super::*;
    use crate::MonoTime;

    #[test]
    fn where_there_is_room_some_of_what_commits_unforeseen_stands_ready() {
        let flow = Flow::new(MonoTime::ZERO, Some(1_000.0));
        // A usual one takes half a second.
        let target = |running: f64, threshold: f64| {
            flow.target(&Aim { lump: 500.0, threshold, ..aim(running) })
        };
        let small = QUEUE_MAX * 0.35;
        let near = |seconds: f64, expected: f64| (seconds - expected).abs() < 1e-9;
        assert!(near(target(0.0, 30.0), small + 0.4), "one statement: {}", target(0.0, 30.0));
        assert!(near(target(2.0, 30.0), small + 1.2), "a transaction: {}", target(2.0, 30.0));
        assert!(
            near(target(2.0, 3.0), small + 0.6),
            "three tenths of the room: {}",
            target(2.0, 3.0)
        );
        let much = flow.target(&Aim { lump: 1_000.0, threshold: 11.0, ..aim(2.0) });
        assert!(near(much, small + 1.6), "0.6 s and a tenth of it: {much}");
        assert!(near(target(2.0, 1.0), target(0.0, 1.0)), "there is none: {}", target(2.0, 1.0));
    }
}
