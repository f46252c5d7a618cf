//! How long a large statement waits for those who are before it and away for a moment.
//!
//! Theory. Turns are shared by those who wait ([`crate::turns`]), and thirty clients that write a
//! row each do not wait while all of them have their answers under way. A statement of 10,000 rows
//! behind them in line meets such a moment soon, takes the window for seconds, and the next meets
//! one as soon as the gate opens again: the thirty have a tenth of their share. So a large one is
//! *patient*: while somebody who is away for a moment has its turn first, it goes only when it has
//! been at the head of the line for longer than
//!
//! ```text
//!     OWN · what it takes itself  +  what the others were given meanwhile / (USED · rate)
//! ```
//!
//! or, if that comes first, until the others have left as much unused as it takes itself:
//!
//! ```text
//!     what it takes itself  +  what the others were given meanwhile / rate
//! ```
//!
//! Who uses the room has it until its turn is over. Who asks for little, from far away, delays a
//! large statement by a part of what that takes, so that the replica stays in use. Beside one that
//! alone takes half of the threshold, little is as good as shut a gate: there the others come first
//! also if they use less.
//!
//! A statement larger than the window has room only once next to nothing is on its way, and many
//! small apps whose claims cover them ([`crate::claims`]) keep some of it there for ever. Once
//! those who had room meanwhile have left as much of the pace as it costs, it is *owed* that:
//! nobody comes before it until it has gone, nor by a claim.

use std::time::Duration;

use crate::request::Lane;
use crate::{MonoTime, Ticket};

/// Of one gate: of whoever is at its head.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    whose: Option<Ticket>,
    /// How long the gate has been open since it was at the head first and had room.
    held: Duration,
    /// What was given to others since, in rows.
    given: f64,
    seen_at: Option<MonoTime>,
    /// What could have been given to others while there was no room for it alone, and was not, in
    /// rows; less than nothing if they were given more.
    left: f64,
    looked_at: Option<MonoTime>,
    /// Where it stands, once the others have left as much unused as it takes.
    owed: Option<Lane>,
}

/// What patience depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// What the statement is expected to cost, in rows.
    pub(crate) cost: f64,
    /// What replicas apply, in rows a second.
    pub(crate) rate: f64,
    /// The threshold of the lag.
    pub(crate) threshold: Duration,
}

impl Size {
    /// Whether a statement is large enough to wait for anybody.
    pub(crate) fn is_large(&self) -> bool {
        self.patience(0.0) >= TICK
    }

    /// How long it waits if others are given so many rows meanwhile.
    fn patience(&self, given: f64) -> Duration {
        let takes = self.cost / self.rate;
        let is_oversize = takes >= self.threshold.as_secs_f64() / 2.0;
        let used = if is_oversize { USED_BESIDE_OVERSIZE } else { USED };
        let leaves = OWN * takes + given / (used * self.rate);
        // What the others did not use since is what it costs itself.
        let unused = takes + given / self.rate;
        let secs = leaves.min(unused);
        Duration::try_from_secs_f64(secs).unwrap_or_default()
    }
}

impl Patience {
    /// Until when this head leaves the room to others; `None`: it goes. There is room, and the
    /// gate is open since `open_since`.
    pub(crate) fn holds(
        &mut self,
        (now, open_since): (MonoTime, MonoTime),
        head: Ticket,
        size: &Size,
    ) -> Option<MonoTime> {
        self.begin(head);
        if let Some(seen_at) = self.seen_at.replace(now) {
            let open = now.saturating_since(seen_at.max(open_since));
            self.held = self.held.saturating_add(open);
        } else {
            self.given = 0.0;
        }
        let left = size.patience(self.given).saturating_sub(self.held);
        (left >= TICK && self.owed.is_none()).then(|| now.saturating_add(left))
    }

    /// There is no room for this head, though for smaller ones at so many rows a second: when it is
    /// to be looked at again; `None`: it is owed what they leave, or nothing is left now.
    pub(crate) fn waits_for_room(
        &mut self,
        (now, open_since): (MonoTime, MonoTime),
        (head, lane): (Ticket, Lane),
        (cost, left_per_s): (f64, f64),
    ) -> Option<MonoTime> {
        self.begin(head);
        if let Some(looked_at) = self.looked_at.replace(now) {
            let open = now.saturating_since(looked_at.max(open_since));
            self.left += left_per_s * open.as_secs_f64();
        }
        if self.left >= cost {
            self.owed = Some(lane);
        }
        if self.owed.is_some() || left_per_s <= 0.0 {
            return None;
        }
        let wait = Duration::try_from_secs_f64((cost - self.left) / left_per_s).ok()?;
        Some(now.saturating_add(wait.max(TICK)))
    }

    /// Whom nobody passes any more, if it still waits there.
    pub(crate) fn owed(&self) -> Option<(Lane, Ticket)> {
        self.owed.zip(self.whose)
    }

