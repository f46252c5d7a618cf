//! What an app is sure of that asks beside a line and does not wait in it.
//!
//! Theory. Who waits takes room the moment it is there; who asks comes now and then. So an asker's
//! share cannot be a rate by the clock alone: that is too much while the window has no room, since
//! only the asker has a claim then, and too little whenever it comes late, since others have taken
//! its part meanwhile. Of nine to one, each hundredth that the nine do not use is a tenth more for
//! the one. So it is also counted how far the app is behind its share of what was admitted, whoever's
//! it was: for each row its share of a row, and less by each of its own. That is what tags are for
//! those who wait ([`crate::turns`]). By the clock it goes smoothly; by the count it goes neither
//! ahead of its share nor behind it by more than [`SLACK`]:
//!
//! - ahead of it by more, it has no turn, whatever its claim covers;
//! - behind it by more, it has one as soon as the pace has room, and *that turn is kept* for it if
//!   it was refused before: those in line do not pass until it has come, for [`STAYS`] at most. Only
//!   for an app that asks [`OFTEN`], so that what is kept is used.
//!
//! Sources: Parekh and Gallager, A Generalized Processor Sharing Approach (1993), for the service a
//! flow is owed; Iyer and Druschel, Anticipatory Scheduling (2001), for keeping still until who is
//! about to ask has asked.

use std::time::Duration;

use crate::MonoTime;

/// A turn is kept for whoever was refused within this time.
pub(super) const STAYS: Duration = Duration::from_secs(1);

/// The longest mean time between two questions of an app whose turns are kept.
const OFTEN: Duration = Duration::from_millis(250);

/// How far from its share an app may be, as time at its share of the rate.
const SLACK: Duration = Duration::from_millis(50);

/// What one question counts for in that mean.
const GAP_PART: f64 = 0.25;

/// What an app is behind and does not come for is remembered for so long, as time at its share of
/// the rate.
const SAVED: Duration = Duration::from_millis(250);

/// The same for what it is ahead.
const DEBT: Duration = Duration::from_secs(1);

/// How an app asks, and how far it is behind its share.
#[derive(Debug)]
pub(super) struct Asker {
    /// In rows; below zero: ahead of its share.
    credit: f64,
    /// All that had been admitted when it was counted.
    filled_to: f64,
    asked_at: MonoTime,
    /// Between two questions, the mean.
    gap: Duration,
    /// What it was refused for its turn.
    wants: Option<Want>,
}

#[derive(Debug, Clone, Copy)]
struct Want {
    at: MonoTime,
    cost: f64,
}

/// An app's part of what is admitted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// From 0 to 1.
    pub(super) share: f64,
    /// Of the rate of the replicas, in rows a second.
    pub(super) rate: f64,
    /// All that has been admitted, in rows.
    pub(super) total: f64,
}

impl Part {
    /// So far an app that asks for so much may be ahead of its share, or behind it.
    fn slack(self, cost: f64) -> f64 {
        (self.share * self.rate).mul_add(SLACK.as_secs_f64(), 1.0).max(cost)
    }
}

/// Whether it is the turn of an app that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskersTurn {
    /// It has had its share.
    NotYet,
    /// If the pace has room.
    WithRoom,
    /// Also beside a full window: its share of the pace covers it.
    AnyHow,
}

/// A turn that is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Kept {
    pub(crate) until: MonoTime,
    /// What is collected for it.
    pub(crate) cost: f64,
}

impl Asker {
    pub(super) fn new(now: MonoTime, total: f64) -> Self {
        Self { credit: 0.0, filled_to: total, asked_at: now, gap: STAYS, wants: None }
    }

    /// It asks once more.
    pub(super) fn note(&mut self, now: MonoTime) {
        let gap = now.saturating_since(self.asked_at).min(STAYS);
        self.gap = self.gap.mul_f64(1.0 - GAP_PART).saturating_add(gap.mul_f64(GAP_PART));
        self.asked_at = now;
    }

