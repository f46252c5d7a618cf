//! What a controller tells others, and what it makes of what they tell. [`super::share`] has the law.

use std::time::Duration;

use super::share::{self, Demand, Share};
use super::{Pace, Turn, Wishes};
use crate::MonoTime;

/// One look moves no further towards the share than this time would.
const SHARE_LOOK_MAX: Duration = Duration::from_secs(1);

impl Pace {
    /// Takes over what another controller had found out, where this one still guesses.
    pub(crate) fn begin_with(&mut self, rate: Option<f64>, service: Duration) {
        let Some(rate) = rate else { return };
        self.handed_over = Some(rate);
        for flow in self.flows.values_mut() {
            flow.begin_with(rate);
        }
        self.served.begin_with(service);
    }

    /// What is told to other controllers; `None` if nothing is known of any replica.
    pub(crate) fn demand(&self, now: MonoTime, wishes: &Wishes) -> Option<Demand> {
        let slowest = self.slowest()?;
        let pressing = wishes.pressing();
        let presses = pressing > 0.0;
        let weight = if presses { pressing } else { wishes.asking(now) };
        let delivered = slowest.delivered().min(slowest.rate());
        let rows_per_s = if presses { slowest.rate() } else { delivered };
        let beside_per_s = if presses { wishes.beside().min(rows_per_s) } else { 0.0 };
        let large_rows = self.sizes.usual();
        let (given_per_s, owed_rows) = (wishes.given(), self.owed);
        let round = self.turn.as_ref().map(|(_, turn)| turn.round);
        Some(Demand {
            weight,
            rows_per_s,
            presses,
            large_rows,
            beside_per_s,
            given_per_s,
            owed_rows,
            turn_rows: self.turn_rows(),
            small_per_s: self.small.per_s(now),
            round,
        })
    }

    /// What is due to this controller beside others.
    pub(crate) fn take_share(&mut self, now: MonoTime, share: Option<Share>) {
        self.share = share.map(|share| (now, share));
    }

    /// Its turn for large statements beside others.
    pub(crate) fn take_round(&mut self, now: MonoTime, turn: Option<Turn>) {
        self.turn = turn.map(|turn| (now, turn));
    }

    /// The exchange with other controllers: see [`super::share`].
    pub(super) fn move_to_share(&mut self, now: MonoTime) {
        let since = now.saturating_since(self.moved_at).min(SHARE_LOOK_MAX).as_secs_f64();
        self.moved_at = now;
        // News that are old say nothing of now.
        self.share = self.share.filter(|(at, _)| now.saturating_since(*at) <= share::HELD_FOR);
        self.turn.take_if(|(at, _)| now.saturating_since(*at) > share::HELD_FOR);
        let (Some((_, share)), Some(rate)) = (self.share, self.rate()) else {
            self.owed = 0.0;
            return;
        };
        self.owed = share.owes(self.owed, (rate, since));
        self.scale(share.factor(rate, since));
    }

    /// What is known of the rate is as if it had been so many times that all along.
    pub(crate) fn scale(&mut self, factor: f64) {
        for flow in self.flows.values_mut() {
            flow.scale(factor);
        }
    }
}