    fn begin(&mut self, head: Ticket) {
        if self.whose != Some(head) {
            *self = Self { whose: Some(head), ..Self::default() };
        }
    }

    /// Others were given so many rows.
    pub(crate) fn gave(&mut self, rows: f64) {
        self.given += rows;
        self.left -= rows;
    }
}

/// What a large statement leaves to others, of the time that it takes itself.
const OWN: f64 = 0.02;

/// The part of the rate that others use for whom it waits on.
const USED: f64 = 0.97;

/// The same of a statement that takes half of the threshold or more.
const USED_BESIDE_OVERSIZE: f64 = 0.6;

/// No two looks are closer.
const TICK: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AppKey, IdentityKey, RuleKey};

    const fn size(cost: f64) -> Size {
        Size { cost, rate: 1_000.0, threshold: Duration::from_secs(1) }
    }

    fn at(ms: u64) -> MonoTime {
        MonoTime::ZERO.saturating_add(Duration::from_millis(ms))
    }

    const HEAD: Ticket = Ticket(1);

    #[test]
    fn a_small_statement_waits_for_nobody() {
        assert!(!size(49.0).is_large());
        assert!(size(50.0).is_large());
        let unknown = Size { rate: 0.0, ..size(50.0) };
        assert!(!unknown.is_large(), "of no rate nothing is known");
    }

    #[test]
    fn a_large_one_waits_for_a_part_of_what_it_takes() {
        let (mut patience, large) = (Patience::default(), size(10_000.0));
        let holds = |patience: &mut Patience, ms| patience.holds((at(ms), at(0)), HEAD, &large);
        assert_eq!(holds(&mut patience, 100), Some(at(300)));
        assert_eq!(holds(&mut patience, 250), Some(at(300)));
        assert_eq!(holds(&mut patience, 300), None);
        let next = patience.holds((at(300), at(0)), Ticket(2), &large);
        assert_eq!(next, Some(at(500)), "the next begins anew");
    }

    #[test]
    fn it_waits_on_for_those_who_use_the_room() {
        // Row by row, one in a millisecond and one in two.
        for (cost, every_ms, held_ms) in
            [(10_000.0, 1, None), (10_000.0, 2, Some(1_200)), (400.0, 2, Some(16))]
        {
            let mut patience = Patience::default();
            let ended = (0..9_000_u64).find(|ms| {
                if ms % every_ms == 0 {
                    patience.gave(1.0);
                }
                patience.holds((at(*ms), at(0)), HEAD, &size(cost)).is_none()
            });
            let near = match (ended, held_ms) {
                (None, None) => true,
                (Some(ended), Some(held)) => (held - held / 4..=held + held / 4).contains(&ended),
                _ => false,
            };
            assert!(near, "{cost} rows, one every {every_ms} ms: until {ended:?}");
        }
    }

    #[test]
    fn it_goes_when_the_others_have_left_as_much_as_it_takes() {
        // Seven rows in ten milliseconds of a thousand a second: 0.6 of them is never undercut.
        let mut patience = Patience::default();
        let ended = (0..9_000_u64).find(|ms| {
            if ms % 10 < 7 {
                patience.gave(1.0);
            }
            patience.holds((at(*ms), at(0)), HEAD, &size(900.0)).is_none()
        });
        assert!(ended.is_some_and(|ms| (2_900..=3_100).contains(&ms)), "{ended:?}");
    }

    #[test]
    fn what_the_others_leave_while_there_is_room_for_them_is_owed_to_who_has_none() {
        let lane = Lane { rule: RuleKey(1), app: AppKey(1), identity: IdentityKey(1) };
        let mut patience = Patience::default();
        let mut looks = |from: u64, to: u64, left_per_s: f64, gives: u64| {
            (from..to).find(|ms| {
                if ms % 10 < gives {
                    patience.gave(1.0);
                }
                let whom = (HEAD, lane);
                patience.waits_for_room((at(*ms), at(0)), whom, (3_000.0, left_per_s));
                patience.owed().is_some()
            })
        };
        assert_eq!(looks(0, 9_000, 1_000.0, 10), None, "they use all of it");
        assert_eq!(looks(9_000, 20_000, 0.0, 0), None, "there is no room for anybody");
        let owed = looks(20_000, 40_000, 1_000.0, 7);
        assert!(owed.is_some_and(|ms| (29_900..=30_100).contains(&ms)), "{owed:?}");
        assert_eq!(patience.holds((at(31_000), at(0)), HEAD, &size(3_000.0)), None);
        patience.holds((at(31_001), at(0)), Ticket(2), &size(3_000.0));
        assert_eq!(patience.owed(), None, "the next is owed nothing yet");
    }

    #[test]
    fn a_shut_gate_takes_no_patience() {
        let (mut patience, large) = (Patience::default(), size(10_000.0));
        patience.holds((at(0), at(0)), HEAD, &large);
        let opened = patience.holds((at(9_050), at(9_000)), HEAD, &large);
        assert_eq!(opened, Some(at(9_200)));
    }
}
