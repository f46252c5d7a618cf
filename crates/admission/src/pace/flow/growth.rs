//! How fast the rate grows while there is no queue and somebody waits.
//!
//! What is too much comes to light when it has gone the way. Until then the rate goes on growing,
//! and the queue that this leaves is about the growth times the way. Near by and at a threshold of
//! a second that is a queue of the length aimed for. Where the way is long and leaves little of the
//! threshold, it is more than there is room for, and each time the rate has found its end again the
//! lag is over the threshold. So once it was found it grows by no more than a quarter of what the
//! way leaves of the threshold, over the way. The first time it takes the risk: from a guess of 100
//! rows a second it would be minutes until a fast replica is in use.

use super::{Aim, Flow, acknowledging};

/// Growth of the rate within the time of the way.
const GROWTH: f64 = 0.5;

/// What is added to it, until the rate was found, where all of that time is work at the primary.
const GROWTH_AT_WORK: f64 = 0.4;

/// Once the rate was found, growth leaves a queue of this part of the room there is for one.
const ROOM: f64 = 0.25;

impl Flow {
    /// By which part the rate grows in the time of the way. From the commit on what is too much is
    /// seen as soon as near by, however long it was at work before; but by then as much more of it
    /// is at work. Where the rate was found once, there is less to be gained by haste.
    pub(super) fn growth(&self, aim: &Aim) -> f64 {
        if !self.found {
            return GROWTH + GROWTH_AT_WORK * aim.service / self.way(aim);
        }
        let base = self.base.seconds(acknowledging(aim));
        let room = (aim.threshold - base).max(0.0);
        GROWTH.min(ROOM * room / (acknowledging(aim) + base))
    }
}