    /// Whether it is its turn, for work of this cost that its share of the pace covers or does not.
    pub(super) fn turn(&mut self, part: Part, cost: f64, is_covered: bool) -> AskersTurn {
        self.fill(part, cost);
        if self.credit < -part.slack(cost) {
            AskersTurn::NotYet
        } else if is_covered {
            AskersTurn::AnyHow
        } else if self.credit >= part.slack(cost) {
            AskersTurn::WithRoom
        } else {
            AskersTurn::NotYet
        }
    }

    /// It was refused for its turn.
    pub(super) fn refuse(&mut self, now: MonoTime, cost: f64) {
        self.wants = Some(Want { at: now, cost });
    }

    /// The turn that is kept for it now, if one is.
    pub(super) fn kept(&mut self, now: MonoTime, part: Part) -> Option<Kept> {
        let Want { at, cost } = self.wants?;
        let until = at.saturating_add(STAYS);
        if now >= until {
            self.wants = None;
            self.gap = STAYS;
            return None;
        }
        self.fill(part, cost);
        let is_kept = self.gap <= OFTEN && self.credit >= part.slack(cost);
        is_kept.then(|| Kept { until, cost: part.slack(cost) })
    }

    /// Work of its own was admitted, or turns out to cost more.
    pub(super) fn spend(&mut self, cost: f64) {
        self.credit -= cost;
    }

    fn fill(&mut self, Part { share, rate, total }: Part, cost: f64) {
        let most = (share * rate).mul_add(SAVED.as_secs_f64(), 1.0).max(cost);
        let least = -share * rate * DEBT.as_secs_f64() - 1.0;
        let since = total - self.filled_to;
        self.filled_to = total;
        self.credit = share.mul_add(since, self.credit).max(least).min(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    /// Half of 1,000 rows a second: the slack is 26 rows.
    fn part(total: f64) -> Part {
        Part { share: 0.5, rate: 1_000.0, total }
    }

    fn that_asks_every(ms: u64) -> Asker {
        let mut asker = Asker::new(at(0), 0.0);
        for n in 1..=20_u64 {
            asker.note(at(n.saturating_mul(ms)));
        }
        asker
    }

    #[test]
    fn who_is_ahead_of_its_share_has_no_turn_and_who_is_behind_has_one_with_the_room() {
        let mut asker = that_asks_every(10);
        assert_eq!(asker.turn(part(0.0), 1.0, true), AskersTurn::AnyHow);
        assert_eq!(asker.turn(part(0.0), 1.0, false), AskersTurn::NotYet);
        asker.spend(27.0);
        assert_eq!(asker.turn(part(0.0), 1.0, true), AskersTurn::NotYet, "27 rows ahead");
        assert_eq!(asker.turn(part(2.0), 1.0, true), AskersTurn::AnyHow, "one of two was its own");
        assert_eq!(asker.turn(part(106.0), 1.0, false), AskersTurn::WithRoom, "26 behind");
    }

    #[test]
    fn a_turn_is_kept_for_a_second_for_who_asks_often_and_was_refused() {
        let mut often = that_asks_every(100);
        assert_eq!(often.kept(at(2_000), part(60.0)), None, "it was not refused");
        often.refuse(at(2_000), 1.0);
        assert_eq!(often.kept(at(2_000), part(50.0)), None, "25 rows behind");
        let kept = Kept { until: at(3_000), cost: 26.0 };
        assert_eq!(often.kept(at(2_999), part(60.0)), Some(kept));
        assert_eq!(often.kept(at(3_000), part(60.0)), None);
        often.refuse(at(3_000), 1.0);
        assert_eq!(often.kept(at(3_001), part(60.0)), None, "it has to show again that it comes");
        let mut seldom = that_asks_every(400);
        seldom.refuse(at(8_000), 1.0);
        assert_eq!(seldom.kept(at(8_001), part(60.0)), None);
    }
}
