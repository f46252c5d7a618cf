//! Beside other controllers in front of the same primary.

use super::Controller;
use crate::{Demand, MonoTime, Share, Turn};

impl Controller {
    /// What this controller has and wants of what its cluster delivers, to be told to the others
    /// each second or so; `None` where nothing is paced, or nothing is known of any replica.
    #[must_use]
    pub fn demand(&self, now: MonoTime) -> Option<Demand> {
        self.pace.as_ref()?.demand(self.clock.max(now), &self.wishes)
    }

    /// What is due to this controller beside others, as [`Share::of`] finds it in what they told;
    /// tell it anew with every piece of news. `None`: it is alone, or there is nothing to divide.
    ///
    /// It moves there within seconds, and follows a share for five: without news each goes on from
    /// where it is, which keeps the lag in bounds and leaves the parts to chance.
    pub fn take_share(&mut self, now: MonoTime, share: Option<Share>) {
        let now = self.tick(now);
        if let Some(pace) = &mut self.pace {
            pace.take_share(now, share);
        }
    }

    /// The turn of this controller for large statements, as [`Turn::of`] finds it in what it and the
    /// others told; with every piece of news, as [`Controller::take_share`], and kept for as long.
    pub fn take_round(&mut self, now: MonoTime, turn: Option<Turn>) {
        let now = self.tick(now);
        if let Some(pace) = &mut self.pace {
            pace.take_round(now, turn);
        }
    }

    /// The rules that wait at gates that the lag paces.
    pub(super) fn look_at_wishes(&mut self, now: MonoTime) {
        let paced = self.gates.values().filter(|gate| gate.paced);
        self.wishes.look(now, paced.flat_map(|gate| gate.ring.waiting_rules()));
    }
}
